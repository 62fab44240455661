"""Bundled MPI programs of known behaviour, as C sources."""
