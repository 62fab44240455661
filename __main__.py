"""Start of the command: nothing else is imported before an interruption can be answered in one line."""

import sys


def main() -> int:
    """Run the command line and return its exit code; 130 when it is interrupted while it still starts."""
    try:
        from ranksight.cli.main import leave
        from ranksight.cli.main import main as run

        return leave(run())
    except KeyboardInterrupt:
        sys.stderr.write("ranksight: cancelled\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
