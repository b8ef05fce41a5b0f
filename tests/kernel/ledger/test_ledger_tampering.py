"""Every way of changing a ledger behind its back that we promise to notice."""

import json
import shutil
import sqlite3

import pytest

from heldout.errors import LedgerError, LedgerTampered
from heldout.kernel import Budget, Event, Ledger
from heldout.kernel.ledger.records import canonical, link


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def written(path, event):
    """Two accounts; entries 1 and 4 open them, 2, 3, 5 and 6 are bookings."""
    ledger = Ledger.open(path)
    for rows in (b"first", b"second"):
        account = ledger.account(rows, budget=Budget(epsilon=2))
        for _ in range(2):
            ledger.book(account, event, request={"release": "auc"})
    return ledger


def change(path, *statements):
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def everything_refuses(path, ledger=None):
    """A new look at the whole ledger refuses, and so does an object that was open before."""
    if ledger is not None:
        ledger.close()
    with pytest.raises(LedgerTampered) as refusal:
        Ledger.open(path).verify()
    if ledger is not None:
        with pytest.raises(LedgerTampered):
            ledger.verify()
    return refusal.value


ENTRIES = "heldout_entries"
CHANGES = {
    "an edited entry": (
        [f"UPDATE {ENTRIES} SET body = replace(body, '\"1/3\"', '\"1/4\"') WHERE sequence = 3"], 3),
    "an edited request": (
        [f"UPDATE {ENTRIES} SET body = replace(body, 'auc', 'roc') WHERE sequence = 2"], 2),
    "an edited hash": ([f"UPDATE {ENTRIES} SET hash = 'f' WHERE sequence = 2"], 2),
    "an edited link": ([f"UPDATE {ENTRIES} SET previous = hash WHERE sequence = 2"], 2),
    "an entry moved to another account": (
        [f"UPDATE {ENTRIES} SET account = (SELECT account FROM {ENTRIES} WHERE sequence = 4) "
         "WHERE sequence = 2"], 2),
    "a deleted entry": ([f"DELETE FROM {ENTRIES} WHERE sequence = 3"], 3),
    "a deleted first entry": ([f"DELETE FROM {ENTRIES} WHERE sequence = 1"], 1),
    "a deleted last entry": ([f"DELETE FROM {ENTRIES} WHERE sequence = 6"], 6),
    "all entries deleted": ([f"DELETE FROM {ENTRIES}"], 1),
    "reordered entries": (
        [f"UPDATE {ENTRIES} SET sequence = -1 WHERE sequence = 2",
         f"UPDATE {ENTRIES} SET sequence = 2 WHERE sequence = 3",
         f"UPDATE {ENTRIES} SET sequence = 3 WHERE sequence = -1"], 2),
    "a body that is no text": ([f"UPDATE {ENTRIES} SET body = x'00ff' WHERE sequence = 2"], 2),
    "a forged entry at the end": (
        [f"INSERT INTO {ENTRIES} SELECT 7, account, hash, 'x', body FROM {ENTRIES} "
         "WHERE sequence = 6"], 7),
    "an edited total": (
        ["UPDATE heldout_accounts SET state = replace(state, '2/3', '1/3')"], 3),
    "an edited budget": (
        ["UPDATE heldout_accounts SET state = replace(state, '\"2\"', '\"9\"')"], 3),
    "a renamed account": (["UPDATE heldout_accounts SET name = 'x' WHERE sequence = 3"], 3),
    "an account moved under another": (
        ["UPDATE heldout_accounts SET parent = (SELECT id FROM heldout_accounts WHERE sequence = 6)"
         " WHERE sequence = 3"], 3),
    "a ledger closed to rows": (["UPDATE heldout_ledger SET closed = 1"], None),
    "an account tied to other rows": (
        ["UPDATE heldout_ties SET mac = 'other rows' WHERE account = "
         "(SELECT id FROM heldout_accounts WHERE sequence = 3)"], 3),
    "a deleted tie": (
        ["DELETE FROM heldout_ties WHERE account = "
         "(SELECT id FROM heldout_accounts WHERE sequence = 3)"], 3),
    "a deleted account": (["DELETE FROM heldout_accounts WHERE sequence = 3"], 3),
    "an account pointed to an older entry": (
        [f"UPDATE heldout_accounts SET sequence = 2, head = (SELECT hash FROM {ENTRIES} WHERE "
         "sequence = 2), state = replace(state, '2/3', '1/3') WHERE sequence = 3"], 3),
    "an edited head": (["UPDATE heldout_ledger SET head = 'f'"], 6),
    "a head set back": (
        [f"UPDATE heldout_ledger SET sequence = 5, head = (SELECT hash FROM {ENTRIES} WHERE "
         "sequence = 5)"], 6),
    "another name": (["UPDATE heldout_ledger SET ledger = '00'"], None),
    "no row of its own": (["DELETE FROM heldout_ledger"], None),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_noticed_and_refused(written, path, what):
    statements, sequence = CHANGES[what]
    change(path, *statements)
    error = everything_refuses(path, written)
    if sequence is not None:
        assert error.sequence == sequence


@pytest.mark.parametrize(
    "what",
    ["an edited total", "an edited budget", "a deleted last entry", "all entries deleted",
     "a forged entry at the end", "an edited head", "a head set back", "no row of its own"],
)  # fmt: skip
def test_a_changed_end_is_noticed_by_the_next_booking(written, path, event, what):
    account = written.account(b"first", budget=None)
    change(path, *CHANGES[what][0])
    with pytest.raises(LedgerTampered):
        written.book(account, event, request={})


def rewrite(path, edit):
    """Edit bodies and forge every hash after them, totals and head included: a perfect chain."""
    connection = sqlite3.connect(path)
    with connection:
        name = connection.execute("SELECT ledger FROM heldout_ledger").fetchone()[0]
        from heldout.kernel.ledger.records import first_hash

        previous = first_hash(name)
        rows = connection.execute(f"SELECT sequence, account, body FROM {ENTRIES} ORDER BY 1")
        for sequence, account, body in rows.fetchall():
            content = json.loads(body)
            edit(content)
            forged = canonical(content)
            hashed = link(previous, forged)
            connection.execute(
                f"UPDATE {ENTRIES} SET previous = ?, hash = ?, body = ? WHERE sequence = ?",
                (previous, hashed, forged, sequence),
            )
            connection.execute(
                "UPDATE heldout_accounts SET state = ?, sequence = ?, head = ? WHERE id = ?",
                (canonical({name: content[name] for name in ("budget", "spent")}), sequence,
                 hashed, account),
            )  # fmt: skip
            connection.execute("UPDATE heldout_ledger SET head = ?", (hashed,))
            previous = hashed
    connection.close()


def unknown_event(content):
    if content["sequence"] == 3:
        content["event"]["kind"] = "hope"


def cheaper_price(content):
    if content["sequence"] == 3:
        content["loss"] = content["charge"] = {"epsilon": "0", "delta": "0"}


def cheaper_loss(content):
    if content["sequence"] == 3:
        content["loss"] = {"epsilon": "0", "delta": "0"}


def wrong_sum(content):
    if content["sequence"] == 3:
        content["spent"]["epsilon"] = "1/3"


def overspent(content):
    content["budget"]["epsilon"] = "1/2"


def foreign(content):
    content["ledger"] = "0"


@pytest.mark.parametrize(
    "edit", [unknown_event, cheaper_price, cheaper_loss, wrong_sum, overspent, foreign]
)
def test_a_chain_with_perfect_hashes_must_still_add_up(written, path, edit):
    rewrite(path, edit)
    # Without a witness only the arithmetic can tell.
    with pytest.raises(LedgerTampered) as refusal:
        Ledger.open(path, witness=None).verify()
    assert refusal.value.sequence == (1 if edit is foreign else 3)


def test_an_entry_that_was_forged_with_its_own_hash_is_not_what_the_next_one_follows(written, path):
    second = written.entries()[0]
    forged = second.body.replace("auc", "roc")
    hashed = link(second.previous, forged)
    change(path, f"UPDATE {ENTRIES} SET body = '{forged}', hash = '{hashed}' WHERE sequence = 2")
    assert second.sequence == 2
    with pytest.raises(LedgerTampered, match="does not follow") as refusal:
        Ledger.open(path, witness=None).verify()
    assert refusal.value.sequence == 3


def test_rows_that_were_tied_to_another_account_find_neither(written, path):
    accounts = "(SELECT id FROM heldout_accounts WHERE sequence = {})".format
    change(path, f"UPDATE heldout_ties SET account = {accounts(6)} WHERE account = {accounts(3)}")
    with pytest.raises(LedgerTampered, match="tied to other rows"):
        written.account(b"first", budget=None)
    assert written.account(b"second", budget=None)


def test_a_forged_chain_that_adds_up_is_noticed_by_witness_object_and_receipt(written, path, event):
    receipt = written.entries()[0].hash

    def other_request(content):
        if content["kind"] == "booking":
            content["request"] = {"release": "nothing"}

    rewrite(path, other_request)
    everything_refuses(path, written)
    forged = Ledger.open(path, witness=None)
    with pytest.raises(LedgerTampered, match="No entry of this ledger has this receipt"):
        forged.verify(receipt=receipt)


def witnessed(place):
    from heldout.kernel.ledger.witness import WitnessFile

    return WitnessFile(place).read()


def copy(path, target, *, closed):
    """A consistent copy of a ledger that nobody is writing: no connection, so no -wal file."""
    closed.close()
    assert not path.with_name(path.name + "-wal").exists()
    shutil.copy(path, target)


def test_a_rolled_back_file_is_noticed(written, path, tmp_path, event):
    old = tmp_path / "old"
    copy(path, old, closed=written)
    account = written.account(b"first", budget=None)
    receipt = written.book(account, event, request={})
    copy(old, path, closed=written)
    error = everything_refuses(path, written)
    assert error.sequence == receipt.sequence
    for attempt in (lambda: written.book(account, event, request={}),
                    lambda: written.remaining(account), written.history,
                    lambda: written.account(b"third", budget=Budget(epsilon=1))):  # fmt: skip
        with pytest.raises(LedgerTampered):
            attempt()


def test_a_rolled_back_file_that_was_written_to_again_is_noticed(written, path, tmp_path, event):
    old = tmp_path / "old"
    copy(path, old, closed=written)
    account = written.account(b"first", budget=None)
    written.book(account, event, request={})
    copy(old, path, closed=written)
    stranger = Ledger.open(path, witness=None)
    for _ in range(3):
        stranger.book(account, event, request={})
    everything_refuses(path, written)


def test_a_rolled_back_file_is_noticed_without_a_witness_by_who_saw_more(path, tmp_path, event):
    ledger = Ledger.open(path, witness=None)
    account = ledger.account(b"rows", budget=Budget(epsilon=2))
    copy(path, tmp_path / "old", closed=ledger)
    receipt = ledger.book(account, event, request={})
    copy(tmp_path / "old", path, closed=ledger)
    with pytest.raises(LedgerTampered):
        ledger.book(account, event, request={})
    with pytest.raises(LedgerTampered):
        Ledger.open(path, witness=None).verify(receipt=receipt.hash)


def test_what_the_docstring_says_cannot_be_seen_is_indeed_not_seen(written, path, tmp_path, event):
    """Both put back to the same older copy: only a receipt kept elsewhere can tell."""
    witness = path.with_name(path.name + ".witness")
    copy(path, tmp_path / "old", closed=written)
    shutil.copy(witness, tmp_path / "old witness")
    receipt = written.book(written.account(b"first", budget=None), event, request={})
    copy(tmp_path / "old", path, closed=written)
    shutil.copy(tmp_path / "old witness", witness)
    fresh = Ledger.open(path)
    with pytest.raises(LedgerTampered):
        fresh.verify(receipt=receipt.hash)


def test_a_missing_ledger_beside_its_witness_is_refused(written, path, event):
    account = written.account(b"first", budget=None)
    path.unlink()
    everything_refuses(path, written)
    assert not path.exists()
    with pytest.raises(LedgerTampered):
        written.book(account, event, request={})
    path.touch()
    everything_refuses(path)


def test_a_missing_witness_is_refused_until_it_is_renewed(written, path, event):
    witness = path.with_name(path.name + ".witness")
    witness.unlink()
    everything_refuses(path, written)
    renewed = Ledger.open(path, renew_witness=True)
    assert witnessed(witness).sequence == 6
    renewed.book(renewed.account(b"first", budget=None), event, request={})
    assert Ledger.open(path).verify().entries == 7


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"ledger":"a","sequence":"9","hash":"b"}'])
def test_a_witness_that_cannot_be_read_is_refused(written, path, content):
    path.with_name(path.name + ".witness").write_text(content)
    with pytest.raises(LedgerError, match="witness must be a readable file"):
        Ledger.open(path)


