"""Two logs: lines of JSON for whoever runs the server, and a table for the auditor.

Neither holds a private value, nor how long anything took on rows.
"""

import json
import sys
from typing import Any

import sqlalchemy as sa

from heldout.arguments import visible
from heldout.server.service import Service
from heldout.server.storage import log, now

__all__ = ["entries", "note", "told"]


def told(event: str, **facts: Any) -> None:
    """One line; control characters become escapes, so nobody can forge a second one."""
    content = {"time": round(now(), 3), "event": event} | facts
    print(json.dumps(content, default=str), file=sys.stderr, flush=True)


def note(service: Service, *, person: str | None, action: str, subject: str, status: int) -> None:
    """Keep who did what, for the auditor."""
    who = None if person is None else visible(person)[:100]
    row = {"time": now(), "person": who, "action": action, "subject": visible(subject)[:300]}
    with service.store.write() as connection:
        connection.execute(log.insert(), row | {"status": status})


def entries(
    service: Service, *, before: int | None = None, most: int = 200
) -> list[dict[str, Any]]:
    """The newest lines of the table, or those before one of them."""
    query = sa.select(log).order_by(log.c.id.desc()).limit(most)
    if before is not None:
        query = query.where(log.c.id < before)
    with service.store.read() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]
