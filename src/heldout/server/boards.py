"""Leaderboards as the web sees them: their terms, what they have shown, and submissions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from heldout.arguments import shown
from heldout.errors import ArgumentError
from heldout.kernel.ledger.records import checked_name
from heldout.questions.boards import Plan, certificate_of
from heldout.server import jobs
from heldout.server.accounts import Person
from heldout.server.datasets import find, owned
from heldout.server.declaration import checked_facts
from heldout.server.evaluations import cancel_asked, is_visible, scored_before, tick_of, usable
from heldout.server.service import Conflict, Forbidden, Missing, Service, checked_path_name
from heldout.server.storage import Json, boards, new_id, now, submissions

COULD_NOT_OPEN: Final = {
    "refused": "The board could not open. Nothing was charged; its custodian knows why.",
    "lost": "The board was paid for and could not open. Its price stays spent; its custodian knows "
    "why.",
}


@dataclass(frozen=True)
class Posted:
    """A board with what it has shown so far."""

    name: str
    dataset: str
    owner: str
    revision: int
    plan: Plan
    facts: str
    each: int
    ends: float | None
    state: str
    words: str
    shown: tuple[Json, ...]
    """Improvements, in order: title, analyst, score, time."""
    judged: int

    @property
    def best(self) -> float:
        scores = [float(shown["score"]) for shown in self.shown if shown["score"] is not None]
        return max([self.plan.start, *scores])

    @property
    def over(self) -> str | None:
        """Why no more submissions are taken, if none are."""
        if self.state != "open":
            return self.words
        if self.ends is not None and self.ends <= now():
            return "The board has ended."
        if len(self.shown) >= self.plan.improvements:
            return "The board has shown its last improvement."
        if self.judged >= self.plan.submissions:
            return "The board has had its last submission."
        return None

    def public(self, viewer: str | None = None) -> Json:
        """Return what everybody may know; only its custodian is told why a board could not open."""
        words = self.over or self.words
        if viewer != self.owner:
            words = COULD_NOT_OPEN.get(self.state, words)
        certificate = certificate_of(self.plan)
        return {
            "name": self.name,
            "dataset": self.dataset,
            "facts": self.facts,
            "state": "over" if self.state == "open" and self.over else self.state,
            "words": words,
            "plan": self.plan.as_dict(),
            "best": self.best,
            "shown": list(self.shown),
            "half_width": self.plan.noise_half_width(),
            "certificate": certificate.as_dict(),
            "submissions_left": self.plan.submissions - self.judged,
            "improvements_left": self.plan.improvements - len(self.shown),
            "submissions_each": self.each,
            "ends": self.ends,
        }


def open_board(
    service: Service,
    person: Person,
    *,
    name: str,
    dataset: str,
    terms: Mapping[str, Any],
    facts: str = "",
    each: int | None = None,
    ends: float | None = None,
) -> None:
    """Open a board on an own data set, which pays the board's whole price when it opens."""
    registered = owned(service, person, dataset, scope="manage")
    checked_path_name("name", name)
    rows = registered.ready().rows
    if registered.declaration.label is None:
        of_rows = "is a number" if registered.declaration.outcome else "is not declared"
        raise ArgumentError(
            "A board judges scores of an outcome that is there or not, and that of these rows "
            f"{of_rows}."
        )
    if rows is None or registered.declaration.unit is not None:
        raise ArgumentError(
            "A board needs a public number of independent rows: a data set under replace-one "
            "neighbours and without a unit."
        )
    plan = Plan.from_dict(dict(terms) | {"rows": rows})
    if registered.declaration.classes:
        plan.check_classes()
    if ends is not None and not ends > now():
        raise ArgumentError("ends must be in the future.")
    row = {
        "name": name,
        "dataset": dataset,
        "owner": person.name,
        "revision": registered.revision,
        "plan": plan.as_dict(),
        "facts": checked_facts(facts),
        "each": plan.submissions if each is None else max(1, int(each)),
        "ends": ends,
        "state": "opening",
        "words": "A worker draws its bar.",
        "created": now(),
    }
    with service.store.write() as connection:
        if connection.execute(sa.select(boards.c.name).where(boards.c.name == name)).first():
            raise Conflict(f"There is a board {shown(name)} already. Choose another name.")
        connection.execute(boards.insert(), row)
        jobs.enqueue(connection, "open-board", name, owner=person.name, seconds=0)
    service.note(person.name, "open board", name)


def find_board(service: Service, name: str) -> Posted:
    with service.store.read() as connection:
        row = connection.execute(sa.select(boards).where(boards.c.name == name)).first()
        if row is None:
            raise Missing(f"There is no board {shown(name)}.")
        return _posted(connection, row)


def everyone(service: Service) -> list[Posted]:
    """Return every board; they are public."""
    with service.store.read() as connection:
        rows = connection.execute(sa.select(boards).order_by(boards.c.created.desc())).all()
        return [_posted(connection, row) for row in rows]


