"""Made-up rows that are like the private ones: sampled from noisy tables of one and two columns.

Columns are cut into public bins. A tree links every column to one that it depends on most, chosen
with noise; rows are made down the tree. So what two linked columns tell of one another is there,
and the rest is there only as far as it follows from that.
"""

import csv
import hashlib
import io
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations, pairwise
from operator import methodcaller
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import numpy as np

from heldout.arguments import Columns as ColumnNames
from heldout.arguments import no_such, shown, visible
from heldout.arrays import Floats, Ints
from heldout.data import Dataset
from heldout.data.description import Description, MeasuredRows, ValueRange
from heldout.data.sql import Columns, count_passed
from heldout.data.two_tables import TruthRows
from heldout.errors import ArgumentError
from heldout.intervals.measure import Measure, Release
from heldout.kernel.door import Answers, Booked, Drawn, Staged, Step
from heldout.kernel.loss import Loss, Rational, show
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import laplace
from heldout.kernel.noise.disjoint import Disjoint
from heldout.kernel.noise.selection import PermuteAndFlip
from heldout.kernel.statistic import Statistic, tally
from heldout.questions.base import Exact, Question, Whole
from heldout.questions.separability.questions import Separability
from heldout.questions.separability.separator import COLUMNS as SINGLE
from heldout.questions.separability.separator import PAIRS, SeparabilityRelease, called_true
from heldout.questions.worst_cases import PERSON, REMOVE, Pair, WorstCase

__all__ = ["PrivateTwin", "TwinRelease"]

ONES, LINKS = Fraction(1, 4), Fraction(1, 4)
"""Of epsilon: for tables of one column, and for which columns are linked; the rest is for tables of
two. After McKenna, Miklau and Sheldon 2021, who give each a third."""
MOST_COLUMNS: Final = 30
MOST_ROWS: Final = 10**7
"""A noisy count beyond it says that noise is all there is: nothing may grow with it."""
LEAST = Fraction(1, 1000)
"""Of a separability's price: so its noise can be drawn whatever the twin is like. Less tells
nothing anyway."""
SEPARATORS = {sees: f"separability by {sees}" for sees in (SINGLE, PAIRS)}
"""The steps of a separability, by what they see."""
Link = tuple[int, int]


@dataclass(frozen=True)
class Cells:
    """The public bins of a column: the place of a value, and a value of a place."""

    name: str
    place: int
    edges: tuple[float, ...]
    """Where bins meet, without the ends."""
    ends: tuple[float, float]
    words: tuple[str, ...] = ()
    """The word of each bin, for a column of words."""
    whole: bool = False

    @classmethod
    def of(cls, name: str, place: int, declared: ValueRange, bins: int, whole: bool) -> "Cells":
        low, high = declared.ends
        if declared.words:
            middles = tuple((a + b) / 2 for a, b in pairwise(declared.named))
            return cls(name, place, middles, (low, high), tuple(declared.named.values()))
        if whole:
            first, last = math.ceil(low), math.floor(high)
            count = min(bins, last - first + 1)
            steps = [first + (last - first + 1) * i / count - 0.5 for i in range(1, count)]
            edges = tuple(math.floor(step + 0.5) - 0.5 for step in steps)
            return cls(name, place, edges, (first - 0.5, last + 0.5), whole=True)
        inner = tuple(low + (high - low) * i / bins for i in range(1, bins))
        return cls(name, place, inner, (low, high))

    @property
    def size(self) -> int:
        return len(self.edges) + 1

    def sql(self) -> str:
        """Return the bin of a row's value, from 0."""
        return count_passed(f"value_{self.place}", self.edges)

    def value(self, cell: int, share: float) -> object:
        """Return a value of a bin: evenly spread within it, by a share from 0 to 1."""
        if self.words:
            return self.words[cell]
        borders = (self.ends[0], *self.edges, self.ends[1])
        low, high = borders[cell], borders[cell + 1]
        number = low + (high - low) * share
        if not self.whole:
            return float(f"{number:.6g}")
        return int(min(max(math.floor(number + 0.5), math.ceil(low)), math.floor(high)))


# --- Tables of one and of two columns ------------------------------------------------------------


