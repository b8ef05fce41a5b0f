"""A page of a signed answer is checked with the server's public key alone."""

import base64
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import heldout as ho
from heldout import questions as q
from heldout.cli import main
from heldout.errors import ArgumentError, HeldoutError, NotGenuine
from heldout.server.signing import (
    Genuine,
    Signer,
    answer_page,
    fingerprint,
    key_of,
    reads_more,
    statement_of,
)

ROWS = {"y": [1, 0, 1, 0, 0] * 200, "p": [0.8, 0.3, 0.6, 0.7, 0.1] * 200}
REPORT = (q.Report(epsilon="1", sections=["brier"]),)
SEVERAL = (q.Confusion(epsilon="1/2"), q.Report(epsilon="1/2", sections=["brier"]))


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    folder = tmp_path_factory.mktemp("server")
    (folder / "private").mkdir()
    return Signer.of(folder)


@cache
def content(questions: tuple[q.Question, ...], name: str = "</script><b>rows") -> str:
    rows = ho.Dataset(ROWS, label="y", score="p", name=name)
    session = ho.Session(rows, budget=ho.Budget(epsilon=3))
    answer = session.answer(*questions)
    return json.dumps({"evaluation": "e1", "ledger": "l" * 32, "answer": answer.as_dict()})


def signed(signer: Signer, questions: tuple[q.Question, ...] = REPORT) -> dict[str, Any]:
    return signer.sign(json.loads(content(questions)))


def with_statement(page: str, change: Callable[[Any], None]) -> str:
    """The page with another statement in the place of its own."""
    held = statement_of(page)
    change(held)
    return re.sub(
        r'(id="heldout-statement">).*?(</script>)',
        lambda found: found[1] + json.dumps(held).replace("<", "\\u003c") + found[2],
        page,
        flags=re.DOTALL,
    )


@pytest.mark.parametrize("questions", [REPORT, SEVERAL], ids=["report", "several"])
def test_a_page_is_made_of_its_statement_alone_and_holds_it(
    signer: Signer, questions: tuple[q.Question, ...]
) -> None:
    statement = signed(signer, questions)
    page = answer_page(statement)
    assert statement_of(page) == statement
    assert answer_page(json.loads(json.dumps(statement))) == page
    found = Genuine.in_page(page, key=signer.public)
    assert found.page() == page
    assert found.answered.questions == questions
    assert found.evaluation == "e1"


def test_nothing_in_a_statement_leaves_its_place_in_the_page(signer: Signer) -> None:
    page = answer_page(signed(signer))
    assert page.count("<script") == page.count("</script>") == 1
    assert "<b>rows" not in page
    assert 'type="application/json"' in page


def test_the_page_of_several_questions_tells_each_with_its_price(signer: Signer) -> None:
    page = answer_page(signed(signer, SEVERAL))
    for words in ("1. Confusion", "2. Brier score", "Paid: epsilon 0.5", "cost epsilon 1 together"):
        assert words in page
    assert signer.public in page


def changed(held: Any, *path: str | int, to: Any) -> None:
    for step in path[:-1]:
        held = held[step]
    assert held[path[-1]] != to
    held[path[-1]] = to


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("statement", "answer", "values", "map", "brier", "array", "values", 0), 7),
        (("statement", "answer", "receipt", "hash"), "0" * 64),
        (("statement", "answer", "receipt", "sequence"), 99),
        (("statement", "answer", "remaining", "epsilon"), "3"),
        (("statement", "ledger"), "m" * 32),
        (("statement", "evaluation"), "e2"),
        (("signature",), base64.b64encode(bytes(64)).decode()),
        (("signature",), "not base64"),
        (("signature",), None),
    ],
    ids=str,
)
def test_whatever_is_changed_in_the_statement_is_noticed(
    signer: Signer, path: tuple[str | int, ...], to: Any
) -> None:
    page = with_statement(answer_page(signed(signer)), lambda held: changed(held, *path, to=to))
    with pytest.raises(NotGenuine, match="changed since it was signed: the signature"):
        Genuine.in_page(page, key=signer.public)


