"""Races, forks and crashes: what must hold when more than one process is at work."""

import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from heldout.errors import LedgerError, LedgerTampered
from heldout.kernel import Budget, Event, Ledger, Loss
from heldout.kernel.ledger import storage

HERE = Path(__file__).parent
PROCESSES, GRANTS = 64, 10


def race(where, rounds):
    command = [sys.executable, str(HERE / "race.py"), str(where), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def exactly_ten_each(result, rounds):
    expected = {"granted": GRANTS, "refused": PROCESSES - GRANTS, "accounts": 1}
    assert result["rounds"] == [expected] * rounds
    assert result["entries"] == rounds * (1 + GRANTS)


@pytest.mark.slow
def test_of_64_processes_on_a_file_with_budget_for_10_exactly_10_are_granted(tmp_path):
    exactly_ten_each(race(tmp_path / "ledger.sqlite", 3), 3)


@pytest.mark.slow
def test_of_64_processes_on_postgresql_with_budget_for_10_exactly_10_are_granted(postgres):
    exactly_ten_each(race(postgres, 3), 3)


def in_a_forked_child(work, fork=os.fork):
    """Run it in a child and return the child's exit code."""
    child = fork()
    if child == 0:
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_a_forked_child_and_its_parent_share_one_budget(kind, request, tmp_path, event):
    where = tmp_path / "ledger.sqlite" if kind == "file" else request.getfixturevalue("postgres")
    ledger = Ledger.open(where)
    account = ledger.account(b"rows", budget=Budget(epsilon=1))
    ledger.book(account, event, request={})

    def work():
        ledger.book(account, event, request={})
        return 0

    assert in_a_forked_child(work) == 0
    ledger.book(account, event, request={})
    assert ledger.remaining(account) == Loss.pure(0)
    assert ledger.verify().entries == 4


def test_a_fork_waits_for_the_booking_of_another_thread(tmp_path):
    """SQLite's locks belong to a process: no connection may be open while it forks."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    account = ledger.account(b"rows", budget=Budget(epsilon=1000))
    thousandth, done = Event("exponential", {"epsilon": "1/1000"}), threading.Event()
    booked = []

    def book_on():
        while not done.is_set():
            booked.append(ledger.book(account, thousandth, request={}).hash)

    def work():
        signal.alarm(60)
        for _ in range(3):
            ledger.book(account, thousandth, request={})
        return 0

    other = threading.Thread(target=book_on)
    other.start()
    codes = [in_a_forked_child(work) for _ in range(8)]
    done.set()
    other.join()
    assert codes == [0] * 8
    entries = [entry.hash for entry in ledger.entries()]
    assert len(entries) == len(booked) + 8 * 3
    assert set(booked) <= set(entries)
    assert ledger.verify().entries == len(entries) + 1


def booked_anyway(ledger, file, account, event):
    """Return 1 if a child books with its parent's ledger or one of its own, and 0 if it refuses."""
    for open_ledger in (lambda: ledger, lambda: Ledger.open(file)):
        try:
            open_ledger().book(account, event, request={})
            return 1
        except LedgerError:
            pass
    return 0


def test_a_child_that_was_forked_within_a_transaction_refuses(tmp_path, event, monkeypatch):
    monkeypatch.setattr(storage, "FORK_PATIENCE", 0.1)
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    account = ledger.account(b"rows", budget=Budget(epsilon=1))

    def work():
        signal.alarm(20)
        return booked_anyway(ledger, tmp_path / "ledger.sqlite", account, event)

    with ledger._storage.lock:
        codes = []
        other = threading.Thread(target=lambda: codes.append(in_a_forked_child(work)))
        other.start()
        other.join()
    assert codes == [0]
    ledger.book(account, event, request={})
    assert ledger.spent(account) == Loss.pure("1/3")


def test_two_threads_that_fork_at_once_let_go_of_their_own_locks(tmp_path, monkeypatch):
    """The second gives up on a lock that the first has, and takes one that the first has not."""
    monkeypatch.setattr(storage, "FORK_PATIENCE", 0.05)
    ledgers = [Ledger.open(tmp_path / "one.sqlite")]
    inside, go, problems = threading.Event(), threading.Event(), []

    def fork(first):
        storage._before_fork()
        if first:
            inside.set()
            go.wait(10)
        try:
            storage._after_in_parent()
        except RuntimeError as problem:
            problems.append(problem)

    first, second = (threading.Thread(target=fork, args=(is_first,)) for is_first in (True, False))
    first.start()
    inside.wait(10)
    ledgers.append(Ledger.open(tmp_path / "two.sqlite"))
    second.start()
    second.join(0.3)
    go.set()
    first.join(10)
    second.join(10)
    assert not problems
    for ledger in ledgers:
        assert ledger._storage.lock.acquire(timeout=1)
        ledger._storage.lock.release()


def test_a_child_that_was_forked_without_pythons_knowledge_refuses(tmp_path, event):
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    account = ledger.account(b"rows", budget=Budget(epsilon=1))

    def work():
        return booked_anyway(ledger, tmp_path / "ledger.sqlite", account, event)

    assert in_a_forked_child(work, fork=ctypes.PyDLL(None).fork) == 0
    ledger.book(account, event, request={})
    assert ledger.spent(account) == Loss.pure("1/3")


def test_a_parent_that_closes_last_leaves_the_childs_booking(tmp_path, event):
    """Closing the last connection removes SQLite's log: a child's booking must not be in it."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    account = ledger.account(b"rows", budget=Budget(epsilon=1))
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            ledger.book(account, event, request={})
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            ledger.book(account, event, request={})
            code = 0
        finally:
            os._exit(code)
    os.read(ready[0], 1)
    ledger.book(account, event, request={})
    ledger.close()
    os.write(go[1], b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert Ledger.open(tmp_path / "ledger.sqlite").verify().entries == 4


def test_a_file_that_was_replaced_under_an_open_ledger_is_not_written_to(tmp_path, event):
    """The kept connection belongs to the old file: what is booked must be in the one in place."""
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger.open(path)
    account = ledger.account(b"rows", budget=Budget(epsilon=1))
    ledger.close()
    path.with_name("old").write_bytes(path.read_bytes())
    ledger.book(account, event, request={})
    path.with_name("old").replace(path)
    for log in ("-wal", "-shm"):
        path.with_name(path.name + log).unlink()
    with pytest.raises(LedgerTampered):
        ledger.book(account, event, request={})


def test_a_ledger_in_memory_refuses_to_work_in_a_forked_child(event):
    """Two copies of one budget would be two budgets."""
    ledger = Ledger.open(None)
    account = ledger.account(b"rows", budget=Budget(epsilon=1))

    def work():
        try:
            ledger.book(account, event, request={})
        except LedgerError:
            return 7
        return 0

    assert in_a_forked_child(work) == 7
    ledger.book(account, event, request={})


def killed_after(where, seconds):
    """The receipts that a process printed before kill -9."""
    command = [sys.executable, str(HERE / "booker.py"), str(where)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as booker:
        assert booker.stdout.readline() == "ready\n"
        time.sleep(seconds)
        booker.kill()
        lines = booker.stdout.read().split("\n")
    return lines[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_a_booking_that_returned_survives_kill_9(kind, request, tmp_path):
    where = tmp_path / "ledger.sqlite" if kind == "file" else request.getfixturevalue("postgres")
    receipts = []
    for _ in range(6):
        receipts += killed_after(where, random.uniform(0, 0.1))
        ledger = Ledger.open(where)
        booked = [entry.hash for entry in ledger.entries()]
        missing = set(receipts) - set(booked)
        assert not missing
        # At most one booking a crash that was made and not returned: charged, never the reverse.
        assert len(booked) <= len(receipts) + 6
        account = ledger.account(b"rows", budget=None)
        assert ledger.spent(account).epsilon * 1000 == len(booked)
        ledger.close()
    assert receipts
