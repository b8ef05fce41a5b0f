"""Data flows downwards and imports point one way, and the package loads nothing heavy."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.source import module_of, trees

import heldout

# A room may import from the rooms before it, and from itself.
ORDER = [
    ("heldout.arrays", "heldout.doors", "heldout.errors", "heldout.workers"),
    ("heldout.arguments",),
    (  # the kernel's books: what is a neighbour, what does it cost, who has spent what
        *("heldout.kernel.loss", "heldout.kernel.loss", "heldout.kernel.neighbours"),
        *("heldout.kernel.events", "heldout.kernel.accountant", "heldout.kernel.ledger"),
    ),
    ("heldout.drawing", "heldout.examples"),
    ("heldout.precision_recall",),
    ("heldout.data",),
    ("heldout.models",),
    ("heldout.kernel",),  # its door: statistics, noise, and the way out
    ("heldout.testing",),
    ("heldout.intervals",),
    (  # the kit from which kinds of questions are pooled; `heldout.pool` is above them
        *("heldout.pooling.answer", "heldout.pooling.curves", "heldout.pooling.answer"),
        "heldout.pooling.site",
    ),
    ("heldout.questions",),
    (
        "heldout.board",
        "heldout.features",
        "heldout.integrations",
        "heldout.judged",
        "heldout.regression",
        "heldout.survival",
    ),  # public names of families
    ("heldout.one_off", "heldout.planning"),
    ("heldout.estimators",),
    ("heldout.pooling",),
    ("heldout.audit",),
    ("heldout.cli", "heldout.__main__", "heldout.server", "heldout.client"),
]
SHELLS = ORDER.index(("heldout.questions",))  # from here on, `import heldout` itself is allowed


@cache
def modules() -> dict[str, ast.Module]:
    """Return the trees of all modules, by their names."""
    return {module_of(path): tree for path, tree in trees().items()}


def imported(module: str) -> Iterator[str]:
    """What a module imports of this package, when it runs (not for type checkers alone)."""
    tree = modules()[module]
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    known = set(modules())
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.startswith("heldout"))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            if (node.module or "").split(".")[0] == "heldout":
                for each in node.names:
                    inner = f"{node.module}.{each.name}"
                    yield inner if inner in known else str(node.module)


def within(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def height(module: str) -> int:
    """The place of a module's room in the order."""
    for place, rooms in enumerate(ORDER):
        if any(within(module, room) for room in rooms):
            return place
    raise AssertionError(f"{module} must be in a room: say which in ORDER")


def test_imports_point_one_way() -> None:
    wrong = []
    for module in modules():
        for other in imported(module) if module != "heldout" else ():
            if other == "heldout":
                if height(module) < SHELLS:
                    wrong.append(f"{module} imports the package's front door")
            elif height(other) > height(module):
                wrong.append(f"{module} imports {other}, which is above it")
    assert not wrong


def test_the_checker_sees_imports_inside_functions_and_not_those_for_types() -> None:
    found = set(imported("heldout.kernel.statistic"))
    assert "heldout.drawing.page" in set(imported("heldout.intervals.measure")), "in a function"
    assert "heldout.data" not in found, "under TYPE_CHECKING"
    assert "heldout.data.sql" in found


HEAVY = [
    *("scipy", "sklearn", "duckdb", "opendp", "altair", "pandas", "polars", "sqlalchemy"),
    *("pyarrow", "sqlglot", "flint", "numpy", "cyclopts", "rich", "jinja2"),
]


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, heldout; print([n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_had() -> None:
    for name in heldout.__all__:
        assert getattr(heldout, name) is not None
    shown = [name for name in dir(heldout) if not name.startswith("_")]
    assert set(shown) < set(heldout.__all__)
    assert len(shown) == 10
    with pytest.raises(AttributeError):
        heldout.no_such_name  # noqa: B018


UNNEEDED = [
    *("sklearn", "altair", "pandas", "polars", "sqlglot", "jinja2", "psycopg", "multiprocessing"),
    *("scipy.stats", "scipy.optimize", "scipy.sparse", "scipy.linalg", "sqlalchemy.orm"),
]


@pytest.mark.parametrize(
    ("options", "unneeded"),
    [
        ((), ("scipy", "sqlalchemy", "pyarrow", "unittest")),
        (("--curves",), ("scipy", "sqlalchemy", "unittest")),
        (
            ("--ledger", "ledger.sqlite", "--budget", "9"),
            ("scipy", "sqlalchemy", "pyarrow", "unittest"),
        ),
    ],
    ids=["plain", "curves", "ledger"],
)
def test_an_evaluation_loads_nothing_that_it_does_not_need(
    tmp_path: Path, options: tuple[str, ...], unneeded: tuple[str, ...]
) -> None:
    """Half of a command's time was imports: scipy.special alone takes twice as long as NumPy."""
    rows = tmp_path / "rows.csv"
    rows.write_text("y,p\n" + "1,0.75\n0,0.25\n" * 100)
    asked = ["evaluate", str(rows), "--label", "y", "--score", "p", "--epsilon", "9", *options]
    code = (
        "import sys; from heldout.cli import main; "
        f"assert main({asked!r}) == 0; "
        f"print([n for n in {[*UNNEEDED, *unneeded]!r} if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_editors_see_what_runs() -> None:
    """What type checkers are told that a public name is, is what it is when the program runs."""
    for module in (heldout, heldout.features):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        told = [
            (node.module, alias.name)
            for guarded in ast.walk(tree)
            if isinstance(guarded, ast.If) and ast.unparse(guarded.test) == "TYPE_CHECKING"
            for node in guarded.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
        assert {name for _, name in told} == set(module.__all__)
        for place, name in told:
            named = importlib.import_module(str(place))
            assert getattr(named, name) is getattr(module, name), f"{name} is not {place}.{name}"
