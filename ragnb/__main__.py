"""``python -m ragnb``: the command line, where its script is not on the path."""

import sys

from ragnb.cli import main

sys.exit(main())
