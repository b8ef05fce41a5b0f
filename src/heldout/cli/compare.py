"""`heldout compare`: which of two models is better on the same private rows."""

from typing import Annotated

from cyclopts import Parameter

from heldout.cli.rows import Rows, Where
from heldout.cli.values import Json


def compare(
    table: Where,
    /,
    *,
    rival: str,
    epsilon: str,
    rows: Annotated[Rows, Parameter(name="*")],
    as_json: Json = False,
) -> None:
    """Is model B better than model A on the same rows?

    Prints the difference of the two AUCs with an interval, a p-value and the price. One release
    of the difference is more exact than the difference of two releases. Examples:

    ```
    heldout compare test.parquet --label readmitted --score risk_a --rival risk_b --epsilon 1
    heldout compare test.parquet --label readmitted --score risk_a --rival risk_b --epsilon 1/2 \\
      --ledger ledger.sqlite --budget 3 --json
    ```

    Parameters
    ----------
    table
        A .parquet, .csv or .tsv file, or a postgresql:// address with --table or --query.
    rival
        Column with the second model's score; it is validated like the first.
    epsilon
        The price, such as 1, 0.5 or 1/3.
    """
    from heldout.cli.delivery import delivering
    from heldout.cli.failure import one_line
    from heldout.cli.output import patience, print_json

    with patience(f"Comparing on {table.name}"):
        session = rows.session(table, epsilon=epsilon, rivals=[rival])
        release = session.compare(score=rival, epsilon=epsilon)
    with delivering(release, ledger=rows.ledger):
        if as_json:
            print_json({**release.as_dict(), "remaining": session.remaining.as_dict()})
            return
        print(one_line(f"{release}."))
        low, high = release.interval()
        better = rival if low > 0 else rows.score if high < 0 else None
        verdict = f"{better} ranks better" if better else "neither is shown to rank better"
        print(
            one_line(f"With 95% confidence {verdict}.")
            + f" Paid {release.loss}; left: {session.remaining}."
        )
        print(f"Receipt: {release.receipt.hash}")
