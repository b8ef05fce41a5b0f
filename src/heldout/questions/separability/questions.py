"""The question how well private rows can be distinguished from public, privatized ones."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Final

import numpy as np

from heldout.arguments import shown
from heldout.arrays import Bools, Floats, Ints
from heldout.data.two_tables import Table, Truth, TruthRows, names_of, number_array
from heldout.errors import ArgumentError
from heldout.kernel.door import Booked, Drawn, Request, Staged, Step
from heldout.kernel.noise.disjoint import Disjoint
from heldout.questions import Question
from heldout.questions.base import OneOf, Rule
from heldout.questions.separability.separator import (
    COLUMNS,
    PAIRS,
    Recipe,
    SeparabilityRelease,
    Separated,
    Separator,
    SignProducts,
    Signs,
    called_true,
    columns_for,
    power_of_two,
    with_constant,
)
from heldout.questions.separability.tuned import FLATTEST, STEEPEST
from heldout.questions.worst_cases import Column, Pair, WorstCase, declare_rows, numbers

__all__ = ["Separability", "as_columns"]

BOTH: Final = "both"
PARTS = ("numbers", "texts")


def as_columns(table: Table) -> dict[str, Any]:
    """A public table as plain data: what the question holds of it."""
    return {"numbers": table.numbers, "texts": table.texts}


Cells = tuple[str | float | None, ...]
Plain = dict[str, dict[str, Cells]]


@dataclass(frozen=True)
class Columns(Rule):
    """Public columns of one length by name, `numbers` and `texts` apart; None where missing."""

    takes_several: ClassVar[bool] = True
    takes_file: ClassVar[bool] = True

    def __call__(self, value: Any, name: str) -> Plain:
        plain = isinstance(value, Mapping) and set(value) <= set(PARTS)
        if not plain or not all(isinstance(entry, Mapping) for entry in value.values()):
            raise ArgumentError(
                f"{name} must be {{'numbers': {{...}}, 'texts': {{...}}}}: columns by name."
            )
        try:
            table = {
                part: {str(key): _cells(cells, part) for key, cells in value.get(part, {}).items()}
                for part in PARTS
            }
        except (TypeError, ValueError):
            raise ArgumentError(f"{name} must hold numbers and texts in lists.") from None
        lengths = {len(cells) for columns in table.values() for cells in columns.values()}
        if len(lengths) != 1 or min(lengths) < 2:
            raise ArgumentError(f"{name} must have columns of one length, of two rows at least.")
        return table

    def from_words(self, words: Sequence[str], name: str) -> Plain:
        raise ArgumentError(f"{name} must be sent as columns: no file is opened by its name here.")

    def from_cells(self, cells: Mapping[str, Sequence[str]], about: TruthRows, name: str) -> Plain:
        """Take the columns that the truth has too, as numbers or texts by what it says of them."""
        table: dict[str, dict[str, list[Any]]] = {
            part: {
                column: list(cells[column]) for column in getattr(about, part) if column in cells
            }
            for part in PARTS
        }
        if not any(table.values()):
            declared = ", ".join(map(shown, (*about.numbers, *about.texts)))
            raise ArgumentError(f"The copy has none of the columns to compare: {declared}.")
        for column, texts in table["numbers"].items():
            table["numbers"][column] = [_number(text, column) for text in texts]
        for column, texts in table["texts"].items():
            table["texts"][column] = [text or None for text in texts]
        return self(table, name)

    def from_command(self, words: Sequence[str], name: str) -> Plain:
        """Read a file, such as `copy.csv without=id,name codes=area`."""
        from heldout.questions.separability.score import public_table

        file, *rest = words
        options = dict(word.partition("=")[::2] for word in rest)
        if not set(options) <= {"without", "codes"} or not all(options.values()):
            raise ArgumentError(f"{name} must look like copy.csv without=id,name codes=area.")
        table = public_table(
            file,
            ignore=names_of(options.get("without"), name=name),
            categorical=names_of(options.get("codes"), name=name),
        )
        return self(as_columns(table), name)

    def schema(self) -> dict[str, Any]:
        cells = {"type": "object", "additionalProperties": {"type": "array"}}
        return {"type": "object", "properties": dict.fromkeys(PARTS, cells)}


def _number(text: str, column: str) -> float | None:
    """Return a cell of a file as a number; None where it is empty."""
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(
            f"The column {shown(column)} of the copy must hold numbers, got {shown(text)}."
        ) from None


def _cells(cells: Any, part: str) -> Cells:
    if part == "texts":
        return tuple(None if cell is None else str(cell) for cell in cells)
    numbers = (None if cell is None else float(cell) for cell in cells)
    return tuple(None if cell is None or not math.isfinite(cell) else cell for cell in numbers)


@dataclass(frozen=True, kw_only=True)
class Separability(Question[SeparabilityRelease]):
    """Can a separator tell the private truth from the public, privatized rows?

    `privatized` is the public table, as columns.
    """

    kind = "separability"
    title = "separability"
    asks = "Can a classifier tell the privatized copy from the truth?"
    tells = "How much better than chance a classifier tells true rows from privatized ones."
    of = (TruthRows,)
    cannot_pool = "every site trains a separator of its own"
    replayed = (
        {
            "privatized": {
                "numbers": {
                    "a": [0.0, 1.0, 0.5, 1.0, 2.0, 0.0] * 3,
                    "b": [1.0, 0.0, 0.5, 1.0, 3.0, 1.0] * 3,
                },
                "texts": {"t": ["x", "y", "x", "z", "y", "x"] * 3},
            }
        },
    )
    rules = 2
    """Since 2 it sees pairs of columns as well."""
    known_rules = (1, 2)
    privatized: Annotated[
        Mapping[str, Any],
        Columns(),
        "The public copy, as columns of numbers and of texts; on the command line a file, "
        "such as copy.csv without=id,name codes=area.",
    ]
    sees: Annotated[
        str,
        OneOf((BOTH, COLUMNS, PAIRS)),
        "Look at single columns, at pairs of columns, or at both with half of epsilon each.",
    ] = BOTH

    @classmethod
    def worst_cases(cls) -> tuple[WorstCase, ...]:
        note = "the separator and the rows that it calls true, jointly"
        why = "an answer takes long: few of them"
        return tuple(
            WorstCase(
                name=name,
                pairs=_PAIRS,
                fields={"privatized": {"numbers": _PUBLIC}, "sees": sees},
                make=_truth,
                read=_seen,
                epsilon="4",
                note=note,
                why=why,
            )
            for name, sees in (("", COLUMNS), ("pairs", PAIRS))
        )

    @cached_property
    def table(self) -> Table:
        numbers = {
            name: number_array([math.nan if cell is None else cell for cell in cells])
            for name, cells in self.privatized["numbers"].items()
        }
        texts = {
            name: np.array(cells, dtype=object) for name, cells in self.privatized["texts"].items()
        }
        rows = len(next(iter([*numbers.values(), *texts.values()])))
        return Table(numbers, texts, {}, rows=rows)

    def booked(self) -> dict[str, Any]:
        """The ledger keeps the size of the public table and its digest, not the table."""
        content = self.as_dict()
        text = json.dumps(content.pop("privatized"), sort_keys=True, allow_nan=False)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return content | {"privatized_rows": self.table.rows, "privatized_sha256": digest}

    @cached_property
    def _recipe(self) -> tuple[Recipe, Floats, Bools]:
        recipe = Recipe.of(self.table)
        return recipe, *recipe.vectors(self.table)

    def request(self, about: TruthRows) -> Request | Staged:
        if (about.numbers, about.texts) != (tuple(self.table.numbers), tuple(self.table.texts)):
            raise ArgumentError(
                "privatized must have the columns that the truth was opened with, in their order."
            )
        steps = self._steps(about)
        parameters: dict[str, Any] = {}
        for step in steps.values():
            parameters |= step.statistic.parameters
        parameters["privatized_rows"] = self.table.rows
        public = {name: self._public(step.statistic) for name, step in steps.items()}
        if len(steps) == 1:
            [step] = steps.values()
            return Request(
                "separability", step.statistic, step.mechanism, parameters, reading=public
            )
        return Staged(
            name="separability",
            steps={name: Booked.of(step) for name, step in steps.items()},
            parameters=parameters,
            claim="joint-separability",
            description={name: step.mechanism.describe() for name, step in steps.items()},
            reading=(steps, public),
        )

    def _steps(self, about: TruthRows) -> dict[str, Any]:
        """Return what is drawn, by what it sees; of public facts alone."""
        rows = about.rows
        if rows is None:  # of another copy than the truth was opened beside, with fewer rows, too
            rows = max(self.table.rows, about.expected_rows or 0)
        expected, moved = max(1, rows // 2), about.protection.rows_moved
        asked = COLUMNS if self.rules == 1 else self.sees
        sees = (COLUMNS, PAIRS) if asked == BOTH else (asked,)
        if PAIRS in sees:
            price = self.price / len(sees)
            products = self._products(columns_for(price, moved=moved, expected=expected), expected)
            if products.row == 0 and asked == PAIRS:
                raise ArgumentError("privatized must have two columns that vary, to see pairs.")
            sees = sees if products.row else (COLUMNS,)
        steps: dict[str, Any] = {}
        for name in sees:
            price = self.price / len(sees)
            statistic: Any = (
                self._separator(price, moved, expected) if name == COLUMNS else products
            )
            steps[name] = Step(statistic, _mechanism(statistic, price, moved))
        return steps

    def _separator(self, price: Fraction, moved: int, expected: int) -> Separator:
        recipe, vectors, out = self._recipe
        return Separator(
            recipe=recipe,
            numbers=tuple(self.table.numbers),
            texts=tuple(self.table.texts),
            public=vectors[~out],
            expected=expected,
            ridge=ridge_for(price, moved=moved, expected=expected, dimension=vectors.shape[1]),
        )

    def _products(self, columns: int, expected: int) -> SignProducts:
        whole = SignProducts(
            signs=Signs.of(self.table, most=columns),
            numbers=tuple(self.table.numbers),
            texts=tuple(self.table.texts),
            public=np.zeros((0, 0), dtype=np.int64),
            expected=expected,
        )
        products, out = whole.halves(self.table)
        return replace(whole, public=products[~out])

    def _public(self, statistic: Any) -> Floats:
        """Return the features of the privatized rows that are held out."""
        if isinstance(statistic, Separator):
            _, vectors, out = self._recipe
            return vectors[out]
        products, out = statistic.halves(self.table)
        return with_constant(products[out])

    def read(self, drawn: Drawn) -> SeparabilityRelease:
        request = drawn.request
        if isinstance(request, Request):
            [(name, public)] = request.reading.items()
            only = Separated(request.statistic, _disjoint(request), drawn.values, public)
            return SeparabilityRelease(drawn, parts={name: only})
        steps, public = request.reading
        parts = {
            name: Separated(step.statistic, step.mechanism, drawn.values[name], public[name])
            for name, step in steps.items()
        }
        return SeparabilityRelease(drawn, parts=parts)


def _disjoint(request: Request) -> Disjoint:
    assert isinstance(request.mechanism, Disjoint)
    return request.mechanism


def _mechanism(statistic: Any, price: Fraction, moved: int) -> Disjoint:
    def count(answer: Ints, rows: Floats) -> Ints:
        return called_true(statistic.coefficients(answer), rows)

    return Disjoint(
        epsilon=price,
        moved=moved,
        first_row=statistic.row,
        first_slack=statistic.slack,
        dimensions=(len(statistic.features) - isinstance(statistic, SignProducts), 2),
        then=count,
    )


def ridge_for(price: Fraction, *, moved: int, expected: int, dimension: int) -> Fraction:
    """So strong that noise moves a row's margin by about a half. Of public numbers alone."""
    wanted = Fraction(math.sqrt(2 * dimension)) * moved / (expected * price)
    return min(max(power_of_two(wanted), FLATTEST), STEEPEST)


