"""The custodian's decisions: accounts with names, shares for analysts, and what ends them.

Accounts are a tree: people > data set > analyst. A booking is taken from every account on its
path, in one transaction (`Ledger.book`). Each decision is an entry of the chain with its time, who
made it and why.
"""

import getpass
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from heldout.arguments import shown
from heldout.errors import ArgumentError, BudgetMismatch, LedgerError
from heldout.kernel import accountant
from heldout.kernel.ledger.journal import Balance, Books, Journal, Line
from heldout.kernel.ledger.keys import Individuals, KeyPlace, Overlap, Sample, mac_of, seal_of
from heldout.kernel.ledger.records import Account, AccountRow, State, Tie, checked_name, tampered
from heldout.kernel.loss import Budget
from heldout.kernel.neighbours import Protection


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A data set that a custodian registers; `Ledger.register` says what the fields mean."""

    name: str
    budget: Budget
    protection: Protection
    people: str | None
    closed: bool
    new: bool
    apart: bool
    signed: dict[str, str]

    @property
    def only(self) -> str | None:
        """Return whose accounts alone may be compared and named."""
        return self.signed["who"] if self.apart else None


class Registry:
    """Registers data sets and grants shares of their budgets.

    Claim:       one budget holds for everything that is asked of a registered account: of tables
                 that were refreshed, extended, re-scored or filtered person by person, and of all
                 data sets of one people account together.                  [claim: custody]
    Neighbours:  the account's: two versions of everything that is known about one person, or
                 row. With a unit, or under add-remove, the number of rows is private and any
                 filter will do. Under replace-one without a unit it is public, and fixed; so it
                 is under label neighbours, where two versions differ in one outcome's column.
    Numerics:    exact.
    Refuses:     tables that are declared in another way than the account; other numbers of rows
                 where the number is public; people accounts under another relation; labels
                 without an outcome, or under a people account.
    """

    def __init__(self, journal: Journal, key_place: KeyPlace) -> None:
        self._journal = journal
        self._key_place = key_place

    # --- registering -----------------------------------------------------------------------------

    def register(self, wanted: Registration, table: Individuals | None) -> Account:
        """Open an account with a name; `table` shows who is in it."""
        if wanted.protection.only_labels:
            _check_labels(wanted)
        sketch = None if table is None else self._sketch(wanted, Sample.of(table))

        def work(books: Books) -> Account:
            above = [] if wanted.people is None else self._people_line(books, wanted)
            self._check_name_is_free(books, wanted)
            about = {"closes_ledger": True} if wanted.closed else {}
            row = new_row("data", wanted.name, parent=above[0].row.id if above else None)
            entry = self._open(books, row, wanted, above, about)
            if wanted.closed and not books.identity.closed:
                books.close_to_unregistered(entry)
            if sketch is not None:
                books.tables.put_sketch(row.id, sketch(row.id))
            return Account(row.id, wanted.budget)

        return self._journal.write(work)

    def _open(
        self,
        books: Books,
        row: AccountRow,
        wanted: Registration,
        above: Line,
        about: dict[str, Any],
    ) -> int:
        """Write the entry that opens an account; return its place in the chain."""
        content = {"kind": "registration", "name": row.name} | wanted.signed | about
        content["protection"] = wanted.protection.as_dict()
        line = [Balance(row, unspent(checked_budget(wanted.budget))), *above]
        return books.write(line, content, opens=True).sequence

    def _people_line(self, books: Books, wanted: Registration) -> Line:
        """Return the people account that a data set goes under, if it fits there.

        A new name opens one.
        """
        people = checked_name("people", wanted.people)
        if not books.tables.named(people):
            self._open(books, new_row("data", people), wanted, [], {})
        row = books.named(people)
        if wanted.only is not None and books.registrant(row.id) != wanted.only:
            raise BudgetMismatch(
                f"{shown(people)} is not an account of {wanted.only}. Name another one."
            )
        line = books.open_line(row.id)
        own = books.tables.opening(row.id).content["protection"] or {}
        if len(line) > 1:
            raise LedgerError(f"{shown(people)} has a people account itself. Name that one.")
        neighbours = wanted.protection.neighbours
        if own.get("neighbours") != neighbours:
            raise BudgetMismatch(
                f"{shown(people)} is not under {neighbours} neighbours, as this data "
                "set is: losses under two relations do not add up."
            )
        _check_kind(wanted.budget, line[0].state.budget)
        return line

    def _check_name_is_free(self, books: Books, wanted: Registration) -> None:
        name = shown(wanted.name)
        if books.is_registered(wanted.name):
            raise BudgetMismatch(
                f"An account {name} is registered already. Name another one, or raise "
                "its budget: heldout ledger raise."
            )
        if not wanted.new and wanted.people != wanted.name and books.tables.named(wanted.name):
            raise BudgetMismatch(
                f"Rows called {name} were asked about before they were registered, and "
                f"have an account of that name. To count what they spent, register with "
                f"people={name}. To give them a second budget, pass new=True, or register another "
                "name if these are other rows."
            )

    # --- who is in it ----------------------------------------------------------------------------

    def overlaps(self, sample: Sample, only: str | None = None) -> list[Overlap]:
        """List the accounts that know people of a sample, or those of one registrant."""

        def look(books: Books) -> list[Overlap]:
            sketches = books.tables.sketches()
            key = self._key_place.key_of(books.identity) if sketches else b""
            names = {row.id: row.name or "" for row in books.tables.accounts()}
            overlaps = (
                Overlap(
                    account, names[account], sample.shared_with(key, account, text), sample.count
                )
                for account, text in sketches
                if only is None or books.registrant(account) == only
            )
            return [overlap for overlap in overlaps if overlap.shared]

        return self._journal.read(look)

    def _sketch(self, wanted: Registration, sample: Sample) -> Callable[[str], str]:
        """Return what makes the sketch of a table, given its account; refuse known people."""
        known = self.overlaps(sample, wanted.only)
        if known and not wanted.new and wanted.people is None:
            most = str(max(known, key=lambda overlap: overlap.shared))
            raise BudgetMismatch(
                f"{most[:1].upper()}{most[1:]}. To share their budget, register with people= and "
                "that account, or the people account above it. To give them a second budget, pass "
                "new=True."
            )
        key = self._journal.write(self._key_place.key_for)
        return lambda account: sample.sketch(key, account)

    # --- shares ----------------------------------------------------------------------------------

    def grant(self, account: str, analyst: str, budget: Budget, signed: dict[str, str]) -> Account:
        """Give an analyst a share of a registered account, or a revoked one a new start."""
        checked_budget(budget)
        about = {"kind": "grant", "analyst": checked_name("analyst", analyst)} | signed

        def work(books: Books) -> Account:
            above = books.open_line(books.named(account).id)
            data = above[0]
            if data.row.kind != "data":
                raise LedgerError(f"Account {shown(account)} is not registered. Register it first.")
            _check_kind(budget, data.state.budget)
            known = books.tables.shares(analyst, data.row.id)
            if not known:
                row, state = new_row("analyst", analyst, parent=data.row.id), unspent(budget)
            else:
                row, state = books.line(known[0].id)[0]
                if not state.closed:
                    raise BudgetMismatch(
                        f"{shown(analyst)} has a share of {shown(account)} already "
                        f"({state.budget}). Raise it, or revoke it first."
                    )
                state = replace(state, budget=budget, closed=False)
            books.write([Balance(row, state), *above], about, opens=not known)
            return Account(row.id, budget)

        return self._journal.write(work)

    def share(self, account: str, analyst: str) -> Account | None:
        """Return an analyst's share of an account, if there is one that is not revoked."""

        def look(books: Books) -> Account | None:
            shares = books.tables.shares(analyst, books.named(account).id)
            if not shares:
                return None
            state = books.line(shares[0].id)[0].state
            return None if state.closed else Account(shares[0].id, state.budget)

        return self._journal.read(look)

    # --- changing and ending ---------------------------------------------------------------------

    def raise_budget(
        self, account: str, analyst: str | None, budget: Budget, signed: dict[str, str]
    ) -> Account:
        """Raise the budget of an account, or of an analyst's share, to a larger one."""
        checked_budget(budget)

        def change(state: State) -> State:
            _check_kind(budget, state.budget)
            if not accountant.covers(budget, state.budget):
                raise BudgetMismatch(
                    f"A budget can only be raised: it is {state.budget} now. Close the account to "
                    "stop its spending."
                )
            return replace(state, budget=budget)

        return self._change("raise", account, analyst, change, signed)

    def close(
        self, kind: str, account: str, analyst: str | None, signed: dict[str, str]
    ) -> Account:
        """Close an account, or an analyst's share of it: nothing more is booked on it."""
        return self._change(
            kind, account, analyst, lambda state: replace(state, closed=True), signed
        )

    def _change(
        self,
        kind: str,
        account: str,
        analyst: str | None,
        change: Callable[[State], State],
        signed: dict[str, str],
    ) -> Account:
        about = {"kind": kind} | signed
        if analyst is not None:
            about["analyst"] = checked_name("analyst", analyst)

        def work(books: Books) -> Account:
            row = books.named(account)
            if analyst is not None:
                row = books.share(row, analyst)
            (row, state), *above = books.line(row.id)
            state = change(state)
            books.write([Balance(row, state), *above], about)
            return Account(row.id, state.budget)

        return self._journal.write(work)

    def renew_key(self, signed: dict[str, str]) -> None:
        """Begin with a new key after the old one was lost."""

        def work(books: Books) -> None:
            self._key_place.renew(books)
            books.write([], {"kind": "rekey"} | signed)

        self._journal.write(work)


