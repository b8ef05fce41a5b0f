"""`heldout audit`: tries to prove the privacy claims wrong."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from heldout.cli.values import Json


def audit(
    *subjects: str,
    epsilon: str | None = None,
    samples: int = 20_000,
    minutes: float | None = None,
    door: Literal["public", "replay"] = "public",
    confidence: float = 0.999,
    workers: int | None = None,
    all_subjects: Annotated[bool, Parameter(name="--all", negative=())] = False,
    list_all: Annotated[bool, Parameter(name="--list", negative=())] = False,
    replay: Annotated[bool, Parameter(name="--replay", negative=())] = False,
    pairs: int = 200,
    lattice: int = 100_000,
    draws: int = 150_000,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Try to prove our privacy claims wrong, on made-up data.

    Answers are drawn on neighbouring data sets that are the worst we know. Some of them choose an
    event, fresh ones through the public door test it: epsilon is at least what is printed, with
    the given confidence. More than claimed is a bug, and an error. Examples:

    ```
    heldout audit confusion --samples 2000 --workers 1
    heldout audit half-the-scale --samples 2000 --workers 1 --json
    heldout audit --replay --pairs 200 --out docs/replay.md
    heldout audit --list
    ```

    Parameters
    ----------
    subjects
        What to audit, such as auc; --list shows all.
    epsilon
        The price to audit at. Left out: where a subject shows most, mostly 1.
    samples
        Answers that test, on each neighbour of the worst pair.
    minutes
        With --all and --replay: how long it may take; what is slow then gets fewer answers than
        --samples, or fewer pairs than --pairs.
    door
        public: each of them is booked, read and drawn anew. replay: only drawn anew, which is
        faster.
    confidence
        Of all that is printed together.
    workers
        Processes to use instead of one a core.
    all_subjects
        Audit everything: releases, mechanisms, planted violators, samplers.
    list_all
        List what can be audited.
    replay
        Instead of drawing many answers: ask every kind of question of neighbouring tables with
        the same noise. Everything but the un-noised numbers must be equal, and the loss at most
        the price.
    pairs
        With --replay: neighbours for each kind, relation, unit and entrance.
    lattice
        With --all: answers for the check of the lattice.
    draws
        With --all: draws for the check of each sampler.
    out
        With --all or --replay: write the page of results to this .md file.
    """
    from heldout.audit.auditor import audit as audited
    from heldout.audit.long import long_audit
    from heldout.audit.subjects import VIOLATOR, registered
    from heldout.cli.output import print_json, print_table
    from heldout.errors import ArgumentError, PrivacyError

    if list_all:
        rows = [(each.name, each.kind, each.missing() or each.note) for each in registered()]
        if as_json:
            print_json([dict(zip(("name", "kind", "note"), row, strict=True)) for row in rows])
        else:
            print_table(("subject", "kind", ""), rows, left=(0, 1, 2))
        return
    if replay:
        _replay(pairs=pairs, minutes=minutes, workers=workers, out=out, as_json=as_json)
        return
    if not subjects and not all_subjects:
        raise ArgumentError("Name a subject. --list shows them, --all audits each.")
    with _bar(not as_json) as progress:
        if all_subjects:
            page = long_audit(
                samples=samples,
                minutes=minutes,
                door=door,
                confidence=confidence,
                workers=workers,
                lattice=lattice,
                draws=draws,
                progress=progress,
            )
            if out is not None:
                out.write_text(page.markdown(), encoding="utf-8")
            results, bad = page.results, page.bad
        else:
            error = (1 - confidence) / len(subjects)
            results = [
                audited(
                    name,
                    epsilon=epsilon,
                    samples=samples,
                    door=door,
                    confidence=1 - error,
                    workers=workers,
                    progress=progress,
                )
                for name in subjects
            ]
            bad = [e.subject for e in results if e.violated and e.kind != VIOLATOR]
    if as_json:
        print_json([each.as_dict() for each in results])
    else:
        head = ("subject", "claimed", "at least", "", "worst pair")
        print_table(
            head,
            [
                (
                    each.subject,
                    str(each.claimed).removeprefix("epsilon "),
                    f"{each.epsilon:.3f} ({each.share:.0%})",
                    "not so" if each.violated else "",
                    each.worst.pair,
                )
                for each in results
            ],
            left=(0, 3, 4),
        )
    if bad:
        raise PrivacyError(
            f"Less private than claimed: {', '.join(bad)}. Report it; see docs/security.md."
        )


def _replay(
    *, pairs: int, minutes: float | None, workers: int | None, out: Path | None, as_json: bool
) -> None:
    from heldout.arguments.rules import Whole
    from heldout.audit.replay import replay_everywhere
    from heldout.cli.output import print_json, print_table
    from heldout.errors import PrivacyError

    with _bar(not as_json) as progress:
        found = replay_everywhere(
            pairs=Whole()(pairs, "pairs"), minutes=minutes, workers=workers, progress=progress
        )
    if out is not None:
        out.write_text(found.markdown(), encoding="utf-8")
    head = ("kind", "relation", "unit", "entrance", "pairs", "worst ratio")
    rows = [(*place, str(cell.pairs), f"{cell.worst:.3f}") for place, cell in found.cells.items()]
    if as_json:
        print_json([dict(zip(head, row, strict=True)) for row in rows])
    else:
        print_table(head, rows, left=(0, 1, 2, 3))
    if found.bad:
        raise PrivacyError(
            f"Less private than claimed: {', '.join(found.bad[:9])}. Report it; see "
            "docs/security.md."
        )


@contextmanager
def _bar(wanted: bool) -> Iterator[Callable[[str, int, int], None]]:
    import sys

    from rich.console import Console

    console = Console(file=sys.stderr)
    if not (wanted and console.is_terminal):
        yield lambda _name, _done, _total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("", total=1)

        def move(name: str, done: int, total: int) -> None:
            bars.update(task, description=name, completed=done, total=total)

        yield move
