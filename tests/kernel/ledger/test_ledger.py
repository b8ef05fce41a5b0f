import copy
import hashlib
import pickle
import sqlite3
import stat
import subprocess
import sys
import threading
from fractions import Fraction

import pytest

from heldout.errors import (
    ArgumentError,
    BudgetExceeded,
    BudgetMismatch,
    LedgerError,
    MissingDependency,
    PrivacyError,
    UnknownEvent,
)
from heldout.kernel import Account, Budget, Event, Ledger, Loss, Protection
from heldout.kernel.ledger.records import LostRace
from heldout.kernel.ledger.tables import Tables


def test_three_thirds_fit_a_budget_of_one_and_not_a_hair_more(ledger, account, event):
    for _ in range(3):
        ledger.book(account, event, request={})
    assert ledger.spent(account) == Loss.pure(1)
    hair = Event("exponential", {"epsilon": Fraction(1, 10**30)})
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.book(account, hair, request={})
    assert str(ledger.remaining(account)) == "epsilon 0" == refusal.value.left
    assert refusal.value.cost == f"epsilon 1/{10**30}"
    assert len(ledger.entries()) == 3


def test_a_refused_request_costs_nothing(ledger, account, event):
    ledger.book(account, event, request={})
    before = ledger.history()
    refused = [
        (Event("exponential", {"epsilon": 2}), {}, BudgetExceeded),
        (Event("hope", {"epsilon": 2}), {}, UnknownEvent),
        (Event("smooth-laplace-2015", {"epsilon": "1/9", "delta": "1e-9"}), {}, PrivacyError),
        (Event("exponential", {"epsilon": 0}), {}, ArgumentError),
        (event, {"rows": object()}, ArgumentError),
        (event, {"value": float("nan")}, ArgumentError),
    ]
    for costly, request, error in refused:
        with pytest.raises(error):
            ledger.book(account, costly, request=request)
    assert ledger.history() == before
    assert ledger.remaining(account) == Loss.pure("2/3")


def test_a_receipt_finds_its_booking_again(ledger, account, event):
    receipt = ledger.book(account, event, request={"release": "auc", "epsilon": Fraction(1, 3)})
    assert ledger.verify(receipt=receipt.hash).receipt_sequence == receipt.sequence
    assert receipt.loss == receipt.charge == Loss.pure("1/3")
    assert receipt.time.utcoffset().total_seconds() == 0
    (entry,) = ledger.entries(account)
    assert (entry.hash, entry.sequence, entry.event) == (receipt.hash, receipt.sequence, event)
    assert entry.request == {"release": "auc", "epsilon": "1/3"}
    assert entry.spent == Loss.pure("1/3")
    with pytest.raises(LedgerError, match="No entry of this ledger has this receipt"):
        ledger.verify(receipt="0" * 64)


def test_the_same_rows_have_one_account_however_they_are_named(ledger, account, event):
    ledger.book(account, event, request={})
    again = ledger.account(b"rows", budget=Budget(epsilon="1"), name="another name")
    assert again == account == ledger.account(b"rows", budget=None)
    assert ledger.remaining(again) == Loss.pure("2/3")
    other = ledger.account(b"other rows", budget=Budget(epsilon=1))
    assert other.id != account.id
    assert ledger.remaining(other) == Loss.pure(1)


def test_another_budget_for_the_same_rows_is_refused(ledger, account, event):
    for budget in (Budget(epsilon=2), Budget(rho=1), Budget(epsilon=1, delta="1e-6")):
        with pytest.raises(BudgetMismatch):
            ledger.account(b"rows", budget=budget)
    # What a caller believes the budget to be changes nothing: the ledger knows it.
    for _ in range(3):
        ledger.book(Account(account.id, Budget(epsilon=2)), event, request={})
    with pytest.raises(BudgetExceeded):
        ledger.book(Account(account.id, Budget(epsilon=2)), event, request={})


def test_another_neighbouring_relation_for_the_same_rows_is_refused(ledger):
    replace, other = (Protection(neighbours=name) for name in ("replace-one", "add-remove"))
    first = ledger.account(b"rows", budget=Budget(epsilon=1), protection=replace)
    assert ledger.account(b"rows", budget=None, protection=replace) == first
    with pytest.raises(BudgetMismatch, match="do not add up"):
        ledger.account(b"rows", budget=None, protection=other)


