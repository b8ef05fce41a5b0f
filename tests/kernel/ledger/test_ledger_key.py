"""The key that protects the digests of rows is kept apart, and old ledgers are brought along."""

import itertools
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import heldout as ho
from heldout.errors import (
    AccountClosed,
    AlreadyBooked,
    LedgerError,
    LedgerKeyError,
    LedgerTampered,
)
from heldout.kernel import Account, Budget, Ledger, Loss, Protection
from heldout.kernel.ledger.keys import mac_of

OLD = Path(__file__).parent / "old"
ONE = Budget(epsilon=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


def key_of(path):
    return path.with_name(path.name + ".key")


def stored(path):
    """Whatever of a ledger is on disk, without its key."""
    files = [each for each in path.parent.iterdir() if each != key_of(path)]
    return b"".join(each.read_bytes() for each in files if each.is_file())


def test_the_key_has_a_file_of_its_own_that_only_the_custodian_reads(path):
    with Ledger.open(path) as ledger:
        assert not key_of(path).exists()
        ledger.register("trial", budget=ONE)
        assert not key_of(path).exists()
        ledger.account(b"rows", budget=ONE)
        assert stat.S_IMODE(key_of(path).stat().st_mode) == 0o600
        key = key_of(path).read_text().strip()
        assert len(bytes.fromhex(key)) == 32
        assert key.encode() not in stored(path)
        assert bytes.fromhex(key) not in stored(path)


def test_the_ledger_does_not_tell_the_label_of_the_last_row(tmp_path):
    """Whoever knows all rows but one label makes both tables and looks which one is on record."""
    rows = {"y": [0, 1, 1, 0, 1], "p": [0.1, 0.4, 0.5, 0.2, 0.9]}
    path = tmp_path / "ledger.sqlite"

    def digests(label):
        guess = ho.Dataset(rows | {"y": [*rows["y"][:4], label]}, label="y", score="p")
        return guess._fingerprints

    ho.Session(ho.Dataset(rows, label="y", score="p"), budget=ONE, ledger=path)

    def found(keys):
        with sqlite3.connect(path) as connection:
            macs = {row[0] for row in connection.execute("SELECT mac FROM heldout_ties")}
        return {
            label
            for label, key in itertools.product((0, 1), keys)
            if macs & {mac_of(key, each) for each in digests(label)}
        }

    # Every text of the file as a key, as the first version's was, tells nothing ...
    with sqlite3.connect(path) as connection:
        cells = [row for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for row in connection.execute(f"SELECT * FROM {name}").fetchall()]  # fmt: skip
    texts = {cell for row in cells for cell in row if isinstance(cell, str)}
    hexes = [bytes.fromhex(each) for each in texts if set(each) <= set("0123456789abcdef")]
    assert hexes
    assert found([*hexes, *(each.encode() for each in texts)]) == set()
    # ... and the key does: the test can tell.
    assert found([bytes.fromhex(key_of(path).read_text())]) == {1}


def test_show_and_verify_and_registered_accounts_need_no_key(path, event):
    with Ledger.open(path) as ledger:
        ledger.register("trial", budget=ONE, unit="id")
        ledger.book(ledger.account(b"rows", budget=ONE), event, request={})
    key_of(path).unlink()
    with Ledger.open(path) as ledger:
        assert ledger.verify().entries == 3
        assert len(ledger.entries()) == 1
        protection = Protection(neighbours="replace-one", unit=True, unit_name="id")
        account = ledger.resolve(
            fingerprints=(), protection=protection, rows=None, name=None, account="trial"
        )
        ledger.book(account, event, request={})
    assert not key_of(path).exists()


def test_a_lost_key_is_a_clear_error_with_a_way_on(path, event):
    protection = Protection(neighbours="add-remove")
    with Ledger.open(path) as ledger:
        account = ledger.account(b"rows", budget=ONE, name="a.csv", protection=protection)
        ledger.book(account, event, request={})
    key_of(path).unlink()
    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerKeyError, match=r"Restore .*ledger\.sqlite\.key.*rekey"):
            ledger.account(b"rows", budget=ONE)
        ledger.renew_key(who="ada", why="the disk died")
        assert ledger.verify().entries == 3
        again = ledger.resolve(
            fingerprints=(), protection=protection, rows=None, name=None, account="a.csv"
        )
        assert ledger.remaining(again) == Loss.pure("2/3")
        # The same rows under the same name get no second budget by accident.
        with pytest.raises(LedgerError.__mro__[1], match="new=True"):
            ledger.account(b"rows", budget=ONE, name="a.csv", protection=protection)


def test_the_key_of_another_ledger_is_refused(path, tmp_path):
    other = tmp_path / "other.sqlite"
    for each in (path, other):
        with Ledger.open(each) as ledger:
            ledger.account(b"rows", budget=ONE)
    shutil.copy(key_of(other), key_of(path))
    with Ledger.open(path) as ledger, pytest.raises(LedgerKeyError, match="another one"):
        ledger.account(b"rows", budget=ONE)
    key_of(path).write_text("not a key")
    with Ledger.open(path) as ledger, pytest.raises(LedgerKeyError, match="64 hexadecimal"):
        ledger.account(b"rows", budget=ONE)


