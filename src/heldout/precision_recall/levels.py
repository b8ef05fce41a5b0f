"""The empirical precision-recall points, stored by level of recall.

Every estimator needs the same thing: at each recall, the false positives of the points that have
it. That takes one sort of each class and one search of one in the other, no sort of pairs.

An estimator of the area is a rule for drawing the curve between these points; the rule gives
`Pieces`, and pieces give the area (whole or over a range of recall) and the picture.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.arguments import as_array, as_numbers, check_columns, shown
from heldout.errors import ArgumentError
from heldout.precision_recall.geometry import Floats, area_between, fraction

Places = NDArray[np.intp]


def labelled_scores(
    y_true: Iterable[Any],
    y_score: Iterable[float],
    positive: object = 1,
    sample_weight: Iterable[float] | None = None,
) -> tuple[NDArray[np.bool_], Floats, Floats | None]:
    """Return labels as booleans, finite scores, and non-negative weights or None."""
    labels = as_array(y_true, name="y_true")
    scores = as_numbers(y_score, name="y_score")
    check_columns({"y_true": labels, "y_score": scores}, show_lengths=True)
    if not labels.size:
        raise ArgumentError("y_true must have at least one row. Check the filter.")
    if not np.isfinite(scores.sum()) and not np.isfinite(scores).all():
        raise ArgumentError("y_score must be finite, got NaN or inf. Remove or replace such rows.")
    truth = _as_booleans(labels, positive)
    if sample_weight is None:
        return truth, scores, None
    weights = as_numbers(sample_weight, name="sample_weight")
    if weights.shape != scores.shape:
        raise ArgumentError(
            f"sample_weight must be as long as y_score, got {weights.shape}. Pass one weight "
            "per row."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise ArgumentError(
            "sample_weight must be finite, non-negative and not all zero. Check the weights."
        )
    return truth, scores, weights


def _as_booleans(labels: NDArray[Any], positive: object) -> NDArray[np.bool_]:
    if labels.dtype == np.bool_ and isinstance(positive, int) and positive == 1:
        return labels
    try:
        truth = np.asarray(labels == positive, dtype=np.bool_)
        if truth.shape != labels.shape:  # a plain False for types that numpy cannot compare
            truth = np.zeros(labels.shape, dtype=np.bool_)
        others = labels[~truth]
        # A missing label or a third label is a mistake that would silently count as negative.
        more = bool(others.size and np.any(others != others[0]))
    except Exception:  # cells that cannot be compared with each other
        truth, more = np.zeros(labels.shape, dtype=np.bool_), True
    if more:
        raise ArgumentError(
            f"y_true must hold two different labels, {shown(positive)} and one other. Say "
            "which one is positive, and remove missing labels."
        )
    return truth


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
        """Return the mean precision over the points of each level."""
        sizes = self.last - self.first + 1
        ends = np.cumsum(sizes)
        starts = ends - sizes
        places = np.arange(ends[-1]) + np.repeat(self.first - starts, sizes)
        tp = np.repeat(self.true_positives, sizes)
        points = tp / (tp + self.false_positives[places])
        return np.asarray(np.add.reduceat(points, starts) / sizes)

    def median(self) -> Floats:
        """Return the median precision over the points of each level."""
        tp, fp = self.true_positives, self.false_positives
        gap = self.last - self.first
        below = tp / (tp + fp[self.first + gap // 2])
        above = tp / (tp + fp[self.first + (gap + 1) // 2])
        return np.asarray(0.5 * (below + above))

    def at_prevalence(self, prevalence: float | None) -> Levels:
        """Return the same ROC points at another prevalence: the negatives get another weight."""
        if prevalence is None:
            return self
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
    """Return levels of labelled scores; rows of weight 0 are as if they were not there."""
    if weights is not None:
        keep = weights > 0
        truth, scores, weights = truth[keep], scores[keep], weights[keep]
    up, down = (
        _distinct(scores[side], None if weights is None else weights[side])
        for side in (truth, ~truth)
    )
    return levels_from_distinct(*up, *down)


def levels_from_distinct(
    up: Floats, up_weight: Floats | None, down: Floats, down_weight: Floats | None
) -> Levels:
    """Return levels of each class's distinct ascending scores (weight None: one example each)."""
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
    """Return levels of a curve given as running counts at falling thresholds (weights allowed).

    The last counts are taken to be all positives and all negatives.
    """
    tp = as_numbers(true_positives, name="true_positives")
    fp = as_numbers(false_positives, name="false_positives")
    if tp.ndim != 1 or tp.shape != fp.shape or not tp.size:
        raise ArgumentError(
            "true_positives and false_positives must be lists of the same length, got shapes "
            f"{tp.shape} and {fp.shape}. Pass one pair of running counts per threshold."
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
    """Return distinct scores, ascending, with their total weight (None if all are 1)."""
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
    """Return running totals from the highest score down."""
    if weights is None:
        return np.arange(1.0, size + 1.0)
    return np.asarray(np.cumsum(weights[::-1]), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Piece k runs from recall `left[k]` to `right[k]`.

    Straight pieces go from precision `start[k]` to `stop[k]`. Curved ones are straight in ROC
    space: `start` and `stop` are then the predictions made so far, in units of all positives, and
    the precision at recall r is r over their straight line.
    """

    left: Floats
    right: Floats
    start: Floats
    stop: Floats
    curved: bool

    def area(self, recall: tuple[float, float] = (0.0, 1.0)) -> float:
        """Return the area under the curve over a range of recall."""
        pieces = self if recall == (0.0, 1.0) else self._clip(*recall)
        if pieces.curved:
            areas = area_between(pieces.left, pieces.start, pieces.right, pieces.stop)
        else:
            areas = 0.5 * (pieces.start + pieces.stop) * (pieces.right - pieces.left)
        return float(areas.sum())

    def precision(self, recall: ArrayLike) -> Floats:
        """Return the height of the curve; where it jumps, that of the piece that ends there."""
        r = np.asarray(recall, dtype=np.float64)
        k = np.clip(np.searchsorted(self.right, r, side="left"), 0, self.right.size - 1)
        values = self._line(k, r)
        if not self.curved:
            return values
        # At recall 0 and where nothing was predicted yet the precision is the piece's level.
        flat = (self.start[k] <= 0.0) | (r <= 0.0)
        level = np.where(self.stop[k] > 0, self.right[k] / np.maximum(self.stop[k], 1e-300), 0.0)
        return np.where(flat, level, r / np.maximum(values, 1e-300))

    def _line(self, k: np.ndarray[tuple[int, ...], np.dtype[np.intp]], r: Floats) -> Floats:
        share = (r - self.left[k]) / (self.right[k] - self.left[k])
        return np.asarray(self.start[k] + (self.stop[k] - self.start[k]) * share)

    def _clip(self, low: float, high: float) -> Pieces:
        inside = np.flatnonzero((self.right > low) & (self.left < high))
        left = np.maximum(self.left[inside], low)
        right = np.minimum(self.right[inside], high)
        return replace(
            self,
            left=left,
            right=right,
            start=self._line(inside, left),
            stop=self._line(inside, right),
        )
