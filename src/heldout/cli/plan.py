"""`heldout plan` and `heldout pool`: before anything is spent, and after several sites have."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from heldout.cli.output import (
    Json,
    console,
    one_line,
    patience,
    print_json,
    print_measures,
    print_table,
    text_of,
)
from heldout.errors import ArgumentError

BOARD_HELP = """Plan a leaderboard that cannot be gamed. Examples:

```
heldout board plan --rows 50000 --price 2 --improvements 10 --submissions 1000
heldout board plan --rows 5000 --price 1 --improvements 5 --submissions 200 --json
```
"""
board = App(name="board", help=BOARD_HELP)


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """Guesses and targets; the arguments of `heldout.plan`.

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
        replace-one: the number of rows is public. add-remove: it is not. label: all is public
        but the outcome.
    unit
        Protect units (people) instead of rows; implied by --rows-per-unit above 1.
    rows_per_unit
        How many rows of one unit may count.
    """

    rows: int
    positives: int | None = None
    metric: str | None = None
    value: float | None = None
    auc: float | None = None
    average_precision: float | None = None
    alarms: int | None = None
    target: float | None = None
    epsilon: str | None = None
    level: float = 0.95
    neighbours: Literal["replace-one", "add-remove", "label"] = "replace-one"
    unit: bool = False
    rows_per_unit: int = 1


def plan(*, guesses: Annotated[Guesses, Parameter(name="*")], as_json: Json = False) -> None:
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
    """
    from heldout.drawing.words import decimal
    from heldout.planning import plan as planned

    with patience("Planning"):
        answer = planned(**vars(guesses))
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


@dataclass(frozen=True, kw_only=True)
class BoardTerms:
    """The terms of a board; the arguments of `heldout.board.Plan`.

    Parameters
    ----------
    rows
        How many rows the board is on; their number is public.
    price
        Epsilon for the whole board.
    improvements
        How many improvements may be shown.
    submissions
        How many submissions may be judged.
    metric
        accuracy (at 0.5), auc, brier or mean-absolute-error (1 minus it).
    start
        The score that the first submission has to beat.
    step
        By how much a submission must beat the best. Left out: the smallest that can be seen.
    least_class
        For the AUC: neither class has fewer rows than this; public.
    """

    rows: int
    price: str
    improvements: int
    submissions: int
    metric: str = "accuracy"
    start: float = 0.5
    step: float | None = None
    least_class: int | None = None


@board.command(name="plan")
def plan_board(*, terms: Annotated[BoardTerms, Parameter(name="*")], as_json: Json = False) -> None:
    """Say what a board could show, and what its scores would be worth. Spends nothing.

    Refuses a board that would show nothing. Examples:

    ```
    heldout board plan --rows 50000 --price 2 --improvements 10 --submissions 1000
    heldout board plan --rows 5000 --price 1 --improvements 5 --submissions 200 --json
    heldout board plan --rows 20000 --price 2 --improvements 5 --submissions 200 \\
      --metric auc --least-class 2000
    ```
    """
    from heldout.board import Plan

    planned = Plan(**vars(terms))
    certificate = planned.certificate()
    if as_json:
        expected = {"false_alarms": planned.false_alarms, "misses": planned.misses}
        print_json(planned.as_dict() | expected | {"certificate": certificate.as_dict()})
        return
    print(planned)
    print(f"Noise alone would show an improvement in {planned.false_alarms:.1%} of boards.")
    print(f"A submission that is two steps better is missed in {planned.misses:.2%} of cases.")
    print(f"A shown score is within {planned.noise_half_width():.4f} of the rows' own, 95%.")
    print(f"Every submission's score on the rows is {certificate}.")


def pool(
    *files: Path,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Make one answer of what several sites answered separately to the same question.

    Takes the JSON that `heldout evaluate --json`, `heldout compare --json` or `as_dict()` wrote.
    Reads no row and spends nothing. Examples:

    ```
    heldout pool north.json south.json east.json
    heldout pool north.json south.json --out pooled.html --json
    ```

    Parameters
    ----------
    files
        One .json file per site; sites are called as their files are.
    out
        Write a page with forest plots to this .html file.
    """
    import heldout as ho
    from heldout.pooling.answer import Pooled, PooledReport

    pooled = ho.pool([_read(file) for file in files], names=_names(files))
    report = PooledReport({pooled.name: pooled}) if isinstance(pooled, Pooled) else pooled
    if out is not None:
        report.save(out)
    if as_json:
        print_json(pooled.as_dict())
        return
    for answer in report.answers.values():
        print_measures(answer.measures)
        sentences = [answer.headline.name, answer.heterogeneity(), answer.predicted()]
        print(one_line(" ".join(f"{sentence}." for sentence in sentences if sentence)))
    if report.left_out:
        words = "not every site asked it, or its answers cannot be pooled"
        print(one_line(f"Left out: {', '.join(report.left_out)} ({words})."))
    print(f"Price: {report.price}. Pooling costs nothing.")
    if out is not None:
        print(one_line(f"Written: {out}"))


def _names(files: tuple[Path, ...]) -> list[str]:
    """Return what files are called; with their folder where sites call theirs alike."""
    if len({file.resolve() for file in files}) < len(files):
        raise ArgumentError("Pass each file once: otherwise it would count as two sites.")
    names = [file.stem for file in files]
    if len(set(names)) < len(names):
        names = [str(file.with_suffix("")) for file in files]
    return names


def _read(file: Path) -> object:
    what = "JSON of a release or a report"
    text = text_of(file, what)
    try:
        content: object = json.loads(text)
    except (ValueError, RecursionError):
        raise ArgumentError(f"{file} is not {what}.") from None
    return content
