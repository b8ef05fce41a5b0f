"""`python -m benchmarks.auc_error`: private AUC against the floor and the 2015 paper."""

from benchmarks.ranking_error import run

if __name__ == "__main__":
    run("auc", 0.85)
