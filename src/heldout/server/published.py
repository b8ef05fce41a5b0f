"""Answers that a custodian buys out of a data set's budget for everybody who may ask about it.

A kind of question whose answer is a file of rows may be published: a made-up twin that was drawn
from noisy tables. It is an evaluation of the custodian's own: booked, drawn, signed and kept like
any other, and shown to all analysts with an allowance. Nothing is taken from their allowances.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import sqlalchemy as sa

from heldout import questions as q
from heldout.errors import ArgumentError, BudgetExceeded
from heldout.kernel.ledger.records import checked_name
from heldout.server import evaluations
from heldout.server.accounts import Person
from heldout.server.datasets import Registered, owned, seen
from heldout.server.service import Missing, Service
from heldout.server.storage import Json
from heldout.server.storage import evaluations as table

ENDING: Final = ".csv"
OF_CUSTODIAN: Final = (
    sa.select(table)
    .where(table.c.dataset == sa.bindparam("of"), table.c.owner == sa.bindparam("by"))
    .order_by(table.c.created.desc())
)


def kinds(registered: Registered) -> list[type[q.Question[Any]]]:
    """Return the kinds of question that may be published of a data set."""
    return [
        kind
        for kind in q.registered()
        if ENDING in kind.writes and evaluations.why_not(registered, kind) is None
    ]


def publish(
    service: Service, person: Person, name: str, *, question: Mapping[str, Any], key: str
) -> sa.Row[Any]:
    """Book an answer for everybody out of the data set's own budget; a worker draws it."""
    registered = owned(service, person, name, scope="manage")
    registered.ready()
    checked_name("Idempotency-Key", key)
    [asked] = evaluations.parsed([question])
    if type(asked) not in kinds(registered):
        known = ", ".join(kind.kind for kind in kinds(registered))
        raise ArgumentError(
            f"{asked.kind!r} cannot be published here."
            + (f" What can: {known}." if known else " " + NEEDS)
        )
    offered = q.Quote((asked,), evaluations.asked_of(registered, [asked]), q.Guess())
    left, wanted = service.ledger.standing(name)[2], offered.loss.epsilon
    if wanted is not None and left.epsilon is not None and wanted > left.epsilon:
        raise BudgetExceeded(f"It costs {offered.loss}, and {left} is left. Nothing was charged.")
    # The same key with another question, or of another data set, is refused.
    digest = hashlib.sha256(
        json.dumps([name, asked.as_dict()], sort_keys=True).encode()
    ).hexdigest()
    return evaluations.keep_new(
        service, person, registered, offered, key=key, published=True, digest=digest
    )


NEEDS: Final = (
    'It needs columns with declared values, such as "measured": {"values": {"age": [18, 90], '
    '"pay": [0, 90000]}}.'
)


def listed(service: Service, registered: Registered) -> list[sa.Row[Any]]:
    """Return what a custodian published of a data set, the newest first; also what still waits."""
    return service.store.rows(OF_CUSTODIAN, of=registered.name, by=registered.owner)


def shown(service: Service, person: Person, registered: Registered) -> list[Json]:
    """Return what is there to download, with its price and what it will answer badly.

    To read an answer for the first time may take seconds, which are free work.
    """
    there = [
        row
        for row in listed(service, registered)
        if row.state == "answered" and evaluations.is_visible(row)
    ]
    with service.free.of(person.name) if there else nullcontext():
        return [_shown(row, registered) for row in there]


def _shown(row: sa.Row[Any], registered: Registered) -> Json:
    [release] = evaluations.releases(row)
    return {
        "id": row.id,
        "dataset": registered.name,
        "question": row.questions[0]["question"],
        "price": row.price,
        "published": row.visible,
        "finding": release.finding(),
        "answers_badly": list(getattr(release, "answers_badly", ())),
    }


def waiting(service: Service, registered: Registered) -> Sequence[sa.Row[Any]]:
    """Return what was booked or asked for and is not there, for the custodian."""
    rows = listed(service, registered)
    return [row for row in rows if row.state != "answered" or not evaluations.is_visible(row)]


def rows_of(service: Service, person: Person, name: str, identity: str) -> str:
    """Return the rows of a published answer, as the text of a CSV file."""
    person.must_be("custodian", "analyst")
    registered = seen(service, person, name)
    for row in listed(service, registered):
        if row.id == identity and row.state == "answered" and evaluations.is_visible(row):
            with service.free.of(person.name):
                [release] = evaluations.releases(row)
                return str(release.to_csv())
    raise Missing("There is no such file of this data set, or not yet.")
