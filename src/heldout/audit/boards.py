"""The leaderboard's bar, as it is kept, and a planted board that draws it anew each time."""

from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit.events import stacked
from heldout.audit.subjects import MECHANISM, Pair, Subject, register
from heldout.audit.violators import plant
from heldout.kernel.loss import Loss
from heldout.kernel.noise.sparse_vector import AboveBar, SparseVector, secret_of
from heldout.kernel.sealed import Sealed


def _board(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
    """Whether each submission improved, until the last improvement that may be shown."""
    test = SparseVector(epsilon, sensitivity=1, limit=pair.options["limit"])
    totals = [Sealed(np.array([each])) for each in pair.side(side)]
    found = []
    for _ in range(count):
        mechanism = AboveBar(test, pair.options["bar"], 1, secret_of(test))
        answers: list[float] = []
        for each in totals:
            if sum(answers) < test.limit:
                answers.append(float(mechanism.sample(each)))
        found.append(answers)
    return stacked(found)


register(
    Subject(
        name="board",
        kind=MECHANISM,
        pairs=(
            Pair(
                "every submission right about one row more",
                [0] * 8,
                [1] * 8,
                {"limit": 1, "bar": 2},
            ),
            Pair(
                "half of them right, half wrong", [0, 0, 1, 1], [1, 1, 0, 0], {"limit": 2, "bar": 1}
            ),
        ),
        claim=Loss.pure,
        draw=_board,
        epsilon="4",
        note="which submissions improved, for a bar that is kept",
    )
)


@plant(
    "board-that-redraws-its-bar",
    Pair("all right about one row more", [-2] * 40, [-1] * 40),
    note="a leaderboard whose bar is drawn anew for each submission: every 'no' costs",
    epsilon="4",
    least=100_000,
)
def _redrawn(data: list[int], epsilon: float, count: int, random: Any) -> Any:
    values = np.asarray(data, dtype=float)
    size = (count, values.size)
    bar = random.laplace(scale=2 / epsilon, size=size)
    above = values + random.laplace(scale=4 / epsilon, size=size) >= bar
    first = above.cumsum(axis=1) - above == 0
    return np.where(first, above, -1.0)
