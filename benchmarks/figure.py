"""How a benchmark prints what it measured: the figure, its limit, PASS or MISS."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field


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


@dataclass
class Rows:
    """Lines of one table: what was measured, its standard error, and what was wanted."""

    lines: list[str] = field(default_factory=list)
    missed: int = 0

    def add(
        self, what: str, value: float, error: float, *, low: float = -math.inf, high: float
    ) -> None:
        """One line. Within two standard errors of what was wanted counts as neither."""
        wanted = f"at most {high:g}" if low == -math.inf else f"{low:g} to {high:g}"
        if high == math.inf:
            wanted = f"at least {low:g}"
        beyond = max(low - value, value - high)
        verdict = "met" if beyond <= 0 else "within error" if beyond <= 2 * error else "missed"
        self.missed += verdict == "missed" or math.isnan(value)
        self.lines.append(f"| {what} | {wanted} | {value:.3f} ({error:.3f}) | {verdict} |")

    def show(self) -> None:
        print("\n| what | wanted | measured (standard error) | |\n|---|---|---|---|")
        print("\n".join(self.lines))