# --- audited -------------------------------------------------------------------------------------

_PUBLIC: Final[Mapping[str, list[float]]] = {
    "a": [0.0, 1.0, 0.5, 1.0] * 3,
    "b": [1.0, 0.0, 0.5, 1.0] * 3,
}
_TRUE: Final = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
_TRAINS: Final = "x2"
_COUNTED: Final = "x0"  # a hash of the key decides
_FAR: Final = 9.0


def _with(row: list[float], key: str) -> dict[str, list[float] | list[str]]:
    """Return rows with one more, whose key decides whether it trains or is counted."""
    rows = [*_TRUE, row]
    keys = [*(f"p{place}" for place in range(len(_TRUE))), key]
    return {"a": [a for a, _ in rows], "b": [b for _, b in rows], "u": keys}


_OPTIONS: Final[Mapping[str, Any]] = {"unit": "u", "rows_per_unit": 1}
_PAIRS: Final = (
    Pair(
        "a row that is counted goes to the other end",
        _with([-_FAR, -_FAR], _COUNTED),
        _with([_FAR, _FAR], _COUNTED),
        _OPTIONS,
    ),
    Pair(
        "a row that trains goes to the other end",
        _with([-_FAR, -_FAR], _TRAINS),
        _with([_FAR, _FAR], _TRAINS),
        _OPTIONS,
    ),
)


