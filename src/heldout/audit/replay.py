"""The same noise on two neighbours: everything but the un-noised numbers must be equal.

A question is asked of a table through the public interface while a tape records every draw. It is
asked of a neighbour with the outputs of those draws forced, so that adaptive steps take the same
path. Kinds, scales, shapes, order and number of the draws, what the ledger booked, and the released
JSON and text must then be equal; and the loss of all draws together must be at most the price.

Where a proof assumes that something is public which is not (the type of a column, the order of
rows), this is the test that finds it. Every kind of question x relation x unit x entrance has a
cell in the table. A kind says itself how it is asked (`Question.replayed`) and a family which rows
answer it (`heldout.questions.worst_cases.declare_rows`); nothing is listed here.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from random import Random
from typing import Any, Final
from unittest.mock import patch

import heldout
from heldout import questions as q
from heldout.audit.log_ratios import loss_of
from heldout.audit.subjects import EVERYTHING
from heldout.audit.tables import (
    ENTRANCES,
    LABEL,
    Entrance,
    Neighbourhood,
    Row,
    draw_neighbours,
    open_entrances,
)
from heldout.audit.tape import PathsPart, Tape
from heldout.data.description import Description
from heldout.errors import ArgumentError, DataError, HeldoutError
from heldout.kernel.loss import Loss
from heldout.kernel.neighbours import Neighbours
from heldout.questions import Question
from heldout.questions.session import PrivateSession
from heldout.questions.worst_cases import MADE_UP, MadeUpRows
from heldout.workers import Progress, cores, pool

Ask = Callable[[], tuple[object, Loss]]
"""Returns what was released and the loss that was charged."""
TOLERANCE: Final = 1e-6
"""Of the claim: ratios of ladders and comparisons are computed in doubles."""
OWN: Final = ("receipt", "time", "account", "ledger", "hash", "previous", "sequence", "signature")
"""What two bookings of the same question never share."""
RELATIONS: Final = tuple(str(relation) for relation in Neighbours)
BY_ROW, BY_UNIT = "none", "up to 3 rows"
MOST: Final = 3
"""Rows of one unit that count, at most; pairs have 1, 2 or 3."""
MIXED: Final = 0.75
"""Of the tables have neighbours with cells in other encodings."""
TRIES: Final = 6
"""Times as many tables that are drawn as pairs are wanted, because some are refused."""
AROUND: Final = 20
"""Neighbours that are drawn of one table, whose answers are recorded once for all of them."""
READ: Final = 5
"""Of so many tables one is read in full, and one neighbour of it; of the others all that may be
kept is compared."""


# --- one pair ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recording:
    """Draws, everything that was shown, and what was charged."""

    tape: Tape
    shown: Mapping[str, str]
    price: Fraction


@dataclass(frozen=True)
class Comparison:
    """A question on two neighbours, with the same noise."""

    claim: Fraction
    loss: Fraction | float
    differences: tuple[str, ...] = ()
    """What should be equal and is not; a word and the beginning of both."""

    @property
    def ratio(self) -> float:
        """Return realised loss over claim; infinite where the neighbours differ for sure."""
        return float("inf") if self.differences else float(self.loss / self.claim)

    @property
    def holds(self) -> bool:
        return self.ratio <= 1 + TOLERANCE


def record(ask: Ask, forced: Tape | None = None) -> Recording:
    """Ask while a tape runs."""
    tape = Tape(forced=forced)
    with tape.running():
        released, loss = ask()
        shown = show(released)
    assert loss.kind == "pure", "only pure losses have a largest ratio"
    assert loss.epsilon is not None
    return Recording(tape, shown, loss.epsilon)


def compare_with(first: Recording, ask: Ask) -> Comparison:
    """Ask a neighbour with the noise of what was asked before; what it shows must be the same."""
    try:
        second = record(ask, forced=first.tape)
    except PathsPart as parted:
        return Comparison(first.price, float("inf"), (f"the draws: {parted}",))
    except HeldoutError as error:
        return Comparison(first.price, float("inf"), (f"the neighbour is refused: {error}",))
    different = [
        f"{name}: {_part(first.shown.get(name, ''), text)}"
        for name, text in second.shown.items()
        if first.shown.get(name) != text
    ]
    if first.price != second.price:
        different.append(f"the price: {first.price} and {second.price}")
    return Comparison(first.price, loss_of(first.tape, second.tape), tuple(different))


def _part(one: str, two: str) -> str:
    """Return where two texts begin to differ."""
    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))
    start = max(at - 30, 0)
    return f"...{one[start : at + 50]!r} and ...{two[start : at + 50]!r}"


def show(released: object) -> dict[str, str]:
    """Return all that a release shows, as text: its JSON, its sentence, what is beside it."""
    if isinstance(released, Mapping):
        return {
            f"{name} {part}".strip(): text
            for name, inner in released.items()
            for part, text in show(inner).items()
        }
    shown = {"text": str(released)}
    if hasattr(released, "as_dict"):
        shown["JSON"] = json.dumps(_without_own(released.as_dict()), sort_keys=True, default=str)
    return shown


def _without_own(content: object) -> object:
    if isinstance(content, Mapping):
        return {name: _without_own(inner) for name, inner in content.items() if name not in OWN}
    if isinstance(content, list | tuple):
        return [_without_own(inner) for inner in content]
    return content


@dataclass(frozen=True)
class _Content:
    """Plain content, to be compared as JSON."""

    content: dict[str, Any]

    def __str__(self) -> str:
        return ""

    def as_dict(self) -> dict[str, Any]:
        return self.content


def _asking(session: PrivateSession, question: Question[Any], *, reading: bool) -> Ask:
    """Return a way to ask that shows all that may be kept of an answer, and the booking.

    A release is read off what may be kept, byte for byte; to read it takes longer than to ask.
    """

    def ask() -> tuple[object, Loss]:
        answered = session.answer(question)
        entry = session._ledger.entries(session._account)[-1]
        stored = answered.as_dict()
        shown: dict[str, object] = {
            "stored answer": _Content(
                {part: stored[part] for part in ("about", "values", "questions")}
            ),
            "booking": _Content({"event": str(entry.event), **entry.content}),
        }
        if reading:
            shown["release"] = answered.releases[0]
        return shown, answered.receipt.loss

    return ask


# --- the table -----------------------------------------------------------------------------------

Place = tuple[str, str, str, str]
"""Kind, relation, unit, entrance."""


@dataclass
class Cell:
    """Counts replays of one kind under one relation, by one unit, through one entrance."""

    pairs: int = 0
    mixed: int = 0
    """Pairs of tables in mixed encodings, of those that were not refused."""
    worst: float = 0.0
    broken: int = 0
    first: str = ""
    """Of what broke: the question, and what differs."""

    def add(self, result: Comparison, words: str, *, mixed: bool = False) -> None:
        self.pairs += 1
        self.mixed += mixed
        self.worst = max(self.worst, result.ratio)
        if not result.holds:
            self.broken += 1
            differs = result.differences[0] if result.differences else f"loss {result.ratio:.3f}"
            self.first = self.first or f"{words}: {differs}"

    def merge(self, other: "Cell") -> None:
        """Add the pairs that another process replayed."""
        self.pairs += other.pairs
        self.mixed += other.mixed
        self.worst = max(self.worst, other.worst)
        self.broken += other.broken
        self.first = self.first or other.first


@dataclass
class Replay:
    """All cells of one run."""

    cells: dict[Place, Cell] = field(default_factory=dict)
    limited_to: tuple[str, ...] = ()
    """Kinds or entrances that were named; none of them: all."""
    refused: int = 0
    """Tables that were refused when they were opened: nothing was asked of them."""
    seconds: float = 0.0
    processor: float = 0.0

    @property
    def bad(self) -> list[str]:
        """Return the cells where a neighbour could be told apart by more than the claim."""
        return [" x ".join(place) for place, cell in self.cells.items() if cell.broken]

    def cell(self, *place: str) -> Cell:
        kind, relation, unit, entrance = place
        return self.cells.setdefault((kind, relation, unit, entrance), Cell())

    def merge(self, other: "Replay") -> None:
        for place, cell in other.cells.items():
            self.cell(*place).merge(cell)
        self.refused += other.refused
        self.processor += other.processor

    def markdown(self, before: str = "") -> str:
        """Return the page; a run that was limited keeps the other cells of the one before."""
        cells = {**(_read_cells(before) if self.limited_to else {}), **self.cells}
        worst = max((cell.worst for cell in cells.values()), default=0.0)
        pairs, mixed = (
            sum(getattr(cell, name) for cell in self.cells.values()) for name in ("pairs", "mixed")
        )
        broken = {place: cell for place, cell in cells.items() if not cell.worst <= 1 + TOLERANCE}
        verdict = (
            f"**{len(broken)} of {len(cells)} cells broken; the largest realised loss is "
            f"{_ratio(worst)} of the claim; {sum(cell.pairs for cell in cells.values()):,} pairs, "
            f"{_fewest(cells)}.** "
        )
        if self.limited_to:
            verdict += (
                f"The last run, of {', '.join(self.limited_to)}, had {len(self.cells)} cells and "
                f"{pairs:,} pairs; the other cells are those of runs before. "
            )
        verdict += (
            f"{mixed:,} of {pairs:,} pairs were in mixed encodings; {self.refused:,} more tables "
            "were refused when opened."
        )
        lines = [_HEAD.format(version=heldout.__version__, verdict=verdict), *_table(cells)]
        if broken:
            lines += ["", "## What broke", ""]
            lines += [f"- {' x '.join(place)}: `{cell.first}`" for place, cell in broken.items()]
        took = f"{self.seconds / 60:.0f} minutes, {self.processor / 60:.0f} of processor time"
        lines += ["", f"The {'last run' if self.limited_to else 'whole'} took {took}.", ""]
        return "\n".join(lines)


def _fewest(cells: Mapping[Place, Cell]) -> str:
    """Return how many pairs a cell has at least; through a slow entrance there are fewer.

    >>> _fewest({("a", "", "", "list"): Cell(pairs=200), ("a", "", "", "Spark"): Cell(pairs=2)})
    'at least 200 per cell, 2 through Spark'
    """
    slow = {name for *_, name in cells if name == ENTRANCES[-1]}
    usual = min((cell.pairs for place, cell in cells.items() if place[3] not in slow), default=0)
    return ", ".join(
        [f"at least {usual} per cell"]
        + [
            f"{min(cell.pairs for place, cell in cells.items() if place[3] == name)} through {name}"
            for name in slow
        ]
    )


def _read_cells(page: str) -> dict[Place, Cell]:
    """Return the cells of a page."""
    lines = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("|")]
    table = [[text.strip() for text in line] for line in lines]
    cells = {}
    for kind, relation, unit, *texts in table[2:]:
        for entrance, text in zip(table[0][3:], texts, strict=True):
            if text:
                worst, pairs = text.rstrip(")").split(" (")
                ratio = inf if worst == _ratio(inf) else float(worst)
                cells[kind, relation, unit, entrance] = Cell(int(pairs), worst=ratio)
    return cells


_HEAD = """# The latest replay

