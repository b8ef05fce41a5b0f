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
from concurrent.futures import as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from heldout import questions as q
from heldout.audit.log_ratios import losses_of
from heldout.audit.replay_page import TOLERANCE, Replay
from heldout.audit.subjects import ANYTHING
from heldout.audit.tables import (
    ADD_REMOVE,
    ENGINES,
    ENTRANCES,
    LABEL,
    REPLACE_ONE,
    Entrance,
    Neighbourhood,
    Row,
    draw_neighbours,
    open_entrances,
    pairs_needed,
    store_list,
)
from heldout.audit.tape import PathsPart, Tape
from heldout.board import Board, Plan
from heldout.data import Dataset
from heldout.data.description import Description, ScoredRows
from heldout.errors import ArgumentError, DataError, HeldoutError
from heldout.estimators import Search
from heldout.kernel import Budget, Ledger
from heldout.kernel.loss import Loss
from heldout.kernel.neighbours import Neighbours
from heldout.kernel.noise import source
from heldout.pooling.pool import hand_in
from heldout.questions import Question
from heldout.questions.answers import plain
from heldout.questions.session import PrivateSession
from heldout.questions.worst_cases import MADE_UP, SCORES, MadeUpRows
from heldout.workers import Progress, cores, pool

Ask = Callable[[], tuple[object, Loss]]
"""Returns what was released and the loss that was charged."""
OWN: Final = ("receipt", "time", "account", "ledger", "hash", "previous", "sequence", "signature")
"""What two bookings of the same question never share."""
RELATIONS: Final = tuple(str(relation) for relation in Neighbours)
BY_ROW, BY_UNIT = "none", "up to 3 rows"
UNITS: Final = (BY_ROW, BY_UNIT)
MOST: Final = 3
"""Rows of one unit that count, at most; pairs have 1, 2 or 3."""
MIXED: Final = 0.75
"""Of the tables have neighbours with cells in other encodings."""
TRIES: Final = 6
"""Times as many tables that are drawn as pairs are wanted, because some are refused."""
FEWEST_TRIES: Final = 100
"""Tables that are drawn at least: a few in a row may all be refused."""
AROUND: Final = 20
"""Pairs among the tables that are drawn together, which are all asked with the same noise."""
READ: Final = 5
"""Of so many of them one is read in full, with one neighbour, on each engine; of the others all
that may be kept is compared, which is what a release is read off."""


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
    step: float = 0.0
    """The largest loss of a single draw, over what its own mechanism claims."""

    @property
    def ratio(self) -> float:
        """Return realised loss over claim; infinite where the neighbours differ for sure."""
        return float("inf") if self.differences else max(self.step, float(self.loss / self.claim))

    @property
    def holds(self) -> bool:
        return self.ratio <= 1 + TOLERANCE


def record(ask: Ask, forced: Tape | None = None) -> Recording:
    """Ask while a tape runs."""
    tape = Tape(forced=forced)
    with tape.running():
        released, loss = ask()
        shown = show(released)
    claimed = loss.rho if loss.epsilon is None else loss.epsilon
    assert not loss.delta, "an approximate loss has no largest ratio"
    assert claimed is not None
    return Recording(tape, shown, claimed)


def compare_with(first: Recording, ask: Ask) -> Comparison:
    """Ask a neighbour with the noise of what was asked before; what it shows must be the same."""
    return _compare(first, _follow(first, ask))


_Asked = tuple[Question[Any], list[Recording | str]]
"""A question, and what was recorded of each of several tables; the first one drew the noise."""


def _follow(first: Recording | str, ask: Ask) -> Recording | str:
    """Ask another table with the noise of the first; return why, where it goes another way."""
    assert isinstance(first, Recording)
    try:
        return record(ask, forced=first.tape)
    except PathsPart as parted:
        return f"the draws: {parted}"
    except HeldoutError as error:
        return f"the neighbour is refused: {error}"


