"""Draw the rows that a released table leaves possible: many tables, each as likely as the others.

The rows' true counts by class and cell of the table are drawn from their posterior law: given the
noisy counts with the scales of their noise, the counts beside them and the noisy area. Beforehand
the share of positives is believed to change smoothly from cell to cell, with room for jumps at
heaps; how far it bends is learnt. Some rows of each class may score as if they were of the other;
how many is learnt, too. Within a cell rows lie evenly or in lumps, as often as the
division of the bins at their crowded cells says. Every reading is then a quantile of draws.

All of it is arithmetic on released numbers, hence free. The numbers that drive the draws are the
same at each call, and on every machine: whole-numbered hashes of counters. The last bits of
floating-point arithmetic differ between machines. The chains multiply such a difference by about
10^4, in one table of 60 by more than 10^7, which what is printed does not show; and whoever must
have the same numbers years later stores what was read.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

from heldout.arrays import Bools, Floats, Ints, one_thread
from heldout.intervals.noise import normal_quantile
from heldout.intervals.readings import Curve, grid_scores
from heldout.intervals.tuned import CLASS_PRIOR
from heldout.kernel.curves.heldout import (
    STEPS,
    AreaBySum,
    TableWithArea,
    worse_than_chance,
)
from heldout.kernel.curves.published import monotone_cubic
from heldout.kernel.curves.thresholds import UNDIVIDED, heap_weights
from heldout.kernel.ranking.mechanism import RankingDraw
from heldout.questions.curves.bands import (
    Draws,
    Region,
    gamma,
    nearly_normal,
    normal,
    read_curves,
    uniform,
)
from heldout.questions.curves.tuned import (
    BENDS,
    CHAINS,
    ENDS,
    EVEN,
    FEWEST,
    FLOORS,
    JUMP,
    KEPT,
    LEAPS,
    LEVEL,
    LUMPS,
    LUMPY,
    MASS,
    PARTS,
    REACH,
    SEEN,
    SLOPE,
    SOFTNESS,
    SWITCHES,
    TOGETHER,
    TOTAL,
    WARM,
)

__all__ = ["Chances", "Posterior", "draw_together"]

_CURVED: Final = 1.3  # rounding of the Laplace law for the steps of Newton
_FINEST: Final = 1e-6  # of all rows: what noise is less than, nobody reads
_STEEPEST: Final = 20.0  # rise of log odds over one cell
_HIGHEST: Final = math.log(0.45)  # floor of a class, in logs
_APART: Final = 0.5  # in logs: floors nearer than that belong to one mode
_TRIED: Final = 128  # arrangements of rows within cells, to see how far they move the area


class Posterior:
    """Draws of the rows behind a table, and what is read off them."""

    def __init__(
        self,
        table: TableWithArea,
        *,
        score_range: tuple[float, float],
        chains: int = CHAINS,
        warm: int = WARM,
        steps: int = KEPT,
    ) -> None:
        self.table = table
        self.score_range = score_range
        self._chains, self._warm, self._steps = chains, warm, steps
        self._lay_out_cells()
        self._lay_out_parts()

    # --- the cells -------------------------------------------------------------------------------

    def _lay_out_cells(self) -> None:
        table = self.table
        edges, scales = table.edges, table.noise.scales
        counts = np.stack([table.negatives, table.positives])
        declared = table.values is not None
        chosen = np.zeros(table.bins, dtype=bool)
        if table.heaps is not None:
            chosen = np.isin(edges[:-1], table.heaps) & (np.diff(edges) == 1)
        stands_out = counts.sum(axis=0) > SEEN * np.sqrt(2 * (scales**2).sum(axis=0))
        # A crowded cell that holds nothing that can be seen is a division of its bin, no more.
        use = ~chosen | stands_out
        self.low, self.high = edges[:-1][use], edges[1:][use]
        self.tied = (chosen & stands_out)[use] | (declared & np.ones(use.sum(), dtype=bool))
        self.counts, self.scales = counts[:, use], scales[:, use]
        self.cells = int(use.sum())
        rows = float(self.counts.sum())
        least = 5 * math.sqrt(2 * float((self.scales**2).sum()))
        self.rows = float(table.rows) if table.rows is not None else max(rows, least)
        self.rows = max(self.rows, 2.0)
        self.scales = np.maximum(self.scales, _FINEST * self.rows)
        filled = np.maximum(self.counts.sum(axis=0), 0.5 * self.scales.mean(axis=0))
        self.shares = filled / filled.sum()

    @property
    def heaps(self) -> int:
        """Count the scores that stand out as heaps of rows."""
        return int(self.tied.sum())

    @property
    def tied_share(self) -> float:
        """Which share of the rows lies in heaps."""
        return float(self.shares[self.tied].sum())

    @cached_property
    def seen(self) -> bool:
        """Return whether both classes stand out of the noise; else a curve is mere belief."""
        noise = float(self.table.noise.above_deviation[:, 0].max())
        counts = [float(count.sum()) for count in (self.table.negatives, self.table.positives)]
        if self.table.rows is not None:  # what is missing of them is noise, of both alike
            missing, noise = self.table.rows - sum(counts), noise / math.sqrt(2)
            counts = [count + missing / 2 for count in counts]
        return min(counts) > SEEN * noise

    def _lay_out_parts(self) -> None:
        """Parts of the cells, how rows are expected to lie in them."""
        low, high, width = self.low, self.high, self.high - self.low
        parts = [
            np.array([start])
            if tied
            else start + (size * np.arange(min(PARTS, size))) // min(PARTS, size)
            for start, size, tied in zip(
                low.tolist(), width.tolist(), self.tied.tolist(), strict=True
            )
        ]
        sizes = np.array([len(places_of) for places_of in parts])
        self.starts = np.concatenate(parts)
        self.cell = np.repeat(np.arange(self.cells), sizes)
        self.first = np.cumsum(sizes) - sizes
        self.ends = np.append(self.starts[1:], high[-1])
        self.ends[np.cumsum(sizes) - 1] = high
        smooth = ~self.tied
        base = np.ones(len(self.starts))
        if smooth.any():
            # Heaps are jumps: what lies between them is interpolated.
            places = np.append(low[smooth], self.table.points).astype(float)
            filled = np.append(0.0, np.cumsum(self.shares[smooth]))
            inner = smooth[self.cell]
            rise = [
                monotone_cubic(places, filled, places_of[inner].astype(float))
                for places_of in (self.starts, self.ends)
            ]
            base[inner] = np.maximum(rise[1] - rise[0], 1e-12)
        base /= self._summed(base)[self.cell]
        base = 0.9 * base + 0.1 * (self.ends - self.starts) / width[self.cell]
        self.base = base / self._summed(base)[self.cell]
        area = self.table.area
        if isinstance(area, AreaBySum):
            weights = area.placements.weights()
            if self.table.values is not None:  # all rows of a bin are at its value
                inside = weights[:, self._values_of(self.starts)].astype(float)
            else:
                below = np.pad(np.cumsum(weights, axis=1), ((0, 0), (1, 0)))
                inside = (below[:, self.ends] - below[:, self.starts]) / (self.ends - self.starts)
            self.area_scale = max(float(area.noise_scale), _FINEST * STEPS * self.rows)
            self.weights = inside / self.area_scale

    def _values_of(self, places: Ints) -> Ints:
        """Return the declared values of the bins that hold these grid points."""
        values = self.table.values
        assert values is not None
        at = np.searchsorted(values, places, side="right") - 1
        return np.maximum(values[np.maximum(at, 0)], places)

    def _summed(self, of_parts: Floats) -> Floats:
        return np.add.reduceat(of_parts, self.first, axis=-1)

    def _by_part(self, of_cells: Floats) -> Floats:
        return of_cells.take(self.cell, axis=-1)

    # --- the law of the cells --------------------------------------------------------------------

    @cached_property
    def _beside(self) -> tuple[Floats, Floats, Floats]:
        """Which cells other counts of the same rows sum over, these counts and their scales."""
        sums, counts, scales = [np.zeros((0, self.cells))], [np.zeros((2, 0))], [np.zeros(0)]
        for counted in self.table.beside:
            part = np.searchsorted(np.array(counted.edges), self.low, side="right")
            sums.append((np.arange(len(counted.edges) + 1)[:, None] == part).astype(float))
            counts.append(np.asarray(counted.counts, dtype=float))
            scale = max(float(counted.scale), _FINEST * self.rows)
            scales.append(np.full(len(counted.edges) + 1, scale))
        return np.concatenate(sums), np.concatenate(counts, axis=1), np.concatenate(scales)

    @cached_property
    def _rank(self) -> tuple[Floats, Floats]:
        """The probit of the rank of each cell, and of its two ends."""
        least = 0.5 / max(self.rows, 10.0)
        ends = np.clip(np.append(0.0, np.cumsum(self.shares)), least, 1 - least)
        middle = np.clip(np.cumsum(self.shares) - self.shares / 2, least, 1 - least)
        return normal_quantile(middle), normal_quantile(ends)

    @cached_property
    def _prior(self) -> tuple[Floats, Floats, Floats]:
        """Mean of the log odds of the cells; their covariance, but for the bend; and that of it."""
        place, _ = self._rank
        counts, scales = self.counts, self.scales
        turned = worse_than_chance(*counts, scales=scales)
        n, m = (max(float(row.sum()), 2 * float(scales.mean())) for row in counts[::-1])
        mean = math.log(n / m) + (-1 if turned else 1) * SLOPE[0] * place
        per_end, begins = ENDS
        ends = (per_end * np.maximum(np.abs(place) - begins, 0.0)) ** 2
        trend = LEVEL**2 + SLOPE[1] ** 2 * np.outer(place, place) + np.diag(ends)
        gaps = (place[:, None] - place) / REACH
        own = np.where(self.tied, JUMP[1], JUMP[0]) ** 2
        return mean, trend, np.exp(-(gaps**2) / 2) + np.diag(own)

    def _unpacked(
        self, points: Floats, fixed: Floats | None
    ) -> tuple[Floats, Floats, Floats, Floats, "Chances"]:
        """Log odds, masses, shares, rows and chances of being positive, by cell.

        Where a class is absent its chance is `fixed`, 0 or 1; elsewhere that is NaN, or all None.
        """
        logs, odds = points[..., : self.cells], points[..., self._odds_of_point]
        mass = np.exp(np.minimum(logs, 50.0))
        shares = mass / np.maximum(mass @ self._ones, 1e-300)[..., None]
        rows = self._rows_of_table * shares
        if self.table.rows is None:
            rows *= np.exp(np.minimum(np.maximum(points[..., -1:], -20.0), 20.0))
        return odds, mass, shares, rows, self._chances(points, fixed)

    @property
    def _rows_of_table(self) -> float | Floats:
        return self.rows

    @cached_property
    def _ones(self) -> Floats:
        """By a product with these cells are summed, four times as fast as by `sum`."""
        return np.ones(self.cells)

    def _chances(self, points: Floats, fixed: Floats | None) -> "Chances":
        odds, logs = points[..., self._odds_of_point], points[..., self._floors_of_point]
        lead = 1 / (1 + np.exp(np.minimum(np.maximum(-odds, -30.0), 30.0)))
        if fixed is not None:
            lead = np.where(np.isnan(fixed), lead, fixed)
        return Chances(lead, np.exp(np.minimum(np.maximum(logs, -30.0), _HIGHEST)))

    @cached_property
    def _area_of_cells(
        self,
    ) -> Callable[[Floats, Floats], tuple[Floats, Floats, Floats]] | None:
        """Return the area of rows by cell minus the noisy one, in its scales, and its slopes."""
        area = self.table.area
        if area is None:
            return None
        if isinstance(area, AreaBySum):
            weights = self._summed(self.weights * self.base)
            noisy = area.noisy / self.area_scale

            def of_sum(negatives: Floats, positives: Floats) -> tuple[Floats, Floats, Floats]:
                area_of = negatives @ weights[0] + positives @ weights[1] - noisy
                return area_of, weights[0], weights[1]

            return of_sum
        assert isinstance(area, RankingDraw)
        return self._area_of_pairs(area)

    def _area_of_pairs(
        self, area: RankingDraw
    ) -> Callable[[Floats, Floats], tuple[Floats, Floats, Floats]]:
        """Return the same where the area was drawn by itself."""
        scale = _drawn_scale(area, self)

        def of_pairs(negatives: Floats, positives: Floats) -> tuple[Floats, Floats, Floats]:
            below, lower = np.cumsum(negatives, axis=-1), np.cumsum(positives, axis=-1)
            all_positives = lower[..., -1:].copy()
            m, n = np.maximum(below[..., -1:], 1.0), np.maximum(all_positives, 1.0)
            below -= negatives / 2
            above = all_positives - lower + positives / 2
            area_of = np.add.reduce(positives * below, axis=-1, keepdims=True) / (n * m)
            to_negatives = (above / n - area_of) / (m * scale)
            to_positives = (below / m - area_of) / (n * scale)
            return ((area_of - area.unclamped) / scale)[..., 0], to_negatives, to_positives

        return of_pairs

    @cached_property
    def _noise(self) -> tuple[Floats, Floats]:
        """One over the scales of the counts, by class and cell, and the counts in these scales."""
        per_scale = 1 / self.scales[:, None]
        return per_scale, self.counts[:, None] * per_scale

    def _cost(
        self,
        points: Floats,
        precisions: "Blocks",
        fixed: Floats | None,
        trust: float | Floats = 1.0,
    ) -> tuple[Floats, Floats]:
        """Minus the log posterior of many points, and its gradient."""
        k, ones = self.cells, self._ones
        per_scale, seen = self._noise
        odds, mass, shares, rows, chances = self._unpacked(points, fixed)
        inside = np.empty((2, *rows.shape))
        np.multiply(rows, chances.positive, out=inside[1])
        np.subtract(rows, inside[1], out=inside[0])
        size, slopes = softened(inside * per_scale - seen)
        away = odds - self._prior[0]
        pulled = by_blocks(away, precisions)
        by_cell = size[0] + size[1] + mass - MASS * points[:, :k]
        by_cell += away * pulled / 2
        cost: Floats = by_cell @ ones
        slopes *= per_scale
        sums, sum_counts, sum_scales = self._beside
        if len(sum_scales):
            size, slope = softened((inside @ sums.T - sum_counts[:, None]) / sum_scales)
            cost += size.sum(axis=(0, 2))
            slopes += (slope / sum_scales) @ sums
        if self._area_of_cells is not None:
            off, *along = self._area_of_cells(inside[0], inside[1])
            size, slope = softened(trust * off)
            cost += size
            for which, along_class in enumerate(along):
                slopes[which] += (trust * slope)[:, None] * along_class
        slopes[1] -= slopes[0]
        moved = rows * slopes[0] + inside[1] * slopes[1]
        total = (moved @ ones)[:, None]
        gradient = np.empty(points.shape)
        gradient[:, :k] = moved - shares * total + mass - MASS
        slopes[1] *= rows
        gradient[:, k : 2 * k] = slopes[1] * chances.by_odds + pulled
        cost += self._floors_in(points, chances, slopes[1], gradient)
        if self.table.rows is None:
            more = points[:, -1:]
            cost += (more[:, 0] / TOTAL) ** 2 / 2
            gradient[:, -1:] = total + more / TOTAL**2
        return cost, gradient

    def _floors_in(
        self, points: Floats, chances: "Chances", slopes: Floats, gradient: Floats
    ) -> Floats:
        """Return what the floors cost beforehand, and write their slopes into the gradient."""
        away = (points[:, self._floors_of_point] - self._usual_floor) / FLOORS
        led, in_all = (slopes * chances.lead) @ self._ones, slopes @ self._ones
        slope_of_floors = gradient[:, self._floors_of_point]
        np.divide(away, FLOORS, out=slope_of_floors)
        slope_of_floors[:, 0] += chances.floors[:, 0] * (in_all - led)
        slope_of_floors[:, 1] -= chances.floors[:, 1] * led
        return np.asarray((away[:, 0] ** 2 + away[:, 1] ** 2) / 2)

    def _curvature(self, points: Floats, precisions: Floats, fixed: Floats) -> Floats:
        """Those of Gauss and Newton, at each point."""
        (sums, sum_counts, sum_scales), (per_scale, seen) = self._beside, self._noise
        _, mass, shares, rows, chances = self._unpacked(points, fixed)
        k, chance = self.cells, chances.positive
        parts = np.stack([1 - chance, chance])
        inside = parts * rows
        leads = np.zeros((*inside.shape, points.shape[1]))
        diagonal = np.arange(k)
        leads[..., :k] = -(inside[..., None] * shares[:, None])
        leads[..., diagonal, diagonal] += inside
        by_odds = rows[..., None] * chances.slopes
        leads[0, ..., k : 2 * k + 2], leads[1, ..., k : 2 * k + 2] = -by_odds, by_odds
        if self.table.rows is None:
            leads[..., -1] = inside
        weights = per_scale**2 / np.sqrt((inside * per_scale - seen) ** 2 + _CURVED**2)
        total: Floats = np.add.reduce(crossed(leads, weights))
        if len(sum_scales):
            off = (inside @ sums.T - sum_counts[:, None]) / sum_scales
            weights = 1 / np.sqrt(off**2 + _CURVED**2) / sum_scales**2
            total += np.add.reduce(crossed(sums @ leads, weights))
        if self._area_of_cells is not None:
            off, *along = self._area_of_cells(inside[0], inside[1])
            slopes = np.stack([np.broadcast_to(slope, rows.shape) for slope in along])
            lead = np.add.reduce(slopes[..., None, :] @ leads)
            total += crossed(lead, 1 / np.sqrt(off[:, None] ** 2 + _CURVED**2))
        total[:, diagonal, diagonal] += mass + MASS
        total[:, k : 2 * k, k : 2 * k] += precisions
        total[:, self._floors_of_point, self._floors_of_point] += np.eye(2) / FLOORS**2
        if self.table.rows is None:
            total[:, -1, -1] += 1 / TOTAL**2
        return total + 1e-6 * np.eye(points.shape[1])

    @property
    def _switch(self) -> float:
        """The chance that a class begins or ends at a cell, beforehand."""
        return min(SWITCHES / self.cells, 0.5)

    @cached_property
    def _fits(self) -> list["_Fit"]:
        """Those with both classes everywhere; and those without the classes most likely absent."""
        return _fits_of([self])[0]

    def _without_absent(self, free: "_Fit") -> tuple[Floats, int] | None:
        """Return chances of cells that a class is most likely absent from, and its switches."""
        smooth = np.flatnonzero(~self.tied)
        if not len(smooth):
            return None
        absent, switches = np.zeros((2, self.cells), dtype=bool), 0
        for which, likely in enumerate(self._absent(free)):
            luck = np.full((1, len(smooth) + 1), 0.5)
            empty = _absent_runs(likely, self._switch, luck, cold=1e3)[0]
            for run in np.split(np.arange(len(smooth)), np.flatnonzero(np.diff(empty)) + 1):
                others, scales = (of[1 - which, smooth[run]] for of in (self.counts, self.scales))
                # A class is absent where the other one is seen; else there are just no rows.
                if empty[run].all() and others.sum() > SEEN * math.sqrt(2 * (scales**2).sum()):
                    absent[which, smooth[run]] = True
                    switches += int(run[0] > 0) + int(run[-1] < len(smooth) - 1)
        one = absent[0] != absent[1]
        return (np.where(one, 1.0 * absent[0], np.nan), switches) if one.any() else None

    @cached_property
    def _best(self) -> "_Fit":
        return max(self._fits, key=lambda fit: fit.evidence)

    @cached_property
    def _odds_of_point(self) -> slice:
        return slice(self.cells, 2 * self.cells)

    @cached_property
    def _floors_of_point(self) -> slice:
        return slice(2 * self.cells, 2 * self.cells + 2)

    @property
    def _usual_floor(self) -> float | Floats:
        """The log of a share that is as likely as not exceeded: one row."""
        return -math.log(self.rows)

    @property
    def _first_odds(self) -> Floats:
        counts, scales = np.maximum(self.counts, 0.0), self.scales
        odds: Floats = np.log((counts[1] + scales[1]) / (counts[0] + scales[0]))
        return np.clip(odds, -6, 6)

    def _starts(self) -> Floats:
        """Return two first points, as slopes lead from neither to where the other leads.

        Positives among many negatives may be a bend of the log odds, with floors of one row; or
        rows that score like negatives, with log odds that rise evenly and floors that stand out.
        """
        both = (self._first_odds, self._usual_floor), (self._prior[0], self._usual_floor / 3)
        return np.stack([self._start(odds, np.full(2, floor)) for odds, floor in both])

    def _start(self, odds: Floats, floors: Floats) -> Floats:
        """Return a first point: the masses, the log odds, the floors and the number of rows."""
        logs = np.log(MASS * self.cells * self.shares + 1e-3)
        here = np.concatenate([logs, odds, floors])
        return np.append(here, 0.0) if self.table.rows is None else here

    def _descended(self, here: Floats, precisions: Floats, fixed: Floats) -> Floats:
        """Return where damped steps of Newton lead from each point, all of them at once."""
        blocks = row_by_row(precisions)
        damping, moving = np.full(len(here), 1e-2), np.ones(len(here), dtype=bool)
        cost, gradient = self._cost(here, blocks, fixed)
        for _ in range(30):
            curvature, trying = self._curvature(here, precisions, fixed), moving
            diagonals = curvature * np.eye(here.shape[1])
            for _ in range(6):
                damped = curvature + damping[:, None, None] * diagonals
                step = np.clip(np.linalg.solve(damped, -gradient[..., None])[..., 0], -2, 2)
                less, onwards = self._cost(here + step, blocks, fixed)
                better = trying & (less < cost)
                moving = moving & ~(better & (cost - less < 1e-2))
                here = np.where(better[:, None], here + step, here)
                cost, gradient = (
                    np.where(better, less, cost),
                    np.where(better[:, None], onwards, gradient),
                )
                damping = np.where(
                    better, np.maximum(damping / 4, 1e-6), np.where(trying, 4 * damping, damping)
                )
                trying = trying & ~better
                if not trying.any():
                    break
            moving = moving & ~trying
            if not moving.any():
                break
        return here

    @property
    def _bend(self) -> float:
        """Within cells: as with both classes everywhere, for where one ends anything may be."""
        return float(self._fits[0].bends @ np.array([bend for bend, _ in BENDS]))

    @cached_property
    def _chains_of_fits(self) -> list[int]:
        """Share out the chains among the fits: the likelier one has more."""
        logs = np.array([fit.evidence for fit in self._fits])
        weights = np.exp(logs - logs.max())
        ends = np.rint(self._chains * np.cumsum(weights / weights.sum())).astype(int)
        return [int(many) for many in np.diff(ends, prepend=0)]

    def _of_chains(self, of_fit: Callable[["_Fit", int], Floats]) -> Floats:
        """Return what the fits say, chain by chain."""
        both = zip(self._fits, self._chains_of_fits, strict=True)
        return np.concatenate([of_fit(fit, chains) for fit, chains in both if chains])

    @cached_property
    def _points(self) -> Floats:
        """Points of the law of the cells, as its chains visit them."""
        return self._walk()

    def _walk(self) -> Floats:
        return _walked([self])[0]

    def _to_rounder(self, start: int) -> tuple["Blocks", "Blocks"]:
        """Return the precisions of the chains, which are rows from here on, and roots.

        A root's square is the inverse of the curvature: where it leads the law is nearly round.
        Each chain has a bend of its own, as often as that is likely.
        """
        precisions: Blocks = []
        to_points: Blocks = []
        for fit, many in zip(self._fits, self._chains_of_fits, strict=True):
            bends = np.searchsorted(np.cumsum(fit.bends), (np.arange(many) + 0.5) / max(many, 1))
            for bend, begin in zip(*np.unique(bends, return_index=True), strict=True):
                law = fit.precisions[min(bend, len(fit.bends) - 1)]
                end = int((bends <= bend).sum())
                precisions.append((slice(start + int(begin), start + end), law))
            if many:
                root = np.linalg.inv(np.linalg.cholesky(fit.curvature))
                to_points.append((slice(start, start + many), root))
            start += many
        return precisions, to_points

    def _fixed(self, steps: int) -> Floats:
        """Of the points of all chains after so many steps, which chances are fixed."""
        return np.tile(self._of_chains(lambda fit, many: np.tile(fit.fixed, (many, 1))), (steps, 1))

    # --- within the cells ------------------------------------------------------------------------

    @cached_property
    def _lumps(self) -> tuple[Floats, Bools]:
        """Return how likely bins look so if lumpy, and if even; and which have heaps.

        A bin without a crowded cell says that no heap stands out of it; one that is parted at a
        cell which is none says how its rows divide there.
        """
        table, edges = self.table, self.table.edges
        assert table.cuts is not None
        assert table.heaps is not None
        bins_of = np.searchsorted(table.cuts, table.heaps, side="right") - 1
        likely = np.ones((len(table.cuts) - 1, 1 + len(EVEN)))
        has_heap = np.zeros(len(likely), dtype=bool)
        has_heap[np.searchsorted(table.cuts, self.low[self.tied], side="right") - 1] = True
        totals = table.negatives + table.positives
        noise = 2 * (table.noise.scales**2).sum(axis=0)
        filled = np.maximum(np.add.reduceat(totals, np.searchsorted(edges, table.cuts[:-1])), 1.0)
        above = np.append(0.0, np.cumsum(filled))
        for index in np.setdiff1d(np.arange(len(likely)), bins_of).tolist():
            likely[index, 0] = self._undivided(index, float(filled[index]))
            likely[index, 1:] = UNDIVIDED / (1 + UNDIVIDED)
        usual = monotone_cubic(table.cuts.astype(float), above, table.heaps.astype(float))
        places = (np.arange(100) + 0.5) / 100
        for index, cell, expected in zip(bins_of, table.heaps, usual, strict=True):
            start, end = table.cuts[index], table.cuts[index + 1]
            if has_heap[index] or cell - start < 1 or end - cell < 2:
                continue
            lower = (edges[:-1] >= start) & (edges[:-1] < cell)
            upper = (edges[:-1] > cell) & (edges[:-1] < end)
            (few, many), (one, two) = (
                (float(sums[lower].sum()), float(sums[upper].sum())) for sums in (totals, noise)
            )
            rows = few + many
            if rows < SEEN * math.sqrt(one + two):
                continue
            part = min(max((float(expected) - above[index]) / filled[index], 0.02), 0.98)
            evenness = np.append(LUMPY, EVEN)
            # Rows divide as chance has it, too.
            evenness = np.maximum(1 / (1 / (evenness + 1) + 1 / (rows + 1)) - 1, 0.2)[:, None]
            logs = (evenness * part - 1) * np.log(places) + (evenness * (1 - part) - 1) * np.log(
                1 - places
            )
            law = np.exp(logs - logs.max(axis=1, keepdims=True))
            law /= law.sum(axis=1, keepdims=True)
            deviation = math.sqrt(one * (1 - part) ** 2 + two * part**2) / rows + 0.01
            seen = np.exp(-math.sqrt(2) * np.abs(few / rows - places) / deviation)
            likely[index] = law @ seen + 1e-9
        return likely, has_heap

    def _undivided(self, index: int, rows: float) -> float:
        """Return how likely no cell of a lumpy bin is drawn as its crowded one.

        The lump that a row is in lies at a cell as likely as heaps are there, and has a share of
        the bin's rows whose law is Beta(1, LUMPY), as in a Dirichlet process.
        """
        table = self.table
        assert table.cuts is not None
        if table.heap_rate is None:
            return 1.0
        weights = heap_weights(table.points)[table.cuts[index] : table.cuts[index + 1]]
        middles = (np.arange(20) + 0.5) / 20
        below = np.cumsum(weights)
        weight = weights[np.searchsorted(below, middles * below[-1])] / below[-1]
        share = 1 - (1 - middles) ** (1 / LUMPY)
        logs = np.minimum(float(table.heap_rate) * rows * share, 500.0)
        crowded = np.exp(logs)[:, None] * weight
        return float((UNDIVIDED / (1 + UNDIVIDED + crowded)).mean())

    def _evenness(self, draws: int) -> tuple[Floats, Bools]:
        """Of each draw and cell, how evenly its rows lie, and whether in lumps."""
        table = self.table
        if table.values is not None:
            return np.full((draws, self.cells), EVEN[-1]), np.zeros((draws, self.cells), dtype=bool)
        cuts = table.edges if table.cuts is None else table.cuts
        bin_of = np.searchsorted(cuts, self.low, side="right") - 1
        likely, has_heap = np.ones((len(cuts) - 1, 1 + len(EVEN))), np.zeros(len(cuts) - 1, bool)
        if table.heaps is not None:
            likely, has_heap = self._lumps
        lump, even = likely[:, :1], likely[:, 1:]
        mixed = LUMPS[:, None, None] * lump + (1 - LUMPS)[:, None, None] * even
        logs = np.log(mixed[:, ~has_heap]).sum(axis=1) + has_heap.sum() * np.log(LUMPS)[:, None]
        weights = np.exp(logs - logs.max())
        ends = np.cumsum(weights.ravel() / weights.sum())
        pick = np.minimum(np.searchsorted(ends, uniform(21, draws)), weights.size - 1)
        share, which = LUMPS[pick // len(EVEN)][:, None], pick % len(EVEN)
        chance = share * lump[:, 0] / (share * lump[:, 0] + (1 - share) * even[:, which].T)
        chance = np.where(has_heap, share, chance)
        lumpy = uniform(22, *chance.shape) < chance
        return np.where(lumpy, LUMPY, EVEN[which][:, None])[:, bin_of], lumpy[:, bin_of]

    @cached_property
    @one_thread()
    def _drawn(self) -> "_Placed":
        """Rows by part, of the draws that the area leaves likely; some of them twice."""
        points, fixed = self._points, self._fixed(self._steps)
        placed = self._placed(points, fixed)
        return placed.chosen(self._weighed(points, fixed, placed))

    def _placed(self, points: Floats, fixed: Floats) -> "_Placed":
        """Rows by class and part, as they may lie within the cells of these points."""
        draws, parts = len(points), len(self.cell)
        odds, _, _, rows, chances = self._unpacked(points, fixed)
        counts = self._counted(rows * chances.above_floors)
        floors = self._on_floors(rows * chances.of_floors, counts)
        evenness, lumpy = self._evenness(draws)
        place = np.where(lumpy.take(self.cell, axis=1), uniform(23, draws, parts), np.nan)
        mass = gamma(31, np.maximum(self._by_part(evenness) * self.base, 1e-3)) + 1e-300
        mass /= self._by_part(self._summed(mass))
        laws, beyond = self._within(mass, counts, odds, lumpy)
        by_class = []
        for stream, law, count, floor in zip((33, 35), laws, counts, floors, strict=True):
            wanted = np.maximum(count, 0.2) / np.maximum(self._summed(law), 1e-300)
            expected = law * self._by_part(wanted) + mass * self._by_part(floor)
            scattered = gamma(stream, expected + 1e-4) + 1e-300
            scattered *= self._by_part((count + floor) / self._summed(scattered))
            by_class.append(scattered)
        return _Placed(Draws(*by_class), place, beyond)

    def _on_floors(self, expected: Floats, above: Floats) -> Floats:
        """Draw the rows of the floors by class, draw and cell, given those above them.

        As many as chance makes of so many expected, and as the noisy counts say, each for what it
        is worth; so of few expected most often none.
        """
        variance = 2 * self.scales[:, None] ** 2
        missing = self.counts[:, None] - above - expected
        factor = np.maximum(1 + missing / (expected + variance), 0.1)
        spread = variance / (expected + variance) / factor
        result: Floats = spread * gamma(37, np.maximum(factor * expected / spread, 1e-6))
        return result

    def _counted(self, rows: Floats) -> Floats:
        """Return rows by class, draw and cell, with none where a class may have none.

        Where the number of rows is public, what a cell loses others have: each as much as its
        noise, and its own rows, leave room for.
        """
        present = np.stack([self._present(part, which) for which, part in enumerate(rows)])
        present[:, self._empty(rows.shape[1])] = 0.0
        if self.table.rows is None:
            return present
        room = 1 / (1 / self.scales[:, None] ** 2 + 1 / np.maximum(present, 1e-6) ** 2)
        lost = (rows - present).sum(axis=(0, 2), keepdims=True)
        result: Floats = present + lost * room / room.sum(axis=(0, 2), keepdims=True)
        return result

    def _empty(self, draws: int) -> Bools:
        """Draw which cells beside a heap no row is in, as where scores take few values.

        How many are empty is learnt from all of them. Counts of an empty one are noise; those of
        another are noise around rows of any number, as likely on a scale of logs.
        """
        empty, cuts = np.zeros((draws, self.cells), dtype=bool), self.table.cuts
        if cuts is None or not self.tied.any():
            return empty
        bins = np.searchsorted(cuts, self.low, side="right")
        beside = ~self.tied & np.isin(bins, bins[self.tied])
        fit, sizes = self._best, 2.0 ** np.arange(math.log2(self.rows))[:, None, None]
        chance = self._chances(fit.point, fit.fixed).positive
        filled, none = (
            -softened((rows - self.counts) / self.scales)[0].sum(axis=-2)[..., beside]
            for rows in (sizes * np.stack([1 - chance, chance]), np.zeros_like(self.counts))
        )
        likely = none - np.logaddexp.reduce(filled) + math.log(len(sizes))
        odds = np.exp(np.minimum(likely, 500.0)) * (LUMPS / (1 - LUMPS))[:, None]
        logs = (np.log1p(odds) + np.log(1 - LUMPS)[:, None]).sum(axis=1)
        ends = np.cumsum(np.exp(logs - logs.max()))
        pick = np.minimum(np.searchsorted(ends / ends[-1], uniform(55, draws)), len(LUMPS) - 1)
        chances = (odds / (1 + odds))[pick]
        empty[:, beside] = uniform(57, *chances.shape) < chances
        return empty

    def _present(self, rows: Floats, which: int) -> Floats:
        """Return the rows of a class by draw and cell, with none where it may have none.

        Along the scores a class comes and goes, beforehand SWITCHES times in a table. Heaps lie
        where they lie.
        """
        smooth, likely = np.flatnonzero(~self.tied), self._absent_from_best[which]
        present = rows.copy()
        if len(smooth):
            luck = uniform(51 + which, len(rows), len(smooth) + 1)
            absent = _absent_runs(likely, self._switch, luck)
            present[:, smooth] = np.where(absent, 0.0, rows[:, smooth])
        return present

    @cached_property
    def _absent_from_best(self) -> list[Floats]:
        return self._absent(self._best)

    def _absent(self, fit: "_Fit") -> list[Floats]:
        """Of negatives and positives: how likely none lie in cells i to j, in logs.

        Compared with as many as their log odds say, which are then free to bend towards the counts:
        the evidence for those is the likelihood at the best of them, times what is believed of
        them given the other cells over what is believed after the counts (Chib 1995). So a tail
        that goes on smoothly may as well be empty, and one that would need a jump is empty.
        """
        smooth, odds = np.flatnonzero(~self.tied), self._odds_of_point
        only = np.ix_(smooth, smooth)
        pulled = (fit.precision @ (fit.point[odds] - self._prior[0]))[smooth]
        before, after = fit.precision[only], fit.curvature[odds, odds][only]
        believed = np.zeros((len(smooth), len(smooth)))
        for first in range(len(smooth)):
            root, end = (np.linalg.cholesky(law[first:, first:]) for law in (before, after))
            strain = np.linalg.solve(root, pulled[first:])
            narrowed = np.log(np.diag(root)) - np.log(np.diag(end))
            believed[first, first:] = np.cumsum(narrowed - strain**2 / 2)
        _, _, _, rows, chances = self._unpacked(fit.point, fit.fixed)
        likely = []
        inside = rows * (chances.above_floors + chances.of_floors)
        for which, floor in enumerate(chances.floors[::-1]):
            off = np.stack([inside[which], rows * floor]) - self.counts[which]
            off /= self.scales[which]
            size = np.sqrt(off[:, smooth] ** 2 + SOFTNESS**2)
            upto = np.append(0.0, np.cumsum(size[0] - size[1]))
            likely.append(upto[None, 1:] - upto[:-1, None] - believed)
        return likely

    def _within(
        self, mass: Floats, counts: Floats, odds: Floats, lumpy: Bools
    ) -> tuple[tuple[Floats, Floats], Floats]:
        """Laws of both classes within cells, and shares of rows beyond the places where they end.

        Log odds go on within a cell as between its neighbours, and bend as they do between cells.
        A class that is absent from the cell beside begins, or ends, anywhere in this one.
        """
        bent = self._bend * np.diff(self._rank[1]) / REACH
        tilts = self._slopes(odds) + bent * nearly_normal(24, *odds.shape)
        tilt = self._by_part(np.clip(tilts, -_STEEPEST, _STEEPEST)) * self._inside
        lean = self._by_part(counts[1] / np.maximum(counts[0] + counts[1], 1e-9))
        laws = mass * np.exp(-tilt * lean), mass * np.exp(tilt * (1 - lean))
        low, high = self._extents(counts, lumpy)
        # Where the gap of the rates may be largest: positives begin there, or negatives end.
        over = np.stack([np.ones_like(odds), np.zeros_like(odds)])
        parted = np.flatnonzero(((low > 0) | (high < 1)).any(axis=(0, 1)))
        if not len(parted):
            return laws, over
        some = np.flatnonzero(np.isin(self.cell, parted))
        sizes = np.bincount(self.cell, minlength=self.cells)[parted]
        first = np.cumsum(sizes) - sizes
        of_cell = np.repeat(np.arange(len(parted)), sizes)
        masses = np.maximum(mass[:, some], 1e-300)
        ends = np.cumsum(masses, axis=1)
        ends -= (ends - masses)[:, first][:, of_cell]

        def beyond(place: Floats) -> Floats:
            """Of each part, the share above a place in its cell."""
            return np.clip((ends - place[:, parted][:, of_cell]) / masses, 0.0, 1.0)

        above = [[beyond(place) for place in places] for places in (low, high)]
        for which, (law, above_low, above_high) in enumerate(zip(laws, *above, strict=True)):
            law[:, some] *= np.maximum(above_low - above_high, 0.0)
            inside, far = law[:, some], (above[0][1], above[1][0])[which]
            over[which][:, parted] = np.add.reduceat(inside * far, first, axis=1) / np.maximum(
                np.add.reduceat(inside, first, axis=1), 1e-300
            )
        return laws, over

    def _extents(self, counts: Floats, lumpy: Bools) -> tuple[Floats, Floats]:
        """From where to where in its cells each class lies, as shares of their rows.

        One that is absent from the cell beside begins anywhere, or, as likely as not, so that it
        is as frequent from there on as in the next cell. Heaps and cells in which no rows are seen
        say nothing of this, and rows in lumps are not parted.
        """
        low, high = np.zeros_like(counts), np.ones_like(counts)
        filled = self.counts.sum(axis=0) > SEEN * np.sqrt(2 * (self.scales**2).sum(axis=0))
        smooth = np.flatnonzero(~self.tied & filled)
        if len(smooth) < 2:
            return low, high
        inside = counts[:, :, smooth]
        shares = inside / np.maximum(inside.sum(axis=0), 1e-9)
        there = inside >= 0.5
        lower, upper = (np.roll(shares, step, axis=2) for step in (1, -1))
        lower[:, :, 0], upper[:, :, -1] = shares[:, :, 0], shares[:, :, -1]
        begins, stops = np.zeros_like(there), np.zeros_like(there)
        begins[:, :, 1:] = there[:, :, 1:] & ~there[:, :, :-1]
        stops[:, :, :-1] = there[:, :, :-1] & ~there[:, :, 1:]
        begins, stops = (ends & ~lumpy[:, smooth] for ends in (begins, stops))
        extent = []
        for stream, beside in ((25, upper), (27, lower)):
            by_frequency = np.minimum(shares / np.maximum(beside, 1e-9), 1.0)
            anywhere, which = (uniform(stream + more, *inside.shape) for more in (0, 1))
            extent.append(np.where(which < 0.5, by_frequency, anywhere))
        both = begins & stops  # within one cell
        first, last = extent
        low[:, :, smooth] = np.where(begins, 1 - first, 0.0)
        high[:, :, smooth] = np.where(stops, np.where(both, 1 - first + first * last, last), 1.0)
        return low, high

    @cached_property
    def _inside(self) -> Floats:
        """Where in its cell the rows of a part lie, from -1/2 to 1/2."""
        below = np.cumsum(self.base)
        result: Floats = below - self.base / 2 - (below - self.base)[self.first][self.cell] - 0.5
        return result

    def _slopes(self, odds: Floats) -> Floats:
        """Return how far log odds rise over each cell, by those beside it."""
        shares = self.shares
        middle = np.cumsum(shares) - shares / 2
        slopes = np.zeros_like(odds)
        if self.cells > 1:
            last = np.maximum(np.diff(middle), 1e-6)
            step = np.diff(odds, axis=1)
            slopes[:, 0], slopes[:, -1] = step[:, 0] / last[0], step[:, -1] / last[-1]
            slopes[:, 1:-1] = (odds[:, 2:] - odds[:, :-2]) / np.maximum(
                middle[2:] - middle[:-2], 1e-6
            )
        result: Floats = slopes * shares
        return result

    def _area_by_parts(self, placed: "_Placed") -> Floats:
        """Return what the rows of each draw make of the area minus the noisy one, in its scales."""
        area, rows = self.table.area, placed.rows
        assert area is not None
        if isinstance(area, AreaBySum):
            summed: Floats = rows.negatives @ self.weights[0] + rows.positives @ self.weights[1]
            return summed - area.noisy / self.area_scale
        assert isinstance(area, RankingDraw)
        false, true = rows.rates
        areas = (np.diff(false, axis=1) * (true[:, 1:] + true[:, :-1])).sum(axis=1) / 2
        result: Floats = (areas - area.unclamped) / _drawn_scale(area, self)
        return result

    @cached_property
    def _area_trust(self) -> float:
        """The scale of the area's noise over that with what rows within cells add to it."""
        if self._area_of_cells is None:
            return 1.0
        points, fixed = (np.tile(of, (_TRIED, 1)) for of in (self._best.point, self._best.fixed))
        added = float(self._area_by_parts(self._placed(points, fixed)).std())
        return 1 / math.sqrt(1 + added**2 / 2)

    def _weighed(self, points: Floats, fixed: Floats, placed: "_Placed") -> Ints:
        """Return which draws stay, some of them twice: the area also knows of rows within cells."""
        draws = len(points)
        if self._area_of_cells is None:
            return np.arange(draws)
        _, _, _, rows, chances = self._unpacked(points, fixed)
        chance = chances.positive
        of_cells, _, _ = self._area_of_cells(rows * (1 - chance), rows * chance)
        of_cells, of_parts = of_cells * self._area_trust, self._area_by_parts(placed)
        logs = np.sqrt(of_cells**2 + SOFTNESS**2) - np.sqrt(of_parts**2 + SOFTNESS**2)
        while True:  # tempered where few draws would decide
            weights = np.exp(logs - logs.max())
            weights /= weights.sum()
            if 1 / (weights**2).sum() > min(FEWEST, draws / 4):
                break
            logs = 0.7 * logs
        chosen = np.searchsorted(np.cumsum(weights), (np.arange(draws) + 0.5) / draws)
        return np.minimum(chosen, draws - 1)

    @property
    def rows_drawn(self) -> Draws:
        """These very rows, as noise leaves them possible."""
        return self._drawn.rows

    @cached_property
    def population_drawn(self) -> Draws:
        """The population of the rows: a Bayesian bootstrap (Rubin 1981) of each draw."""
        rows = self.rows_drawn
        return Draws(gamma(41, rows.negatives + 1e-3), gamma(43, rows.positives + 1e-3))

    def draws(self, *, noise_only: bool) -> Draws:
        return self.rows_drawn if noise_only else self.population_drawn

    # --- readings --------------------------------------------------------------------------------

    @cached_property
    def curve(self) -> Curve:
        """The mean of the draws."""
        return self._assembled(self.rows_drawn)

    def _assembled(self, draws: Draws) -> Curve:
        """One curve; a threshold is a little below the lowest score of the part that it calls."""
        points, order, again = self.table.points, *self._vertices
        starts = np.append(self.starts, points)[::-1][order] - 0.49
        # All rows of a heap lie at one score: a threshold anywhere in its cell may call them.
        starts = starts + np.where(again, 0.97, 0.0)
        thresholds = grid_scores(starts, points=points, score_range=self.score_range)
        thresholds[0] = grid_scores([points], points=points, score_range=self.score_range)[0]
        thresholds[-1] = self.score_range[0]
        rates = []
        for rate in draws.rates:
            mean = np.clip(np.maximum.accumulate(rate.mean(axis=0)), 0.0, 1.0)[order]
            mean[0], mean[-1] = 0.0, 1.0
            rates.append(mean)
        m, n = (float(size.mean()) for size in draws.sizes)
        return Curve(fpr=rates[0], tpr=rates[1], thresholds=thresholds, positives=n, negatives=m)

    @cached_property
    def _vertices(self) -> tuple[Ints, Bools]:
        """Which starts the curve passes, highest first and heaps' twice; which are first times."""
        heap = np.append(False, (self.ends - self.starts == 1)[::-1])
        order = np.repeat(np.arange(len(heap)), 1 + heap)
        return order, np.append(order[1:] == order[:-1], False)

    def above(self, grid_point: int, draws: Draws) -> tuple[Floats, Floats]:
        """Negatives and positives with this grid point or a higher one, whole rows of each draw.

        People ask for scores that there are: where rows lie in lumps, the largest lump of the cell
        is at this very point, as likely as rows are in heaps.
        """
        part = int(np.searchsorted(self.starts, grid_point, side="right")) - 1
        start, end = int(self.starts[part]), int(self.ends[part])
        share: Any = min(max((end - grid_point) / (end - start), 0.0), 1.0)
        at = self._drawn.place[:, part]
        share = np.where(np.isnan(at), share, at < share)
        if self.table.values is not None:  # all rows of a bin are at its value
            share = float(grid_point <= self._values_of(np.array([start]))[0])
        first, last = np.searchsorted(self.cell, [self.cell[part], self.cell[part] + 1])
        largest = first + np.argmax((draws.negatives + draws.positives)[:, first:last], axis=1)
        unseen = (largest < part) | ((largest == part) & (share == 0))
        here = unseen & ~np.isnan(at) & ~self.tied[self.cell[part]]
        here &= uniform(28, len(at)) < self.tied_share
        draw = np.arange(len(at))
        return tuple(
            np.rint(above[:, part + 1] + share * rows[:, part] + here * rows[draw, largest])
            for above, rows in zip(draws.above, (draws.negatives, draws.positives), strict=True)
        )

    def areas(self, *, noise_only: bool) -> tuple[Floats, Floats, Floats]:
        """Of each draw: the area under its ROC curve, its average precision, its largest gap."""
        return self._areas_of_rows if noise_only else self._areas_of_population

    @cached_property
    def _areas_of_rows(self) -> tuple[Floats, Floats, Floats]:
        return self._areas_of(self.rows_drawn)

    @cached_property
    def _areas_of_population(self) -> tuple[Floats, Floats, Floats]:
        return self._areas_of(self.population_drawn)

    def _areas_of(self, draws: Draws) -> tuple[Floats, Floats, Floats]:
        false, true = draws.rates
        steps = np.diff(false, axis=1)
        steps *= true[:, 1:] + true[:, :-1]
        area = np.clip(steps.sum(axis=1) / 2, 0.0, 1.0)
        called = [rows[:, ::-1] for rows in draws.above]
        precision = called[0] + called[1]
        np.divide(called[1], np.maximum(precision, 1e-9, out=precision), out=precision)
        precision[:, 0] = precision[:, 1]
        # Rows of a heap, or of a lump, are called all or none.
        single = self.tied[self.cell][::-1] | ~np.isnan(self._drawn.place[:, ::-1])
        heights = precision[:, 1:] + precision[:, :-1]
        heights /= 2
        np.copyto(heights, precision[:, 1:], where=single)
        heights *= np.diff(true, axis=1)
        average = heights.sum(axis=1)
        gap = np.maximum((true - false).max(axis=1), self._gap_at_ends(draws))
        return area, average, gap

    def _gap_at_ends(self, draws: Draws) -> Floats:
        """Of each draw: the largest gap of its two rates where a class begins or ends in a cell."""
        upper = np.append(self.first[1:], len(self.starts))
        (false, true), (m, n) = (above[:, upper] for above in draws.above), draws.sizes
        negatives, positives = (self._summed(rows) for rows in (draws.negatives, draws.positives))
        m, n = (np.maximum(size, 1e-9)[:, None] for size in (m, n))
        beyond = self._drawn.beyond
        begins = (true + positives) / n - (false + beyond[0] * negatives) / m
        stops = (true + beyond[1] * positives) / n - false / m
        result: Floats = np.maximum(begins, stops).max(axis=1)
        return result

    def prevalence(self, *, noise_only: bool) -> Floats:
        """Of each draw."""
        m, n = self.draws(noise_only=noise_only).sizes
        return n / np.maximum(n + m, 1e-9)

    def part_scores(self, share: float = 0.5) -> Floats:
        """The scores so far along the parts."""
        middles = self.starts + share * (self.ends - 1 - self.starts)
        if self.table.values is not None:
            middles = self._values_of(self.starts)
        return grid_scores(middles, points=self.table.points, score_range=self.score_range)

    def bin_shares(self, edges: Ints, *, noise_only: bool) -> Floats:
        """Of each draw: the share of positives in each bin of scores, with half a row of either."""
        draws, first = self.draws(noise_only=noise_only), np.searchsorted(self.starts, edges[:-1])
        m, n = (np.add.reduceat(rows, first, axis=1) for rows in (draws.negatives, draws.positives))
        sign = np.where(np.arange(len(n)) % 2, 0.5, -0.5)[:, None]  # shares of whole rows
        result: Floats = np.clip((n + sign) / np.maximum(n + m, 1.0), 0.0, 1.0)
        return result

    def calibration_error(self, edges: Ints, *, noise_only: bool) -> Floats:
        """Of each draw: the mean distance of observed from predicted shares, over bins."""
        draws, scores = self.draws(noise_only=noise_only), self.part_scores()
        first = np.searchsorted(self.starts, edges[:-1])
        rows = draws.negatives + draws.positives
        # What each bin's rows are worth minus what they score, in rows.
        off = np.add.reduceat(draws.positives - rows * scores, first, axis=1)
        result: Floats = np.abs(off).sum(axis=1) / np.maximum(rows.sum(axis=1), 1e-9)
        return result

    def partial_area(self, places: Floats, *, noise_only: bool) -> Floats:
        """Of each draw: the mean true positive rate over a range of false positive rates."""
        heights = read_curves(*self.draws(noise_only=noise_only).rates, places)
        result: Floats = np.trapezoid(heights, places, axis=1) / (places[-1] - places[0])
        return result

    @cached_property
    def furthest(self) -> dict[tuple[str, bool], Floats]:
        return {}

    def region(self, *, level: float, simultaneous: bool, noise_only: bool) -> Region:
        """Where the rows' own curve lies, or that of the population, with this confidence."""
        return Region(self, level, simultaneous, noise_only)


