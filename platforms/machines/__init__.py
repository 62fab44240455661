"""Machines described by hand from manuals and published measurements, one TOML file each."""
