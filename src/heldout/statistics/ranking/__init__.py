"""Ranking statistics: area under the ROC curve and average precision. No noise here."""

from heldout.statistics.ranking.auc import area, area_of_table
from heldout.statistics.ranking.average_precision import (
    average_precision,
    average_precision_of_table,
)
from heldout.statistics.ranking.difference import difference
from heldout.statistics.ranking.ranked import RankedRows, RankedTable, RankingStatistic
from heldout.statistics.ranking.sensitivity import (
    AreaSensitivity,
    PrecisionSensitivity,
    PublishedPrecisionSensitivity,
    RungSensitivity,
)
from heldout.statistics.ranking.smooth import SmoothSensitivity

__all__ = [
    "AreaSensitivity",
    "PrecisionSensitivity",
    "PublishedPrecisionSensitivity",
    "RankedRows",
    "RankedTable",
    "RankingStatistic",
    "RungSensitivity",
    "SmoothSensitivity",
    "area",
    "area_of_table",
    "average_precision",
    "average_precision_of_table",
    "difference",
]
