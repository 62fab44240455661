"""Programs on a simulated cluster: SimGrid's SMPI with the tracer linked in."""