class _Joined(Posterior):
    """Several tables of as many cells as one: each has some of the rows of the points."""

    def __init__(self, tables: Sequence[Posterior], *, rows: int = 1) -> None:
        self.table, self.cells, self._tables = tables[0].table, tables[0].cells, tables
        self._rows_each = rows
        per_scale, seen = zip(*(one._noise for one in tables), strict=True)
        self._noise = self._by_row(per_scale), self._by_row(seen)
        self._prior = (self._by_row([one._prior[0][None] for one in tables]), *tables[0]._prior[1:])
        self._beside = tables[0]._beside

    def _by_row(self, of_tables: Sequence[Floats]) -> Floats:
        return np.repeat(np.concatenate(of_tables, axis=-2), self._rows_each, axis=-2)

    @cached_property
    def _rows_of_table(self) -> Floats:
        return self._by_row([np.array([[one.rows]]) for one in self._tables])

    @cached_property
    def _usual_floor(self) -> Floats:
        return self._by_row([np.array([[one._usual_floor]]) for one in self._tables])

    @cached_property
    def _area_of_cells(
        self,
    ) -> Callable[[Floats, Floats], tuple[Floats, Floats, Floats]] | None:
        areas = [one._area_of_cells for one in self._tables]
        if areas[0] is None:
            return None

        def of_each(negatives: Floats, positives: Floats) -> tuple[Floats, Floats, Floats]:
            off = np.empty(len(negatives))
            along = np.empty((2, *negatives.shape))
            for place, area in enumerate(areas):
                assert area is not None
                of = slice(place * self._rows_each, (place + 1) * self._rows_each)
                off[of], along[0, of], along[1, of] = area(negatives[of], positives[of])
            return off, along[0], along[1]

        return of_each