def test_another_key_signs_for_another_server(signer: Signer, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    other = Signer.of(tmp_path)
    page = answer_page(signed(other))
    assert Genuine.in_page(page, key=other.public)
    with pytest.raises(NotGenuine, match="signed by another key: its fingerprint") as refused:
        Genuine.in_page(page, key=signer.public)
    assert fingerprint(other.public) in str(refused.value)
    assert fingerprint(signer.public) in str(refused.value)
    assert "changed since it was signed" not in str(refused.value)
    # The key in the page is not believed.
    claims = with_statement(page, lambda held: changed(held, "key", to=signer.public))
    with pytest.raises(NotGenuine):
        Genuine.in_page(claims, key=signer.public)
    for wrong in ("", "short", "é" * 44, other.public[:-4]):
        with pytest.raises(ArgumentError, match="public key"):
            Genuine.in_page(page, key=wrong)


def test_a_page_without_one_whole_statement_is_refused(signer: Signer) -> None:
    page = answer_page(signed(signer))
    start = page.index("<script")
    without = page[:start] + page[page.index("</script>") + 9 :]
    twice = page.replace("</body>", page[start : page.index("</script>") + 9] + "</body>")
    broken = page.replace('{"key"', '{"key', 1)
    for wrong, words in (
        (without, "no signed statement"),
        ("", "no signed statement"),
        (twice, "more than one"),
        (broken, "cannot be read"),
    ):
        with pytest.raises(ArgumentError, match=words):
            Genuine.in_page(wrong, key=signer.public)


def test_a_signed_text_that_is_no_answer_is_refused(signer: Signer) -> None:
    good = json.loads(content(REPORT))
    for wrong in (
        {},
        good | {"answer": None},
        good | {"ledger": None},
        good | {"evaluation": 7},
    ):
        with pytest.raises(ArgumentError, match="not the statement of an answer"):
            Genuine.of(signer.sign(wrong), key=signer.public)
    for wrong in (None, 7, [], {}, {"statement": 1, "signature": 2}):
        with pytest.raises(HeldoutError):
            Genuine.of(wrong, key=signer.public)


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    first, again = Signer.of(tmp_path), Signer.of(tmp_path)
    assert first.public == again.public == key_of(str(tmp_path / "signing.pub"))
    secret = tmp_path / "private" / "signing.key"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert first.public not in secret.read_text()
    secret.write_text("not a key")
    with pytest.raises(HeldoutError, match="cannot be read"):
        Signer.of(tmp_path)


# --- the command ---------------------------------------------------------------------------------


def verified(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["verify", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_the_command_prints_what_was_signed_and_paid(
    signer: Signer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, key = tmp_path / "report.html", tmp_path / "key.txt"
    file.write_text(answer_page(signed(signer)))
    key.write_text(signer.public + "\n")
    code, out, err = verified(capsys, str(file), "--server-key", str(key))
    receipt = json.loads(content(REPORT))["answer"]["receipt"]["hash"]
    assert (code, err) == (0, "")
    for words in ("Brier", "Signature: good", "Paid: epsilon 1", receipt, "every byte"):
        assert words in out
    code, out, _ = verified(capsys, str(file), "--server-key", signer.public, "--json")
    assert code == 0
    assert json.loads(out)["receipt"]["hash"] == receipt
    assert json.loads(out)["page"] == "as signed"


def test_a_number_that_was_changed_on_the_page_is_noticed(
    signer: Signer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = answer_page(signed(signer))
    value = re.search(r'<span class="value">([^<]+)</span>', page)
    assert value is not None
    file, again = tmp_path / "report.html", tmp_path / "again.html"
    file.write_text(page.replace(value[1], "0.001"))
    words = (str(file), "--server-key", signer.public)
    code, out, err = verified(capsys, *words, "--out", str(again))
    assert code == 1
    assert "it was changed" in err
    assert value[1] in out
    assert again.read_text() == page
    code, out, _ = verified(capsys, *words, "--json")
    assert (code, json.loads(out)["page"]) == (1, "another")


def test_a_page_whose_curves_were_signed_without_readings_is_not_called_another(
    signer: Signer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = json.loads(content((q.Report(epsilon="2", sections=["curves"]),)))
    file, words = tmp_path / "curves.html", ("--server-key", signer.public, "--json")
    file.write_text(answer_page(signer.sign(statement)))
    code, out, _ = verified(capsys, str(file), *words)
    assert (code, json.loads(out)["page"]) == (0, "as signed")
    del statement["answer"]["readings"]  # as an earlier version signed it, and rendered its page
    file.write_text(answer_page(signer.sign(statement)).replace("</main>", "<p></p></main>"))
    code, out, err = verified(capsys, str(file), *words)
    assert (code, json.loads(out)["page"]) == (1, "not comparable")
    assert "reads curves anew" in " ".join(err.split())


def test_what_is_no_page_of_ours_is_refused_in_one_line(
    signer: Signer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.html").write_text("<p>no")
    (tmp_path / "binary.html").write_bytes(b"\xff\xfe")
    for name in ("text.html", "binary.html", "nowhere.html"):
        code, out, err = verified(capsys, str(tmp_path / name), "--server-key", signer.public)
        assert (code, out, err.count("\n")) == (2, "", 1)
    words = (str(tmp_path / "text.html"), "--server-key", signer.public)
    code, _, err = verified(capsys, *words, "--server", "http://127.0.0.1:1")
    assert (code, "--token-file" in err) == (2, True)


SUBJECT = {
    "models": [{"name": "</script>gb.onnx", "sha256": "a" * 64}],
    "dataset": "readmissions",
    "registration": {"revision": 2, "declaration": "b" * 64},
}


def with_subject(signer: Signer, **more: Any) -> dict[str, Any]:
    statement = json.loads(content(REPORT))
    receipt = statement["answer"]["receipt"]
    told = {"price": receipt["loss"], "time": receipt["time"], "server_key": signer.public}
    return signer.sign(statement | {"subject": SUBJECT | told | more})


def test_a_page_names_its_model_data_set_registration_and_evaluation(signer: Signer) -> None:
    page = answer_page(with_subject(signer))
    for words in ("gb.onnx", "a" * 64, "readmissions, registration 2", "b" * 64, "e1"):
        assert words in page
    assert "</script>gb" not in page
    found = Genuine.in_page(page, key=signer.public)
    assert found.page() == page
    assert found.subject is not None
    assert found.subject["server_key"] == signer.public


@pytest.mark.parametrize(
    "changed_subject",
    [{"price": {"epsilon": "9"}}, {"time": "2020-01-01T00:00:00"}, {"models": [{"name": "m"}]}],
    ids=str,
)
def test_a_subject_that_its_answer_contradicts_is_refused(
    signer: Signer, changed_subject: dict[str, Any]
) -> None:
    with pytest.raises(ArgumentError, match="not the statement of an answer"):
        Genuine.of(with_subject(signer, **changed_subject), key=signer.public)


def test_a_page_that_was_signed_without_a_subject_still_verifies(
    signer: Signer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, model = tmp_path / "report.html", tmp_path / "model.json"
    page.write_text(answer_page(signed(signer)), encoding="utf-8")
    model.write_text("{}")
    assert "SHA-256" not in page.read_text(encoding="utf-8")
    assert main(["verify", str(page), "--server-key", signer.public]) == 0
    assert "every byte" in capsys.readouterr().out
    line = ["verify", str(page), "--server-key", signer.public, "--model", str(model)]
    assert main(line) != 0
    assert "does not name its model" in capsys.readouterr().err


def test_an_answer_is_about_the_file_that_was_sent_and_about_no_other(
    opened: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.server.conftest import LINEAR

    model = opened.upload()
    asked = opened.answer({"question": "auc", "epsilon": "1/4"}, artifact=model["id"], key="k")
    report = opened.client("ana").get(f"/api/v1/reports/{asked['id']}.html").text
    page, file, other = (tmp_path / name for name in ("r.html", "sent.json", "other.json"))
    page.write_text(report, encoding="utf-8")
    file.write_text(json.dumps(LINEAR))
    other.write_text(json.dumps(LINEAR | {"intercept": 1}))
    key = str(opened.service.settings.folder / "signing.pub")
    assert main(["verify", str(page), "--server-key", key, "--model", str(file)]) == 0
    out = capsys.readouterr().out
    for words in (model["sha256"], "model.json", "readmissions", "registration 1", asked["id"]):
        assert words in out
    assert main(["verify", str(page), "--server-key", key, "--model", str(other)]) == 1
    assert "not about 'other.json'" in capsys.readouterr().err
    booked = [line for line in opened.client("olga").get("/api/v1/ledger").json() if line["charge"]]
    assert booked[0]["subject"]["models"] == [{"name": "model.json", "sha256": model["sha256"]}]
    assert booked[0]["subject"]["registration"]["revision"] == 1


def test_a_part_whose_readings_were_not_stored_is_read_anew() -> None:
    area = {"value": 0.5, "interval": [0.4, 0.6]}
    for now, before, anew in (
        (None, None, False),
        (area, area, False),
        (area, None, True),
        ({"auc": area, "curves": area}, {"curves": area}, True),
        ({"curves": area}, {"curves": area}, False),
        ({"a": area, "b": None}, {"a": area, "b": None}, False),
        ({"a": area, "b": area}, {"a": area, "b": None}, True),
    ):
        assert reads_more(now, before) == anew
