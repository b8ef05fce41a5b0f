"""Every draw that an answer depends on comes from one place, and only tests can change its source.

Tests of a law state their false-alarm rate.
"""

import ast
import os
import subprocess
import sys
import threading
from collections import Counter
from contextvars import copy_context
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.source import trees

from heldout.errors import ArgumentError
from heldout.kernel.noise import DiscreteLaplace, source
from heldout.kernel.noise.additive import DiscreteGaussian
from heldout.kernel.noise.exact import discrete_laplace
from heldout.kernel.noise.selection import choose_exactly
from heldout.kernel.statistic import Sealed
from heldout.testing import Seeded, seeded

ALARM = 1e-7


def everything_drawn() -> list[object]:
    """Return one draw of every kind."""
    law = DiscreteLaplace(Fraction(7, 2), l1_sensitivity=1, dimension=20)
    return [
        law.sample(Sealed([0] * 20)).tolist(),
        DiscreteGaussian(Fraction(90), Fraction(1), 20).sample(Sealed([0] * 20)).tolist(),
        discrete_laplace(Fraction(1000)),
        choose_exactly(np.ones(1000), np.zeros(1000, dtype=int), Fraction(1)),
        source.random_bytes(16),
        source.below(10**30),
    ]


def test_a_draw_is_a_function_of_the_seed_and_of_nothing_else() -> None:
    runs = []
    for seed in (1, 1, 2):
        with seeded(seed, not_private=True):
            runs.append(everything_drawn())
    assert runs[0] == runs[1]
    assert all(one != other for one, other in zip(runs[1], runs[2], strict=True))


def test_a_seed_needs_the_words_not_private() -> None:
    with pytest.raises(ArgumentError, match="not_private"), seeded(1, not_private=1):  # type: ignore[arg-type]
        pass


def test_after_the_block_and_after_an_error_the_operating_system_draws_again() -> None:
    def outside() -> bytes:
        source._INJECTED.set(None)
        with pytest.raises(ZeroDivisionError), seeded(1, not_private=True):
            1 / 0  # noqa: B018
        return source.random_bytes(16)

    assert copy_context().run(outside) != copy_context().run(outside)


def test_another_thread_draws_from_the_operating_system() -> None:
    drawn: list[bytes] = []
    with seeded(1, not_private=True):
        for _ in range(2):
            thread = threading.Thread(
                target=lambda: (source._INJECTED.set(None), drawn.append(source.random_bytes(16)))
            )
            thread.start()
            thread.join()
        assert len({*drawn, source.random_bytes(16)}) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_does_not_share_the_noise() -> None:
    drawn = []
    for _ in range(2):
        with seeded(1, not_private=True):
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(write, source.random_bytes(16))
                os._exit(0)
            os.waitpid(child, 0)
            drawn.append(os.read(read, 16))
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("scale", [1 / 3, 1.0, 4.75, 1e6])
@pytest.mark.chance(ALARM, "a p-value, of the operating system's noise; the other has its seed")
def test_seeded_noise_has_the_law_of_production(scale: float) -> None:
    """Both samples against the exact law, by chi-square over cells of at least 100 draws."""
    count, p = 40_000, np.exp(-1 / scale)
    borders = np.unique(np.round(stats.laplace(scale=scale).ppf(np.linspace(0, 1, 41)[1:-1])))
    tail = np.exp(-np.abs(borders) / scale) / (1 + p)
    below = np.where(borders < 0, tail, 1 - p * tail)
    chances = np.diff(np.concatenate([[0], below, [1]]))
    for one in (Seeded(5), source.OperatingSystem()):
        drawn = np.array(one.plus_discrete_laplace([0] * count, scale))
        counts = np.bincount(np.searchsorted(borders, drawn), minlength=len(borders) + 1)
        assert stats.chisquare(counts, chances * count).pvalue > ALARM


def test_seeded_noise_of_another_scale_is_noticed() -> None:
    drawn = np.array(Seeded(5).plus_discrete_laplace([0] * 40_000, 4.0 * 0.95))
    assert stats.chisquare(*_cells(drawn, 4.0)).pvalue < ALARM


