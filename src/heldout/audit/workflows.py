"""Releases of the other workflows, which have doors of their own.

To add one: a function that asks once, two neighbours, and a line of `_workflow`.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit.doors import EVERYTHING, numbers
from heldout.audit.events import stacked
from heldout.audit.subjects import RELEASE, Pair, Subject, register
from heldout.privacy.loss import Loss
from heldout.session import PrivateSession

Once = Callable[[Any, Fraction], Any]


def _workflow(
    name: str,
    once: Once,
    cases: Sequence[Pair],
    *,
    slowness: int,
    note: str = "",
    epsilon: str = "1",
) -> None:
    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
        return stacked([numbers(once(pair.side(side), epsilon)) for _ in range(count)])

    register(
        Subject(
            name=name,
            kind=RELEASE,
            pairs=tuple(cases),
            claim=lambda epsilon: once(cases[0].first, epsilon).loss,
            draw=draw,
            note=note,
            epsilon=epsilon,
            slowness=slowness,
        )
    )


def _separability(truth: Any, epsilon: Fraction) -> Any:
    from heldout.separation.private import private_separability

    return private_separability(truth, _PUBLIC, epsilon=epsilon)


_PUBLIC = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [1.0, 1.0]] * 3)
_TRUE = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]] * 2


def _with(row: list[float], *, last: bool) -> Any:
    return np.array([*_TRUE, row] if last else [row, *_TRUE])


_workflow(
    "separability",
    _separability,
    (
        Pair(
            "the last row to the other end",
            _with([0.0, 0.0], last=True),
            _with([1.0, 1.0], last=True),
        ),
        Pair(
            "the first row to the other end",
            _with([0.0, 0.0], last=False),
            _with([1.0, 1.0], last=False),
        ),
    ),
    slowness=10,
    epsilon="4",
    note="the separator and the rows that it calls true, jointly; public door",
)


def _training(name: str, kind: str, cases: tuple[Pair, ...], *, note: str) -> None:
    def staged(private: Any, epsilon: Fraction) -> Any:
        from heldout import features
        from heldout.features.stages import Stages

        model = getattr(features, kind)(epsilon=epsilon, weight=1)
        return Stages(model.plan(private, epsilon)).request(name, claim=name)

    def opened(rows: Any) -> Any:
        from heldout.features.matrix import FeatureMatrix

        return FeatureMatrix(*rows)

    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
        private = opened(pair.side(side))
        if door == "public":
            session = PrivateSession(private, budget=EVERYTHING)
            answers = (session._release(staged(private, epsilon)).values for _ in range(count))
        else:  # the ledger is left out: it has no part in the law of the answers
            answers = (staged(private, epsilon).draw(private) for _ in range(count))
        return stacked([numbers([list(each) for each in answer]) for answer in answers])

    def claim(epsilon: Fraction) -> Loss:
        loss: Loss = staged(opened(cases[0].first), epsilon).privacy_map()
        return loss

    register(Subject(name, RELEASE, cases, claim, draw, note=note, epsilon="4", slowness=10))


_MESSAGES = [[1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [0, 1]]
_LABELS = [1, 0, 1, 0, 1, 0]


def _row(features: list[int], label: int) -> tuple[Any, Any]:
    return np.array([*_MESSAGES, features]), np.array([*_LABELS, label])


_TRAINED = (
    Pair("a row changes its label", _row([1, 0], 1), _row([1, 0], 0)),
    Pair("a row changes its features", _row([1, 0], 1), _row([0, 1], 1)),
)
_training("naive-bayes", "PrivateNaiveBayes", _TRAINED, note="noisy counts and the cut, jointly")
_training("logistic", "PrivateLogisticRegression", _TRAINED, note="coefficients and the cut")
