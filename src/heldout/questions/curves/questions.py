"""The question that one noisy score table answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import numpy as np

from heldout.arrays import Floats, Ints
from heldout.data.description import ScoredRows
from heldout.intervals.groups import ByGroup
from heldout.kernel.curves.heldout import (
    AreaBySum,
    Placements,
    RankSum,
    TableWithArea,
)
from heldout.kernel.curves.registry import METHODS, CurveMethod
from heldout.kernel.curves.registry import method as curve_method
from heldout.kernel.door import Drawn, Request
from heldout.kernel.noise.tables import ClassCounts, NoisyTable
from heldout.kernel.ranking.statistic import ScoreTable
from heldout.kernel.statistic import Sealed
from heldout.questions.base import Choice, Numbers, OneOf, Plain, Question, Section
from heldout.questions.curves.bands import uniform
from heldout.questions.curves.release import CurvesByGroup, CurvesRelease
from heldout.questions.groups import By, Divisible
from heldout.questions.quote import Guess, assumed_calibration
from heldout.questions.worst_cases import (
    HIGH,
    LABELS,
    LOW,
    REMOVE,
    REST,
    Pair,
    Rows,
    WorstCase,
    crossings,
    grouped_pair,
    numbers,
    rows,
    spread,
    table_pair,
    unit_pair,
)

if TYPE_CHECKING:
    from heldout.pooling.answer import Pooled
    from heldout.pooling.site import Site

__all__ = ["Curves"]


@dataclass(frozen=True, kw_only=True)
class Curves(Divisible[CurvesRelease, CurvesByGroup]):
    """One score table with noise; ROC, precision-recall, calibration and more are then free.

    `method` may name one of the papers' instead: "laplace", "fixed-space", "recursive-medians" or
    "hierarchical-quantile", with its own options. `thresholds` are those whose confusion matrix
    matters: two thirds of epsilon count the rows between them once more, and the rest is for the
    curves."""

    kind = "curves"
    title = "curves"
    asks = "What do its curves look like?"
    tells = (
        "ROC, precision-recall and calibration curves with bands, read off one noisy table of "
        "scores."
    )
    of = (ScoredRows,)
    replayed = (
        {},
        {"by": "g"},
        {"thresholds": [0.5, 0.25]},
        {"options": {"area_share": "1/2", "levels": 1}},
        {"options": {"levels": 3, "expected_rows": 40}},
        {"options": {"levels": 2, "heap_share": "1/2"}},
        {"options": {"levels": 4, "heap_share": "1/2"}},
        {"epsilon": 60},
        {"method": "laplace", "options": {"thresholds": 4}},
        {"method": "recursive-medians", "options": {"levels": 3}},
        {"method": "fixed-space", "options": {"thresholds": 8, "counts": "dawa"}},
        {"method": "hierarchical-quantile", "options": {"quantiles": 4}},
        {"method": "chen-2016-priroc", "options": {"levels": 2}},
    )
    grouped: ClassVar[type[ByGroup[Any]]] = CurvesByGroup
    draws = 2  # widths hang on where the bins begin
    formerly = ("curves by group",)
    stores = (
        NoisyTable,
        TableWithArea,
        AreaBySum,
        RankSum,
        ClassCounts,
        Placements,
    )
    section = Section(
        title="Curves",
        meaning="One table of noisy counts by score, and all that is read off it: the ROC and the "
        "precision-recall curve, the largest gap between the two rates (KS) and how far "
        "predicted lie from observed shares.",
        weight=120,
        weight_with_curves=66,
        joined_by="auc",
        place=50,
        always=False,
        leads=True,
    )
    section_by_group = Section(
        title="Curves by group",
        meaning="The areas of each declared group's curve, the largest gap between its two rates "
        "(KS) and how far predicted lie from observed shares; how far apart the groups are, and "
        "how often chance would put them so far apart.",
        weight=120,
        place=210,
        always=False,
    )
    method: Annotated[
        str, OneOf(METHODS), "heldout, or a method of the literature to compare with."
    ] = "heldout"
    thresholds: Annotated[
        Any,
        Numbers(),
        "Thresholds that matter most: their counts become nearly as exact as if you asked "
        "for them alone.",
    ] = None
    options: Annotated[Mapping[str, Any], Plain(), "Options of the method, by name."] = field(
        default_factory=dict
    )

    @classmethod
    def joins_report(cls, description: Any, choice: Choice) -> bool:
        return choice.curves

    @classmethod
    def for_report(cls, epsilon: Fraction, choice: Choice) -> Question[object]:
        """Return a table alone where the area and the counts at the threshold stand beside it."""
        if choice.by is not None:
            return By(cls(epsilon=epsilon), choice.by)
        if "auc" not in choice.beside:
            return cls(epsilon=epsilon)
        if "confusion" not in choice.beside or not choice.inside:
            return cls(epsilon=epsilon, options={"area_share": "0"})
        return cls(
            epsilon=epsilon,
            thresholds=[choice.threshold],
            options={"area_share": "0", "named_share": "0"},
        )

    @classmethod
    def pool(cls, sites: Sequence["Site"]) -> "Pooled":
        from heldout.pooling.curves import PooledCurves

        return PooledCurves(sites)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        pairs, dozens = _worst_curves(), rows(spread(60, 0.8, 0.9), spread(60))
        return (
            WorstCase(
                pairs=pairs,
                read=_curve_numbers,
                note="the whole noisy table jointly",
                epsilon="4",
                why="a twentieth is for the bins",
            ),
            WorstCase(
                name="with-area",
                pairs=pairs,
                fields={"options": {"area_share": "1/2", "levels": 1}},
                read=_curve_numbers,
                note="the noisy tables and the sum of influences jointly",
                epsilon="4",
                why="a tenth is for the first table, and a row uses up its part where it moves the "
                "area most",
            ),
            WorstCase(
                name="labels",
                pairs=(
                    table_pair(
                        "an outcome changes at the top",
                        [*REST, (0, 1.0)],
                        [*REST, (1, 1.0)],
                        **LABELS,
                    ),
                    unit_pair(
                        "outcomes of a person's two rows change at the top",
                        [(0, 1.0), (0, 1.0), *REST],
                        [(1, 1.0), (1, 1.0), *REST],
                        **LABELS,
                    ),
                ),
                fields={"options": {"levels": 1}},
                read=_curve_numbers,
                note="only outcomes are secret: noisy positives and their rank sum jointly",
                epsilon="4",
                why="a row spends on its count and on the rank sum",
            ),
            WorstCase(
                name="by-group",
                pairs=(*crossings(dozens), grouped_pair(pairs[1], "a", "b")),
                fields={"by": "g"},
                read=_group_numbers,
                epsilon="4",
                why="a part is for the edges",
            ),
            *(
                WorstCase(
                    name=name,
                    pairs=(*_worst_medians(), *pairs[1:]) if method in _MEDIANS else pairs[1:],
                    fields={"method": method, "options": options},
                    read=_curve_numbers,
                    why=_HALF_UNUSED if name in _BY_CLASS else "spread over several numbers",
                    epsilon="4",
                )
                for name, (method, options) in _SMALL.items()
            ),
        )

    def request(self, about: ScoredRows) -> Request:
        statistic = ScoreTable(score_range=about.score_range)
        mechanism = self._mechanism(about, statistic.points)
        chosen = {name: str(value) for name, value in self.options.items()}
        if self.thresholds is not None:
            chosen["thresholds"] = ", ".join(f"{threshold:g}" for threshold in self.thresholds)
        parameters = {"method": self.method, **chosen, **about.scale_parameters}
        return Request("curves", statistic, mechanism, parameters)

    def request_by_group(self, about: ScoredRows, by: str | tuple[str, ...]) -> Request:
        asked = super().request_by_group(about, by)
        assert isinstance(asked, Request)
        return replace(asked, name="curves by group")

    def _mechanism(self, about: ScoredRows, points: int) -> CurveMethod:
        return curve_method(
            self.method,
            epsilon=self.price,
            protection=about.protection,
            points=points,
            rows=about.rows,
            named=self._named(about),
            **self._declared(about),
            **self.options,
        )

    def _declared(self, about: ScoredRows) -> dict[str, Any]:
        """The grid points of declared scores, which the papers' methods make nothing of."""
        if not about.score_values or self.method != "heldout":
            return {}
        return {"values": about.declared_points}

    def _named(self, about: ScoredRows) -> tuple[int, ...]:
        """The grid points of the named thresholds."""
        given = [about.threshold(threshold) for threshold in self.thresholds or ()]
        return about.grid_points(map(about.counted_threshold, given))

    def read(self, drawn: Drawn) -> CurvesRelease:
        return CurvesRelease(drawn)

    def assumes(self, about: ScoredRows, guess: Guess) -> str:
        otherwise = (
            "the intervals of calibration error, slope and intercept can be four times as wide"
        )
        return assumed_calibration(about, guess, otherwise)

    def typical(self, about: ScoredRows, guess: Guess) -> NoisyTable:
        """The noise of made-up tables, which is no secret."""
        positives, negatives = guess.counts
        points = ScoreTable(score_range=about.score_range).points
        shares = guess.scores(points, probabilities=about.are_probabilities)
        counts = [
            _sampled(share, size, stream)
            for share, size, stream in zip(shares, (negatives, positives), (61, 62), strict=True)
        ]
        made: NoisyTable = self.request(about).mechanism.sample(Sealed(np.concatenate(counts)))
        return made

    def typical_release(self, about: ScoredRows, guess: Guess) -> CurvesRelease | None:
        release = super().typical_release(about, guess)
        if release is not None:
            release.effort = FORECAST
        return release