def _cells(drawn: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    p, ends = np.exp(-1 / scale), np.arange(-20, 21)
    chances = (1 - p) / (1 + p) * p ** np.abs(ends)
    chances[[0, -1]] = p**20 / (1 + p)
    counts = Counter(np.clip(drawn, -20, 20).tolist())
    return np.array([counts[end] for end in ends.tolist()]), chances * len(drawn)


def test_seeded_sums_saturate_like_those_of_production() -> None:
    ends = [2**63 - 1, -(2**63)] * 50
    for one in (Seeded(1), source.OperatingSystem()):
        noisy = one.plus_discrete_laplace(ends, 1e9)
        assert 2**63 - 1 in noisy
        assert -(2**63) in noisy
        assert all(-(2**63) <= x < 2**63 for x in noisy)


@pytest.mark.chance(1.5 * ALARM, "three p-values")
def test_whole_numbers_are_even() -> None:
    for total in (2, 3, 1000):
        counts = np.bincount([source.below(total) for _ in range(20_000)], minlength=total)
        assert stats.chisquare(counts).pvalue > ALARM / 2


# --- only one place draws, and production cannot be seeded ---------------------------------------

# Names, keys and tokens, waiting times, and which part of a table is read first: no answer depends
# on them.
FOR_NAMES = ("client.py", "data/", "kernel/ledger/", "server/")
# Public mathematics, which takes a random_state, and planted violators.
FOR_PUBLIC_ROWS = ("audit/", "precision_recall/", "questions/separability/")
SEAM = {"kernel/noise/source.py", "testing.py"}
TAPE = "audit/tape.py"  # lets a forced run draw nothing; audits of made-up rows alone make one


GENERATORS = {
    *("secrets", "random", "uuid", "opendp", "os.urandom", "os.getrandom"),
    *("np.random.default_rng", "numpy.random.default_rng"),
}
ATTRIBUTES = {name.rpartition(".")[2] for name in GENERATORS}


def _draws(tree: ast.AST) -> set[str]:
    """Name the generators of random numbers that a module uses."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(one.name.split(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
            names.update(f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            names.add(ast.unparse(node))
    return names & GENERATORS


def test_answers_are_drawn_in_one_module() -> None:
    for name, tree in trees().items():
        drawn = _draws(tree)
        if name in SEAM:
            assert drawn, f"{name} was thought to draw"
        elif name.startswith(FOR_NAMES):
            assert drawn <= {"secrets"}, name
        elif name.startswith(FOR_PUBLIC_ROWS):
            made_up = {"random"} if name.startswith(("audit/replay", "audit/tables")) else set()
            assert drawn <= {"np.random.default_rng", "numpy.random.default_rng"} | made_up, name
        else:
            assert not drawn, f"{name} draws from {drawn}; use heldout.kernel.noise.source"


def test_the_test_above_sees_every_way_to_draw() -> None:
    for code in (
        *(
            "import secrets",
            "import random",
            "from random import choice",
            "import os; os.urandom(1)",
        ),
        *("from secrets import randbelow", "import numpy as np; np.random.default_rng(1)"),
        *("from opendp.measurements import make_laplace", "from numpy.random import default_rng"),
    ):
        assert _draws(ast.parse(code)), code
    assert not _draws(ast.parse("import os, heldout; random.laplace(2)"))


def test_no_module_of_the_package_can_inject_a_source() -> None:
    for name, tree in trees().items():
        if name in SEAM or name == TAPE:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [one.name for one in node.names]
                names += [getattr(node, "module", None) or ""]
                assert not any("heldout.testing" in one for one in names), name
                assert "using" not in names, name
                assert "testing" not in names or "heldout" not in names, name
            elif isinstance(node, ast.Attribute):
                assert node.attr not in ("using", "_INJECTED"), name
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert node.value != "heldout.testing", name


def test_only_the_replay_makes_a_tape() -> None:
    """A tape holds exact numbers: it is for made-up rows."""
    users = {
        name
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom | ast.Import)
        and "tape" in ast.unparse(node).replace(",", " ").replace(".", " ").split()
    }
    assert users == {"audit/replay.py", "audit/log_ratios.py"}


def test_a_command_does_not_load_what_seeds(tmp_path: Path) -> None:
    """Not even by a name that is put together when it runs."""
    (tmp_path / "rows.csv").write_text("y,p\n" + "1,0.75\n0,0.25\n" * 100)
    asked = ["evaluate", "rows.csv", "--label", "y", "--score", "p", "--epsilon", "9", "--curves"]
    code = (
        f"import sys; from heldout.cli import main; assert main({asked!r}) == 0; "
        "print('heldout.testing' in sys.modules, 'heldout.kernel.noise.source' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert run.stdout.splitlines()[-1] == "False True"


def test_no_environment_variable_is_read_where_noise_is_drawn() -> None:
    for name, tree in trees().items():
        if name.startswith(("mechanisms/", "statistics/", "release", "testing")):
            names = {
                ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)
            }
            assert not names & {"os.environ", "os.getenv"}, name
