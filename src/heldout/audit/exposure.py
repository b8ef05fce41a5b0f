"""How exposed the labels of a data set are by a metric that was published without noise."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from heldout.arguments.rules import OneOf, Whole
from heldout.audit.attacks import ATTACKS, checked_decimals, checked_scores, metric_value
from heldout.data import Dataset
from heldout.errors import ArgumentError

__all__ = ["Exposure", "exposure", "exposure_of", "most_success"]


@dataclass(frozen=True)
class Exposure:
    """The share of rows whose label the attack recovers. For the custodian's eyes only."""

    metric: str
    decimals: int | None
    rows: int
    attacked: int
    recovered: float
    of_positives: float
    of_negatives: float

    @property
    def balanced(self) -> float:
        """The success against a row that is positive or negative with equal chance."""
        return (self.of_positives + self.of_negatives) / 2

    def __str__(self) -> str:
        digits = "in full" if self.decimals is None else f"to {self.decimals} decimals"
        return (
            f"With this {self.metric} {digits}, somebody who knows all other rows recovers the "
            f"label of {self.recovered:.0%} of {self.attacked:,} rows "
            f"({self.of_positives:.0%} of the positive, {self.of_negatives:.0%} of the negative)."
        )

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "balanced": self.balanced}


def exposure(
    labels: Any,
    scores: Any,
    *,
    metric: str = "auc",
    decimals: int | None = None,
    most: int = 1000,
) -> Exposure:
    """Leave out each row (at most `most` of them, spread evenly) and try to get its label back.

    >>> labels = [1, 0] * 20
    >>> scores = [0.1 + 0.02 * i for i in range(40)]
    >>> exposure(labels, scores).recovered > 0.9
    True
    """
    OneOf(ATTACKS)(metric, "metric")
    decimals, attacked = checked_decimals(decimals), Whole()(most, "most")
    labels = checked_scores(labels, name="labels")
    scores = checked_scores(scores, name="scores")
    if labels.shape != scores.shape or labels.size < 2:
        raise ArgumentError("labels and scores must be two lists of the same length, at least 2.")
    if not np.isin(labels, (0, 1)).all():
        raise ArgumentError("labels must be 0 or 1. Say which of the two each row is.")
    labels = labels.astype(int)
    published = metric_value(metric, labels, scores)
    if decimals is not None:
        published = np.round(published, decimals)
    rows = labels.size
    targets = np.unique(np.linspace(0, rows - 1, min(attacked, rows)).round().astype(int))
    attack = ATTACKS[metric]
    success = np.empty(targets.size)
    for place, target in enumerate(targets):
        keep = np.arange(rows) != target
        known, others = labels[keep], scores[keep]
        guess = attack(others[known == 1], others[known == 0], published, decimals=decimals)
        success[place] = 0.5 if guess == 0.5 else float(guess == labels[target])
    positive = labels[targets] == 1

    def mean(of: Any) -> float:
        return float(success[of].mean()) if of.any() else 0.5

    return Exposure(
        metric=metric,
        decimals=decimals,
        rows=rows,
        attacked=int(targets.size),
        recovered=float(success.mean()),
        of_positives=mean(positive),
        of_negatives=mean(~positive),
    )


def most_success(epsilon: float) -> float:
    """The best that anyone can do against an epsilon-private release, at even odds.

    >>> round(most_success(1.0), 3)
    0.731
    """
    return 1 / (1 + math.exp(-epsilon))


def exposure_of(dataset: Dataset, **words: Any) -> Exposure:
    """The exposure of a data set's rows, on the custodian's side."""
    columns = dataset._fetch("SELECT label, score FROM evaluated")
    return exposure(columns["label"], columns["score"], **words)
