"""Exact samplers: the law to 3%, the lattice, no shared stream, and no hang after a fork."""

import os
import threading
import time
from dataclasses import replace
from fractions import Fraction

import pytest

from heldout.audit import samplers as module
from heldout.audit.samplers import (
    Check,
    check_law,
    check_streams,
    fresh,
    lattice_check,
    lattice_job,
    lattice_jobs,
    samplers,
)


def test_every_sampler_is_looked_at() -> None:
    names = " ".join(each.name for each in samplers())
    for word in ("discrete Laplace", "piecewise-laplace", "polynomial-tail", "cauchy"):
        assert word in names


DRAWS = 150_000


@pytest.fixture(scope="module")
def drawn():
    """What the vector sampler gives, once for each of its two settings."""
    return [each.draw(DRAWS) for each in samplers()[:2]]


def found_of(place: int, noise) -> Check:
    return check_law(replace(samplers()[place], draw=lambda _: noise), draws=DRAWS)


@pytest.mark.chance(5e-8, "two p-values of 1e-8; 3 percent are 11 deviations, and 5.7 are asked")
@pytest.mark.parametrize("place", [0, 1])
def test_a_law_is_accepted_as_claimed_and_rejected_three_percent_off(
    place: int, drawn, monkeypatch
) -> None:
    """The vector sampler here; the scalar ones in tests/kernel/noise and in `make audit`."""
    monkeypatch.setattr(module, "FALSE_ALARM", 1e-8)
    found = found_of(place, drawn[place])
    assert found.passed, found.result


@pytest.mark.parametrize("off", [0.96, 1.04])
def test_a_sampler_that_is_off_is_found_out(off: float, drawn) -> None:
    found = found_of(1, drawn[1] * off)
    assert not found.passed
    assert "rejected as claimed" in found.result


def test_a_tail_that_is_cut_is_found_out(drawn) -> None:
    assert not found_of(1, drawn[1].clip(-4e6, 4e6)).passed  # beyond 1 in 300


@pytest.mark.chance(2e-8, "a p-value of 1e-9 for each law, in two data sets")
def test_answers_lie_on_the_lattice_whose_lowest_bits_say_nothing(monkeypatch) -> None:
    monkeypatch.setattr(module, "FALSE_ALARM", 1e-9)
    found = lattice_check([lattice_job(job) for job in lattice_jobs(8000)])
    assert found.passed, found.result


def test_threads_forks_and_restarts_share_no_stream() -> None:
    found = check_streams(threads=4, forks=3, restarts=1)
    assert found.passed, found.result


def test_a_child_forked_while_others_draw_still_answers() -> None:
    """A lock that another thread held at the fork would never be released in the child."""
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            fresh(2)

    threads = [threading.Thread(target=busy, daemon=True) for _ in range(2)]
    for each in threads:
        each.start()
    try:
        for _ in range(6):
            child = os.fork()
            if child == 0:
                fresh(1)
                os._exit(0)
            assert _ended(child, within=300), "the child hangs"
    finally:
        stop.set()
        for each in threads:
            each.join()


def _ended(child: int, *, within: float) -> bool:
    until = time.monotonic() + within
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


def test_a_release_at_a_small_epsilon_is_still_on_the_lattice() -> None:
    import heldout as ho

    # A value is drawn, and not counts by score, where the classes are said to be large.
    release = ho.roc_auc_score([1, 0] * 10, [0.9, 0.2] * 10, epsilon="1/1000", smaller_class=10**6)
    units = Fraction(release._noisy()["unclamped"]) / Fraction(1, 2**40)
    assert units.denominator == 1
