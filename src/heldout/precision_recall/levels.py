"""The empirical precision-recall points, stored by level of recall.

Every estimator needs the same thing: at each recall, the false positives of the points that have
it. That takes one sort of each class and one search of one in the other, no sort of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arguments import as_numbers
from heldout.errors import ArgumentError
from heldout.precision_recall.arguments import Floats, fraction

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Levels:
    """Points of equal recall together; tied scores are one threshold.

    Level g has `true_positives[g]` and the false positives
    `false_positives[first[g]], ..., false_positives[last[g]]`, growing as the threshold falls.
    `before` counts the negatives above every positive: the points at recall 0.
    """

    positives: float
    negatives: float
    true_positives: Floats
    false_positives: Floats
    first: Places
    last: Places
    before: float

    @property
    def prevalence(self) -> float:
        """Share of the positives, in weight."""
        return self.positives / (self.positives + self.negatives)

    @property
    def recall(self) -> Floats:
        """Recall of each level; the last is exactly 1."""
        return self.true_positives / self.positives

    @property
    def highest(self) -> Floats:
        """The highest precision of each level."""
        return self.true_positives / (self.true_positives + self.false_positives[self.first])

    @property
    def lowest(self) -> Floats:
        """The lowest precision of each level."""
        return self.true_positives / (self.true_positives + self.false_positives[self.last])

    def mean(self) -> Floats:
        """The mean precision over the points of each level."""
        sizes = self.last - self.first + 1
        ends = np.cumsum(sizes)
        starts = ends - sizes
        places = np.arange(ends[-1]) + np.repeat(self.first - starts, sizes)
        tp = np.repeat(self.true_positives, sizes)
        points = tp / (tp + self.false_positives[places])
        return np.asarray(np.add.reduceat(points, starts) / sizes)

    def median(self) -> Floats:
        """The median precision over the points of each level."""
        tp, fp = self.true_positives, self.false_positives
        gap = self.last - self.first
        below = tp / (tp + fp[self.first + gap // 2])
        above = tp / (tp + fp[self.first + (gap + 1) // 2])
        return np.asarray(0.5 * (below + above))

    def at_prevalence(self, prevalence: float) -> Levels:
        """The same ROC points at another prevalence: the negatives get another weight."""
        pi = fraction("prevalence", prevalence)
        if pi in (0.0, 1.0) or not (self.positives and self.negatives):
            raise ArgumentError(
                f"prevalence must lie strictly between 0 and 1 and both classes must be there, "
                f"got {pi:g}. Without one of the classes there is no ROC curve to carry over."
            )
        weight = self.positives * (1.0 - pi) / (self.negatives * pi)
        return replace(
            self,
            negatives=self.positives * (1.0 - pi) / pi,
            false_positives=self.false_positives * weight,
            before=self.before * weight,
        )


def levels_from_scores(
    truth: NDArray[np.bool_], scores: Floats, weights: Floats | None = None
) -> Levels:
    """Levels of labelled scores; rows of weight 0 are as if they were not there."""
    if weights is not None:
        keep = weights > 0
        truth, scores, weights = truth[keep], scores[keep], weights[keep]
        up, up_weight = _distinct(scores[truth], weights[truth])
        down, down_weight = _distinct(scores[~truth], weights[~truth])
    else:
        up, up_weight = _distinct(scores[truth], None)
        down, down_weight = _distinct(scores[~truth], None)
    return levels_from_distinct(up, up_weight, down, down_weight)


def levels_from_distinct(
    up: Floats, up_weight: Floats | None, down: Floats, down_weight: Floats | None
) -> Levels:
    """Levels from the distinct ascending scores of each class (weight None: one example each)."""
    tp = _running(up.size, up_weight)
    fp = np.concatenate([[0.0], _running(down.size, down_weight)])
    at_or_above = down.size - np.searchsorted(down, up[::-1], side="left")
    above = down.size - np.searchsorted(down, up[::-1], side="right")
    last = np.concatenate([above[1:], np.full(min(1, up.size), down.size)])
    return Levels(
        positives=float(tp[-1]) if tp.size else 0.0,
        negatives=float(fp[-1]),
        true_positives=tp,
        false_positives=fp,
        first=at_or_above.astype(np.intp),
        last=last.astype(np.intp),
        before=float(fp[above[0]]) if above.size else float(fp[-1]),
    )


def levels_from_counts(true_positives: ArrayLike, false_positives: ArrayLike) -> Levels:
    """Levels of a curve given as running counts at falling thresholds (weights allowed).

    The last counts are taken to be all positives and all negatives.
    """
    tp = as_numbers(true_positives, name="true_positives")
    fp = as_numbers(false_positives, name="false_positives")
    if tp.ndim != 1 or tp.shape != fp.shape or not tp.size:
        raise ArgumentError(
            "true_positives and false_positives must be equally long lists, got shapes "
            f"{tp.shape} and {fp.shape}. Pass one pair of running counts a threshold."
        )
    both = np.stack([tp, fp])
    if not np.isfinite(both).all() or both.min() < 0 or np.any(np.diff(both, axis=1) < 0):
        raise ArgumentError(
            "true_positives and false_positives must be finite and never fall, from the highest "
            "threshold to the lowest. Sort the thresholds downwards."
        )
    if not both[:, -1].sum() > 0:
        raise ArgumentError("the last counts must not both be 0. There is no example.")
    seen = tp > 0
    levels, first = np.unique(tp[seen], return_index=True)
    offset = int(tp.size - seen.sum())
    first = first + offset
    last = np.concatenate([first[1:] - 1, np.full(min(1, levels.size), tp.size - 1)])
    return Levels(
        positives=float(tp[-1]),
        negatives=float(fp[-1]),
        true_positives=levels,
        false_positives=fp,
        first=first.astype(np.intp),
        last=last.astype(np.intp),
        before=float(fp[offset - 1]) if offset else 0.0,
    )


def _distinct(scores: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    """Distinct scores, ascending, with their total weight (None if all are 1)."""
    if weights is None:
        ordered = np.sort(scores)
    else:
        order = np.argsort(scores)
        ordered, weights = scores[order], weights[order]
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: ordered.size]
    if starts.all():
        return ordered, weights
    places = np.flatnonzero(starts)
    if weights is None:
        total: NDArray[Any] = np.diff(np.append(places, ordered.size))
    else:
        total = np.add.reduceat(weights, places)
    return ordered[places], total.astype(np.float64)


def _running(size: int, weights: Floats | None) -> Floats:
    """Running totals from the highest score down."""
    if weights is None:
        return np.arange(1.0, size + 1.0)
    return np.asarray(np.cumsum(weights[::-1]), dtype=np.float64)
