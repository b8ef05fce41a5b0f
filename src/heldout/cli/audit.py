"""`heldout audit` tries to prove the privacy claims wrong; `heldout attack` plays the attacker."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from heldout.cli.output import Flag, Json, patience, print_json, print_table
from heldout.cli.rows import Scored
from heldout.errors import ArgumentError, PrivacyError

PAIRS: Final = 200
FEW_PAIRS: Final = 10
"""Of kinds that are named: a look that takes seconds."""
STEP: Final = 10.0
"""Seconds between two lines on how far it is, where no bar can move."""


def audit(
    *subjects: str,
    epsilon: str | None = None,
    samples: int = 20_000,
    minutes: float | None = None,
    door: Literal["public", "replay"] = "public",
    confidence: float = 0.999,
    workers: int | None = None,
    all_subjects: Annotated[Flag, Parameter(name="--all")] = False,
    list_all: Annotated[Flag, Parameter(name="--list")] = False,
    replay: Flag = False,
    pairs: int | None = None,
    through: Annotated[Sequence[str], Parameter(consume_multiple=True)] = (),
    lattice: int = 100_000,
    draws: int = 150_000,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Try to prove our privacy claims wrong, on made-up data.

    The audit draws answers on the worst pairs of neighbouring data sets that we know. Some answers
    choose an event, and fresh ones test it. They prove, with the given confidence, that epsilon is
    at least the number printed. A number above the claim is a bug, and an error. Examples:

    ```
    heldout audit confusion --samples 2000 --workers 1
    heldout audit half-the-scale --samples 2000 --workers 1 --json
    heldout audit --replay --pairs 200 --out docs/replay.md
    heldout audit mean histogram --replay --pairs 20 --through hive CSV
    heldout audit --list
    ```

    Parameters
    ----------
    subjects
        What to audit, such as auc; --list shows all. With --replay: kinds of questions.
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
        Processes to use instead of one per core.
    all_subjects
        Audit everything: releases, mechanisms, planted violators, samplers.
    list_all
        List what can be audited.
    replay
        Instead of drawing many answers: ask every kind of question, or the named kinds, of
        neighbouring tables with the same noise. Everything but the un-noised numbers must be
        equal, and the loss at most the price.
    pairs
        With --replay: neighbours for each kind, relation, unit and engine; without --through, a
        quarter of them through each other entrance to DuckDB than lists. Left out: 200, or 10 if
        kinds are named.
    through
        With --replay: the entrances to use, such as Parquet hive; left out, all that there are.
    lattice
        With --all: answers for the check of the lattice.
    draws
        With --all: draws for the check of each sampler.
    out
        With --all or --replay: write the page of results to this .md file. A replay goes on from
        the page that is there: it fills in what is missing and what has changed its sources.
    """
    from heldout.audit.auditor import audit as audited
    from heldout.audit.auditor import long_audit
    from heldout.audit.subjects import VIOLATOR, registered

    if list_all:
        rows = [
            (subject.name, subject.kind, subject.missing() or subject.note)
            for subject in registered()
        ]
        if as_json:
            print_json([dict(zip(("name", "kind", "note"), row, strict=True)) for row in rows])
        else:
            print_table(("subject", "kind", ""), rows, left=(0, 1, 2))
        return
    if replay:
        _replay(
            subjects,
            through,
            pairs=(FEW_PAIRS if subjects else PAIRS) if pairs is None else pairs,
            minutes=minutes,
            workers=workers,
            out=out,
            as_json=as_json,
        )
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
            bad = [
                result.subject for result in results if result.violated and result.kind != VIOLATOR
            ]
    if as_json:
        print_json([result.as_dict() for result in results])
    else:
        head = ("subject", "claimed", "at least", "verdict", "worst pair")
        verdicts = ("broken", "caught")
        print_table(
            head,
            [
                (
                    result.subject,
                    str(result.claimed).removeprefix("epsilon "),
                    f"{result.epsilon:.3f} ({result.share:.0%})",
                    verdicts[result.kind == VIOLATOR] if result.violated else "",
                    result.worst.pair,
                )
                for result in results
            ],
            left=(0, 3, 4),
        )
    _refuse(bad)


