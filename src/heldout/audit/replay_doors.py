"""Releases that are no question of a session, replayed: boards, searches, shares of noise."""

import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from heldout import questions as q
from heldout.audit.replay import (
    AROUND,
    BY_ROW,
    BY_UNIT,
    MOST,
    RELATIONS,
    Ask,
    Connections,
    Recording,
    compare_with,
    record,
)
from heldout.audit.replay_page import Replay
from heldout.audit.subjects import EVERYTHING
from heldout.audit.tables import REPLACE_ONE, Row, draw_neighbours, store_list
from heldout.board import Board, Plan
from heldout.data import Dataset
from heldout.data.description import ScoredRows
from heldout.errors import ArgumentError, HeldoutError
from heldout.estimators import Search
from heldout.kernel import Budget, Ledger
from heldout.kernel.loss import Loss
from heldout.pooling.shares import hand_in
from heldout.questions import Question
from heldout.questions.session import PrivateSession
from heldout.questions.worst_cases import MADE_UP, SCORES

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
    """Hand to a secure sum whatever kind of answer can be handed in."""
    for relation in RELATIONS:
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
                return PrivateSession(private, budget=EVERYTHING)

            session = open_session(around.rows)
            shared = []
            for question in (kind.to_replay()[0] for kind in q.registered()):
                try:
                    shared.append((question, record(_ask_share(session, question))))
                except ArgumentError:  # cannot be handed in
                    continue
            for rows in around.others:
                with connections.lent():
                    other = open_session(rows)
                    for question, first in shared:
                        place = (f"share-of-{question.kind}", relation, unit, HERE)
                        result = compare_with(first, _ask_share(other, question))
                        replay.cell(*place).add(result, question.kind)


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
    random, begun, replay = Random(seed), time.perf_counter(), Replay()
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