FORECAST: Final = {"chains": 32, "warm": 16, "steps": 8}
"""Draws that are enough for a forecast of widths."""
MOST_SAMPLED: Final = 10**6
"""Rows; of more, those of a sample lie nearly as the population's."""


def _sampled(share: Floats, rows: int, stream: int) -> Ints:
    """Return how many of so many rows lie in each cell: a sample, as uneven as chance has it."""
    below = np.cumsum(share)
    if rows > MOST_SAMPLED:
        return np.diff(np.round(np.append(0, below) * rows)).astype(np.int64)
    places = np.searchsorted(below, uniform(stream, rows) * below[-1], side="right")
    return np.bincount(np.minimum(places, len(share) - 1), minlength=len(share))


# --- audited -------------------------------------------------------------------------------------

# Very few thresholds: what a row can do is the same, but it is not spread over many numbers, where
# no event could show it.
_SMALL: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "laplace": ("laplace", {"thresholds": 1}),
    "fixed-space": ("fixed-space", {"thresholds": 2}),
    "recursive-medians": ("recursive-medians", {"levels": 1}),
    "hierarchical-quantile": ("hierarchical-quantile", {"quantiles": 2}),
    **{
        f"{counts}-counts": ("fixed-space", {"thresholds": 2, "counts": counts, "split": "joint"})
        for counts in ("flat", "wavelet", "hierarchical", "dawa")
    },
    # The papers' own, with their constants.
    "stoddard-2014-laplace": ("stoddard-2014-laplace", {"thresholds": 1}),
    "stoddard-2014-priroc": ("stoddard-2014-priroc", {"levels": 1}),
    "chen-2016-priroc": ("chen-2016-priroc", {"levels": 1}),
    "chen-2016-priroc-fix": ("chen-2016-priroc-fix", {"thresholds": 2}),
}
_BY_CLASS: Final = (
    "fixed-space",
    "recursive-medians",
    "hierarchical-quantile",
    "stoddard-2014-priroc",
    "chen-2016-priroc",
    "chen-2016-priroc-fix",
)
_HALF_UNUSED: Final = "charges each class, and a row is in one: half is spent on nothing"
_MEDIANS: Final = ("recursive-medians", "stoddard-2014-priroc", "chen-2016-priroc")
_GRID: Final = np.array([0.25, 0.5, 0.75])