def _check_labels(wanted: Registration) -> None:
    """Refuse label neighbours of no outcome, and of several tables together.

    A table that shares the budget could have the outcome of another one as a public column.
    """
    if not wanted.protection.outcome:
        raise ArgumentError(
            "outcome must name the column that neighbours='label' protects. Pass outcome=."
        )
    if wanted.people is not None:
        raise ArgumentError(
            "people must be left out with neighbours='label': what is public in one table may be "
            "the outcome in another. Register the tables under 'replace-one'."
        )


def new_row(kind: str, name: str | None, *, parent: str | None = None) -> AccountRow:
    """Return an account with a random id that no entry has touched yet."""
    return AccountRow(secrets.token_hex(16), kind, name, parent, "", 0, "")


def unspent(budget: Budget) -> State:
    """Return the state of a new account."""
    return State(budget, accountant.compose([], budget=budget))


def signature(who: str | None, why: str | None) -> dict[str, str]:
    """Return who decided, and why, as an entry has it."""
    if who is None:
        try:
            who = getpass.getuser()
        except (KeyError, OSError):
            who = f"user {os.getuid()}"
    signed = {"who": checked_name("who", who)}
    return signed if why is None else signed | {"why": checked_name("why", why)}


def _check_kind(budget: Budget, other: Budget) -> None:
    if (budget.rho is None) != (other.rho is None):
        raise BudgetMismatch(
            f"A budget must be of the same kind as the account's ({other}), got {budget}."
        )


