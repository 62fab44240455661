"""Replay of a program's messages: ranks that wait for each other, and the way through kernels and messages that counts."""
