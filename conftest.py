"""A failed test that drew noise is drawn once more, from the start; any other failed test is not.

Here and not in `tests/`, so that doctests and the papers' tests have the same rule.
"""

import functools
import os
import subprocess
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
import pytest

from heldout.mechanisms import DiscreteLaplace

# Draws of this process, and processes that it started: what these draw is not seen from here.
_DRAWS = {"now": 0, "before": 0}
# What tests share, fixtures and cached functions, once one of them drew.
_SHARED_NOISE: set[Any] = set()


def _count(owner: Any, name: str) -> None:
    draw = getattr(owner, name)

    @functools.wraps(draw)
    def counted(*arguments: Any, **named: Any) -> Any:
        # Of the generators, those without a seed.
        _DRAWS["now"] += name != "default_rng" or not (arguments or named)
        return draw(*arguments, **named)

    setattr(owner, name, counted)


# All of `heldout.mechanisms` comes from the first two, with or without `secrets` beside them.
_count(DiscreteLaplace, "sample")
_count(os, "urandom")
_count(np.random, "default_rng")
_count(subprocess.Popen, "__init__")
_count(BaseProcess, "start")


def _fixtures(item: pytest.Item) -> Iterator[Any]:
    """Those of our own that outlive the test; pytest's belong to no place."""
    found = getattr(item, "_fixtureinfo", None)
    for several in getattr(found, "name2fixturedefs", {}).values():
        yield from (each for each in several if each.scope != "function" and each.baseid)


def _caches(item: pytest.Item) -> list[Any]:
    """What functions of the test's own file keep."""
    module = getattr(item, "module", None)
    kept = [each for each in vars(module or item).values() if hasattr(each, "cache_clear")]
    return [each for each in kept if each.__module__ == getattr(module, "__name__", "")]


def _shared(item: pytest.Item) -> set[Any]:
    return {*_fixtures(item), *_caches(item)}


def _drew(item: pytest.Item) -> bool:
    return _DRAWS["now"] > _DRAWS["before"] or not _SHARED_NOISE.isdisjoint(_shared(item))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _DRAWS["before"] = _DRAWS["now"]
    if getattr(item, "execution_count", 1) > 1:
        # Else the second draw would be the first one, kept.
        for fixture in _fixtures(item):
            fixture.finish(item._request)  # type: ignore[attr-defined]
        for each in _caches(item):
            each.cache_clear()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    if _drew(item):
        _SHARED_NOISE.update(_shared(item))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --reruns, a failure after noise has another try, whatever it was; others have none."""
    reruns = config.getoption("reruns", None) or 0
    for item in items:
        condition: Callable[[], bool] = functools.partial(_drew, item)
        item.add_marker(pytest.mark.flaky(reruns=reruns, condition=condition))
