"""Describe what was done to the data, as frozen and versioned data, and price it.

An event outlives the code that made it: a ledger holds events, and any later version must price
them as the first one did. So the rules below are append-only. A changed price is a new version.

To add a kind, write one function under `_priced` at the end of this file and its line in
tests/kernel/ledger/test_events.py. Its parameters are public; a value read from rows is never one.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

from heldout.errors import ArgumentError, UnknownEvent
from heldout.kernel.loss import Loss, Rational, exact, show

Value = str | tuple["Event", ...]


@dataclass(frozen=True, eq=False)
class Event:
    """One use of a mechanism: its kind, the version of its price, and exact public parameters.

    >>> event = Event("discrete-laplace", {"l1_sensitivity": 2, "scale": 4, "dimension": 3})
    >>> event.encode()
    '{"kind":"discrete-laplace","parameters":{"dimension":"3","l1_sensitivity":"2","scale":"4"},"version":1}'
    >>> print(price(event))
    epsilon 0.5
    """

    kind: str
    parameters: Mapping[str, Value]
    version: int = 1

    def __init__(
        self,
        kind: str,
        parameters: Mapping[str, "Rational | Sequence[Event]"],
        version: int = 1,
    ) -> None:
        if not isinstance(kind, str) or isinstance(version, bool) or not isinstance(version, int):
            raise ArgumentError(
                f"An event must have a kind and a whole version, got {kind!r} and {version!r}. "
                "Pass Event(kind, parameters)."
            )
        content = {name: _value(name, parameters[name]) for name in sorted(parameters)}
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "version", version)
        object.__setattr__(self, "parameters", MappingProxyType(content))

    @classmethod
    def composed(cls, parts: "Sequence[Event]") -> "Event":
        """Several events booked as one: all or none."""
        return cls("composed", {"parts": parts})

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON, exact numbers as text."""
        parameters = {
            name: value if isinstance(value, str) else [part.as_dict() for part in value]
            for name, value in self.parameters.items()
        }
        return {"kind": self.kind, "parameters": parameters, "version": self.version}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Event":
        """Read what `as_dict` wrote."""
        try:
            if set(content) != {"kind", "parameters", "version"}:
                raise ValueError
            parameters = {
                name: value if isinstance(value, str) else [cls.from_dict(part) for part in value]
                for name, value in content["parameters"].items()
            }
            return cls(content["kind"], parameters, content["version"])
        except (ArgumentError, AttributeError, KeyError, TypeError, ValueError, RecursionError):
            raise UnknownEvent(
                "An event must be an object with kind, parameters and version. Pass the output of "
                "encode()."
            ) from None

    def encode(self) -> str:
        """Return the one canonical JSON text of the event."""
        return json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> "Event":
        """Read what `encode` wrote."""
        try:
            content = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            content = None
        return cls.from_dict(content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self.encode() == other.encode()

    def __hash__(self) -> int:
        return hash(self.encode())

    def __reduce__(self) -> tuple[Callable[[str], "Event"], tuple[str]]:
        return Event.decode, (self.encode(),)


def _value(name: str, value: "Rational | Sequence[Event]") -> Value:
    if isinstance(value, Sequence) and not isinstance(value, str):
        if not all(isinstance(part, Event) for part in value):
            raise ArgumentError(
                f"{name} must be an exact number or a list of events. Pass Event objects."
            )
        return tuple(value)
    return show(exact(value, name=name))


def price(event: Event) -> Loss:
    """Return what the event costs under the relation that its sensitivity was derived for.

    Refuses: a kind or version that is not in the rules, and missing or surplus parameters
    (UnknownEvent); a parameter out of its range (ArgumentError).

    >>> print(price(Event("smooth-cauchy", {"a": "1/4", "beta": "1/4"})))
    epsilon 0.5
    """
    rule = _rule(event)
    values = {name: read(event.parameters[name], name) for name, read in rule.parameters.items()}
    return rule.price(**values)


def leaves(event: Event) -> Iterator[Event]:
    """Yield the events of a composition, so that each is charged in the budget's own kind."""
    if event.kind == "composed":
        _rule(event)
        for part in _parts(event.parameters["parts"], "parts"):
            yield from leaves(part)
    else:
        yield event


def priced_kinds() -> Mapping[tuple[str, int], frozenset[str]]:
    """Every (kind, version) that can be priced, with its parameters."""
    return {key: frozenset(rule.parameters) for key, rule in _RULES.items()}


# --- the registry --------------------------------------------------------------------------------

Reader = Callable[[Value, str], Any]


@dataclass(frozen=True)
class _Rule:
    parameters: Mapping[str, Reader]
    price: Callable[..., Loss]


_RULES: Final[dict[tuple[str, int], _Rule]] = {}


def _priced(
    kind: str, version: int, **parameters: Reader
) -> Callable[[Callable[..., Loss]], Callable[..., Loss]]:
    def register(function: Callable[..., Loss]) -> Callable[..., Loss]:
        if (kind, version) in _RULES:
            raise RuntimeError(f"{kind} version {version} has a price already; add a version")
        _RULES[kind, version] = _Rule(MappingProxyType(parameters), function)
        return function

    return register


def _rule(event: Event) -> _Rule:
    rule = _RULES.get((event.kind, event.version))
    if rule is None:
        raise UnknownEvent(
            f"An event must be of a kind and version that has a price, got {event.kind!r} "
            f"version {event.version}. Use a version of heldout that knows it."
        )
    if set(event.parameters) != set(rule.parameters):
        raise UnknownEvent(
            f"An event {event.kind!r} must have the parameters {sorted(rule.parameters)}, "
            f"got {sorted(event.parameters)}. Use a version of heldout that knows it."
        )
    return rule


def _number(value: Value, name: str, *, above: int, strict: bool = True) -> Fraction:
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a number, got a list. Pass exact text.")
    return exact(value, name=name, minimum=above, strict=strict)


def _positive(value: Value, name: str) -> Fraction:
    return _number(value, name, above=0)


def _at_least_0(value: Value, name: str) -> Fraction:
    return _number(value, name, above=0, strict=False)


def _above_1(value: Value, name: str) -> Fraction:
    return _number(value, name, above=1)


def _count(value: Value, name: str) -> int:
    number = _positive(value, name)
    if number.denominator != 1:
        raise ArgumentError(f"{name} must be a whole number, got {show(number)}. Pass a count.")
    return int(number)


def _parts(value: Value, name: str) -> tuple[Event, ...]:
    if isinstance(value, str) or not value:
        raise ArgumentError(f"{name} must be one event or more. Pass a list of events.")
    return value


# --- the prices; append-only ---------------------------------------------------------------------


@_priced("discrete-laplace", 1, l1_sensitivity=_positive, scale=_positive, dimension=_count)
def _discrete_laplace(*, l1_sensitivity: Fraction, scale: Fraction, dimension: int) -> Loss:
    """An integer vector with P(z) ~ exp(-|z|/scale) added to each of its elements."""
    return Loss.pure(l1_sensitivity / scale)


@_priced(
    "noise-share",
    1,
    l1_sensitivity=_positive,
    scale=_positive,
    dimension=_count,
    honest=_count,
)
def _noise_share(*, l1_sensitivity: Fraction, scale: Fraction, dimension: int, honest: int) -> Loss:
    """A share of the same noise, in a secure sum with `honest` such shares or more."""
    return Loss.pure(l1_sensitivity / scale)


@_priced(
    "discrete-gaussian",
    1,
    l2_sensitivity_squared=_positive,
    sigma_squared=_positive,
    dimension=_count,
)
def _discrete_gaussian(
    *, l2_sensitivity_squared: Fraction, sigma_squared: Fraction, dimension: int
) -> Loss:
    """Canonne, Kamath and Steinke 2020, theorem 4."""
    return Loss.zcdp(l2_sensitivity_squared / (2 * sigma_squared))


@_priced("smooth-polynomial-tail", 1, a=_positive, beta=_at_least_0, nu=_above_1)
def _smooth_polynomial_tail(*, a: Fraction, beta: Fraction, nu: Fraction) -> Loss:
    """f + (S/a) Z with a Laplace core to nu and the tail |z|^-nu; S is beta-smooth."""
    return Loss.pure(a + max(Fraction(1), nu - 1) * beta)


@_priced("smooth-cauchy", 1, a=_positive, beta=_at_least_0)
def _smooth_cauchy(*, a: Fraction, beta: Fraction) -> Loss:
    """f + (S/a) Z with standard Cauchy Z; S is beta-smooth."""
    return Loss.pure(a + beta)


@_priced("smooth-cauchy-2015", 1, epsilon=_positive)
def _smooth_cauchy_2015(*, epsilon: Fraction) -> Loss:
    """As published: scale 2 (gamma + 1) S/epsilon and beta = epsilon/(2 (gamma + 1)), gamma 2."""
    return Loss.pure(epsilon)


@_priced("smooth-laplace-2015", 1, epsilon=_positive, delta=_positive)
def _smooth_laplace_2015(*, epsilon: Fraction, delta: Fraction) -> Loss:
    """As published: scale 2 S/epsilon and beta = epsilon/(2 ln(2/delta))."""
    return Loss.approximate(epsilon, delta)


@_priced("piecewise-laplace", 1, epsilon=_positive)
def _piecewise_laplace(*, epsilon: Fraction) -> Loss:
    """Noise that climbs down a ladder of scales, certified for this epsilon when it is made."""
    return Loss.pure(epsilon)


@_priced("disjoint-rows", 1, epsilon=_positive)
def _disjoint_rows(*, epsilon: Fraction) -> Loss:
    """Several answers, each row in the part of one of them: the dearest part is the price."""
    return Loss.pure(epsilon)


@_priced("adaptive", 1, epsilon=_positive)
def _adaptive(*, epsilon: Fraction) -> Loss:
    """Pure parts that answers before them choose: they divide this epsilon, nobody knows how yet.

    One leaf, because under a budget of rho a few large parts cost more than many small ones.
    """
    return Loss.pure(epsilon)


@_priced("exponential", 1, epsilon=_positive)
def _exponential(*, epsilon: Fraction) -> Loss:
    """Selection whose privacy loss is epsilon (the factor 2 of the exponent is inside)."""
    return Loss.pure(epsilon)


@_priced("weighted-laplace", 1, epsilon=_positive)
def _weighted_laplace(*, epsilon: Fraction) -> Loss:
    """Sums with discrete Laplace noise of several scales: what the dearest rows lose in all."""
    return Loss.pure(epsilon)


@_priced("wishart-difference", 1, trace=_positive, scale=_positive, size=_count)
def _wishart_difference(*, trace: Fraction, scale: Fraction, size: int) -> Loss:
    """A matrix of second moments plus W1 - W2, Wishart matrices of size + 1 degrees of freedom."""
    return Loss.pure(trace / (2 * scale))


@_priced("composed", 1, parts=_parts)
def _composed(*, parts: tuple[Event, ...]) -> Loss:
    """Sequential composition; one zCDP part makes the whole zCDP, as the accountant converts."""
    from heldout.kernel.accountant import total

    return total(price(part) for part in parts)


@_priced("sparse-vector", 1, epsilon=_positive)
def _sparse_vector(*, epsilon: Fraction) -> Loss:
    """Threshold tests with a limit on the positive answers, noise on threshold and queries."""
    return Loss.pure(epsilon)


@_priced("objective-perturbation", 1, epsilon=_positive)
def _objective_perturbation(*, epsilon: Fraction) -> Loss:
    """The minimum of a noisy convex loss; noise, curvature and the solver's slack are inside."""
    return Loss.pure(epsilon)


@_priced("declared", 1, epsilon=_positive)
def _declared(*, epsilon: Fraction) -> Loss:
    """Code from outside: the price is on its own word."""
    return Loss.pure(epsilon)


@_priced("covered", 1, entry=_count)
def _covered(*, entry: int) -> Loss:
    """An answer that an earlier entry paid for in full, such as one of a board below its bar."""
    return Loss.pure(0)