def _truth(content: Any, options: Mapping[str, Any]) -> Truth:
    return Truth(content, numbers=tuple(_PUBLIC), texts=(), expected_rows=12, **options)


def _seen(pair: Pair, release: SeparabilityRelease) -> list[float]:
    """Return all numbers, and what is left of the counts without the other rows.

    An attacker knows on which side of the released separator either row would be.
    """
    released = numbers(release)
    weights = np.array(list(release.coefficients.values()))
    statistic = release._stronger.statistic

    def side(rows: Mapping[str, Any], those: slice) -> tuple[Floats, Bools]:
        columns = {name: np.array(rows[name][those]) for name in _PUBLIC}
        keys = rows["u"][those]
        table = Table(columns, {}, {}, rows=len(keys))
        if isinstance(statistic, Separator):
            return statistic.recipe.vectors(table, keys)
        products, out = statistic.halves(table, keys)
        return with_constant(products), out

    others, out = side(pair.first, slice(-1))
    left = np.array(released[-2:]) - called_true(weights, others[out])
    first, second = (
        called_true(weights, side(rows, slice(-1, None))[0]) for rows in (pair.first, pair.second)
    )
    return [*released, float((first - second) @ left)]


declare_rows(
    TruthRows,
    {
        **dict.fromkeys(("a", "b"), Column((0.0, 1.0, 9.0, -9.0, None), "uniform")),
        "t": Column(("x", "y", "new", None), type="text"),
    },
    partial(Truth, numbers=("a", "b"), texts=("t",), expected_rows=18, name="made up"),
)