def _worst_curves() -> tuple[Pair, ...]:
    """Return pairs where the table of a curve, or what is read off it, moves most."""
    few, dozens = spread(8), spread(60, 0.8, 0.9)
    return (
        table_pair("a row across one threshold", [*REST, (1, 0.49)], [*REST, (1, 0.51)]),
        table_pair("a row across all thresholds", [*REST, (1, 0.0)], [*REST, (1, 1.0)]),
        table_pair("a label changes on the edge", [*REST, (0, 0.5)], [*REST, (1, 0.5)]),
        table_pair("a label changes at the top", [*REST, (0, 1.0)], [*REST, (1, 1.0)]),
        table_pair(
            "the second positive is replaced", rows([HIGH, LOW], few), rows([LOW], [*few, HIGH])
        ),
        table_pair("a row leaves", [*REST, (1, 1.0)], REST, **REMOVE),
        table_pair(
            "one of dozens changes its label at the top",
            rows([*dozens, 1.0], spread(60)),
            rows(dozens, [*spread(60), 1.0]),
        ),
    )


def _worst_medians() -> tuple[Pair, ...]:
    """Return pairs where the cuts of methods by medians move most."""
    ends, quarters = [0.0] * 4 + [1.0] * 4, [0.25] * 3 + [0.75] * 3
    return (
        table_pair("a median on the edge", rows(ends, [0.0]), rows(ends, [1.0])),
        table_pair(
            "a row across all medians",
            rows(quarters, [0.25, 0.75, 0.0]),
            rows(quarters, [0.25, 0.75, 1.0]),
        ),
    )


