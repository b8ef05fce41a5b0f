"""Private classifiers with the manners of scikit-learn: one fit is one booking."""

import math
import os
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from heldout.arguments import (
    Whole,
    as_array,
    as_number,
    as_numbers,
    as_whole,
    is_one_of,
    shown,
)
from heldout.arrays import Floats, Ints
from heldout.data.feature_matrix import (
    NUMBER_BINS,
    Bound,
    FeatureMatrix,
    ScoredFeatures,
    bin_edges,
    bin_places,
    check_places,
)
from heldout.errors import ArgumentError, DataError, NotPrivate, UnknownLabel, WrongType
from heldout.kernel import Budget, Ledger, exact
from heldout.kernel.door import release as release_request
from heldout.kernel.neighbours import Neighbours
from heldout.kernel.noise.additive import baseline_noise
from heldout.kernel.noise.mechanism import shown_as_it_is
from heldout.kernel.statistic import compute
from heldout.questions.features.plans import (
    BAYES_CUTS,
    LOGISTIC_CUTS,
    MARGIN,
    STEP,
    LogisticPlan,
    Stages,
)
from heldout.questions.features.questions import (
    AUTO,
    JOINT,
    ModelRelease,
    OutsideStages,
    PricedEstimator,
    Training,
    declared_price,
    scores_of,
)
from heldout.questions.features.questions import Selection as SelectionQuestion
from heldout.questions.features.selection import (
    BASELINES,
    METHODS,
    Chosen,
    NotPrivateSelection,
    Selection,
    cluster_selection_2014,
    noisy_cut,
    private_threshold_testing,
)
from heldout.questions.features.statistics import (
    FeatureScores,
    RegressionScores,
    SparseRows,
    SummedScores,
    score_named,
)
from heldout.questions.features.tuned import FEATURES_PER_ROW, GUESSED_ROWS, TABLE, WEIGHT
from heldout.questions.session import Epsilon, PrivateSession

OBSERVED = "observed"
MOST_ROWS = 2**24  # so that sums of rounding errors have a public bound


