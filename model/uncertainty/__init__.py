"""How far off: forecasts as mixtures, and what is learned of noise, drift and departures that last."""
