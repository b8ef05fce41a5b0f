"""`heldout attack`: what a metric that was published without noise gives away."""

from pathlib import Path

from heldout.cli.values import Json


def attack(
    metric: str,
    table: Path,
    /,
    *,
    label: str,
    score: str,
    positive: str = "1",
    negative: str | None = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    decimals: int | None = None,
    epsilon: float = 1.0,
    most: int = 1000,
    as_json: Json = False,
) -> None:
    """How exposed is a metric that is published without noise?

    Plays somebody who knows every row but one and the published number: each row is left out in
    turn, put at every rank as a positive and as a negative, and the class that fits the number
    best is the guess. What is printed is computed from the rows without noise: it is for the
    custodian's eyes only. Examples:

    ```
    heldout attack auc test.csv --label readmitted --score risk_a --most 100
    heldout attack auc test.csv --label readmitted --score risk_a --decimals 3 \\
      --most 100
    heldout attack average-precision test.parquet --label readmitted \\
      --score risk_b --most 50 --json
    ```

    Parameters
    ----------
    metric
        The number that is published: auc, average-precision, or all points of the roc curve.
    table
        A .parquet, .csv or .tsv file.
    label
        Column with the outcome.
    score
        Column with the model's score; higher means more likely positive.
    positive
        The label's value for positive, such as 1, true or yes; quote it ("'1'") to mean text.
    negative
        The other value. May be left out if positive is 0, 1, true or false.
    score_range
        Lowest and highest score that the model can give.
    decimals
        Decimals that are published. Left out: all of them.
    epsilon
        Compare with a release at this price.
    most
        Rows to attack at most.
    """
    from heldout.audit.attacks import exposure_of, most_success
    from heldout.cli.output import patience, print_json
    from heldout.cli.values import label_value
    from heldout.data import Dataset
    from heldout.errors import ArgumentError

    if not 0 < epsilon < 700:
        raise ArgumentError(f"epsilon must be more than 0 and below 700, got {epsilon:g}.")
    with patience(f"Attacking {table.name}"):
        dataset = Dataset(
            table,
            label=label,
            score=score,
            positive=label_value(positive),
            negative=None if negative is None else label_value(negative),
            score_range=score_range,
        )
        found = exposure_of(dataset, metric=metric, decimals=decimals, most=most)
    limit = most_success(epsilon)
    if as_json:
        print_json({**found.as_dict(), "epsilon": epsilon, "most_success_at_epsilon": limit})
        return
    print(found)
    print(
        f"At even odds that is {found.balanced:.0%}; a coin has 50%, and nobody can have more than "
        f"{limit:.0%} against a release at epsilon {epsilon:g}."
    )
    print("This was computed from the rows without noise: for the custodian's eyes only.")
