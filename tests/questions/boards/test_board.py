"""A board's life: what it says, what it costs, and what happens when it is interrupted."""

import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.chances import louder
from tests.questions.boards.conftest import scored

import heldout as ho
from heldout.board import Board, Plan
from heldout.errors import ArgumentError, BudgetExceeded, LedgerError
from heldout.kernel import Loss
from heldout.kernel.noise.selection import Prepaid
from heldout.questions.boards import BoardEnded


@pytest.mark.chance(louder(0, 40, 6))
def test_improvements_are_shown_and_others_are_free(opened: Any, ledger: Any) -> None:
    board = opened()
    assert ledger.spent("readmissions") == Loss.pure(8), "the whole price, when it opens"
    # As good as the start, it would be called better in 1 of 700 boards; 50 rows below, in none.
    assert not board.submit(scored(950), submission="coin").improved
    found = board.submit(scored(1600), submission="good")
    assert found.improved
    assert abs(found.score - 0.8) < 0.02
    assert ledger.spent("readmissions") == Loss.pure(8)
    assert not board.submit(scored(1500), submission="worse").improved
    assert board.best == found.score
    assert board.left == (17, 2)
    assert [name for name, _ in board.entries()] == ["good"]
    assert str(found).startswith("An improvement")
    ledger.verify()


def classified(right: int) -> ho.Dataset:
    """A model of three classes that calls this many rows rightly."""
    truth = np.arange(2000) % 3
    called = np.where(np.arange(2000) < right, truth, (truth + 1) % 3)
    columns = {f"p{place}": np.where(called == place, 0.9, 0.2) for place in range(3)}
    rows = {"y": truth, **columns}
    return ho.Dataset(rows, label="y", classes=[0, 1, 2], scores=list(columns))


@pytest.mark.chance(1e-7)
def test_a_board_ranks_models_of_several_classes_by_accuracy(opened: Any, ledger: Any) -> None:
    board = opened()
    assert not board.submit(classified(950), submission="coin").improved
    found = board.submit(classified(1600), submission="good")
    assert found.improved
    assert abs(found.score - 0.8) < 0.02
    assert ledger.spent("readmissions") == Loss.pure(8)


def test_a_board_of_several_classes_is_by_accuracy_alone(ledger: Any, tmp_path: Path) -> None:
    plan = Plan(rows=2000, price=8, improvements=3, submissions=20, metric="brier")
    state = tmp_path / "board.json"
    board = Board("spring", plan=plan, ledger=ledger, account="readmissions", state=state)
    with pytest.raises(ArgumentError, match="metric must be 'accuracy'"):
        board.submit(classified(1600), submission="good")
    assert board.left == (20, 3)


def test_a_board_is_taken_up_where_it_was_left(opened: Any, ledger: Any) -> None:
    first = opened().submit(scored(1600), submission="good")
    spent = ledger.spent("readmissions")
    again = opened()
    assert again.submit(scored(1600), submission="good") == first
    assert ledger.spent("readmissions") == spent
    assert again.best == first.score


def test_the_bar_is_never_drawn_again(opened: Any, tmp_path: Path) -> None:
    opened()
    (tmp_path / "board.json").unlink()
    with pytest.raises(LedgerError, match="was drawn before"):
        opened()


def test_a_bar_is_for_the_terms_and_the_account_that_paid_for_it(
    opened: Any, ledger: Any, tmp_path: Path
) -> None:
    board = opened()
    ledger.register("others", budget=ho.Budget(epsilon=20))

    def taken_up(name: str = "spring", account: str = "readmissions", **terms: Any) -> Board:
        plan = Plan.from_dict(board.plan.as_dict() | terms)
        state = tmp_path / "board.json"
        return Board(name, plan=plan, ledger=ledger, account=account, state=state)

    for terms in ({"improvements": 20}, {"metric": "brier"}, {"submissions": 19}):
        with pytest.raises(LedgerError, match="another board"):
            taken_up(**terms, step=None)
    for words in ({"account": "others"}, {"name": "summer", "account": "others"}):
        with pytest.raises(LedgerError, match="another board"):
            taken_up(**words)
    assert taken_up().left == (20, 3)


