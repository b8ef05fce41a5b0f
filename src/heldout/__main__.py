"""`python -m heldout` is the command `heldout`."""

import sys

from heldout.cli import main

sys.exit(main())