def _compare(first: Recording | str, second: Recording | str) -> Comparison:
    """Compare two neighbours that were asked with the same noise."""
    for side in (first, second):
        if isinstance(side, str):
            return Comparison(Fraction(1), float("inf"), (side,))
    assert isinstance(first, Recording)
    assert isinstance(second, Recording)
    different = [
        f"{name}: {_part(first.shown.get(name, ''), text)}"
        for name, text in second.shown.items()
        if first.shown.get(name) != text
    ]
    if first.price != second.price:
        different.append(f"the price: {first.price} and {second.price}")
    loss, step = losses_of(first.tape, second.tape)
    return Comparison(first.price, loss, tuple(different), step)


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
    if isinstance(content, dict):
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
        drawn = answered.drawn
        stored = {
            "about": plain(drawn.about),
            "values": plain(drawn.values),
            "questions": [asked.as_dict() for asked in answered.questions],
        }
        shown: dict[str, object] = {
            "stored answer": _Content(stored),
            "booking": _Content({"event": str(entry.event), **entry.content}),
        }
        if reading:
            shown["release"] = answered.releases[0]
            shown["readings"] = _Content(
                {"stored": [release.stored_readings() for release in answered.releases]}
            )
        return shown, answered.receipt.loss

    return ask


# --- tables and their neighbours -----------------------------------------------------------------


