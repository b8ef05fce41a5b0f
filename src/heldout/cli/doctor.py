"""`heldout doctor`: what is installed here, and whether it works."""

import importlib.util
import shutil
from collections.abc import Callable

from heldout.cli.output import Json, patience, print_json, print_table
from heldout.errors import HeldoutError, MissingDependency

NEEDED = ("duckdb", "numpy", "opendp", "pyarrow", "python-flint", "scikit-learn", "scipy",
          "sqlglot")  # fmt: skip
FINE, ABSENT, WRONG = "works", "not there", "WRONG"
Verdict = tuple[str, str]
"""One of these, and what is there or how to get it."""


def doctor(*, ledger: str | None = None, as_json: Json = False) -> None:
    """Check what is installed here, and whether it works.

    Versions, noise, the engines that rows can be read from, whether models from outside can be shut
    off, and the state of a ledger and its key. Reads no private row and charges nothing. Examples:

    ```
    heldout doctor
    heldout doctor --ledger ledger.sqlite --json
    ```

    Parameters
    ----------
    ledger
        A ledger to look at: its chain, its witness and its key.
    """
    checks: dict[str, Callable[[], Verdict]] = {
        "python": _python,
        "libraries": _libraries,
        "exact noise": _noise,
        "files and frames (DuckDB)": _duckdb,
        "PostgreSQL": lambda: _extra("psycopg", "postgres"),
        "Spark": _spark,
        "models from outside": lambda: _extra("onnxruntime", "models"),
        "sandbox for models": _sandbox,
        "pictures on matplotlib": lambda: _library("matplotlib"),
        "pictures on Altair": lambda: _extra("altair", "plots"),
        "papers": lambda: _library("heldout-papers"),
    }
    if ledger is not None:
        checks["ledger"] = lambda: _ledger(ledger)
        checks["ledger key"] = lambda: _key(ledger)
    with patience("Looking"):
        rows = [(name, *_looked(check)) for name, check in checks.items()]
    if as_json:
        print_json({name: {"state": state, "about": about} for name, state, about in rows})
    else:
        print_table(("", "", ""), rows, left=(0, 1, 2))
    wrong = [name for name, state, _ in rows if state == WRONG]
    if wrong:
        raise MissingDependency(f"These checks failed: {', '.join(wrong)}.")


def _looked(check: Callable[[], Verdict]) -> Verdict:
    try:
        return check()
    except HeldoutError as error:
        return WRONG, str(error)
    except Exception as error:  # a library that is there and broken
        return WRONG, type(error).__name__


def _python() -> Verdict:
    import platform

    import heldout

    return FINE, f"heldout {heldout.__version__}, Python {platform.python_version()}"


def _libraries() -> Verdict:
    from importlib.metadata import version

    return FINE, ", ".join(f"{name} {version(name)}" for name in NEEDED)


def _noise() -> Verdict:
    from fractions import Fraction

    from heldout.kernel.noise import DiscreteLaplace
    from heldout.kernel.statistic import Sealed

    law = DiscreteLaplace.for_epsilon(Fraction(1), l1_sensitivity=1, dimension=64)
    drawn = law.sample(Sealed([0] * 64))
    return (FINE, "drawn by OpenDP") if any(drawn) else (WRONG, "64 draws were all 0")


def _duckdb() -> Verdict:
    from heldout.data.duckdb import open_local
    from heldout.data.validation import check_hash

    check_hash(open_local({"a": [1]}))
    return FINE, "rows of a ledger are found again"


def _library(name: str) -> Verdict:
    from importlib.metadata import version

    if importlib.util.find_spec(name.replace("-", "_")) is None:
        return ABSENT, f"pip install {name}"
    return FINE, f"{name} {version(name)}"


def _extra(module: str, extra: str) -> Verdict:
    state, about = _library(module)
    return (state, about) if state == FINE else (state, f"pip install 'heldout[{extra}]'")


def _spark() -> Verdict:
    state, about = _extra("pyspark", "spark")
    if state == FINE and shutil.which("java") is None:
        return ABSENT, f"{about}, but no Java (17 or later)"
    return state, about


def _sandbox() -> Verdict:
    from heldout.models.isolate import standing_walls
    from heldout.models.sandbox import available

    if not available()["seccomp"]:
        return ABSENT, "no seccomp: models are refused unless the custodian insists"
    walls = standing_walls()
    standing = ", ".join(name for name, stands in walls.items() if stands)
    lacking = ", ".join(name for name, stands in walls.items() if not stands)
    return FINE, f"{standing}; without {lacking}" if lacking else standing


def _ledger(place: str) -> Verdict:
    from heldout.cli.ledger import open_ledger

    book = open_ledger(place, read_only=True)
    entries = book.verify().entries
    return FINE, f"{entries:,} entries, every hash, price and total as they should be"


def _key(place: str) -> Verdict:
    from heldout.cli.ledger import open_ledger

    if not open_ledger(place, read_only=True).check_key():
        return FINE, "none is needed yet"
    return FINE, "the one under which this ledger remembers rows"
