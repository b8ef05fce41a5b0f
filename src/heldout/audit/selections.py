"""Selection of features where ties are, at which the published methods give themselves away.

Rows are made private, the statistic is read through the private matrix and noise is drawn by the
mechanism of the plan, as in `features.select`; a replay leaves the ledger out, which draws nothing.
What is looked at is everything that the method lets out: all noisy numbers, or the names in order.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit.doors import EVERYTHING
from heldout.audit.events import stacked
from heldout.audit.subjects import RELEASE, Pair, Subject, register
from heldout.privacy.loss import Loss
from heldout.release import Request
from heldout.session import PrivateSession

_FEATURES = 4


def _rows(*last: int, label: int = 1) -> tuple[Any, Any]:
    """Four features with five rows each, two a row, and one row with these features."""
    X = np.zeros((11, _FEATURES), dtype=np.int8)
    X[:5, :2] = X[5:10, 2:] = 1
    X[10, list(last)] = 1
    return X, np.array([1, 0] * 5 + [label])


_TIES = Pair("all tied; a row goes from two features to the others", _rows(0, 1), _rows(2, 3))
_LABEL = Pair("the row keeps nothing but changes its label", _rows(), _rows(label=0))
_ONE_MORE = Pair(
    "a row with the first feature and not the second",
    tuple(each[:10] for each in _rows()),
    _rows(0),
    {"neighbours": "add-remove"},
)


def _selection(method: str, score: str, cases: tuple[Pair, ...], *, note: str, k: int = 2) -> None:
    def plan(pair: Pair, side: int, epsilon: Fraction) -> tuple[Any, Any]:
        from heldout.features.matrix import FeatureMatrix
        from heldout.features.scores import score_named
        from heldout.features.selection_methods import plan_selection

        private = FeatureMatrix(*pair.side(side), features_per_row=2, **pair.options)
        words: dict[str, Any] = {"threshold": 5.0} if method == "sparse-vector" else {}
        made = plan_selection(
            private, epsilon=epsilon, method=method, score=score_named(score), k=k, **words
        )
        return private, made

    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
        from heldout.statistics import compute

        private, made = plan(pair, side, epsilon)
        # The random order of a sparse vector is drawn with the plan: one order for both sides.
        statistic = made.statistic
        if getattr(statistic, "order", None) is not None:
            statistic = type(statistic)(statistic.score, statistic.rows)
        if door == "public":
            session = PrivateSession(private, budget=EVERYTHING)
            request = Request("selection", statistic, made.mechanism, {"method": method})
            return stacked([_seen(session._release(request).values) for _ in range(count)])
        sealed = compute(statistic, private)
        return stacked([_seen(made.mechanism.sample(sealed)) for _ in range(count)])

    def claim(epsilon: Fraction) -> Loss:
        loss: Loss = plan(cases[0], 0, epsilon)[1].mechanism.privacy_map()
        return loss

    register(Subject(f"selection-{method}", RELEASE, cases, claim, draw, note=note, epsilon="4"))


def _seen(values: Any) -> list[float]:
    """Numbers as they are; answers and names filled up to one length."""
    found = [float(each) for each in values]
    return found + [-1.0] * (_FEATURES - len(found))


_selection("noisy-counts", "difference-count", (_TIES, _ONE_MORE), note="all counts by label")
_selection("score-perturbation", "purity-index", (_LABEL, _TIES), note="all noisy scores")
_selection("sparse-vector", "total-count", (_TIES, _ONE_MORE), note="answers, features in order")
_selection("noisy-top-k", "total-count", (_TIES, _ONE_MORE), note="the names in order")
_selection("permute-and-flip", "total-count", (_TIES, _ONE_MORE), note="the names in order")
