"""`heldout evaluate`: a private report on a table of labels and scores."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heldout.cli.frame import NO_MODEL, NO_SERVER, buy, deliver
from heldout.cli.model import Scoring
from heldout.cli.remote import Remote
from heldout.cli.rows import Rows, Several, Where
from heldout.cli.values import Json, Labels


def evaluate(
    table: Where | None = None,
    /,
    *,
    epsilon: str,
    rows: Annotated[Rows | None, Parameter(name="*")] = None,
    scoring: Annotated[Scoring, Parameter(name="*")] = NO_MODEL,
    remote: Annotated[Remote, Parameter(name="*")] = NO_SERVER,
    threshold: float | None = None,
    curves: bool = False,
    sections: Several = (),
    scores: str | None = None,
    by: Several = (),
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
        Buy only these. The others cost nothing, and need no look at the rows. A wrong name lists
        what there is. ndcg and precision_at_k are of ranked lists: the rows of each --unit, such
        as a query.
    scores
        Rank exact scores, which must fit into memory, or score cells on the public grid: exact or
        grid. Left out: the grid for more than five million rows, where their number is public.
        With --classes it may name the columns of --class-scores instead.
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
    from heldout.cli.output import print_report
    from heldout.drawing.page import checked_place
    from heldout.errors import ArgumentError

    if out is not None:
        checked_place(out)
    if remote.given and title is not None:
        raise ArgumentError("The server makes the page: leave --title out.")
    if rows is not None and rows.classes is not None and scores is not None:
        rows, scores = replace(rows, class_scores=scores), None
    asked = q.Report(
        epsilon=epsilon,
        threshold=threshold,
        curves=curves,
        sections=sections or None,
        scores=scores,
        by=by or None,
        weighted=rows is not None and rows.weight is not None,
        k=k,
    )
    bought = buy(
        asked,
        table=table,
        rows=rows,
        options=Rows,
        scoring=scoring,
        remote=remote,
        yes=yes,
        expected_rows=expected_rows,
        labels=labels,
    )
    [report] = bought.releases
    deliver(
        bought,
        text=lambda: print_report(report),
        content=report.as_dict,
        as_json=as_json,
        out=out,
        write=lambda place: report.save(place, title=title, labels=bought.labels),
    )
