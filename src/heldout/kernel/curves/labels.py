"""Curves where only outcomes are secret: bins are free, and the area is a sum over the positives.

Every row's score is public, so cuts, crowded cells and the rows of any bin cost nothing. Secret is
how many of a bin's rows are positive. With u a row's rank among all rows, counted from the middle,
the area under the ROC curve is 1/2 + sum of u over the positives / (positives * negatives): linear
in the outcomes, up to the two counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arguments import Whole
from heldout.arrays import Ints
from heldout.errors import ArgumentError
from heldout.kernel.curves.heldout import (
    NamedCounts,
    RankSum,
    TableWithArea,
    check_named,
    share_of_named,
)
from heldout.kernel.curves.registry import Terms
from heldout.kernel.events import Event
from heldout.kernel.loss import Rational, exact
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise.additive import DiscreteLaplace
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.tables import laplace_deviation, noise_of
from heldout.kernel.noise.tied import TiedLaplace
from heldout.kernel.statistic import Sealed

__all__ = ["LabelCurves", "build"]

AREA_SHARE: Final = Fraction(2, 5)
"""Of what counts and area have together, the most that a row at either end spends on the area."""
VISIBLE_LEVELS: Final = (100, 500, 5_000, 50_000)
"""From so many rows times epsilon on 8 bins, 16, 32 and 64; 4 below. Chosen, like the shares, on
four made-up shapes of 1,000 and 5,000 rows, 24 runs each; since 2026-11-18."""
PARTS: Final = 8
"""Smaller bins in a bin, whose rows are released without noise."""
_MOST: Final = 2**62


def rank_weights(totals: Ints) -> Ints:
    """Return twice the rank from the middle of a row at each grid point, ties at their mean.

    >>> rank_weights(np.array([1, 2, 0, 1])).tolist()
    [-3, 0, 2, 3]
    """
    result: Ints = 2 * np.cumsum(totals) - totals - totals.sum()
    return result


@dataclass(frozen=True, kw_only=True)
class LabelCurves:
    """Noisy positives in public bins, their noisy rank sum, and positives at named thresholds.

    Claim:       pure DP, epsilon, the exact sum of the parts.             [claim: tied-counts]
    Neighbours:  label, by row or by unit of at most k rows.
    Sensitivity: bins, rows by bin and ranks are functions of scores alone. A row of rank u that
                 changes its outcome moves the positives of its own bin by 1 and the sum by 2|u|;
                 the scales are such that both together lose at most 1/k of their epsilon.
    Numerics:    exact: ranks are whole numbers, scales rationals.
    Refuses:     other neighbours; a table of other than 2 * points counts; shares that leave
                 nothing for the counts.
    Reference:   proofs/tied-counts.md; Li, Miklau et al. 2010: the largest column in L1.
    Cost:        that of the draws, half a millisecond per bin.

    >>> from heldout.kernel import price
    >>> one = build(Terms(epsilon=Fraction(1), protection=Protection(neighbours="label"),
    ...                   points=65537, rows=5000))
    >>> one.bins, str(price(one.event()))
    (32, 'epsilon 1')
    """

    epsilon: Fraction
    protection: Protection
    points: int
    rows: int
    bins: int
    area_share: Fraction
    named: tuple[int, ...] = ()
    named_share: Fraction = Fraction(0)
    values: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.protection.only_labels:
            raise ArgumentError("neighbours must be 'label' for bins that are free.")
        if not 0 <= self.area_share < 1 or not 0 <= self.named_share < 1:
            raise ArgumentError(
                "area_share and named_share must be from 0 to below 1. Leave them out."
            )
        check_named(self.named, self.named_share, self.points)
        # The largest scales that a draw can ask for are refused before anything is booked.
        most = self.protection.rows_per_unit / self.counts_epsilon
        DiscreteLaplace(most / (1 - self.area_share), 1, 1)
        if self.area_share:
            DiscreteLaplace(most * max(self.rows, 1) / self.area_share, 1, 1)
        _ = self.named_counts

    @property
    def counts_epsilon(self) -> Fraction:
        """For the counts, and the rank sum with them."""
        return self.epsilon * (1 - self.named_share)

    @cached_property
    def named_counts(self) -> TiedLaplace | None:
        if self.named_share == 0:
            return None
        cells = len(self.named) + 1
        return TiedLaplace.of_labels(
            self.named_share * self.epsilon,
            l1_sensitivity=2 * self.protection.rows_per_unit,
            dimension=2 * cells,
            cells=cells,
            protection=self.protection,
        )

    def event(self) -> Event:
        parts = [Event("weighted-laplace", {"epsilon": self.counts_epsilon})]
        if self.named_counts is not None:
            parts.append(self.named_counts.event())
        return Event.composed(parts)

    def sample(self, sealed: Sealed[Any]) -> TableWithArea:
        table = np.asarray(unseal(sealed), dtype=np.int64)
        if table.shape != (2 * self.points,):
            raise ArgumentError("points must match the score table.")
        by_class = table.reshape(2, self.points)
        totals, positives = by_class.sum(axis=0), by_class[1]
        places = self.places(totals)
        edges, weights = places["edges"], rank_weights(totals)
        scales, sum_scale = self.scales(totals, weights, edges)
        noisy = np.array(
            [
                _with_noise(count, scale)
                for count, scale in zip(
                    np.add.reduceat(positives, edges[:-1]).tolist(), scales, strict=True
                )
            ]
        )
        area = None
        if sum_scale is not None:
            filled = np.flatnonzero(positives)
            pairs = zip(positives[filled].tolist(), weights[filled].tolist(), strict=True)
            # Whole numbers without a largest one; holding the sum to 64 bits moves it no further.
            total = min(max(sum(count * weight for count, weight in pairs), -_MOST), _MOST)
            area = RankSum(noisy=_with_noise(total, sum_scale), noise_scale=sum_scale)
        named = None
        if self.named_counts is not None:
            counts = np.add.reduceat(by_class, [0, *self.named], axis=1)
            named = NamedCounts(
                edges=self.named,
                counts=self.named_counts.sample(Sealed(counts.ravel())).reshape(2, -1),
                scale=self.named_counts.scale,
                tied=True,
            )
        wide = [scale * Fraction(17, 12) for scale in scales]  # a little more than the root of 2
        return TableWithArea(
            negatives=np.add.reduceat(totals, edges[:-1]) - noisy,
            positives=noisy,
            noise=noise_of([wide, wide]),
            area=area,
            named=named,
            rows=int(totals.sum()),
            tied_scales=np.array([_smooth_scale(scale) for scale in scales]),
            values=np.array(self.values, dtype=np.int64) if self.values else None,
            **places,
        )

    def places(self, totals: Ints) -> Mapping[str, Any]:
        """Return cuts, crowded cells, the bins they make, and smaller ones with their rows.

        All of it by the rows' scores, which are public.
        """
        if self.values:
            cuts, heaps = np.array([0, *self.values[1:], self.points]), np.array([], dtype=np.int64)
        else:
            cuts = even_cuts(totals, self.bins)
            least = max(2, int(totals.sum()) // (2 * self.bins))
            heaps = np.flatnonzero(totals >= least)
        named = np.array(self.named, dtype=np.int64)
        edges = np.unique(np.concatenate([cuts, heaps, heaps + 1, named]))
        rows = np.add.reduceat(totals, edges[:-1])
        # A bin without a row tells nothing: it goes with the one below.
        wanted = (rows > 0) | np.isin(edges[:-1], named)
        wanted[0] = True
        edges = np.append(edges[:-1][wanted], self.points)
        alone = [
            int(start + np.flatnonzero(totals[start:end])[0])
            for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
            if np.count_nonzero(totals[start:end]) == 1 and totals[start:end].sum() > 1
        ]
        single = np.array(alone, dtype=np.int64)
        finer = even_cuts(totals, PARTS * self.bins)
        parts = np.unique(np.concatenate([edges, finer, single, single + 1]))
        return {
            "edges": edges,
            "cuts": np.intersect1d(cuts, edges),
            "heaps": single,
            "parts": parts,
            "part_rows": np.add.reduceat(totals, parts[:-1]),
        }

    def scales(
        self, totals: Ints, weights: Ints, edges: Ints
    ) -> tuple[list[Fraction], Fraction | None]:
        """Return those of the noise of each bin's positives, and of the rank sum."""
        of_row = self.counts_epsilon / self.protection.rows_per_unit
        away = np.where(totals > 0, np.abs(weights), 0)
        furthest = int(away.max())
        if self.area_share == 0 or furthest == 0:
            return [1 / of_row] * (len(edges) - 1), None
        scale = furthest / (self.area_share * of_row)
        largest = np.maximum.reduceat(away, edges[:-1]).tolist()
        return [1 / (of_row - most / scale) for most in largest], scale

    def describe(self) -> dict[str, object]:
        named = {} if self.named_counts is None else {"named": self.named_counts.describe()}
        return {
            "name": "heldout",
            "thresholds": "public",
            "bins": self.bins,
            "counts": {"name": "positives with rank sum", "area_share": str(self.area_share)},
            **named,
        }


