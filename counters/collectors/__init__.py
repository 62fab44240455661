"""Live collectors of counters, one a file; each registers itself with :data:`ranksight.collecting.COLLECTORS`."""
