"""Every kind of question x relation x unit x entrance, replayed on neighbours, and the page."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import heldout
from heldout import questions as q
from heldout.audit.parallel import cores, pool
from heldout.audit.replay import Asked, Replayed, asked, replayed
from heldout.audit.replay_questions import FAMILIES, Family, examples_of
from heldout.audit.replay_tables import (
    ADD_REMOVE,
    ENTRANCES,
    REPLACE_ONE,
    Entrance,
    Neighbourhood,
    Row,
    entrances,
    neighbours,
)
from heldout.errors import ArgumentError, DataError, HeldoutError
from heldout.kernel.loss import Loss
from heldout.questions import Question
from heldout.questions.session import PrivateSession

__all__ = ["BY_ROW", "BY_UNIT", "Cell", "Replay", "replay_all", "replay_everywhere"]

RELATIONS: Final = (REPLACE_ONE, ADD_REMOVE)
BY_ROW, BY_UNIT = "none", "up to 3 rows"
MOST: Final = 3
"""Rows of one unit that count, at most; pairs have 1, 2 or 3."""
MIXED: Final = 0.5
"""Of the pairs have cells in other encodings, where a storage does not declare the types."""
TRIES: Final = 6
"""Times as many tables that are drawn as pairs are wanted, because some are refused."""
AROUND: Final = 8
"""Neighbours that are drawn of one table."""
READ: Final = 5
"""Of so many tables one is read in full; of the others all that may be kept is compared."""
Place = tuple[str, str, str, str]
"""Kind, relation, unit, entrance."""


@dataclass
class Cell:
    """What was replayed of one kind under one relation, by one unit, through one entrance."""

    pairs: int = 0
    mixed: int = 0
    """Pairs of tables in mixed encodings, of those that were not refused."""
    worst: float = 0.0
    broken: int = 0
    first: str = ""
    """Of what broke: the question, and what differs."""

    def add(self, result: Replayed, words: str, *, mixed: bool = False) -> None:
        self.pairs += 1
        self.mixed += mixed
        self.worst = max(self.worst, result.ratio)
        if not result.holds:
            self.broken += 1
            differs = result.differences[0] if result.differences else f"loss {result.ratio:.3f}"
            self.first = self.first or f"{words}: {differs}"


@dataclass
class Replay:
    """All cells of one run."""

    cells: dict[Place, Cell] = field(default_factory=dict)
    refused: int = 0
    """Pairs of which one table was refused when it was opened: nothing was asked of them."""
    seconds: float = 0.0

    @property
    def bad(self) -> list[str]:
        """The cells where a neighbour could be told apart by more than the claim."""
        return [" x ".join(place) for place, cell in self.cells.items() if cell.broken]

    def cell(self, *place: str) -> Cell:
        kind, relation, unit, entrance = place
        return self.cells.setdefault((kind, relation, unit, entrance), Cell())

    def markdown(self) -> str:
        """The page."""
        pairs = sum(cell.pairs for cell in self.cells.values())
        mixed = sum(cell.mixed for cell in self.cells.values())
        fewest = min((cell.pairs for cell in self.cells.values()), default=0)
        worst = max((cell.worst for cell in self.cells.values()), default=0.0)
        verdict = (
            f"**{len(self.bad)} of {len(self.cells)} cells broken; the largest realised loss is "
            f"{_ratio(worst)} of the claim; {pairs:,} pairs, at least {fewest} a cell, {mixed:,} "
            f"of them in mixed encodings. {self.refused:,} more tables were refused when opened.**"
        )
        lines = [_HEAD.format(version=heldout.__version__, verdict=verdict)]
        lines += _table(self.cells)
        broken = {place: cell for place, cell in self.cells.items() if cell.broken}
        if broken:
            lines += ["", "## What broke", ""]
            lines += [f"- {' x '.join(place)}: `{cell.first}`" for place, cell in broken.items()]
        lines += ["", f"The whole took {self.seconds / 60:.0f} minutes.", ""]
        return "\n".join(lines)


_HEAD = """# The latest replay

