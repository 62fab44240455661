"""Batch systems, one a file."""
