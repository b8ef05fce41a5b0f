"""The ledger: what has been spent on whom, durable before any noise is drawn."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from heldout.arguments import shown
from heldout.errors import AlreadyBooked, ArgumentError, BudgetExceeded, BudgetMismatch
from heldout.kernel import accountant
from heldout.kernel.events import Event, price
from heldout.kernel.ledger.account import Account, Receipt
from heldout.kernel.ledger.books import Line, checked_name, file_of, told
from heldout.kernel.ledger.by_content import ByContent, same_budget
from heldout.kernel.ledger.chain import Entry, State, canonical
from heldout.kernel.ledger.keys import KeyPlace
from heldout.kernel.ledger.memory import Memory
from heldout.kernel.ledger.replay import Verification
from heldout.kernel.ledger.witness import Witness, WitnessFile
from heldout.kernel.loss import Budget, Loss
from heldout.kernel.neighbours import Protection

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from heldout.kernel.ledger.storage import Storage

__all__ = ["Account", "Entry", "Ledger", "Receipt", "Verification"]


class _Beside:
    """The default place of a witness or a key: beside a ledger file."""


BESIDE: Final = _Beside()


class Ledger(ByContent):
    """Books losses against budgets; a chain of hashes and a witness notice changes.

    Claim:       the bookings of an account, and of every account below it, never exceed its
                 budget, whoever books at once; a booking that was returned survives a crash.
                                                                           [claim: ledger]
    Neighbours:  those of the account's protection; an account has one.
    Numerics:    exact.
    Refuses:     a ledger whose chain, totals, prices or accounts were changed (`verify` looks at
                 everything, opening and booking at what they rest on); one that lost an entry
                 that this object, the witness file or a given receipt has seen.
    Cannot see:  a ledger and its witness that were both put back to the same older copy, or a
                 chain that was forged from the start together with the witness. Keep receipts
                 elsewhere: `expect` and `verify(receipt=...)` notice both. Who can write the file
                 can also open a new ledger; the ledger guards against mistakes and against
                 analysts, not against the custodian's own machine.

    >>> ledger = Ledger()
    >>> account = ledger.register("readmissions", budget=Budget(epsilon=1))
    >>> receipt = ledger.book(account, Event("exponential", {"epsilon": "1/3"}), request={})
    >>> print(receipt.loss, "|", ledger.remaining("readmissions"))
    epsilon 1/3 | epsilon 2/3
    """

    def __init__(
        self,
        where: str | os.PathLike[str] | None = None,
        *,
        witness: str | os.PathLike[str] | _Beside | None = BESIDE,
        key: str | os.PathLike[str] | _Beside = BESIDE,
        renew_witness: bool = False,
        read_only: bool = False,
        tick: float | None = None,
    ) -> None:
        """Open or make a ledger, and check its end against its witness; `verify` checks all of it.

        `where` is None (memory), a file (SQLite) or an SQLAlchemy URL. `key` is the file of the
        secret under which rows are remembered (beside a ledger file; in ~/.heldout for a
        database), unless HELDOUT_LEDGER_KEY or HELDOUT_LEDGER_KEY_COMMAND gives it.
        `renew_witness` accepts a ledger whose witness is lost: only for a custodian who knows why
        it is lost. `read_only` writes nothing, wherever the ledger lies. With `tick` the times of
        entries are whole multiples of so many seconds: where others read them, microseconds would
        tell how long the work before a booking took.
        """
        storage = _storage(where, read_only)
        file = storage.file
        if not isinstance(witness, _Beside):
            place = None if witness is None else file_of(witness)
        else:
            place = None if file is None else file.with_name(file.name + ".witness")
        if not isinstance(key, _Beside):
            secret = KeyPlace(file_of(key))
        else:
            key_file = None if file is None else file.with_name(file.name + ".key")
            secret = KeyPlace(key_file, memory=storage.memory)
        watched = None if place is None else WitnessFile(place)
        if watched is not None and not read_only:
            watched.tidy()
        super().__init__(storage, watched, secret, tick=tick)
        if self._watch.begin() == 1:
            from heldout.kernel.ledger.migration import from_the_first_version

            if read_only:  # it has another shape: bring it up to date, and look then
                Ledger(where, witness=witness, key=key, renew_witness=renew_witness).close()
                super().__init__(_storage(where, read_only), watched, secret, tick=tick)
                self._watch.begin()
            else:
                from_the_first_version(storage, secret)
        if renew_witness and not read_only:
            self._watch.renew()
        with self._storage.lock:
            self._watch.remember(self._watch.look(self._watch.end))

    @classmethod
    def open(cls, where: str | os.PathLike[str] | None, **words: Any) -> "Ledger":
        """The same as `Ledger(where, ...)`."""
        return cls(where, **words)

    # --- which account pays ----------------------------------------------------------------------

    def resolve(
        self,
        *,
        fingerprints: Sequence[bytes],
        protection: Protection,
        rows: int | None,
        name: str | None,
        budget: Budget | None = None,
        account: str | None = None,
        analyst: str | None = None,
        new: bool = False,
    ) -> Account:
        """The account that pays for a session's rows.

        With `account`, the registered one (or the one that rows were opened under by this name);
        with `analyst`, that analyst's share of it. Without, rows are found by their content, of
        which `fingerprints` are digests. `rows` is their number where it is public: the first
        table of an account fixes it, however that table was found, and others are refused.
        """
        by_content = ""
        if account is None:
            if analyst is not None:
                raise ArgumentError("analyst= requires account=, the account that the share is of.")
            first, *also = fingerprints
            paying = self.account(
                first,
                also=also,
                budget=budget,
                name=name,
                protection=protection,
                rows=rows,
                new=new,
            )
            if rows is None:
                return paying
            by_content = paying.id

        def find(connection: "Connection") -> tuple[Account, Line, int]:
            """The account that pays, its line, and where in it the data set is."""
            self._watch.check(connection)
            if account is None:
                data = row = self._line(connection, by_content)[0][0]
            else:
                data = row = self._named(connection, account)
            self._match(connection, data, protection)
            if analyst is not None:
                row = self._share(connection, data, analyst)
            line = self._open_line(connection, row.id)
            same_budget(budget, line[0][1].budget)
            place = [each.id for each, _ in line].index(data.id)
            counted = line[place][1].rows
            if counted is not None and counted != rows:
                raise BudgetMismatch(
                    f"Account {shown(data.name)} has {counted} rows, and their number is public "
                    "under replace-one neighbours; this table has another number. Who is in one of "
                    "the two only is not protected by that relation. Register the account with "
                    "unit= or neighbours='add-remove', which keep the number private and allow any "
                    "table about the same people."
                )
            return Account(row.id, line[0][1].budget), line, place

        def count(connection: "Connection") -> tuple[Account, Witness | None]:
            """The first table of an account with a public number of rows fixes the number."""
            found, line, place = find(connection)
            data, state = line[place]
            if state.rows is not None:
                return found, None
            identity = self._watch.check(connection)
            line = [(data, replace(state, rows=rows)), *line[place + 1 :]]
            entry, _ = self._write(connection, identity, line, {"kind": "counted"})
            return found, Witness(identity.ledger, entry.sequence, entry.hash)

        with self._storage.lock:
            found, line, place = self._watch.look(find)
            if rows is not None and line[place][1].rows is None:
                found, written = self._storage.write(count)
                if written is not None:
                    self._watch.remember(written)
        return found

    # --- booking ---------------------------------------------------------------------------------

    def book(self, account: Account, event: Event, *, request: Mapping[str, Any]) -> Receipt:
        """Take the event's price from the account and all above it, or refuse and take nothing.

        A request with a `reference` is booked once: a second one is refused, and charged nothing.
        The booking is durable when this returns. If this raises anything but `BudgetExceeded`,
        `AccountClosed`, `AlreadyBooked` or an argument's error, the booking may have been made:
        nothing may be released either way.
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
        reference = request.get("reference")

        def take(connection: "Connection") -> tuple[Entry, Witness, Line]:
            identity = self._watch.check(connection)
            if reference is not None:
                before = self._storage.referred(connection, checked_name("reference", reference))
                if before is not None:
                    raise AlreadyBooked(before.sequence, before.hash)
            line = self._open_line(connection, account.id)
            _refuse_overspending(line, cost)
            after = [(row, _with(state, cost)) for row, state in line]
            whose_share = {"analyst": line[0][0].name} if line[0][0].kind == "analyst" else {}
            entry, _ = self._write(connection, identity, after, content | whose_share)
            if reference is not None:
                self._storage.refer(connection, reference, entry.sequence)
            return entry, Witness(identity.ledger, entry.sequence, entry.hash), after

        with self._storage.lock:
            self._watch.settle()
            entry, written, after = self._storage.write(take)
            self._watch.remember_paid(written)
        return Receipt(
            entry.sequence, entry.hash, loss, cost, account.id, entry.time, standing=told(after)
        )

    def check(self, account: Account, event: Event) -> None:
        """Refuse what `book` would refuse now; takes nothing, and promises nothing."""
        cost = accountant.charge(event, budget=account.budget)

        def look(connection: "Connection") -> None:
            self._watch.check(connection)
            _refuse_overspending(self._open_line(connection, account.id), cost)

        with self._storage.lock:
            self._watch.look(look)

    def booked(self, reference: str) -> Entry | None:
        """The booking with this reference, if it was made."""
        with self._storage.lock:
            return self._watch.look(lambda each: self._storage.referred(each, reference))

    def expect(self, receipt: Witness) -> None:
        """Refuse this ledger, now and at every booking, if it lacks an entry with a receipt.

        It looks at one entry, however many there are; `verify(receipt=...)` walks the chain.
        """
        with self._storage.lock:
            self._watch.look(lambda connection: self._watch.expect(connection, receipt))

    def head(self) -> Witness:
        """Where the chain ends now: keep it, and a ledger that is put back is noticed."""
        with self._storage.lock:
            return self._watch.look(self._watch.end)

    # --- one process, many threads ---------------------------------------------------------------

    def close(
        self, account: str | None = None, *, who: str | None = None, why: str | None = None
    ) -> None:
        """Close an account for good; without one, let go of the database.

        A ledger in memory is gone then; one in a file opens again when it is used.
        """
        if account is not None:
            self._close_account(account, who, why)
        else:
            self._storage.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("A ledger must stay in its process. Open it again where you need it.")


