"""Exact sufficient statistics and how far one person can move them. No noise here."""

from heldout.statistics.base import Statistic, compute
from heldout.statistics.bounded_sum import BoundedSum
from heldout.statistics.call_counts import CallCounts
from heldout.statistics.counts import ThresholdCounts
from heldout.statistics.grid_counts import Axis, GridCounts, RowCount
from heldout.statistics.influence import InfluenceMoments
from heldout.statistics.power_sums import PowerSums
from heldout.statistics.score_table import ScoreTable
from heldout.statistics.sealed import Sealed

__all__ = [
    "Axis",
    "BoundedSum",
    "CallCounts",
    "GridCounts",
    "InfluenceMoments",
    "PowerSums",
    "RowCount",
    "ScoreTable",
    "Sealed",
    "Statistic",
    "ThresholdCounts",
    "compute",
]
