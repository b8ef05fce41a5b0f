"""A run is a function of its seed: every test draws its noise from the run's seed and its own name.

    --seed 7      that seed, which the head of the run prints; 0 unless told
    --seed new    a fresh one
    --seed os     no seed: the operating system's randomness, as in production

A fixture that tests share, and a function of a test file that keeps its results, has a seed of its
own, so that it does not matter which test comes first. Other processes draw as in production.

A test whose verdict depends on noise states how often a right program fails it, with fresh
randomness: `@pytest.mark.chance(1e-7)`. All rates together stay below `MOST`, per run.

    --louder 20   noise whose tails are 20 times as long: what has the chance p comes with p^(1/20)

shows which tests those are (`make test-louder`: all others pass at 100 times the noise), and how
often they would fail: a test that fails one run in ten at 10 times the noise fails about .1^10 of
runs, if it fails by the tails of its noise.

Here and not in `tests/`, so that doctests and the papers' tests have the same rules.
"""

import functools
import gc
import os
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from heldout.kernel.noise import exact, selection, source
from heldout.testing import Seeded

MOST = 1e-4
"""The chance that some test of a whole run fails though the program is right, at most."""

DOCTESTS = {
    "PrivateNaiveBayes": 1e-7,
    "PrivatePipeline": 1e-7,
    "confusion_matrix": 1e-7,
    "evaluate": 1e-7,
    "metrics": 1e-7,
    "private_separability": 1e-9,
    "roc_curve": 1e-7,
    "select": 1e-7,
}
"""Rates of examples in docstrings, which cannot carry a mark, by the last part of their names."""

# How long an example takes is the machine's affair: a busy one must not turn a test red.
PATIENT = [HealthCheck.too_slow]
settings.register_profile("patient", deadline=None, suppress_health_check=PATIENT)
settings.load_profile("patient")

_SEED: ContextVar[str | None] = ContextVar("seed of the run", default=None)
_default_rng = np.random.default_rng
_start = threading.Thread.start
_choose_exactly = selection.choose_exactly


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", default="0", help="a whole number, `new` or `os`; see conftest.py")
    parser.addoption("--louder", type=int, default=1, help="tails of noise so many times as long")
    parser.addoption("--folders", action="store_true", help="write processor seconds by folder")
    parser.addoption("--seconds", type=float, help="start no test after so many; skip the rest")


MEMORY = "/dev/shm"
"""A file system in memory: hundreds of ledgers there wait for no disk at their commits."""
LATTICE_BYTES = 12
"""The bytes of the first look at a uniform number (`exact.draw_on_lattice`)."""
ROOM = 2 * 1024**3
"""Bytes that must be free in it; containers have 64 MB and take the usual place."""


def pytest_configure(config: pytest.Config) -> None:
    if os.access(MEMORY, os.W_OK):
        free = os.statvfs(MEMORY)
        if free.f_bavail * free.f_frsize >= ROOM:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)  # where pytest makes tmp_path
    if config.option.seed == "new":
        config.option.seed = str(secrets.randbelow(2**31))  # before xdist copies the options
    seed = config.option.seed
    if seed == "os":
        return
    if not seed.isdecimal():
        raise pytest.UsageError(f"--seed must be a whole number, new or os, got {seed!r}.")
    _SEED.set(seed)
    if config.option.louder > 1:
        _Counted.louder = config.option.louder
        exact.random_bytes = _louder_bytes  # type: ignore[attr-defined]
        selection.choose_exactly = _louder_choice
    np.random.default_rng = _generator  # type: ignore[assignment]
    threading.Thread.start = _start_with_source  # type: ignore[method-assign]
    from hypothesis import core
    from hypothesis.internal.conjecture import providers

    core.global_force_seed = int(seed)
    # It would try numbers that stand in the modules loaded so far, and that is a matter of order.
    providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[Any]:
    """Look for examples only in files that have some: it takes a while."""
    found = yield
    if b">>> " in file_path.read_bytes():
        return found
    return [each for each in found if type(each).__name__ != "DoctestModule"]


def pytest_collection_finish() -> None:
    """Keep what was imported and collected, which stays to the end, out of garbage collections."""
    gc.freeze()
    gc.set_threshold(10_000)


def pytest_unconfigure() -> None:
    gc.unfreeze()  # or libraries say at the exit that it leaked


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # one line, whatever -q says
        print(f"noise: --seed {session.config.option.seed}")


class _Counted(Seeded):
    """Notes whether anything was drawn."""

    drew = False
    louder = 1

    def random_bytes(self, count: int) -> bytes:
        self.drew = True
        return super().random_bytes(count)

    def plus_discrete_laplace(self, exact: list[int], scale: float) -> list[int]:
        self.drew = True
        return super().plus_discrete_laplace(exact, scale * self.louder)


def _louder_bytes(count: int) -> bytes:
    """Return the bits of a uniform number for the sampler on lattices, nearer to 0 or to 1."""
    drawn = source.random_bytes(count)
    if count != LATTICE_BYTES:
        return drawn
    whole = 2 ** (8 * count)
    number = int.from_bytes(drawn, "big")
    near = (min(number, whole - 1 - number) + 0.5) / (whole / 2)
    place = int(near**_Counted.louder * (whole / 2))
    return (place if 2 * number < whole else whole - 1 - place).to_bytes(count, "big")


def _louder_choice(weights: Any, penalties: Any, rate: Fraction, **named: Any) -> int:
    """Choose with a rate so many times smaller: what had a chance p has about p^(1/louder)."""
    return _choose_exactly(weights, penalties, rate / _Counted.louder, **named)


