"""To begin with: `heldout demo`, `heldout doctor`, and `heldout reproduce` for the papers."""

import importlib.util
import shutil
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from heldout.cli.output import Json, console, patience, print_json, print_report, print_table
from heldout.errors import HeldoutError, MissingDependency

if TYPE_CHECKING:
    from heldout.questions.report import Report


GROUP = "heldout.commands"
MISSING = (
    "The papers' figures come in a package of their own: pip install heldout-papers "
    "(from a checkout: pip install --editable papers)."
)
LEAK = (
    "Why not just print the exact accuracy? Ask for it twice, once without one patient's stay, and "
    "the difference says whether the model was right about that patient. Whoever has the model "
    "then knows whether the patient came back."
)


def demo(*, out: Path | None = None, as_json: Json = False) -> None:
    """See it work on bundled data, in a few seconds.

    Evaluates two models on a made-up hospital's readmissions, protecting each patient with all
    stays, out of one budget of epsilon 3; then a model on scikit-learn's breast cancer data. The
    ledger is thrown away afterwards. Examples:

    ```
    heldout demo
    heldout demo --out report.html
    ```

    Parameters
    ----------
    out
        Write the report on the second model to this .html file.
    """
    from tempfile import TemporaryDirectory

    from heldout.drawing.page import checked_place

    if out is not None:
        checked_place(out)
    with TemporaryDirectory(prefix="heldout-demo-") as place, patience("Evaluating the examples"):
        reports = _reports(Path(place) / "ledger.sqlite")
        if out is not None:
            labels = {"risk_b": "the new risk score", "patient_id": "patient"}
            reports["risk_b"].save(out, labels=labels)
    if as_json:
        print_json({name: report.as_dict() for name, report in reports.items()})
        return
    _print(reports)
    if out is not None:
        print(f"Report on the second model: {out}")


def _reports(ledger: Path) -> dict[str, "Report"]:
    from heldout import questions as q
    from heldout.data import Dataset
    from heldout.examples import breast_cancer, readmission
    from heldout.kernel import Budget, Ledger
    from heldout.questions.session import Session

    numbers = [question.kind for question in (q.Auc, q.Confusion, q.Brier)]
    # With curves the AUC is read off them.
    with_curves = [question.kind for question in (q.Confusion, q.Brier, q.Curves)]
    stays = readmission()
    reports: dict[str, Any] = {}
    with Ledger.open(ledger) as book:
        for score in ("risk_a", "risk_b"):
            dataset = Dataset(
                stays,
                label="readmitted",
                score=score,
                unit="patient_id",
                rows_per_unit=3,
                row_key="encounter_id",
                name="hospital readmissions",
            )
            session = Session(dataset, budget=Budget(epsilon=3), ledger=book)
            # Average precision is left out: three stays per patient leave nothing to read.
            sections = with_curves if score == "risk_b" else numbers
            reports[score] = session.report(epsilon="3/2", threshold=0.3, sections=sections)
        samples = Dataset(breast_cancer(), label="malignant", score="risk", name="breast cancer")
        session = Session(samples, budget=Budget(epsilon=2), ledger=book)
        reports["breast cancer"] = session.report(epsilon=2, sections=numbers)
    return reports


def _print(reports: dict[str, "Report"]) -> None:
    say = console()
    say.print("1. A hospital asks how good its model is on 5,000 stays that nobody may see.")
    say.print("   Each patient is protected with all stays, of which three count.\n")
    print_report(reports["risk_a"])
    say.print(
        "\n2. A second model on the same patients, with its curves, out of the same budget.\n"
    )
    print_report(reports["risk_b"], brief=True)
    say.print("\n3. On 284 samples noise counts more: small data sets need a larger epsilon.\n")
    print_report(reports["breast cancer"], brief=True)
    say.print(f"\n{LEAK}")


def find_reproduce() -> Callable[..., object]:
    """Return the command of heldout-papers, or one that says how to install it."""
    for point in entry_points(group=GROUP, name="reproduce"):
        command: Callable[..., object] = point.load()
        return command
    return without_papers


def without_papers(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
) -> None:
    """Redo the figures of the papers. Needs a package of its own: `pip install heldout-papers`."""
    del words
    raise MissingDependency(MISSING)


reproduce = find_reproduce()


# --- `heldout doctor`: what is installed here, and whether it works -------------------------------


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
