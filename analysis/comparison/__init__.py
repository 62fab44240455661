"""Comparison of two experiments or models: what changed, why, and at which scale it matters."""