# Columns as 0/1 features, by public bounds: nothing is learnt from the rows.
@dataclass(kw_only=True, eq=False, repr=False)
class Bins(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Say of each column in which of some public bins a value lies.

    A private classifier learns from 0/1 features. A column becomes one for each bin, of which a
    row sets one; a value beyond the bounds is in the nearer bin. `bounds` has an entry for each
    column: two ends, between which `bins` bins are as wide as one another; more numbers, the edges
    of the bins themselves (good where values crowd near one end); or a whole number of kinds,
    which are 0, 1, 2, .... Declare them: never read them off the rows.

    >>> Bins(bounds=[(0, 10), (0, 1)], bins=2).transform([[3, 1], [99, 0]]).toarray().tolist()
    [[1, 0, 0, 1], [0, 1, 1, 0]]
    >>> Bins(bounds=[(0, 1, 100), 3]).transform([[3, 2]]).toarray().tolist()
    [[0, 1, 0, 0, 1]]
    """

    bounds: Sequence[Bound]
    bins: int = 8

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Return itself: there is nothing to learn."""
        return self

    @property
    def edges(self) -> list[Floats]:
        """Return the edges of each column's bins."""
        bins = Whole(2, 1000)(self.bins, "bins")
        return [bin_edges(bound, bins) for bound in self.bounds]

    @property
    def columns(self) -> tuple[int, ...]:
        """Return how many features each column becomes."""
        return tuple(len(edges) - 1 for edges in self.edges)

    @property
    def ordered(self) -> tuple[int, ...]:
        """Return which columns have bins in order: those with ends or edges."""
        return tuple(place for place, bound in enumerate(self.bounds) if as_whole(bound) is None)

    def transform(self, X: Any) -> Any:
        """Return a sparse matrix with a column for each bin of each column of X."""
        edges, numbers = self.edges, as_numbers(X, name="X")
        if numbers.ndim != 2 or numbers.shape[1] != len(edges):
            raise ArgumentError(f"bounds must have an entry for each column, got {len(edges)}.")
        if np.isnan(numbers).any():
            raise ArgumentError("X must have a number in every cell. Fill in what is missing.")
        starts = np.cumsum([0, *self.columns])
        places = [
            bin_places(column, own) + start
            for column, own, start in zip(numbers.T, edges, starts, strict=False)
        ]
        columns = np.column_stack(places).ravel()
        rows = np.repeat(np.arange(len(numbers)), len(edges))
        shape = (len(numbers), int(starts[-1]))
        return csr_array((np.ones(len(columns), dtype=np.int8), (rows, columns)), shape=shape)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return what the bins are called: the column and the ends of the bin, or its kind."""
        names = input_features or [f"x{place}" for place in range(len(self.bounds))]
        if len(names) != len(self.bounds):
            wanted = f"input_features must be {len(self.bounds)} names"
            raise ArgumentError(f"{wanted}, got {shown(names)}.")
        called = []
        for place, (name, edges) in enumerate(zip(names, self.edges, strict=True)):
            if place in self.ordered:
                called += [f"{name} {a:g} to {b:g}" for a, b in pairwise(edges)]
            else:
                called += [f"{name} {kind}" for kind in range(len(edges) - 1)]
        return np.array(called, dtype=object)


# How messages of scikit-learn begin that quote no cell, and how far each may be shown.
_QUIET = re.compile(
    r"Input [Xy] contains .*|Found array with .*|Found input variables .*|X has \d+ features.*"
    r"|The feature names should match .*|Sparse data was passed.*|A sparse matrix was passed .*"
    r"|dtype='numeric' is not compatible .*|Unknown label type: [a-z-]+.*|y should be a 1d array.*"
    r"|[^'\"\n]* requires y to be passed.*|Expected 2D array, got [^\n]*? instead(?=:)"
    r"|Complex data not supported(?=\n)|float\(\) argument must be [a-z ]+ number, not '\w+'",
    re.DOTALL,
)


def without_cells(message: str) -> str:
    """A message of scikit-learn that quotes no cell of X or y, or one of ours in its place.

    >>> without_cells("could not convert string to float: 'Smith'")
    'X and y must be numbers, a label for each row of X. Convert them first.'
    >>> without_cells("Complex data not supported\\n[[1.j]]\\n")
    'Complex data not supported'
    """
    known = _QUIET.match(message)
    if known is None:
        return "X and y must be numbers, a label for each row of X. Convert them first."
    advice = ". Reshape your data" if known[0].startswith("Expected 2D") else ""
    return known[0] + advice


def _are_texts(X: Any) -> bool:
    """Return whether X is a list, an array or a column of texts."""
    if isinstance(X, str) or issparse(X) or getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__"):
        return False
    return len(X) > 0 and all(isinstance(text, str) for text in X)


NUMERIC = (
    "X must be 0 and 1, or counts of which all above 0 count as 1. For other numbers pass bounds= "
    "to PrivateLogisticRegression, make 0/1 features of them with heldout.features.Bins(bounds=...)"
    ", or pass binarize=, a public cut for all of them."
)


def _are_counts(X: Any) -> bool:
    """Return whether all cells are whole numbers that are not negative."""
    cells = X.data if issparse(X) else as_numbers(X, name="X")
    return bool(np.all((cells >= 0) & (cells == np.floor(cells))))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fits private rows of 0/1 features with two labels, for a price that is booked first.

    Parameters
    ----------
    epsilon
        The price of one `fit`. Every call of `fit` is a new release and pays again.
    classes
        The two labels, the negative one first. Which labels exist is public and declared here;
        "observed" takes the two that are found in `y`, for data whose labels are no secret.
    binarize
        A feature is set where X is more than this. None (the default) takes 0 and 1, or counts of
        which all above 0 count as 1, and refuses other numbers; see `heldout.features.Bins`.
    features_per_row
        A bound on the features that one row may set, kept by a rule that looks at that row alone.
    expected_rows
        A public guess of the number of rows, where that number is not public itself. A wrong
        guess costs accuracy, never privacy.
    neighbours, rows_per_unit
        What is protected; with `fit(X, y, unit=...)` all rows of a unit.
    ledger, budget
        Where the price is booked, and what these rows may cost in all; None is a ledger in memory
        with a budget of `epsilon`, which forgets. A path or an address can be cloned with the
        estimator (cross-validation does that); an open `Ledger` cannot.
    account
        The ledger's registered account that pays. A session that evaluates the model and names the
        same account pays from what is left there.
    """

    epsilon: Epsilon | None = None
    classes: Any = (0, 1)
    binarize: float | None = None
    features_per_row: int | None = None
    expected_rows: int | None = None
    neighbours: str | Neighbours = "replace-one"
    rows_per_unit: int = 1
    ledger: str | os.PathLike[str] | Ledger | None = None
    budget: Budget | None = None
    account: str | None = None

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, row_keys: Any = None) -> Self:
        """Book epsilon, then learn from the rows; `X` may be a `FeatureMatrix`, without `y`."""
        price = self._price()
        question = self._question(price)
        private = self._private(X, y, unit=unit, row_keys=row_keys)
        release = self._session(private, price).ask(question)
        drawn = release._drawn
        self.release_, self.split_ = release, release.split
        self.weights_, self.selected_ = release.weights, release.selected
        self._understand(drawn.request.reading, drawn.values["cut"][0])
        return self

    def _session(self, private: FeatureMatrix, price: Fraction) -> PrivateSession:
        budget = self.budget
        if budget is None and self.ledger is None:
            budget = Budget(epsilon=price)
        return PrivateSession(private, budget=budget, ledger=self.ledger, account=self.account)

    def _price(self) -> Fraction:
        if self.epsilon is None:
            raise ArgumentError("epsilon must be given: the price of one fit. Try epsilon='1'.")
        price = exact(self.epsilon, name="epsilon", minimum=0)
        if price <= 0:
            raise ArgumentError("epsilon must be more than 0. Pass a larger number.")
        return price

    @abstractmethod
    def _question(self, price: Fraction) -> Training:
        """Return what one fit asks of the rows."""

    @abstractmethod
    def _understand(self, stages: Stages, place: int) -> None:
        """Set what `decision_function` needs: what the answers meant, and which cut was chosen."""

    @abstractmethod
    def _scores(self, matrix: SparseRows) -> Floats:
        """Return the log-odds of the second class, for public rows."""

    def _private(self, X: Any, y: Any, *, unit: Any, row_keys: Any) -> FeatureMatrix:
        """Put the rows behind the door. What is checked here, the holder of the rows alone sees."""
        if isinstance(X, FeatureMatrix):
            if y is not None or unit is not None or row_keys is not None:
                raise ArgumentError("Leave y, unit and row_keys out with a FeatureMatrix.")
            self.classes_ = np.array([X._values.negative, X._values.positive])
            self.n_features_in_ = X.features
            self.space_ = X.space
            return X
        self.space_ = None
        X, y = self._validated(X, y)
        features, bound = self._set(X), self._bound()
        self.classes_ = self._declared_classes(y)
        negative, positive = self.classes_.tolist()
        known = (Neighbours.REPLACE_ONE, Neighbours.LABEL)
        public = unit is None and is_one_of(self.neighbours, known)
        most = MOST_ROWS if public else self._most_rows()
        if X.shape[0] > most:
            raise DataError(
                f"rows must be at most {most:,} with these settings. Pass a larger expected_rows."
            )
        try:
            private = FeatureMatrix(
                features,
                y,
                features_per_row=bound,
                positive=positive,
                negative=negative,
                unit=unit,
                rows_per_unit=self.rows_per_unit,
                row_keys=row_keys,
                neighbours=self.neighbours,
                feature_names=self._feature_names(),
                most_rows=most,
            )
        except UnknownLabel:
            raise UnknownLabel(
                f"y must hold the two labels in classes, {shown(negative)} and {shown(positive)}, "
                "and no other. Pass classes=(negative, positive)."
            ) from None
        private._known_from(X, y)
        return private

    def _declared_classes(self, y: Any) -> NDArray[Any]:
        observed = isinstance(self.classes, str) and self.classes == OBSERVED
        declared: NDArray[Any] = (
            np.unique(y) if observed else as_array(self.classes, name="classes")
        )
        if declared.shape != (2,) or len(set(map(str, declared.tolist()))) < 2:
            seen = "1 class in y" if declared.size == 1 else "more classes in y"
            got = seen if observed else shown(self.classes)
            raise ArgumentError(
                f"classes must be two labels for this classifier, got {got}. Only binary "
                "classification is supported. Declare them, the negative one first."
            )
        return declared

    def _set(self, X: Any) -> SparseRows:
        """Return which features a row sets, as a sparse 0/1 matrix."""

        cut = 0.0 if self.binarize is None else as_number(self.binarize)
        if self.binarize is None and not _are_counts(X):
            raise DataError(NUMERIC)
        if math.isnan(cut):
            raise ArgumentError(f"binarize must be a number, got {shown(self.binarize)}. Try 0.")
        if issparse(X) and cut >= 0:
            copy = csr_array(X, copy=True)  # what follows would change the caller's own matrix
            copy.sum_duplicates()
            above = csr_array(
                ((copy.data > cut).astype(np.int8), copy.indices, copy.indptr),
                shape=copy.shape,
            )
            above.eliminate_zeros()
        else:
            dense = X.toarray() if issparse(X) else as_numbers(X, name="X")
            above = csr_array((dense > cut).astype(np.int8))
        features: SparseRows = above
        return features

    def _feature_names(self) -> Any:
        """Return what the features are called, or None."""
        return getattr(self, "feature_names_in_", None)

    def _bound(self) -> int | None:
        """Return how many features one row may set."""
        return self.features_per_row

    def _most_rows(self) -> int:
        """A bound on rows whose number is not public; more are refused before anything is asked."""
        return MOST_ROWS

    def _guess(self) -> int:
        guess = GUESSED_ROWS if self.expected_rows is None else self.expected_rows
        return Whole()(guess, "expected_rows")

    def _checked(self, X: Any) -> SparseRows:
        check_is_fitted(self, "release_")
        if isinstance(X, FeatureMatrix):
            raise ArgumentError(
                "A FeatureMatrix holds private rows, and predictions row by row would reveal "
                "them. Pass public rows or texts; or evaluate the model on these rows: "
                "Session(model.scored(rows), ...)."
            )
        if _are_texts(X):
            if self.space_ is None:
                raise ArgumentError(
                    "X must be numbers, as the rows that this model was fitted to. Texts need a "
                    "model that was fitted to FeatureMatrix.from_table(..., text=, space=)."
                )
            X = self.space_.matrix([str(text) for text in X])
        return self._set(self._validated(X, reset=False))

    def _validated(self, X: Any, y: Any = "no_validation", *, reset: bool = True) -> Any:
        """Check what scikit-learn asks of X and y; few of its messages pass, as they may quote a
        cell."""
        try:
            if issparse(X):
                check_places(X)
            valid = validate_data(self, X, y, accept_sparse="csr", reset=reset)
            if reset:
                check_classification_targets(valid[1])
            return valid
        except Exception as error:
            kind = WrongType if isinstance(error, TypeError) else DataError
            message = " ".join(without_cells(str(error)).split())
        raise kind(message)

    def scored(self, private: FeatureMatrix) -> ScoredFeatures:
        """The private rows with this model's score of each, for a `Session` that evaluates it.

        They stay private: what was fitted and what is asked of them are paid from one budget, the
        rows' own, where the ledger (or the account) is the same.
        """
        check_is_fitted(self, "release_")
        if not isinstance(private, FeatureMatrix) or private.features != len(self.weights_):
            raise ArgumentError(
                f"private must be a FeatureMatrix of {len(self.weights_)} features, as the model "
                "was fitted to."
            )
        from scipy.special import expit

        return ScoredFeatures(private, lambda matrix: expit(self._scores(matrix)))

    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of the second class against the first.

        `X` is used as it is: public rows, or rows whose predictions stay behind another door.
        """
        return self._scores(self._checked(X))

    def predict(self, X: Any) -> NDArray[Any]:
        positive = self.decision_function(X) >= 0
        labels: NDArray[Any] = self.classes_[positive.astype(int)]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        from scipy.special import expit

        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def predict_log_proba(self, X: Any) -> Floats:
        from scipy.special import log_expit

        scores = self.decision_function(X)
        return np.column_stack([log_expit(-scores), log_expit(scores)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = True
        return tags


TIMES = 16  # more rows than so many times the guess are refused, on the custodian's side


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(PrivateClassifier):
    """Ridge logistic regression, differentially private (pure epsilon).

    Noise is put into the loss before it is minimised (objective perturbation). With many features
    it is Laplace in every coefficient, of a size that depends on how much one row weighs and not on
    the number of features; with few, noise of the law exp(-max), a third as large for rows that
    set about half of them. Rows on the right side pull until they are well beyond the cut, so that
    they pull hard from the start; the log-odds are those of that loss. The solver's and the
    doubles' errors have a proved bound, which a little noise at the end covers.

    Claim:       pure DP, epsilon.                                             [claim: logistic]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: that of `LogisticLoss`.
    Numerics:    exact noise; doubles with a proved bound inside.
    Refuses:     no epsilon; labels other than the two declared ones; rows far beyond
                 `expected_rows` where their number is not public.
    Reference:   Chaudhuri, Monteleoni and Sarwate 2011; proofs/logistic.md.
    Cost:        a dozen Newton steps and 16 microseconds per feature.

    `ridge` is the least strength of the penalty ridge/2 |t|^2 on the sum of losses; None chooses it
    from epsilon. `weight` is how many features a row may set before their weights shrink. The other
    parameters are those of `PrivateClassifier`.

    `bounds` makes it a regression on numbers and kinds instead of 0/1 features: an entry for each
    column of X, as `heldout.features.Bins` takes them. It is two ends between which a number lies,
    the edges of bins (best where values crowd near one end), or a whole number of kinds, coded 0,
    1, 2, .... A number gets a slope, and a bend where there are enough rows. Bounds are public:
    never read them off the rows.

    >>> import numpy as np
    >>> X = np.zeros((2000, 40), dtype=int); y = np.arange(2000) % 2
    >>> X[y == 1, 3] = 1; X[y == 0, 5] = 1
    >>> model = PrivateLogisticRegression(epsilon="1").fit(X, y)
    >>> bool((model.predict(X) == y).mean() > 0.99), str(model.release_.loss)
    (True, 'epsilon 1')
    """

    bounds: Sequence[Bound] | None = None
    weight: int = WEIGHT
    ridge: Epsilon | None = None

    def _question(self, price: Fraction) -> Training:
        bins = self._bins
        return Training(
            epsilon=price,
            classifier="logistic",
            weight=self.weight,
            ridge=self.ridge,
            expected_rows=self.expected_rows,
            sizes=None if bins is None else bins.columns,
            ordered=() if bins is None else bins.ordered,
        )

    @property
    def _bins(self) -> Bins | None:
        """Return how numbers become features, if bounds were given."""
        if self.bounds is None:
            return None
        if self.binarize is not None:
            raise ArgumentError("Pass either bounds or binarize, not both.")
        return Bins(bounds=self.bounds, bins=NUMBER_BINS)

    def _set(self, X: Any) -> SparseRows:
        if self._bins is None:
            return super()._set(X)
        binned: SparseRows = self._bins.transform(X.toarray() if issparse(X) else X)
        return binned

    def _feature_names(self) -> Any:
        names = super()._feature_names()
        if self._bins is None:
            return names
        return self._bins.get_feature_names_out(None if names is None else list(names)).tolist()

    def _most_rows(self) -> int:
        return TIMES * self._guess()

    def _understand(self, stages: Stages, place: int) -> None:
        assert isinstance(stages.plan, LogisticPlan)
        loss = stages.plan.loss(stages.chosen)
        self._model: Ints = stages.model
        self._row_weight = loss.weight
        self.cut_ = LOGISTIC_CUTS.value(place)
        self.coef_ = self._model[None, :-1] / STEP
        self.intercept_ = self._model[-1:] / STEP - self.cut_
        self.ridge_ = float(loss.ridge)

    def _scores(self, matrix: SparseRows) -> Floats:
        own = RegressionScores(self._model, self._row_weight)(matrix) / STEP - self.cut_
        scores: Floats = np.logaddexp(0, own - MARGIN) - np.logaddexp(0, -own - MARGIN)
        return scores


@dataclass(kw_only=True, eq=False, repr=False)
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
    Cost:        one pass over the entries for each of two steps, 8 microseconds per feature.

    `weight` is how many features a row may set before their weights shrink. The other parameters
    are those of `PrivateClassifier`.

    >>> import numpy as np
    >>> X = np.zeros((2000, 40), dtype=int); y = np.arange(2000) % 2
    >>> X[y == 1, 3] = 1; X[y == 0, 5] = 1
    >>> model = PrivateNaiveBayes(epsilon="1").fit(X, y)
    >>> bool((model.predict(X) == y).mean() > 0.99), str(model.release_.loss)
    (True, 'epsilon 1')
    """

    weight: int = WEIGHT

    def _question(self, price: Fraction) -> Training:
        return Training(
            epsilon=price,
            classifier="naive-bayes",
            weight=self.weight,
            expected_rows=self.expected_rows,
        )

    def _understand(self, stages: Stages, place: int) -> None:
        self._model: tuple[Ints, Ints] = stages.model
        self.size_weights_ = self._model[1] / STEP
        self.cut_ = BAYES_CUTS.value(place)

    def _scores(self, matrix: SparseRows) -> Floats:
        scores: Floats = SummedScores(*self._model)(matrix) / STEP - self.cut_
        return scores


