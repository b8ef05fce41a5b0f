"""Exact rationals: how a budget is read, written and rounded.

A float of 0.1 means the decimal that a person typed, one tenth, and not its binary neighbour; so
ten bookings of 0.1 are a budget of 1 exactly.
"""

import math
import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Real

from heldout.errors import ArgumentError

__all__ = ["Rational", "exact", "round_up", "show", "stored"]

Rational = str | int | Fraction | Decimal | float
"""What a public argument may be where an exact number is meant."""

# An analyst's "1e999999999" must not fill the memory of the custodian's machine.
_DIGITS = 400
_LIMIT = 10**_DIGITS
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