def draw_together(tables: Iterable[Posterior]) -> None:
    """Draw the points of many tables at once where these are alike, each as if it were alone."""
    alike: dict[object, list[Posterior]] = {}
    for one in tables:
        if type(one) is Posterior and "_points" not in one.__dict__ and not one.table.beside:
            effort = one._chains, one._warm, one._steps
            which = one.cells, one.table.rows is None, one.table.area is None, effort
            alike.setdefault(which, []).append(one)
    with one_thread():
        for several in alike.values():
            many = max(1, TOGETHER // several[0].cells)
            for start in range(0, len(several), many):
                some = several[start : start + many]
                for one, fits in zip(some, _fits_of(some), strict=True):
                    one._fits = fits
                for one, points in zip(some, _walked(some), strict=True):
                    one._points = points


def _joined(tables: Sequence[Posterior], *, rows: int = 1) -> Posterior:
    return tables[0] if len(tables) == 1 else _Joined(tables, rows=rows)


def _fits_of(tables: Sequence[Posterior]) -> list[list["_Fit"]]:
    nowhere = np.full(tables[0].cells, np.nan)
    fits = _fitted(tables, [(nowhere, 0)] * len(tables))
    free = [max(of_table, key=lambda fit: fit.evidence) for of_table in fits]
    absent = [one._without_absent(fit) for one, fit in zip(tables, free, strict=True)]
    some = [place for place, without in enumerate(absent) if without is not None]
    if some:
        again = _fitted([tables[i] for i in some], [without for without in absent if without])
        for place, more in zip(some, again, strict=True):
            fits[place] += more
    return fits


def _fitted(
    tables: Sequence[Posterior], absent: Sequence[tuple[Floats, int]]
) -> list[list["_Fit"]]:
    """Return the likely points where classes are absent from some cells: one of a table, or two."""
    here = np.concatenate([one._starts() for one in tables])
    starts = len(here) // len(tables)
    joined = _joined(tables, rows=starts)
    fixed = np.repeat([chances for chances, _ in absent], starts, axis=0)
    _, trend, smooth = (np.stack(of) for of in zip(*(one._prior for one in tables), strict=True))
    points, curvatures, precisions, evidence = [], [], [], []
    for bend, chance in BENDS:
        covariance = trend + bend**2 * smooth
        precision = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
        of_starts = np.repeat(precision, starts, axis=0)
        here = joined._descended(here, of_starts, fixed)
        curvature = joined._curvature(here, of_starts, fixed)
        cost, _ = joined._cost(here, row_by_row(of_starts), fixed)
        spread = np.repeat(np.linalg.slogdet(covariance)[1], starts)
        points.append(here)
        curvatures.append(curvature)
        precisions.append(precision)
        evidence.append(math.log(chance) - cost - (np.linalg.slogdet(curvature)[1] + spread) / 2)
    fits: list[list[_Fit]] = []
    for place, (one, (chances, switches)) in enumerate(zip(tables, absent, strict=True)):
        believed = switches * math.log(one._switch / (1 - one._switch))
        of_bends = np.stack([of_bend[place] for of_bend in precisions])
        modes: list[_Fit] = []
        for start in range(place * starts, (place + 1) * starts):
            logs = np.array([of_bend[start] for of_bend in evidence])
            weights = np.exp(logs - max(logs))
            best = int(np.argmax(weights))
            fit = _Fit(
                fixed=chances,
                point=points[best][start],
                curvature=curvatures[best][start],
                precision=of_bends[best],
                precisions=of_bends,
                bends=weights / weights.sum(),
                evidence=float(believed + max(logs) + math.log(weights.sum())),
            )
            off = [(fit.point - mode.point)[one._floors_of_point] for mode in modes]
            if all(np.abs(away).max() > _APART for away in off):
                modes.append(fit)
        fits.append(modes)
    return fits


def _walked(tables: Sequence[Posterior]) -> list[Floats]:
    """Points by Hamiltonian chains in coordinates where the law is nearly round (Neal 2011)."""
    one = tables[0]
    chains, warm, steps = one._chains, one._warm, one._warm + one._steps
    size, joined = len(one._best.point), _joined(tables, rows=chains)
    best = np.concatenate([table._of_chains(_best_point) for table in tables])
    of_fits = np.concatenate([table._fixed(1) for table in tables])
    fixed = None if np.isnan(of_fits).all() else of_fits
    trust = np.repeat([table._area_trust for table in tables], chains)
    precisions: Blocks = []
    to_points: Blocks = []
    for index, table in enumerate(tables):
        of_table = table._to_rounder(index * chains)
        precisions += of_table[0]
        to_points += of_table[1]
    to_slopes = [(of, root.T) for of, root in to_points]

    def pulled(places: Floats) -> tuple[Floats, Floats]:
        points = best + by_blocks(places, to_points)
        cost, gradient = joined._cost(points, precisions, fixed, trust)
        return cost, by_blocks(gradient, to_slopes)

    many = (len(tables), 1)
    kicks = normal(11, steps + 1, chains, size)
    tries, lengths = np.log(uniform(12, steps, chains)), 0.7 + 0.5 * uniform(13, steps)
    here, stride, visited = np.tile(0.6 * kicks[-1], many), np.full(len(best), 0.9 / size**0.25), []
    cost, gradient = pulled(here)
    for step in range(steps):
        length, speed = (stride * lengths[step])[:, None], np.tile(kicks[step], many)
        energy = cost + (speed**2).sum(axis=1) / 2
        place, slope, speed = here, gradient, speed - length / 2 * gradient
        for leap in range(LEAPS):
            place = place + length * speed
            there, slope = pulled(place)
            speed = speed - (length if leap < LEAPS - 1 else length / 2) * slope
        accepted = np.tile(tries[step], len(tables)) < energy - there - (speed**2).sum(axis=1) / 2
        here, gradient = (
            np.where(accepted[:, None], *pair) for pair in ((place, here), (slope, gradient))
        )
        cost = np.where(accepted, there, cost)
        for of, _ in to_points if step < warm else ():
            stride[of] *= 1.1 if accepted[of].mean() > 0.75 else 0.85
        if step == warm - 1:  # chains that got stuck go on from where others are
            here = here.copy()
            for of, _ in to_points:
                own, theirs = cost[of], here[of]
                stuck = own > np.median(own) + 4 * math.sqrt(size)
                theirs[stuck] = theirs[np.argsort(own, kind="stable")[: stuck.sum()]]
            cost, gradient = pulled(here)
        if step >= warm:
            visited.append(best + by_blocks(here, to_points))
    points = np.stack(visited).reshape(one._steps, len(tables), chains, size)
    return [points[:, index].reshape(-1, size) for index in range(len(tables))]


def _best_point(fit: "_Fit", many: int) -> Floats:
    return np.tile(fit.point, (many, 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fit:
    """The most likely point of one law of the cells."""

    fixed: Floats
    """The chance of being positive where a class is absent, 0 or 1; NaN elsewhere."""
    point: Floats
    curvature: Floats
    precision: Floats
    """Of the log odds beforehand, with the bend of the point."""
    precisions: Floats
    """The same by bend."""
    bends: Floats
    """How likely each is."""
    evidence: float
    """That of the counts, in logs, with what is believed beforehand of absent classes."""


@dataclass(frozen=True, eq=False)
class Chances:
    """Chances of rows to be positive: those of the law, but for a floor of each class.

    Some positives score as if they were negatives, wherever negatives are, and the other way round.
    """

    lead: Floats
    """By the law of the log odds, by cell."""
    floors: Floats
    """Of the rows that the law takes for negatives the share of positives, and the other way."""

    @property
    def of_class(self) -> tuple[Floats, Floats]:
        return self.floors[..., :1], self.floors[..., 1:]

    @cached_property
    def _led(self) -> Floats:
        low, high = self.of_class
        return (1 - low - high) * self.lead

    @cached_property
    def positive(self) -> Floats:
        return self.floors[..., :1] + self._led

    @property
    def by_odds(self) -> Floats:
        """Its slope by the log odds."""
        return self._led * (1 - self.lead)

    @property
    def by_floors(self) -> tuple[Floats, Floats]:
        """Its slopes by the logs of the floors."""
        low, high = self.of_class
        return low * (1 - self.lead), -high * self.lead

    @property
    def slopes(self) -> Floats:
        """All of them, at each point: by the log odds of cells and by the logs of the floors."""
        points, cells = self.lead.shape
        slopes, diagonal = np.zeros((points, cells, cells + 2)), np.arange(cells)
        slopes[:, diagonal, diagonal] = self.by_odds
        slopes[..., cells], slopes[..., cells + 1] = self.by_floors
        return slopes

    @property
    def above_floors(self) -> Floats:
        """Of negatives and positives, without those of the floors."""
        low, high = self.of_class
        return np.stack([(1 - low) * (1 - self.lead), (1 - high) * self.lead])

    @property
    def of_floors(self) -> Floats:
        low, high = self.of_class
        return np.stack([high * self.lead, low * (1 - self.lead)])


Blocks: TypeAlias = list[tuple[slice, Floats]]
"""Rows of points, and the matrix that these are multiplied by."""


def row_by_row(matrices: Floats) -> Blocks:
    return [(slice(row, row + 1), matrix) for row, matrix in enumerate(matrices)]


def by_blocks(points: Floats, blocks: Blocks) -> Floats:
    products = [points[of] @ matrix for of, matrix in blocks]
    return products[0] if len(products) == 1 else np.concatenate(products)


def crossed(leads: Floats, weights: Floats) -> Floats:
    """Products of each matrix, rows weighted, with itself; or of a row."""
    if leads.ndim == weights.ndim:
        return leads[..., :, None] * (weights * leads)[..., None, :]
    result: Floats = (leads * weights[..., None]).swapaxes(-1, -2) @ leads
    return result


def softened(off: Floats) -> tuple[Floats, Floats]:
    """Distances in noise scales, rounded off near 0, and their slopes."""
    size = off * off
    size += SOFTNESS**2
    np.sqrt(size, out=size)
    return size, off / size


@dataclass(frozen=True, eq=False)
class _Placed:
    """Draws of rows within cells."""

    rows: Draws
    place: Floats
    """Where in its part a lump lies; NaN where rows lie evenly."""
    beyond: Floats
    """Of a cell's negatives the share above where positives begin, and the other way round."""

    def chosen(self, which: Ints) -> "_Placed":
        rows = Draws(self.rows.negatives[which], self.rows.positives[which])
        return _Placed(rows, self.place[which], self.beyond[:, which])


def _absent_runs(likely: Floats, switch: float, luck: Floats, *, cold: float = 1.0) -> Bools:
    """Draw which cells of a row of cells are empty, given how likely a run from i to j is so.

    Cells are empty or not in turns, a turn ends with this chance at each cell. Drawn forwards and
    backwards (Carter and Kohn 1994). `likely` is in logs, against cells that are not empty; `luck`
    has a number in (0, 1) for each draw and cell, and one more. The colder, the more often the most
    likely is drawn.

    >>> likely = 30.0 * (1 + np.arange(3) - np.arange(3)[:, None])
    >>> bool(_absent_runs(likely, 0.3, uniform(1, 4, 4)).all())
    True
    >>> bool(_absent_runs(-likely, 0.3, uniform(1, 4, 4)).any())
    False
    """
    cells, likely, first_half = len(likely), cold * likely, cold * math.log(0.5)
    turn, stay = cold * np.log([switch, 1 - switch])
    filled, empty = np.full(cells + 1, -np.inf), np.full(cells + 1, -np.inf)
    from_start = np.full((cells + 1, cells), -np.inf)
    for end in range(1, cells + 1):
        begun = np.append(first_half, filled[1:end] + turn)
        from_start[end, :end] = begun + likely[:end, end - 1] + stay * np.arange(end - 1, -1, -1)
        empty[end] = np.logaddexp.reduce(from_start[end, :end])
        more = np.logaddexp(filled[end - 1] + stay, empty[end - 1] + turn)
        filled[end] = first_half if end == 1 else more
    # One more from where an empty run begins, one less after its end.
    begins_less_ends = np.zeros(luck.shape, dtype=np.int8)
    upto = np.full(len(luck), cells)  # cells that are yet to be drawn
    is_empty = luck[:, cells] < _chance(empty[cells] - filled[cells])
    for end in range(cells, 0, -1):
        here = upto == end
        begins = np.cumsum(np.exp(from_start[end, :end] - empty[end]))
        first = np.minimum(np.searchsorted(begins, luck[:, end - 1] * begins[-1]), end - 1)
        first = np.where(is_empty, first, end - 1)
        run = np.flatnonzero(here & is_empty)
        begins_less_ends[run, first[run]] += 1
        begins_less_ends[run, end] -= 1
        upto = np.where(here, first, upto)
        if end > 1:
            turns = luck[:, end - 1] < _chance(empty[end - 1] + turn - filled[end - 1] - stay)
            is_empty = np.where(here, ~is_empty & turns, is_empty)
    return np.cumsum(begins_less_ends[:, :-1], axis=1) > 0


def _chance(log_odds: float) -> float:
    return 1 / (1 + math.exp(-min(max(log_odds, -700.0), 700.0)))


def _drawn_scale(area: RankingDraw, posterior: Posterior) -> float:
    """The size that the noise of an area drawn by itself exceeds as often as Laplace its scale.

    Over the class counts that the table leaves possible: where it hides a class, the area's noise
    may be as large as that of few rows.
    """
    table, local = posterior.table, area.mechanism.local
    away = np.linspace(-2.5, 2.5, 21)
    weights = np.exp(-(away**2) / 2)
    noise = table.noise.above_deviation[:, 0]
    n = table.positives.sum() + noise[1] * away
    m = table.negatives.sum() - noise[0] * away
    if table.rows is not None:
        n = (n + table.rows - m) / 2
        m = table.rows - n
    rungs = local.rung_size(positives=np.maximum(n, 1.0), negatives=np.maximum(m, 1.0))
    weights = weights * (1 + CLASS_PRIOR * float(noise.max()) / np.maximum(rungs, 0.5))
    rungs = rungs / local.protection.rows_per_unit
    low, high = math.log(_FINEST), math.log(1e2)
    for _ in range(30):
        middle = (low + high) / 2
        beyond = float(area.law.survival(rungs, math.exp(middle)) @ weights / weights.sum())
        low, high = (middle, high) if beyond > math.exp(-1) else (low, middle)
    return math.exp(high)
