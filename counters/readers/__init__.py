"""Readers of other tools' profiles, one per file; each registers with :data:`ranksight.core.reading.READERS`."""
