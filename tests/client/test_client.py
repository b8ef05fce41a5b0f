"""The client speaks a session's words to a server, and gives the same releases."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import heldout as ho
from heldout import questions as q
from heldout.cli import main
from heldout.client import Server
from heldout.errors import (
    ArgumentError,
    BudgetExceeded,
    LedgerTampered,
    NotGenuine,
    ServerError,
    UnusableModel,
)
from heldout.questions.ranking.release import AucRelease


def called(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    code = main([str(each) for each in words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_asking_a_server_is_asking_a_session(running: Any) -> None:
    rows = running.opened(key=running.key).dataset("readmissions")
    before = rows.remaining.epsilon
    auc = rows.ask(q.Auc(epsilon="1/2"), model=running.model)
    assert isinstance(auc, AucRelease)
    assert auc.loss == ho.Loss.pure("1/2")
    low, high = auc.interval(0.8)
    assert 0 <= low <= auc.value <= high <= 1
    assert before - rows.remaining.epsilon == Fraction(1, 2)
    assert rows.budget == ho.Budget(epsilon="500")
    newest = rows.history()[0]
    assert (newest.state, newest.questions) == ("answered", (q.Auc(epsilon="1/2"),))
    assert newest.wait().releases[0].as_dict() == auc.as_dict()


def test_several_questions_are_one_booking(running: Any) -> None:
    rows = running.opened().dataset("readmissions")
    sent = running.opened().upload(running.model)
    asked = (q.Confusion(epsilon="1/4"), q.Brier(epsilon="1/4"))
    cells, brier = rows.ask(*asked, model=sent)
    assert cells.receipt == brier.receipt
    assert rows.quote(*asked).loss == ho.Loss.pure("1/2") == cells.receipt.loss


def test_a_quote_tells_the_price_and_the_half_widths_and_charges_nothing(running: Any) -> None:
    rows = running.opened().dataset("readmissions")
    before = rows.remaining
    quoted = rows.quote(q.Brier(epsilon="2"), positives=100)
    [widths] = quoted.half_widths
    assert quoted.loss == ho.Loss.pure(2)
    assert 0 < widths["Brier score"].noise < widths["Brier score"].whole < 1
    assert quoted.assumptions[0].startswith("Assumes calibrated scores")
    wider = rows.quote(q.Brier(epsilon="2"), positives=100, calibration_slope=0.3)
    assert wider.half_widths[0]["Brier score"].whole > widths["Brier score"].whole
    assert rows.remaining == before


def test_one_key_is_paid_once(running: Any) -> None:
    rows = running.opened().dataset("readmissions")
    first = rows.ask(q.Brier(epsilon="1/4"), model=running.model, key="order 7")
    between = rows.remaining
    again = rows.ask(
        q.Brier(epsilon="1/4"), model=rows.history()[0]._record["artifact"], key="order 7"
    )
    assert again.as_dict() == first.as_dict()
    assert rows.remaining == between


def test_a_twin_has_the_columns_of_the_rows(running: Any) -> None:
    twin = running.opened().dataset("readmissions").twin(rows=7)
    assert twin.num_rows == 7
    assert {"age", "stay"} <= set(twin.column_names)


def test_refusals_are_the_library_s_own_errors(running: Any, tmp_path: Path) -> None:
    server = running.opened()
    rows = server.dataset("readmissions")
    before = rows.remaining
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        rows.ask(q.Brier(epsilon="501"), model=running.model)
    with pytest.raises(ArgumentError):
        rows.ask(q.Confusion(epsilon=1, threshold=7), model=running.model)
    with pytest.raises(ArgumentError, match="Pass one question"):
        rows.ask(model=running.model)
    with pytest.raises(ServerError) as caught:
        server.dataset("nobody's")
    assert caught.value.status == 404
    for name, content in (("model.json", '{"coefficients": {"age": "x"}}'), ("model.txt", "")):
        (tmp_path / name).write_text(content)
        with pytest.raises((UnusableModel, ArgumentError)):
            rows.ask(q.Brier(epsilon=1), model=tmp_path / name)
    with pytest.raises(ArgumentError, match="cannot be read"):
        rows.ask(q.Brier(epsilon=1), model=tmp_path / "nowhere.onnx")
    assert rows.remaining == before


def test_a_stranger_s_token_opens_nothing(running: Any) -> None:
    for token in ("x", running.site.tokens["ana"][:-1]):
        with pytest.raises(ServerError) as caught:
            Server(running.url, token).datasets()
        assert caught.value.status == 401
    assert running.opened("bert").datasets() == []
    [mine] = running.opened().datasets()
    assert mine.name == "readmissions"


def test_a_token_is_neither_shown_nor_sent_in_the_clear(running: Any) -> None:
    token = running.site.tokens["ana"]
    server = running.opened()
    assert token not in repr(server) + repr(server.dataset("readmissions"))
    for url in ("http://evaluate.example.org", "ftp://localhost", "https://", "", None, 7):
        with pytest.raises(ArgumentError, match="url must"):
            Server(url, token)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="no password"):
        Server("https://me:secret@example.org", token)
    assert Server("http://web:8000", token, allow_http=True)
    for wrong in ("", " ", "é", None):
        with pytest.raises(ArgumentError, match="token must"):
            Server(running.url, wrong)  # type: ignore[arg-type]


def test_a_server_that_is_not_there_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(ServerError, match="cannot be reached"):
        Server("http://127.0.0.1:1", "token").datasets()


def test_an_answer_that_another_key_signed_is_refused(running: Any) -> None:
    other = "A" * 43 + "="
    rows = running.opened(key=other).dataset("readmissions")
    with pytest.raises(NotGenuine):
        rows.ask(q.Brier(epsilon="1/100"), model=running.model)


def test_a_ledger_that_was_put_back_is_noticed_before_anything_is_paid(
    running: Any, tmp_path: Path
) -> None:
    heads = tmp_path / "heads.json"
    rows = running.opened(heads=heads).dataset("readmissions")
    rows.ask(q.Brier(epsilon="1/100"), model=running.model)
    [(url, seen)] = json.loads(heads.read_text()).items()
    assert url == running.url
    again = running.opened(heads=heads)
    again.check_ledger()
    before = rows.remaining
    for wrong in (
        {"sequence": seen["sequence"] + 1},
        {"hash": "0" * 64},
        {"sequence": 1, "hash": "0" * 64},
        {"ledger": "0" * 32},
    ):
        heads.write_text(json.dumps({url: seen | wrong}))
        with pytest.raises(LedgerTampered):
            running.opened(heads=heads).dataset("readmissions").ask(
                q.Brier(epsilon="1/100"), model=running.model
            )
    assert rows.remaining == before
    for wrong in ("", "[]", "{", '{"a": {}}', '{"a": 7}'):
        heads.write_text(wrong)
        with pytest.raises(ArgumentError, match="heads must be a file that this client wrote"):
            running.opened(heads=heads)


def test_a_server_whose_ledger_was_put_back_is_caught(
    put_back: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running, seen, text = put_back
    heads, page = tmp_path / "heads.json", tmp_path / "report.html"
    heads.write_text(json.dumps({running.url: seen}))
    rows = running.opened(heads=heads).dataset("readmissions")
    assert rows.spent == ho.Loss.pure(0)  # so it says
    with pytest.raises(LedgerTampered, match="put back"):
        rows.ask(q.Brier(epsilon=1), model=running.model)
    page.write_text(text)
    words = ("verify", page, "--server-key", running.key)
    assert called(capsys, *words)[0] == 0
    there = ("--server", running.url, "--token-file", running.token_file)
    code, _, err = called(capsys, *words, *there)
    assert (code, "put back" in err) == (1, True)


# --- the commands --------------------------------------------------------------------------------


def test_evaluating_on_a_server_and_verifying_its_page(
    running: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, key = tmp_path / "report.html", tmp_path / "key.txt"
    key.write_text(running.key)
    there = ("--server", running.url, "--token-file", running.token_file)
    words = ("evaluate", *there, "--dataset", "readmissions", "--model", running.model)
    bought = ("--epsilon", "4", "--sections", "confusion", "brier")
    code, out, err = called(capsys, *words, *bought, "--server-key", key, "--out", page)
    assert code == 0, err
    assert "Paid epsilon 4" in out
    code, out, _ = called(capsys, "verify", page, "--server-key", key, *there)
    assert code == 0
    assert "is in the server's ledger" in out
    page.write_text(page.read_text().replace("epsilon 4", "epsilon 3"))
    code, _, err = called(capsys, "verify", page, "--server-key", key)
    assert (code, "it was changed" in err) == (1, True)


def bought(
    running: Any, capsys: pytest.CaptureFixture[str], *words: object
) -> tuple[int, str, str]:
    """Ask the running server by a command, at a price at which noise hides nothing."""
    there = ("--server", running.url, "--token-file", running.token_file)
    whose = ("--dataset", "readmissions", "--model", running.model, "--server-key", running.key)
    return called(capsys, *words, *there, *whose, "--epsilon", "8")


def test_any_question_is_asked_of_a_server(
    running: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "answer.html"
    code, out, err = bought(running, capsys, "ask", "confusion", "--out", page, "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert (answer["kind"], answer["loss"]["epsilon"]) == ("confusion", "8")
    assert "remaining" in answer
    assert "</html>" in page.read_text()
    code, out, err = bought(running, capsys, "ask", "brier")
    assert code == 0, err
    assert "Brier score" in out
    assert "Receipt: " in out


def test_curves_are_bought_of_a_server_with_their_page(
    running: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "curves.html"
    words = ("curves", "--thresholds", "0.3", "--yes", "--out", page)
    code, out, err = bought(running, capsys, *words)
    assert code == 0, err
    assert "recall at 0.3" in out
    assert f"Curves: {page}" in out
    code, out, _ = called(capsys, "verify", page, "--server-key", running.key)
    assert code == 0
    assert "Signature: good." in out


def test_two_models_are_compared_on_a_server(
    running: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rival = tmp_path / "rival.json"
    coefficients = {"coefficients": {"age": -0.04, "stay": 0.1}, "intercept": 1, "link": "logit"}
    rival.write_text(json.dumps(coefficients))
    words = ("compare", "--rival", rival, "--yes")
    code, out, err = bought(running, capsys, *words, "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert answer["kind"] == "compare"
    assert 0 <= answer["p_value"] <= 1
    code, out, err = bought(running, capsys, *words)
    assert code == 0, err
    assert "model.json ranks better than rival.json, with 95% confidence." in out
    missing = bought(running, capsys, "compare", "--rival", tmp_path / "nowhere.json", "--yes")
    assert missing[0] == 2
    assert "nowhere.json" in missing[2]


def test_residuals_of_rows_with_a_label_are_refused_by_the_server_and_cost_nothing(
    running: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    before = str(running.opened().dataset("readmissions").spent)
    code, out, err = bought(running, capsys, "residuals", "--yes")
    assert (code, out) == (2, "")
    last = err.splitlines()[-1]  # the server's own log may stand before it
    assert last.startswith("heldout: ")
    assert "it needs rows with an observed and a predicted" in last
    assert str(running.opened().dataset("readmissions").spent) == before


@pytest.mark.parametrize(
    "words",
    [
        ("--server", "http://127.0.0.1:1"),
        ("--dataset", "readmissions"),
        ("test.parquet", "--server", "http://127.0.0.1:1", "--token-file", "t", "--dataset", "d"),
        ("--server", "http://127.0.0.1:1", "--token-file", "nowhere", "--dataset", "d"),
        (),
    ],
)
def test_half_of_what_a_server_needs_is_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = called(capsys, "evaluate", *words, "--epsilon", "1")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_many_models_are_asked_at_once_and_a_second_call_pays_for_nothing_again(
    running: Any, tmp_path: Path
) -> None:
    models = []
    for place in range(3):
        file = tmp_path / f"m{place}.json"
        content = json.loads(Path(running.model).read_text(encoding="utf-8"))
        file.write_text(json.dumps(content | {"intercept": -20 - place}), encoding="utf-8")
        models.append(file)
    rows = running.opened().dataset("readmissions")
    question = q.Brier(epsilon="1/50")
    before = rows.spent.epsilon
    first = rows.ask_all(question, models=models[:2], key="bulk")
    assert set(first) == {str(model) for model in models[:2]}
    assert rows.spent.epsilon - before == Fraction(2, 50)
    again = rows.ask_all(question, models=models, key="bulk")
    assert rows.spent.epsilon - before == Fraction(3, 50), "two of them were fetched"
    assert all(again[name].value == first[name].value for name in first)
    with pytest.raises(ArgumentError, match="different"):
        rows.ask_all(question, models=[models[0]] * 2)


def test_an_evaluation_is_looked_at_again_given_up_after_a_while_and_taken_up_later(
    running: Any,
) -> None:
    rows = running.opened().dataset("readmissions")
    waits = rows.submit(q.Brier(epsilon="1/50"), model=running.model, key="taken up")
    stuck = type(waits)(waits._server, dict(waits._record))
    stuck._refresh = lambda wait=0: None  # type: ignore[method-assign]
    assert not stuck.done
    with pytest.raises(TimeoutError, match="still waiting"):
        stuck.wait(timeout=0.01)
    answered = waits.wait(timeout=60)
    assert waits.done
    assert waits.refresh().expected is None
    later = running.opened().evaluation(waits.id)
    assert later.done
    assert later.wait().releases[0].value == answered.releases[0].value
