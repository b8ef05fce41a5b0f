"""The ledger: what has been spent on which data set, durable before any noise is drawn."""

import contextlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from heldout.arguments import shown
from heldout.errors import (
    ArgumentError,
    BudgetExceeded,
    BudgetMismatch,
    LedgerError,
)
from heldout.privacy import accountant
from heldout.privacy.account import Account, Receipt
from heldout.privacy.chain import (
    AccountRow,
    Entry,
    Identity,
    Tie,
    canonical,
    link,
    mac_of,
    seal_of,
    tampered,
)
from heldout.privacy.events import Event, price
from heldout.privacy.loss import Budget, Loss
from heldout.privacy.neighbours import Protection
from heldout.privacy.replay import Replay, Verification
from heldout.privacy.watch import Watch
from heldout.privacy.witness import Witness, WitnessFile

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from heldout.privacy.storage import Storage

__all__ = ["Account", "Entry", "Ledger", "Receipt", "Verification"]


class _Beside:
    """The default place of a witness: beside a ledger file, nowhere for a database."""


BESIDE: Final = _Beside()


class Ledger:
    """Books losses against budgets; a chain of hashes and a witness notice changes.

    Claim:       the bookings of an account never exceed its budget, whoever books at once; a
                 booking that was returned survives a crash.               [claim: ledger]
    Neighbours:  those of the account's protection; an account has one.
    Numerics:    exact.
    Refuses:     a ledger whose chain, totals, prices or accounts were changed; one that lost an
                 entry that this object, the witness file or a given receipt has seen.
    Cannot see:  a ledger and its witness that were both put back to the same older copy, or a
                 chain that was forged from the start together with the witness. Keep receipts
                 elsewhere: `verify(receipt=...)` notices both. Who can write the file can also
                 open a new ledger; the ledger guards against mistakes and against analysts, not
                 against the custodian's own machine.

    >>> ledger = Ledger.open(None)
    >>> account = ledger.account(b"digest of the rows", budget=Budget(epsilon=1))
    >>> receipt = ledger.book(account, Event("exponential", {"epsilon": "1/3"}), request={})
    >>> print(receipt.loss, "|", ledger.remaining(account))
    epsilon 1/3 | epsilon 2/3
    """

    def __init__(self, storage: "Storage", witness: WitnessFile | None) -> None:
        """Use `Ledger.open`."""
        self._storage = storage
        self._watch = Watch(storage, witness)
        self._lock = threading.RLock()
        self._lock_process = os.getpid()

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str] | None,
        *,
        witness: str | os.PathLike[str] | _Beside | None = BESIDE,
        renew_witness: bool = False,
    ) -> "Ledger":
        """Open or make a ledger, and verify all of it.

        `where` is None (memory), a file (SQLite) or an SQLAlchemy URL. `renew_witness` accepts a
        ledger whose witness is lost: only for a custodian who knows why it is lost.
        """
        from heldout.privacy.storage import Storage

        if where is None:
            storage = Storage.in_memory()
        elif isinstance(where, str) and "://" in where:
            storage = Storage.at(where)
        elif isinstance(where, str | os.PathLike) and os.fspath(where):
            storage = Storage.on_file(_file(where))
        else:
            raise ArgumentError(
                f"ledger must be None, a file or a database URL, got {type(where).__name__}. "
                "Pass 'ledger.sqlite', say."
            )
        if not isinstance(witness, _Beside):
            place = None if witness is None else _file(witness)
        else:
            file = storage.file
            place = None if file is None else file.with_name(file.name + ".witness")
        ledger = cls(storage, None if place is None else WitnessFile(place))
        ledger._watch.begin()
        if renew_witness:
            ledger._watch.renew()
        ledger.verify()
        return ledger

    # --- accounts --------------------------------------------------------------------------------

    def resolve(
        self,
        *,
        fingerprints: Callable[[], Sequence[bytes]],
        protection: Protection,
        rows: int | None,
        name: str | None,
        budget: Budget | None = None,
        account: str | None = None,
        analyst: str | None = None,
        new: bool = False,
    ) -> Account:
        """The account that pays for a session's rows.

        `fingerprints` is called only where rows must be found by their content; `rows` is their
        number where it is public.
        """
        if account is not None or analyst is not None:
            raise LedgerError(f"No account {shown(account)} is registered in this ledger.")
        first, *also = fingerprints()
        return self.account(first, also=also, budget=budget, name=name, protection=protection)

    def account(
        self,
        fingerprint: bytes,
        *,
        budget: Budget | None,
        also: Sequence[bytes] = (),
        name: str | None = None,
        protection: Protection | None = None,
    ) -> Account:
        """The account of a data set: found by its rows, or opened with the budget.

        `fingerprint` is the private content digest of the rows, `also` further ones (by their
        keys, by all of their cells); only HMACs under the ledger's own random key are stored. Rows
        that share one of them are the same account, however they are named or declared, and the
        others are tied to it. An account keeps the budget and the protection that it was opened
        with, because losses under two neighbouring relations do not add.
        """
        given = (fingerprint, *also)
        if not all(isinstance(each, bytes) and each for each in given):
            raise ArgumentError(
                "fingerprint must be the bytes of a digest, got something else. "
                "Pass the data set's content digest."
            )
        if budget is not None and not isinstance(budget, Budget):
            raise ArgumentError(
                f"budget must be a Budget, got {type(budget).__name__}. Pass Budget(epsilon=...)."
            )
        wanted = None if protection is None else protection.as_dict()

        def find(connection: "Connection") -> tuple[Account | None, list[str]]:
            """The account, and the digests that do not lead to it yet."""
            key = self._watch.check(connection).key
            macs = [mac_of(key, each) for each in dict.fromkeys(given)]
            ties = self._storage.ties(connection, macs)
            for tie in ties:
                if tie.seal != seal_of(key, tie.account, tie.mac):
                    raise tampered(None, "an account was tied to other rows")
            if not ties:
                return None, macs
            if len({tie.account for tie in ties}) > 1:
                raise BudgetMismatch(
                    "rows must have one budget, got two: they were opened before as two data "
                    "sets. Declare them as they were then."
                )
            known = {tie.mac for tie in ties}
            account = self._match(connection, ties[0].account, budget, wanted)
            return account, [mac for mac in macs if mac not in known]

        def find_or_open(connection: "Connection") -> tuple[Account, Witness | None]:
            account, loose = find(connection)
            if account is not None and not loose:
                return account, None
            identity = self._watch.check(connection)
            if account is None:
                if budget is None:
                    raise ArgumentError(
                        "budget must be given when a data set is opened for the first time, got "
                        "None. Pass Budget(epsilon=...)."
                    )
                account = Account(secrets.token_hex(16), budget)
                spent = accountant.compose([], budget=budget)
                content: dict[str, Any] = {"kind": "opening", "name": name, "protection": wanted}
                entry = self._entry(identity, account, spent, content | {"ties": len(loose)})
                total = canonical(spent.as_dict())
                limit = canonical(budget.as_dict())
                row = AccountRow(account.id, limit, total, entry.sequence, entry.hash)
                self._storage.add_account(connection, row)
            else:
                row, spent = self._state(connection, account)
                content = {"kind": "tie", "name": name, "ties": len(loose)}
                entry = self._entry(identity, account, spent, content)
                self._storage.swap_account(connection, row, spent=row.spent, entry=entry)
            sealed = [Tie(mac, account.id, seal_of(identity.key, account.id, mac)) for mac in loose]
            self._storage.add_ties(connection, sealed)
            self._storage.append(connection, identity, entry)
            return account, Witness(identity.ledger, entry.sequence, entry.hash)

        with self._guard():
            known, loose = self._watch.look(find)
            if known is not None and not loose:
                return known
            account, written = self._storage.write(find_or_open)
            if written is not None:
                self._watch.remember(written)
            return account

    def _match(
        self,
        connection: "Connection",
        account: str,
        budget: Budget | None,
        protection: Mapping[str, Any] | None,
    ) -> Account:
        opening = self._storage.opening(connection, account)
        if opening is None or opening.kind != "opening":
            raise tampered(None, "the opening of an account is missing")
        opening.check()
        if opening.content["budget"] != (own := opening.budget).as_dict():
            raise tampered(opening.sequence, "its budget cannot be read")
        if budget is not None and budget != own:
            raise BudgetMismatch(
                f"budget must be the one that these rows were opened with ({own}), got {budget}. "
                "Pass that budget, or None; the same rows have one budget however they are named."
            )
        if protection != opening.content["protection"]:
            raise BudgetMismatch(
                "neighbours, unit and rows_per_unit must be those that these rows were opened "
                "with, got others. Declare the data set as before: losses under two neighbouring "
                "relations do not add up."
            )
        return Account(account, own)

    # --- booking ---------------------------------------------------------------------------------

    def book(self, account: Account, event: Event, *, request: Mapping[str, Any]) -> Receipt:
        """Take the event's price from the account, or refuse and take nothing.

        The booking is durable when this returns. If this raises anything but `BudgetExceeded` or
        an argument's error, the booking may have been made: nothing may be released either way.
        """
        loss = price(event)
        cost = accountant.charge(event, budget=account.budget)
        content = {
            "kind": "booking",
            "event": event.as_dict(),
            "loss": loss.as_dict(),
            "charge": cost.as_dict(),
            "request": dict(request),
        }
        canonical(content)

        def take(connection: "Connection") -> tuple[Entry, Witness]:
            identity = self._watch.check(connection)
            row, spent = self._state(connection, account)
            if not accountant.fits(spent, cost, account.budget):
                left = accountant.remaining(spent, account.budget)
                refusal = BudgetExceeded(
                    f"The request must cost at most what is left ({left}), got {cost}. "
                    "Nothing was charged; ask for less."
                )
                refusal.cost, refusal.left = str(cost), str(left)
                raise refusal
            after = accountant.compose([spent, cost], budget=account.budget)
            entry = self._entry(identity, account, after, content)
            total = canonical(after.as_dict())
            self._storage.swap_account(connection, row, spent=total, entry=entry)
            self._storage.append(connection, identity, entry)
            return entry, Witness(identity.ledger, entry.sequence, entry.hash)

        with self._guard():
            entry, written = self._storage.write(take)
            self._watch.remember(written)
        return Receipt(entry.sequence, entry.hash, loss, cost, account.id, entry.time)

    @staticmethod
    def _entry(
        identity: Identity, account: Account, spent: Loss, content: Mapping[str, Any]
    ) -> Entry:
        sequence = identity.sequence + 1
        body = canonical(
            {
                **content,
                "ledger": identity.ledger,
                "sequence": sequence,
                "account": account.id,
                "budget": account.budget.as_dict(),
                "spent": spent.as_dict(),
                "time": datetime.now(UTC).isoformat(timespec="microseconds"),
            }
        )
        return Entry(sequence, account.id, identity.head, link(identity.head, body), body)

    # --- looking ---------------------------------------------------------------------------------

    def spent(self, account: Account) -> Loss:
        """What the account has spent, in the kind of its budget."""

        def look(connection: "Connection") -> Loss:
            self._watch.check(connection)
            return self._state(connection, account)[1]

        with self._guard():
            return self._watch.look(look)

    def remaining(self, account: Account) -> Loss:
        """What can still be taken from the account."""
        return accountant.remaining(self.spent(account), account.budget)

    def entries(self, account: Account | None = None) -> list[Entry]:
        """The bookings of an account, or of all, in order; `history` has the openings as well."""
        return [entry for entry in self.history(account) if entry.kind == "booking"]

    def history(self, account: Account | None = None) -> list[Entry]:
        """Every entry of an account, or of all, in order."""
        which = None if account is None else account.id

        def look(connection: "Connection") -> list[Entry]:
            self._watch.check(connection)
            listed = list(self._storage.entries(connection, which))
            for entry in listed:
                entry.check()
            return listed

        with self._guard():
            return self._watch.look(look)

    def verify(self, receipt: str | None = None) -> Verification:
        """Recompute every hash, price and total; with a receipt's hash, find that booking.

        Raises LedgerTampered with the entry at fault in `sequence`.
        """
        if receipt is not None and not isinstance(receipt, str):
            raise ArgumentError(f"receipt must be a receipt's hash, got {shown(receipt)}.")

        def walk(connection: "Connection") -> tuple[Verification, Witness]:
            identity = self._watch.check(connection)
            replay, found = Replay(identity), None
            for entry in self._storage.entries(connection):
                replay.add(entry)
                if entry.hash == receipt:
                    found = entry.sequence
            count = replay.finish(
                self._storage.accounts(connection), self._storage.ties(connection)
            )
            if receipt is not None and found is None:
                raise tampered(None, "it has no booking with this receipt, unless it is another's")
            end = (replay.sequence, replay.head)
            verified = Verification(identity.ledger, replay.sequence, count, *end, found)
            return verified, Witness(identity.ledger, *end)

        with self._guard():
            verified, end = self._watch.look(walk)
            self._watch.remember(end)
        return verified

    def _state(self, connection: "Connection", account: Account) -> tuple[AccountRow, Loss]:
        """The account's row and total, which must be those of its last entry."""
        found = self._storage.account(connection, account.id)
        if found is None:
            raise LedgerError(
                "account must be one that this ledger opened, got another. Call account() first."
            )
        row, entry = found
        if entry.hash != row.head or entry.account != row.id:
            raise tampered(row.sequence, "it is not the last one of its account")
        content = entry.check()
        if canonical(content["budget"]) != row.budget or canonical(content["spent"]) != row.spent:
            raise tampered(row.sequence, "the stored budget or total of its account differs")
        if entry.budget != account.budget:
            raise BudgetMismatch(
                f"budget must be the one that the account was opened with ({entry.budget}), got "
                f"{account.budget}. Call account() again."
            )
        return row, entry.spent

    # --- one process, many threads ---------------------------------------------------------------

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """One transaction at a time in this object; a forked child starts with a free lock."""
        if self._lock_process != os.getpid():
            self._lock, self._lock_process = threading.RLock(), os.getpid()
        with self._lock:
            yield

    def close(self) -> None:
        """Let go of the database; a ledger in memory is gone."""
        self._storage.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self._storage.place})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A ledger must stay in its process. Open it again where you need it.")


def _file(where: str | os.PathLike[str]) -> Path:
    """The path of a file that can be one: a text or a path, which the system can spell."""
    try:
        place = Path(where).resolve()
        place.exists()
        if str(place).isprintable():
            return place
    except (OSError, TypeError, ValueError):
        pass
    raise ArgumentError(
        f"ledger must lie in a file with an ordinary name, got {shown(where)}. Choose another."
    )
