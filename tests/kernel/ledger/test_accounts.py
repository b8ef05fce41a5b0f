"""Accounts are a tree: people > data set > analyst, and a booking is taken from all of its path."""

import pytest

from heldout.errors import (
    AccountClosed,
    ArgumentError,
    BudgetExceeded,
    BudgetMismatch,
    LedgerError,
    LedgerTampered,
)
from heldout.kernel import Budget, Ledger, Loss, Protection

PERSON = Protection(neighbours="replace-one", unit=True, unit_name="patient_id")
ONE, TWO = Budget(epsilon=1), Budget(epsilon=2)


def resolved(ledger, account, *, protection=PERSON, rows=None, **more):
    return ledger.resolve(
        fingerprints=(),
        protection=protection,
        rows=rows,
        name="any.parquet",
        account=account,
        **more,
    )


@pytest.fixture
def hospital(ledger):
    """Two data sets about the same people, and an analyst with a share of one."""
    ledger.register("people", budget=ONE, unit="patient_id")
    ledger.register("2025", budget=ONE, unit="patient_id", people="people")
    ledger.register("2026", budget=ONE, unit="patient_id", people="people")
    ledger.grant("2026", analyst="ana", budget=Budget(epsilon="2/3"))
    return ledger


def test_a_booking_is_taken_from_every_account_on_its_path(hospital, event):
    share = resolved(hospital, "2026", analyst="ana")
    hospital.book(share, event, request={"model": "risk"})
    for account in (share, "2026", "people"):
        assert hospital.spent(account) == Loss.pure("1/3")
    assert hospital.spent("2025") == Loss.pure(0)
    assert hospital.remaining("2025") == Loss.pure("2/3")
    assert hospital.verify().accounts == 4


@pytest.mark.parametrize("tight", ["ana", "2026", "people"])
def test_the_tightest_account_refuses_for_the_whole_path(ledger, event, tight):
    budgets = {name: Budget(epsilon="1/2" if name == tight else 3) for name in ("people", "2026")}
    ledger.register("people", budget=budgets["people"], unit="patient_id")
    ledger.register("2026", budget=budgets["2026"], unit="patient_id", people="people")
    ledger.grant("2026", analyst="ana", budget=Budget(epsilon="1/2" if tight == "ana" else 3))
    share = resolved(ledger, "2026", analyst="ana")
    ledger.book(share, event, request={})
    with pytest.raises(BudgetExceeded, match=tight) as refusal:
        ledger.book(share, event, request={})
    assert refusal.value.left == "epsilon 1/6" == str(ledger.remaining(share))
    for account in (share, "2026", "people"):
        assert ledger.spent(account) == Loss.pure("1/3")


def test_entries_say_who_asked_what_about_which_model_and_when(hospital, event):
    hospital.book(resolved(hospital, "2026", analyst="ana"), event, request={"model": "risk"})
    hospital.book(resolved(hospital, "2025"), event, request={"model": "old"})
    (entry,) = hospital.entries("2026")
    assert (entry.analyst, entry.model, entry.loss) == ("ana", "risk", Loss.pure("1/3"))
    assert entry.time.tzinfo is not None
    assert [each.model for each in hospital.entries("people")] == ["risk", "old"]


def test_decisions_are_entries_with_time_who_and_why(ledger):
    ledger.register("trial", budget=ONE, who="ada", why="board 12")
    ledger.grant("trial", analyst="ana", budget=ONE, who="bob")
    ledger.raise_budget("trial", budget=TWO, who="ada", why="board 13")
    ledger.revoke("trial", analyst="ana", who="ada")
    ledger.close("trial", who="ada", why="the end")
    told = [(each.kind, each.content["who"], each.content.get("why")) for each in ledger.history()]
    assert told == [
        ("registration", "ada", "board 12"),
        ("grant", "bob", None),
        ("raise", "ada", "board 13"),
        ("revocation", "ada", None),
        ("closing", "ada", "the end"),
    ]
    assert ledger.verify().entries == 5


