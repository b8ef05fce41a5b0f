"""A run is a function of its seed, whatever the order of its tests, and rates of chance add up."""

import ast
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

DRAWN = """
import functools
import threading

import numpy as np
import pytest

from heldout.kernel.noise import source

OUT = open("drawn.txt", "a")


def noted(name, number):
    OUT.write(f"{name} {number}\\n")
    OUT.flush()


@pytest.fixture(scope="session", params=["a", "b"])
def shared(request):
    return source.below(10**12)


@functools.cache
def cached(name):
    return source.below(10**12)


def in_a_thread():
    numbers = []
    thread = threading.Thread(target=lambda: numbers.append(source.below(10**12)))
    thread.start()
    thread.join()
    return numbers[0]


def test_one(shared):
    noted("one", (source.below(10**12), shared, cached("x"), in_a_thread()))


def test_other(shared):
    noted("other", (np.random.default_rng().random(), np.random.random(), shared, cached("x")))


def test_seeded_generator():
    noted("seeded", np.random.default_rng(3).random())


@pytest.mark.chance(RATE)
def test_alone():
    noted("alone", source.below(10**12))
"""


def run(folder: pathlib.Path, *options: str, rate: str = "1e-7") -> tuple[int, set[str], str]:
    """Run the tests above; give the status, what they drew, and what was printed."""
    shutil.copy(pathlib.Path(__file__).parents[1] / "conftest.py", folder)
    (folder / "test_drawn.py").write_text(DRAWN.replace("RATE", rate))
    (folder / "drawn.txt").unlink(missing_ok=True)
    # No plugins: most of the time would be theirs.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", *options]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    drawn = folder / "drawn.txt"
    lines = set(drawn.read_text().splitlines()) if drawn.exists() else set()
    return done.returncode, lines, done.stdout + done.stderr


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, set[str], str]:
    return run(tmp_path_factory.mktemp("first"), "--seed=7")


def test_the_seed_is_printed_and_so_is_how_many_tests_draw(
    first: tuple[int, set[str], str],
) -> None:
    assert first[0] == 0, first[2]
    assert first[2].startswith("noise: --seed 7\n")
    assert "5 tests drew noise, 1 state a rate of chance." in first[2]


def test_the_same_seed_draws_the_same_in_another_order(
    first: tuple[int, set[str], str], tmp_path: pathlib.Path
) -> None:
    names = ("alone", "other", "one", "seeded_generator")
    again = run(tmp_path, "--seed=7", *(f"test_drawn.py::test_{name}" for name in names))
    assert again[1] == first[1]
    assert len(again[1]) == 6


@pytest.mark.parametrize("seed", ["8", "new", "os"])
def test_another_seed_draws_something_else(
    first: tuple[int, set[str], str], tmp_path: pathlib.Path, seed: str
) -> None:
    _, drawn, _ = run(tmp_path, f"--seed={seed}")
    assert len(drawn) == 6
    assert {line.split()[0] for line in drawn & first[1]} == {"seeded"}


def test_rates_that_add_up_to_too_much_stop_the_run(tmp_path: pathlib.Path) -> None:
    status, drawn, printed = run(tmp_path, rate="1e-3")
    assert status == 4
    assert not drawn
    assert "rates of chance must add up to at most 0.0001, got 0.001." in printed


ROOT = pathlib.Path(__file__).resolve().parents[1]

FOR_NAMES = {"conftest.py", "tests/conftest.py", "tests/engines/conftest.py",
             "tests/server/loopback_provider.py"}  # fmt: skip
"""Files that make up names of what others in the same place must not have: no verdict's affair."""


def unseeded(text: str) -> list[str]:
    """Return every call for random numbers that no seed of the run decides.

    NumPy's `default_rng()`, the functions of `random` and scikit-learn's are seeded per test.
    """
    always = ("secrets.", "uuid.uuid", "os.urandom", "os.getrandom", "random.SystemRandom")
    bare = ("Random", "random.Random", "np.random.RandomState", "random.seed")
    if not re.search(
        r"secrets\.|uuid|urandom|getrandom|SystemRandom|Random\(\)|State\(\)|seed\(\)", text
    ):
        return []  # most files: to parse all of them takes seconds
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = [(ast.unparse(call.func), call) for call in calls]
    return [
        f"{call.lineno}: {name}"
        for name, call in named
        if name.startswith(always) or (name in bare and not (call.args or call.keywords))
    ]


def test_no_test_draws_what_the_seed_does_not_decide() -> None:
    files = [*ROOT.glob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "papers").rglob("*.py")]
    names = {str(file.relative_to(ROOT)): file for file in files if ".venv" not in file.parts}
    assert set(names) >= FOR_NAMES
    drawn = {name: unseeded(file.read_text(encoding="utf-8")) for name, file in names.items()}
    assert {name: calls for name, calls in drawn.items() if calls and name not in FOR_NAMES} == {}
    assert unseeded("secrets.token_hex(6); Random(); random.Random(7); random.random()") == [
        "1: secrets.token_hex",
        "1: Random",
    ]


def test_what_hypothesis_tries_does_not_depend_on_what_is_loaded() -> None:
    from hypothesis.internal.conjecture import providers

    assert len(providers._get_local_constants()) == 0
    assert "_get_local_constants()" in inspect.getsource(providers.HypothesisProvider)


def rates(text: str) -> list[tuple[str, bool]]:
    """Return every marked test of a file, and whether its rate says where it comes from.

    That is a second word, a comment on its line, or a rate that is worked out (`louder(0, 6, 20)`).
    """
    lines = text.splitlines()
    found = []
    for test in ast.walk(ast.parse(text)):
        for mark in getattr(test, "decorator_list", ()):
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.chance":
                said = len(mark.args) > 1 or not isinstance(mark.args[0], ast.Constant)
                found.append((test.name, said or "#" in lines[mark.lineno - 1]))
    return found


GUESSED = 22
"""Rates that nobody has derived or measured yet: `tools/rates.py` does. It may only fall."""


def test_a_rate_of_chance_says_where_it_comes_from() -> None:
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "papers" / "tests").rglob("test_*.py")]
    marked = {
        f"{file.relative_to(ROOT)}::{name}": said
        for file in files
        for name, said in rates(file.read_text(encoding="utf-8"))
    }
    assert len(marked) > 100
    guessed = [name for name, said in marked.items() if not said]
    assert len(guessed) <= GUESSED, guessed
    assert rates("@pytest.mark.chance(1e-7)\ndef test_bare(): ...") == [("test_bare", False)]


LOUD = """
from fractions import Fraction

from heldout.kernel.noise import exact, source


def test_counts():
    assert max(abs(number) for number in source.plus_discrete_laplace([0] * 2000, 1.0)) < 40


def test_lattices():
    numbers = [exact.discrete_laplace(Fraction(1)) for _ in range(300)]
    assert max(abs(number) for number in numbers) < 40
"""


def test_louder_noise_has_longer_tails_by_either_sampler(tmp_path: pathlib.Path) -> None:
    """Of scale 1, noise beyond 40 has a chance of 1e-14; of scale 50, it is 45% of draws."""
    (tmp_path / "test_loud.py").write_text(LOUD)
    usual, louder = (run(tmp_path, *words, "test_loud.py") for words in ((), ("--louder", "50")))
    assert "2 passed" in usual[2]
    assert "2 failed" in louder[2]
