"""Readers of traces and message profiles, one format a file; each registers with :data:`ranksight.reading.READERS`."""
