"""Planning: which runs narrow a prediction most for their core-hours."""
