"""Collectors of messages; each registers itself with :data:`ranksight.collecting.COLLECTORS`."""
