"""What may be declared of a table's columns: ranges, weights, rivals, the values of a label."""

import contextlib
import math
from collections.abc import Sequence
from typing import Any

from heldout.arguments import as_number, shown
from heldout.errors import ArgumentError

__all__ = ["checked_range", "checked_rivals", "checked_weight", "other_label"]

NARROWEST, WIDEST = 1e-150, 1e150  # the squared width, and cells over it, stay ordinary doubles


def checked_range(score_range: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in score_range)
    except Exception:
        raise ArgumentError(
            "score_range must be two numbers (lowest, highest). Declare what the model can give."
        ) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ArgumentError(
            f"score_range must be two finite numbers, the lower first, got ({low}, {high})."
        )
    if not NARROWEST <= high - low <= WIDEST:
        raise ArgumentError(
            f"score_range must be {NARROWEST:g} to {WIDEST:g} wide, got ({low:g}, {high:g}). "
            "Rescale the scores."
        )
    return low, high


def checked_weight(weight: Any, largest: Any) -> float:
    if (weight is None) != (largest is None):
        raise ArgumentError("weight and largest_weight must be given together.")
    if weight is None:
        return 1.0
    number = as_number(largest)
    if not isinstance(weight, str) or not NARROWEST <= number <= WIDEST:
        raise ArgumentError(
            "weight must be the name of a column and largest_weight a positive number, got "
            f"{shown(weight)} and {shown(largest)}."
        )
    return number


def checked_rivals(rivals: Sequence[str]) -> tuple[str, ...]:
    with contextlib.suppress(Exception):
        found = tuple(rivals)
        texts = all(isinstance(each, str) for each in found) and not isinstance(rivals, str)
        if texts and len(set(found)) == len(found):
            return found
    raise ArgumentError("rivals must be a list of distinct columns, such as ['risk_b'].")


def other_label(positive: object, negative: object) -> object:
    for name, value in (("positive", positive), ("negative", negative)):
        allowed = isinstance(value, str | bool | int | float) or (
            name == "negative" and value is None
        )
        number = isinstance(value, int | float)
        if not allowed or (number and not math.isfinite(as_number(value))):
            raise ArgumentError(f"{name} must be a text, a number or a bool, got {shown(value)}.")
    if negative is None:
        if isinstance(positive, str) or positive not in (0, 1):
            raise ArgumentError(
                f"negative must be declared when positive is {positive!r}. Say which two values "
                "the label has, for example positive='yes', negative='no' (--positive yes "
                "--negative no)."
            )
        negative = type(positive)(1 - positive)
    if negative == positive:
        raise ArgumentError(f"negative must differ from positive, got {positive!r} for both.")
    return negative
