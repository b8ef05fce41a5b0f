"""Residual plots: what they tell apart (Chen et al. 2016, section III-C), and how fast.

    python -m benchmarks.residual_plot [--plots 1000] [--sizes 1000 5000] [--sets 1] [--workers 2]

Similarities of noisy plots to the real plot of ideal data; the distance between those of faulty and
of ideal data is judged by one cut between them, a lower bound of the total variation that needs no
bins. Draws are the release's own steps, counted by NumPy. The speed is that of the whole release,
with ledger and engine, on a million rows in memory.
"""

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.figure import judge, seconds
from heldout.questions.regression.verdict import Readings
from heldout_papers.chen_2016_residuals_data import KINDS, Fitted, dataset, fitted
from heldout_papers.chen_2016_residuals_draw import ours
from heldout_papers.chen_2016_residuals_study import Job, compared, run
from heldout_papers.colours import HELDOUT
from heldout_papers.registry import Context

LIMITS = {500: 0.95, 250: 0.9}
MILLION = 1_000_000
SEED = 2016


def apart(*, plots: int, sizes: list[int], sets: int, workers: int) -> bool:
    """Ideal against faulty data, every case; `sets` data sets a case."""
    jobs = [
        Job(HELDOUT, rows, f"{product / rows:g}", plots, SEED + number)
        for product in LIMITS
        for rows in sizes
        for number in range(sets)
    ]
    found = dict(Context(workers=workers).over(run, jobs, label="plots"))
    met = []
    for job in jobs:
        product = round(job.rows * float(job.epsilon))
        for each in compared(found[job], rows=job.rows, epsilon=job.epsilon):
            what = f"n epsilon {product}, n {job.rows:,}, {each.kind}: "
            print(
                f"      {what}total variation {each.total_variation:.3f}, by one cut "
                f"{each.best_threshold:.3f}, mean similarity {each.ideal:.3f} and {each.faulty:.3f}"
            )
            limit = LIMITS[product]
            met.append(judge(f"{what}{limit}/by one cut", limit / each.best_threshold, 1))
    return all(met)


def verdicts(*, plots: int) -> bool:
    """How often the verdict names a fault, by kind of data."""
    random = np.random.default_rng(SEED)
    alarms = []
    print("\n      share of plots with a fault in the verdict (fresh data every time)")
    for rows, epsilon in ((5_000, "0.05"), (5_000, "0.1"), (5_000, "0.2"), (5_000, "1")):
        line = f"      n epsilon {round(rows * float(epsilon)):>5}:"
        for kind in KINDS:
            faults = [
                Readings(ours(dataset(kind, rows=rows, random=random), epsilon)).verdict.faults
                for _ in range(plots)
            ]
            wanted = {"heteroscedastic": "fan", "nonlinear": "curvature"}.get(kind)
            hits = [bool(each) if wanted is None else wanted in each for each in faults]
            line += f"  {kind} {np.mean(hits):.3f}"
            if kind == "ideal":
                alarms.append(float(np.mean(hits)))
        print(line)
    return judge("false alarms on ideal data, worst case", max(alarms), 0.05)


def _tailed(kind: str, u: Any, random: np.random.Generator) -> Any:
    """Residuals with mean 0 whatever the prediction u, from 0 to 1; their tails may hang on it."""
    n = len(u)
    skew = random.exponential(1.0, n) - 1
    if kind == "t3":
        return random.standard_t(3, n)
    if kind == "lognormal":
        return np.exp(random.normal(0, 1, n)) - np.exp(0.5)
    if kind == "skew fan":
        return skew * (0.5 + u)
    if kind == "skew turns":
        return np.sqrt(1 - (1 - 2 * u) ** 2) * random.normal(0, 1, n) + (1 - 2 * u) * skew
    if kind == "long tail at one end":
        share = 0.09 - 0.08 * u
        tail = np.where(random.uniform(0, 1, n) < share, -1 - random.exponential(2, n), 0.0)
        return tail + 3 * share + random.normal(0, 0.6, n)
    return random.normal(0, 1, n)


TAILED = ("normal", "t3", "lognormal", "skew fan", "skew turns", "long tail at one end")


def tails(*, plots: int) -> bool:
    """How often a mean that is right is called wrong where bounds cut a tail, and one that is wrong
    is found; before the cut was reckoned with, and now."""
    random = np.random.default_rng(SEED + 20)
    alarms = []
    print("\n      share of plots with a trend or a bend: noise explained, and seen")
    for rows, epsilon in ((5_000, "0.2"), (5_000, "1"), (50_000, "1")):
        for kind in TAILED:
            line = f"      {rows:>6} rows, epsilon {epsilon:>3}, {kind:<20}"
            for slope in (0.0, 0.1, 0.2, 0.4) if kind in TAILED[:2] else (0.0,):
                leans, seen = [], []
                for _ in range(plots):
                    u = random.uniform(0, 1, rows)
                    fit = fitted(kind, 10 * u, 10 * u + _tailed(kind, u, random))
                    bend = slope * fit.residuals.std() * (u - 0.5) * 12**0.5
                    wrong = Fitted(kind, fit.observed + bend, fit.predicted)
                    found = Readings(ours(wrong, epsilon))
                    leans.append(found.trend.leans or found.curvature.leans)
                    seen.append(bool({"trend", "curvature"} & set(found.verdict.faults)))
                line += f"  {slope:.1f}: {np.mean(leans):.2f} {np.mean(seen):.2f}"
                if slope == 0:
                    alarms.append(float(np.mean(seen)))
            print(line)
    return judge("false alarms about the mean where tails are cut, worst case", max(alarms), 0.06)


def speed() -> bool:
    import pyarrow

    from heldout.questions.regression.session import residual_plot

    fit = dataset("heteroscedastic", rows=MILLION, random=np.random.default_rng(SEED))
    table = pyarrow.table({"y": fit.observed, "yhat": fit.predicted})

    def whole() -> None:
        plot = residual_plot(table, observed="y", predicted="yhat", epsilon="1")
        assert "fan" in plot.verdict.faults

    return judge(
        "a plot of 1 million rows, with its verdict", seconds(whole, repeat=3), 5, unit=" s"
    )


def main(arguments: list[str] | None = None) -> bool:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plots", type=int, default=1_000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 5_000])
    parser.add_argument("--sets", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args([] if arguments is None else arguments)
    start = time.perf_counter()
    met = [
        speed(),
        apart(plots=asked.plots, sizes=asked.sizes, sets=asked.sets, workers=asked.workers),
        verdicts(plots=asked.plots),
        tails(plots=max(asked.plots // 10, 20)),
    ]
    print(f"\n{asked.plots:,} plots a case, {time.perf_counter() - start:.0f} s")
    return all(met)


if __name__ == "__main__":
    import sys

    raise SystemExit(0 if main(sys.argv[1:]) else 1)
