"""Releases that are no question of a session: boards, searches, shares of noise."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from heldout.audit.replay import asked, replayed
from heldout.audit.replay_questions import FAMILIES, SCORES
from heldout.audit.replay_run import AROUND, BY_ROW, BY_UNIT, MOST, RELATIONS, Replay
from heldout.audit.replay_tables import REPLACE_ONE, _as_lists, neighbours
from heldout.data import Dataset
from heldout.errors import HeldoutError
from heldout.estimators import Search
from heldout.kernel import Budget, Ledger
from heldout.kernel.loss import Loss
from heldout.pooling.shares import hand_in
from heldout.questions.boards.board import Board
from heldout.questions.boards.plan import Plan
from heldout.questions.counts import Confusion

__all__ = ["DOORS", "HERE"]

Ask = Callable[[], tuple[Any, Loss]]
HERE: Final = "list"


def _add(replay: Replay, asking: list[Ask], *, kind: str, relation: str, unit: str) -> None:
    """The first table, and the others with its noise."""
    one = asked(asking[0])
    for other in asking[1:]:
        replay.cell(kind, relation, unit, HERE).add(replayed(one, other), kind)


# --- boards --------------------------------------------------------------------------------------

BOARD: Final = Plan(rows=100, price=20, improvements=2, submissions=6)


def _boards(replay: Replay, random: Random) -> None:
    """Six models in turn; one person's row changes, and with it all that they say of it."""

    def row() -> tuple[int, list[float]]:
        return random.randint(0, 1), [random.choice(SCORES) for _ in range(BOARD.submissions)]

    rows = [row() for _ in range(BOARD.rows)]
    good = [(label, [abs(label - (random.random() < 0.1)) * 1.0] * 6) for label, _ in rows]
    rows = random.choice([rows, good])
    others = [list(rows) for _ in range(AROUND)]
    for other in others:
        other[random.randrange(len(other))] = row()
    asking = [_board_of(each) for each in (rows, *others)]
    _add(replay, asking, kind="board", relation=REPLACE_ONE, unit=BY_ROW)


def _board_of(rows: list[tuple[int, list[float]]]) -> Ask:
    def ask() -> tuple[Any, Loss]:
        ledger = Ledger.open(None)
        ledger.register("rows", budget=Budget(epsilon=BOARD.price))
        said = []
        with TemporaryDirectory() as folder:
            board = Board(
                "replay", plan=BOARD, ledger=ledger, account="rows", state=Path(folder) / "state"
            )
            for place in range(BOARD.submissions):
                table = {"y": [y for y, _ in rows], "p": [scores[place] for _, scores in rows]}
                try:
                    dataset = Dataset(table, label="y", score="p", name="made up")
                    said.append(str(board.submit(dataset, submission=f"model {place}")))
                except HeldoutError as error:
                    said.append(str(error))
        return said, Loss.pure(BOARD.price)

    return ask


# --- searches ------------------------------------------------------------------------------------


class _Model:
    """A public model, as scikit-learn has them."""

    classes_ = np.array([0, 1])

    def __init__(self, power: int) -> None:
        self.power = power

    def predict_proba(self, X: Any) -> Any:
        scores = np.clip(np.asarray(X, dtype=float)[:, 0], 0, 1) ** self.power
        return np.stack([1 - scores, scores], axis=1)


METRICS: Final = ("roc_auc", "average_precision", "neg_brier_score", "accuracy")
CANDIDATES: Final = 2


def _searches(replay: Replay, random: Random) -> None:
    """Two candidates on three folds, and one more than was declared, which must be refused."""

    def row() -> tuple[int, float]:
        return random.randint(0, 1), random.choice(SCORES)

    fold = [row() for _ in range(random.randint(2, 8))]
    alike = random.random() < 0.3  # folds with the very same rows
    rows = [each for each in fold for _ in range(3)] if alike else [row() for _ in fold * 3]
    others = [list(rows) for _ in range(AROUND)]
    for other in others:
        other[random.randrange(len(other))] = row()
    metric = random.choice(METRICS)
    asking = [_search_of(each, metric) for each in (rows, *others)]
    _add(replay, asking, kind="search", relation=REPLACE_ONE, unit=BY_ROW)


def _search_of(rows: list[tuple[int, float]], metric: str) -> Ask:
    public = [(0, 0.1), (1, 0.9)]
    y = np.array([label for label, _ in public + rows])
    X = np.array([[score] for _, score in public + rows])

    def ask() -> tuple[Any, Loss]:
        search = Search(epsilon="4", candidates=CANDIDATES, folds=3, public=[0, 1], metric=metric)
        said: list[str] = []
        for _, test in list(search.split(X, y)):
            for power in range(1, CANDIDATES + 2):
                try:
                    said.append(repr(search(_Model(power), X[test], y[test])))
                except HeldoutError as error:
                    said.append(type(error).__name__)
        return said, search.loss

    return ask


# --- shares of noise -----------------------------------------------------------------------------


class _Sum:
    def __init__(self) -> None:
        self.vectors: list[list[int]] = []

    def submit(self, vector: Any) -> None:
        self.vectors.append([int(number) for number in vector])


def _shares(replay: Replay, random: Random) -> None:
    """A confusion matrix that a site hands to a secure sum."""
    family = FAMILIES[0]
    for relation in RELATIONS:
        for unit in (BY_ROW, BY_UNIT):
            around = neighbours(
                family.columns,
                random,
                relation=relation,
                rows_per_unit=None if unit == BY_ROW else random.randint(1, MOST),
                count=AROUND,
                mixed=False,
                keyed=False,
            )

            def asking(rows: Any, around: Any = around) -> Ask:
                table, _ = _as_lists(rows, around.columns, None, 0)
                session = family.open(table, **around.custody)

                def ask() -> tuple[Any, Loss]:
                    into = _Sum()
                    receipt = hand_in(session, Confusion(epsilon=1), honest=3, into=into)
                    return into.vectors, receipt.loss

                return ask

            every = [asking(rows) for rows in (around.rows, *around.others)]
            _add(replay, every, kind="share-of-confusion", relation=relation, unit=unit)


DOORS: Final = (_boards, _searches, _shares)
"""Each replays one table and its neighbours."""