@contextmanager
def _seeded(name: str) -> Iterator[_Counted | None]:
    seed = _SEED.get()
    if seed is None:
        yield None
        return
    drawn = _Counted(f"{seed} {name}")
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    begin = random.Random(f"{seed} {name}").getrandbits(32)
    random.seed(begin)
    np.random.seed(begin)  # noqa: NPY002 - what scikit-learn draws from without a random_state
    try:
        with source.using(drawn):
            yield drawn
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002


def _generator(*seed: Any, **named: Any) -> np.random.Generator:
    """NumPy's generator; without a seed, from the test's source."""
    if not (seed or named) and _SEED.get() is not None:
        return _default_rng(int.from_bytes(source.random_bytes(16), "big"))
    return _default_rng(*seed, **named)


def _start_with_source(thread: threading.Thread) -> None:
    """Start a thread that draws from the source of whoever started it."""
    run, context = thread.run, copy_context()

    def within() -> None:
        del thread.run  # a thread that holds itself would outlive the test
        context.run(run)

    thread.run = within  # type: ignore[method-assign]
    _start(thread)


_BEGUN = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    most = item.config.option.seconds
    if most is not None and time.monotonic() - _BEGUN > most:
        pytest.skip(f"--seconds {most:g} are over")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[_SPENT] = _processor()
    with _seeded(item.nodeid) as drawn:
        item.stash[_DRAWN] = drawn
        return (yield)


_DRAWN = pytest.StashKey[_Counted | None]()
_SPENT = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[Any]:
    if fixturedef.scope == "function":
        return (yield)
    key = f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"
    with _seeded(key):
        return (yield)


def _seeded_cache(cached: Any) -> Any:
    """Return a cache of the same function whose noise does not depend on who calls it first."""
    function = cached.__wrapped__

    @functools.wraps(function)
    def drawn(*arguments: Any, **named: Any) -> Any:
        key = (
            f"{function.__module__}.{function.__qualname__} {arguments!r} {sorted(named.items())!r}"
        )
        if " at 0x" in key:  # an address, which is another one in each run
            raise ValueError(f"what is kept must be named by its arguments, got {key}.")
        with _seeded(key):
            return function(*arguments, **named)

    return functools.lru_cache(**cached.cache_parameters())(drawn)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        example = item.name.rpartition(".")[2] if isinstance(item, pytest.DoctestItem) else ""
        if example in DOCTESTS:
            item.add_marker(pytest.mark.chance(DOCTESTS[example]))
    rates = [float(mark.args[0]) for item in items for mark in item.iter_markers("chance")]
    if sum(rates) > MOST:
        raise pytest.UsageError(
            f"{len(rates)} rates of chance must add up to at most {MOST}, got {sum(rates):.2g}."
        )
    modules = {id(module): module for item in items if (module := getattr(item, "module", None))}
    replaced: dict[int, Any] = {}
    for module in modules.values():
        for name, value in list(vars(module).items()):
            if hasattr(value, "cache_parameters") and not value.__module__.startswith("heldout."):
                new: Callable[..., Any] = replaced.setdefault(id(value), _seeded_cache(value))
                setattr(module, name, new)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[Any]:
    report = yield
    if report.when == "teardown":
        spent = _processor() - item.stash[_SPENT]
        report.user_properties.append(("processor", spent))
    if report.when == "call":
        drawn = item.stash.get(_DRAWN, None)
        stated = any(item.iter_markers("chance"))
        report.user_properties.append(("noise", (bool(drawn and drawn.drew), stated)))
    return report


def _processor() -> float:
    """Return the processor seconds of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


def _folder(test: str) -> str:
    """Return the folder of a test that a table of durations has a line for.

    >>> _folder("tests/server/test_api.py::test_a"), _folder("tests/test_auc.py::test_b")
    ('tests/server', 'tests')
    """
    folder = os.path.dirname(test.partition("::")[0])  # noqa: PTH120
    return "/".join(folder.split("/")[: 3 if "questions" in folder else 2])


def _write_folders(terminalreporter: Any, reports: list[Any]) -> None:
    """Write the processor seconds and the tests of each folder."""
    seconds: dict[str, float] = {}
    tests: dict[str, int] = {}
    for report in reports:
        for key, value in getattr(report, "user_properties", ()):
            if key == "processor" and report.when == "teardown":
                folder = _folder(report.nodeid)
                seconds[folder] = seconds.get(folder, 0) + value
                tests[folder] = tests.get(folder, 0) + 1
    terminalreporter.write_line("processor seconds   tests   folder")
    for folder in sorted(seconds, key=lambda name: -seconds[name]):
        terminalreporter.write_line(f"{seconds[folder]:17.1f} {tests[folder]:7}   {folder}")
    terminalreporter.write_line(f"{sum(seconds.values()):17.1f} {sum(tests.values()):7}   in all")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [one for some in terminalreporter.stats.values() for one in some]
    if terminalreporter.config.getoption("folders"):
        _write_folders(terminalreporter, reports)
    noted = [value for one in reports for key, value in getattr(one, "user_properties", ())
             if key == "noise" and getattr(one, "when", "") == "call"]  # fmt: skip
    drew, stated = sum(one[0] for one in noted), sum(one[1] for one in noted)
    seen = "" if _SEED.get() is None else f"{drew} tests drew noise, "  # the system's is not seen
    terminalreporter.write_line(f"{seen}{stated} state a rate of chance.")