CLASSIFIERS: dict[str, type[PrivateClassifier]] = {
    "naive-bayes": PrivateNaiveBayes,
    "logistic": PrivateLogisticRegression,
}
SAMPLED = 10  # features a row may set while features are selected: the paper's r


@dataclass(kw_only=True, eq=False, repr=False)
class PrivatePipeline(PrivateClassifier):
    """Selects features and trains a classifier on them, for one epsilon and one booking.

    Parameters
    ----------
    select
        "joint" (the default): one release of counts by feature and label serves selection *and*
        naive Bayes, so nothing is split off. Or a method of `heldout.features.select`
        ("noisy-counts", "noisy-top-k", "permute-and-flip", "sparse-vector", ...): then epsilon is
        split. None trains on all features, and so does "joint" with a logistic regression.
    classifier
        "auto" (the default): logistic regression for a table of at most 256 features, naive Bayes
        for more. Or "naive-bayes" or "logistic", or an instance of one, whose `weight`, `ridge` and
        `bounds` count. Or any estimator with a method `fit_price`, which says what one fit costs:
        see `heldout.features.PricedEstimator`. It gets what it declares, and the selection the rest
        of epsilon.
    split
        The part of epsilon for the selection. None is a half; "paper" is the 2014 paper's split
        for the method. It must be left out where nothing is split.
    selection_score, k, threshold
        As `score`, `k` and `threshold` in `heldout.features.select`; with neither `k` nor
        `threshold`, k follows from the public facts.

    The other parameters are those of `PrivateClassifier`.

    Claim:       pure DP, epsilon.                                           [claim: pipeline]
    Neighbours:  replace-one; add-remove; each by row or by unit of at most k rows.
    Sensitivity: those of the selection and of the training, which sees the selected features.
    Numerics:    exact.
    Refuses:     methods that are not private; a split where there is nothing to split.
    Reference:   Stoddard, Chen and Machanavajjhala 2014, section 5.1; proofs/pipeline.md.
    Cost:        that of the parts.

    >>> import numpy as np
    >>> X = np.zeros((2000, 40), dtype=int); y = np.arange(2000) % 2
    >>> X[y == 1, 3] = 1; X[y == 0, 5] = 1
    >>> model = PrivatePipeline(select="permute-and-flip", k=2, epsilon="1").fit(X, y)
    >>> sorted(model.selected_.tolist()), model.split_["selection"]
    ([3, 5], '1/2')
    """

    select: str | None = JOINT
    classifier: Any = AUTO
    split: Any = None
    selection_score: str = "total-count"
    k: int | None = None
    threshold: float | None = None

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, row_keys: Any = None) -> Self:
        """Book epsilon, then select and learn; `X` may be a `FeatureMatrix`, without `y`."""
        if not self._is_outside:
            return super().fit(X, y, unit=unit, row_keys=row_keys)
        from sklearn.base import clone

        price, model = self._price(), clone(self.classifier, safe=False)
        if self.split is not None:
            raise ArgumentError("Leave split out: the estimator's fit_price says what it gets.")
        private = self._private(X, y, unit=unit, row_keys=row_keys)
        about: Any = private.description
        declared = declared_price(model, about.protection)
        selects = self.select not in (None, JOINT)
        if declared > price or (declared < price and not selects):
            raise ArgumentError(
                f"epsilon must be {'more than ' if selects else ''}{declared}, which the estimator "
                f"declares for one fit, got {price}."
            )
        if selects and declared == price:
            raise ArgumentError(
                f"epsilon must be more than {declared}, which the estimator declares, so that "
                "something is left for the selection. Or pass select=None."
            )
        selection = None
        words: dict[str, Any] = {"classifier": type(model).__name__, "features": about.features}
        if selects:
            asked = Training(
                epsilon=price,
                select=self.select,
                selection_score=self.selection_score,
                k=self.k,
                threshold=self.threshold,
                expected_rows=self.expected_rows,
            )
            selection = asked.selection(about, price - declared)
            words |= {"select": self.select, "score": self.selection_score, "k": selection.k}
        stages = OutsideStages(model, declared, selection)
        request = stages.request(words)
        session = self._session(private, price)
        drawn = release_request(
            request,
            rows=session._table,
            about=session._about,
            ledger=session._ledger,
            account=session._account,
            words={"release": request.name, "model": None, "questions": []},
        )
        chosen = range(about.features) if stages.chosen is None else stages.chosen
        self.split_ = {"declared": str(declared)}
        if selects:
            self.split_ = {"selection": str(price - declared)} | self.split_
        self.classifier_, self._chosen = model, stages.chosen
        self.selected_ = np.array(chosen, dtype=np.int64)
        self.weights_ = np.zeros(about.features)  # an estimator from outside need not have any
        self.release_ = ModelRelease(
            drawn,
            weights=self.weights_,
            selected=self.selected_,
            split=self.split_,
            names=about.feature_names,
        )
        return self

    @property
    def _is_outside(self) -> bool:
        own = isinstance(self.classifier, str | PrivateClassifier)
        return not own and isinstance(self.classifier, PricedEstimator)

    def _classifier(self, named: str = "naive-bayes") -> PrivateClassifier:
        """Make a fresh classifier with the pipeline's public facts; "auto" is the one named."""
        if isinstance(self.classifier, PrivateNaiveBayes | PrivateLogisticRegression):
            from sklearn.base import clone

            model: PrivateClassifier = clone(self.classifier)
        elif isinstance(self.classifier, str) and self.classifier in (AUTO, *CLASSIFIERS):
            model = CLASSIFIERS[named if self.classifier == AUTO else self.classifier]()
        else:
            raise ArgumentError(
                f"classifier must be {' or '.join(map(repr, (AUTO, *CLASSIFIERS)))} or an instance "
                f"of one, or an estimator with a method fit_price, got {shown(self.classifier)}."
            )
        model.set_params(expected_rows=self.expected_rows, binarize=self.binarize)
        return model

    def _question(self, price: Fraction) -> Training:
        trained = self._classifier()._question(price)
        return replace(
            trained,
            classifier=AUTO if self.classifier == AUTO else trained.classifier,
            select=self.select,
            split=self.split,
            selection_score=self.selection_score,
            k=self.k,
            threshold=self.threshold,
        )

    def _set(self, X: Any) -> SparseRows:
        return super()._set(X) if self._is_outside else self._classifier()._set(X)

    def _feature_names(self) -> Any:
        if self._is_outside:
            return super()._feature_names()
        model = self._classifier()
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model._feature_names()

    def _bound(self) -> int | None:
        """Rows are sampled down for the selection alone; the training weighs them instead."""
        if self._is_outside:
            return self.features_per_row
        if self.features_per_row is None and self._question(Fraction(1)).selects:
            return SAMPLED
        return self.features_per_row

    def _most_rows(self) -> int:
        if self._is_outside:
            return super()._most_rows()
        table = self.n_features_in_ <= TABLE
        return self._classifier("logistic" if table else "naive-bayes")._most_rows()

    def _understand(self, stages: Stages, place: int) -> None:
        logistic = isinstance(stages.plan, LogisticPlan)
        model = self._classifier("logistic" if logistic else "naive-bayes")
        model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
        model._understand(stages, place)
        self.classifier_, self._chosen = model, stages.chosen

    def _scores(self, matrix: SparseRows) -> Floats:
        seen = matrix if self._chosen is None else matrix[:, list(self._chosen)]
        if self._is_outside:
            return scores_of(self.classifier_, seen)
        assert isinstance(self.classifier_, PrivateClassifier)
        return self.classifier_._scores(seen)