Made by `heldout audit --replay`, which `make audit` runs, with version {version}; do not edit.

Every kind of question is asked of a made-up table through the public interface, while every draw of
noise is recorded. Then it is asked of a neighbour with the same outputs forced. Kinds, scales,
shapes, order and number of the draws, and everything that is released, must be equal: a difference
is a leak without a bound and is shown as a ratio of infinity. The loss of all draws together, over
the price, is the *ratio*; more than 1 would be a broken promise. Neighbours differ in one row, or
in one unit of up to 3 counted rows (and up to 5 in the table); under the relation `label` in the
outcomes of these alone. There are ties, cells at the edges of
bins and missing cells; where the storage does not declare types, one person's cells may have other
encodings (1, 1.0, True, Decimal("1.0"), "1"). In parentheses: pairs. How it is done:
[security](security.md#the-audit).

{verdict}
"""


def _ratio(worst: float) -> str:
    return "∞" if worst == float("inf") else f"{worst:.3f}"


def _table(cells: Mapping[Place, Cell]) -> list[str]:
    """Return a line per kind, relation and unit, with a column per entrance."""
    names = [name for name in ENTRANCES if any(place[3] == name for place in cells)]
    head = ["kind", "relation", "unit", *names]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for kind, relation, unit in sorted({place[:3] for place in cells}):
        several = [cells.get((kind, relation, unit, name)) for name in names]
        shown = ["" if cell is None else f"{_ratio(cell.worst)} ({cell.pairs})" for cell in several]
        lines.append("| " + " | ".join([kind, relation, unit, *shown]) + " |")
    return lines


# --- tables and their neighbours -----------------------------------------------------------------


class Connections:
    """Connections to DuckDB that are used again: to open one takes longer than to ask it."""

    def __init__(self) -> None:
        import duckdb

        self._connect, self._idle, self._busy = duckdb.connect, [], []  # type: ignore[var-annotated]

    def connect(self, *words: Any, **named: Any) -> object:
        connection = self._idle.pop() if self._idle else self._connect(*words, **named)
        self._busy.append(connection)
        return connection

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Take back, at the end, what was connected in between."""
        before = len(self._busy)
        try:
            yield
        finally:
            for connection in self._busy[before:]:
                connection.execute("DROP TABLE IF EXISTS heldout_rows")
                self._idle.append(connection)
            del self._busy[before:]


def _questions_by_rows(
    kinds: Sequence[str],
) -> dict[type[Description], list[tuple[Question[Any], ...]]]:
    """Return for each kind of rows the questions that are asked of them, by their kind."""
    by_rows: dict[type[Description], list[tuple[Question[Any], ...]]] = {}
    for kind in kinds:
        question = q.find(kind)
        rows = [description for description in question.of if description in MADE_UP]
        if not rows:
            raise ArgumentError(
                f"No rows to ask a question of kind {kind!r}. Declare some in its family with "
                "heldout.questions.worst_cases.declare_rows: without them the replay does not see "
                "the kind."
            )
        for description in rows:
            by_rows.setdefault(description, []).append(question.to_replay())
    return by_rows


@dataclass
class _Corner:
    """Where tables are drawn: rows of a kind, through one entrance, under one relation."""

    made_up: MadeUpRows
    questions: list[tuple[Question[Any], ...]]
    entrance: Entrance
    relation: str
    unit: str
    mixed: float
    pairs: int
    turn: int = 0
    asked: dict[str, int] = field(default_factory=dict)
    """Pairs of each kind."""

    @property
    def most_ways(self) -> int:
        """Return in how many ways a kind is asked: a table takes one of them."""
        return max(map(len, self.questions))

    @property
    def missing(self) -> int:
        """Return how many pairs the kind with the fewest needs yet."""
        tries = 2 * self.most_ways
        fewest = [
            self.asked.get(ways[0].kind, 0)
            for ways in self.questions
            if ways[0].kind in self.asked or self.turn < tries
        ]
        return max(0, self.pairs - min(fewest, default=self.pairs))

    def replay(self, replay: Replay, random: Random, connections: Connections) -> None:
        """Ask every kind of a table and of its neighbours."""
        entrance, turn = self.entrance, self.turn
        self.turn += 1
        around = draw_neighbours(
            self.made_up.columns,
            random,
            relation=self.relation,
            rows_per_unit=None if self.unit == BY_ROW else random.randint(1, MOST),
            count=min(AROUND, self.missing, max(1, self.pairs // self.most_ways)),
            mixed=random.random() < self.mixed,
            keyed=entrance.keyed or random.random() < 0.3,
            typed=entrance.typed,
            outcome=self.made_up.outcome,
        )
        with connections.lent():
            session = self._open(around, around.rows, turn)
            if session is None:
                replay.refused += 1
                return
            first = [
                (question, record(_asking(session, question, reading=turn % READ == 0)))
                for question in self._chosen(session, turn)
            ]
            if not first:
                return
            for place, rows in enumerate(around.others):
                with connections.lent():
                    other = self._open(around, rows, turn)
                    replay.refused += other is None
                    if other is None:
                        continue
                    reading = turn % READ == 0 and place == 0
                    mixed = any(row.forms for row in rows)
                    for question, recording in first:
                        result = compare_with(recording, _asking(other, question, reading=reading))
                        cell = (question.kind, self.relation, self.unit, entrance.name)
                        replay.cell(*cell).add(result, str(question.booked()), mixed=mixed)
                        self.asked[question.kind] = self.asked.get(question.kind, 0) + 1

    def _open(self, around: Neighbourhood, rows: list[Row], turn: int) -> PrivateSession | None:
        """Return a session; None where the table is refused before anything was asked of it."""
        try:
            table, declared = self.entrance.store(rows, around.columns, self.entrance.place, turn)
            private = self.made_up.open(table, **around.custody, **declared)
        except (DataError, ArgumentError, TypeError, ValueError, ArithmeticError):
            return None
        return PrivateSession(private, budget=EVERYTHING)

    def _chosen(self, session: PrivateSession, turn: int) -> Iterator[Question[Any]]:
        """Yield a question per kind that has not enough pairs yet, in turns."""
        for ways in self.questions:
            question = ways[turn % len(ways)]
            if self.asked.get(question.kind, 0) >= self.pairs:
                continue
            try:
                question.check(session.dataset)
                question.request(session.dataset)
            except HeldoutError:  # cannot be asked of such rows, by what is public of them
                continue
            yield question


# --- the run -------------------------------------------------------------------------------------


def replay_all(
    *,
    pairs: int = 200,
    minutes: float | None = None,
    kinds: Sequence[str] = (),
    rows: Sequence[str] = (),
    through: Sequence[str] = ENTRANCES,
    mixed: float = MIXED,
    seed: int | None = None,
    until: float = inf,
) -> Replay:
    """Replay every kind on `pairs` pairs in each cell, or on as many as fit into `minutes`.

    `kinds` are those of questions, `rows` the names of descriptions of rows; left out, all. Of the
    tables, `mixed` have neighbours with cells in other encodings. `until` is a time of the clock.
    """
    random, begun, replay = Random(seed), time.perf_counter(), Replay()
    processor, until = time.process_time(), min(until, time.time() + 60 * (minutes or inf))
    connections = Connections()
    by_rows = _questions_by_rows(list(kinds) or q.kinds())
    with open_entrances(through) as there, patch("duckdb.connect", connections.connect):
        waiting = [
            _Corner(
                MADE_UP[description],
                questions,
                entrance,
                relation,
                unit,
                mixed,
                max(1, pairs // entrance.slow),
            )
            for description, questions in by_rows.items()
            if not rows or description.__name__ in rows
            for entrance in there
            for relation in RELATIONS
            if relation != LABEL or MADE_UP[description].outcome
            for unit in (BY_ROW, BY_UNIT)
        ]
        while waiting and time.time() < until:
            for corner in waiting:
                corner.replay(replay, random, connections)
            waiting = [
                corner for corner in waiting if corner.missing and corner.turn < TRIES * pairs
            ]
    replay.seconds = time.perf_counter() - begun
    replay.processor = time.process_time() - processor
    return replay


def replay_everywhere(
    *,
    pairs: int,
    kinds: Sequence[str] = (),
    through: Sequence[str] = (),
    minutes: float | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Replay:
    """As `replay_all`, on all cores; and what is no question of a session, unless limited."""
    from heldout.audit.replay_doors import replay_doors

    begun, whole = time.perf_counter(), Replay(limited_to=(*kinds, *through))
    by_rows = _questions_by_rows(list(kinds) or q.kinds())
    rows = [description.__name__ for description in by_rows]
    # A cluster takes its time to start: once for all rows.
    wanted = [name for name in ENTRANCES if not through or name in through]
    parts = [
        (name, own)
        for name in wanted
        for own in ([()] if name == ENTRANCES[-1] else [(name_of_rows,) for name_of_rows in rows])
    ]
    # Where time is short, every part has its share; what one leaves, the next ones have.
    share, start = 60 * (minutes or inf) / (len(parts) + 1), time.time()
    with pool(workers) as executor:
        futures = [
            executor.submit(replay_doors, pairs=pairs, until=start + cores(workers) * share)
            for _ in range(not whole.limited_to)
        ] + [
            executor.submit(
                replay_all,
                pairs=pairs,
                kinds=kinds,
                until=start + min(place + cores(workers), len(parts) + 1) * share,
                through=(name,),
                rows=own,
            )
            for place, (name, own) in enumerate(parts, 1)
        ]
        for done, future in enumerate(futures, 1):
            whole.merge(future.result())
            if progress is not None:
                progress(f"{len(whole.cells)} cells", done, len(futures))
    whole.seconds = time.perf_counter() - begun
    return whole
