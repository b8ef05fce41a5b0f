"""The ledger: what has been spent on whom, durable before any noise is drawn."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final, NoReturn

from heldout.arguments import shown
from heldout.errors import (
    AlreadyBooked,
    ArgumentError,
    BudgetExceeded,
    BudgetMismatch,
    LedgerKeyError,
    LedgerTampered,
)
from heldout.kernel import accountant
from heldout.kernel.events import Event, price
from heldout.kernel.ledger.journal import Balance, Books, Clock, Journal, Line
from heldout.kernel.ledger.keys import Individuals, KeyPlace, Overlap, Sample
from heldout.kernel.ledger.records import (
    Account,
    AccountRow,
    Entry,
    Receipt,
    State,
    canonical,
    checked_name,
)
from heldout.kernel.ledger.registry import (
    ByContent,
    Content,
    Registration,
    Registry,
    check_budget,
    signature,
)
from heldout.kernel.ledger.replay import Replay, Verification
from heldout.kernel.ledger.storage import Storage, file_of, storage_of
from heldout.kernel.ledger.witness import Watch, Witness, WitnessFile
from heldout.kernel.loss import Budget, Loss
from heldout.kernel.neighbours import Neighbours, Protection

__all__ = ["Account", "Entry", "Ledger", "Receipt", "Verification"]


class _Beside:
    """The default place of a witness or a key: beside a ledger file."""


BESIDE: Final = _Beside()
Place = str | os.PathLike[str] | _Beside


class Ledger:
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
        witness: Place | None = BESIDE,
        key: Place = BESIDE,
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
        self._storage = storage_of(where, read_only=read_only)
        self._key_place = _key_place(self._storage, key)
        self._watch = Watch(self._storage, _witness_file(self._storage, witness))
        self._journal = Journal(self._storage, self._watch, Clock(tick))
        self._registry = Registry(self._journal, self._key_place)
        self._by_content = ByContent(self._journal, self._key_place)
        if self._watch.begin() == 1:
            if read_only:  # it has another shape: bring it up to date, and look then
                self._storage.close()
                Ledger(where, witness=witness, key=key, renew_witness=renew_witness).close()
            elif self._storage.write(lambda tables: tables.migrate(self._key_place.adopt)):
                self._storage.wipe()  # the old key's traces
        self._watch.open(renew=renew_witness)

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str] | None,
        *,
        witness: Place | None = BESIDE,
        key: Place = BESIDE,
        renew_witness: bool = False,
        read_only: bool = False,
        tick: float | None = None,
    ) -> "Ledger":
        """Return `Ledger(where, ...)`."""
        return cls(
            where,
            witness=witness,
            key=key,
            renew_witness=renew_witness,
            read_only=read_only,
            tick=tick,
        )

    @property
    def id(self) -> str:
        """Return the random name that a ledger drew when it was made."""
        return self._watch.ledger

    # --- which account pays ----------------------------------------------------------------------

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
        """Find the account of rows that are not registered by them, or open it with the budget.

        `fingerprint` is the private content digest of the rows, `also` further ones (by their
        keys, by all of their cells); only HMACs under the ledger's key are stored. Rows that
        share one of them are the same account, however they are named or declared, and the others
        are tied to it. Other rows under a name that the ledger knows are refused unless `new`
        says that they are about others. An account keeps the budget and the protection that it
        was opened with, because losses under two neighbouring relations do not add. `rows` is the
        number of rows where it is public: a new account has it on record from its first entry.
        """
        return self._by_content.account(
            Content(
                fingerprints=(fingerprint, *also),
                budget=budget,
                name=name,
                protection=protection,
                rows=rows,
                new=new,
            )
        )

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
        """Return the account that pays for a session's rows.

        With `account`, the registered one (or the one that rows were opened under by this name);
        with `analyst`, that analyst's share of it. Without, rows are found by their content, of
        which `fingerprints` are digests. `rows` is their number where it is public: the first
        table of an account fixes it, however that table was found, and others are refused.
        """
        by_content = None
        if account is None:
            if analyst is not None:
                raise ArgumentError("analyst= requires account=, the account that the share is of.")
            first, *also = fingerprints
            by_content = self.account(
                first,
                also=also,
                budget=budget,
                name=name,
                protection=protection,
                rows=rows,
                new=new,
            )
            if rows is None:
                return by_content

        def find(books: Books) -> tuple[Account, Line]:
            """Find the account that pays, and the line of the data set's own account."""
            if by_content is None:
                row = books.named(account)
                data, payer = row.id, row.id if analyst is None else books.share(row, analyst).id
            else:
                data = payer = by_content.id
            books.check_protection(data, protection)
            line = books.open_line(payer)
            check_budget(budget, line[0].state.budget)
            own = line[[row.id for row, _ in line].index(data) :]
            _check_row_count(own, rows)
            return Account(payer, line[0].state.budget), own

        def count(books: Books) -> Account:
            """Fix the public number of rows, which the first table of an account does."""
            payer, ((row, state), *above) = find(books)
            if state.rows is None:
                counted = Balance(row, replace(state, rows=rows))
                books.write([counted, *above], {"kind": "counted"})
            return payer

        payer, own = self._journal.read(find)
        if rows is None or own[0].state.rows is not None:
            return payer
        return self._journal.write(count)

    # --- booking ---------------------------------------------------------------------------------

    def book(self, account: Account, event: Event, *, request: Mapping[str, Any]) -> Receipt:
        """Take the event's price from the account and all above it, or refuse and take nothing.

        A request with a `reference` is booked once: a second one is refused, and charged nothing.
        The booking is durable when this returns. If this raises anything but `BudgetExceeded`,
        `AccountClosed`, `AlreadyBooked` or an argument's error, the booking may have been made:
        nothing may be released either way.
        """
        loss = price(event)
        charge = accountant.charge(event, budget=account.budget)
        content = {
            "kind": "booking",
            "event": event.as_dict(),
            "loss": loss.as_dict(),
            "charge": charge.as_dict(),
            "request": dict(request),
        }
        canonical(content)
        reference = request.get("reference")

        def take(books: Books) -> tuple[Entry, Line]:
            if reference is not None:
                before = books.tables.referred(checked_name("reference", reference))
                if before is not None:
                    raise AlreadyBooked(before.sequence, before.hash)
            line = books.open_line(account.id)
            _refuse_overspending(line, charge)
            after = [Balance(row, _charged(state, charge)) for row, state in line]
            payer = line[0].row
            share = {"analyst": payer.name} if payer.kind == "analyst" else {}
            entry = books.write(after, content | share)
            if reference is not None:
                books.tables.add_reference(reference, entry.sequence)
            return entry, after

        entry, after = self._journal.write(take)
        return Receipt(
            entry.sequence,
            entry.hash,
            loss,
            charge,
            account.id,
            entry.time,
            standing=_standing(after),
        )

    def check(self, account: Account, event: Event) -> None:
        """Refuse what `book` would refuse now; takes nothing, and promises nothing."""
        charge = accountant.charge(event, budget=account.budget)
        self._journal.read(lambda books: _refuse_overspending(books.open_line(account.id), charge))

    def booked(self, reference: str) -> Entry | None:
        """Return the booking with this reference, if it was made; in a changed ledger too."""
        return self._storage.read(lambda tables: tables.referred(reference))

    # --- how accounts stand ----------------------------------------------------------------------

    def spent(self, account: Account | str) -> Loss:
        """Return what the account has spent, in the kind of its budget."""
        return self.standing(account)[1]

    def budget(self, account: Account | str) -> Budget:
        """Return the account's budget as it is now."""
        return self.standing(account)[0]

    def remaining(self, account: Account | str) -> Loss:
        """Return the least that is left of the account and of those above it."""
        return self.standing(account)[2]

    def standing(self, account: Account | str) -> tuple[Budget, Loss, Loss]:
        """Return budget, spent and remaining, as they are at one moment."""
        return self._journal.read(lambda books: _standing(books.line(books.id_of(account))))

    def entries(self, account: Account | str | None = None) -> list[Entry]:
        """List the bookings of an account and of all below it; `history` has every entry."""
        return [entry for entry in self.history(account) if entry.kind == "booking"]

    def history(self, account: Account | str | None = None) -> list[Entry]:
        """List every entry of an account and of all below it, or of the ledger, in order."""

        def look(books: Books) -> list[Entry]:
            below = None if account is None else books.id_of(account)
            entries = list(books.tables.entries(below))
            for entry in entries:
                entry.check_hash()
            return entries

        return self._journal.read(look)

    # --- the custodian's decisions ---------------------------------------------------------------

    def register(
        self,
        name: str,
        *,
        budget: Budget,
        unit: str | None = None,
        rows_per_unit: int = 1,
        neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
        outcome: str | Sequence[str] | None = None,
        people: str | None = None,
        closed: bool = False,
        table: Individuals | None = None,
        new: bool = False,
        apart: bool = False,
        who: str | None = None,
        why: str | None = None,
    ) -> Account:
        """Give a data set a name and a budget, which stay even if its table changes.

        `unit`, `rows_per_unit` and `neighbours` are those that its tables are declared with;
        under label neighbours `outcome` names the column with the outcome, or time and event.
        `people` names an account above it, which several data sets about the same people share;
        a new name opens it with the same budget (register it first to give it another one). It
        may be the account of rows that were asked about before they were registered: then what
        they spent counts, and so does what is asked of them without a name from now on.
        `closed` closes the ledger to rows that are not registered. `table`
        (`heldout.data.table.People`) shows who is in it: where people of other accounts are,
        this is refused unless `people` names their account or `new` gives them a second budget.
        `apart` is for custodians who share a ledger and no rows: only with accounts that `who`
        registered is the table compared, and `people` names one of those or a new one. Otherwise a
        table of one person would tell whether somebody else's rows hold that person.
        """
        wanted = Registration(
            name=checked_name("name", name),
            budget=budget,
            protection=Protection(
                neighbours=Neighbours.parse(neighbours),
                unit=unit is not None,
                rows_per_unit=rows_per_unit,
                unit_name=unit,
                outcome=_checked_outcome(outcome),
            ),
            people=people,
            closed=closed,
            new=new,
            apart=apart,
            signed=signature(who, why),
        )
        return self._registry.register(wanted, table)

    def registered_by(self, name: str) -> str | None:
        """Return who registered the account of a name, or None if there is none."""

        def look(books: Books) -> str | None:
            if not books.tables.named(checked_name("account", name)):
                return None
            return books.registrant(books.named(name).id)

        return self._journal.read(look)

    def overlaps(self, table: Individuals) -> list[Overlap]:
        """List the accounts that know people of this table; for the custodian.

        Compares with the tables that accounts were registered with.
        """
        return self._registry.overlaps(Sample.of(table))

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
        return self._registry.grant(account, analyst, budget, signature(who, why))

    def share(self, account: str, analyst: str) -> Account | None:
        """Return an analyst's share of an account, if there is one that is not revoked."""
        return self._registry.share(account, analyst)

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
        return self._registry.raise_budget(account, analyst, budget, signature(who, why))

    def revoke(
        self, account: str, *, analyst: str, who: str | None = None, why: str | None = None
    ) -> Account:
        """Take an analyst's share away; nothing more is booked on it, in open sessions neither."""
        return self._registry.close("revocation", account, analyst, signature(who, why))

    def close(
        self, account: str | None = None, *, who: str | None = None, why: str | None = None
    ) -> None:
        """Close an account for good; without one, let go of the database.

        A ledger in memory ends with its object; one in a file opens again when it is used.
        """
        if account is not None:
            self._registry.close("closing", account, None, signature(who, why))
        else:
            self._storage.close()

    # --- what was written stays ------------------------------------------------------------------

    def verify(self, receipt: str | None = None) -> Verification:
        """Recompute every hash, price and total; with a receipt's hash, find that booking.

        Raises LedgerTampered with the entry at fault in `sequence`. The key is not needed; where
        it is at hand, the ties of rows to accounts are checked as well.
        """
        if receipt is not None and not isinstance(receipt, str):
            raise ArgumentError(f"receipt must be a receipt's hash, got {shown(receipt)}.")

        def walk(books: Books) -> Verification:
            replay, sequence = Replay(books.identity), None
            for entry in books.tables.entries():
                replay.add(entry)
                if entry.hash == receipt:
                    sequence = entry.sequence
            key = None
            with contextlib.suppress(LedgerKeyError):
                if books.identity.key_check:
                    key = self._key_place.key_of(books.identity)
            accounts = replay.finish(books.tables.accounts(), books.tables.ties(), key)
            if receipt is not None and sequence is None:
                raise LedgerTampered(
                    "No entry of this ledger has this receipt, although every entry that is there "
                    "is as it was written. Either the receipt is from another ledger, or this one "
                    "was replaced by a copy that lacks the entry."
                )
            end = (replay.sequence, replay.head)
            return Verification(books.identity.ledger, replay.sequence, accounts, *end, sequence)

        with self._storage.lock:
            verified = self._journal.read(walk)
            self._watch.remember(Witness(verified.ledger, verified.sequence, verified.hash))
        return verified

    def expect(self, receipt: Witness) -> None:
        """Refuse this ledger, now and at every booking, if it lacks an entry with a receipt.

        It looks at one entry, however many there are; `verify(receipt=...)` walks the chain.
        """
        with self._storage.lock:
            self._watch.look(lambda tables: self._watch.expect(tables, receipt))

    def head(self) -> Witness:
        """Return where the chain ends now: keep it, and a ledger that is put back is noticed."""
        return self._journal.read(lambda books: Witness.of(books.identity))

    def check_key(self) -> bool:
        """Return whether a key is needed; raise LedgerKeyError if it is not at hand."""

        def look(books: Books) -> bool:
            return bool(books.identity.key_check and self._key_place.key_of(books.identity))

        return self._journal.read(look)

    def renew_key(self, *, who: str | None = None, why: str | None = None) -> None:
        """Begin with a new key after the old one was lost; forgets by which rows to find accounts.

        Accounts keep their budgets and are reached by their names from then on.
        """
        self._registry.renew_key(signature(who, why))

    # --- one process, many threads ---------------------------------------------------------------

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self._storage.place})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A ledger cannot be sent to another process. Open it again there.")