def test_nothing_is_booked_on_a_revoked_share_or_a_closed_account(hospital, event):
    share, data = resolved(hospital, "2026", analyst="ana"), resolved(hospital, "2026")
    hospital.revoke("2026", analyst="ana")
    with pytest.raises(AccountClosed, match="ana"):
        hospital.book(share, event, request={})
    with pytest.raises(AccountClosed, match="ana"):
        resolved(hospital, "2026", analyst="ana")
    hospital.book(data, event, request={})
    hospital.close("people")
    with pytest.raises(AccountClosed, match="people"):
        hospital.book(data, event, request={})
    assert hospital.spent("people") == Loss.pure("1/3")
    hospital.verify()


def test_a_share_that_is_granted_again_has_spent_what_it_had_spent(hospital, event):
    share = resolved(hospital, "2026", analyst="ana")
    hospital.book(share, event, request={})
    with pytest.raises(BudgetMismatch, match="already"):
        hospital.grant("2026", analyst="ana", budget=ONE)
    hospital.revoke("2026", analyst="ana")
    hospital.grant("2026", analyst="ana", budget=Budget(epsilon="1/2"))
    assert str(hospital.remaining(share)) == "epsilon 1/6"
    hospital.verify()


def test_a_raised_budget_is_there_for_open_sessions_and_never_falls(ledger, event):
    ledger.register("trial", budget=Budget(epsilon="1/3"))
    account = resolved(ledger, "trial", protection=Protection(neighbours="replace-one"), rows=7)
    ledger.book(account, event, request={})
    ledger.raise_budget("trial", budget=Budget(epsilon="2/3"))
    ledger.book(account, event, request={})
    for budget in (Budget(epsilon="1/2"), Budget(rho=9)):
        with pytest.raises(BudgetMismatch):
            ledger.raise_budget("trial", budget=budget)
    assert ledger.remaining("trial") == Loss.pure(0)
    ledger.verify()


def test_a_table_must_be_declared_as_its_account(ledger):
    ledger.register("trial", budget=ONE, unit="patient_id", rows_per_unit=2)
    two = Protection(neighbours="replace-one", unit=True, unit_name="patient_id", rows_per_unit=2)
    assert resolved(ledger, "trial", protection=two).budget == ONE
    others = [
        Protection(neighbours="replace-one"),
        PERSON,
        Protection(neighbours="add-remove", unit=True, unit_name="patient_id", rows_per_unit=2),
        Protection(neighbours="replace-one", unit=True, unit_name="household", rows_per_unit=2),
    ]
    for protection in others:
        with pytest.raises(BudgetMismatch, match="do not add up"):
            resolved(ledger, "trial", protection=protection)
    with pytest.raises(BudgetMismatch, match="budget must match"):
        resolved(ledger, "trial", protection=two, budget=TWO)


def test_where_the_number_of_rows_is_public_it_is_fixed(ledger):
    """A subset chosen by a private column has a private number of rows."""
    row = Protection(neighbours="replace-one")
    ledger.register("trial", budget=ONE)
    first = resolved(ledger, "trial", protection=row, rows=100)
    assert resolved(ledger, "trial", protection=row, rows=100) == first
    for rows in (99, 101):
        with pytest.raises(BudgetMismatch, match="add-remove"):
            resolved(ledger, "trial", protection=row, rows=rows)
    ledger.grant("trial", analyst="ana", budget=ONE)
    with pytest.raises(BudgetMismatch, match="add-remove"):
        resolved(ledger, "trial", protection=row, rows=99, analyst="ana")
    assert [each.kind for each in ledger.history()] == ["registration", "counted", "grant"]
    ledger.verify()


ROW = Protection(neighbours="replace-one")


def by_content(ledger, rows):
    return ledger.resolve(
        fingerprints=(b"rows",), protection=ROW, rows=rows, name="trial", budget=ONE
    )