_TABLE: Final = ("edges", "negatives", "positives", "rows")


def _table_numbers(noisy: Mapping[str, Any]) -> list[float]:
    """Return a curve as few numbers, whatever its bins: edges, counts above points and at ends."""
    edges = np.asarray(noisy["edges"], dtype=float) / noisy["edges"][-1]
    values = [float(len(edges)), *np.quantile(edges, _GRID).tolist()]
    for counts in (np.asarray(noisy[name], dtype=float) for name in ("negatives", "positives")):
        above = np.append(np.cumsum(counts[::-1])[::-1], 0.0)
        values += [float(above[0]), *np.interp(_GRID, edges, above).tolist()]
        ends = np.append(counts[:2], counts[-2:]) if len(counts) > 4 else counts
        values += [*ends.tolist(), *[0.0] * (4 - len(ends))]
    beside = (numbers(part) for name, part in noisy.items() if name not in _TABLE)
    return values + [x for part in beside for x in part or [0.0]]  # an area may not be bought


def _gone_and_come(pair: Pair) -> tuple[Rows, Rows]:
    """Return the rows that differ, which an attacker does not know, and those that do not."""
    left = list(zip(pair.second["y"], pair.second["p"], strict=True))
    gone: Rows = []
    others: Rows = []
    for row in zip(pair.first["y"], pair.first["p"], strict=True):
        (others if row in left else gone).append(row)
        if row in left:
            left.remove(row)
    return gone + left, others


def _curve_numbers(pair: Pair, release: Any) -> list[float]:
    """Return also the cells of rows that differ, for an attacker who knows the others."""
    noisy = release._noisy()
    edges = np.asarray(noisy["edges"], dtype=float) / noisy["edges"][-1]
    by_class = [np.asarray(noisy[name], dtype=float) for name in ("negatives", "positives")]
    differ, others = _gone_and_come(pair)

    def cell(score: float) -> int:
        place = int(np.searchsorted(edges, score * (1 - 1e-6), side="right")) - 1
        return min(max(place, 0), len(edges) - 2)

    values = []
    for label, score in differ:
        own = cell(score)
        known = sum(y == label and cell(p) == own for y, p in others)
        values.append(float(by_class[label][own]) - known)
    return values + _table_numbers(noisy)


def _group_numbers(pair: Pair, release: Any) -> list[float]:
    return [x for table in release._noisy().values() for x in _table_numbers(table)]
