"""``python -m rdna_registry``."""

import sys

from rdna_registry.cli import main

if __name__ == "__main__":
    sys.exit(main())
