"""What people read: tables, plots, verdicts, reports."""