def _checked_outcome(outcome: object) -> tuple[str, ...]:
    """Return the columns with the outcome."""
    names = [] if outcome is None else [outcome] if isinstance(outcome, str) else outcome
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"outcome must be the name of a column, got {shown(outcome)}.")
    return tuple(names)


def _charged(state: State, charge: Loss) -> State:
    """Return the state once the charge is taken."""
    return replace(state, spent=accountant.compose([state.spent, charge], budget=state.budget))


def _refuse_overspending(line: Line, charge: Loss) -> None:
    """Refuse a charge that an account of the line cannot pay; name the one with the least left."""
    if all(accountant.fits(state.spent, charge, state.budget) for _, state in line):
        return
    lefts = [accountant.remaining(state.spent, state.budget) for _, state in line]
    least = reduce(accountant.smaller, lefts)
    poorest = [row for (row, _), left in zip(line, lefts, strict=True) if left == least]
    whose = _whose(poorest[0]) if poorest else ""
    refusal = BudgetExceeded(
        f"This costs {charge}, and {least} is left{whose}. Nothing was charged; ask for less."
    )
    refusal.cost, refusal.left = str(charge), str(least)
    raise refusal


def _whose(row: AccountRow) -> str:
    """Return whose budget it is, for a message."""
    what = " in the share of" if row.kind == "analyst" else " of account"
    return "" if row.kind == "rows" else f"{what} {shown(row.name)}"