def test_the_witness_of_another_ledger_is_refused(written, path, tmp_path):
    Ledger.open(tmp_path / "other.sqlite")
    shutil.copy(tmp_path / "other.sqlite.witness", path.with_name(path.name + ".witness"))
    assert "not the ledger that" in str(everything_refuses(path, written))


def test_a_ledger_may_be_ahead_of_its_witness_after_a_crash(written, path, event, monkeypatch):
    from heldout.kernel.ledger.witness import WitnessFile

    monkeypatch.setattr(WitnessFile, "write", lambda self, witness: None)
    account = written.account(b"first", budget=None)
    written.book(account, event, request={})
    monkeypatch.undo()
    again = Ledger.open(path)
    assert again.verify().entries == 7
    assert witnessed(path.with_name(path.name + ".witness")).sequence == 7


def test_what_was_booked_is_delivered_though_the_witness_cannot_be_written(
    written, path, event, monkeypatch
):
    """The booking is durable, so its receipt is given; nothing more is booked before it is seen."""
    import os

    def full(*_):
        raise OSError(28, "No space left on device")

    account = written.account(b"first", budget=None)
    before = written.spent(account).epsilon
    monkeypatch.setattr(os, "pwrite", full)
    receipt = written.book(account, event, request={})
    paid = before + receipt.charge.epsilon
    assert written.spent(account).epsilon == paid
    for _ in range(2):
        with pytest.raises(LedgerError, match="witness must be writable"):
            written.book(account, event, request={})
    monkeypatch.undo()
    assert written.spent(account).epsilon == paid, "what was refused was not taken"
    witness = path.with_name(path.name + ".witness")
    assert witnessed(witness).sequence < receipt.sequence
    later = written.book(account, event, request={})
    assert witnessed(witness).sequence == later.sequence == receipt.sequence + 1
    assert written.verify(receipt=receipt.hash).entries == later.sequence
    written.close()
    beside = ("", ".key", ".witness")
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name + each for each in beside]


