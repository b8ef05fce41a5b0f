"""Draw the outcomes that a table leaves possible where scores, and so rows by bin, are public.

As `heldout.questions.curves.posterior`, but for what is known: how many rows every part of a cell
has. Drawn is which share of a cell's rows is positive, and in which of its parts they lie.
"""

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from heldout.arrays import Floats
from heldout.kernel.curves.heldout import RankSum
from heldout.kernel.ranking.mechanism import RankingDraw
from heldout.questions.curves.bands import Draws, gamma
from heldout.questions.curves.posterior import (
    _CURVED,
    _FINEST,
    Blocks,
    Chances,
    Posterior,
    _Placed,
    by_blocks,
    crossed,
    softened,
)
from heldout.questions.curves.tuned import FLOORS, SEEN

__all__ = ["KnownRows"]


class KnownRows(Posterior):
    """Draws of the outcomes behind a table whose rows by bin are public."""

    def _lay_out_cells(self) -> None:
        table = self.table
        assert table.tied_scales is not None
        assert table.rows is not None
        self.low, self.high, self.cells = table.edges[:-1], table.edges[1:], table.bins
        heaps = np.array([] if table.heaps is None else table.heaps, dtype=np.int64)
        holds = np.searchsorted(heaps, self.high) > np.searchsorted(heaps, self.low)
        self.tied = holds | (table.values is not None)
        self.counts = np.stack([table.negatives, table.positives])
        self.totals = self.counts.sum(axis=0)
        self.rows = max(float(table.rows), 2.0)
        self.scales = np.maximum(np.stack([table.tied_scales] * 2), _FINEST * self.rows)
        filled = np.maximum(self.totals, 1e-3)
        self.shares = filled / filled.sum()

    @cached_property
    def seen(self) -> bool:
        """Return whether both classes stand out of the noise."""
        noise = math.sqrt(2 * float((self.scales[1] ** 2).sum()))
        return float(self.counts.sum(axis=1).min()) > SEEN * noise

    def _lay_out_parts(self) -> None:
        table = self.table
        assert table.parts is not None
        assert table.part_rows is not None
        self.starts, self.ends = table.parts[:-1], table.parts[1:]
        self.cell = np.searchsorted(table.edges, self.starts, side="right") - 1
        self.first = np.searchsorted(self.cell, np.arange(self.cells))
        self.part_rows = table.part_rows.astype(float)
        width = (self.ends - self.starts) / (self.high - self.low)[self.cell]
        inside = self.part_rows / np.maximum(self.totals, 1.0)[self.cell]
        self.base = np.where(self.totals[self.cell] > 0, inside, width)
        if isinstance(table.area, RankSum):
            below = np.cumsum(self.part_rows)
            ranks = 2 * below - self.part_rows - below[-1]
            self.area_scale = max(float(table.area.noise_scale), _FINEST * self.rows)
            self.weights = np.stack([np.zeros_like(ranks), ranks]) / self.area_scale

    # --- the law of the cells: log odds alone ----------------------------------------------------

    def _start(self, odds: Floats, floors: Floats) -> Floats:
        return np.append(odds, floors)

    @property
    def _odds_of_point(self) -> slice:
        return slice(0, self.cells)

    @property
    def _floors_of_point(self) -> slice:
        return slice(self.cells, self.cells + 2)

    def _unpacked(
        self, points: Floats, fixed: Floats | None
    ) -> tuple[Floats, Floats, Floats, Floats, Chances]:
        odds = points[..., self._odds_of_point]
        rows = np.broadcast_to(self.totals, odds.shape)
        shares = np.broadcast_to(self.shares, odds.shape)
        return odds, shares, shares, rows, self._chances(points, fixed)

    @cached_property
    def _area_of_cells(
        self,
    ) -> Callable[[Floats, Floats], tuple[Floats, Floats, Floats]] | None:
        area = self.table.area
        if isinstance(area, RankingDraw):
            return self._area_of_pairs(area)
        if not isinstance(area, RankSum):
            return None
        weights, noisy = self._summed(self.weights * self.base), area.noisy / self.area_scale
        return lambda negatives, positives: (positives @ weights[1] - noisy, *weights)

    def _cost(
        self, points: Floats, precisions: Blocks, fixed: Floats | None, trust: float | Floats = 1.0
    ) -> tuple[Floats, Floats]:
        sums, sum_counts, sum_scales = self._beside
        odds, _, _, rows, chances = self._unpacked(points, fixed)
        positives = rows * chances.positive
        negatives = rows - positives
        size, slope = softened((positives - self.counts[1]) / self.scales[1])
        cost = size.sum(axis=1)
        slope /= self.scales[1]
        if len(sum_scales):
            size, more = softened((positives @ sums.T - sum_counts[1]) / sum_scales)
            cost += size.sum(axis=1)
            slope += (more / sum_scales) @ sums
        if self._area_of_cells is not None:
            off, to_negatives, to_positives = self._area_of_cells(negatives, positives)
            size, more = softened(trust * off)
            cost += size
            slope += (trust * more)[:, None] * (to_positives - to_negatives)
        away = odds - self._prior[0]
        pulled = by_blocks(away, precisions)
        cost += (away * pulled).sum(axis=1) / 2
        slope *= rows
        gradient = np.empty(points.shape)
        gradient[:, self._odds_of_point] = slope * chances.by_odds + pulled
        cost += self._floors_in(points, chances, slope, gradient)
        return cost, gradient

    def _curvature(self, points: Floats, precisions: Floats, fixed: Floats) -> Floats:
        sums, sum_counts, sum_scales = self._beside
        _, _, _, rows, chances = self._unpacked(points, fixed)
        positives = rows * chances.positive
        leads = rows[..., None] * chances.slopes
        off = (positives - self.counts[1]) / self.scales[1]
        total = crossed(leads, 1 / np.sqrt(off**2 + _CURVED**2) / self.scales[1] ** 2)
        if len(sum_scales):
            off = (positives @ sums.T - sum_counts[1]) / sum_scales
            total += crossed(sums @ leads, 1 / np.sqrt(off**2 + _CURVED**2) / sum_scales**2)
        if self._area_of_cells is not None:
            off, to_negatives, to_positives = self._area_of_cells(rows - positives, positives)
            slopes = np.broadcast_to(to_positives - to_negatives, rows.shape)
            along = (slopes[..., None, :] @ leads)[:, 0]
            total += crossed(along, 1 / np.sqrt(off[:, None] ** 2 + _CURVED**2))
        k = self.cells
        total[:, :k, :k] += precisions
        total[:, k:, k:] += np.eye(2) / FLOORS**2
        result: Floats = total + 1e-6 * np.eye(points.shape[1])
        return result

    # --- within the cells ------------------------------------------------------------------------

    def _placed(self, points: Floats, fixed: Floats) -> _Placed:
        """Outcomes by part: as many rows as it has, and of them positives as the odds go."""
        draws, cell = len(points), self.cell
        odds, _, _, rows, chances = self._unpacked(points, fixed)
        counts = self._counted(rows * np.stack([1 - chances.lead, chances.lead]))
        low, high = chances.of_class
        above = counts * np.stack([1 - low, 1 - high])[:, :, :1]
        floors = self._on_floors((counts - above)[::-1], above)
        positives = np.clip(above[1] + floors[1], 0.0, self.totals)
        mass = np.broadcast_to(self.base, (draws, len(cell)))
        laws, beyond = self._within(mass, counts, odds, np.zeros(rows.shape, dtype=bool))
        law = laws[1] / np.maximum(self._summed(laws[1]), 1e-300)[:, cell]
        law = law * np.maximum(above[1], 0.2)[:, cell] + mass * floors[1][:, cell]
        scattered = gamma(35, law + 1e-4) + 1e-300
        placed = scattered / self._summed(scattered)[:, cell] * positives[:, cell]
        placed = np.minimum(placed, self.part_rows)
        room = self.part_rows - placed  # what a part cannot hold others do
        lost = np.maximum(positives - self._summed(placed), 0.0)
        placed = placed + (lost / np.maximum(self._summed(room), 1e-9))[:, cell] * room
        placed = np.clip(placed, 0.0, self.part_rows)
        nowhere = np.full(placed.shape, np.nan)
        return _Placed(Draws(self.part_rows - placed, placed), nowhere, beyond)

    def _counted(self, rows: Floats) -> Floats:
        """Return rows by class; where one may be absent, all rows are the other's."""
        present = [self._present(part, which) > 0 for which, part in enumerate(rows)]
        positives = np.where(present[1], rows[1], 0.0)
        positives = np.where(present[0] | ~present[1], positives, self.totals)
        return np.stack([self.totals - positives, positives])

    def _area_by_parts(self, placed: _Placed) -> Floats:
        area = self.table.area
        if not isinstance(area, RankSum):
            return super()._area_by_parts(placed)
        result: Floats = placed.rows.positives @ self.weights[1] - area.noisy / self.area_scale
        return result