Made by `heldout audit --replay`, which `make audit` runs, with version {version}; do not edit.

Every kind of question is asked of a made-up table through the public interface, while every draw of
noise is recorded. Then it is asked of a neighbour with the same outputs forced. Kinds, scales,
shapes, order and number of the draws, and everything that is released, must be equal: a difference
is a leak without a bound and is shown as a ratio of infinity. The loss of all draws together, over
the price, is the *ratio*; more than 1 would be a broken promise. Neighbours differ in one row, or
in one unit of up to 3 counted rows (and up to 5 in the table), with ties, cells at the edges of
bins and missing cells; where the storage does not declare types, one person's cells may have other
encodings (1, 1.0, True, Decimal("1.0"), "1"). In parentheses: pairs. How it is done:
[security](security.md#the-audit).

{verdict}
"""


def _ratio(worst: float) -> str:
    return "∞" if worst == float("inf") else f"{worst:.3f}"


def _table(cells: Mapping[Place, Cell]) -> list[str]:
    """One line for a kind, relation and unit; a column for each entrance."""
    names = [name for name in (*ENTRANCES, "-") if any(place[3] == name for place in cells)]
    head = ["kind", "relation", "unit", *names]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for kind, relation, unit in sorted({place[:3] for place in cells}):
        found = [cells.get((kind, relation, unit, name)) for name in names]
        shown = ["" if cell is None else f"{_ratio(cell.worst)} ({cell.pairs})" for cell in found]
        lines.append("| " + " | ".join([kind, relation, unit, *shown]) + " |")
    return lines


# --- one pair ------------------------------------------------------------------------------------


def _asking(
    session: PrivateSession, question: Question[Any], *, reading: bool
) -> Callable[[], tuple[Any, Loss]]:
    """What is shown of an answer: all that may be kept of it, the booking, and if read the release.

    A release is read off what may be kept, byte for byte; to read it takes longer than to ask.
    """

    def ask() -> tuple[Any, Loss]:
        answered = session.answer(question)
        entry = session._ledger.entries(session._account)[-1]
        booked = _Content({"event": str(entry.event), **entry.content})
        kept = _Content(
            {
                name: content
                for name, content in answered.as_dict().items()
                if name in ("about", "values", "questions")
            }
        )
        shown: dict[str, Any] = {"kept answer": kept, "booking": booked}
        if reading:
            shown["release"] = answered.releases[0]
        return shown, answered.receipt.loss

    return ask


@dataclass(frozen=True)
class _Content:
    """Plain content, to be compared as JSON."""

    content: dict[str, Any]

    def __str__(self) -> str:
        return ""

    def as_dict(self) -> dict[str, Any]:
        return self.content


def _of_families(wanted: Sequence[str]) -> list[tuple[Family, list[list[Question[Any]]]]]:
    """The families of rows, each with examples of the kinds that are asked of it."""
    examples = [examples_of(kind) for kind in wanted]
    found = []
    for family in FAMILIES:
        own = [each for each in examples if family.of in {of.__name__ for of in each[0].of}]
        if own:
            found.append((family, own))
    lost = [each[0].kind for each in examples if not any(each in own for _, own in found)]
    if lost:
        raise ArgumentError(
            f"No rows to ask a question of kind {lost[0]!r}. Add them to FAMILIES in "
            "heldout/audit/replay_questions.py: without them the replay does not see the kind."
        )
    return found


def _opened(
    family: Family, around: Neighbourhood, rows: list[Row], entrance: Entrance, turn: int
) -> PrivateSession | None:
    """A session, or None where the table is refused before anything was asked of it."""
    try:
        table, declared = entrance.hold(rows, around.columns, entrance.place, turn)
        return family.open(table, **around.custody, **declared)
    except (DataError, ArgumentError, TypeError, ValueError, ArithmeticError):
        return None


@dataclass(frozen=True)
class _Corner:
    """Where tables are drawn: rows of a family, through one entrance, under one relation."""

    family: Family
    questions: list[list[Question[Any]]]
    entrance: Entrance
    relation: str
    unit: str
    mixed: float

    def replay(self, replay: Replay, random: Random, turn: int, count: int) -> int:
        """Ask every kind of a table and of its neighbours; how many of them were not refused."""
        entrance = self.entrance
        around = neighbours(
            self.family.columns,
            random,
            relation=self.relation,
            rows_per_unit=None if self.unit == BY_ROW else random.randint(1, MOST),
            count=count,
            mixed=not entrance.typed and random.random() < self.mixed,
            keyed=entrance.keyed or random.random() < 0.3,
        )
        session = _opened(self.family, around, around.rows, entrance, turn)
        if session is None:
            replay.refused += 1
            return 0
        first = list(self._asked(session, turn))
        done = 0
        for rows in around.others:
            other = _opened(self.family, around, rows, entrance, turn)
            replay.refused += other is None
            if other is not None:
                done += 1
                for question, one, reading in first:
                    result = replayed(one, _asking(other, question, reading=reading))
                    mixed = any(row.forms for row in rows)
                    place = (question.kind, self.relation, self.unit, entrance.name)
                    replay.cell(*place).add(result, str(question.booked()), mixed=mixed)
        return done

    def _asked(
        self, session: PrivateSession, turn: int
    ) -> Iterator[tuple[Question[Any], Asked, bool]]:
        for questions in self.questions:
            question = questions[turn % len(questions)]
            try:
                question.request(session.dataset)
            except HeldoutError:  # cannot be asked of such rows, by what is public of them
                continue
            reading = turn % READ == 0
            yield question, asked(_asking(session, question, reading=reading)), reading


# --- the run -------------------------------------------------------------------------------------


def replay_all(
    *,
    pairs: int = 200,
    minutes: float | None = None,
    kinds: Sequence[str] = (),
    through: Sequence[str] = ENTRANCES,
    mixed: float = MIXED,
    seed: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Replay:
    """Replay every kind on `pairs` pairs in each cell, or on as many as fit into `minutes`.

    Of the tables, `mixed` have cells in other encodings.
    """
    from heldout.audit.replay_doors import DOORS, HERE

    random, begun, replay = Random(seed), time.perf_counter(), Replay()
    asked_of = _of_families(list(kinds) or q.kinds())
    with entrances(through) as there:
        corners = [
            _Corner(family, questions, entrance, relation, unit, mixed)
            for family, questions in asked_of
            for entrance in there
            for relation in RELATIONS
            for unit in (BY_ROW, BY_UNIT)
        ]
        done = dict.fromkeys(range(len(corners)), 0)
        turn = 0
        while min(done.values(), default=pairs) < pairs and turn < TRIES * pairs:
            for place, corner in enumerate(corners):
                if done[place] < pairs:
                    count = min(AROUND, pairs - done[place])
                    done[place] += corner.replay(replay, random, turn, count)
            if not kinds and HERE in through and turn * AROUND < pairs:
                for door in DOORS:
                    door(replay, random)
            turn += 1
            if progress is not None:
                progress(f"{len(replay.cells)} cells", min(done.values()), pairs)
            if minutes is not None and time.perf_counter() - begun > 60 * minutes:
                break
    replay.seconds = time.perf_counter() - begun
    return replay


def replay_everywhere(
    *, pairs: int, minutes: float | None = None, workers: int | None = None, progress: Any = None
) -> Replay:
    """As `replay_all`, each entrance in a process of its own, on all cores."""
    begun, whole = time.perf_counter(), Replay()
    share = None if minutes is None else minutes * cores(workers) / len(ENTRANCES)
    with pool(workers) as executor:
        futures = [
            executor.submit(replay_all, pairs=pairs, minutes=share, through=(name,))
            for name in ENTRANCES
        ]
        for done, (name, future) in enumerate(zip(ENTRANCES, futures, strict=True), 1):
            part = future.result()
            whole.cells |= part.cells
            whole.refused += part.refused
            if progress is not None:
                progress(name, done, len(futures))
    whole.seconds = time.perf_counter() - begun
    return whole