@pytest.mark.chance(louder(0, 6, 20))
def test_a_state_that_was_put_back_is_noticed(opened: Any, tmp_path: Path) -> None:
    board, state = opened(), tmp_path / "board.json"
    board.submit(scored(900), submission="coin")
    older = state.read_bytes()
    for right in (1300, 1600, 1900):
        assert board.submit(scored(right), submission=f"{right}").improved
    state.write_bytes(older)
    with pytest.raises(LedgerError, match="older"):
        board.submit(scored(1990), submission="a fourth improvement")
    with pytest.raises(LedgerError, match="older"):
        opened()


def test_nobody_can_spend_what_an_open_board_may_show(
    opened: Any, ledger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account runs dry between a judgement and its score, which is shown all the same."""
    board = opened()
    others = ho.Session(scored(1000), ledger=ledger, account="readmissions")
    show = Board._show

    def after_a_rush(*words: Any) -> None:
        with pytest.raises(BudgetExceeded):
            others.confusion(epsilon="2.1")
        others.confusion(epsilon=2)
        show(*words)

    monkeypatch.setattr(Board, "_show", after_a_rush)
    found = board.submit(scored(1600), submission="good")
    assert found.improved
    assert found.score is not None
    scores = [each for each in ledger.entries() if "score/" in str(each.request.get("reference"))]
    assert [str(each.loss) for each in scores] == ["epsilon 0"], "booked, and covered by the bar"
    assert ledger.spent("readmissions") == Loss.pure(10)
    ledger.verify()


def test_a_board_that_cannot_be_paid_in_full_does_not_open(
    opened: Any, ledger: Any, tmp_path: Path
) -> None:
    ho.Session(scored(1000), ledger=ledger, account="readmissions").confusion(epsilon=3)
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        opened()
    assert ledger.spent("readmissions") == Loss.pure(3)
    assert not (tmp_path / "board.json").exists()


@pytest.mark.chance(louder(0, 6, 20))
def test_a_board_of_an_older_version_pays_its_scores_when_it_is_taken_up(
    opened: Any, ledger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older versions paid for the bar when the board opened, and for a score when it was shown."""
    with monkeypatch.context() as older:
        older.setattr(Plan, "event", lambda plan: plan.test.event())
        older.setattr(Prepaid, "event", lambda prepaid: prepaid.noise.event())
        first = opened().submit(scored(1300), submission="first")
        assert ledger.spent("readmissions").epsilon == 6 + Fraction(2, 3)
    for right in (1600, 1900):
        assert opened().submit(scored(right), submission=f"{right}").improved
        assert ledger.spent("readmissions") == Loss.pure(8)
    assert first.improved
    with pytest.raises(BoardEnded):
        opened().submit(scored(1990), submission="too late")
    ledger.verify()


@pytest.mark.chance(louder(0, 6, 20))
def test_no_name_of_a_submission_stands_for_something_else(opened: Any, ledger: Any) -> None:
    board = opened()
    for name in ("bar", "good/score", "score/good"):
        assert not board.submit(scored(900), submission=name).improved
    assert board.submit(scored(1600), submission="good").score is not None
    with pytest.raises(ArgumentError, match="without a slash"):
        Board("a/b", plan=board.plan, ledger=ledger, account="readmissions", state="unused")
    with pytest.raises(ArgumentError):
        board.submit(scored(1900), submission="x" * 190)  # before it is judged
    assert board.left == (16, 2)


@pytest.mark.chance(louder(0, 6, 20))
def test_the_last_improvement_ends_the_board(opened: Any, ledger: Any) -> None:
    board = opened()
    for right in (1300, 1600, 1900):
        assert board.submit(scored(right), submission=f"{right}").improved
    assert ledger.spent("readmissions") == Loss.pure(8)
    with pytest.raises(BoardEnded):
        board.submit(scored(1990), submission="too late")
    assert ledger.spent("readmissions") == Loss.pure(8)


def test_the_last_submission_ends_the_board(ledger: Any, tmp_path: Path) -> None:
    plan = Plan(rows=2000, price=8, improvements=1, submissions=2)
    state = tmp_path / "short.json"
    board = Board("short", plan=plan, ledger=ledger, account="readmissions", state=state)
    for place in range(2):
        board.submit(scored(900), submission=f"{place}")
    with pytest.raises(BoardEnded):
        board.submit(scored(900), submission="one more")


def test_a_score_that_was_lost_is_not_drawn_again(
    opened: Any, ledger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = opened()
    monkeypatch.setattr(Plan, "shown_score", _killed)  # after the score was booked and drawn
    with pytest.raises(KeyboardInterrupt):
        board.submit(scored(1600), submission="good")
    monkeypatch.undo()
    spent = ledger.spent("readmissions")
    found = opened().submit(scored(1600), submission="good")
    assert (found.improved, found.score) == (True, None)
    assert ledger.spent("readmissions") == spent
    assert opened().left == (19, 2)


def test_a_submission_that_was_lost_says_nothing(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heldout.kernel.noise.selection import AboveBar

    board = opened()
    monkeypatch.setattr(AboveBar, "sample", _killed)
    with pytest.raises(KeyboardInterrupt):
        board.submit(scored(1600), submission="good")
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="lost"):
        opened().submit(scored(1600), submission="good")
    assert opened().submit(scored(1600), submission="anew").improved


def _killed(*_: Any) -> Any:
    raise KeyboardInterrupt


def test_racing_submissions_are_judged_one_by_one(opened: Any, ledger: Any) -> None:
    opened()
    found: list[Any] = []

    def submit(place: int) -> None:
        try:
            found.append(opened().submit(scored(1600), submission=f"{place}"))
        except BoardEnded as error:
            found.append(error)

    threads = [threading.Thread(target=submit, args=(each,)) for each in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 6
    shown = [each for each in ledger.entries() if "score/" in str(each.request["reference"])]
    assert len(shown) == sum(getattr(each, "improved", False) for each in found) <= 3
    assert ledger.spent("readmissions") == Loss.pure(8)


def test_a_board_that_would_show_nothing_is_refused() -> None:
    with pytest.raises(ArgumentError, match="would show nothing"):
        Plan(rows=300, price="1/10", improvements=10, submissions=1000)
    with pytest.raises(ArgumentError, match="noise alone"):
        Plan(rows=5000, price=2, improvements=5, submissions=300, step=0.001)


def test_a_board_needs_the_planned_rows(opened: Any) -> None:
    few = ho.Dataset({"y": [0, 1], "p": [0.1, 0.9]}, label="y", score="p")
    with pytest.raises(ArgumentError, match="of that many rows"):
        opened().submit(few, submission="few")


def test_a_plan_is_json_and_back(plan: Plan) -> None:
    import json

    assert Plan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan


def test_the_state_does_not_show_the_bar(opened: Any, tmp_path: Path) -> None:
    from heldout.questions.boards import StateFile

    opened()
    state = StateFile(tmp_path / "board.json").read()
    assert state is not None
    state.secret = 987654321
    assert str(state.secret) not in repr(state)
    assert (tmp_path / "board.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("metric", ["accuracy", "brier", "mean-absolute-error"])
def test_every_metric_has_its_score(metric: str, ledger: Any, tmp_path: Path) -> None:
    plan = Plan(rows=2000, price=8, improvements=1, submissions=5, metric=metric)
    board = Board(
        "one", plan=plan, ledger=ledger, account="readmissions", state=tmp_path / "one.json"
    )
    found = board.submit(scored(1800), submission="good")
    truth = {"accuracy": 0.9, "brier": 1 - 0.9 * 0.01 - 0.1 * 0.81, "mean-absolute-error": 0.82}
    assert abs(found.score - truth[metric]) < 0.03