def test_new_rows_need_a_budget_and_a_digest(ledger):
    with pytest.raises(ArgumentError, match="have no budget yet"):
        ledger.account(b"rows", budget=None)
    for digest in ("text", b"", None):
        with pytest.raises(ArgumentError, match="fingerprint must be"):
            ledger.account(digest, budget=Budget(epsilon=1))
    assert ledger.history() == []


def test_an_account_of_another_ledger_is_refused(ledger, event):
    stranger = Ledger.open(None).account(b"rows", budget=Budget(epsilon=1))
    with pytest.raises(LedgerError, match="This account belongs to another ledger"):
        ledger.book(stranger, event, request={})


def test_a_rho_budget_is_charged_in_rho_and_the_receipt_keeps_both(ledger, event):
    account = ledger.account(b"rows", budget=Budget(rho=1))
    gaussian = {"l2_sensitivity_squared": 1, "sigma_squared": 4, "dimension": 1}
    ledger.book(account, Event("discrete-gaussian", gaussian), request={})
    receipt = ledger.book(account, event, request={})
    assert (receipt.loss, receipt.charge) == (Loss.pure("1/3"), Loss.zcdp("1/18"))
    assert ledger.spent(account) == Loss.zcdp(Fraction(1, 8) + Fraction(1, 18))
    assert ledger.verify().entries == 3


def test_a_ledger_outlives_its_object(tmp_path, event):
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        receipt = ledger.book(ledger.account(b"rows", budget=Budget(epsilon=1)), event, request={})
    for address in (path, str(path), f"sqlite:///{path}"):
        again = Ledger.open(address)
        assert again.remaining(again.account(b"rows", budget=None)) == Loss.pure("2/3")
        assert again.verify(receipt=receipt.hash)


def test_nothing_that_leaves_the_ledger_depends_on_the_rows(tmp_path, event):
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger.open(path)
    digest = hashlib.sha256(b"rows").digest()
    account = ledger.account(digest, budget=Budget(epsilon=1))
    ledger.book(account, event, request={})
    columns = sqlite3.connect(path).execute("SELECT mac, seal FROM heldout_ties").fetchone()
    leaving = repr([entry.as_dict() for entry in ledger.history()]) + account.id
    assert digest.hex() not in path.read_bytes().hex()
    assert not any(private in leaving for private in (digest.hex(), *columns))
    # The chain is a function of what is public and of chance alone: it can be recomputed
    # without the two columns that know the rows.
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE heldout_ties SET mac = 'x', seal = 'x'")
    connection.close()
    for entry in ledger.history():
        entry.check()
    with pytest.raises(LedgerError, match="tied to other rows"):
        ledger.verify()


def test_only_the_custodian_may_read_the_file(tmp_path):
    Ledger.open(tmp_path / "ledger.sqlite")
    assert stat.S_IMODE((tmp_path / "ledger.sqlite").stat().st_mode) == 0o600


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_ledger_cannot_be_copied(copier):
    with pytest.raises(TypeError, match="cannot be sent to another process"):
        copier(Ledger.open(None))


def test_sixteen_threads_with_one_ledger_take_no_more_than_there_is(ledger):
    account = ledger.account(b"rows", budget=Budget(epsilon="10/7"))
    seventh = Event("exponential", {"epsilon": "1/7"})
    barrier = threading.Barrier(16)
    outcomes = []

    def work():
        barrier.wait()
        for _ in range(2):
            try:
                outcomes.append(ledger.book(account, seventh, request={}).sequence)
            except BudgetExceeded:
                outcomes.append(None)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    granted = [sequence for sequence in outcomes if sequence is not None]
    assert len(outcomes) == 32
    assert sorted(granted) == list(range(2, 12))
    assert ledger.remaining(account) == Loss.pure(0)
    assert ledger.verify().entries == 11