@pytest.mark.parametrize("how", ["variable", "command", "file"])
def test_the_key_may_come_from_elsewhere(path, tmp_path, monkeypatch, how):
    place, options = tmp_path / "vault", {}
    place.write_text("ab" * 32)
    if how == "variable":
        monkeypatch.setenv("HELDOUT_LEDGER_KEY", place.read_text())
    elif how == "command":
        monkeypatch.setenv("HELDOUT_LEDGER_KEY_COMMAND", f"cat '{place}'")
    else:
        options["key"] = place
    for _ in range(2):
        with Ledger.open(path, **options) as ledger:
            account = ledger.account(b"rows", budget=ONE)
            assert len(ledger.history(account)) == 1
    assert not key_of(path).exists()
    monkeypatch.setenv("HELDOUT_LEDGER_KEY_COMMAND", "false")
    monkeypatch.delenv("HELDOUT_LEDGER_KEY", raising=False)
    with Ledger.open(path) as ledger, pytest.raises(LedgerKeyError, match="failed"):
        ledger.account(b"rows", budget=ONE)


def test_a_database_has_its_key_in_the_home(postgres, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with Ledger.open(postgres) as ledger:
        ledger.account(b"rows", budget=ONE)
        name = ledger.verify().ledger
    file = tmp_path / ".heldout" / f"{name}.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


# --- a ledger of the first version ---------------------------------------------------------------


@pytest.fixture
def old(path):
    """As version 1 wrote it: two accounts, three digests of the first, three bookings."""
    with sqlite3.connect(path) as connection:
        connection.executescript((OLD / "ledger_v1.sql").read_text())
    connection.close()
    shutil.copy(OLD / "ledger_v1.witness", path.with_name(path.name + ".witness"))
    return path


RECEIPT = "a9b5a1049522b31f24dcd7ccc9c76ab5c6d9cad947689f49e40da89aadde8f64"
OLD_KEY = "0c072a01d1c1f81f32e1bb2b7c130637968421103d68d01b5b63a536ebb180fc"


def test_an_old_ledger_opens_verifies_and_finds_its_rows(old, event):
    with Ledger.open(old) as ledger:
        assert ledger.verify(receipt=RECEIPT).receipt_sequence == 6
        row = Protection(neighbours="replace-one")
        for digest in (b"first rows", b"first keys", b"other cells"):
            account = ledger.account(digest, budget=None, protection=row)
            assert ledger.remaining(account) == Loss.pure(1)
        ledger.book(account, event, request={})
        person = Protection(
            neighbours="add-remove", unit=True, rows_per_unit=2, unit_name="patient_id"
        )
        second = ledger.account(b"second", budget=None, protection=person)
        assert str(ledger.spent(second)) == "rho 1/18"
        assert ledger.spent("first.parquet") == Loss.pure("4/3")
        ledger.register("trial", budget=ONE)
    with Ledger.open(old) as ledger:
        assert ledger.verify().entries == 8


def test_the_key_of_an_old_ledger_leaves_no_trace_in_its_file(old):
    assert OLD_KEY.encode() in stored(old)
    with Ledger.open(old):
        assert key_of(old).read_text().strip() == OLD_KEY
        assert stat.S_IMODE(key_of(old).stat().st_mode) == 0o600
        assert OLD_KEY.encode() not in stored(old)


def test_an_old_ledger_that_was_changed_is_refused_afterwards(old):
    with sqlite3.connect(old) as connection:
        connection.execute("UPDATE heldout_accounts SET spent = replace(spent, '\"1\"', '\"0\"')")
    connection.close()
    with pytest.raises(LedgerTampered):
        Ledger.open(old).verify()


def test_a_migration_does_not_overwrite_the_key_of_another_ledger(old):
    key_of(old).write_text("ab" * 32)
    with pytest.raises(LedgerKeyError, match="Another key"):
        Ledger.open(old)
    assert key_of(old).read_text() == "ab" * 32
    key_of(old).unlink()
    assert Ledger.open(old).verify().entries == 6


def test_an_old_ledger_on_postgresql_is_brought_along(postgres, monkeypatch, tmp_path):
    import sqlalchemy as sa

    monkeypatch.setenv("HOME", str(tmp_path))
    statements = (OLD / "ledger_v1.sql").read_text().replace('"key"', "key").split(";\n")
    engine = sa.create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for each in statements[1:-2]:
            connection.exec_driver_sql(each)
    engine.dispose()
    with Ledger.open(postgres) as ledger:
        assert ledger.verify(receipt=RECEIPT).entries == 6
        row = Protection(neighbours="replace-one")
        assert ledger.account(b"first keys", budget=None, protection=row)


# --- a ledger of the second version, as its first code wrote it ----------------------------------


def test_a_ledger_that_earlier_code_wrote_goes_on(path, event):
    """Made through SQLAlchemy by version 0.1: rows by content, people, shares, a reference."""
    with sqlite3.connect(path) as connection:
        connection.executescript((OLD / "ledger_v2.sql").read_text())
    connection.close()
    for kind in ("witness", "key"):
        shutil.copy(OLD / f"ledger_v2.{kind}", path.with_name(f"{path.name}.{kind}"))
    with Ledger.open(path) as ledger:
        assert ledger.verify().entries == 11
        rows = ledger.resolve(
            fingerprints=[b"cells"],
            protection=Protection(neighbours="replace-one"),
            rows=7,
            name="other.csv",
        )
        assert ledger.spent(rows) == Loss.pure("1/3")
        share = ledger.share("trial", "ana")
        assert str(share.budget) == "epsilon 1.5"
        assert ledger.share("trial", "ben") is None
        with pytest.raises(AlreadyBooked):
            ledger.book(share, event, request={"reference": "one"})
        ledger.book(share, event, request={"reference": "two"})
        assert ledger.spent("patients") == Loss.pure("2/3")
        with pytest.raises(AccountClosed):
            ledger.book(Account(ledger.history("old")[0].account, ONE), event, request={})
    with Ledger.open(path) as ledger:
        assert ledger.verify().entries == 12


# --- looking without writing ---------------------------------------------------------------------


def test_a_ledger_on_read_only_media_can_be_looked_at(path, event, tmp_path):
    with Ledger.open(path) as ledger:
        ledger.book(ledger.account(b"rows", budget=ONE), event, request={})
        (tmp_path / "open").mkdir()
        for each in path.parent.glob("ledger.sqlite*"):  # as a backup takes it: log and all
            shutil.copy(each, tmp_path / "open" / each.name)
    (tmp_path / "closed").mkdir()
    for each in path.parent.glob("ledger.sqlite*"):
        shutil.copy(each, tmp_path / "closed" / each.name)
    assert (tmp_path / "open" / "ledger.sqlite-wal").stat().st_size
    code = (
        "import os, sys; from heldout.kernel.ledger import storage; from heldout import Ledger\n"
        "os.getuid() or os.setuid(65534)  # root may write anywhere\n"
        "with Ledger.open(sys.argv[1], read_only=True) as ledger:\n"
        "    print(len(ledger.entries()), ledger.verify().entries)"
    )
    for folder in ("open", "closed"):
        place = tmp_path / folder
        (place / "ledger.sqlite-shm").unlink(missing_ok=True)
        before = sorted(place.iterdir())
        for each in place.iterdir():
            each.chmod(0o000 if each.name.endswith(".key") else 0o444)
        place.chmod(0o555)
        for above in place.parents[:-2]:
            if above.stat().st_uid == os.getuid():
                above.chmod(above.stat().st_mode | 0o055)
        command = [sys.executable, "-c", code, str(place / "ledger.sqlite")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("1 2\n", "")
        assert sorted(place.iterdir()) == before
        place.chmod(0o755)


def test_a_ledger_that_is_only_read_takes_nothing(path, event):
    with Ledger.open(path) as ledger:
        account = ledger.register("trial", budget=ONE)
    with Ledger.open(path, read_only=True) as ledger:
        for write in (
            lambda: ledger.book(account, event, request={}),
            lambda: ledger.register("other", budget=ONE),
            lambda: ledger.account(b"rows", budget=ONE),
        ):
            with pytest.raises(LedgerError, match="opened read-only"):
                write()
        assert ledger.verify().entries == 1
        assert ledger.remaining("trial") == Loss.pure(1)


def test_what_a_killed_process_left_of_a_witness_is_removed(path):
    with Ledger.open(path) as ledger:
        ledger.register("trial", budget=ONE)
    left, fresh, mine = (
        path.with_name(f"{path.name}.witness.{each}")
        for each in ("123.0a1b2c3d", "124.0a1b2c3d", "backup")
    )
    for each in (left, fresh, mine):
        each.write_text("")
    os.utime(left, (0, 0))
    os.utime(mine, (0, 0))
    Ledger.open(path).close()
    assert (left.exists(), fresh.exists(), mine.exists()) == (False, True, True)


@pytest.mark.parametrize("name", ["what?.sqlite", "back\\slash.sqlite", "a%20#b.sqlite", "é ü"])
def test_a_ledger_may_have_an_awkward_name(tmp_path, name, event):
    path = tmp_path / name
    with Ledger.open(path) as ledger:
        ledger.book(ledger.account(b"rows", budget=ONE), event, request={})
    assert path.exists()
    with Ledger.open(path, read_only=True) as ledger:
        assert ledger.verify().entries == 2
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        name, f"{name}.key", f"{name}.witness"]  # fmt: skip
