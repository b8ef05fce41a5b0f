"""A failed test of noise is drawn once more, and any other failed test is not."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

BEGINNING = """
import functools
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies

from heldout.errors import HeldoutError
from heldout.mechanisms import DiscreteLaplace
from heldout.statistics.sealed import Sealed

TRIES = []


def laplace():
    DiscreteLaplace(Fraction(1), l1_sensitivity=1, dimension=1).sample(Sealed([0]))


def tries(name):
    TRIES.append(name)
    return TRIES.count(name)
"""
DRAWN = """
@pytest.fixture(scope="module")
def drawn():
    laplace()
    yield tries("fixture")
    TRIES.append("closed")
    assert TRIES.count("closed") <= TRIES.count("fixture")


# Neighbours, so that one worker runs both: the second finds what the first has drawn.
def test_that_draws_in_a_fixture(drawn):
    pass


def test_unlucky_fixture(drawn):
    assert drawn > 1


@functools.cache
def kept():
    laplace()
    return tries("kept")


def test_that_draws_what_is_kept():
    kept()


def test_unlucky_kept():
    assert kept() > 1


def unlucky_doctest():
    '''
    >>> laplace()
    >>> tries("doctest")
    2
    '''


def test_unlucky_assertion():
    laplace()
    assert tries("assertion") > 1


def test_unlucky_raises():
    laplace()
    with pytest.raises(ValueError):
        if tries("raises") > 1:
            raise ValueError


def test_unlucky_answer():
    laplace()
    if tries("answer") == 1:
        raise HeldoutError("This answer cannot be read.")


def test_unlucky_error():
    laplace()
    [][0 if tries("error") == 1 else slice(0)]


@settings(database=None)
@given(strategies.integers())
def test_unlucky_example(number):
    laplace()
    assert tries("example") > 1


def test_noise_that_is_wrong():
    laplace()
    assert False


def test_error_that_is_wrong():
    laplace()
    raise ValueError


def test_source_that_is_wrong():
    assert not os.urandom(1)


def test_generator_that_is_wrong():
    assert np.random.default_rng().random() > 1


def test_child_that_is_wrong():
    assert subprocess.run([sys.executable, "-S", "-c", "raise SystemExit(1)"]).returncode == 0


def doctest_that_is_wrong():
    '''
    >>> laplace()
    >>> 1
    2
    '''
"""
FAULTS = """
def test_fault():
    assert np.random.default_rng(7).random() > 1


def test_fault_at_first():
    assert tries("fault") > 1


def doctest_fault():
    '''
    >>> tries("doctest fault")
    2
    '''
"""


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    """The last lines of a run of the above with the options of `make unit`."""
    place = tmp_path_factory.mktemp("second-draw")
    root = pathlib.Path(__file__).parents[1]
    shutil.copy(root / "conftest.py", place)
    (place / "test_drawn.py").write_text(BEGINNING + DRAWN)
    (place / "test_faults.py").write_text(BEGINNING + FAULTS)
    options = re.search(r"^PYTEST := .* -m pytest (.*)$", (root / "Makefile").read_text(), re.M)
    # The plugins that this needs and no others: most of the time is theirs.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugins = ["-pxdist.plugin", "-ppytest_rerunfailures", "-p_hypothesis_pytestplugin"]
    command = [sys.executable, "-m", "pytest", *options[1].split(), "-n", "2", "-raR", "--tb=line"]
    run = subprocess.run(
        [*command, *plugins, "--doctest-modules", "--import-mode=importlib"],
        cwd=place, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return run.returncode, run.stdout.splitlines()


def named(summary, result, name):
    return sum(bool(re.fullmatch(rf"{result} \S*[:._]{name}", line)) for line in summary[1])


WRONG = [
    *("noise_that_is_wrong", "error_that_is_wrong", "source_that_is_wrong"),
    *("generator_that_is_wrong", "child_that_is_wrong", "doctest_that_is_wrong"),
]


@pytest.mark.parametrize("name", WRONG)
def test_what_fails_twice_fails_the_run(summary, name):
    assert summary[0] == 1
    assert named(summary, "RERUN", name) == 1
    assert named(summary, "FAILED", name)


UNLUCKY = ["assertion", "raises", "answer", "error", "example", "fixture", "kept", "doctest"]


@pytest.mark.parametrize("name", UNLUCKY)
def test_what_fails_once_is_named(summary, name):
    assert named(summary, "RERUN", f"unlucky_{name}") == 1
    assert named(summary, "PASSED", f"unlucky_{name}")
    assert not named(summary, "FAILED", f"unlucky_{name}")


@pytest.mark.parametrize("name", ["test_fault", "fault_at_first", "doctest_fault"])
def test_what_is_no_chance_is_not_drawn_again(summary, name):
    assert not named(summary, "RERUN", name)
    assert any(re.match(rf"FAILED \S*[:._]{name} - ", line) for line in summary[1])


def test_what_was_shared_is_closed_before_it_is_drawn_again(summary):
    assert not [line for line in summary[1] if line.startswith("ERROR")]


def test_why_it_was_drawn_again_is_printed(summary):
    assert any("This answer cannot be read." in line for line in summary[1])