def test_an_account_that_was_opened_by_content_refuses_a_subset_by_its_name(ledger):
    first = by_content(ledger, 100)
    assert by_content(ledger, 100) == resolved(ledger, "trial", protection=ROW, rows=100) == first
    for rows in (37, 101):
        with pytest.raises(BudgetMismatch, match="has 100 rows"):
            resolved(ledger, "trial", protection=ROW, rows=rows)
    assert [each.kind for each in ledger.history()] == ["opening"]
    ledger.verify()


def test_an_account_of_an_older_ledger_has_its_rows_counted_when_they_are_seen_again(ledger):
    old = ledger.account(b"rows", budget=ONE, name="trial", protection=ROW)  # without a number
    assert by_content(ledger, 100).id == old.id
    with pytest.raises(BudgetMismatch, match="has 100 rows"):
        resolved(ledger, "trial", protection=ROW, rows=37)
    assert [each.kind for each in ledger.history()] == ["opening", "counted"]
    ledger.verify()


def test_an_analyst_before_anybody_else_fixes_the_number_of_rows_of_the_data_set(ledger):
    row = Protection(neighbours="replace-one")
    ledger.register("trial", budget=ONE)
    ledger.grant("trial", analyst="ana", budget=ONE)
    resolved(ledger, "trial", protection=row, rows=100, analyst="ana")
    with pytest.raises(BudgetMismatch, match="add-remove"):
        resolved(ledger, "trial", protection=row, rows=99)
    ledger.verify()


def test_where_the_number_of_rows_is_private_any_table_will_do(ledger):
    ledger.register("trial", budget=ONE, unit="patient_id")
    ledger.register("rows", budget=ONE, neighbours="add-remove")
    once = resolved(ledger, "trial")
    assert resolved(ledger, "trial") == once
    assert resolved(ledger, "rows", protection=Protection(neighbours="add-remove"))


def test_a_new_people_account_has_the_budget_of_its_first_data_set(ledger, event):
    ledger.register("2025", budget=Budget(epsilon="1/3"), unit="patient_id", people="people")
    ledger.register("2026", budget=ONE, unit="patient_id", people="people")
    ledger.book(resolved(ledger, "2026"), event, request={})
    with pytest.raises(BudgetExceeded, match="people"):
        ledger.book(resolved(ledger, "2025"), event, request={})


def test_rows_that_were_asked_about_before_get_no_second_budget_by_their_name(ledger, event):
    before = ledger.account(b"rows", budget=ONE, name="old.parquet", protection=PERSON)
    ledger.book(before, event, request={})
    with pytest.raises(BudgetMismatch, match="before they were registered"):
        ledger.register("old.parquet", budget=TWO, unit="patient_id")
    ledger.register("old.parquet", budget=TWO, unit="patient_id", people="old.parquet")
    ledger.book(resolved(ledger, "old.parquet"), event, request={})
    assert ledger.spent(before) == Loss.pure("2/3")
    ledger.book(ledger.account(b"rows", budget=ONE, protection=PERSON), event, request={})
    with pytest.raises(BudgetExceeded):
        ledger.book(resolved(ledger, "old.parquet"), event, request={})
    assert ledger.verify()


def test_a_second_budget_for_rows_that_were_asked_about_must_be_said(ledger):
    before = ledger.account(b"rows", budget=ONE, name="old.parquet", protection=PERSON)
    second = ledger.register("old.parquet", budget=ONE, unit="patient_id", new=True)
    assert second.id != before.id


def test_people_are_under_one_relation_and_one_kind_of_budget(ledger):
    ledger.register("people", budget=ONE, unit="patient_id")
    with pytest.raises(BudgetMismatch, match="do not add up"):
        ledger.register("2026", budget=ONE, unit="id", neighbours="add-remove", people="people")
    with pytest.raises(BudgetMismatch, match="same kind"):
        ledger.register("2026", budget=Budget(rho=1), unit="patient_id", people="people")
    ledger.register("2026", budget=ONE, unit="patient_id", people="people")
    with pytest.raises(LedgerError, match="people account itself"):
        ledger.register("a", budget=ONE, unit="patient_id", people="2026")
    assert len(ledger.history()) == 2


