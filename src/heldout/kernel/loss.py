"""Privacy losses and budgets as exact rationals: how they are read, written and rounded."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Real
from typing import Literal, Self

from heldout.arguments import shown
from heldout.errors import ArgumentError, PrivacyError

Rational = str | int | Fraction | Decimal | float
"""What a public argument may be where an exact number is meant."""

# An analyst's "1e999999999" must not fill the memory of the custodian's machine.
_DIGITS = 400
_LIMIT = 10**_DIGITS
_SHORT = 10  # characters that a decimal may have; beyond them a fraction is easier to read
_FRACTION = re.compile(r"[+-]?[0-9]+/[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,5}))?")


def exact(
    value: Rational,
    *,
    name: str = "epsilon",
    minimum: Fraction | int | None = None,
    strict: bool = True,
) -> Fraction:
    """Read an exact rational; a float is taken as its shortest decimal.

    With `minimum`, the value must be more than it, or at least it if `strict` is False.

    >>> exact("0.5"), exact(0.1), exact("1/3"), exact("1e-6")
    (Fraction(1, 2), Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000000))
    >>> exact(0, minimum=0)
    Traceback (most recent call last):
    heldout.errors.ArgumentError: epsilon must be more than 0, got 0. Pass a larger number.
    """
    number = _read(value, name)
    if max(abs(number.numerator), number.denominator) > _LIMIT:
        raise ArgumentError(f"{name} must have at most {_DIGITS} digits. Pass a shorter number.")
    if minimum is not None and (number < minimum or (strict and number == minimum)):
        rule = "more than" if strict else "at least"
        bound = show(Fraction(minimum))
        raise ArgumentError(
            f"{name} must be {rule} {bound}, got {_brief(show(number))}. Pass a larger number."
        )
    return number


def show(number: Fraction | int) -> str:
    """Return the number as "1/2" or "3": what receipts, events and messages hold.

    >>> show(Fraction(2, 4)), show(Fraction(3))
    ('1/2', '3')
    """
    return str(Fraction(number))


def decimal(number: Fraction) -> str:
    """Return an exact number as people write it: a short decimal if it has one, else a fraction.

    >>> decimal(Fraction(37, 500)), decimal(Fraction(1, 3)), decimal(Fraction(1, 100_000))
    ('0.074', '1/3', '0.00001')
    """
    short = format(Decimal(f"{float(number):.6g}"), "f") if number < 10**6 else str(number)
    return short if len(short) <= _SHORT and Fraction(short) == number else str(number)


@lru_cache(maxsize=1024)
def stored(text: str) -> Fraction:
    """Read back what `show` wrote, and nothing else: a ledger has one spelling of each number."""
    number = Fraction(text)
    if show(number) != text:
        raise ValueError("not in lowest terms")
    return number


def round_up(number: Fraction) -> float:
    """Return the smallest float that is not below the number.

    >>> round_up(Fraction(1, 10)), round_up(Fraction(1, 3)) > Fraction(1, 3)
    (0.1, True)
    """
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.nextafter(math.inf, 0)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def _read(value: object, name: str) -> Fraction:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool):
        raise _refusal(value, name)
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Decimal):
        value = str(value)
    elif isinstance(value, float):
        value = float.__repr__(value)  # numpy's own repr of a float64 is not a number
    elif isinstance(value, Real):
        value = str(value)  # a float32's shortest decimal: 0.1 is one tenth there too
    if not isinstance(value, str):
        raise _refusal(value, name)
    return _read_text(str(value), name)


@lru_cache(maxsize=1024)
def _read_text(value: str, name: str) -> Fraction:
    """Read a text once: a session has the same few prices again and again."""
    text = value.strip()
    decimal = _DECIMAL.fullmatch(text)
    if len(text) > 2 * _DIGITS + 2 or (decimal and abs(int(decimal[1] or 0)) > _DIGITS):
        raise ArgumentError(f"{name} must have at most {_DIGITS} digits. Pass a shorter number.")
    if decimal:
        return Fraction(text)
    if _FRACTION.fullmatch(text) and int(text.partition("/")[2]) != 0:
        return Fraction(text)
    raise _refusal(value, name)


def _refusal(value: object, name: str) -> ArgumentError:
    return ArgumentError(
        f"{name} must be a finite number such as '0.5', '1/3' or 1, got {_brief(repr(value))}. "
        "Pass text, an int, a Fraction, a Decimal or a float."
    )


def _brief(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


Kind = Literal["pure", "approximate", "zcdp"]


@dataclass(frozen=True, repr=False)
class _Amount:
    """Either epsilon or rho, and delta. The kind follows from which of them is there."""

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction

    @property
    def kind(self) -> Kind:
        """pure: delta is 0; approximate: delta is more; zcdp: rho instead of epsilon."""
        if self.rho is not None:
            return "zcdp"
        return "approximate" if self.delta else "pure"

    def __str__(self) -> str:
        name, number = ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)
        assert number is not None
        main = f"{name} {decimal(number)}"
        return f"{main}, delta {decimal(self.delta)}" if self.delta else main

    def __repr__(self) -> str:
        given = [(name, text) for name, text in self.as_dict().items() if text != "0"]
        words = ", ".join(f"{name}={text!r}" for name, text in given or [("epsilon", "0")])
        return f"{type(self).__name__}({words})"

    def as_dict(self) -> dict[str, str]:
        """Exact text, such as {"epsilon": "1/2", "delta": "0"}."""
        if self.rho is not None:
            return {"rho": show(self.rho), "delta": show(self.delta)}
        assert self.epsilon is not None
        return {"epsilon": show(self.epsilon), "delta": show(self.delta)}


@dataclass(frozen=True, repr=False)
class Loss(_Amount):
    """The price of a release, or what was spent.

    >>> str(Loss.pure("0.5")), str(Loss.approximate(1, "1e-6")), str(Loss.zcdp("1/8"))
    ('epsilon 0.5', 'epsilon 1, delta 0.000001', 'rho 0.125')
    """

    @classmethod
    def pure(cls, epsilon: Rational) -> Self:
        """epsilon-DP."""
        return cls(_amount(epsilon, "epsilon"), None, Fraction(0))

    @classmethod
    def approximate(cls, epsilon: Rational, delta: Rational) -> Self:
        """(epsilon, delta)-DP; with delta 0 it is the pure loss."""
        return cls(_amount(epsilon, "epsilon"), None, _delta(delta))

    @classmethod
    def zcdp(cls, rho: Rational, delta: Rational = 0) -> Self:
        """rho-zCDP; with delta, delta-approximate rho-zCDP (Bun and Steinke 2016, section 8)."""
        return cls(None, _amount(rho, "rho"), _delta(delta))

    @classmethod
    def from_dict(cls, content: Mapping[str, str]) -> Self:
        """Read what `as_dict` wrote (a sum may have more digits than an argument may)."""
        try:
            main = "rho" if "rho" in content else "epsilon"
            if set(content) != {main, "delta"}:
                raise ValueError
            amount, delta = stored(content[main]), stored(content["delta"])
            if amount < 0 or not 0 <= delta < 1:
                raise ValueError
        except Exception:
            raise ArgumentError(
                "A loss must be exact text under delta and epsilon, or delta and rho, "
                f"got {_keys(content)}. Pass the output of as_dict()."
            ) from None
        return cls(None, amount, delta) if main == "rho" else cls(amount, None, delta)

    def float_epsilon(self) -> float:
        """epsilon as a float, rounded up."""
        if self.epsilon is None:
            raise PrivacyError(
                f"A loss must have an epsilon, got {self}. "
                "Choose a delta and convert with epsilon_of_zcdp(rho, delta)."
            )
        return round_up(self.epsilon)


@dataclass(frozen=True, init=False, repr=False)
class Budget(_Amount):
    """Limits what may be spent on one data set in all: epsilon, or epsilon and delta, or rho.

    >>> Budget(3), Budget(rho="1/8", delta="1e-6")
    (Budget(epsilon='3'), Budget(rho='1/8', delta='1/1000000'))
    >>> print(Budget("1/2"))
    epsilon 0.5
    """

    def __init__(
        self,
        epsilon: Rational | None = None,
        *,
        rho: Rational | None = None,
        delta: Rational = 0,
    ) -> None:
        if (epsilon is None) == (rho is None):
            got = "neither" if epsilon is None else "both"
            raise ArgumentError(
                f"A budget must have either epsilon or rho, got {got}. "
                "Pass Budget(epsilon='1') or Budget(rho='1/8')."
            )
        for name, value in (("epsilon", epsilon), ("rho", rho)):
            amount = None if value is None else exact(value, name=name, minimum=0)
            object.__setattr__(self, name, amount)
        object.__setattr__(self, "delta", _delta(delta))

    @classmethod
    def from_dict(cls, content: Mapping[str, str]) -> Self:
        """Read what `as_dict` wrote."""
        keys = ({"epsilon", "delta"}, {"rho", "delta"})
        if not isinstance(content, Mapping) or set(content) not in keys:
            raise ArgumentError(
                "A budget must have the keys delta and epsilon, or delta and rho, "
                f"got {_keys(content)}. Pass the output of as_dict()."
            )
        return cls(**content)


def _keys(content: object) -> str:
    if isinstance(content, Mapping):
        return f"the keys {shown(sorted(map(str, content)))}"
    return f"a {type(content).__name__}"


def _amount(value: Rational, name: str) -> Fraction:
    return exact(value, name=name, minimum=0, strict=False)


def _delta(value: Rational) -> Fraction:
    delta = exact(value, name="delta", minimum=0, strict=False)
    if delta >= 1:
        raise ArgumentError(
            f"delta must be less than 1, got {show(delta)}. Pass a small number such as '1e-6'."
        )
    return delta
