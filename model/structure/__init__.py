"""Structure known of functions in addition to their fit: neighbours, whole units, two levels, laws stated by a user."""
