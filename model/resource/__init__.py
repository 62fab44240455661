"""A kernel's time from its counts: execution, memory with its blocking factor, clock, sampled times."""
