"""`heldout demo`: the main job on bundled data."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from heldout.cli.values import Json

if TYPE_CHECKING:
    from heldout.questions.report import Report

LEAK = (
    "Why not just print the exact accuracy? Ask for it twice, once with one patient's stay taken "
    "out, and the difference says whether the model was right about that patient; with the model "
    "in hand, that is whether the patient came back."
)


def demo(
    *,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
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

    from heldout.cli.output import patience, print_json
    from heldout.drawing.place import checked_place

    if out is not None:
        checked_place(out)
    with TemporaryDirectory(prefix="heldout-demo-") as place, patience("Evaluating the examples"):
        reports = _reports(Path(place) / "ledger.sqlite")
        if out is not None:
            labels = {"risk_b": "the new risk score", "patient_id": "patient"}
            reports["risk_b"].save(out, labels=labels)
    if as_json:
        print_json({name: each.as_dict() for name, each in reports.items()})
        return
    _tell(reports)
    if out is not None:
        print(f"Report on the second model: {out}")


def _reports(ledger: Path) -> dict[str, "Report"]:
    from heldout import questions as q
    from heldout.data import Dataset
    from heldout.examples import breast_cancer, readmission
    from heldout.kernel import Budget, Ledger
    from heldout.questions.session import Session

    numbers = [each.kind for each in (q.Auc, q.Confusion, q.Brier)]
    with_curves = [each.kind for each in (q.Confusion, q.Brier, q.Curves)]  # the AUC is read off
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
            # Average precision is left out: three stays a patient drown it at this price.
            sections = with_curves if score == "risk_b" else numbers
            reports[score] = session.report(epsilon="3/2", threshold=0.3, sections=sections)
        samples = Dataset(breast_cancer(), label="malignant", score="risk", name="breast cancer")
        session = Session(samples, budget=Budget(epsilon=2), ledger=book)
        reports["breast cancer"] = session.report(epsilon=2, sections=numbers)
    return reports


def _tell(reports: dict[str, "Report"]) -> None:
    from heldout.cli.output import console, print_report

    say = console()
    say.print("1. A hospital asks how good its model is on 5,000 stays that nobody may see.")
    say.print("   Each patient is protected with all stays, of which three count.\n")
    print_report(reports["risk_a"])
    say.print(
        "\n2. A second model on the same patients, with its curves, out of the same budget.\n"
    )
    print_report(reports["risk_b"], brief=True)
    say.print("\n3. On 284 samples the noise counts more: less data is dearer to ask.\n")
    print_report(reports["breast cancer"], brief=True)
    say.print(f"\n{LEAK}")