def test_a_stale_look_loses_the_swap(ledger, account, event):
    """The statement that takes also compares, so even without a lock nobody takes twice."""
    storage = ledger._storage
    ((old, _),) = storage.read(lambda tables: tables.path(account.id))
    identity, _, last = storage.read(lambda tables: tables.end())
    ledger.book(account, event, request={})

    def take_again(tables):
        tables.swap(old, old.state, last)

    def append_again(tables):
        tables.append(identity, last)

    for stale in (take_again, append_again):
        seen = []

        def once(tables, stale=stale, seen=seen):
            try:
                stale(tables)
            except LostRace:
                seen.append("lost")

        storage.write(once)
        assert seen == ["lost"]
    assert ledger.verify().entries == 2


def test_a_lost_race_is_run_again(ledger, account, event, monkeypatch):
    tries, swap = [], Tables.swap

    def lose_twice(*arguments):
        tries.append(1)
        if len(tries) < 3:
            raise LostRace
        swap(*arguments)

    monkeypatch.setattr(Tables, "swap", lose_twice)
    ledger.book(account, event, request={})
    assert len(tries) == 3
    assert ledger.spent(account) == Loss.pure("1/3")
    assert ledger.verify().entries == 2


def test_what_cannot_be_a_ledger_is_refused_in_one_line(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to have a header of sixteen bytes" * 20)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE things (id INTEGER)")
    connection.close()
    elsewhere = "The ledger must be on SQLite or PostgreSQL, got {}. Pass a file, or postgresql"
    wrong = {
        text: f"The ledger at '{text}' must be readable and writable, got no database",
        other: f"The ledger must be a file of its own, got '{other}', a database of another",
        tmp_path: f"'{tmp_path}' is a directory. Name a file for the ledger.",
        tmp_path / "missing" / "ledger.sqlite": f"No such directory: '{tmp_path / 'missing'}'.",
        "oracle://host/name": elsewhere.format("oracle"),
        "what://": elsewhere.format("what"),
        "postgresql+asyncpg://host/name": elsewhere.format("postgresql+asyncpg"),
    }
    for where, message in wrong.items():
        with pytest.raises(LedgerError) as refusal:
            Ledger.open(where)
        assert str(refusal.value).startswith(message)
        assert "\n" not in str(refusal.value)
    for where in (3, "", b"x"):
        with pytest.raises(ArgumentError, match=r"^ledger must be None, a file or a database URL"):
            Ledger.open(where)


def test_a_newer_schema_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    Ledger.open(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE heldout_ledger SET schema_version = 3")
    connection.close()
    with pytest.raises(LedgerError, match="must have schema version 2 or 1, got 3"):
        Ledger.open(path)


def test_a_password_is_never_in_a_message():
    address = "postgresql://someone:secret-word@127.0.0.1:1/nowhere?sslpassword=secret-word"
    with pytest.raises((LedgerError, MissingDependency)) as refusal:
        Ledger.open(address)
    seen = repr(refusal.value) + repr(refusal.value.__cause__)
    assert "secret-word" not in seen
    assert refusal.value.__suppress_context__


@pytest.mark.parametrize("absent", ["psycopg", "sqlalchemy"])
def test_without_psycopg_or_sqlalchemy_the_message_names_the_extra(monkeypatch, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    monkeypatch.delitem(sys.modules, "heldout.kernel.ledger.postgres", raising=False)
    with pytest.raises(MissingDependency, match=r"heldout\[postgres\]"):
        Ledger.open("postgresql://127.0.0.1/nowhere")


def test_the_room_is_light_until_a_ledger_is_opened():
    code = (
        "import sys, heldout.kernel;"
        "heavy = {'sqlalchemy', 'numpy', 'scipy', 'flint', 'psycopg'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_rows_that_share_one_fingerprint_share_one_budget(ledger, event):
    first = ledger.account(b"keys", also=[b"cells"], budget=Budget(epsilon=1))
    ledger.book(first, event, request={})
    assert ledger.account(b"cells", budget=None) == first
    assert ledger.account(b"keys", also=[b"other cells"], budget=None) == first
    assert ledger.account(b"other cells", budget=None) == first
    assert len(ledger.entries()) == 1
    ledger.verify()


def test_rows_of_two_accounts_are_refused(ledger):
    ledger.account(b"keys", budget=Budget(epsilon=1))
    ledger.account(b"cells", budget=Budget(epsilon=1))
    with pytest.raises(BudgetMismatch, match="match two accounts"):
        ledger.account(b"keys", also=[b"cells"], budget=None)
