"""The two steps of a naive Bayes model: noisy counts, then the cut."""

from fractions import Fraction
from typing import Any

import numpy as np

from heldout.features.budget import shares_for
from heldout.features.cut import STEP, Cuts, RowScores
from heldout.features.shrinkage import log_odds
from heldout.features.stages import Features
from heldout.mechanisms import DiscreteLaplace
from heldout.privacy.events import Event
from heldout.privacy.neighbours import Protection
from heldout.release import Step
from heldout.statistics.joint_counts import UNIT, JointCounts, size_cells

__all__ = ["CUTS", "NaiveBayesPlan", "row_scores"]

FAINT = 0.05  # log-odds below this are taken for nothing
PLAIN = 0.5  # a feature with log-odds from here on counts as selected
CUTS = Cuts(apart=Fraction(1, 2))


def row_scores(weights: Any, size_weights: Any) -> RowScores:
    """The sum of the weights of a row's features, and the weight of its size."""

    def scores(matrix: Any) -> Any:
        own = np.asarray(matrix.astype(np.int64) @ weights).ravel()
        return own + size_weights[size_cells(np.diff(matrix.indptr))]

    return scores


class NaiveBayesPlan:
    """The two steps of a naive Bayes model: noisy counts, then the cut. Public facts alone."""

    def __init__(
        self,
        *,
        features: int,
        epsilon: Fraction,
        weight: int,
        rows: int,
        protection: Protection,
    ) -> None:
        shares = shares_for(epsilon, rows=rows, protection=protection)
        self.features, self.weight, self.protection = features, weight, protection
        self.size_units = JointCounts.units_for(shares.sizes, weight)
        self.cut_epsilon = epsilon * shares.cut
        self.counts_epsilon = epsilon - self.cut_epsilon
        self.statistic(None)  # refuses a weight that is too large, before anything is booked

    def prices(self) -> tuple[Event, Event]:
        """Booked before it is known how many features there will be; the price is the same."""
        noise = DiscreteLaplace.for_epsilon(self.counts_epsilon, l1_sensitivity=1, dimension=1)
        chooser = CUTS.chooser(self.cut_epsilon, protection=self.protection)
        return noise.event(), chooser.event()

    def split(self) -> dict[str, str]:
        return {"counts": str(self.counts_epsilon), "cut": str(self.cut_epsilon)}

    def statistic(self, chosen: Features) -> JointCounts:
        count = self.features if chosen is None else len(chosen)
        return JointCounts(count, self.weight, self.size_units, chosen)

    def learn(self, chosen: Features = None) -> Step:
        statistic = self.statistic(chosen)
        return Step(statistic, self._noise(statistic))

    def understood(self, noisy: Any, chosen: Features = None) -> tuple[Any, Any]:
        """Log-odds of features and of row sizes, in lattice steps: a reading of noisy counts."""
        statistic = self.statistic(chosen)
        scale = self._noise(statistic).float_scale
        by_size, by_feature = statistic.understood(noisy)
        rows = np.maximum(by_size.sum(axis=1), 1)
        held = np.maximum(by_size, 0)
        held *= (rows / np.maximum(held.sum(axis=1), 1))[:, None]
        seen = np.maximum((held * statistic.mean_weights()).sum(axis=1), 1)
        features = log_odds(by_feature, scale=scale / UNIT, rows=seen)
        sizes = log_odds(
            by_size, scale=scale / self.size_units, rows=rows, learnt=False, largest=0.9
        )
        features = np.where(np.abs(features) < FAINT, 0, features)
        return np.rint(features * STEP).astype(np.int64), np.rint(sizes * STEP).astype(np.int64)

    def cut(self, found: tuple[Any, Any], chosen: Features = None) -> Step:
        return CUTS.step(
            row_scores(*found),
            epsilon=self.cut_epsilon,
            protection=self.protection,
            chosen=chosen,
        )

    def _noise(self, statistic: JointCounts) -> DiscreteLaplace:
        return DiscreteLaplace.for_epsilon(
            self.counts_epsilon,
            l1_sensitivity=statistic.sensitivity(self.protection),
            dimension=statistic.dimension,
        )

    def weights(self, found: tuple[Any, Any]) -> Any:
        """The shrunk log-odds of each feature; 0 for one that was not told from noise."""
        return found[0] / STEP

    def told_apart(self, weights: Any) -> Any:
        """The features that were told from noise, by number: a reading, free of charge."""
        return np.flatnonzero(np.abs(weights) >= PLAIN)
