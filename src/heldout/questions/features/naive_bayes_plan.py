"""The two steps of a naive Bayes model: noisy counts, then the cut."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from heldout.kernel.door import Step
from heldout.kernel.events import Event
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.questions.features.budget import LATEST, RULES, Rules, places_for, shares_for
from heldout.questions.features.cut import STEP, Cuts
from heldout.questions.features.joint_counts import SIZES, UNIT, JointCounts, place_of
from heldout.questions.features.right_calls import SummedScores
from heldout.questions.features.shrinkage import log_odds
from heldout.questions.features.stages import Features

__all__ = ["CUTS", "NaiveBayesPlan", "size_units"]

FAINT = 0.05  # log-odds below this are taken for nothing
PLAIN = 0.5  # a feature with log-odds from here on counts as selected
CUTS = Cuts(apart=Fraction(1, 2))


def size_units(share: Fraction, weight: int) -> int:
    """The units that make the size cells take this share of a row's weight."""
    return max(1, round(share / (1 - share) * weight * UNIT))


def mean_weights(weight: int) -> Any:
    """About what a feature of a row weighs, by cell of sizes; public."""
    spans = [np.arange(a, b) for a, b in pairwise((*SIZES, 2 * SIZES[-1]))]
    return np.array([1.0, *(np.minimum(1.0, weight / span).mean() for span in spans)])


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
        rules: Rules = RULES[LATEST],
    ) -> None:
        shares = shares_for(
            epsilon, rows=rows, protection=protection, features=features, rules=rules
        )
        self.features, self.weight, self.protection = features, weight, protection
        self.epsilon, self.rows, self.rules = epsilon, rows, rules
        self.size_units = size_units(shares.sizes, weight)
        self.cut_epsilon = epsilon * shares.cut
        self.counts_epsilon = epsilon - self.cut_epsilon

    def prices(self) -> tuple[Event, Event]:
        """Booked before it is known how many features there will be; the price is the same."""
        chooser = CUTS.chooser(self.cut_epsilon, protection=self.protection)
        noise = DiscreteLaplace.for_epsilon(self.counts_epsilon, l1_sensitivity=1, dimension=1)
        return noise.event(), chooser.event()

    def split(self) -> dict[str, str]:
        return {"counts": str(self.counts_epsilon), "cut": str(self.cut_epsilon)}

    def learn(self, chosen: Features = None) -> Step:
        count = self.features if chosen is None else len(chosen)
        places = None
        if self.rules.shared:
            places = places_for(
                count, epsilon=self.epsilon, rows=self.rows, protection=self.protection
            )
        statistic = JointCounts(count, self.weight, self.size_units, chosen, places)
        noise = DiscreteLaplace.for_epsilon(
            self.counts_epsilon,
            l1_sensitivity=statistic.sensitivity(self.protection),
            dimension=statistic.dimension,
        )
        return Step(statistic, noise)

    def understood(self, noisy: Any, chosen: Features = None) -> tuple[Any, Any]:
        """Log-odds of features and of row sizes, in lattice steps: a reading of noisy counts."""
        asked = self.learn(chosen)
        noise, counts = asked.mechanism, asked.statistic
        assert isinstance(noise, DiscreteLaplace)
        assert isinstance(counts, JointCounts)
        scale, real, cells = noise.float_scale, np.asarray(noisy, dtype=float), len(SIZES) + 1
        by_size = real[: 2 * cells].reshape(2, cells) / self.size_units
        by_feature = real[2 * cells :].reshape(2, -1) / UNIT
        by_size[:, 1:][:, np.array(SIZES) > counts.features] = 0  # no row has so many: noise
        rows = np.maximum(by_size.sum(axis=1), 1)
        held = np.maximum(by_size, 0)
        held *= (rows / np.maximum(held.sum(axis=1), 1))[:, None]
        seen = np.maximum((held * mean_weights(self.weight)).sum(axis=1), 1)
        centred = self.rules.centred
        features = log_odds(by_feature, scale=scale / UNIT, rows=seen, centred=centred)
        sizes = log_odds(
            by_size,
            scale=scale / self.size_units,
            rows=rows,
            learnt=False,
            largest=0.9,
            centred=centred,
        )
        features = np.where(np.abs(features) < FAINT, 0, features)
        features = features[place_of(counts.features, counts.places)]
        return np.rint(features * STEP).astype(np.int64), np.rint(sizes * STEP).astype(np.int64)

    def cut(self, found: tuple[Any, Any], chosen: Features = None) -> Step:
        return CUTS.step(
            SummedScores(*found),
            epsilon=self.cut_epsilon,
            protection=self.protection,
            chosen=chosen,
        )

    def weights(self, found: tuple[Any, Any]) -> Any:
        """The shrunk log-odds of each feature; 0 for one that was not told from noise."""
        return found[0] / STEP

    def told_apart(self, weights: Any) -> Any:
        """The features that were told from noise, by number: a reading, free of charge."""
        return np.flatnonzero(np.abs(weights) >= PLAIN)