def _with(state: State, cost: Loss) -> State:
    """The state once the cost is taken."""
    return replace(state, spent=accountant.compose([state.spent, cost], budget=state.budget))


def _refuse_overspending(line: Line, cost: Loss) -> None:
    """Refuse a cost that an account of the line cannot pay."""
    for row, state in line:
        if not accountant.fits(state.spent, cost, state.budget):
            left = accountant.remaining(state.spent, state.budget)
            whose = "" if row.kind == "rows" else f" of account {shown(row.name)}"
            refusal = BudgetExceeded(
                f"The request must cost at most what is left{whose} ({left}), got {cost}. "
                "Nothing was charged; ask for less."
            )
            refusal.cost, refusal.left = str(cost), str(left)
            raise refusal


def _storage(where: str | os.PathLike[str] | None, read_only: bool) -> "Storage":
    if where is None:
        return cast("Storage", Memory())  # it takes the same steps
    from heldout.kernel.ledger.storage import Storage

    if isinstance(where, str) and "://" in where:
        return Storage.at(where, read_only=read_only)
    if isinstance(where, str | os.PathLike) and os.fspath(where):
        return Storage.on_file(file_of(where), read_only=read_only)
    raise ArgumentError(
        f"ledger must be None, a file or a database URL, got {type(where).__name__}. "
        "Pass 'ledger.sqlite', say."
    )
