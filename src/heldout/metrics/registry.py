"""Metrics that are ratios of confusion counts, found by name."""

import importlib
import pkgutil
from dataclasses import dataclass
from functools import lru_cache

Cells = tuple[float, float, float, float]
"""Weights on (true positives, false positives, false negatives, true negatives)."""


@dataclass(frozen=True)
class Metric:
    """numerator @ cells / denominator @ cells, in [0, 1]."""

    name: str
    numerator: Cells
    denominator: Cells
    meaning: str
    scikit_learn: str


_FOUND: dict[str, Metric] = {}


def register(metric: Metric) -> Metric:
    """Make a metric known. A name is taken once."""
    if metric.name in _FOUND and _FOUND[metric.name] != metric:
        raise ValueError(f"metric {metric.name!r} must have a name of its own.")
    _FOUND[metric.name] = metric
    return metric


@lru_cache(maxsize=1)
def _load() -> None:
    import heldout.metrics.ratios as room

    for module in sorted(each.name for each in pkgutil.iter_modules(room.__path__)):
        importlib.import_module(f"{room.__name__}.{module}")


def registered() -> dict[str, Metric]:
    """Every registered metric, accuracy first, then by name."""
    _load()
    return dict(sorted(_FOUND.items(), key=lambda item: (item[0] != "accuracy", item[0])))
