"""`heldout compare`: which of two models is better on the same private rows."""

from typing import Annotated

from cyclopts import Parameter

from heldout.cli.frame import NO_MODEL, NO_SERVER, buy, deliver
from heldout.cli.model import Scoring
from heldout.cli.remote import Remote
from heldout.cli.rows import Rows, Where
from heldout.cli.values import Json


def compare(
    table: Where | None = None,
    /,
    *,
    rival: str,
    epsilon: str,
    rows: Annotated[Rows | None, Parameter(name="*")] = None,
    scoring: Annotated[Scoring, Parameter(name="*")] = NO_MODEL,
    remote: Annotated[Remote, Parameter(name="*")] = NO_SERVER,
    expected_rows: int | None = None,
    yes: Annotated[bool, Parameter(negative="")] = False,
    as_json: Json = False,
) -> None:
    """Is model B better than model A on the same rows?

    Prints the difference of the two AUCs with an interval, a p-value and the price. One release
    of the difference is more exact than the difference of two releases. Examples:

    ```
    heldout compare test.parquet --label readmitted --score risk_a --rival risk_b --epsilon 1
    heldout compare test.parquet --label readmitted --score risk_a --rival risk_b --epsilon 1/2 \\
      --ledger ledger.sqlite --budget 3 --json
    heldout compare test.parquet --label readmitted --score risk_a --rival decile \\
      --rival-range 1 10 --epsilon 1
    heldout compare --server https://evaluate.example.org --token-file token.txt \\
      --dataset readmissions --model a.onnx --rival b.onnx --epsilon 1
    ```

    Parameters
    ----------
    table
        A .parquet, .csv or .tsv file, or a postgresql:// address with --table or --query. Left
        out where --server has the rows.
    rival
        Column with the second model's score, which is validated like the first; with --server
        the file of the second model.
    epsilon
        The price, such as 1, 0.5 or 1/3.
    expected_rows
        A public guess at the number of rows, where that is private: to say beforehand what noise
        will leave.
    yes
        Do not ask where privacy noise will leave nothing to read.
    """
    from heldout import questions as q
    from heldout.cli.failure import one_line
    from heldout.cli.output import print_paid

    bought = buy(
        q.Compare(score=rival, epsilon=epsilon),
        table=table,
        rows=rows,
        options=Rows,
        scoring=scoring,
        remote=remote,
        yes=yes,
        expected_rows=expected_rows,
    )
    [release] = bought.releases

    def text() -> None:
        print(one_line(f"{release}."))
        low, high = release.interval()
        first = bought.answered.drawn.about.score
        better = rival if low > 0 else first if high < 0 else None
        verdict = f"{better} ranks better" if better else "neither is shown to rank better"
        print(one_line(f"With 95% confidence {verdict}."))
        print_paid(release, bought.remaining)

    deliver(bought, text=text, as_json=as_json)