def checked_budget(budget: object) -> Budget:
    """Return a budget, or refuse what is none."""
    if isinstance(budget, Budget):
        return budget
    raise ArgumentError(
        f"budget must be a Budget, got {type(budget).__name__}. Pass Budget(epsilon=...)."
    )


# --- accounts of rows that nobody registered: a ledger finds them by a keyed digest of the rows ---


_KNOWN: Final = (
    "This ledger has an account for other rows called {name}. If these rows are about the same "
    "people, register them once (heldout ledger register) and name the account with account=, or "
    "name the column that tells rows apart with row_key=. If they are about others, pass new=True "
    "or give them another name."
)


@dataclass(frozen=True, kw_only=True)
class Content:
    """Rows that look for their account; `Ledger.account` says what the fields mean."""

    fingerprints: Sequence[bytes]
    budget: Budget | None
    name: str | None
    protection: Protection | None
    rows: int | None
    new: bool

    def __post_init__(self) -> None:
        if not all(isinstance(digest, bytes) and digest for digest in self.fingerprints):
            raise ArgumentError(
                "fingerprint must be the bytes of a digest. Pass the data set's content digest."
            )
        if self.budget is not None:
            checked_budget(self.budget)


class ByContent:
    """Finds the account of rows by their content, or opens one."""

    def __init__(self, journal: Journal, key_place: KeyPlace) -> None:
        self._journal = journal
        self._key_place = key_place

    def account(self, content: Content) -> Account:
        """Return the account that one of the digests leads to, to which the others are tied."""

        def look(books: Books) -> Account | None:
            _refuse_if_closed(books)
            if not books.identity.key_check:
                return None
            account, unknown = self._find(books, self._key_place.key_of(books.identity), content)
            return None if unknown else account

        def tie_or_open(books: Books) -> Account:
            _refuse_if_closed(books)
            key = self._key_place.key_for(books)
            account, unknown = self._find(books, key, content)
            if account is not None and not unknown:
                return account  # another process was first
            if account is None:
                account = self._open(books, content, len(unknown))
            else:
                about = {"kind": "tie", "name": content.name, "ties": len(unknown)}
                books.write(books.line(account.id), about)
            for mac in unknown:
                books.tables.add_tie(Tie(mac, account.id, seal_of(key, account.id, mac)))
            return account

        return self._journal.read(look) or self._journal.write(tie_or_open)

    def _find(self, books: Books, key: bytes, content: Content) -> tuple[Account | None, list[str]]:
        """Return the account, and the digests that do not lead to it yet."""
        macs = [mac_of(key, digest) for digest in dict.fromkeys(content.fingerprints)]
        ties = books.tables.tied(macs)
        for tie in ties:
            if tie.seal != seal_of(key, tie.account, tie.mac):
                raise tampered(None, "an account was tied to other rows")
        if not ties:
            return None, macs
        if len({tie.account for tie in ties}) > 1:
            raise BudgetMismatch(
                "These rows match two accounts of the ledger, because they were opened as two data "
                "sets before. Name one with account=."
            )
        row, state = books.open_line(ties[0].account)[0]
        books.check_protection(row.id, content.protection)
        check_budget(content.budget, state.budget)
        known = {tie.mac for tie in ties}
        return Account(row.id, state.budget), [mac for mac in macs if mac not in known]

    def _open(self, books: Books, content: Content, ties: int) -> Account:
        """Open an account for rows that the ledger does not know."""
        if content.budget is None:
            raise ArgumentError("These rows have no budget yet. Pass one, such as budget=3.")
        if content.name is not None and not content.new and books.tables.named(content.name):
            raise BudgetMismatch(_KNOWN.format(name=shown(content.name)))
        row: AccountRow = new_row("rows", content.name)
        protection = content.protection
        about: dict[str, Any] = {"kind": "opening", "name": content.name, "ties": ties}
        about["protection"] = None if protection is None else protection.as_dict()
        state = replace(unspent(content.budget), rows=content.rows)
        books.write([Balance(row, state)], about, opens=True)
        return Account(row.id, content.budget)


def _refuse_if_closed(books: Books) -> None:
    if books.identity.closed:
        raise LedgerError(
            "This ledger is closed to unregistered rows. Name a registered account with account=."
        )


def check_budget(given: Budget | None, own: Budget) -> None:
    """Refuse a budget that is given again and is not the one on record."""
    if given is not None and checked_budget(given) != own:
        raise BudgetMismatch(
            f"budget must match the account's ({own}), got {given}. Leave it out; the same rows "
            "have one budget however they are named. A custodian can raise it: heldout ledger "
            "raise."
        )
