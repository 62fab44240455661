"""Collectors of messages; each registers itself with :data:`ranksight.campaign.collecting.COLLECTORS`."""
