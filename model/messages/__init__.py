"""The message table of a program at any number of ranks: counts, sizes and partners of every kernel's operations."""
