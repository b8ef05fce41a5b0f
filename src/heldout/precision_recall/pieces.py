"""A precision-recall curve as pieces between neighbouring recalls: its area and its heights.

Each estimator of the area is a rule for drawing the curve between the empirical points; the rule
gives pieces, and pieces give the area (whole or over a range of recall) and the picture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from heldout.precision_recall.arguments import Floats
from heldout.precision_recall.geometry import area_between


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
        """The area under the curve over a range of recall."""
        pieces = self if recall == (0.0, 1.0) else self._clip(*recall)
        if pieces.curved:
            areas = area_between(pieces.left, pieces.start, pieces.right, pieces.stop)
        else:
            areas = 0.5 * (pieces.start + pieces.stop) * (pieces.right - pieces.left)
        return float(areas.sum())

    def precision(self, recall: ArrayLike) -> Floats:
        """The height of the curve; where it jumps, the piece that ends at the jump counts."""
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
        kept = np.flatnonzero((self.right > low) & (self.left < high))
        left = np.maximum(self.left[kept], low)
        right = np.minimum(self.right[kept], high)
        return replace(
            self,
            left=left,
            right=right,
            start=self._line(kept, left),
            stop=self._line(kept, right),
        )
