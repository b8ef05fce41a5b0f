"""`heldout demo`: the main job on bundled data; `heldout reproduce`: the papers' figures."""

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from heldout.cli.output import Json, console, patience, print_json, print_report
from heldout.errors import MissingDependency

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
