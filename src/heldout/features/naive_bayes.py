"""Naive Bayes from one release of noisy counts; which features count is then free to choose."""

import os
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.errors import ArgumentError
from heldout.features.budget import shares_for
from heldout.features.cut import STEP, Cuts, RowScores
from heldout.features.matrix import FeatureMatrix
from heldout.features.model import ModelRelease
from heldout.features.shrinkage import log_odds
from heldout.features.stages import Features, Stages
from heldout.features.training import PrivateClassifier
from heldout.mechanisms import DiscreteLaplace
from heldout.privacy import Budget, Ledger
from heldout.privacy.events import Event
from heldout.privacy.neighbours import Neighbours, Protection
from heldout.release import Step
from heldout.session import Epsilon, PrivateSession
from heldout.statistics.joint_counts import UNIT, JointCounts, size_cells

__all__ = ["NaiveBayesPlan", "PrivateNaiveBayes"]

WEIGHT = 5
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


class PrivateNaiveBayes(PrivateClassifier):
    """Naive Bayes on 0/1 features, differentially private (pure epsilon), for many features.

    One release holds noisy counts of every feature by label, in which a row with many features
    gives each a smaller weight. Each feature's log-odds is then shrunk by what its noisy counts
    say against the noise that is known to be in them, so features that are all noise weigh
    nothing: selection costs nothing extra. Last, the cut that is right most often is chosen by
    permute-and-flip.

    Claim:       pure DP, epsilon.                                          [claim: naive-bayes]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: `JointCounts` for the counts, `RightCalls` for the cut.
    Numerics:    exact, on integers; weights are readings of noisy integers.
    Refuses:     no epsilon; labels other than the two declared ones.
    Reference:   Vaidya et al. 2013; proofs/naive-bayes.md.
    Cost:        one pass over the entries for each of two steps, 8 microseconds a feature.

    `weight` is how many features a row may set before their weights shrink. The other parameters
    are those of `PrivateClassifier`.

    >>> X = np.zeros((2000, 40), dtype=int); y = np.arange(2000) % 2
    >>> X[y == 1, 3] = 1; X[y == 0, 5] = 1
    >>> model = PrivateNaiveBayes(epsilon="1").fit(X, y)
    >>> bool((model.predict(X) == y).mean() > 0.99), str(model.release_.loss)
    (True, 'epsilon 1')
    """

    def __init__(
        self,
        *,
        epsilon: Epsilon | None = None,
        classes: Any = (0, 1),
        binarize: float = 0.0,
        weight: int = WEIGHT,
        features_per_row: int | None = None,
        expected_rows: int | None = None,
        neighbours: str | Neighbours = "replace-one",
        rows_per_unit: int = 1,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            classes=classes,
            binarize=binarize,
            features_per_row=features_per_row,
            expected_rows=expected_rows,
            neighbours=neighbours,
            rows_per_unit=rows_per_unit,
            ledger=ledger,
            budget=budget,
        )
        self.weight = weight

    def plan(self, private: FeatureMatrix, price: Fraction) -> NaiveBayesPlan:
        """How the price will be spent on these rows; of public facts alone."""
        weight = self.weight
        if isinstance(weight, bool) or not isinstance(weight, int | np.integer) or weight < 1:
            raise ArgumentError(f"weight must be a whole number from 1, got {weight!r}. Try 5.")
        return NaiveBayesPlan(
            features=private.features,
            epsilon=price,
            weight=min(int(weight), private.features),
            rows=self._rows(private),
            protection=private.protection,
        )

    def _train(self, private: FeatureMatrix, price: Fraction, session: PrivateSession) -> None:
        stages = Stages(self.plan(private, price))
        drawn = session._release(
            stages.request("naive Bayes", claim="naive-bayes", features=private.features)
        )
        self._understand(stages, drawn.values[-1][0])
        self.split_ = stages.split()
        self.release_ = ModelRelease(
            drawn,
            weights=self.weights_,
            selected=self.selected_,
            split=self.split_,
            names=private.feature_names,
        )

    def _understand(self, stages: Stages, place: int) -> None:
        self._found = weights, sizes = stages.found
        self.weights_ = weights / STEP
        """The shrunk log-odds of each feature; 0 for one that was not told from noise."""
        self.size_weights_ = sizes / STEP
        self.cut_ = CUTS.value(place)
        self.selected_ = np.flatnonzero(np.abs(self.weights_) >= PLAIN)
        """The features that were told from noise, by number: a reading, free of charge."""

    def _scores(self, matrix: Any) -> Any:
        return row_scores(*self._found)(matrix) / STEP - self.cut_