@dataclass(frozen=True)
class Tables(Statistic[Ints]):
    """Rows by the bins of one column or of two, for several of them, one table after the other.

    Claim:       L1 sensitivity 1 a table and row that leaves or arrives.      [claim: twin]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: a row is counted in one cell of each table.
    Numerics:    exact integers; values and edges compare as doubles.
    Refuses:     nothing.
    Reference:   proofs/twin.md.
    Cost:        one scan; O(rows) memory.
    """

    columns: tuple[Cells, ...]
    wanted: tuple[tuple[int, ...], ...]
    """The columns of each table."""
    claim: ClassVar[str] = "twin"
    shown_by: ClassVar[str | None] = (
        "tests/questions/test_twin.py"
        "::test_no_neighbours_move_tables_and_scores_further_than_claimed_and_some_do_as_far"
    )

    @property
    def size(self) -> int:
        return sum(math.prod(self.columns[at].size for at in table) for table in self.wanted)

    def body(self) -> str:
        cells = ", ".join(f"{column.sql()} AS c_{at}" for at, column in enumerate(self.columns))
        names = ", ".join(f"c_{at}" for at in range(len(self.columns)))
        inner = f"(SELECT {cells} FROM evaluated) AS binned"
        return f"SELECT {names}, count(*) AS n\nFROM {inner}\nGROUP BY {names}"

    def read(self, columns: Columns) -> Ints:
        return np.concatenate([self._table(columns, table).ravel() for table in self.wanted])

    def _table(self, columns: Columns, table: tuple[int, ...]) -> Ints:
        places = [(columns[f"c_{at}"], self.columns[at].size) for at in table]
        counts = tally(columns["n"], *places)[:-1]
        return counts.reshape([self.columns[at].size for at in table])

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved * len(self.wanted)


@dataclass(frozen=True)
class LinkScores(Tables):
    """Scores how far rows by two columns lie from what independent columns would give.

    The score of a pair is the sum over cells of |rows - expected|; what is expected is a whole
    number that was computed from released tables.

    Claim:       a score moves by at most 1 per row that leaves or arrives.    [claim: twin]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: one cell of a pair's table moves by 1 for each such row, and the score by no more.
    Numerics:    exact integers.
    Refuses:     nothing.
    Reference:   proofs/twin.md; McKenna, Miklau and Sheldon 2021, section 3.
    Cost:        one scan; O(rows) memory.
    """

    expected: tuple[tuple[int, ...], ...] = ()
    """Rows of each cell, for each pair."""
    shown_by: ClassVar[str | None] = Tables.shown_by

    def read(self, columns: Columns) -> Ints:
        scores = [
            int(np.abs(self._table(columns, pair).ravel() - np.array(own)).sum())
            for pair, own in zip(self.wanted, self.expected, strict=True)
        ]
        return np.array(scores, dtype=np.int64)

    def sensitivity(self, protection: Protection) -> int:
        return protection.rows_moved