class Connections:
    """Connections to DuckDB that are used again: to open one takes longer than to ask it."""

    def __init__(self) -> None:
        import duckdb

        self._connect, self._idle, self._busy = duckdb.connect, [], []  # type: ignore[var-annotated]

    def connect(self, *words: Any, **named: Any) -> object:
        connection = self._idle.pop() if self._idle else self._connect(*words, **named)
        connection.execute("SET threads = 1")  # of a few rows: more take longer
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
                f"The replay has no rows for questions of kind {kind!r}. Declare some in the "
                "kind's family with heldout.questions.worst_cases.declare_rows: without them the "
                "replay does not cover it."
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
    tables: int = 0
    """Tables that were not refused."""
    asked: dict[str, int] = field(default_factory=dict)
    """Pairs of each kind that could be asked of a table: 0 while all neighbours are refused."""

    def leave_out(self, before: Replay) -> None:
        """Leave out the kinds that were replayed before on as many pairs, or were refused."""

        def is_done(kind: str) -> bool:
            place = (kind, self.relation, self.unit, self.entrance.name)
            cell = None if place[:3] in before.stale else before.cells.get(place)
            return cell is not None and (cell.pairs >= self.pairs or not cell.pairs)

        self.questions = [ways for ways in self.questions if not is_done(ways[0].kind)]

    def mark_refused(self, replay: Replay) -> None:
        """Leave an empty cell for each kind that could not be asked of such rows."""
        for ways in self.questions:
            if ways[0].kind not in self.asked and self.tables >= 2 * len(ways):
                replay.cell(ways[0].kind, self.relation, self.unit, self.entrance.name)

    @property
    def missing(self) -> int:
        """Return how many pairs the kind with the fewest needs yet."""
        tries = 2 * max(map(len, self.questions), default=1)
        fewest = [
            self.asked.get(ways[0].kind, 0)
            for ways in self.questions
            if ways[0].kind in self.asked or self.tables < tries
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
            count=min(AROUND, self.missing),
            mixed=random.random() < self.mixed,
            keyed=entrance.keyed or random.random() < 0.3,
            typed=entrance.typed,
            outcome=self.made_up.outcome,
        )
        with connections.lent():
            session = self._open(around, around.tables[0], turn)
            if session is None:
                replay.refused += 1
                return
            self.tables += 1
            reading = turn % READ == 0 and entrance.name in ENGINES
            # Those asked of the most tables first: a booking says what was spent before it.
            chosen = sorted(self._chosen(session, turn), key=lambda one: -one[1])
            asked: list[tuple[Question[Any], list[tuple[int, int]], dict[int, Recording | str]]] = [
                (
                    question,
                    around.pairs[:most],
                    {0: record(_asking(session, question, reading=reading))},
                )
                for question, most in chosen
            ]
        if not asked:
            return
        for question, _, _ in asked:
            self.asked.setdefault(question.kind, 0)
        for place, rows in enumerate(around.tables[1:], 1):
            here = [
                (question, recordings)
                for question, pairs, recordings in asked
                if place <= pairs[-1][1]
            ]
            if not here:
                break
            with connections.lent():
                other = self._open(around, rows, turn)
                replay.refused += other is None
                if other is None:
                    continue
                for question, recordings in here:
                    ask = _asking(other, question, reading=reading and place == 1)
                    recordings[place] = _follow(recordings[0], ask)
        for question, pairs, recordings in asked:
            cell = replay.cell(question.kind, self.relation, self.unit, entrance.name)
            for before, after in pairs:
                if before in recordings and after in recordings:
                    mixed = any(row.forms for at in (before, after) for row in around.tables[at])
                    result = _compare(recordings[before], recordings[after])
                    cell.add(result, str(question.booked()), mixed=mixed)
                    self.asked[question.kind] += 1

    def _open(self, around: Neighbourhood, rows: list[Row], turn: int) -> PrivateSession | None:
        """Return a session; None where the table is refused before anything was asked of it."""
        try:
            table, declared = self.entrance.store(rows, around.columns, self.entrance.place, turn)
            private = self.made_up.open(table, **around.custody, **declared)
        except (DataError, ArgumentError, TypeError, ValueError, ArithmeticError):
            return None
        return PrivateSession(private, budget=ANYTHING)

    def _chosen(self, session: PrivateSession, turn: int) -> Iterator[tuple[Question[Any], int]]:
        """Yield a question per kind that has not enough pairs yet, in turns; and how many now."""
        for ways in self.questions:
            question = ways[turn % len(ways)]
            most = min(self.pairs - self.asked.get(question.kind, 0), -(-self.pairs // len(ways)))
            if most <= 0:
                continue
            try:
                question.check(session.dataset)
                question.request(session.dataset)
            except HeldoutError:  # cannot be asked of such rows, by what is public of them
                continue
            yield question, most


# --- the run -------------------------------------------------------------------------------------


def replay_all(
    *,
    pairs: int = 200,
    minutes: float | None = None,
    kinds: Sequence[str] = (),
    rows: Sequence[str] = (),
    through: Sequence[str] = ENTRANCES,
    relations: Sequence[str] = RELATIONS,
    units: Sequence[str] = UNITS,
    mixed: float = MIXED,
    seed: int | None = None,
    until: float = inf,
    before: Replay | None = None,
) -> Replay:
    """Replay every kind on `pairs` pairs in each cell, or on as many as fit into `minutes`.

    `kinds` are those of questions, `rows` the names of descriptions of rows; left out, all. Of the
    tables, `mixed` have neighbours with cells in other encodings. `until` is a time of the clock.
    What was replayed `before`, on the same sources, is not replayed again.
    """
    random, begun, replay = _generator(seed), time.perf_counter(), Replay()
    processor, until = time.process_time(), min(until, time.time() + 60 * (minutes or inf))
    connections = Connections()
    by_rows = _questions_by_rows(list(kinds) or q.kinds())
    with open_entrances(through) as there, patch("duckdb.connect", connections.connect):
        corners = [
            _Corner(MADE_UP[description], questions, entrance, relation, unit, mixed, pairs)
            for description, questions in by_rows.items()
            if not rows or description.__name__ in rows
            for entrance in there
            for relation in relations
            if relation != LABEL or MADE_UP[description].outcome
            for unit in units
        ]
        for corner in corners:
            corner.leave_out(before or Replay())
        waiting, tries = corners, max(FEWEST_TRIES, TRIES * pairs)
        while waiting and time.time() < until:
            waiting = [corner for corner in corners if corner.missing and corner.turn < tries]
            for corner in waiting:
                corner.replay(replay, random, connections)
        for corner in corners:
            corner.mark_refused(replay)
    replay.seconds = time.perf_counter() - begun
    replay.processor = time.process_time() - processor
    return replay


def _generator(seed: int | None) -> Random:
    """Return a generator of made-up tables; without a seed, from where noise comes from."""
    return Random(source.below(2**64) if seed is None else seed)


def replay_everywhere(
    *,
    pairs: int,
    kinds: Sequence[str] = (),
    through: Sequence[str] = (),
    minutes: float | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    before: Replay | None = None,
    save: Callable[[Replay], None] | None = None,
) -> Replay:
    """As `replay_all`, on all cores; and what is no question of a session, unless limited.

    Every engine has that many pairs; without `through`, other entrances to DuckDB than lists have
    a quarter (`pairs_needed`). Returns the cells of `before` and those that were missing there, or
    that were of other sources. What is done so far is given to `save`, again and again.
    """

    begun, whole = time.perf_counter(), before or Replay()
    _questions_by_rows(list(kinds) or q.kinds())  # refuses names that are none
    known = replace(whole, cells=dict(whole.cells), sources=dict(whole.sources))
    parts = [
        (name, relation, unit)
        for name in ENTRANCES
        if not through or name in through
        for relation in RELATIONS
        for unit in UNITS
    ]
    # Where time is short, every part has its share; what one leaves, the next ones have.
    share, start = 60 * (minutes or inf) / (len(parts) + 1), time.time()
    with pool(workers) as executor:
        futures = [
            executor.submit(
                replay_doors, pairs=pairs, until=start + cores(workers) * share, before=known
            )
            for _ in range(not (kinds or through))
        ] + [
            executor.submit(
                replay_all,
                pairs=pairs if through else pairs_needed(name, pairs),
                kinds=kinds,
                until=start + min(place + cores(workers), len(parts) + 1) * share,
                through=(name,),
                relations=(relation,),
                units=(unit,),
                before=known,
            )
            for place, (name, relation, unit) in enumerate(parts, 1)
        ]
        for done, future in enumerate(as_completed(futures), 1):
            whole.merge(future.result())
            whole.seconds = time.perf_counter() - begun
            if save is not None:
                save(whole)
            if progress is not None:
                progress(f"{len(whole.cells)} cells", done, len(futures))
    return whole


# Releases that are no question of a session, replayed: boards, searches, shares of noise.
HERE: Final = "list"
Labelled = tuple[int, list[float]]
"""A label, and the score that each model gives it."""


# --- boards --------------------------------------------------------------------------------------

BOARD: Final = Plan(rows=100, price=20, improvements=2, submissions=6)


def _replay_boards(replay: Replay, random: Random, connections: Connections) -> None:
    """Submit six models in turn; one person's row changes, and with it all that they say of it.

    Half of the neighbours are the worst for the answers that were given: models that were above
    the bar lose the row, and the others win it.
    """
    quality = sorted(random.random() for _ in range(BOARD.submissions))

    def draw() -> Labelled:
        label = random.randint(0, 1)
        right = [random.random() < chance for chance in quality]
        return label, [float(label if hit else 1 - label) for hit in right]

    rows = [draw() for _ in range(BOARD.rows)]
    first = record(_ask_board(rows))
    for turn in range(AROUND):
        other = list(rows)
        if turn % 2:
            other[random.randrange(len(other))] = random.randint(0, 1), random.choices(SCORES, k=6)
        else:
            _make_worst(other, first, random)
        with connections.lent():
            place = ("board", REPLACE_ONE, BY_ROW, HERE)
            replay.cell(*place).add(compare_with(first, _ask_board(other)), "board")


def _make_worst(rows: list[Labelled], first: Recording, random: Random) -> None:
    """Turn around the row that models above the bar have right and the others wrong."""
    above = [bool(draw.output) for draw in first.tape.draws if draw.kind == "bar"]

    def fits(at: int) -> int:
        label, scores = rows[at]
        right = [(score >= 0.5) == bool(label) for score in scores]
        return sum(a == b for a, b in zip(above, right, strict=False))

    best = max(range(len(rows)), key=lambda at: (fits(at), random.random()))
    label, _ = rows[best]
    turned = [float(1 - label if was else label) for was in above]
    rows[best] = label, turned + [float(label)] * (BOARD.submissions - len(turned))


def _ask_board(rows: Sequence[Labelled]) -> Ask:
    def ask() -> tuple[object, Loss]:
        ledger = Ledger.open(None)
        ledger.register("rows", budget=Budget(epsilon=BOARD.price))
        shown = []
        with TemporaryDirectory() as folder:
            board = Board(
                "replay", plan=BOARD, ledger=ledger, account="rows", state=Path(folder) / "state"
            )
            for place in range(BOARD.submissions):
                table = {"y": [y for y, _ in rows], "p": [scores[place] for _, scores in rows]}
                try:
                    dataset = Dataset(table, label="y", score="p", name="made up")
                    shown.append(str(board.submit(dataset, submission=f"model {place}")))
                except HeldoutError as error:
                    shown.append(str(error))
        return shown, Loss.pure(BOARD.price)

    return ask


# --- searches ------------------------------------------------------------------------------------

Array = npt.NDArray[np.float64]


class _Model:
    """A public model, as scikit-learn has them."""

    classes_ = np.array([0, 1])

    def __init__(self, power: int) -> None:
        self.power = power

    def predict_proba(self, X: Array) -> Array:
        scores = np.clip(np.asarray(X, dtype=float)[:, 0], 0, 1) ** self.power
        return np.stack([1 - scores, scores], axis=1)


METRICS: Final = ("roc_auc", "average_precision", "neg_brier_score", "accuracy")
CANDIDATES: Final = 2


def _replay_searches(replay: Replay, random: Random, connections: Connections) -> None:
    """Try two candidates on three folds, and one more than was declared, which must be refused."""

    def draw() -> tuple[int, float]:
        return random.randint(0, 1), random.choice(SCORES)

    fold = [draw() for _ in range(random.randint(2, 8))]
    alike = random.random() < 0.3  # folds with the very same rows
    rows = [row for row in fold for _ in range(3)] if alike else [draw() for _ in fold * 3]
    metric = random.choice(METRICS)
    first = record(_ask_search(rows, metric))
    for _ in range(AROUND):
        other = list(rows)
        other[random.randrange(len(other))] = draw()
        with connections.lent():
            place = ("search", REPLACE_ONE, BY_ROW, HERE)
            replay.cell(*place).add(compare_with(first, _ask_search(other, metric)), "search")


def _ask_search(rows: list[tuple[int, float]], metric: str) -> Ask:
    public = [(0, 0.1), (1, 0.9)]
    y = np.array([label for label, _ in public + rows])
    X = np.array([[score] for _, score in public + rows])

    def ask() -> tuple[object, Loss]:
        search = Search(epsilon="4", candidates=CANDIDATES, folds=3, public=[0, 1], metric=metric)
        shown: list[str] = []
        for _, test in list(search.split(X, y)):
            for power in range(1, CANDIDATES + 2):
                try:
                    shown.append(repr(search(_Model(power), X[test], y[test])))
                except HeldoutError as error:
                    shown.append(type(error).__name__)
        return shown, search.loss

    return ask


# --- shares of noise -----------------------------------------------------------------------------


class _Sum:
    def __init__(self) -> None:
        self.vectors: list[list[int]] = []

    def submit(self, vector: Sequence[int]) -> None:
        self.vectors.append([int(number) for number in vector])


def _replay_shares(replay: Replay, random: Random, connections: Connections) -> None:
    """Hand to a secure sum whatever kind of answer can be handed in: none under labels."""
    for relation in (REPLACE_ONE, ADD_REMOVE):
        for unit in (BY_ROW, BY_UNIT):
            around = draw_neighbours(
                MADE_UP[ScoredRows].columns,
                random,
                relation=relation,
                rows_per_unit=None if unit == BY_ROW else random.randint(1, MOST),
                count=AROUND,
                mixed=False,
                keyed=False,
            )

            def open_session(rows: list[Row], around: Any = around) -> PrivateSession:
                table, _ = store_list(rows, around.columns, None, 0)
                private = MADE_UP[ScoredRows].open(table, **around.custody)
                return PrivateSession(private, budget=ANYTHING)

            session = open_session(around.tables[0])
            shared: list[_Asked] = []
            for question in (kind.to_replay()[0] for kind in q.registered()):
                with suppress(ArgumentError):  # cannot be handed in
                    shared.append((question, [record(_ask_share(session, question))]))
            for rows in around.tables[1:]:
                with connections.lent():
                    other = open_session(rows)
                    for question, asked in shared:
                        asked.append(_follow(asked[0], _ask_share(other, question)))
            for question, asked in shared:
                cell = replay.cell(f"share-of-{question.kind}", relation, unit, HERE)
                for before, after in around.pairs:
                    cell.add(_compare(asked[before], asked[after]), question.kind)


def _ask_share(session: PrivateSession, question: Question[Any]) -> Ask:
    def ask() -> tuple[object, Loss]:
        into = _Sum()
        receipt = hand_in(session, question, honest=3, into=into)  # type: ignore[arg-type]
        return into.vectors, receipt.loss

    return ask


# --- the run -------------------------------------------------------------------------------------

DOORS: Final[Mapping[Callable[[Replay, Random, Connections], None], str]] = {
    _replay_boards: "board",
    _replay_searches: "search",
    _replay_shares: "share-of-",
}
"""Each replays one table and its neighbours, for kinds that begin like that."""


def replay_doors(
    *,
    pairs: int = 200,
    until: float = inf,
    seed: int | None = None,
    before: Replay | None = None,
) -> Replay:
    """Replay each of them on `pairs` pairs, or on as many as are done at a time of the clock."""
    random, begun, replay = _generator(seed), time.perf_counter(), Replay()
    processor, connections = time.process_time(), Connections()
    known = before or Replay()
    with patch("duckdb.connect", connections.connect):
        for door, kind in DOORS.items():
            here = {
                place: cell
                for place, cell in known.cells.items()
                if place[0].startswith(kind) and place[:3] not in known.stale
            }
            done = min((cell.pairs for cell in here.values()), default=0)
            for _ in range(done, pairs, AROUND):
                if time.time() > until:
                    break
                with connections.lent():
                    door(replay, random, connections)
    replay.seconds = time.perf_counter() - begun
    replay.processor = time.process_time() - processor
    return replay