# Select features of private rows, in one call.
DEFAULT = "noisy-counts"


def select(
    X: Any,
    y: Any = None,
    *,
    epsilon: Epsilon,
    method: str = DEFAULT,
    score: str = "total-count",
    k: int | None = None,
    threshold: float | None = None,
    features_per_row: int | None = None,
    neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
    unit: Any = None,
    rows_per_unit: int = 1,
    row_keys: Any = None,
    positive: object = 1,
    negative: object = None,
    feature_names: Sequence[str] | None = None,
    most_rows: int | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    budget: Budget | None = None,
    account: str | None = None,
    not_private: bool = False,
) -> Selection | NotPrivateSelection:
    """The features that are worth keeping, at a price of epsilon.

    `X` has a row for each row and a column for each *public* feature (0 or not 0; dense or sparse),
    `y` the labels. A `FeatureMatrix` may stand for both, and then says whose the rows are.

    `k` asks for so many features at most, `threshold` for those whose score is at least that; with
    neither, a threshold that few scores of nothing but noise exceed. A row that sets more than
    `features_per_row` features (10 by default) keeps so many of them. `method` and `score` are in
    docs/features.md; three published methods that are not private run with `not_private=True`.

    Without a ledger nobody keeps count across calls; `account` names the one in it that pays.

    >>> import numpy as np
    >>> X = np.zeros((1000, 50), dtype=int); X[:, 7] = 1; X[:500, 3] = 1
    >>> select(X, [1, 0] * 500, epsilon="1", k=2).features
    (7, 3)
    """
    if isinstance(X, FeatureMatrix):
        private = X
        facts = (y, unit, row_keys, feature_names, most_rows, negative)
        otherwise = (neighbours, rows_per_unit, positive) != (Neighbours.REPLACE_ONE, 1, 1)
        if otherwise or any(fact is not None for fact in facts):
            raise ArgumentError(
                "y, unit, neighbours and other facts about the rows must be left out with a "
                "FeatureMatrix, which has them. Make the matrix with them."
            )
        if features_per_row is not None:
            private = private.restricted(
                np.arange(private.features), features_per_row=features_per_row
            )
    else:
        if y is None:
            raise ArgumentError("Pass y=, one label for each row of X.")
        private = FeatureMatrix(
            X,
            y,
            features_per_row=FEATURES_PER_ROW if features_per_row is None else features_per_row,
            positive=positive,
            negative=negative,
            unit=unit,
            rows_per_unit=rows_per_unit,
            row_keys=row_keys,
            neighbours=neighbours,
            feature_names=feature_names,
            most_rows=most_rows,
        )
    return select_from(
        private,
        epsilon=epsilon,
        method=method,
        score=score,
        k=k,
        threshold=threshold,
        ledger=ledger,
        budget=budget,
        account=account,
        not_private=not_private,
    )


