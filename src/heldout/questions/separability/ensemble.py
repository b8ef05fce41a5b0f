"""A forest that is fitted to one half of the rows and tells the other half apart.

A linear classifier sees each column by itself; trees see how columns go together. Rows that the
forest was not fitted to need no shuffled labels: given the half that it was fitted to, every
order of the other half's labels is equally likely if the two tables are alike, so the rank-sum
test has its size exactly, but for the normal approximation.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from heldout.intervals.measure import Interval, checked_level
from heldout.questions.separability.fits import balance
from heldout.questions.separability.others import auc

__all__ = ["Ensemble", "told_apart"]

NAME: Final = "random forest on held-out rows"
TREES: Final = 100
LEAF: Final = 3
MOST_ROWS: Final = 20_000
"""Of both tables together; more are thinned at random, so that it takes seconds."""


@dataclass(frozen=True)
class Ensemble:
    """What the forest made of the rows that it was not fitted to."""

    right: tuple[float, float]
    """The share of true rows, and of privatized ones, that are called right."""
    rows: tuple[int, int]
    auc: float
    score: float
    """The rank sum in standard deviations; standard normal if the tables are alike."""

    @property
    def value(self) -> float:
        """2 x accuracy - 1: 0 is chance, 1 never errs."""
        return self.right[0] + self.right[1] - 1

    @property
    def p_value(self) -> float:
        """The chance of such a rank sum, or a larger one, if the tables are alike."""
        from scipy.special import ndtr

        return float(ndtr(-self.score))

    def interval(self, level: float = 0.95) -> Interval:
        """By the binomial spread of either side, Agresti and Coull's."""
        from scipy.special import ndtri

        reach = float(ndtri((1 + checked_level(level)) / 2))
        variance = 0.0
        for share, rows in zip(self.right, self.rows, strict=True):
            smoothed = (share * rows + 2) / (rows + 4)
            variance += smoothed * (1 - smoothed) / (rows + 4)
        half = reach * math.sqrt(variance)
        return max(self.value - half, -1.0), min(self.value + half, 1.0)

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        return {
            "classifier": NAME,
            "separability": self.value,
            "interval": list(self.interval(level)),
            "detection_auc": self.auc,
            "p_value": self.p_value,
            "rows": {"truth": self.rows[0], "privatized": self.rows[1]},
        }


def told_apart(features: Any, is_true: Any, *, seed: int) -> Ensemble | None:
    """None where a side has fewer than four rows."""
    from numpy.random import default_rng
    from sklearn.ensemble import RandomForestClassifier

    random = default_rng(seed)
    halves: tuple[list[Any], list[Any]] = ([], [])
    most = min(1.0, MOST_ROWS / len(is_true))
    for side in (is_true, ~is_true):
        order = random.permutation(np.flatnonzero(side))
        order = order[: max(4, round(most * len(order)))]
        if len(order) < 4:
            return None
        halves[0].append(order[: len(order) // 2])
        halves[1].append(order[len(order) // 2 :])
    train, test = (np.concatenate(each) for each in halves)
    forest = RandomForestClassifier(TREES, min_samples_leaf=LEAF, random_state=seed, n_jobs=1)
    forest.fit(features[train], is_true[train], sample_weight=balance(is_true[train]))
    scores, truth = forest.predict_proba(features[test])[:, 1].round(9), is_true[test]
    called = scores > 0.5
    area, n, m = auc(scores, truth), int(truth.sum()), int((~truth).sum())
    return Ensemble(
        right=(float(called[truth].mean()), float((~called[~truth]).mean())),
        rows=(n, m),
        auc=area,
        score=_standardised(area, scores, n, m),
    )


def _standardised(area: float, scores: Any, n: int, m: int) -> float:
    """The area less a half over its deviation when all orders of the labels are equally likely."""
    total = n + m
    ties = np.unique(scores, return_counts=True)[1].astype(np.float64)
    tied = float((ties**3 - ties).sum()) / (total * (total - 1))
    variance = (total + 1 - tied) / (12 * n * m)
    return (area - 0.5) / math.sqrt(variance) if variance > 0 else 0.0
