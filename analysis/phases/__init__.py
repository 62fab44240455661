"""Phases: stretches of communication and computation that a program repeats, their weights, and its time from them."""