def select_from(
    private: FeatureMatrix,
    *,
    epsilon: Epsilon,
    method: str = DEFAULT,
    score: str = "total-count",
    k: int | None = None,
    threshold: float | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    budget: Budget | None = None,
    account: str | None = None,
    session: PrivateSession | None = None,
    not_private: bool = False,
) -> Selection | NotPrivateSelection:
    """A selection from private rows that exist already, out of their budget."""
    amount = exact(epsilon, name="epsilon", minimum=0)
    if is_one_of(method, BASELINES):
        if not not_private:
            raise NotPrivate(
                f"method must be private, got {method!r}, which is not: {BASELINES[method]}. Use "
                f"{DEFAULT}, or pass not_private=True to run it on data that may be shown."
            )
        words = {
            "method": method,
            "score": score,
            "k": k,
            "threshold": threshold,
            "features": private.features,
            "features_per_row": private.features_per_row,
        }
        return _baseline(private, words, float(amount))
    if not is_one_of(method, METHODS):
        known = ", ".join([*METHODS, *BASELINES])
        raise ArgumentError(f"method must be one of {known}, got {shown(method)}.")
    if not_private:
        raise ArgumentError(f"not_private must be left out for {method!r}, which is private.")
    asked = SelectionQuestion(epsilon=amount, method=method, score=score, k=k, threshold=threshold)
    if session is None:
        spare = Budget(epsilon=amount) if budget is None and ledger is None else budget
        session = PrivateSession(private, budget=spare, ledger=ledger, account=account)
    selection: Selection = session.viewing(private).ask(asked)
    return selection


