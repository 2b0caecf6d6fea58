"""`python -m moxing`: the `moxing` command."""

import sys

from moxing.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