def _check_row_count(line: Line, rows: int | None) -> None:
    """Refuse another number of rows than the first table of an account had, where it is public."""
    row, state = line[0]
    counted = state.rows
    if counted is not None and counted != rows:
        raise BudgetMismatch(
            f"Account {shown(row.name)} has {counted} rows, and its neighbouring relation makes "
            "that number public; this table has a different number. The relation does not protect "
            "people who are in only one of the two. Register the account with unit= or "
            "neighbours='add-remove', which keep the number private and allow any table about the "
            "same people."
        )


def _standing(line: Line) -> tuple[Budget, Loss, Loss]:
    """Return budget and spent of the first account of a line, and the least left on it."""
    left = (accountant.remaining(state.spent, state.budget) for _, state in line)
    state = line[0].state
    return state.budget, state.spent, reduce(accountant.smaller, left)


def _witness_file(storage: Storage, place: Place | None) -> WitnessFile | None:
    if isinstance(place, _Beside):
        place = None if storage.file is None else f"{storage.file}.witness"
    if place is None:
        return None
    witness = WitnessFile(file_of(place))
    if not storage.read_only:
        witness.tidy()
    return witness


def _key_place(storage: Storage, place: Place) -> KeyPlace:
    if not isinstance(place, _Beside):
        return KeyPlace(file_of(place))
    file = storage.file
    beside = None if file is None else file.with_name(file.name + ".key")
    return KeyPlace(beside, memory=storage.memory)
