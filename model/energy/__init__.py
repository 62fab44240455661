"""Energy and power of a program: what was metered, the law of power, what it predicts, and what it costs."""
