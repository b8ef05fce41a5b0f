"""`heldout reproduce`: the papers' tables and figures, made again."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from heldout_papers.registry import Entry, Reproduction

_SHOWN_ROWS = 12


def reproduce(
    paper: str | None = None,
    *,
    figure: Annotated[list[str] | None, Parameter(negative=())] = None,
    table: Annotated[list[str] | None, Parameter(negative=())] = None,
    data: Path | None = None,
    repetitions: int | None = None,
    workers: int | None = None,
    out: Path = Path("reproduced"),
    everything: Annotated[bool, Parameter(name="--all", show_default=False)] = False,
    quick: Annotated[bool, Parameter(show_default=False)] = False,
    full: Annotated[bool, Parameter(show_default=False)] = False,
    list_all: Annotated[bool, Parameter(name="--list", show_default=False)] = False,
    as_json: Annotated[bool, Parameter(name="--json", show_default=False)] = False,
) -> None:
    """Make tables and figures of the papers again, each as a picture (SVG) and a table (CSV).

    Simulations run on all cores with the paper's own number of repetitions; use fewer for a
    quick look. Figures of one study (boyd-2014 4.7, 4.8, 4.9) are cheapest in one command.
    Examples:

    ```
    heldout reproduce --list
    heldout reproduce boyd-2014 --figure 3.1
    heldout reproduce boyd-2014 --figure 4.5 --repetitions 200 --out figures
    heldout reproduce --all --quick --data public-data --out figures
    ```

    Parameters
    ----------
    paper
        Which paper, such as boyd-2014.
    figure
        Number of a figure; give it several times for several.
    table
        Number of a table; give it several times for several.
    data
        Folder with the public data sets, for those that need one.
    repetitions
        Repetitions of each simulation instead of the paper's number.
    workers
        Processes to use instead of one a core.
    out
        Folder for the files.
    everything
        Make everything whose data are there, and one page of it, index.html, with the papers'
        numbers beside ours and a verdict a line. What the folder holds already is not made again.
    quick
        With --all: few repetitions, so that it takes minutes.
    full
        With --all: the papers' own repetitions, which takes hours and can be resumed.
    list_all
        List everything that can be made.
    as_json
        Print JSON and nothing else.
    """
    from heldout_papers.registry import Context, discover, find

    if list_all:
        _print_list(discover(), as_json)
        return
    if everything:
        if quick == full:
            raise ArgumentError("Pass either --quick or --full with --all.")
        _positive("workers", workers)
        _make_folder(out)
        _make_all(data, workers, out, quick=quick, as_json=as_json)
        return
    asked = [("figure", n) for n in _numbers(figure)] + [("table", n) for n in _numbers(table)]
    if paper is None or not asked:
        raise ArgumentError(
            "paper and --figure or --table must be given, got nothing to make. Try --list."
        )
    _positive("repetitions", repetitions)
    _positive("workers", workers)
    entries = [find(paper=paper, kind=kind, number=number) for kind, number in asked]
    _make_folder(out)
    made = []
    with _bar(not as_json) as progress:
        context = Context(data=data, repetitions=repetitions, progress=progress)
        context = context if workers is None else replace(context, workers=workers)
        for entry in entries:
            result = entry.run(context)
            made.append((entry, result, _save(entry, result, out)))
    if as_json:
        answer = [
            {
                "paper": entry.paper,
                entry.kind: entry.number,
                "title": result.title,
                "files": [str(path) for path in files],
                "notes": list(result.notes),
                "claims": [claim.as_dict() for claim in result.claims],
                "table": [dict(row) for row in result.table],
            }
            for entry, result, files in made
        ]
        print(json.dumps(answer, indent=2))
        return
    for _, result, files in made:
        _print_result(result, files)


def _make_all(
    data: Path | None, workers: int | None, out: Path, *, quick: bool, as_json: bool
) -> None:
    from heldout_papers.page import kept, remember, write_page
    from heldout_papers.registry import Context, discover

    found: list[dict[str, Any]] = []
    left_out: list[tuple[Entry, str]] = []
    shared: dict[str, Any] = {}
    with _bar(not as_json) as progress:
        entries = discover()
        for done, entry in enumerate(entries):
            progress("all", done, len(entries))
            missing = entry.missing(data)
            if missing:
                left_out.append((entry, f"needs {', '.join(missing)}"))
                continue
            times = entry.quick if quick else None
            known = kept(entry, out, times)
            if known is None:
                half = out / "unfinished" / entry.name
                context = Context(
                    data=data, repetitions=times, quick=quick, progress=progress, shared=shared,
                    done=half,
                )  # fmt: skip
                context = context if workers is None else replace(context, workers=workers)
                start = time.monotonic()
                result = entry.run(context)
                seconds = time.monotonic() - start
                known = remember(
                    entry, result, _save(entry, result, out),
                    repetitions=times, seconds=seconds, out=out,
                )  # fmt: skip
                shutil.rmtree(half, ignore_errors=True)
            found.append(known)
        shutil.rmtree(out / "unfinished", ignore_errors=True)
        progress("all", len(entries), len(entries))
    page = write_page(found, left_out, quick=quick, out=out)
    if as_json:
        print(json.dumps({"page": str(page), "made": found}, indent=2))
        return
    for each in found:
        for claim in each["claims"]:
            place = f"{each['paper']} {each['kind']} {each['number']}"
            print(f"{claim['verdict']:<10} {place}: {claim['text']}")
    print(page)


def _numbers(given: list[str] | None) -> list[str]:
    return [part for item in given or [] for part in item.split(",") if part]


def _positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise ArgumentError(f"{name} must be at least 1, got {value}. Leave it out for all.")


def _make_folder(out: Path) -> None:
    """Before hours of simulation, not after."""
    import os

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"out must be a folder, got {out} ({error.strerror}).") from None
    if not os.access(out, os.W_OK):
        raise ArgumentError(f"out must be a folder that can be written, got {out}.")


def _save(entry: Entry, result: Reproduction, out: Path) -> list[Path]:
    from heldout_papers.altair_svg import to_svg

    files = []
    for k, chart in enumerate(result.charts):
        suffix = "" if len(result.charts) == 1 else f"-{k + 1}"
        path = out / f"{entry.name}{suffix}.svg"
        svg = to_svg(chart, title=result.title, description=result.description)
        path.write_text(svg, encoding="utf-8")
        files.append(path)
    path = out / f"{entry.name}.csv"
    _write_csv(path, result.table)
    return [*files, path]


def _write_csv(path: Path, table: Sequence[Mapping[str, Any]]) -> None:
    import csv

    columns = list(dict.fromkeys(name for row in table for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def _print_list(entries: Sequence[Entry], as_json: bool) -> None:
    if as_json:
        answer = [
            {"paper": e.paper, "kind": e.kind, "number": e.number, "title": e.title}
            | ({"needs_data": list(e.needs_data)} if e.needs_data else {})
            for e in entries
        ]
        print(json.dumps(answer, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    shown = Table("paper", "", "title", "data", box=None, pad_edge=False)
    for e in entries:
        shown.add_row(e.paper, f"{e.kind} {e.number}", e.title, ", ".join(e.needs_data))
    Console().print(shown)


def _print_result(result: Reproduction, files: Sequence[Path]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"\n[bold]{result.title}[/bold]")
    rows = result.table
    if rows:
        step = max(1, -(-len(rows) // _SHOWN_ROWS))
        # A column that never changes says nothing in a narrow terminal; the CSV has it.
        columns = [n for n in rows[0] if len(rows) == 1 or len({r.get(n) for r in rows}) > 1]
        shown = Table(*columns, box=None, pad_edge=False)
        for row in rows[::step]:
            shown.add_row(*(_cell(row.get(name, "")) for name in columns))
        console.print(shown)
        if step > 1:
            console.print(f"(1 in {step} of {len(rows)} rows; all are in the CSV)")
    for claim in result.claims:
        console.print(
            f"[bold]{claim.verdict}[/bold]: {claim.text}: printed {claim.printed}; here "
            f"{claim.here}.",
            highlight=False,
        )
    for note in result.notes:
        console.print(f"- {note}", highlight=False)
    for path in files:
        console.print(str(path), style="dim", highlight=False, soft_wrap=True)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextmanager
def _bar(wanted: bool) -> Iterator[Callable[[str, int, int], None]]:
    from rich.console import Console

    console = Console(file=sys.stderr)
    if not wanted:
        yield lambda _label, _done, _total: None
        return
    if not console.is_terminal:
        yield _in_lines()
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bars:
        tasks: dict[str, Any] = {}

        def move(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = bars.add_task(label, total=total)
            bars.update(tasks[label], completed=done, total=total)

        yield move


def _in_lines(every: float = 20.0) -> Callable[[str, int, int], None]:
    """For a log file: a line when something begins or ends, and now and then between."""
    last = 0.0

    def move(label: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done in (0, total) or now - last >= every:
            last = now
            print(f"{time.strftime('%H:%M:%S')} {label}: {done} of {total}", file=sys.stderr)

    return move
