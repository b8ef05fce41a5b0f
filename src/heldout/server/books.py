"""The books: the ledger as people may see it, and the server's newest receipt.

A ledger that is put back together with its witness has a perfect chain. The server's own tables
know better: beside the answers they keep the newest receipt.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

import sqlalchemy as sa

from heldout.drawing.chart import Figure
from heldout.drawing.ledger import spending_over_time
from heldout.drawing.words import decimal
from heldout.errors import LedgerTampered
from heldout.kernel import Loss
from heldout.kernel.ledger.records import Entry
from heldout.kernel.ledger.witness import Witness
from heldout.server import artifacts, datasets
from heldout.server.accounts import Person
from heldout.server.service import Forbidden, Service, moment
from heldout.server.storage import Json, evaluations, receipts

NEWEST = "newest"
NOBODY = "a deleted model"
PUBLISHED = "the custodian, for all"
ROWS_ALONE = "no model: the rows alone"
UNITS = ((24.0, "Days"), (1.0, "Hours"), (1 / 60, "Minutes"))
"""Of the axis of time, in hours; the largest that something took longer than."""


# --- the newest receipt --------------------------------------------------------------------------


def keep_receipt(connection: sa.Connection, receipt: Witness) -> None:
    """Keep a receipt, unless a newer one is known."""
    known = connection.execute(sa.select(receipts.c.sequence)).scalar()
    if known is None:
        connection.execute(receipts.insert(), {"place": NEWEST} | vars(receipt))
    elif known < receipt.sequence:
        connection.execute(receipts.update().values(dict(vars(receipt))))


def check_receipt(service: Service) -> None:
    """Refuse a ledger that lacks the newest booking or registration with a receipt here.

    The ledger remembers what it was asked for, so a booking that follows looks again in its own
    transaction. One row of either is read, however long the ledger is.
    """
    row = service.store.row(sa.select(receipts))
    if row is None:
        return
    try:
        service.ledger.expect(Witness(row.ledger, row.sequence, row.hash))
    except LedgerTampered as error:
        refusal = LedgerTampered(
            f"The ledger was put back to an older copy, or replaced: this server has a receipt for "
            f"its entry {row.sequence}, and the ledger does not have that entry. Nothing was "
            "charged, and nothing will be until the custodian restores the newest copy. (If it is "
            "lost for good: heldout serve --accept-ledger, see docs/server.md.)"
        )
        refusal.sequence = row.sequence
        raise refusal from error


def accept_ledger(service: Service) -> str | None:
    """Take the ledger as it is for the truth, although it lacks an entry with a receipt.

    For a ledger whose newest copy is lost for good. What was booked after its end is forgotten, so
    the log keeps which entries these were. Returns that line; None if no entry with a receipt is
    missing.
    """
    try:
        check_receipt(service)
        return None
    except LedgerTampered:
        service.reopen_ledger()  # this one would refuse for as long as it lives
    head = service.ledger.head()
    with service.store.write() as connection:
        lost = connection.execute(sa.select(receipts)).one()
        connection.execute(receipts.update().values(dict(vars(head))))
    line = (
        f"it ends with entry {head.sequence} ({head.hash}); the newest receipt was for entry "
        f"{lost.sequence} ({lost.hash})"
    )
    service.note(None, "accept ledger", line)
    return line


# --- the ledger ----------------------------------------------------------------------------------


def bookings(service: Service, person: Person, dataset: str | None) -> list[Json]:
    """Return every line of the ledger that a person may see, in order."""
    chosen = (
        datasets.visible(service, person)
        if dataset is None
        else [datasets.seen(service, person, dataset)]
    )
    lines = {
        entry.sequence: _public(one.name, entry)
        for one in chosen
        if one.description is not None  # others have no account
        for entry in service.ledger.history(one.name)
    }
    return [lines[sequence] for sequence in sorted(lines)]


def _public(dataset: str, entry: Entry) -> Json:
    content = entry.content
    request = content.get("request", {})
    plain = {name: content.get(name) for name in ("analyst", "charge", "budget", "who", "why")}
    return plain | {
        "sequence": entry.sequence,
        "kind": content["kind"],
        "dataset": dataset,
        "time": content["time"],
        "hash": entry.hash,
        "questions": request.get("questions"),
        "evaluation": request.get("reference"),
        "subject": request.get("subject"),
    }


def head(service: Service) -> Json:
    """Return where the chain ends."""
    return dict(vars(service.ledger.head()))


def verify(service: Service, person: Person, receipt: str | None) -> Json:
    """Check the chain from its first entry; an analyst learns of a receipt only."""
    if person.role == "analyst" and receipt is None:
        raise Forbidden("Name the receipt to look for: ?receipt=HASH.")
    try:
        check_receipt(service)
        checked = service.ledger.verify(receipt=receipt).as_dict()
    except LedgerTampered as error:
        return {"intact": False, "words": str(error)}
    if person.role == "analyst":
        checked = {name: checked[name] for name in ("receipt_sequence", "ledger")}
    return {"intact": True, "words": "Every entry is as it was written."} | checked


# --- spending ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spending:
    """Sums by whom and on what, the largest first, and a picture over time."""

    by_analyst: tuple[tuple[str, str], ...]
    by_model: tuple[tuple[str, str], ...]
    figure: Figure | None


def spending(service: Service, lines: list[Json]) -> Spending:
    """Return what was spent on a data set, from the lines of its ledger."""
    booked = [line for line in lines if line["kind"] == "booking"]
    models = _models(service, [str(line["evaluation"]) for line in booked])
    by_analyst: defaultdict[str, Fraction] = defaultdict(Fraction)
    by_model: defaultdict[str, Fraction] = defaultdict(Fraction)
    points: list[tuple[str, datetime, float]] = []
    for line in booked:
        loss = Loss.from_dict(line["charge"])
        price = loss.rho if loss.epsilon is None else loss.epsilon
        assert price is not None
        who = line["analyst"] or PUBLISHED
        by_analyst[who] += price
        by_model[models.get(str(line["evaluation"]), ROWS_ALONE)] += price
        points.append((who, datetime.fromisoformat(line["time"]), float(by_analyst[who])))
    return Spending(_sorted(by_analyst), _sorted(by_model), _figure(points) if points else None)


def _models(service: Service, identities: list[str]) -> dict[str, str]:
    """Return the name of the model that each evaluation was about."""
    query = sa.select(evaluations.c.id, evaluations.c.artifact)
    rows = service.store.rows(query.where(evaluations.c.id.in_(set(identities))))
    names = artifacts.names(service, [row.artifact for row in rows])
    return {row.id: names.get(row.artifact, NOBODY) if row.artifact else ROWS_ALONE for row in rows}


def _sorted(sums: dict[str, Fraction]) -> tuple[tuple[str, str], ...]:
    largest = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return tuple((name, decimal(total)) for name, total in largest)


def _figure(points: list[tuple[str, datetime, float]]) -> Figure:
    """Draw what each analyst had spent in all."""
    first = min(time for _, time, _ in points)
    hours = [(who, (time - first).total_seconds() / 3600, spent) for who, time, spent in points]
    last = max(hour for _, hour, _ in hours)
    unit, title = next(axis for axis in UNITS if last > axis[0] or axis is UNITS[-1])
    spent: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for who, hour, amount in hours:
        spent[who].append((hour / unit, amount))
    return spending_over_time(
        spent,
        x=f"{title} since {moment(first.timestamp())} UTC",
        last=max(last / unit, 1.0) * 1.02,
        says="What each analyst had spent in all.",
    )
