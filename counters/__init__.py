"""Hardware and simulated counters: live collectors, and readers of other tools' profiles."""
