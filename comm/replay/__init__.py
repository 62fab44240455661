"""Replay of a program's messages: ranks that wait for each other, and the path that decides the time."""
