"""The books as people may see them: the ledger, the server's newest receipt, and the log.

A ledger that is put back together with its witness has a perfect chain. The server's own tables
know better: beside the answers they keep the newest receipt.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final

import sqlalchemy as sa

from heldout.arguments import shown
from heldout.doors import as_json
from heldout.drawing.chart import Figure
from heldout.drawing.ledger import spending_over_time
from heldout.drawing.words import decimal
from heldout.errors import ArgumentError, LedgerTampered
from heldout.kernel import Loss
from heldout.kernel.ledger.records import Entry
from heldout.kernel.ledger.witness import Witness
from heldout.server import artifacts, datasets, storage
from heldout.server.accounts import Person
from heldout.server.service import Forbidden, Service, moment
from heldout.server.storage import Json, evaluations, log, receipts

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
        return {"intact": False, "words": as_json(str(error))}
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


# --- the log: who did what, by person, action and time --------------------------------------------
#
# An auditor sees all of it. A custodian sees their own deeds, and what analysts asked of their data
# sets. Not by any other subject: a data set may be called what the log calls something else.


MOST_LINES: Final = 200
ASKING: Final = ("evaluate", "cancel")
"""Actions whose subject is an evaluation, whose name nobody chooses."""
COLUMNS: Final = ("id", "time", "person", "action", "subject", "status", "dataset", "price")
FORMULAS: Final = ("=", "+", "-", "@")


@dataclass(frozen=True)
class Filter:
    """Which lines to show; empty texts leave a condition out."""

    person: str = ""
    action: str = ""
    since: str = ""
    until: str = ""
    before: int | None = None

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions on the log's lines; days are whole days of UTC."""
        chosen: list[sa.ColumnElement[bool]] = []
        if self.person:
            chosen.append(log.c.person == self.person)
        if self.action:
            chosen.append(log.c.action == self.action)
        if self.since:
            chosen.append(log.c.time >= _day("since", self.since).timestamp())
        if self.until:
            end = _day("until", self.until) + timedelta(days=1)
            chosen.append(log.c.time < end.timestamp())
        if self.before is not None:
            chosen.append(log.c.id < self.before)
        return chosen


def _day(what: str, text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise ArgumentError(
            f"{what} must be a day such as 2026-02-28, got {shown(text)}."
        ) from None


def log_lines(service: Service, person: Person, chosen: Filter) -> list[Json]:
    """Return lines of the log that a person may see, newest first, up to 200."""
    person.must_be("auditor", "custodian")
    asked = log.c.action.in_(ASKING) & (log.c.subject == evaluations.c.id)
    query = sa.select(log, evaluations.c.dataset, evaluations.c.price)
    query = query.select_from(log.outerjoin(evaluations, asked)).where(*chosen.conditions())
    if person.role != "auditor":
        of_all = storage.datasets.c
        own = sa.select(of_all.name).where(of_all.owner == person.name)
        query = query.where((log.c.person == person.name) | evaluations.c.dataset.in_(own))
    rows = service.store.rows(query.order_by(log.c.id.desc()).limit(MOST_LINES))
    return [dict(row._mapping) | {"price": _price(row.price)} for row in rows]


def _price(price: Json | None) -> str | None:
    return None if price is None else str(Loss.from_dict(price))


def actions(service: Service) -> list[str]:
    """Return every action that the log has."""
    known = service.store.rows(sa.select(log.c.action).distinct().order_by(log.c.action))
    return [row.action for row in known]


def as_csv(service: Service, person: Person, chosen: Filter) -> Iterator[str]:
    """Yield the lines that a person may see as CSV, newest first, all of them.

    People type anything where a name belongs, so no cell is one that a spreadsheet would work out.
    """
    yield _line(COLUMNS)
    while lines := log_lines(service, person, chosen):
        for line in lines:
            when = datetime.fromtimestamp(line["time"], UTC).isoformat(timespec="seconds")
            yield _line([{**line, "time": when}[name] for name in COLUMNS])
        chosen = replace(chosen, before=lines[-1]["id"])


def _line(cells: object) -> str:
    assert isinstance(cells, list | tuple)
    texts = ["" if cell is None else str(cell) for cell in cells]
    safe = [f"'{text}" if text.startswith(FORMULAS) else text for text in texts]
    out = io.StringIO()
    csv.writer(out).writerow(safe)
    return out.getvalue()
