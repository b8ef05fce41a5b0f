"""The columns of a linear model: terms of declared values, coded to [-1, 1] and to whole numbers.

A formula such as "pay ~ age + age^2 + sex + age:sex" names the outcome and its terms. All of it is
public: bounds are declared, and a coded term is a function of its own row.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from heldout.arguments import Columns, Rule, no_such, shown
from heldout.arrays import Floats
from heldout.data.description import MeasuredRows
from heldout.data.sql import double, held_to
from heldout.errors import ArgumentError

RESOLUTION: Final = 2**11
"""Steps from the middle of a column's bounds to their ends: 2^38 rows fit into 64 bits."""
MOST_TERMS: Final = 30
_NAME: Final = re.compile(r"\s*(?:`([^`]+)`|([^\W\d][\w.]*))\s*")
_SQUARE: Final = re.compile(r"(?:\^|\*\*)\s*2\s*$")


@dataclass(frozen=True)
class Term:
    """A column, its square, or the product of two columns."""

    factors: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return how people write it.

        >>> Term(("age", "age")).name, Term(("age", "sex")).name
        ('age^2', 'age:sex')
        """
        if len(self.factors) == 2 and self.factors[0] == self.factors[1]:
            return f"{self.factors[0]}^2"
        return ":".join(self.factors)


def parse_term(text: str) -> Term:
    """Read a term: `age`, `age^2` or `age:sex`; a name with other signs goes in backquotes.

    >>> parse_term("age:sex").factors, parse_term("`hours per week`^2").name
    (('age', 'sex'), 'hours per week^2')
    """
    first = _NAME.match(text)
    if first is not None:
        name, rest = first[1] or first[2], text[first.end() :]
        if not rest:
            return Term((name,))
        if _SQUARE.fullmatch(rest):
            return Term((name, name))
        second = _NAME.fullmatch(rest[1:]) if rest[0] == ":" else None
        if second is not None:
            return Term((name, second[1] or second[2]))
    raise ArgumentError(
        f"A term must be a column, a square such as age^2 or a product such as age:sex, got "
        f"{shown(text)}. Separate terms by spaces, and write a name with spaces in backquotes."
    )


def parse_formula(text: str) -> tuple[str, tuple[Term, ...]]:
    """Read a formula: the outcome, a tilde, and terms with plus signs between them.

    >>> outcome, terms = parse_formula("pay ~ age + age^2 + sex")
    >>> outcome, [term.name for term in terms]
    ('pay', ['age', 'age^2', 'sex'])
    """
    left, tilde, right = text.partition("~")
    outcome = _NAME.fullmatch(left)
    if not tilde or outcome is None:
        raise ArgumentError(f"formula must look like pay ~ age + sex, got {shown(text)}.")
    return outcome[1] or outcome[2], checked_terms([parse_term(part) for part in _plus(right)])


def _plus(text: str) -> list[str]:
    """Split at plus signs that are not inside backquotes."""
    parts, quoted = [""], False
    for sign in text:
        quoted ^= sign == "`"
        if sign == "+" and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def checked_terms(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Return terms that are all different, with the columns of every square and product."""
    ordered = tuple(Term(tuple(sorted(term.factors))) for term in terms)
    if not 1 <= len(ordered) <= MOST_TERMS or len(set(ordered)) < len(ordered):
        raise ArgumentError(f"A model must have 1 to {MOST_TERMS} terms, all different.")
    for term in ordered:
        for factor in term.factors:
            if Term((factor,)) not in ordered:
                raise ArgumentError(
                    f"A model with {term.name} must have {factor} as well, or the fit would "
                    f"depend on where its zero lies. Add the term {factor}."
                )
    return ordered


def _in_steps(value: str, ends: tuple[float, float], steps: int) -> str:
    """Return a number's place between two ends in whole steps, -steps to steps, in SQL."""
    low, high = ends
    share = f"({value} - {double(low)}) / {double(high - low)}"
    whole = f"floor({share} * {double(2 * steps)} + 0.5) - {double(steps)}"
    return f"CAST(least(greatest({whole}, {double(-steps)}), {double(steps)}) AS BIGINT)"


