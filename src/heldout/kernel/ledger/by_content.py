"""Accounts of rows that nobody registered: a ledger finds them by a keyed digest of the rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from heldout.arguments import shown
from heldout.errors import ArgumentError, BudgetMismatch, LedgerError
from heldout.kernel.ledger.journal import Balance, Books, Journal
from heldout.kernel.ledger.keys import KeyPlace, mac_of, seal_of
from heldout.kernel.ledger.records import Account, AccountRow, Tie, tampered
from heldout.kernel.ledger.registry import checked_budget, new_row, unspent
from heldout.kernel.loss import Budget
from heldout.kernel.neighbours import Protection

_KNOWN: Final = (
    "This ledger has an account for other rows called {name}. If these rows are about the same "
    "people, register them once (heldout ledger register) and name the account (account=, "
    "--account), or name the row_key that tells rows apart. If they are about others, say new=True "
    "(--new) or give them another name."
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
                "These rows match two accounts of the ledger: they were opened before as two data "
                "sets. Name one with account= (--account)."
            )
        row, state = books.open_line(ties[0].account)[0]
        books.check_protection(row.id, content.protection)
        check_budget(content.budget, state.budget)
        known = {tie.mac for tie in ties}
        return Account(row.id, state.budget), [mac for mac in macs if mac not in known]

    def _open(self, books: Books, content: Content, ties: int) -> Account:
        """Open an account for rows that the ledger does not know."""
        if content.budget is None:
            raise ArgumentError(
                "budget must be given when a data set is opened for the first time. "
                "Pass Budget(epsilon=...)."
            )
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
            "This ledger is closed to unregistered rows. Name a registered account: account= "
            "(--account)."
        )


def check_budget(given: Budget | None, own: Budget) -> None:
    """Refuse a budget that is given again and is not the one on record."""
    if given is not None and checked_budget(given) != own:
        raise BudgetMismatch(
            f"budget must be the one of the account ({own}), got {given}. Pass that one, or "
            "leave it out; the same rows have one budget however they are named. A custodian may "
            "raise it: heldout ledger raise."
        )
