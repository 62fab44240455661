"""Batch systems: a campaign as jobs, their submission, and how they are doing."""
