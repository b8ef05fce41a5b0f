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
    for text in ("test.parquet", "epsilon 3", "epsilon 1", "report", receipt[:8]):
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


# --- accounts ------------------------------------------------------------------------------------


@pytest.fixture
def registered(run):
    """An account with a person as the unit, and an analyst with a share."""
    words = ("ledger", "register", "ledger.sqlite", "readmissions", "--budget", "3")
    assert run(*words, "--neighbours", "add-remove", "--people", "patients").code == 0
    grant = ("ledger", "grant", "ledger.sqlite", "readmissions", "ana", "--budget", "1")
    assert run(*grant, "--why", "thesis").code == 0
    return ("--ledger", "ledger.sqlite", "--account", "readmissions", "--neighbours", "add-remove")


def test_an_analyst_spends_a_share_and_show_tells_who_on_what(run, evaluate, registered, here):
    asked = evaluate("--epsilon", "1", *registered, "--analyst", "ana", "--json")
    assert asked.code == 0, asked.err
    refused = evaluate("--epsilon", "1", *registered, "--analyst", "ana")
    assert refused.code == 1
    content = json.loads(run("ledger", "show", "ledger.sqlite", "--json").out)
    stands = {each["name"]: each for each in content["accounts"]}
    assert {name: each["kind"] for name, each in stands.items()} == {
        "patients": "people", "readmissions": "data", "ana": "analyst"}  # fmt: skip
    assert {each["spent"] for each in stands.values()} == {"epsilon 1"}
    assert stands["ana"]["exact"]["left"]["epsilon"] == "0"
    assert content["spending"]["analyst"] == {"ana": {"epsilon": "1"}}
    assert len(content["spending"]["month"]) == 1
    grants = [each for each in content["entries"] if each["kind"] == "grant"]
    assert (grants[0]["why"], bool(grants[0]["who"])) == ("thesis", True)
    text = run("ledger", "show", "ledger.sqlite", "--out", "ledger.html").out
    assert "u2003" not in (here / "ledger.html").read_text(encoding="utf-8")
    assert "– ana" in (here / "ledger.html").read_text(encoding="utf-8")
    assert "- readmissions" in text
    assert f"{'.' * 10} 0%" in text
    below = json.loads(
        run("ledger", "show", "ledger.sqlite", "--account", "readmissions", "--json").out
    )
    assert [each["name"] for each in below["accounts"]] == ["readmissions", "ana"]
    page = (here / "ledger.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "readmissions" in page
    assert "<script" not in page
    assert run("ledger", "verify", "ledger.sqlite").code == 0


def test_budgets_are_raised_and_accounts_are_closed(run, evaluate, registered):
    assert evaluate("--epsilon", "3", *registered).code == 0
    assert evaluate("--epsilon", "1", *registered).code == 1
    for name in ("patients", "readmissions"):
        raised = run("ledger", "raise", "ledger.sqlite", name, "--budget", "5", "--json")
        assert json.loads(raised.out)["budget"]["epsilon"] == "5"
    assert evaluate("--epsilon", "1", *registered).code == 0
    assert run("ledger", "revoke", "ledger.sqlite", "readmissions", "ana").code == 0
    assert evaluate("--epsilon", "1/2", *registered, "--analyst", "ana").code == 1
    assert run("ledger", "close", "ledger.sqlite", "patients", "--who", "board").code == 0
    outcome = evaluate("--epsilon", "1/2", *registered)
    assert (outcome.code, "closed" in outcome.err) == (1, True)


def test_a_lost_key_is_one_line_and_rekey_goes_on(run, evaluate, receipt, here):
    (here / "ledger.sqlite.key").unlink()
    outcome = evaluate("--epsilon", "1", "--ledger", "ledger.sqlite")
    assert len(outcome.err.splitlines()) == 1
    assert "rekey" in outcome.err
    assert run("ledger", "show", "ledger.sqlite").code == 0
    assert run("ledger", "rekey", "ledger.sqlite", "--why", "disk").code == 0
    words = ("--epsilon", "1", "--ledger", "ledger.sqlite", "--account", "test.parquet", "--json")
    assert evaluate(*words).code == 0
    assert evaluate("--epsilon", "2", *words[2:]).code == 1


def test_registering_people_that_the_ledger_knows_offers_to_share_their_account(run, here):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for year in (0, 1):
        ids = [f"p{each}" for each in range(year * 30, year * 30 + 1000)]
        pq.write_table(pa.table({"id": ids}), here / f"{year}.parquet")
    words = ("ledger", "register", "ledger.sqlite", "--budget", "3", "--unit", "id", "--rows")
    assert run(*words, "0.parquet", "last-year").code == 0
    offered = run(*words, "1.parquet", "this-year")
    assert offered.code == 2
    assert "About 970 of these 1,000 are also in account 'last-year'" in offered.err
    assert run(*words, "1.parquet", "this-year", "--people", "last-year").code == 0


@pytest.mark.parametrize("protection", [(), ("--unit", "id"), ("--neighbours", "add-remove")])
def test_three_days_with_one_row_more_each_day(run, here, protection):
    import pyarrow as pa
    import pyarrow.parquet as pq

    register = ("ledger", "register", "known.sqlite", "clinic", "--budget", "3", *protection)
    assert run(*register).code == 0
    codes, errors = {"known": [], "unknown": []}, {"known": [], "unknown": []}
    for day in range(3):
        rows = {"id": list(range(60 + day)), "y": [i % 2 for i in range(60 + day)]}
        pq.write_table(pa.table(rows | {"p": [0.5] * (60 + day)}), here / "clinic.parquet")
        words = ("evaluate", "clinic.parquet", "--label", "y", "--score", "p", *protection)
        words = (*words, "--budget", "3", "--epsilon", "3", "--ledger")
        for ledger, account in (("known", ("--account", "clinic")), ("unknown", ())):
            outcome = run(*words, f"{ledger}.sqlite", *account)
            codes[ledger].append(outcome.code == 0)
            errors[ledger].append(outcome.err)
    assert codes == {"known": [True, False, False], "unknown": [True, False, False]}
    assert all("ledger register" in each and "--row-key" in each for each in errors["unknown"][1:])
    spent = json.loads(run("ledger", "show", "known.sqlite", "--json").out)["accounts"][0]["spent"]
    assert spent == "epsilon 3"


def test_a_lost_witness_is_renewed_by_an_option_that_the_refusal_names(run, tmp_path):
    ledger = tmp_path / "l.sqlite"
    assert run("ledger", "register", str(ledger), "claims", "--budget", "3").code == 0
    (tmp_path / "l.sqlite.witness").unlink()
    refused = run("ledger", "verify", str(ledger))
    assert refused.code == 1
    assert "heldout ledger verify LEDGER --renew-witness accepts the ledger" in refused.err
    assert "renew_witness" not in refused.err
    assert run("ledger", "verify", str(ledger), "--renew-witness").code == 0
    assert run("ledger", "verify", str(ledger)).code == 0


def test_no_witness_is_renewed_of_a_ledger_that_lacks_the_booking_of_a_receipt(run, tmp_path):
    ledger, older = tmp_path / "l.sqlite", tmp_path / "older.sqlite"
    assert run("ledger", "register", str(ledger), "claims", "--budget", "3").code == 0
    shutil.copy(ledger, older)
    assert run("ledger", "register", str(ledger), "others", "--budget", "3").code == 0
    receipt = json.loads(run("ledger", "verify", str(ledger), "--json").out)["hash"]
    shutil.copy(older, ledger)
    for typed in (receipt, "mistyped"):
        words = ("ledger", "verify", str(ledger), "--renew-witness", "--receipt", typed)
        assert run(*words).code != 0
        assert "its witness has seen it, and it is gone" in run("ledger", "verify", str(ledger)).err


def test_the_receipt_of_another_ledger_is_no_sign_of_a_change(run, tmp_path):
    ledger = tmp_path / "l.sqlite"
    assert run("ledger", "register", str(ledger), "claims", "--budget", "3").code == 0
    refused = run("ledger", "verify", str(ledger), "--receipt", "0" * 64)
    assert refused.code == 1
    assert "the receipt is from another ledger" in refused.err
    assert "got a change" not in refused.err
