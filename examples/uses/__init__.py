"""A script for each use of the package, with what it printed."""
