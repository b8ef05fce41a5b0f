"""How a benchmark prints what it measured: the figure, its limit, PASS or MISS."""

import math
import time
from collections.abc import Callable


def judge(what: str, measured: float, limit: float, *, unit: str = "") -> bool:
    """Print one line; a figure that misses is printed as such and never moved."""
    met = measured <= limit and not math.isnan(measured)
    mark = "PASS" if met else "MISS"
    print(f"{mark}  {what}: {measured:.3g}{unit} (at most {limit:g}{unit})")
    return met


def seconds(run: Callable[[], object], *, repeat: int = 5) -> float:
    """The median wall time of a call."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]
