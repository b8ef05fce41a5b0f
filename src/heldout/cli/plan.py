"""`heldout plan`: which epsilon for which interval, before anything is spent."""

from typing import Literal

from heldout.cli.values import Json


def plan(
    *,
    rows: int,
    positives: int | None = None,
    metric: str | None = None,
    value: float | None = None,
    auc: float | None = None,
    average_precision: float | None = None,
    alarms: int | None = None,
    target: float | None = None,
    epsilon: str | None = None,
    level: float = 0.95,
    neighbours: Literal["replace-one", "add-remove"] = "replace-one",
    unit: bool = False,
    rows_per_unit: int = 1,
    as_json: Json = False,
) -> None:
    """Which epsilon for which interval? Spends nothing.

    Give a target half-width to get epsilon, or epsilon to get the half-width. No row is read:
    the counts are your guesses. Examples:

    ```
    heldout plan --rows 5000 --positives 500 --metric recall --value 0.8 \\
      --target 0.02
    heldout plan --rows 5000 --positives 500 --auc 0.85 --target 0.02
    heldout plan --rows 5000 --metric accuracy --value 0.9 --epsilon 0.5
    heldout plan --rows 5000 --metric brier --value 0.1 --target 0.01 \\
      --rows-per-unit 3
    ```

    Parameters
    ----------
    rows
        How many rows the test set has.
    positives
        How many of them are positive. A guess will do; do not count private rows.
    metric
        What is to be released: accuracy, recall, precision, specificity, npv, f1, prevalence,
        brier, auc, average-precision.
    value
        What you expect it to be.
    auc
        Short for --metric auc --value.
    average_precision
        Short for --metric average-precision --value.
    alarms
        How many rows the model calls positive. Left out: as many as if it found the same share
        of positives as it leaves alone of negatives.
    target
        The half-width of the noise interval that you can live with.
    epsilon
        The price that you can pay.
    level
        Confidence of the intervals.
    neighbours
        replace-one: the number of rows is public. add-remove: it is not.
    unit
        Protect units (people) instead of rows; implied by --rows-per-unit above 1.
    rows_per_unit
        How many rows of one unit may count.
    """
    from heldout.cli.output import console, patience, print_json, print_table
    from heldout.drawing.words import decimal
    from heldout.planning import plan as planned

    with patience("Planning"):
        answer = planned(
            rows=rows,
            positives=positives,
            metric=metric,
            value=value,
            auc=auc,
            average_precision=average_precision,
            alarms=alarms,
            target=target,
            epsilon=epsilon,
            level=level,
            neighbours=neighbours,
            unit=unit,
            rows_per_unit=rows_per_unit,
        )
    if as_json:
        print_json(answer.as_dict())
        return
    print_table(
        (f"{answer.metric} {answer.value:g}", ""),
        [
            ("epsilon", decimal(answer.epsilon)),
            ("privacy noise alone", f"±{answer.half_width:.4f}"),
            ("sampling error alone", f"±{answer.sampling_half_width:.4f}"),
            ("both together", f"±{answer.whole_half_width:.4f}"),
        ],
    )
    console().print(str(answer))
    if answer.assumption != "none":
        console().print(f"Assumed: {answer.assumption}.")
