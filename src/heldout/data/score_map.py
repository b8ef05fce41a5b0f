"""Scores without a range: a public, rising map that gives them one."""

import math
from dataclasses import dataclass
from typing import Any, Final

from heldout.arguments import as_number, pair, shown
from heldout.data.sql import double
from heldout.errors import ArgumentError

__all__ = ["FURTHEST", "ScoreMap"]

FURTHEST: Final = 1e150
"""Scores beyond this count as this; so no engine's arithmetic can overflow."""

_LEAST, _MOST = 1e-100, 1e100


@dataclass(frozen=True)
class ScoreMap:
    """The image of a score x: z / (1 + |z|) with z = (x - centre) / scale, between -1 and 1.

    Both numbers are public: choose them from what the model is, not from the rows. For a
    logistic model's linear score 0 and 1 will do; half of the grid is then spent on scores
    between -1 and 1, three quarters on those between -3 and 3.

    Only sums, quotients and a comparison of doubles are taken, which IEEE 754 fixes to the last
    bit, so that every engine gives the same image; a logistic function would differ between
    libraries. Each of these operations is monotone, rounding included, so the order of scores is
    kept; scores whose images round to the same double become ties.

    >>> linear = ScoreMap(centre=0, scale=2)
    >>> linear.image(-2.0), linear.image(0.0), linear.image(6.0)
    (-0.5, 0.0, 0.75)
    >>> linear.score(0.75)
    6.0
    >>> f"{linear.resolution(0.0, cells=2**16):.2g}, {linear.resolution(20.0, cells=2**16):.2g}"
    '6.1e-05, 0.0074'
    """

    centre: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        centre, scale = as_number(self.centre), as_number(self.scale)
        if not (abs(centre) <= _MOST and _LEAST <= scale <= _MOST):
            raise ArgumentError(
                f"score_map must be a centre of at most {_MOST:g} either way and a scale of "
                f"{_LEAST:g} to {_MOST:g}, got ({shown(self.centre)}, {shown(self.scale)}). Try "
                "(0, 1)."
            )
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "scale", scale)

    @classmethod
    def parse(cls, given: Any) -> "ScoreMap":
        """A map from itself or from (centre, scale)."""
        if isinstance(given, cls):
            return given
        both = pair(given)
        if both is None:
            raise ArgumentError(
                f"score_map must be two numbers, (centre, scale), got a {type(given).__name__}. "
                "Try (0, 1)."
            )
        return cls(*both)

    def expression(self, number: str) -> str:
        """The image of a finite or infinite double, in DuckDB's dialect."""
        held = f"least(greatest({number}, {double(-FURTHEST)}), {double(FURTHEST)})"
        distance = f"({held} - {double(self.centre)})"
        scale = double(self.scale)
        # z / (1 + |z|) would underflow for tiny z, which PostgreSQL refuses; this cannot.
        return (
            f"CASE WHEN {distance} < 0 THEN {scale} / ({scale} - {distance}) - 1"
            f" ELSE 1 - {scale} / ({scale} + {distance}) END"
        )

    def image(self, score: float) -> float:
        """The same double that `expression` gives."""
        distance = min(max(_number(score, "score"), -FURTHEST), FURTHEST) - self.centre
        if distance < 0:
            return self.scale / (self.scale - distance) - 1
        return 1 - self.scale / (self.scale + distance)

    def score(self, image: float) -> float:
        """The score of an image, as nearly as a double says it."""
        image = _number(image, "image")
        if abs(image) >= 1:
            return math.copysign(FURTHEST, image)
        return min(max(self.centre + self.scale * (image / (1 - abs(image))), -FURTHEST), FURTHEST)

    def resolution(self, score: float, *, cells: int) -> float:
        """How far scores near this one may lie apart and share a cell of the grid."""
        z = abs(_number(score, "score") - self.centre) / self.scale
        return 2 * self.scale * (1 + z) ** 2 / cells

    def describe(self) -> str:
        return f"z / (1 + |z|) of z = (score - {self.centre:g}) / {self.scale:g}"


def _number(value: Any, name: str) -> float:
    number = as_number(value)
    if math.isnan(number):
        raise ArgumentError(f"{name} must be a number, got {shown(value)}.")
    return number
