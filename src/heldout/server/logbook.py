"""The log: who did what, by person, action and time, on a page and as a table to keep.

An auditor sees all of it. A custodian sees their own deeds, and what analysts asked of their data
sets. Not by any other subject: a data set may be called what the log calls something else.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import sqlalchemy as sa

from heldout.arguments import shown
from heldout.errors import ArgumentError
from heldout.kernel import Loss
from heldout.server.accounts import Person
from heldout.server.service import Service
from heldout.server.storage import Json, datasets, evaluations, log

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
        own = sa.select(datasets.c.name).where(datasets.c.owner == person.name)
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
