"""The custodian's decisions: accounts with names, shares for analysts, and what ends them.

Accounts are a tree: people > data set > analyst. A booking is taken from every account on its
path, in one transaction (`Ledger.book`). Each decision is an entry of the chain with its time, who
made it and why.
"""

import getpass
import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from heldout.arguments import shown
from heldout.errors import AccountClosed, ArgumentError, BudgetMismatch, LedgerError
from heldout.kernel import accountant
from heldout.kernel.ledger.account import Account
from heldout.kernel.ledger.books import Books, Line, checked_name
from heldout.kernel.ledger.chain import AccountRow, Entry, Identity, State, tampered
from heldout.kernel.ledger.keys import check_of
from heldout.kernel.ledger.overlap import Individuals, Overlap, drawn, overlapping, sketch_of
from heldout.kernel.ledger.witness import Witness
from heldout.kernel.loss import Budget
from heldout.kernel.neighbours import Neighbours, Protection

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Registry", "checked_budget", "new_row", "unspent"]

Work = Callable[["Connection", Identity], tuple[Account, Entry]]


class Registry(Books):
    """Registers data sets and grants shares of their budgets.

    Claim:       one budget holds for everything that is asked of a registered account: of tables
                 that were refreshed, extended, re-scored or filtered person by person, and of all
                 data sets of one people account together.                  [claim: custody]
    Neighbours:  the account's: two versions of everything that is known about one person, or
                 row. With a unit, or under add-remove, the number of rows is private and any
                 filter will do. Under replace-one without a unit it is public, and fixed.
    Numerics:    exact.
    Refuses:     tables that are declared in another way than the account; other numbers of rows
                 where the number is public; people accounts under another relation.
    """

    def register(
        self,
        name: str,
        *,
        budget: Budget,
        unit: str | None = None,
        rows_per_unit: int = 1,
        neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
        people: str | None = None,
        closed: bool = False,
        table: Individuals | None = None,
        new: bool = False,
        apart: bool = False,
        who: str | None = None,
        why: str | None = None,
    ) -> Account:
        """Give a data set a name and a budget that stay, whatever becomes of its table.

        `unit`, `rows_per_unit` and `neighbours` are those that its tables are declared with.
        `people` names an account above it, which several data sets about the same people share;
        a new name opens it with the same budget (register it first to give it another one). It
        may be the account of rows that were asked about before they were registered: then what
        they spent counts, and so does what is asked of them without a name from now on.
        `closed` closes the ledger to rows that are not registered. `table`
        (`heldout.data.people.People`) shows who is in it: where people of other accounts are,
        this is refused unless `people` names their account or `new` gives them a second budget.
        `apart` is for custodians who share a ledger and no rows: only with accounts that `who`
        registered is the table compared, and `people` names one of those or a new one. Otherwise a
        table of one person would tell whether somebody else's rows hold that person.
        """
        checked_name("name", name)
        protection = Protection(
            neighbours=Neighbours.parse(neighbours),
            unit=unit is not None,
            rows_per_unit=rows_per_unit,
            unit_name=unit,
        )
        signed = _signed(who, why)
        told: dict[str, Any] = {"protection": protection.as_dict()} | signed
        only = signed["who"] if apart else None

        def work(connection: "Connection", identity: Identity) -> tuple[Account, Entry]:
            above: Line = []
            if people is not None:
                if not self._storage.named(connection, checked_name("people", people)):
                    row = new_row("data", people)
                    line = [(row, unspent(checked_budget(budget)))]
                    about = {"kind": "registration", "name": people} | told
                    _, identity = self._write(connection, identity, line, about, opens=True)
                above = self._people(connection, people, protection, budget, only)
            if self._registered(connection, name):
                raise BudgetMismatch(
                    f"An account {shown(name)} is registered already. Name another one, or raise "
                    "its budget: heldout ledger raise."
                )
            if not new and people != name and self._storage.named(connection, name):
                raise BudgetMismatch(
                    f"Rows called {shown(name)} were asked about before they were registered, and "
                    f"have an account of that name. To count what they spent, register with "
                    f"people={shown(name)} (--people). To give them a second budget, say new=True "
                    "(--new), or register another name if these are other rows."
                )
            row = new_row("data", name, parent=above[0][0].id if above else None)
            line = [(row, unspent(checked_budget(budget))), *above]
            about = {"kind": "registration", "name": name} | told
            about |= {"closes_ledger": True} if closed else {}
            entry, _ = self._write(connection, identity, line, about, opens=True)
            if closed and not identity.closed:
                self._storage.set_identity(connection, closed=entry.sequence)
            if sketch is not None:
                self._storage.put_sketch(connection, row.id, sketch(row.id))
            return Account(row.id, budget), entry

        sketch = None if table is None else self._sketch(table, not new and people is None, only)
        return self._decide(work)

    def overlaps(self, table: Individuals) -> list[Overlap]:
        """The accounts that know people of this table, and about how many; for the custodian.

        Compares with the tables that accounts were registered with.
        """
        return self._overlaps(table, drawn(table))

    def _overlaps(
        self, table: Individuals, sample: tuple[int, int, list[int]], only: str | None = None
    ) -> list[Overlap]:
        """With `only`, those of the accounts that this person registered."""

        def look(connection: "Connection") -> list[Overlap]:
            identity = self._watch.check(connection)
            sketches = self._storage.all_sketches(connection)
            key = self._key(identity) if sketches else b""
            names = {row.id: row.name or "" for row in self._storage.all_accounts(connection)}
            found = (
                Overlap(
                    each, names[each], overlapping(key, each, text, table, sample[1]), sample[0]
                )
                for each, text in sketches
                if only is None or self._who(connection, each) == only
            )
            return [each for each in found if each.shared]

        with self._storage.lock:
            return self._watch.look(look)

    def _sketch(self, table: Individuals, refuse: bool, only: str | None) -> Callable[[str], str]:
        """What makes the sketch of a table, given its account's id; draws the key if need be."""
        sample = drawn(table)
        known = self._overlaps(table, sample, only)
        if known and refuse:
            most = str(max(known, key=lambda each: each.shared))
            raise BudgetMismatch(
                f"{most[:1].upper()}{most[1:]}. To share their budget, register with people= "
                "(--people) and that account, or the people account above it. To give them a "
                "second budget, say new=True (--new)."
            )

        def draw_key(connection: "Connection") -> bytes:
            identity = self._watch.check(connection)
            key = self._key(identity, make=True)
            if not identity.key_check:
                check = check_of(key, identity.ledger)
                self._storage.set_identity(connection, key_check=check)
            return key

        with self._storage.lock:
            key = self._storage.write(draw_key)
        return lambda account: sketch_of(key, account, sample[1], sample[2])

    def grant(
        self,
        account: str,
        *,
        analyst: str,
        budget: Budget,
        who: str | None = None,
        why: str | None = None,
    ) -> Account:
        """Give an analyst a share of a registered account, or a revoked one a new start.

        What the analyst spent before counts towards the budget of a new start.
        """
        checked_budget(budget)
        about = {"kind": "grant", "analyst": checked_name("analyst", analyst)} | _signed(who, why)

        def work(connection: "Connection", identity: Identity) -> tuple[Account, Entry]:
            above = self._open_line(connection, self._named(connection, account).id)
            if above[0][0].kind != "data":
                raise LedgerError(f"Account {shown(account)} is not registered. Register it first.")
            _same_kind(budget, above[0][1].budget)
            known = self._storage.named(connection, analyst, parent=above[0][0].id)
            if not known:
                row, state = new_row("analyst", analyst, parent=above[0][0].id), unspent(budget)
            else:
                row, state = self._line(connection, known[0].id)[0]
                if not state.closed:
                    raise BudgetMismatch(
                        f"{shown(analyst)} has a share of {shown(account)} already "
                        f"({state.budget}). Raise it, or revoke it first."
                    )
                state = replace(state, budget=budget, closed=False)
            line = [(row, state), *above]
            entry, _ = self._write(connection, identity, line, about, opens=not known)
            return Account(row.id, budget), entry

        return self._decide(work)

    def share(self, account: str, analyst: str) -> Account | None:
        """An analyst's share of an account, if there is one that is not revoked."""

        def look(connection: "Connection") -> Account | None:
            self._watch.check(connection)
            above = self._named(connection, account)
            found = self._storage.named(connection, analyst, parent=above.id)
            state = self._line(connection, found[0].id)[0][1] if found else None
            return None if state is None or state.closed else Account(found[0].id, state.budget)

        with self._storage.lock:
            return self._watch.look(look)

    def raise_budget(
        self,
        account: str,
        *,
        budget: Budget,
        analyst: str | None = None,
        who: str | None = None,
        why: str | None = None,
    ) -> Account:
        """Raise the budget of an account, or of an analyst's share, to a larger one."""
        checked_budget(budget)

        def change(state: State) -> State:
            _same_kind(budget, state.budget)
            if not accountant.covers(budget, state.budget):
                raise BudgetMismatch(
                    f"A budget can only be raised: it is {state.budget} now. Close the account to "
                    "stop its spending."
                )
            return replace(state, budget=budget)

        return self._change("raise", account, analyst, change, _signed(who, why))

    def revoke(
        self, account: str, *, analyst: str, who: str | None = None, why: str | None = None
    ) -> Account:
        """Take an analyst's share away; nothing more is booked on it, in open sessions neither."""
        return self._change("revocation", account, analyst, _closed, _signed(who, why))

    def _close_account(self, account: str, who: str | None, why: str | None) -> Account:
        return self._change("closing", account, None, _closed, _signed(who, why))

    def renew_key(self, *, who: str | None = None, why: str | None = None) -> None:
        """Begin with a new key after the old one was lost; forgets by which rows to find accounts.

        Accounts keep their budgets and are reached by their names from then on.
        """

        def work(connection: "Connection", identity: Identity) -> tuple[Account, Entry]:
            key = secrets.token_bytes(32)
            self._key_place.put(identity.ledger, key, replace=True)
            self._storage.forget_rows(connection)
            check = check_of(self._key(replace(identity, key_check="")), identity.ledger)
            self._storage.set_identity(connection, key_check=check)
            about = {"kind": "rekey"} | _signed(who, why)
            entry, _ = self._write(connection, identity, [], about)
            return Account("", Budget(epsilon=1)), entry

        self._decide(work)

    # --- how decisions are made ------------------------------------------------------------------

    def _open_line(self, connection: "Connection", account: str) -> Line:
        """An account and those above it, none of which is closed."""
        line = self._line(connection, account)
        for row, state in line:
            if state.closed:
                what = "share of" if row.kind == "analyst" else "account"
                raise AccountClosed(f"The {what} {shown(row.name)} is closed. Nothing was charged.")
        return line

    def _change(
        self,
        kind: str,
        account: str,
        analyst: str | None,
        change: Callable[[State], State],
        signed: dict[str, Any],
    ) -> Account:
        about: dict[str, Any] = {"kind": kind} | signed
        if analyst is not None:
            about["analyst"] = checked_name("analyst", analyst)

        def work(connection: "Connection", identity: Identity) -> tuple[Account, Entry]:
            row = self._named(connection, account)
            if analyst is not None:
                row = self._share(connection, row, analyst)
            line = self._line(connection, row.id)
            line[0] = (line[0][0], change(line[0][1]))
            entry, _ = self._write(connection, identity, line, about)
            return Account(row.id, line[0][1].budget), entry

        return self._decide(work)

    def _decide(self, work: Work) -> Account:
        def decide(connection: "Connection") -> tuple[Account, Witness]:
            identity = self._watch.check(connection)
            account, entry = work(connection, identity)
            return account, Witness(identity.ledger, entry.sequence, entry.hash)

        with self._storage.lock:
            account, written = self._storage.write(decide)
            self._watch.remember(written)
        return account

    def _registered(self, connection: "Connection", name: str) -> bool:
        return any(each.kind == "data" for each in self._storage.named(connection, name))

    def _share(self, connection: "Connection", row: AccountRow, analyst: str) -> AccountRow:
        """The account of an analyst's share."""
        found = self._storage.named(connection, checked_name("analyst", analyst), parent=row.id)
        if not found:
            raise LedgerError(
                f"{shown(analyst)} has no share of account {shown(row.name)}. Grant one: heldout "
                "ledger grant."
            )
        opening = self._storage.opening(connection, found[0].id)
        if opening.analyst != analyst:
            raise tampered(opening.sequence, "its account has another name")
        return found[0]

    def _people(
        self,
        connection: "Connection",
        people: str,
        protection: Protection,
        budget: Budget,
        only: str | None,
    ) -> Line:
        """The people account that a data set goes under, if it fits there."""
        found = self._named(connection, people).id
        if only is not None and self._who(connection, found) != only:
            raise BudgetMismatch(f"{shown(people)} is not an account of {only}. Name another one.")
        line = self._open_line(connection, found)
        own = self._storage.opening(connection, line[0][0].id).content["protection"] or {}
        if len(line) > 1:
            raise LedgerError(f"{shown(people)} has a people account itself. Name that one.")
        if own.get("neighbours") != protection.neighbours:
            raise BudgetMismatch(
                f"{shown(people)} is not under {protection.neighbours} neighbours, as this data "
                "set is: losses under two relations do not add up."
            )
        _same_kind(budget, line[0][1].budget)
        return line


def new_row(kind: str, name: str | None, *, parent: str | None = None) -> AccountRow:
    return AccountRow(secrets.token_hex(16), kind, name, parent, "", 0, "")


def unspent(budget: Budget) -> State:
    return State(budget, accountant.compose([], budget=budget))


def _closed(state: State) -> State:
    return replace(state, closed=True)


def _signed(who: str | None, why: str | None) -> dict[str, Any]:
    """Who decided, and why."""
    if who is None:
        try:
            who = getpass.getuser()
        except (KeyError, OSError):
            who = f"user {os.getuid()}"
    signed = {"who": checked_name("who", who)}
    return signed if why is None else signed | {"why": checked_name("why", why)}


def _same_kind(budget: Budget, other: Budget) -> None:
    if (budget.rho is None) != (other.rho is None):
        raise BudgetMismatch(
            f"A budget must be of the same kind as the account's ({other}), got {budget}."
        )


def checked_budget(budget: object) -> Budget:
    if isinstance(budget, Budget):
        return budget
    raise ArgumentError(
        f"budget must be a Budget, got {type(budget).__name__}. Pass Budget(epsilon=...)."
    )
