"""Topologies of systems, each value from a published source."""
