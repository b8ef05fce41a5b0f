"""Where something stops to hold, by halving or by secants: the one search of this package."""

from collections.abc import Callable

__all__ = ["crossed", "falls_to", "halved"]


def halved(
    holds: Callable[[float], bool], inside: float, outside: float, *, steps: int = 60
) -> tuple[float, float]:
    """The last place found where it holds, and the first where it does not.

    `holds` is true at `inside` and false at `outside`, whichever of the two is larger.

    >>> halved(lambda x: x * x < 2, 1.0, 2.0, steps=3)
    (1.375, 1.5)
    """
    for _ in range(steps):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside, outside


def falls_to(function: Callable[[float], float], level: float, *, start: float) -> float:
    """The least argument, from 0, where a falling function is at most `level`.

    >>> round(falls_to(lambda x: 1 / (1 + x), 0.1, start=1.0), 6)
    9.0
    """
    far = start
    while function(far) > level:
        far *= 2
    return halved(lambda each: function(each) > level, 0.0, far, steps=80)[1]


def crossed(function: Callable[[float], float], low: float, high: float, *, width: float) -> float:
    """A place below 0, at most `width` before a rising function's crossing; by secants.

    `function` is below 0 at `low` and not at `high`. An end that stays is given half of its value
    (the Illinois rule), so that both ends move.

    >>> 0 <= 2**0.5 - crossed(lambda x: x * x - 2, 1.0, 2.0, width=1e-9) <= 1e-9
    True
    """
    below, above, moved = function(low), function(high), 0
    for _ in range(200):
        if high - low <= width:
            break
        place = high - above * (high - low) / (above - below)
        place = min(max(place, low + width / 2), high - width / 2)
        value = function(place)
        if value < 0:
            low, below, above = place, value, above / 2 if moved < 0 else above
        else:
            high, above, below = place, value, below / 2 if moved > 0 else below
        moved = -1 if value < 0 else 1
    return low
