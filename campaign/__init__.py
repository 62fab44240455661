"""Campaigns: launchers, collectors, batch jobs, and experiments imported or merged."""
