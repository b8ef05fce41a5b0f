"""The ranking metrics there are: what each is worth, and how far one person can move it."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from heldout.arguments.rules import OneOf
from heldout.kernel.ranking.auc import area, area_of_table
from heldout.kernel.ranking.average_precision import average_precision, average_precision_of_table
from heldout.kernel.ranking.sensitivity import (
    AreaSensitivity,
    PrecisionSensitivity,
    PublishedPrecisionSensitivity,
    RungSensitivity,
)

__all__ = ["METRICS", "RankingMetric", "ranking_metric"]


@dataclass(frozen=True)
class RankingMetric:
    """One metric of how rows are ranked; everything that differs from metric to metric."""

    name: str
    words: str
    claim: str
    of_rows: Callable[[Any, Any], Fraction]
    """Of the scores of positives and of negatives."""
    of_table: Callable[[Any, Any], Fraction]
    """Of negatives and positives by score cell, lowest score first."""
    bound: type[RungSensitivity]
    published_bound: type[RungSensitivity]
    """The bound of the papers, for their methods exactly as published."""
    scales: int
    """How many noise scales of the second look the class should measure: intervals are then within
    a few percent of those with the true count. For areas more, as the smaller of two is used."""
    shares: tuple[Fraction, Fraction]
    """Of epsilon, for each score table and for the moments of influence beside the value."""
    least_visible: int
    """Rows times epsilon, halved with each row more that neighbours differ in: below it the moments
    drown in noise, and what they cost is better spent on the value."""
    compares: bool = False
    """Whether it is the `difference` of two models on the same rows."""


METRICS: Final = {
    each.name: each
    for each in (
        RankingMetric(
            name="auc",
            words="AUC",
            claim="auc-sensitivity",
            of_rows=area,
            of_table=area_of_table,
            bound=AreaSensitivity,
            published_bound=AreaSensitivity,
            scales=11,
            shares=(Fraction(1, 20), Fraction(1, 8)),
            least_visible=5_000,
        ),
        RankingMetric(
            name="average-precision",
            words="average precision",
            claim="ap-sensitivity",
            of_rows=average_precision,
            of_table=average_precision_of_table,
            bound=PrecisionSensitivity,
            published_bound=PublishedPrecisionSensitivity,
            scales=9,
            # A few rows at the top pull so hard at it that moments with noise for them say
            # nothing: its tables say more alone.
            shares=(Fraction(1, 10), Fraction(0)),
            least_visible=5_000,
        ),
        RankingMetric(
            name="auc-difference",
            words="difference",
            claim="auc-difference",
            of_rows=area,
            of_table=area_of_table,
            bound=AreaSensitivity,
            published_bound=AreaSensitivity,
            scales=11,
            shares=(Fraction(1, 20), Fraction(1, 10)),
            least_visible=500,
            compares=True,
        ),
    )
}


def ranking_metric(name: str) -> RankingMetric:
    """A metric by its name.

    >>> ranking_metric("auc").words
    'AUC'
    """
    return METRICS[OneOf(METRICS)(name, "metric")]
