"""A booking with a reference is made once."""

import contextlib
import threading
from fractions import Fraction
from typing import Any

import pytest
import sqlalchemy as sa

from heldout.errors import AlreadyBooked
from heldout.kernel import Budget, Ledger, Loss


def test_a_reference_is_booked_once(ledger: Any, account: Any, event: Any) -> None:
    receipt = ledger.book(account, event, request={"reference": "evaluation-1"})
    with pytest.raises(AlreadyBooked) as caught:
        ledger.book(account, event, request={"reference": "evaluation-1"})
    assert (caught.value.sequence, caught.value.receipt) == (receipt.sequence, receipt.hash)
    assert ledger.spent(account) == Loss.pure(Fraction(1, 3))
    assert ledger.booked("evaluation-1").hash == receipt.hash
    assert ledger.booked("evaluation-2") is None
    ledger.book(account, event, request={})
    ledger.verify()


def test_of_ten_threads_with_one_reference_one_books(tmp_path: Any, event: Any) -> None:
    place = tmp_path / "ledger.sqlite"
    with Ledger.open(place) as first:
        account = first.account(b"rows", budget=Budget(epsilon=9))
    booked: list[Any] = []

    def book() -> None:
        with Ledger.open(place) as mine, contextlib.suppress(AlreadyBooked):
            booked.append(mine.book(account, event, request={"reference": "same"}))

    threads = [threading.Thread(target=book) for _ in range(10)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(booked) == 1


def test_a_ledger_from_before_references_learns_them(tmp_path: Any, event: Any) -> None:
    place = tmp_path / "ledger.sqlite"
    with Ledger.open(place) as first:
        account = first.account(b"rows", budget=Budget(epsilon=9))
    with sa.create_engine(f"sqlite:///{place}").begin() as connection:
        connection.exec_driver_sql("DROP TABLE heldout_references")
    with Ledger.open(place, read_only=True) as looking:
        looking.verify()
    with Ledger.open(place) as again:
        again.book(account, event, request={"reference": "first"})
        with pytest.raises(AlreadyBooked):
            again.book(account, event, request={"reference": "first"})


def test_the_check_before_a_booking_takes_nothing(ledger: Any, account: Any, event: Any) -> None:
    ledger.check(account, event)
    budget, spent, left = ledger.standing(account)
    assert (spent, left.epsilon) == (Loss.pure(0), budget.epsilon)
    assert ledger.head().sequence == 1
