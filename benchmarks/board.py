"""Leaderboards under attack, and honest ones: python -m benchmarks.board [--runs 1000].

The population's accuracy of every submission of an attacker is 1/2: whatever a board shows above
it is over-fitting. Simulated with NumPy's noise at the scales of the plan.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from heldout.board import Plan
from heldout.questions.boards import certificate_of

ATTACKS = ("best-of-many", "boosting", "greedy")
ROWS, SUBMISSIONS, IMPROVEMENTS, PRICE = 5000, 1000, 5, 2


class Judge:
    """A board on labels that are coins: says what a submission learns."""

    def __init__(self, plan: Plan, random: Any, *, exact: bool) -> None:
        self.plan, self._random, self._exact = plan, random, exact
        self.labels = random.integers(0, 2, plan.rows, dtype=np.int8)
        self.best, self.top = plan.start, plan.start
        self.improved = 0
        self._bar = random.laplace(scale=float(plan.test.threshold_scale))

    def total(self, calls: Any) -> int:
        return int((calls == self.labels).sum())

    def submit(self, calls: Any) -> float | None:
        """The exact score, or the noisy one of an improvement; None where nothing is said."""
        total = self.total(calls)
        self.top = max(self.top, total / self.plan.rows)
        if self._exact:
            self.best = max(self.best, total / self.plan.rows)
            return total / self.plan.rows
        if self.improved >= self.plan.improvements:
            return None
        noise = self._random.laplace(scale=float(self.plan.test.query_scale))
        if total + noise < self.plan.reached(self.best + float(self.plan.step or 0)) + self._bar:
            return None
        self.improved += 1
        noisy = round(total + self._random.laplace(scale=self.plan.noise.float_scale))
        shown = self.plan.shown_score([noisy], self.best)
        self.best = max(self.best, shown)
        return shown


def _best_of_many(judge: Judge, random: Any) -> None:
    for _ in range(judge.plan.submissions):
        judge.submit(random.integers(0, 2, judge.plan.rows, dtype=np.int8))


def _boosting(judge: Judge, random: Any) -> None:
    """Blum and Hardt 2015: the majority of the random submissions that did better than chance."""
    votes = np.zeros(judge.plan.rows, dtype=np.int32)
    best = judge.plan.start
    for _ in range(judge.plan.submissions - 1):
        calls = random.integers(0, 2, judge.plan.rows, dtype=np.int8)
        said = judge.submit(calls)
        if said is not None and said > min(best, 0.5):
            votes += 2 * calls.astype(np.int32) - 1
    judge.submit((votes > 0).astype(np.int8))


def _greedy(judge: Judge, random: Any) -> None:
    """Change a block of calls, and keep the change where the board says that it helped."""
    calls = random.integers(0, 2, judge.plan.rows, dtype=np.int8)
    now = judge.submit(calls) or judge.plan.start
    for _ in range(judge.plan.submissions - 1):
        block = random.integers(0, judge.plan.rows, max(judge.plan.rows // 20, 1))
        other = calls.copy()
        other[block] ^= 1
        said = judge.submit(other)
        if said is not None and said > now:
            calls, now = other, said


_ATTACK: dict[str, Callable[[Judge, Any], None]] = {
    "best-of-many": _best_of_many,
    "boosting": _boosting,
    "greedy": _greedy,
}


def attacked(
    attack: str, *, rows: int = ROWS, submissions: int = SUBMISSIONS, seed: int | None = None
) -> tuple[float, float, float]:
    """How far an exact board and ours are pushed above the truth, and our certificate."""
    plan = Plan(rows=rows, price=PRICE, improvements=IMPROVEMENTS, submissions=submissions)
    shown = []
    for exact in (True, False):
        random = np.random.default_rng(seed)
        judge = Judge(plan, random, exact=exact)
        _ATTACK[attack](judge, random)
        shown.append(judge.best - 0.5)
    return shown[0], shown[1], certificate_of(plan).bound


def honest(random: Any, *, climbing: bool) -> float:
    """How far a board's best is from the true best of 300 honest submissions."""
    improvements = 20 if climbing else 10
    plan = Plan(rows=50_000, price=2, improvements=improvements, submissions=300)
    places = np.arange(300)
    if climbing:
        quality = 0.7 + 0.08 * (1 - np.exp(-places / 80)) + random.normal(0, 0.01, 300)
    else:
        quality = np.clip(random.normal(0.75, 0.03, 300), 0, 1)
    judge = Judge(plan, random, exact=False)
    for each in quality:
        right = random.binomial(plan.rows, each)
        calls = judge.labels.copy()
        calls[right:] ^= 1
        judge.submit(calls)
    return abs(judge.best - quality.max())


def picture(place: str) -> None:
    """What an attacker who boosts sees as the number of submissions grows."""
    from pathlib import Path

    from heldout.drawing.chart import PALETTE, Chart, Field, Layer, Numbers

    points, certificates = [], []
    for count in (10, 20, 50, 100, 200, 400, 600, 800, 1000):
        runs = [attacked("boosting", submissions=count, seed=each) for each in range(8)]
        exact, ours, bound = (float(np.median(each)) for each in zip(*runs, strict=True))
        certificates.append({"x": count, "y": 0.5 + bound})
        points += [
            {"x": count, "y": 0.5 + each, "board": name}
            for name, each in (("exact board", exact), ("heldout", ours))
        ]
    truth = [{"x": 0, "y": 0.5}, {"x": 1000, "y": 0.5}]
    dashed = {"strokeDash": [4, 3], "strokeWidth": 1.2}
    chart = Chart(
        [
            Layer("line", truth, style=dashed),
            Layer("line", certificates, style={"strokeDash": [1, 3], "strokeWidth": 1.2}),
            Layer("line", points, color=Field("board")),
        ],
        x=Numbers("Submissions", 0, 1000),
        y=Numbers("Best score shown", 0.45, 0.65),
        title="Coin tosses against a leaderboard",
        colours={"exact board": PALETTE[1], "heldout": PALETTE[0]},
    )
    says = "The best score that boosted coin tosses reach; the truth is one half (dashed)."
    Path(place).write_text(chart.svg(says=says), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--picture", help="draw the attack into this .svg file, and nothing else")
    told = parser.parse_args()
    runs = told.runs
    if told.picture:
        picture(told.picture)
        return
    print(
        f"{ROWS:,} rows, {SUBMISSIONS:,} submissions, price {PRICE}, {runs} runs of each attacker"
    )
    for attack in ATTACKS:
        begun = time.perf_counter()
        exact, ours, bound = (
            np.array(each) for each in zip(*(attacked(attack) for _ in range(runs)), strict=True)
        )
        print(
            f"  {attack:13} exact board +{np.median(exact):.3f} (least {exact.min():.3f}), ours "
            f"+{np.median(ours):.3f} (most {ours.max():.3f}), certificate {bound[0]:.3f}, above it "
            f"in {(ours > bound).sum()} runs ({time.perf_counter() - begun:.0f} s)"
        )
    for climbing in (False, True):
        random = np.random.default_rng()
        gaps = np.array([honest(random, climbing=climbing) for _ in range(runs)])
        what = "climbing slowly" if climbing else "of mixed quality"
        print(
            f"  300 honest submissions {what}: best within .01 of the true best in "
            f"{(gaps <= 0.01).mean():.3f} of runs (95th percentile {np.quantile(gaps, 0.95):.4f})"
        )


if __name__ == "__main__":
    main()
