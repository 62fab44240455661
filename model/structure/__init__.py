"""What is known of functions beside their fit: neighbours, whole units, two levels, laws that a user states."""
