"""The fit of many series at once, and what comes of it: functions with weights, kept as plain data."""
