"""What commands print: tables for people, JSON for machines, patience for both."""

import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from heldout.cli.failure import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from heldout.intervals.measure import Measure
    from heldout.intervals.release import Release
    from heldout.kernel import Loss
    from heldout.questions.report import Report

PATIENCE = 2.0  # seconds before something moves on the screen


def console() -> "Console":
    """Standard output; names of columns are text to it, never markup."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False, soft_wrap=False)


def print_json(content: Any) -> None:
    """JSON for machines; what a terminal would obey is written as JSON's own escapes."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    if not text.replace("\n", "").isprintable():
        text = json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False)
    print(text)


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)
) -> None:
    """Columns of numbers to the right, the others (by number) to the left."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(head):
        # A long name goes on in the next line: none is cut.
        table.add_column(name, justify="left" if index in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console().print(table)


def print_report(report: "Report", *, level: float = 0.95, brief: bool = False) -> None:
    """A report as a table, with its price; briefly, without counts and receipts."""
    from heldout.questions.registry import places

    say = console()
    subject = report.subject
    say.print(one_line(f"{subject.score} on {subject.name}, outcome {subject.label}"), style="bold")
    measures = report.plotted() if brief else report.measures()
    print_measures(measures, level=level)
    say.print(one_line(str(report.headline)) + ".")
    if report.weighing:
        say.print(one_line(f"Weights: {report.weighing}."))
    ties = report.tie_bound(level)
    if ties is not None:
        say.print(ties.sentence())
    for name, reason in report.left_out.items():
        say.print(f"{places()[name].section.title} is left out: {reason}.")
    _print_price(report)
    if not brief:
        print(f"Receipt: {next(iter(report)).receipt.hash}")


def _print_price(report: "Report") -> None:
    from heldout.drawing.words import amount, decimal

    say = console()
    shares = ", ".join(f"{name} {decimal(share)}" for name, share in report.shares.items())
    say.print(
        f"Paid epsilon {decimal(report.epsilon)} ({shares}). Left: {amount(report.remaining)} of "
        f"{amount(report.budget)}."
    )


def print_measures(
    measures: "Mapping[str, Measure]", *, level: float = 0.95, what: str = "measure"
) -> None:
    """Print measures as a table, with both intervals."""
    from heldout.drawing.words import spread, tested

    rows = [[tested(name, each), *spread(each, level)] for name, each in measures.items()]
    print_table((what, "value", f"{level * 100:g}% interval", "noise alone"), rows)


def print_release(release: "Release | Report", remaining: "Loss") -> None:
    """Print any release: its measures, what it says, its price and its receipt."""
    from heldout.questions.report import Report

    if isinstance(release, Report):
        print_report(release)
        return
    print_measures(release.measures)
    sentence = str(release).partition("\n")[0]
    if not sentence.startswith(str(release.headline)):  # which is the first line of the table
        console().print(one_line(f"{sentence.rstrip('.')}."))
    print_paid(release, remaining)


def print_paid(release: "Release", remaining: "Loss") -> None:
    """Print the price, what is left, and the receipt."""
    print(one_line(f"Paid {release.terms}; left: {remaining}."))
    print(f"Receipt: {release.receipt.hash}")


def print_unremembered(ledger: str | None) -> None:
    """Said where nobody keeps count."""
    if ledger is None:
        print("Nothing is remembered: give --ledger FILE to keep count of what is spent.")


def print_expected(rows: int | None, expected: int | None) -> None:
    """Said where the number of rows is private and nobody guessed it."""
    if rows is None and expected is None:
        print(
            "The number of rows is private here. Next time pass --expected-rows N, a public guess, "
            "to plan before you pay."
        )


@contextmanager
def patience(doing: str) -> Iterator[None]:
    """A moving line on a terminal if this takes more than two seconds; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    progress.add_task(one_line(doing))
    begin = threading.Timer(PATIENCE, progress.start)
    begin.daemon = True
    begin.start()
    try:
        yield
    finally:
        begin.cancel()
        begin.join()
        progress.stop()
