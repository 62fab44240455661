"""What the engine fits: series of values over configurations, their repetitions, noise and quality."""