@dataclass(frozen=True)
class Terms(Columns):
    """Terms of a linear model.

    >>> Terms()(["age", "age^2"], "features")
    ('age', 'age^2')
    """

    def __call__(self, value: Any, name: str) -> tuple[str, ...]:
        names = super().__call__(value, name)
        several = (names,) if isinstance(names, str) else names
        return tuple(
            term.name if " " not in term.name else _quoted(term)
            for term in checked_terms([parse_term(text) for text in several])
        )


def _quoted(term: Term) -> str:
    first, *second = (f"`{factor}`" if " " in factor else factor for factor in term.factors)
    return first if not second else f"{first}^2" if first == second[0] else f"{first}:{second[0]}"


@dataclass(frozen=True)
class Formula(Rule):
    """A formula, as a text."""

    def __call__(self, value: Any, name: str) -> str:
        if not isinstance(value, str):
            raise ArgumentError(f"{name} must look like pay ~ age + sex, got {shown(value)}.")
        parse_formula(value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "examples": ["pay ~ age + sex"]}


@dataclass(frozen=True)
class Design:
    """A linear model over declared columns, with their places among the values and their bounds."""

    outcome: str
    terms: tuple[Term, ...]
    places: Mapping[str, int]
    bounds: Mapping[str, tuple[float, float]]
    only: tuple[str, tuple[float, float]] | None = None
    """A column with two values, to whose rows the model is limited."""
    error: tuple[str, str] | None = None
    """The column with predictions, and "absolute" or "squared": the outcome is then the error."""
    rival: str | None = None
    """Another column with predictions, whose error is taken off."""

    @classmethod
    def of(cls, outcome: str, terms: Sequence[Term], about: MeasuredRows) -> "Design":
        """Return the model of declared columns; refuse one that is not declared."""
        names = [outcome, *(factor for term in terms for factor in term.factors)]
        for name in names:
            if name not in about.values:
                raise ArgumentError(no_such("column", name, list(about.values)))
        if any(outcome in term.factors for term in terms):
            raise ArgumentError(f"The outcome {shown(outcome)} must not be a term too.")
        columns = dict.fromkeys(names)
        design = cls(
            outcome,
            tuple(terms),
            {name: about.place(name) for name in columns},
            {name: about.values[name].ends for name in columns},
        )
        return design.checked()

    def checked(self) -> "Design":
        """Return itself; refuse bounds whose products or squares no double holds."""
        low, high = self.ends
        sizes = (*np.abs(self.in_units).ravel().tolist(), abs(low), abs(high), high - low)
        if not max(sizes) < 1e200 or not high - low > 1e-200:
            raise ArgumentError(
                "The bounds of these columns are too far apart in size for one model. Measure them "
                "in other units."
            )
        return self

    def __hash__(self) -> int:
        return hash((self.outcome, self.terms, self.only, self.error, self.rival))

    def where(self) -> str:
        """Return the condition of the rows that the model is about, in SQL."""
        if self.only is None:
            return ""
        name, (first, second) = self.only
        value = f"value_{self.places[name]}"
        return f"\nWHERE {value} = {double(first)} OR {value} = {double(second)}"

    @property
    def ends(self) -> tuple[float, float]:
        """Return between which the outcome lies: its bounds, or what they leave of an error."""
        low, high = self.bounds[self.outcome]
        if self.error is None:
            return low, high
        lows, highs = zip(*self.bounds.values(), strict=True)
        width = max(highs) - min(lows)
        most = width if self.error[1] == "absolute" else width * width
        return (0.0 if self.rival is None else -most), most

    @property
    def size(self) -> int:
        """Return how many coefficients there are, the intercept among them."""
        return len(self.terms) + 1

    @property
    def names(self) -> tuple[str, ...]:
        """Return what the coefficients are called, the intercept first."""
        return ("intercept", *(term.name for term in self.terms))

    @cached_property
    def outcome_steps(self) -> int:
        """Return the steps of the outcome's half width: more of them, less noise for its products.

        A row's length is shared by its columns: of u steps^2 for the outcome, noise of a
        coefficient grows like (terms + 1 + u)^2 (1/u + 1/5), where 1/5 stands for the sum of the
        squared coefficients, coded. The u with the least is taken.
        """
        columns = self.size
        best = min(
            range(1, 17), key=lambda halves: (columns + halves / 2) ** 2 * (2 / halves + 0.2)
        )
        return int(RESOLUTION * (best / 2) ** 0.5)

    @property
    def steps(self) -> Floats:
        """Return the steps of each coded column: the constant, the terms, the outcome."""
        return np.array([*[RESOLUTION] * self.size, self.outcome_steps], dtype=float)

    @property
    def length(self) -> int:
        """Return the largest squared length of a coded row, in steps."""
        return self.size * RESOLUTION**2 + self.outcome_steps**2

    @property
    def _factors(self) -> set[str]:
        return {factor for term in self.terms for factor in term.factors}

    # --- as a database computes it ---------------------------------------------------------------

    def coded(self) -> dict[str, str]:
        """Return the coded columns z_1, z_2, ... in SQL; the last is the outcome."""
        factors = {factor: self._steps(factor, RESOLUTION) for factor in self._factors}
        columns = [self._term(term, factors) for term in self.terms]
        columns.append(self._coded_outcome())
        return {f"z_{place}": column for place, column in enumerate(columns, start=1)}

    def _value(self, name: str) -> str:
        return held_to(f"value_{self.places[name]}", *self.bounds[name])

    def _coded_outcome(self) -> str:
        value = self._value(self.outcome)
        if self.error is not None:
            value = self._error(self.error[0])
            if self.rival is not None:
                value = f"{value} - {self._error(self.rival)}"
        return _in_steps(f"({value})", self.ends, self.outcome_steps)

    def _error(self, predicted: str) -> str:
        far = f"abs({self._value(self.outcome)} - {self._value(predicted)})"
        squared = self.error is not None and self.error[1] == "squared"
        return f"{far} * {far}" if squared else far

    def _steps(self, name: str, steps: int) -> str:
        return _in_steps(self._value(name), self.bounds[name], steps)

    @staticmethod
    def _term(term: Term, factors: Mapping[str, str]) -> str:
        if len(term.factors) == 1:
            return factors[term.factors[0]]
        first, second = (factors[factor] for factor in term.factors)
        product = f"floor(CAST({first} * {second} AS DOUBLE) / {double(RESOLUTION)}"
        if term.factors[0] == term.factors[1]:
            # 2 x^2 - 1 is as far from -1 to 1 as x is.
            return f"CAST({product} * {double(2)}) - {double(RESOLUTION)} AS BIGINT)"
        return f"CAST({product}) AS BIGINT)"

    # --- from coded coefficients to those in the columns' own units ------------------------------

    def _middle(self, name: str) -> tuple[float, float]:
        low, high = self.ends if name == self.outcome else self.bounds[name]
        return low + (high - low) / 2, (high - low) / 2

    @cached_property
    def in_units(self) -> Floats:
        """Return the matrix that turns coded coefficients into those of the columns' own units.

        The middle of the outcome's bounds is still to be added to the intercept.
        """
        place = {term.factors: at for at, term in enumerate(self.terms, start=1)}
        matrix = np.zeros((self.size, self.size))
        matrix[0, 0] = 1.0
        for term, column in place.items():
            if len(term) == 1:
                middle, half = self._middle(term[0])
                matrix[column, column] += 1 / half
                matrix[0, column] -= middle / half
                continue
            (first, one), (second, two) = (self._middle(factor) for factor in term)
            twice = 2.0 if term[0] == term[1] else 1.0
            size = twice / (one * two)
            matrix[column, column] += size
            matrix[place[term[:1]], column] -= second * size
            matrix[place[term[1:]], column] -= first * size
            matrix[0, column] += first * second * size - (1.0 if twice == 2.0 else 0.0)
        return self._middle(self.outcome)[1] * matrix

    @property
    def offset(self) -> float:
        """Return the middle of the outcome's bounds."""
        return self._middle(self.outcome)[0]

    def monomials(self, row: Mapping[str, float]) -> Floats:
        """Return the terms of a row in the columns' own units, a constant first."""
        return np.array(
            [1.0, *(np.prod([row[factor] for factor in term.factors]) for term in self.terms)]
        )
