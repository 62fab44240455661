import sys

from ranksight.cli.main import main

sys.exit(main())