def _posted(connection: sa.Connection, row: sa.Row[Any]) -> Posted:
    """Return what a board has shown by now; what is not due yet is not there."""
    due = (submissions.c.board == row.name) & (submissions.c.visible <= now())
    settled = due & (submissions.c.state == "judged")
    improved = sa.select(submissions).where(settled, submissions.c.improved.is_(True))
    best = connection.execute(improved.order_by(submissions.c.visible)).all()
    count = sa.select(sa.func.count()).where(settled)
    same = ("name", "dataset", "owner", "revision", "facts", "each", "ends", "state", "words")
    return Posted(
        **{name: getattr(row, name) for name in same},
        plan=Plan.from_dict(row.plan),
        shown=tuple(
            {
                "title": submission.title,
                "analyst": submission.owner,
                "score": submission.score,
                "time": submission.visible,
                "submission": submission.id,
            }
            for submission in best
        ),
        judged=int(connection.execute(count).scalar_one()),
    )


def submit(
    service: Service, person: Person, name: str, *, artifact: str, title: str, key: str
) -> sa.Row[Any]:
    """Put a model before a board, or find the submission that this key stands for."""
    person.must_be("analyst", scope="ask")
    checked_name("Idempotency-Key", key)
    checked_name("title", title)
    with service.store.read() as connection:
        old = _of_key(connection, person, key, name, artifact)
    if old is not None:
        return old
    posted = find_board(service, name)
    if posted.over is not None:
        raise Conflict(f"{posted.over} Nothing was charged.")
    model = usable(service, person, artifact)
    registered = find(service, posted.dataset)
    registered.ready()
    if registered.revision != posted.revision:
        raise Conflict("The rows were refreshed since the board opened: it has ended.")
    row = {
        "id": new_id(),
        "board": name,
        "owner": person.name,
        "artifact": artifact,
        "title": title,
        "key": key,
        "state": "waiting",
        "words": "It waits for a worker.",
        "improved": None,
        "score": None,
        "created": now(),
        "visible": None,
    }
    with service.store.write() as connection:
        old = _of_key(connection, person, key, name, artifact)
        if old is not None:  # the same key at the same time
            return old
        jobs.check_jobs(service, connection, person.name)
        # One that was refused counts until that is known, at its tick.
        made = sa.select(sa.func.count()).where(
            submissions.c.board == name,
            submissions.c.owner == person.name,
            submissions.c.state.not_in(("refused", "cancelled")) | jobs.waits(submissions),
        )
        if connection.execute(made).scalar_one() >= posted.each:
            raise Forbidden(f"You have made your {posted.each} submissions to this board.")
        connection.execute(submissions.insert(), row)
        job = ("judge", str(row["id"]))
        after = scored_before(service, connection, registered, [model])
        seconds = tick_of(service, registered)
        jobs.enqueue(connection, *job, owner=person.name, seconds=seconds, after=after)
        new = connection.execute(sa.select(submissions).where(submissions.c.id == row["id"])).one()
    service.note(person.name, "submit to board", f"{name} {new.id}")
    return new


def cancel(service: Service, person: Person, name: str, identity: str) -> sa.Row[Any]:
    """Cancel an own submission that is not being judged yet; it does not count as one."""
    person.must_be("analyst", scope="ask")
    posted = find_board(service, name)
    mine = (submissions.c.id == identity) & (submissions.c.owner == person.name)
    mine &= submissions.c.board == name
    on = (posted.dataset, posted.revision)
    row = cancel_asked(service, person, submissions, mine, kind="judge", on=on)
    service.note(person.name, "cancel submission", f"{name} {identity}")
    return row


def _of_key(
    connection: sa.Connection, person: Person, key: str, name: str, artifact: str
) -> sa.Row[Any] | None:
    """Return the submission that a key stands for, or None."""
    mine_by_key = (submissions.c.owner == person.name) & (submissions.c.key == key)
    old = connection.execute(sa.select(submissions).where(mine_by_key)).first()
    if old is not None and (old.board, old.artifact) != (name, artifact):
        raise Conflict("This Idempotency-Key stands for another submission. Use a new one.")
    return old


def mine(service: Service, person: Person, name: str) -> list[Json]:
    """Return a person's own submissions to a board, newest first; its custodian sees all."""
    person.must_be("analyst", "custodian")
    posted = find_board(service, name)
    query = sa.select(submissions).where(submissions.c.board == name)
    if posted.owner != person.name:
        query = query.where(submissions.c.owner == person.name)
    rows = service.store.rows(query.order_by(submissions.c.created.desc()))
    return [public_submission(row) for row in rows]


def public_submission(row: sa.Row[Any]) -> Json:
    """Return what its owner may know now; until its tick has come it still waits."""
    done = is_visible(row)
    same = ("id", "board", "title", "artifact", "created")
    return {name: getattr(row, name) for name in same} | {
        "analyst": row.owner,
        "state": row.state if done else "waiting",
        "words": row.words if done else "It waits for a worker, or for its tick.",
        "improved": row.improved if done else None,
        "score": row.score if done else None,
    }
