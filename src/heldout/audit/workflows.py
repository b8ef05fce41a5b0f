"""The separability, which has a door of its own."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from heldout.audit.doors import numbers
from heldout.audit.events import stacked
from heldout.audit.subjects import RELEASE, Pair, Subject, register
from heldout.privacy.loss import Loss

_PUBLIC = {"a": [0.0, 1.0, 0.5, 1.0] * 3, "b": [1.0, 0.0, 0.5, 1.0] * 3}
_TRUE = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
_TRAINS, _COUNTED = "x2", "x0"  # a hash of the key decides
_FAR = 9.0


def _with(row: list[float], key: str) -> dict[str, list[Any]]:
    """The row's key decides whether it trains the separator or is counted by it."""
    rows = [*_TRUE, row]
    keys = [*(f"p{place}" for place in range(len(_TRUE))), key]
    return {"a": [a for a, _ in rows], "b": [b for _, b in rows], "u": keys}


_OPTIONS = {"unit": "u", "rows_per_unit": 1}
_CASES = (
    Pair(
        "a row that is counted goes to the other end",
        _with([-_FAR, -_FAR], _COUNTED),
        _with([_FAR, _FAR], _COUNTED),
        _OPTIONS,
    ),
    Pair(
        "a row that trains goes to the other end",
        _with([-_FAR, -_FAR], _TRAINS),
        _with([_FAR, _FAR], _TRAINS),
        _OPTIONS,
    ),
)


def _once(rows: Mapping[str, Any], epsilon: Fraction) -> Any:
    from heldout.separability.private import private_separability

    return private_separability(rows, _PUBLIC, epsilon=epsilon, unit="u")


def _seen(pair: Pair, release: Any) -> list[float]:
    """All numbers; and what is left of the counts for an attacker who takes the other rows off and
    knows on which side of the released separator either row would be."""
    from heldout.data.two_tables import Table
    from heldout.statistics.separator import called_true

    found = numbers(release)
    weights = np.array(list(release.coefficients.values()))
    recipe = release._statistic.recipe

    def side(rows: Mapping[str, Any], those: slice) -> tuple[Any, Any]:
        columns = {name: np.array(rows[name][those]) for name in _PUBLIC}
        keys = rows["u"][those]
        vectors, out = recipe.vectors(Table(columns, {}, {}, rows=len(keys)), keys)
        return vectors, out

    others, held = side(pair.first, slice(-1))
    left = np.array(found[-2:]) - called_true(weights, others[held])
    first, second = (
        called_true(weights, side(rows, slice(-1, None))[0]) for rows in (pair.first, pair.second)
    )
    return [*found, float((first - second) @ left)]


def _draw(pair: Pair, side: int, epsilon: Fraction, count: int, door: str) -> Any:
    return stacked([_seen(pair, _once(pair.side(side), epsilon)) for _ in range(count)])


def _claim(epsilon: Fraction) -> Loss:
    loss: Loss = _once(_CASES[0].first, epsilon).loss
    return loss


register(
    Subject(
        name="separability",
        kind=RELEASE,
        pairs=_CASES,
        claim=_claim,
        draw=_draw,
        epsilon="4",
        note="the separator and the rows that it calls true, jointly; public door",
        why="an answer takes long: few of them",
    )
)