# --- What is asked -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TwinPlan:
    """Ask for tables of one column, then for links, then for tables of the linked columns.

    Where it has a price, a separability of the rows made of these is asked last.

    Claim:       pure DP, epsilon and the separability's price, the exact sum of the steps.
                                                                                [claim: twin]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows. With a
                 separability: replace-one by row.
    Sensitivity: the steps': `Tables`, `LinkScores`, and those of `Separability`.
    Numerics:    exact.
    Refuses:     an epsilon whose noise cannot be drawn, before anything is booked.
    Reference:   proofs/twin.md.
    Cost:        one scan a step.
    """

    columns: tuple[Cells, ...]
    epsilon: Fraction
    """Of the tables and links."""
    protection: Protection
    rows: int | None
    separability: Fraction = Fraction(0)
    """The price of the separability; 0 if it is not asked."""

    @property
    def links(self) -> int:
        return len(self.columns) - 1

    @property
    def ones(self) -> Tables:
        return Tables(self.columns, tuple((at,) for at in range(len(self.columns))))

    def _noise(self, share: Fraction, statistic: Tables) -> DiscreteLaplace:
        return laplace(statistic, self.epsilon * share, self.protection)

    @cached_property
    def chooser(self) -> PermuteAndFlip:
        return PermuteAndFlip(
            self.epsilon * LINKS / max(self.links, 1),
            sensitivity=self.protection.rows_moved,
            monotone=False,
        )

    def shares(self, answers: Answers) -> list[Floats]:
        """Return the shares of each column's bins, as released."""
        borders = np.cumsum([column.size for column in self.columns])[:-1]
        tables = np.split(np.asarray(answers["ones"], dtype=float), borders)
        count = self.count(answers)
        return [nearest_table(table, count) / count for table in tables]

    def count(self, answers: Answers) -> int:
        """Return the number of rows: public, or as released."""
        if self.rows is not None:
            return self.rows
        total = sum(int(cell) for cell in answers["ones"])
        return min(max(total // len(self.columns), 1), MOST_ROWS)

    def tree(self, answers: Answers) -> list[Link]:
        """Return the links chosen so far."""
        chosen: list[Link] = []
        for step in range(self.links):
            name = f"link {step}"
            if name not in answers:
                break
            chosen.append(self.candidates(chosen)[int(answers[name][0])])
        return chosen

    def candidates(self, chosen: Sequence[Link]) -> list[Link]:
        """Return the pairs that would link two parts that are not linked yet."""
        part = list(range(len(self.columns)))
        for first, second in chosen:
            old, new = part[first], part[second]
            part = [new if own == old else own for own in part]
        return [
            pair for pair in combinations(range(len(part)), 2) if part[pair[0]] != part[pair[1]]
        ]

    def link_step(self, answers: Answers) -> Step:
        shares, count = self.shares(answers), self.count(answers)
        pairs = self.candidates(self.tree(answers))
        expected = tuple(
            tuple(int(cell) for cell in np.rint(np.outer(shares[a], shares[b]).ravel() * count))
            for a, b in pairs
        )
        return Step(LinkScores(self.columns, tuple(pairs), expected), self.chooser)

    def pairs(self, answers: Answers) -> Tables:
        return Tables(self.columns, tuple(self.tree(answers)))

    def _pairs_noise(self, size: int) -> DiscreteLaplace:
        return DiscreteLaplace.for_epsilon(
            self.epsilon * (1 - ONES - LINKS),
            l1_sensitivity=self.protection.rows_moved * self.links,
            dimension=size,
        )

    def _pairs_step(self, answers: Answers) -> Step:
        statistic = self.pairs(answers)
        return Step(statistic, self._pairs_noise(statistic.size))

    def staged(self, parameters: Mapping[str, Any]) -> Staged:
        """Return the request that the door books and draws."""
        steps = {"ones": Booked.of(Step(self.ones, self._noise(ONES, self.ones)))}
        for step in range(self.links):
            steps[f"link {step}"] = Booked(self.chooser.event(), self.link_step)
        steps["pairs"] = Booked(self._pairs_noise(1).event(), self._pairs_step)
        if self.separability:
            half = Disjoint(self.separability / 2, 1, 1, 0, (1, 2), called_true).event()
            for sees, name in SEPARATORS.items():
                steps[name] = Booked(half, partial(self._separator, sees))
        return Staged(
            name="twin",
            steps=steps,
            parameters=parameters,
            claim="twin",
            description={"name": "noisy tables along a tree", "columns": len(self.columns)},
            reading=self,
            view=methodcaller("beside_copy") if self.separability else None,
        )

    def made(self, answers: Answers, count: int) -> dict[str, list[Any]]:
        """Return made-up rows by column: the same ones each time."""
        cells = self._cells(answers, count)
        return {
            column.name: [
                column.value(int(cell), share)
                for cell, share in zip(cells[at], _even(f"within {at}", count), strict=True)
            ]
            for at, column in enumerate(self.columns)
        }

    def _cells(self, answers: Answers, count: int) -> dict[int, Ints]:
        """Return the bins of each row, column by column down the tree."""
        shares, left = self.shares(answers), self.tree(answers)
        tables = self._tables(answers)
        known = {0: _placed(shares[0], _even("column 0", count))}
        while len(known) < len(self.columns):
            first, second = next(pair for pair in left if (pair[0] in known) != (pair[1] in known))
            table = tables[first, second] if first in known else tables[first, second].T
            given, new = (first, second) if first in known else (second, first)
            place, cells = _even(f"column {new}", count), np.zeros(count, dtype=np.int64)
            for cell in range(table.shape[0]):
                here = known[given] == cell
                own = table[cell] if table[cell].sum() > 0 else shares[new]
                cells[here] = _placed(own / own.sum(), place[here])
            known[new] = cells
        return known

    def _tables(self, answers: Answers) -> dict[Link, Floats]:
        shares, count = self.shares(answers), self.count(answers)
        statistic, noisy = self.pairs(answers), np.asarray(answers["pairs"], dtype=float)
        variance = 2 * self._pairs_noise(statistic.size).float_scale ** 2
        tables, start = {}, 0
        for first, second in self.tree(answers):
            expected = count * np.outer(shares[first], shares[second])
            own = noisy[start : start + expected.size].reshape(expected.shape)
            tables[first, second] = nearest_table(drawn_to(expected, own, variance), count)
            start += expected.size
        return tables

    def separated(self, answers: Answers) -> tuple[Separability, TruthRows]:
        """Return the question how well the twin's rows are told from the true ones, and of what."""
        made = self.made(answers, self.count(answers))
        numbers, texts = (
            {
                column.name: made[column.name]
                for column in self.columns
                if bool(column.words) == words
            }
            for words in (False, True)
        )
        copy = {"numbers": numbers, "texts": texts}
        truth = TruthRows(
            name="truth",
            protection=self.protection,
            rows=self.rows,
            numbers=tuple(numbers),
            texts=tuple(texts),
        )
        both = Separability(epsilon=self.separability, privatized=copy)
        if isinstance(both.request(truth), Staged):
            return both, truth
        # No two columns of the twin vary, so there are no pairs; what was booked for them is lost.
        return replace(both, epsilon=self.separability / 2, sees=SINGLE), truth

    def _separator(self, sees: str, answers: Answers) -> Step:
        asked, truth = self.separated(answers)
        request = asked.request(truth)
        if isinstance(request, Staged):
            return request.steps[sees].choose({})
        return Step(request.statistic, request.mechanism)


def nearest_table(noisy: Floats, total: float) -> Floats:
    """Return the nearest table whose cells are not negative and add up to `total`.

    >>> nearest_table(np.array([7.0, 4.0, -2.0]), 9.0)
    array([6., 3., 0.])
    """
    falling = np.sort(noisy, axis=None)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    nearest: Floats = np.maximum(noisy - excess[np.nonzero(falling > excess)[0][-1]], 0.0)
    return nearest


def drawn_to(expected: Floats, noisy: Floats, variance: float) -> Floats:
    """Draw noisy counts to what is expected of independent columns, as far as noise may explain it.

    True counts differ from `expected` by a share of it. How large that share is follows from the
    noisy counts by maximum likelihood, as their noise is known. So an empty corner of a large table
    stays empty, where noise alone would fill it, and what is beyond noise is kept.
    """
    apart, squares = (noisy - expected) ** 2, expected**2

    def slope(spread: float) -> float:
        of_count = spread * squares + variance
        return float((squares * (apart - of_count) / of_count**2).sum())

    from scipy.optimize import brentq

    filled = squares > 0
    spread = brentq(slope, 0.0, (apart[filled] / squares[filled]).max()) if slope(0.0) > 0 else 0.0
    of_truth = spread * squares
    return expected + of_truth / (of_truth + variance) * (noisy - expected)


# --- What people read ----------------------------------------------------------------------------


class TwinRelease(Release):
    """Made-up rows with the tables of the private ones, as far as they were released."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        self._plan: TwinPlan = drawn.request.reading

    @property
    def links(self) -> list[tuple[str, str]]:
        """Return the pairs of columns that the rows are made along."""
        names = [column.name for column in self._plan.columns]
        return [(names[a], names[b]) for a, b in self._plan.tree(self._drawn.values)]

    @property
    def answers_badly(self) -> list[str]:
        """Return what these rows should not be asked."""
        names = [column.name for column in self._plan.columns]
        apart = [
            f"{visible(a)} and {visible(b)}"
            for a, b in combinations(names, 2)
            if (a, b) not in self.links
        ]
        pairs = [f"How {' or '.join(apart[:5])} go together, beyond their links."] if apart else []
        return [
            *pairs,
            "What three columns or more do together, such as an interaction.",
            "What happens within a bin, and how far tails reach.",
            "How sure a conclusion is: the rows are made up, so their number means nothing.",
        ]

    def rows(self, count: int | None = None) -> dict[str, list[Any]]:
        """Return made-up rows by column: the same ones each time, as many as there are in all."""
        plan, values = self._plan, self._drawn.values
        count = plan.count(values) if count is None else Whole(1, MOST_ROWS)(count, "count")
        return plan.made(values, count)

    @cached_property
    def separability(self) -> SeparabilityRelease | None:
        """Return how well these rows are told from the true ones; None if it was not asked.

        A lower bound, booked with the tables.
        """
        plan, values = self._plan, self._drawn.values
        if not plan.separability:
            return None
        asked, truth = plan.separated(values)
        request = asked.request(truth)
        drawn: Any = {sees: values[name] for sees, name in SEPARATORS.items()}
        if not isinstance(request, Staged):
            drawn = drawn[SINGLE]
        terms = plan.protection.terms(Loss.pure(plan.separability))
        own = replace(self._drawn, request=request, values=drawn, terms=terms)
        return asked.release(own)

    def to_csv(self, count: int | None = None) -> str:
        """Return the rows as the text of a CSV file."""
        rows, text = self.rows(count), io.StringIO()
        writer = csv.writer(text)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
        return text.getvalue()

    def save(self, place: str | os.PathLike[str]) -> Path:
        """Write the rows to a .csv file."""
        from heldout.drawing.page import write_file

        path = Path(place)
        if path.suffix.lower() != ".csv":
            raise ArgumentError(f"path must end in .csv, got {shown(path.name)}.")
        write_file(path, self.to_csv())
        return path

    @property
    def measures(self) -> dict[str, Measure]:
        links = float(len(self.links))
        measure = Measure(
            links,
            name="links between columns",
            terms=self.terms,
            noise_interval=lambda level: (links, links),
            interval=lambda level: (links, links),
            whole=True,
        )
        apart = {} if self.separability is None else self.separability.measures
        scores = {name: own for name, own in apart.items() if name.startswith("separability")}
        return {measure.name: measure, **scores}

    def plotted(self) -> dict[str, Measure]:
        return {}

    def finding(self, level: float = 0.95) -> str | None:
        linked = ", ".join(f"{visible(a)} with {visible(b)}" for a, b in self.links)
        made = f"Rows are made along these links: {linked}."
        return made if self.separability is None else f"{made} {self._told_apart(level)}"

    def _told_apart(self, level: float) -> str:
        from heldout.drawing.words import spread

        assert self.separability is not None
        value, interval, _ = spread(self.separability.headline, level)
        return (
            f"Separability {value} ({interval}): how much better than chance a classifier tells "
            f"them from the true rows. {self.separability.sees}"
        )

    def as_dict(self, level: float = 0.95) -> dict[str, Any]:
        more: dict[str, Any] = {
            "links": [list(link) for link in self.links],
            "answers_badly": self.answers_badly,
        }
        if self.separability is not None:
            more["separability"] = self.separability.as_dict(level)
        return super().as_dict(level) | more

    def _noisy(self) -> object:
        return {
            name: list(map(int, values))
            for name, values in self._drawn.values.items()
            if name not in SEPARATORS.values()  # which the separability shows
        }


def _even(name: str, count: int) -> Floats:
    """Return public numbers from 0 to 1, spread like uniform ones, the same for a name always."""
    blocks = (
        hashlib.blake2b(f"{name} {block}".encode(), digest_size=64).digest()
        for block in range(-(-count // 8))
    )
    whole = np.frombuffer(b"".join(blocks), dtype="<u8")[:count]
    shares: Floats = (whole >> np.uint64(11)) / 2**53
    return shares


def _placed(shares: Floats, where: Floats) -> Ints:
    """Return the cells in which numbers from 0 to 1 fall, cells being as wide as their shares."""
    cells: Ints = np.searchsorted(np.cumsum(shares)[:-1], where, side="right")
    return cells


# --- The question --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PrivateTwin(Question[TwinRelease]):
    """Made-up rows from noisy tables of one and two columns."""

    kind = "private-twin"
    title = "twin"
    asks = "Are there made-up rows like these to work with?"
    tells = "Made-up rows, sampled from noisy tables of one and two columns."
    of = (MeasuredRows,)
    cannot_pool = "a twin is made of one site's tables"
    writes = (".csv",)
    example: ClassVar[Mapping[str, Any]] = {"bins": 2}
    replayed = ({}, {"separability": "1/4"})
    bins: Annotated[int, Whole(2, 512), "How many bins a numeric column has."] = 10
    whole: Annotated[
        Any, ColumnNames(), "Columns that hold whole numbers, such as age, or 0 and 1."
    ] = None

    separability: Annotated[
        Rational | None,
        Exact(),
        "The share of epsilon, such as 1/4, that buys a lower bound on how well a classifier tells "
        "these rows from the true ones.",
    ] = None
    takes_long = True
    """A separator is trained in as many steps as rows need."""

    @classmethod
    def why_not(cls, about: Description) -> str | None:
        why = super().why_not(about)
        columns = len(about.values) if isinstance(about, MeasuredRows) else 0
        if why is None and not 2 <= columns <= MOST_COLUMNS:
            why = f"it needs 2 to {MOST_COLUMNS} declared columns"
        return why

    def plan(self, about: MeasuredRows) -> TwinPlan:
        """Return what is asked of the rows, from public facts."""
        whole = (self.whole,) if isinstance(self.whole, str) else tuple(self.whole or ())
        for name in whole:
            if name not in about.values:
                raise ArgumentError(no_such("declared column", name, list(about.values)))
        columns = tuple(
            Cells.of(name, at, declared, self.bins, name in whole)
            for at, (name, declared) in enumerate(about.values.items())
        )
        share = Fraction(0) if self.separability is None else Fraction(self.separability)
        if share:
            self._check_share(share, about)
        return TwinPlan(
            columns=columns,
            epsilon=self.price * (1 - share),
            protection=about.protection,
            rows=about.rows,
            separability=self.price * share,
        )

    def _check_share(self, share: Fraction, about: MeasuredRows) -> None:
        if share >= 1 or self.price * share < LEAST:
            raise ArgumentError(
                "separability must be a share of epsilon, less than 1 and worth at least epsilon "
                f"{show(LEAST)}, got {show(share)}. Try 1/4."
            )
        if about.rows is None or about.rows < 2:
            raise ArgumentError(
                "separability needs a public number of rows, at least two: replace-one neighbours "
                "without a unit. Leave it out, and ask the question 'separability' of the finished "
                "rows."
            )

    def request(self, about: MeasuredRows) -> Staged:
        parameters: dict[str, Any] = {"bins": self.bins, "columns": list(about.values)}
        if self.separability is not None:
            parameters["separability"] = show(Fraction(self.separability))
        return self.plan(about).staged(parameters)

    def read(self, drawn: Drawn) -> TwinRelease:
        return TwinRelease(drawn)

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        why = "a row moves a cell of every table, of which most are far from their ends"
        return (WorstCase(pairs=_pairs(), make=_table, why=why, epsilon="4"),)


# --- audited -------------------------------------------------------------------------------------


def _table(content: Any, options: Mapping[str, Any]) -> Dataset:
    return Dataset(content, values={"a": (0, 1), "b": (0, 1)}, name="neighbour", **options)


def _pairs() -> tuple[Pair, ...]:
    others = [(0.1, 0.2), (0.9, 0.8), (0.2, 0.9), (0.8, 0.8), (0.3, 0.1)]

    def pair(name: str, first: Any, second: Any, **options: Any) -> Pair:
        def of(own: Any) -> dict[str, Any]:
            content = [*own, *others]
            people = [*[0] * len(own), *range(1, len(others) + 1)]
            columns = {"a": [a for a, _ in content], "b": [b for _, b in content]}
            return {**columns, "u": people, "k": list(range(len(content)))}

        return Pair(name, of(first), of(second), options)

    return (
        pair("a row goes to the opposite corner", [(0.0, 0.0)], [(1.0, 1.0)]),
        pair("a row leaves", [(1.0, 1.0)], [], **REMOVE),
        pair("two rows of a person change", [(0.0, 0.0)] * 2, [(1.0, 1.0)] * 2, **PERSON),
    )
