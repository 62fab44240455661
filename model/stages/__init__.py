"""Stages of a fit: each reads records of those before it and returns one."""
