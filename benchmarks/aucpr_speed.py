"""AUCPR estimators on ten million rows, and the simulation behind figure 4.5 of Boyd 2014.

python -m benchmarks.aucpr_speed
"""

import time

import numpy as np

from benchmarks.figure import judge

ROWS = 10_000_000
TIMES_SCIKIT_LEARN = 1.5
MINUTES = 15.0
REPETITIONS = 200


def quicker(run: object, *, rounds: int = 2) -> float:
    """The shortest wall time of a few calls: others may be using the machine."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return min(times)


def estimators() -> bool:
    from sklearn.metrics import precision_recall_curve

    from heldout import precision_recall as pr

    random = np.random.default_rng(5)
    met = True
    for prevalence in (0.1, 0.5):
        truth = random.random(ROWS) < prevalence
        score = random.standard_normal(ROWS) + truth
        labels = truth.astype(np.int8)
        base = quicker(lambda y=labels, s=score: precision_recall_curve(y, s))
        print(f"{ROWS:,} rows, prevalence {prevalence}: scikit-learn's curve {base:.2f} s")
        for name in pr.ESTIMATORS:
            took = quicker(lambda y=labels, s=score, e=name: pr.auc(y, s, estimator=e))
            what = f"{name} ({took:.2f} s) against scikit-learn"
            met &= judge(what, took / base, TIMES_SCIKIT_LEARN, unit=" times")
    return met


def simulation() -> bool:
    from heldout_papers.registry import Context, find

    entry = find(paper="boyd-2014", kind="figure", number="4.5")
    start = time.perf_counter()
    entry.run(Context(repetitions=REPETITIONS))
    minutes = (time.perf_counter() - start) * 10_000 / REPETITIONS / 60
    return judge(
        f"figure 4.5 with 10,000 repetitions, from {REPETITIONS}", minutes, MINUTES, unit=" min"
    )


def main() -> bool:
    first = estimators()
    return simulation() and first


if __name__ == "__main__":
    main()
