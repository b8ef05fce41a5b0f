"""Claims about private rows, as an analyst states them: read by a small grammar, never evaluated.

coefficient('sex') < 0
100 < coefficient('age') < 200
significant('sex'), significant('sex', 0.01)
mean('pay') > 30000
mean('pay', sex='F') < mean('pay', sex='M')
mean_absolute_error('pay', 'predicted') < 5000
root_mean_squared_error('pay', 'predicted') < 8000
"""

import math
import re
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

from heldout.arguments import Rule, no_such, shown
from heldout.data.description import MeasuredRows
from heldout.errors import ArgumentError
from heldout.questions.linear.design import Design, Term, parse_formula, parse_term
from heldout.questions.linear.moments import Comparison

ERRORS: Final = {"mean_absolute_error": "absolute", "root_mean_squared_error": "squared"}
FUNCTIONS: Final = ("coefficient", "significant", "mean", *ERRORS)
EXAMPLE: Final = "coefficient('sex') < 0"
MOST_SIGNS: Final = 500
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<sign><=|>=|<|>|[(),=]))\s*"
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str


@dataclass(frozen=True)
class Quantity:
    """One call: a function, the texts and numbers in its parentheses, and a group."""

    function: str
    arguments: tuple[str | float, ...]
    group: tuple[str, str | float] | None = None


@dataclass(frozen=True)
class Claim:
    """A quantity that lies above `low` and below `high`; or above `other`, or is significant."""

    quantity: Quantity
    low: float = -math.inf
    high: float = math.inf
    other: Quantity | None = None
    """The quantity that is claimed to be smaller."""
    level: float | None = None
    """Of significance, if that is what is claimed."""

    @property
    def criterion(self) -> float:
        """Return how many standard errors these rows must be off, for a claim about them."""
        return 0.0 if self.level is None else NormalDist().inv_cdf(1 - self.level / 2)


@dataclass(frozen=True)
class ClaimText(Rule):
    """A claim, as a text.

    >>> ClaimText()("coefficient('sex') < 0", "claim")
    "coefficient('sex') < 0"
    """

    def __call__(self, value: Any, name: str) -> str:
        if not isinstance(value, str):
            raise ArgumentError(f"{name} must look like {EXAMPLE}, got {shown(value)}.")
        parse_claim(value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "examples": [EXAMPLE]}


def parse_claim(text: str) -> Claim:
    """Read a claim.

    >>> parse_claim("100 < coefficient('age') < 200").low
    100.0
    >>> parse_claim("mean('pay', sex='F') < mean('pay', sex='M')").other.group
    ('sex', 'F')
    """
    return _Reader(text).claim()


