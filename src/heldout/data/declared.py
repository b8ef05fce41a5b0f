"""What may be declared of a table's columns: ranges, weights, rivals, the values of a label."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from heldout.arguments import as_number, shown
from heldout.data.score_map import ScoreMap
from heldout.errors import ArgumentError

__all__ = [
    "Scale",
    "checked_range",
    "checked_rivals",
    "checked_weight",
    "declared_scales",
    "declared_values",
    "ends_of",
    "other_label",
]

Scale = tuple[float, float] | ScoreMap
"""The scale of a column of scores: its range, or the map that gives it one."""

MOST_VALUES = 64  # of declared scores: of more, each holds few rows
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


def ends_of(scale: Scale) -> tuple[float, float]:
    """Return the range of what scores of this scale count as."""
    return (-1.0, 1.0) if isinstance(scale, ScoreMap) else scale


def declared_values(values: Any, scale: Scale) -> tuple[float, ...]:
    """Return the values that scores can take, each once and rising; none where none are declared.

    >>> declared_values([0.5, 0.1, 0.5], (0.0, 1.0))
    (0.1, 0.5)
    """
    if values is None:
        return ()
    if isinstance(scale, ScoreMap):
        raise ArgumentError("score_values must go with score_range, not with score_map.")
    try:
        found = sorted({float(value) for value in values})
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError("score_values must be numbers, such as [0.1, 0.5, 0.9].") from None
    low, high = scale
    if not 2 <= len(found) <= MOST_VALUES or not low <= found[0] <= found[-1] <= high:
        raise ArgumentError(
            f"score_values must be 2 to {MOST_VALUES} different numbers within score_range "
            f"({low:g}, {high:g}). Leave them out where a model gives more."
        )
    return tuple(found)


def declared_scales(score_range: Any, score_map: Any, names: Sequence[str]) -> dict[str, Scale]:
    """Return the scale of each column of scores; both arguments hold for all, or are by column.

    >>> declared_scales({"decile": (1, 10)}, None, ["risk", "decile"])
    {'risk': (0.0, 1.0), 'decile': (1.0, 10.0)}
    """
    ranges, maps = (
        {name: given[name] for name in given} if isinstance(given, Mapping) else None
        for given in (score_range, score_map)
    )
    for argument, columns in (("score_range", ranges), ("score_map", maps)):
        for name in columns or ():
            if name not in names:
                raise ArgumentError(
                    f"{argument} must name columns of scores, got {shown(name)}. Declare other "
                    f"models' columns: rivals=[{shown(name)}]."
                )
    both = set(ranges or ()) & set(maps or ())
    plain = ranges is None and maps is None and score_map is not None
    if both or (plain and checked_range(score_range) != (0.0, 1.0)):
        raise ArgumentError("Pass either score_range= or score_map= for a column, not both.")
    everywhere: Scale = (0.0, 1.0) if ranges is not None else checked_range(score_range)
    if maps is None and score_map is not None:
        everywhere = ScoreMap.parse(score_map)
    by_name: dict[str, Scale] = {
        name: checked_range(given) for name, given in (ranges or {}).items()
    }
    by_name |= {name: ScoreMap.parse(given) for name, given in (maps or {}).items()}
    return {name: by_name.get(name, everywhere) for name in names}


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
