"""Live collectors of counters, one per file; each registers with :data:`ranksight.campaign.collecting.COLLECTORS`."""
