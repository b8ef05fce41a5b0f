"""How far the rows pull at a metric: moments of each row's influence, by released cut points."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from heldout.data.grid import CELLS, grid_body
from heldout.data.sql import Columns, double
from heldout.errors import ArgumentError
from heldout.kernel.neighbours import Neighbours, Protection
from heldout.kernel.statistic import Statistic
from heldout.kernel.tally import tally

STEPS: Final = 2**15
"""An influence is a whole number of steps, from -STEPS to STEPS."""
SQUARES: Final = 4
"""The largest square counts as so many of the largest influence."""


@dataclass(frozen=True)
class InfluenceMoments(Statistic):
    """The sum of the squares of the rows' influences on a metric, and their sum in either class.

    Cut points divide the points of the score grid into cells, or with a rival both models' scores;
    a row's influence u is the number of its class and cell. All of these are public, or were
    released before, so that a row's influence does not depend on other rows. The vector holds the
    sum of q = SQUARES u^2 / STEPS, rounded down, over all rows, the sum of u over the negatives
    and the sum of u over the positives.

    Claim:       L1 sensitivity (SQUARES + 1) STEPS a row that leaves or arrives, and a quarter of
                 STEPS/SQUARES more for one that is replaced.        [claim: influence-moments]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: q + |u| is at most (SQUARES + 1) STEPS, and |u| - q at most STEPS/(4 SQUARES):
                 what arrives and what leaves have squares of opposite signs.
                 proofs/influence-moments.md.
    Numerics:    exact integers; scores, or the points of the grid that they have, are compared
                 with cut points and nothing else.
    Refuses:     cut points that are not increasing; influences out of their range.
    Reference:   Hampel 1974, influence curves; DeLong, DeLong and Clarke-Pearson 1988.
    Cost:        none beyond the score table; with a rival, one scan with a comparison a cut point.

    >>> from heldout.kernel.neighbours import Protection
    >>> moments = InfluenceMoments(cuts=(0.5,), negatives=(0, -STEPS), positives=(-STEPS, 0))
    >>> moments.sensitivity(Protection(neighbours="replace-one")) / STEPS
    5.0625
    """

    cuts: tuple[float, ...]
    negatives: tuple[int, ...]
    """Influences of the negatives by cell; with a rival, its cells run fastest."""
    positives: tuple[int, ...]
    rival_cuts: tuple[float, ...] | None = None
    score_range: tuple[float, float] = (0.0, 1.0)
    """Of the grid, without a rival."""
    claim: ClassVar[str] = "influence-moments"

    def __post_init__(self) -> None:
        for cuts in (self.cuts, self.rival_cuts or ()):
            if not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
                raise ArgumentError("cut points must be finite and increasing. Sort them.")
        for influences in (self.negatives, self.positives):
            if len(influences) != self.cells or max(map(abs, influences)) > STEPS:
                raise ArgumentError(f"influences must be one a cell, at most {STEPS} in size.")

    @property
    def cells(self) -> int:
        rival = 1 if self.rival_cuts is None else len(self.rival_cuts) + 1
        return (len(self.cuts) + 1) * rival

    def body(self) -> str:
        if self.rival_cuts is None:
            return grid_body(self.score_range)
        own, other = _place("score", self.cuts), _place("rival", self.rival_cuts)
        chosen = f"label,\n  {own} AS place_0,\n  {other} AS place_1,\n  count(*) AS n"
        return f"SELECT\n  {chosen}\nFROM evaluated\nGROUP BY 1, 2, 3"

    def read(self, columns: Columns) -> Any:
        places = [(columns["label"], 2)]
        if self.rival_cuts is None:
            places.append((self._places(columns["point"]), len(self.cuts) + 1))
        else:
            places.append((columns["place_0"], len(self.cuts) + 1))
            places.append((columns["place_1"], len(self.rival_cuts) + 1))
        rows = tally(columns["n"], *places)[:-1].reshape(2, -1)
        each = np.array([self.negatives, self.positives], dtype=np.int64)
        squares = rows * (SQUARES * each**2 // STEPS)
        return np.array([squares.sum(), *(rows * each).sum(axis=1)], dtype=np.int64)

    def _places(self, points: Any) -> Any:
        """How many cut points lie at or below each point of the grid."""
        low, high = self.score_range
        scores = low + np.ma.getdata(points) * ((high - low) / CELLS)
        found = np.searchsorted(self.cuts, scores, side="right")
        return np.ma.array(found, mask=np.ma.getmaskarray(points))

    def sensitivity(self, protection: Protection) -> int:
        replaced = protection.neighbours is Neighbours.REPLACE_ONE
        more = STEPS // (4 * SQUARES) if replaced else 0
        return protection.rows_per_unit * ((SQUARES + 1) * STEPS + more)

    @classmethod
    def examples(cls, protection: Protection) -> list[Statistic]:
        turn = STEPS // (2 * SQUARES)  # where |u| - q is largest
        return [
            cls(cuts=(0.25, 0.75), negatives=(-turn, 0, STEPS), positives=(0, STEPS, -STEPS // 2)),
            cls(cuts=(0.5,), negatives=(turn, 5), positives=(-STEPS, -turn)),
        ]


def _place(column: str, cuts: tuple[float, ...]) -> str:
    """How many cut points lie at or below the score."""
    return " + ".join(f"CAST({column} >= {double(cut)} AS INTEGER)" for cut in cuts) or "0"
