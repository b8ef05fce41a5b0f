"""`python -m benchmarks.ap_error`: private average precision against the floor and the paper."""

from benchmarks.ranking_error import run

if __name__ == "__main__":
    run("average-precision", 0.85)
