"""The toy's own file is another package's: it is loaded where it is installed, and nowhere else."""

collect_ignore = ["toy_heldout.py"]
