"""The mechanisms themselves, without rows: noise on the worst pair of statistics."""

from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit.events import stack
from heldout.audit.result import Floats
from heldout.audit.subjects import MECHANISM, Pair, Subject, register
from heldout.kernel import price
from heldout.kernel.loss import Loss
from heldout.kernel.neighbours import Protection
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.discrete_laplace import NoiseShare
from heldout.kernel.noise.exact import LATTICE
from heldout.kernel.noise.selection import AboveBar, SparseVector, secret_of
from heldout.kernel.ranking.mechanism import METHODS, choose, sensitivity_for
from heldout.kernel.statistic import Sealed

_REPLACE = Protection(neighbours="replace-one")  # type: ignore[arg-type]
_DELTA = Fraction(1, 100)


def _counts(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
    exact = list(pair.side(side))
    mechanism = DiscreteLaplace.for_epsilon(
        epsilon, l1_sensitivity=pair.options["l1"], dimension=len(exact) * count
    )
    # The entries of one draw are independent, so many short vectors are one long one.
    drawn = mechanism.sample(Sealed(np.tile(exact, count)))
    return np.asarray(drawn, dtype=np.float64).reshape(count, len(exact))


register(
    Subject(
        name="discrete-laplace",
        kind=MECHANISM,
        pairs=(
            Pair("one entry by one", [0], [1], {"l1": 1}),
            Pair("two entries, opposite ways", [5, 5], [4, 6], {"l1": 2}),
            Pair("one entry by all", [0, 0, 0], [3, 0, 0], {"l1": 3}),
            Pair("a scale below one", [0], [1000], {"l1": 1000}),
        ),
        claim=Loss.pure,
        draw=_counts,
    )
)


def _shares(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
    """Return what a secure sum shows: one site's vector and the shares that must be honest."""
    exact, honest = list(pair.side(side)), pair.options["honest"]
    total = np.zeros(len(exact) * count, dtype=np.int64)
    for site in range(honest):
        handed: list[Any] = []
        mechanism = NoiseShare(
            scale=pair.options["l1"] / epsilon,
            l1_sensitivity=pair.options["l1"],
            dimension=len(total),
            honest=honest,
            hand_in=handed.append,
        )
        mechanism.sample(Sealed(np.tile(exact, count) if site == 0 else np.zeros_like(total)))
        total += np.array(handed[0])
    return total.astype(np.float64).reshape(count, len(exact))


register(
    Subject(
        name="noise-share",
        kind=MECHANISM,
        pairs=(
            Pair("three shares, one entry by one", [0], [1], {"l1": 1, "honest": 3}),
            Pair("two shares, opposite ways", [5, 5], [4, 6], {"l1": 2, "honest": 2}),
        ),
        claim=Loss.pure,
        draw=_shares,
    )
)


def _tests(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
    queries = Sealed(pair.side(side))
    mechanism = SparseVector(epsilon, sensitivity=1, **pair.options)
    return stack([[float(answer) for answer in mechanism.sample(queries)] for _ in range(count)])


def _opposite(half: int) -> Pair:
    """The answers are as unlike as they can be where all above come first, or all come last."""
    queries = [0] * half + [1] * half
    name = f"0^{half} 1^{half} against 1^{half} 0^{half}"
    return Pair(name, queries, queries[::-1], {"limit": half})


register(
    Subject(
        name="sparse-vector",
        kind=MECHANISM,
        pairs=(
            _opposite(1),
            _opposite(4),
            Pair(
                "0^6 1^6 against 1^6 0^6, the first above",
                [0] * 6 + [1] * 6,
                [1] * 6 + [0] * 6,
                {"limit": 1, "threshold": 1},
            ),
            Pair("all below, by one", [0] * 12, [-1] * 12, {"limit": 1, "monotone": True}),
            Pair("all above, by one", [0] * 4, [1] * 4, {"limit": 4, "monotone": True}),
        ),
        claim=Loss.pure,
        draw=_tests,
        epsilon="4",
        note="the answers in order; Lyu, Su and Li 2017, Algorithm 1",
    )
)


def _smooth(method: str, metric: str) -> None:
    """value and rung of either neighbour; the values are as far apart as the rungs allow."""
    local = sensitivity_for(metric, protection=_REPLACE, method=method)
    delta = _DELTA if method == "boyd-2015-laplace" else None

    def far(rung: int) -> Fraction:
        return Fraction(local.upper(rung))

    def draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
        law = choose(method, epsilon=epsilon, local=local, rows=2000, delta=delta)
        value, rung = pair.side(side)
        units = [law.sample(value, rung=rung) for _ in range(count)]
        return np.array(units, dtype=np.float64) * float(LATTICE)

    def claim(epsilon: Fraction) -> Loss:
        return price(choose(method, epsilon=epsilon, local=local, rows=2000, delta=delta).event())

    register(
        Subject(
            name=f"{method}-{metric}",
            kind=MECHANISM,
            pairs=(
                Pair("rung 1", (Fraction(0), 1), (far(1), 1)),
                Pair("from rung 1 to 2", (Fraction(0), 1), (far(2), 2)),
                Pair("rung 30", (Fraction(0), 30), (far(30), 30)),
                Pair("from rung 30 to 31, the value stays", (far(1), 30), (far(1), 31)),
            ),
            claim=claim,
            draw=draw,
            epsilon=_PRICES.get(method, "1"),
            why=_WHY.get(method, ""),
        )
    )


_PRICES = {"cauchy": "4", "boyd-2015-cauchy": "6", "boyd-2015-laplace": "3"}
_WHY = {
    "cauchy": "tails wider than privacy needs: a value that moves shows a quarter at most",
    "boyd-2015-cauchy": "six times the noise that a value needs: it shows a sixth at most",
    "boyd-2015-laplace": "half is for the change of scale, and delta is taken off",
}
for _method in METHODS:
    _smooth(_method, "auc")
_smooth("piecewise-laplace", "average-precision")


def _board(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Floats:
    """Return whether each submission improved, until the last improvement that may be shown."""
    test = SparseVector(epsilon, sensitivity=1, limit=pair.options["limit"])
    totals = [Sealed(np.array([total])) for total in pair.side(side)]
    outcomes = []
    for _ in range(count):
        mechanism = AboveBar(test, pair.options["bar"], 1, secret_of(test))
        answers: list[float] = []
        for total in totals:
            if sum(answers) < test.limit:
                answers.append(float(mechanism.sample(total)))
        outcomes.append(answers)
    return stack(outcomes)


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
