"""A failed test of noise is drawn once more, and any other failed test is not."""

import pathlib
import shutil
import subprocess
import sys

import pytest

TESTS = """
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np

from heldout.mechanisms import DiscreteLaplace
from heldout.statistics.sealed import Sealed

TRIES = []


def laplace():
    DiscreteLaplace(Fraction(1), l1_sensitivity=1, dimension=1).sample(Sealed([0]))


def test_unlucky_once():
    laplace()
    TRIES.append(1)
    assert len(TRIES) > 1


def test_noise_that_is_wrong():
    laplace()
    assert False


def test_source_that_is_wrong():
    assert not os.urandom(1)


def test_generator_that_is_wrong():
    assert np.random.default_rng().random() > 1


def test_child_that_is_wrong():
    assert subprocess.run([sys.executable, "-S", "-c", "raise SystemExit(1)"]).returncode == 0


def test_fault():
    assert np.random.default_rng(7).random() > 1


def test_error():
    laplace()
    raise ValueError
"""


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    """The last lines of a run of the above with the options of `make unit`."""
    place = tmp_path_factory.mktemp("second-draw")
    shutil.copy(pathlib.Path(__file__).with_name("conftest.py"), place)
    (place / "test_drawn.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "--reruns", "1", "-n", "2", "-raR"]
    run = subprocess.run(
        [*command, "--tb=no"], cwd=place, capture_output=True, text=True, check=False
    )
    return run.returncode, run.stdout.splitlines()


@pytest.mark.parametrize("name", ["noise", "source", "generator", "child"])
def test_what_fails_twice_fails_the_run(summary, name):
    code, lines = summary
    assert code == 1
    test = f"test_drawn.py::test_{name}_that_is_wrong"
    assert f"RERUN {test}" in lines
    assert f"FAILED {test}" in lines


def test_what_fails_once_is_named(summary):
    assert "RERUN test_drawn.py::test_unlucky_once" in summary[1]
    assert "PASSED test_drawn.py::test_unlucky_once" in summary[1]


@pytest.mark.parametrize("name", ["fault", "error"])
def test_what_is_no_chance_is_not_drawn_again(summary, name):
    assert not [line for line in summary[1] if line.startswith("RERUN") and name in line]
    assert [line for line in summary[1] if line.startswith(f"FAILED test_drawn.py::test_{name}")]
