"""Communication: the PMPI tracer, message tables, LogGP parameters and the costs of operations."""
