"""Where something stops to hold, by halving: the one search of this package."""

from collections.abc import Callable

__all__ = ["falls_to", "halved"]


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