def test_a_witness_that_may_not_be_written_is_noticed_before_anything_is_taken(
    written, path, event, monkeypatch
):
    import os

    account, opened = written.account(b"first", budget=None), os.open
    before = written.spent(account).epsilon

    def denied(place, flags, *more):
        if str(place).endswith(".witness") and flags & os.O_WRONLY:
            raise PermissionError(13, "Permission denied")
        return opened(place, flags, *more)

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(LedgerError, match="Nothing was booked"):
        written.book(account, event, request={})
    with pytest.raises(LedgerError, match="Nothing was booked"):
        written.register("trial", budget=Budget(epsilon=1))
    monkeypatch.undo()
    assert written.spent(account).epsilon == before
    assert written.registered_by("trial") is None


def test_an_entry_that_the_witness_missed_is_not_forgotten_by_the_ledger(
    written, path, event, monkeypatch
):
    """Put back to the copy that its witness still knows, while the object is open."""
    import os

    account = written.account(b"first", budget=None)
    copy = path.read_bytes()
    monkeypatch.setattr(os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    written.book(account, event, request={})
    monkeypatch.undo()
    written.close()
    path.write_bytes(copy)
    with pytest.raises(LedgerError):
        written.book(account, event, request={})


def test_changes_are_noticed_on_postgresql_as_well(postgres, event):
    import sqlalchemy as sa

    ledger = Ledger.open(postgres)
    account = ledger.account(b"rows", budget=Budget(epsilon=2))
    for _ in range(2):
        ledger.book(account, event, request={})
    engine = sa.create_engine(postgres)
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM heldout_entries WHERE sequence = 3")
        connection.exec_driver_sql(
            "UPDATE heldout_ledger SET sequence = 2, head = "
            "(SELECT hash FROM heldout_entries WHERE sequence = 2)"
        )
        connection.exec_driver_sql(
            "UPDATE heldout_accounts SET sequence = 2, state = replace(state, '2/3', '1/3'), "
            "head = (SELECT hash FROM heldout_entries WHERE sequence = 2)"
        )
    engine.dispose()
    with pytest.raises(LedgerTampered) as refusal:
        ledger.book(account, event, request={})
    assert refusal.value.sequence == 3


def test_a_witness_can_watch_a_database_too(postgres, tmp_path, event):
    ledger = Ledger.open(postgres, witness=tmp_path / "witness")
    account = ledger.account(b"rows", budget=Budget(epsilon=2))
    receipt = ledger.book(account, event, request={})
    assert witnessed(tmp_path / "witness").hash == receipt.hash


def test_a_price_of_a_newer_version_is_not_trusted(written, path, event, monkeypatch):
    from heldout.kernel import events

    newer = dict(events._RULES)
    del newer["exponential", 1]
    monkeypatch.setattr(events, "_RULES", newer)
    with pytest.raises(LedgerTampered, match="cannot price"):
        Ledger.open(path).verify()
    assert Event.decode(event.encode()) == event
