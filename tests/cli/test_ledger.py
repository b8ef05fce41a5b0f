"""`heldout ledger` shows what was spent and notices what was changed."""

import json
import shutil
import sqlite3

import pytest


@pytest.fixture
def receipt(evaluate):
    words = ("--epsilon", "1", "--ledger", "ledger.sqlite", "--budget", "3", "--json")
    return json.loads(evaluate(*words).out)["releases"]["confusion"]["receipt"]["hash"]


def test_show_has_the_budget_and_each_booking(run, receipt):
    out = run("ledger", "show", "ledger.sqlite").out
    for text in ("test.parquet", "epsilon 3", "epsilon 1", "confusion", "Brier score", receipt[:8]):
        assert text in out


def test_show_as_json_has_every_entry(run, receipt):
    content = json.loads(run("ledger", "show", "ledger.sqlite", "--json").out)
    kinds = [each["kind"] for each in content["entries"]]
    assert kinds == ["opening"] + ["booking"] * (len(kinds) - 1)
    assert receipt in [each["hash"] for each in content["entries"]]
    assert content["accounts"][0]["spent"] == "epsilon 1"


def test_verify_finds_a_receipt(run, receipt):
    content = json.loads(
        run("ledger", "verify", "ledger.sqlite", "--receipt", receipt, "--json").out
    )
    assert content["verified"] is True
    assert content["receipt_sequence"] >= 2


def test_a_receipt_that_is_not_in_the_ledger_is_exit_code_1(run, receipt):
    outcome = run("ledger", "verify", "ledger.sqlite", "--receipt", "0" * 64)
    assert outcome.code == 1
    assert len(outcome.err.splitlines()) == 1


def test_an_edited_ledger_is_exit_code_1_and_one_line(run, receipt, here):
    connection = sqlite3.connect(here / "ledger.sqlite")
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
    entries = next(name for name in tables if "entr" in name and "autoindex" not in name)
    connection.execute(f"UPDATE {entries} SET body = replace(body, 'booking', 'opening')")
    connection.commit()
    connection.close()
    for command in ("show", "verify"):
        outcome = run("ledger", command, "ledger.sqlite")
        assert outcome.code == 1
        assert outcome.err.startswith("heldout: ")
        assert len(outcome.err.splitlines()) == 1


def test_a_ledger_put_back_to_an_older_copy_is_refused(run, evaluate, receipt, here):
    for path in here.glob("ledger.sqlite*"):
        if not path.name.endswith(".witness"):
            shutil.copy(path, here / f"old-{path.name}")
    evaluate("--epsilon", "1", "--ledger", "ledger.sqlite")
    for path in here.glob("ledger.sqlite*"):
        if not path.name.endswith(".witness"):
            path.unlink()
    for path in here.glob("old-ledger.sqlite*"):
        path.rename(here / path.name.removeprefix("old-"))
    outcome = evaluate("--epsilon", "1", "--ledger", "ledger.sqlite")
    assert outcome.code == 1
    assert "Traceback" not in outcome.err


def test_looking_at_a_ledger_that_is_not_there_makes_none(run, here):
    assert run("ledger", "show", "nothing.sqlite").code == 2
    assert not (here / "nothing.sqlite").exists()
