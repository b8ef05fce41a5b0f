"""Accounts of rows that nobody registered: a ledger finds them by a keyed digest of the rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from heldout.arguments import shown
from heldout.errors import ArgumentError, BudgetMismatch, LedgerError
from heldout.kernel.ledger.account import Account
from heldout.kernel.ledger.chain import AccountRow, Identity, Tie, mac_of, seal_of, tampered
from heldout.kernel.ledger.keys import check_of
from heldout.kernel.ledger.registry import Registry, checked_budget, new_row, unspent
from heldout.kernel.ledger.witness import Witness
from heldout.kernel.loss import Budget
from heldout.kernel.neighbours import Protection

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["ByContent", "same_budget"]

_KNOWN: Final = (
    "This ledger has an account for other rows called {name}. If these rows are about the same "
    "people, register them once (heldout ledger register) and name the account (account=, "
    "--account), or name the row_key that tells rows apart. If they are about others, say new=True "
    "(--new) or give them another name."
)


class ByContent(Registry):
    """Finds the account of rows by their content."""

    def account(
        self,
        fingerprint: bytes,
        *,
        budget: Budget | None,
        also: Sequence[bytes] = (),
        name: str | None = None,
        protection: Protection | None = None,
        rows: int | None = None,
        new: bool = False,
    ) -> Account:
        """The account of rows that are not registered: found by them, or opened with the budget.

        `fingerprint` is the private content digest of the rows, `also` further ones (by their
        keys, by all of their cells); only HMACs under the ledger's key are stored. Rows that
        share one of them are the same account, however they are named or declared, and the others
        are tied to it. Other rows under a name that the ledger knows are refused unless `new`
        says that they are about others. An account keeps the budget and the protection that it
        was opened with, because losses under two neighbouring relations do not add. `rows` is the
        number of rows where it is public: a new account has it on record from its first entry.
        """
        given = (fingerprint, *also)
        if not all(isinstance(each, bytes) and each for each in given):
            raise ArgumentError(
                "fingerprint must be the bytes of a digest. Pass the data set's content digest."
            )
        if budget is not None:
            checked_budget(budget)

        def look(connection: "Connection") -> tuple[AccountRow | None, Budget | None, bool]:
            key = self._key_if_any(connection)
            if key is None:
                return None, None, True
            row, own, loose = self._find(connection, key, given, protection, budget)
            return row, own, bool(loose)

        def tie_or_open(connection: "Connection") -> tuple[Account, Witness | None]:
            identity = self._watch.check(connection)
            _refuse_if_closed(identity)
            key = self._key(identity, make=True)
            if not identity.key_check:
                self._storage.set_identity(connection, key_check=check_of(key, identity.ledger))
            row, own, loose = self._find(connection, key, given, protection, budget)
            if row is not None and own is not None and not loose:
                return Account(row.id, own), None  # another process was first
            about: dict[str, Any] = {"kind": "tie", "name": name, "ties": len(loose)}
            if row is None:
                own, row = self._first_budget(connection, budget, name, new), new_row("rows", name)
                about["kind"] = "opening"
                about["protection"] = None if protection is None else protection.as_dict()
                line, opens = [(row, replace(unspent(own), rows=rows))], True
            else:
                line, opens = self._line(connection, row.id), False
            entry, _ = self._write(connection, identity, line, about, opens=opens)
            sealed = [Tie(mac, row.id, seal_of(key, row.id, mac)) for mac in loose]
            self._storage.add_ties(connection, sealed)
            assert own is not None
            written = Witness(identity.ledger, entry.sequence, entry.hash)
            return Account(row.id, own), written

        with self._storage.lock:
            row, own, unknown = self._watch.look(look)
            if row is not None and own is not None and not unknown:
                return Account(row.id, own)
            account, written = self._storage.write(tie_or_open)
            if written is not None:
                self._watch.remember(written)
            return account

    def _key_if_any(self, connection: "Connection") -> bytes | None:
        identity = self._watch.check(connection)
        _refuse_if_closed(identity)
        return self._key(identity) if identity.key_check else None

    def _find(
        self,
        connection: "Connection",
        key: bytes,
        given: Sequence[bytes],
        protection: Protection | None,
        budget: Budget | None,
    ) -> tuple[AccountRow | None, Budget | None, list[str]]:
        """The account, its budget, and the digests that do not lead to it yet."""
        macs = [mac_of(key, each) for each in dict.fromkeys(given)]
        ties = self._storage.tied(connection, macs)
        for tie in ties:
            if tie.seal != seal_of(key, tie.account, tie.mac):
                raise tampered(None, "an account was tied to other rows")
        if not ties:
            return None, None, macs
        if len({tie.account for tie in ties}) > 1:
            raise BudgetMismatch(
                "These rows match two accounts of the ledger: they were opened before as two data "
                "sets. Name one with account= (--account)."
            )
        row, state = self._open_line(connection, ties[0].account)[0]
        self._match(connection, row, protection)
        same_budget(budget, state.budget)
        known = {tie.mac for tie in ties}
        return row, state.budget, [mac for mac in macs if mac not in known]

    def _first_budget(
        self, connection: "Connection", budget: Budget | None, name: str | None, new: bool
    ) -> Budget:
        if budget is None:
            raise ArgumentError(
                "budget must be given when a data set is opened for the first time. "
                "Pass Budget(epsilon=...)."
            )
        if name is not None and not new and self._storage.named(connection, name):
            raise BudgetMismatch(_KNOWN.format(name=shown(name)))
        return budget

    def _match(
        self, connection: "Connection", row: AccountRow, protection: Protection | None
    ) -> None:
        """The table is declared as its account was."""
        opening = self._storage.opening(connection, row.id)
        wanted = None if protection is None else protection.as_dict()
        if wanted != opening.content["protection"]:
            raise BudgetMismatch(
                "neighbours, unit and rows_per_unit must be those that the account was opened "
                "with. Declare the data set as before: losses under two neighbouring "
                "relations do not add up."
            )


def _refuse_if_closed(identity: Identity) -> None:
    if identity.closed:
        raise LedgerError(
            "This ledger is closed to unregistered rows. Name a registered account: account= "
            "(--account)."
        )


def same_budget(given: Budget | None, own: Budget) -> None:
    """A budget that is given again must be the one on record."""
    if given is not None and checked_budget(given) != own:
        raise BudgetMismatch(
            f"budget must be the one of the account ({own}), got {given}. Pass that one, or "
            "leave it out; the same rows have one budget however they are named. A custodian may "
            "raise it: heldout ledger raise."
        )