def _replay(
    kinds: Sequence[str],
    through: Sequence[str],
    *,
    pairs: int,
    minutes: float | None,
    workers: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    from heldout.arguments import OneOf, Whole
    from heldout.audit.replay import replay_everywhere
    from heldout.audit.replay_page import Replay, read_page
    from heldout.audit.tables import ENTRANCES

    for name in through:
        OneOf(ENTRANCES)(name, "through")

    def save(replayed: Replay) -> None:
        if out is not None:
            out.write_text(replayed.markdown(), encoding="utf-8")

    with _bar(not as_json) as progress:
        replayed = replay_everywhere(
            pairs=Whole()(pairs, "pairs"),
            kinds=kinds,
            through=through,
            minutes=minutes,
            workers=workers,
            progress=progress,
            before=read_page("" if out is None or not out.exists() else out.read_text("utf-8")),
            save=save,
        )
    head = ("kind", "relation", "unit", "entrance", "pairs", "worst ratio")
    rows = [
        (*place, str(cell.pairs), f"{cell.worst:.3f}") for place, cell in replayed.cells.items()
    ]
    if as_json:
        print_json([dict(zip(head, row, strict=True)) for row in rows])
    else:
        print_table(head, rows, left=(0, 1, 2, 3))
        if rows and not replayed.bad:
            total = sum(cell.pairs for cell in replayed.cells.values())
            print(f"{total:,} pairs: nothing but un-noised numbers differed, and no loss was above")
            print("its price (a worst ratio of at most 1).")
    _refuse(replayed.bad[:9])


def _refuse(bad: Sequence[str]) -> None:
    if bad:
        raise PrivacyError(
            f"Less private than claimed: {', '.join(bad)}. Report it; see docs/security.md."
        )


@contextmanager
def _bar(wanted: bool) -> Iterator[Callable[[str, int, int], None]]:
    from rich.console import Console

    console = Console(file=sys.stderr)
    if not (wanted and console.is_terminal):
        yield _line_by_line()
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("beginning", total=None)

        def move(name: str, done: int, total: int) -> None:
            bars.update(task, description=name, completed=done, total=total)

        yield move


def _line_by_line() -> Callable[[str, int, int], None]:
    """Return what says on standard error how far it is, now and then."""
    last = time.monotonic()

    def say(name: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= STEP and done < total:
            last = time.monotonic()
            print(f"heldout: {done} of {total} parts done ({name}).", file=sys.stderr, flush=True)

    return say


def attack(
    metric: str,
    table: Path,
    /,
    *,
    decimals: int | None = None,
    epsilon: float = 1.0,
    most: int = 1000,
    rows: Annotated[Scored, Parameter(name="*")],
    as_json: Json = False,
) -> None:
    """Show how exposed a metric is that is published without noise.

    The attacker knows the published number and every row but one. The attack tries the missing row
    at every rank, as a positive and as a negative, and guesses the class that fits the number best.
    It does so for each row. The output is computed without noise: show it to nobody but the
    custodian. Examples:

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
    decimals
        Decimals that are published. Left out: all of them.
    epsilon
        Compare with a release at this price.
    most
        Rows to attack at most.
    """
    from heldout.arguments import OneOf
    from heldout.audit.attacks import ATTACKS, exposure_of, most_success
    from heldout.data import Dataset

    OneOf(ATTACKS)(metric, "metric")
    if not 0 < epsilon < 700:
        raise ArgumentError(f"epsilon must be more than 0 and below 700, got {epsilon:g}.")
    with patience(f"Attacking {table.name}"):
        dataset = Dataset(
            table,
            label=rows.label,
            score=rows.score,
            score_range=rows.score_range,
            score_map=rows.score_map,
            **rows.values,
        )
        exposure = exposure_of(dataset, metric=metric, decimals=decimals, most=most)
    limit = most_success(epsilon)
    if as_json:
        print_json({**exposure.as_dict(), "epsilon": epsilon, "most_success_at_epsilon": limit})
        return
    print(exposure)
    print(
        f"At even odds that is {exposure.balanced:.0%}; a coin has 50%, and nobody can have more "
        f"than {limit:.0%} against a release at epsilon {epsilon:g}."
    )
    print("This was computed from the rows without noise: for the custodian's eyes only.")
