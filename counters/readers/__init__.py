"""Readers of other tools' profiles, one format a file; each registers itself with :data:`ranksight.reading.READERS`."""
