"""`heldout board plan`: what a leaderboard could show, before it opens."""

from typing import Annotated

from cyclopts import App, Parameter

app = App(name="board", help="Plan a leaderboard that cannot be gamed.")


@app.command
def plan(
    *,
    rows: int,
    price: str,
    improvements: int,
    submissions: int,
    metric: str = "accuracy",
    start: float = 0.5,
    step: float | None = None,
    least_class: int | None = None,
    as_json: Annotated[bool, Parameter(name="--json", show_default=False)] = False,
) -> None:
    """Say what a board could show, and what its scores would be worth. Spends nothing.

    Refuses a board that would show nothing. Examples:

    ```
    heldout board plan --rows 50000 --price 2 --improvements 10 --submissions 1000
    heldout board plan --rows 5000 --price 1 --improvements 5 --submissions 200 --json
    heldout board plan --rows 20000 --price 2 --improvements 5 --submissions 200 \\
      --metric auc --least-class 2000
    ```

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
    as_json
        Print JSON and nothing else.
    """
    from heldout.cli.output import print_json
    from heldout.questions.boards.plan import Plan

    found = Plan(
        rows=rows,
        price=price,
        improvements=improvements,
        submissions=submissions,
        metric=metric,
        start=start,
        step=step,
        least_class=least_class,
    )
    certificate = found.certificate()
    if as_json:
        expected = {"false_alarms": found.false_alarms, "misses": found.misses}
        print_json(found.as_dict() | expected | {"certificate": certificate.as_dict()})
        return
    print(found)
    print(f"Noise alone would show an improvement in {found.false_alarms:.1%} of boards.")
    print(f"A submission that is two steps better is missed in {found.misses:.2%} of cases.")
    print(f"A shown score is within {found.noise_half_width():.4f} of the rows' own, 95%.")
    print(f"Every submission's score on the rows is {certificate}.")