def _with_noise(value: int, scale: Fraction) -> int:
    return int(DiscreteLaplace(scale, 1, 1).sample(Sealed([value]))[0])


def _smooth_scale(scale: Fraction) -> float:
    """Return the scale of the Laplace law that is as wide as the discrete one."""
    return float(0.5 / np.arcsinh(np.sqrt(0.5) / max(laplace_deviation(scale), 1e-150)))


def even_cuts(totals: Ints, bins: int) -> Ints:
    """Return edges, from 0 to the number of grid points, that divide the rows about evenly.

    >>> even_cuts(np.array([1, 1, 1, 1]), 2).tolist(), even_cuts(np.array([0, 9, 0, 0]), 2).tolist()
    ([0, 2, 4], [0, 2, 4])
    """
    below, rows = np.cumsum(totals), int(totals.sum())
    wanted = [-(-rows * place // bins) for place in range(1, bins)]
    inner = np.searchsorted(below, wanted) + 1
    inner = inner[(inner > 0) & (inner < len(totals))]
    return np.unique(np.concatenate([[0], inner, [len(totals)]])).astype(np.int64)


def build(
    terms: Terms,
    *,
    levels: int | None = None,
    area_share: Rational | None = None,
    named: tuple[int, ...] = (),
    named_share: Rational | None = None,
    values: tuple[int, ...] = (),
) -> LabelCurves:
    """Return the method with parameters from public facts; options are as in `heldout.build`."""
    bought, rows = share_of_named(named, named_share), terms.rows or 0
    if levels is not None:
        levels = Whole(0, 8)(levels, "levels")
    visible = rows * terms.epsilon * (1 - bought) / terms.protection.rows_per_unit
    if levels is None:
        levels = 2 + sum(visible >= least for least in VISIBLE_LEVELS)
    share = AREA_SHARE if area_share is None else exact(area_share, name="area_share")
    return LabelCurves(
        **vars(terms) | {"rows": rows},
        bins=2**levels,
        area_share=share,
        named=named,
        named_share=bought,
        values=values,
    )
