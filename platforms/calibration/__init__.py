"""Calibration of a node: small C programs, compiled on the spot and timed with care, become a platform description."""
