"""The numbers that were read off a curve when its answer was stored: shown as they were printed.

Curves are read by a posterior that later versions may improve. A stored or signed answer therefore
carries what was read at one level, beside the noisy counts that decide it.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from heldout.arrays import Floats
from heldout.intervals.curve import Curve
from heldout.intervals.measure import Interval, Measure
from heldout.questions.curves.bands import Band

READ_AT: Final = 0.95
"""The level of stored bands and intervals; others are read anew."""
FIELDS: Final = {"level", "curve", "bands", "measures"}
RATES: Final = ("fpr", "tpr", "thresholds")


class Readings:
    """A curve with its bands and measures, as `CurvesRelease.stored_readings` gave them.

    What does not look like that is refused with a ValueError.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        if set(content) != FIELDS or content["level"] != READ_AT:
            raise ValueError("readings")
        self.content = content
        curve = content["curve"]
        fpr, tpr, thresholds = (_numbers(curve[name]) for name in RATES)
        if not (len(fpr) == len(tpr) == len(thresholds) > 1):
            raise ValueError("curve")
        for rate in (fpr, tpr):
            if (np.diff(rate) < 0).any() or rate[0] != 0 or rate[-1] != 1:
                raise ValueError("curve")
        sizes = {name: _number(curve[name]) for name in ("positives", "negatives")}
        self.curve = Curve(fpr=fpr, tpr=tpr, thresholds=thresholds, **sizes)
        self._bands = {
            kind: (_numbers(band["low"]), _numbers(band["high"]))
            for kind, band in content["bands"].items()
        }
        self._measures = {
            name: (
                _number(measure["value"]),
                _interval(measure["interval"]),
                _interval(measure["noise_interval"]),
                bool(measure["informative"]),
            )
            for name, measure in content["measures"].items()
        }

    @property
    def measures(self) -> tuple[str, ...]:
        """Return their names."""
        return tuple(self._measures)

    def band(self, kind: str, places: Floats) -> Band:
        """Return the stored band of a curve at its own points."""
        low, high = self._bands[kind]
        if not len(low) == len(high) == len(places):
            raise ValueError("bands")
        return Band(places, low, high)

    def measure(self, name: str, terms: str, read_anew: Callable[[], Measure]) -> Measure:
        """Return a stored measure; at other levels its intervals are read anew."""
        value, interval, noise_interval, informative = self._measures[name]
        anew = cache(read_anew)
        return Measure(
            value,
            name=name,
            terms=terms,
            noise_interval=lambda level: (
                noise_interval if level == READ_AT else anew().noise_interval(level)
            ),
            interval=lambda level: interval if level == READ_AT else anew().interval(level),
            share=lambda value: anew().share(value),
            reach=lambda level: 0.0 if informative else 1.0,
        )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError("number")
    return float(value)


def _numbers(values: object) -> Floats:
    if not isinstance(values, list):
        raise ValueError("numbers")
    return np.array([_number(value) for value in values], dtype=np.float64)


def _interval(ends: object) -> Interval:
    low, high = _numbers(ends)
    if low > high:
        raise ValueError("interval")
    return float(low), float(high)
