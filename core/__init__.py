"""What all parts share: runs and their store, metrics, units, tables, files, errors, registries."""
