"""`heldout evaluate`: a private report on a table of labels and scores."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from heldout.cli.model import Scoring
from heldout.cli.remote import Remote
from heldout.cli.rows import Rows, Where
from heldout.cli.values import Json, Labels, checked_labels


@dataclass(frozen=True, kw_only=True)
class RowsHere(Rows):
    """Rows with a label and a score, unless a server has them.

    Parameters
    ----------
    label
        Column with the outcome. Needed unless --server has the rows.
    weight
        Column with what each row counts for, from 0 to --largest-weight. Rankings and curves
        have no weighted form and are left out.
    largest_weight
        The largest weight that there can be. Public; never read off the data.
    """

    label: Annotated[str, Parameter(show_default=False)] = ""
    weight: str | None = None
    largest_weight: float | None = None


NO_ROWS, NO_MODEL, NO_SERVER = RowsHere(), Scoring(), Remote()


def evaluate(
    table: Where | None = None,
    /,
    *,
    epsilon: str,
    rows: Annotated[RowsHere, Parameter(name="*")] = NO_ROWS,
    scoring: Annotated[Scoring, Parameter(name="*")] = NO_MODEL,
    remote: Annotated[Remote, Parameter(name="*")] = NO_SERVER,
    threshold: float | None = None,
    curves: bool = False,
    sections: Annotated[
        tuple[
            Literal[
                "auc",
                "average_precision",
                "confusion",
                "brier",
                "curves",
                "top_k",
                "log_loss",
                "ndcg",
                "precision_at_k",
                "class_average_precision",
            ],
            ...,
        ],
        Parameter(consume_multiple=True, negative=""),
    ] = (),
    scores: str | None = None,
    by: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")] = (),
    k: int = 10,
    expected_rows: int | None = None,
    yes: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
    title: str | None = None,
    labels: Labels = (),
    as_json: Json = False,
) -> None:
    """Evaluate a model on rows you must not show.

    Prints AUC and average precision, accuracy, recall, precision and more at a threshold, and the
    Brier score, each with an interval and at an exact price. Examples:

    ```
    heldout evaluate test.parquet --label readmitted --score risk_a --epsilon 1
    heldout evaluate test.csv --label readmitted --score risk_b --epsilon 1/2 \\
      --threshold 0.3 --json
    heldout evaluate test.parquet --label readmitted --score risk_a --epsilon 1 \\
      --sections auc average_precision curves
    heldout evaluate test.parquet --label readmitted --score risk_b --epsilon 1 \\
      --unit patient_id --rows-per-unit 3 --row-key encounter_id \\
      --ledger ledger.sqlite --budget 3 --out report.html
    heldout evaluate test.parquet --label readmitted --score risk_a --epsilon 1 \\
      --groups prior_admissions=0,1,2 --by prior_admissions
    heldout evaluate test.parquet --label readmitted --model model.json --epsilon 1
    heldout evaluate --server https://evaluate.example.org --token-file token.txt \\
      --dataset readmissions --model model.onnx --epsilon 1 --out report.html
    heldout evaluate flowers.parquet --label species --classes a,b,c --scores pa,pb,pc --epsilon 1
    heldout evaluate survey.parquet --label y --score p --weight w --largest-weight 10 --epsilon 1
    heldout evaluate results.parquet --label relevant --score p --unit query --rows-per-unit 20 \\
      --sections ndcg precision_at_k --k 5 --epsilon 1
    ```

    Parameters
    ----------
    table
        A .parquet, .csv or .tsv file, or a postgresql:// address with --table or --query. Left
        out where --server has the rows.
    epsilon
        The price of everything that is printed, such as 1, 0.5 or 1/3.
    threshold
        Rows with at least this score are called positive. Left out: the middle of the range.
    curves
        Add the ROC and precision-recall curves, for about a quarter of the price.
    sections
        Buy only these. The others cost nothing, and need no look at the rows. ndcg and
        precision_at_k are of ranked lists: the rows of each --unit, such as a query.
    scores
        Rank exact scores, which must fit into memory, or score cells on the public grid: exact or
        grid. Left out: the grid for more than five million rows, where their number is public.
        With --classes: the column of each class's score, such as pa,pb,pc.
    by
        Add the decisions by group: a column of --groups, or several to cross.
    k
        How many rows of each ranked list count, from the top.
    expected_rows
        A public guess at the number of rows, where that is private: to say beforehand what noise
        will leave.
    yes
        Do not ask where privacy noise will leave nothing to read of most sections.
    out
        Write a report to this .html file.
    title
        The heading of the report.
    labels
        What the report calls a column or the data, such as risk_b="The new model".
    """
    from heldout import questions as q
    from heldout.cli.delivery import delivering
    from heldout.cli.output import (
        confirm_nothing,
        patience,
        print_expected,
        print_json,
        print_report,
        print_unremembered,
    )
    from heldout.drawing.place import checked_place
    from heldout.errors import ArgumentError

    if out is not None:
        checked_place(out)
    asked = q.Report(
        epsilon=epsilon,
        threshold=threshold,
        curves=curves,
        sections=sections or None,
        scores=None if rows.classes else scores,
        by=by or None,
        weighted=rows.weight is not None,
        k=k,
    )
    if remote.given:
        if table is not None or rows != NO_ROWS or title is not None or labels:
            raise ArgumentError(
                "The server has the rows and makes the page: leave the table, its columns, --title "
                "and --labels out."
            )
        remote.evaluate(asked, scoring=scoring, yes=yes, out=out, as_json=as_json)
        return
    if table is None or not rows.label:
        raise ArgumentError(f"{'TABLE' if table is None else '--label'} must be given.")
    weights = (rows.weight, rows.largest_weight)
    if (rows.weight is None) != (rows.largest_weight is None):
        raise ArgumentError("--weight and --largest-weight must be given together.")
    scored = scoring.scored(rows.source(table), into=rows.score, row_key=rows.row_key)
    with patience(f"Evaluating {table.name}"):
        session = rows.session(
            table, epsilon=epsilon, scored=scored, scores=scores, weights=weights
        )
        called = checked_labels(session.dataset.names, labels)
        drowned = [] if yes else asked.drowned(session.dataset, expected_rows=expected_rows)
    if drowned:
        confirm_nothing(drowned)
    with patience(f"Evaluating {table.name}"):
        report = session.ask(asked)
    with delivering(report, ledger=rows.ledger):
        try:
            if out is not None:
                with patience(f"Writing {out.name}"):
                    report.save(out, title=title, labels=called)
        finally:
            if as_json:
                print_json(report.as_dict())
            else:
                print_report(report)
                print_unremembered(rows.ledger)
                print_expected(session.dataset.rows, expected_rows)
        if out is not None and not as_json:
            print(f"Report: {out}")
