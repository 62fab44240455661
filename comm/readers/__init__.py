"""Readers of traces and message profiles, one per file; each registers with :data:`ranksight.core.reading.READERS`."""