def test_a_share_has_a_budget_of_its_accounts_kind(ledger):
    ledger.register("trial", budget=ONE)
    ledger.register("study", budget=Budget(rho=1))
    for account, budget in (("trial", Budget(rho=1)), ("study", ONE)):
        with pytest.raises(BudgetMismatch, match="same kind"):
            ledger.grant(account, analyst="ana", budget=budget)
        assert ledger.share(account, "ana") is None
    assert len(ledger.history()) == 2


def test_a_name_is_registered_once_and_names_can_be_read(ledger):
    ledger.register("trial", budget=ONE)
    with pytest.raises(BudgetMismatch, match="registered already"):
        ledger.register("trial", budget=ONE)
    for name in ("", " x", "a\nb", "a\u202eb", "\ud800", 3, None, "x" * 200):
        with pytest.raises(ArgumentError):
            ledger.register(name, budget=ONE)
        with pytest.raises(ArgumentError):
            ledger.grant("trial", analyst=name, budget=ONE)
    with pytest.raises(ArgumentError, match="budget must be a Budget"):
        ledger.register("other", budget=3)
    with pytest.raises(LedgerError, match="No account"):
        resolved(ledger, "nobody")
    with pytest.raises(LedgerError, match="no share"):
        resolved(ledger, "trial", protection=Protection(neighbours="replace-one"), analyst="ana")
    with pytest.raises(ArgumentError, match="analyst= requires account="):
        resolved(ledger, None, analyst="ana")


def test_a_closed_ledger_takes_registered_rows_only(ledger, event):
    old = ledger.account(b"before", budget=ONE, name="old.parquet", protection=PERSON)
    ledger.register("trial", budget=ONE, unit="patient_id", closed=True)
    for digest in (b"before", b"after"):
        with pytest.raises(LedgerError, match="closed to unregistered rows"):
            ledger.account(digest, budget=ONE)
    ledger.book(resolved(ledger, "trial"), event, request={})
    # Rows that were opened before are reached by their name.
    assert resolved(ledger, "old.parquet") == old
    ledger.verify()


def test_other_rows_under_a_known_name_are_refused_with_advice(ledger):
    ledger.account(b"monday", budget=ONE, name="patients.parquet")
    with pytest.raises(BudgetMismatch, match=r"ledger register.*row_key.*new=True"):
        ledger.account(b"tuesday", budget=ONE, name="patients.parquet")
    ledger.register("trial", budget=ONE)
    with pytest.raises(BudgetMismatch, match="new=True"):
        ledger.account(b"tuesday", budget=ONE, name="trial")
    assert ledger.account(b"monday", budget=ONE, name="patients.parquet")
    assert ledger.account(b"tuesday", budget=ONE, name="patients.parquet", new=True)


def test_moving_an_account_out_from_under_its_people_is_noticed(tmp_path, event):
    import sqlite3

    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        ledger.register("2026", budget=ONE, unit="patient_id", people="people")
        account = resolved(ledger, "2026")
    for change in (
        "UPDATE heldout_accounts SET parent = NULL",
        "UPDATE heldout_accounts SET parent = id WHERE parent IS NOT NULL",
        "UPDATE heldout_accounts SET name = 'x' || name",
    ):
        path.with_name("copy").write_bytes(path.read_bytes())
        with sqlite3.connect(path.with_name("copy")) as connection:
            connection.execute(change)
        connection.close()
        with Ledger.open(path.with_name("copy"), witness=None) as changed:
            if "name" not in change:
                with pytest.raises(LedgerTampered):
                    changed.book(account, event, request={})
            with pytest.raises(LedgerTampered):
                changed.verify()