class _Reader:
    """Reads a claim from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens = text, _tokens(text)

    def claim(self) -> Claim:
        sides: list[Quantity | float] = [self._side()]
        signs: list[str] = []
        while self._tokens:
            signs.append(self._sign("<", "<=", ">", ">="))
            sides.append(self._side())
        return self._compared(sides, [sign[0] for sign in signs])

    def _compared(self, sides: list[Quantity | float], signs: list[str]) -> Claim:
        first = sides[0]
        if len(sides) == 1 and isinstance(first, Quantity) and first.function == "significant":
            level = first.arguments[1] if len(first.arguments) > 1 else 0.05
            if not isinstance(level, float) or not 0 < level < 0.5:
                raise ArgumentError("A level of significance must lie between 0 and 0.5.")
            return Claim(Quantity("coefficient", first.arguments[:1]), level=level)
        if len(set(signs)) != 1 or any(
            isinstance(side, Quantity) and side.function == "significant" for side in sides
        ):
            raise self._refusal()
        if signs[0] == ">":  # from the smallest to the largest
            sides = sides[::-1]
        kinds = [isinstance(side, Quantity) for side in sides]
        low, high = -math.inf, math.inf
        if kinds == [True, True]:
            smaller, larger = sides
            assert isinstance(smaller, Quantity)
            assert isinstance(larger, Quantity)
            return Claim(larger, other=smaller)
        if kinds == [True, False]:
            quantity, high = sides[0], self._number(sides[1])
        elif kinds == [False, True]:
            low, quantity = self._number(sides[0]), sides[1]
        elif kinds == [False, True, False]:
            low, quantity, high = self._number(sides[0]), sides[1], self._number(sides[2])
        else:
            raise self._refusal()
        if not low < high:
            raise ArgumentError(
                f"The region of a claim must not be empty, got {low:g} to {high:g}."
            )
        assert isinstance(quantity, Quantity)
        return Claim(quantity, low=low, high=high)

    def _number(self, side: Quantity | float) -> float:
        assert isinstance(side, float)
        return side

    def _side(self) -> Quantity | float:
        token = self._take("number", "name")
        if token.kind == "number":
            return float(token.text.replace("_", ""))
        if token.text not in FUNCTIONS:
            raise ArgumentError(no_such("function", token.text, list(FUNCTIONS)))
        self._sign("(")
        arguments: list[str | float] = []
        group: tuple[str, str | float] | None = None
        while True:
            given = self._take("number", "text", "name")
            if given.kind == "name":
                if group is not None:  # a mean is of one group
                    raise self._refusal()
                self._sign("=")
                value = self._take("number", "text")
                group = (given.text, _value(value))
            else:
                arguments.append(_value(given))
            if self._sign(",", ")") == ")":
                break
        return _checked(Quantity(token.text, tuple(arguments), group), self._refusal())

    def _sign(self, *allowed: str) -> str:
        token = self._take("sign")
        if token.text not in allowed:
            raise self._refusal()
        return token.text

    def _take(self, *kinds: str) -> Token:
        if not self._tokens or self._tokens[0].kind not in kinds:
            raise self._refusal()
        return self._tokens.pop(0)

    def _refusal(self) -> ArgumentError:
        return ArgumentError(
            f"A claim must look like {EXAMPLE}, 1 < coefficient('age') < 2, significant('age'), "
            "mean('pay', sex=1) < mean('pay', sex=0) or mean_absolute_error('pay', 'guess') < 9, "
            f"got {shown(self._text)}."
        )


def _value(token: Token) -> str | float:
    return token.text if token.kind == "text" else float(token.text.replace("_", ""))


def _tokens(text: str) -> list[Token]:
    tokens, place = [], 0
    while place < len(text) and len(text) <= MOST_SIGNS:
        match = _TOKEN.match(text, place)
        if match is None:
            break
        kind = match.lastgroup or ""
        kind = "text" if kind in ("single", "double") else kind
        tokens.append(Token(kind, match[match.lastgroup or 0]))
        place = match.end()
    if place < len(text):
        raise ArgumentError(f"A claim must look like {EXAMPLE}, got {shown(text)}.")
    return tokens


def _checked(quantity: Quantity, refusal: ArgumentError) -> Quantity:
    texts = [isinstance(argument, str) for argument in quantity.arguments]
    wanted = {"significant": ([True], [True, False])}.get(quantity.function, ([True],))
    wanted = ([True, True],) if quantity.function in ERRORS else wanted
    if texts not in wanted or (quantity.group is not None and quantity.function != "mean"):
        raise refusal
    return quantity


# --- What a claim means for declared columns -----------------------------------------------------


@dataclass(frozen=True)
class Meaning:
    """The model that a claim is about, and what is compared with zero; all of it must be above."""

    design: Design
    tested: tuple[Comparison, ...]
    """In coded coefficients."""
    place: int
    """Which coefficient is compared, the intercept being 0."""
    criterion: float
    two_sided: bool


def meaning_of(claim: Claim, formula: str | None, about: MeasuredRows) -> Meaning:
    """Return what a claim means for declared columns; refuse one that they cannot answer."""
    function = claim.quantity.function
    if (formula is None) == (function == "coefficient"):
        raise ArgumentError(
            "formula must name the model of a coefficient, such as pay ~ age + sex."
            if formula is None
            else f"formula must be left out for a claim about {function}."
        )
    if claim.other is not None and function in ERRORS:
        design = _errors_model(claim, about)
        place, offset, low, high = 0, design.offset, 0.0, math.inf
    elif claim.other is not None:
        design, rises = _groups_model(claim, about)
        place, offset = 1, 0.0
        low, high = (0.0, math.inf) if rises else (-math.inf, 0.0)
    elif function == "coefficient":
        assert formula is not None
        outcome, terms = parse_formula(formula)
        design = Design.of(outcome, terms, about)
        name = parse_term(_quote(str(claim.quantity.arguments[0]))).name
        if name not in design.names[1:]:
            raise ArgumentError(no_such("term", name, list(design.names[1:])))
        place, offset, low, high = design.names.index(name), 0.0, claim.low, claim.high
        if claim.level is not None:
            low, high = 0.0, math.inf
    else:
        design, place = _mean_model(claim.quantity, about), 0
        offset, low, high = design.offset, claim.low, claim.high
        if function == "root_mean_squared_error":
            low, high = (
                end if math.isinf(end) else math.copysign(end**2, end) for end in (low, high)
            )
    weights = tuple(design.in_units[place].tolist())
    tested = []
    if low > -math.inf:
        tested.append(Comparison(weights, low - offset))
    if high < math.inf:
        tested.append(Comparison(weights, high - offset).opposite())
    return Meaning(design, tuple(tested), place, claim.criterion, claim.level is not None)


def _quote(name: str) -> str:
    plain = re.fullmatch(r"[^\W\d][\w.]*(\s*(\^\s*2|:\s*[^\W\d][\w.]*))?", name)
    return name if plain or "`" in name else f"`{name}`"


def _mean_model(quantity: Quantity, about: MeasuredRows) -> Design:
    names = [str(argument) for argument in quantity.arguments]
    _require(names, about)
    places = {name: about.place(name) for name in names}
    bounds = {name: about.values[name].ends for name in names}
    if quantity.group is not None:
        raise ArgumentError("A mean of a group must be compared with that of another group.")
    error = (names[1], ERRORS[quantity.function]) if quantity.function in ERRORS else None
    return Design(names[0], (), places, bounds, error=error).checked()


def _errors_model(claim: Claim, about: MeasuredRows) -> Design:
    """Return the model of the larger error minus the smaller one, row by row."""
    assert claim.other is not None
    larger, smaller = claim.quantity, claim.other
    observed, first = (str(argument) for argument in larger.arguments)
    again, second = (str(argument) for argument in smaller.arguments[:1] + smaller.arguments[-1:])
    if larger.function != smaller.function or observed != again or first == second:
        raise ArgumentError(
            "Errors of two models may be compared if they are of one kind and of one outcome, such "
            "as mean_absolute_error('pay', 'new') < mean_absolute_error('pay', 'old')."
        )
    names = [observed, first, second]
    _require(names, about)
    return Design(
        observed,
        (),
        {name: about.place(name) for name in names},
        {name: about.values[name].ends for name in names},
        error=(first, ERRORS[larger.function]),
        rival=second,
    ).checked()


def _groups_model(claim: Claim, about: MeasuredRows) -> tuple[Design, bool]:
    """Return the model whose one slope is a difference of means, and whether it should rise."""
    assert claim.other is not None
    both = (claim.other, claim.quantity)
    groups = [quantity.group for quantity in both]
    columns = {quantity.arguments for quantity in both}
    if any(quantity.function != "mean" for quantity in both) or None in groups or len(columns) > 1:
        raise ArgumentError(
            "Two quantities may be compared if they are means of one column in two groups, such as "
            "mean('pay', sex=1) < mean('pay', sex=0)."
        )
    outcome = str(claim.quantity.arguments[0])
    (name, first), (again, second) = (group for group in groups if group is not None)
    _require([outcome, name], about)
    declared = about.values[name]
    values = tuple(_code(declared.words, value, name) for value in (first, second))
    low, high = declared.ends
    if name != again or values[0] == values[1] or not all(low <= v <= high for v in values):
        raise ArgumentError(
            f"The groups must be two different values of one column, from {low:g} to {high:g}."
        )
    ends = (min(values), max(values))
    # Bounds at the two values: a row of the lower one is coded -1, of the higher one 1.
    bounds = {outcome: about.values[outcome].ends, name: ends}
    places = {outcome: about.place(outcome), name: about.place(name)}
    design = Design(outcome, (Term((name,)),), places, bounds, only=(name, ends))
    return design.checked(), values[0] < values[1]


def _code(words: Any, value: str | float, name: str) -> float:
    if isinstance(value, str):
        if value not in words:
            raise ArgumentError(no_such(f"word of {name}", value, list(words)))
        return float(words[value])
    return value


def _require(names: list[str], about: MeasuredRows) -> None:
    for name in names:
        if name not in about.values:
            raise ArgumentError(no_such("declared column", name, list(about.values)))