def _baseline(private: FeatureMatrix, words: dict[str, Any], epsilon: float) -> NotPrivateSelection:
    """A published selection, run as published, on exact scores. No ledger hears of it."""
    score = score_named(words["score"])
    threshold = words["threshold"]
    if threshold is None or words["k"] is not None:
        raise ArgumentError(
            f"threshold must be given for {words['method']}, and k left out. Pass threshold=."
        )
    moves = score.of_each(private.protection, most_rows=private.row_bound) / score.cells
    if words["method"] == "cluster-selection-2014":
        if score.name != "total-count":
            raise ArgumentError("score must be total-count for cluster-selection-2014.")
        scores = shown_as_it_is(compute(FeatureScores(score, private.row_bound), private))
        accepted = cluster_selection_2014(
            np.asarray(scores, dtype=float)[:, None],
            centres=np.linspace(0, 2 * threshold, 5)[:, None],
            threshold=threshold,
            epsilon=epsilon,
            features_per_row=private.features_per_row,
            noise=baseline_noise,
            rounds=5,
        )[0]
    else:
        exactly = (
            shown_as_it_is(compute(FeatureScores(score, private.row_bound), private)) / score.cells
        )
        run = noisy_cut if words["method"] == "noisy-cut" else private_threshold_testing
        accepted = run(
            exactly, threshold=threshold, epsilon=epsilon, noise=baseline_noise, sensitivity=moves
        )[0]
    chosen = Chosen(np.asarray(np.flatnonzero(accepted), dtype=np.int64))
    why = BASELINES[words["method"]]
    return NotPrivateSelection(private, chosen, method=words["method"], why=why, words=words)
