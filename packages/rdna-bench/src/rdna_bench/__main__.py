"""``python -m rdna_bench`` is the command ``rdna-bench``."""

from rdna_bench.cli import main

if __name__ == "__main__":
    main()
