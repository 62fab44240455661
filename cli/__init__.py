"""The command line: one verb a file; nothing else knows argparse, and errors become exit codes here alone."""

from ranksight.cli.main import main

__all__ = ["main"]
