"""What an epsilon will buy, and what a wanted precision will cost. Touches no data."""

import math
from fractions import Fraction
from typing import Final

from heldout.errors import ArgumentError
from heldout.mechanisms.smooth.choose import sensitivity_for
from heldout.mechanisms.smooth.law import error_quantile
from heldout.mechanisms.smooth.ranking import RankingMechanism
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.statistics.ranking.metric import ranking_metric

__all__ = ["epsilon_for", "half_width_for"]

_ROWS: Final = Protection(neighbours=Neighbours.REPLACE_ONE)
_LEAST, _MOST = 1e-3, 50.0


def half_width_for(
    epsilon: Fraction,
    *,
    rows: int,
    positives: int,
    metric: str = "auc",
    level: float = 0.95,
    protection: Protection = _ROWS,
    method: str = "piecewise-laplace",
    delta: Fraction | None = None,
    smaller_class: int | None = None,
) -> float:
    """The half-width of the noise that a release with this epsilon will have.

    With `positives` of `rows` rows, P(|noise| <= half-width) = level. The class counts are the
    planner's public assumption, as everything here. For "auc-difference" the half-width is that
    of the difference itself.

    >>> round(half_width_for(Fraction(1), rows=5000, positives=500), 4)
    0.0064
    """
    if not 0 < positives < rows:
        raise ArgumentError(
            f"positives must lie between 0 and rows, got {positives} of {rows}. Guess both classes."
        )
    mechanism = RankingMechanism(
        metric=metric,
        epsilon=epsilon,
        protection=protection,
        rows=rows,
        smaller_class=smaller_class,
        method=method,
        delta=delta,
    )
    rung = mechanism.local.rung(positives=positives, negatives=rows - positives)
    law = mechanism.expected_law(positives=positives, negatives=rows - positives)
    width = error_quantile(law, rung=rung, level=level)
    return 2 * width if ranking_metric(metric).compares else width


def epsilon_for(
    half_width: float,
    *,
    rows: int,
    positives: int,
    metric: str = "auc",
    level: float = 0.95,
    protection: Protection = _ROWS,
) -> Fraction:
    """An epsilon, to three digits and near the least, whose noise has at most this half-width.

    >>> epsilon_for(0.02, rows=5000, positives=500)
    Fraction(169, 500)
    """
    if not 0 < half_width < 1:
        raise ArgumentError(f"half_width must lie between 0 and 1, got {half_width}. Try 0.02.")

    def width(epsilon: Fraction) -> float:
        return half_width_for(
            epsilon,
            rows=rows,
            positives=positives,
            metric=metric,
            level=level,
            protection=protection,
        )

    rung = sensitivity_for(metric, protection=protection).rung(
        positives=positives, negatives=rows - positives
    )
    epsilon = min(_MOST, max(_LEAST, -math.log(1 - level) / (half_width * max(rung, 1))))
    for _ in range(6):  # the half-width is nearly inverse to epsilon
        epsilon = min(_MOST, max(_LEAST, epsilon * width(_three_digits(epsilon)) / half_width))
    while width(_three_digits(epsilon)) > half_width:
        if epsilon >= _MOST:
            raise ArgumentError(
                f"half_width must be reachable with epsilon up to {_MOST:g}, got {half_width} for "
                f"{positives} positives of {rows} rows. Ask for less."
            )
        epsilon = min(_MOST, epsilon * 1.003)
    return _three_digits(epsilon)


def _three_digits(number: float) -> Fraction:
    unit = Fraction(10) ** (math.floor(math.log10(number)) - 2)
    return math.ceil(Fraction(number) / unit) * unit
