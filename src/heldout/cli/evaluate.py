"""`heldout evaluate`: a private report on a table of labels and scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from heldout.data import Dataset
    from heldout.session import Session


def evaluate(
    table: Path,
    /,
    *,
    label: str,
    score: str,
    epsilon: str,
    threshold: float | None = None,
    positive: str = "1",
    negative: str | None = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    unit: str | None = None,
    rows_per_unit: int = 1,
    row_key: str | None = None,
    neighbours: Literal["replace-one", "add-remove"] = "replace-one",
    ledger: str | None = None,
    budget: str | None = None,
    name: str | None = None,
    out: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", show_default=False)] = False,
) -> None:
    """Evaluate a model on rows you must not show.

    Prints accuracy, recall, precision and more at a threshold, and the Brier score, each with an
    interval and at an exact price. Examples:

    ```
    heldout evaluate test.parquet --label readmitted --score risk_a --epsilon 1
    heldout evaluate test.csv --label readmitted --score risk_b --epsilon 1/2 \\
      --threshold 0.3 --json
    heldout evaluate test.parquet --label readmitted --score risk_b --epsilon 1 \\
      --unit patient_id --rows-per-unit 3 --row-key encounter_id \\
      --ledger ledger.sqlite --budget 3 --out report.html
    ```

    Parameters
    ----------
    table
        A .parquet, .csv or .tsv file.
    label
        Column with the outcome.
    score
        Column with the model's score; higher means more likely positive.
    epsilon
        The price of everything that is printed, such as 1, 0.5 or 1/3.
    threshold
        Rows with at least this score are called positive. Left out: the middle of the range.
    positive
        The label's value for positive, such as 1, true or yes; quote it ("'1'") to mean text.
    negative
        The other value. May be left out if positive is 0, 1, true or false.
    score_range
        Lowest and highest score that the model can give. Public; never read off the data.
    unit
        Column that says whose row it is, to protect people with all their rows.
    rows_per_unit
        How many rows of one unit may count.
    row_key
        Column that tells rows apart.
    neighbours
        replace-one: the number of rows is public. add-remove: it is not.
    ledger
        File or database URL that remembers what was spent on these rows.
    budget
        What may be spent on these rows in all. Needed once, when a ledger first meets them.
    name
        What to call the data; the file's name if left out.
    out
        Write a report to this .html file.
    as_json
        Print JSON and nothing else.
    """
    from heldout.cli.output import patience, print_json, print_report

    with patience(f"Evaluating {table.name}"):
        from heldout.cli.values import label_value
        from heldout.data import Dataset
        from heldout.report.report import checked_place

        if out is not None:
            checked_place(out)
        dataset = Dataset(
            table,
            label=label,
            score=score,
            positive=label_value(positive),
            negative=None if negative is None else label_value(negative),
            unit=unit,
            rows_per_unit=rows_per_unit,
            row_key=row_key,
            score_range=score_range,
            neighbours=neighbours,
            name=name,
        )
        session = _session(dataset, epsilon=epsilon, ledger=ledger, budget=budget)
        report = session.report(epsilon=epsilon, threshold=threshold)
    # What is paid for is printed before anything else can go wrong.
    if as_json:
        print_json(report.as_dict())
    else:
        print_report(report)
        if ledger is None:
            print("Nothing is remembered: give --ledger FILE to keep count of what is spent.")
    if out is not None:
        with patience(f"Writing {out.name}"):
            report.save(out)
        if not as_json:
            print(f"Report: {out}")


def _session(
    dataset: "Dataset", *, epsilon: str, ledger: str | None, budget: str | None
) -> "Session":
    from heldout.errors import ArgumentError
    from heldout.privacy import Budget, Ledger
    from heldout.session import Session

    if ledger is None:
        if budget is not None:
            raise ArgumentError(
                "--budget must go with --ledger, which keeps count of what is left of it."
            )
        return Session(dataset, budget=Budget(epsilon=epsilon))
    book = Ledger.open(ledger)
    if budget is not None:
        return Session(dataset, budget=Budget(epsilon=budget), ledger=book)
    try:
        return Session(dataset, ledger=book)
    except ArgumentError:
        raise ArgumentError(
            "--budget must be given when a ledger first meets these rows. Say what may be spent "
            "on them in all, for example --budget 3."
        ) from None
