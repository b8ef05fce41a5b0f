"""Quotes and evaluations: what is asked of which model, at which price, and what became of it."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Final

import sqlalchemy as sa

from heldout import questions as q
from heldout.arguments import shown
from heldout.data.description import Description, ScoredRows
from heldout.errors import ArgumentError
from heldout.kernel.ledger.records import checked_name
from heldout.models.score import declared_seconds
from heldout.questions.answers import Answered, from_plain, plain
from heldout.questions.base import Rival
from heldout.server import artifacts, jobs, limits
from heldout.server.accounts import Person
from heldout.server.datasets import Held, find, seen, share_of
from heldout.server.service import Conflict, Missing, Service
from heldout.server.storage import boards, evaluations, new_id, now, scorings, submissions

__all__ = [
    "Priced",
    "askable",
    "asked_of",
    "cancel",
    "find_one",
    "guess_of",
    "history",
    "page",
    "public",
    "quote",
    "releases",
    "scored_first",
    "scoring_tick",
    "shown_at",
    "submit",
    "tick_of",
    "why_not",
    "with_rival",
]

RIVAL: Final = Rival.elsewhere
"""What the scores of a second model are called beside the rows."""
MOST_QUESTIONS: Final = 20
ROWS_A_TICK: Final = 100_000
SCORED_A_TICK: Final = 20_000
UNPAID: Final = ("waiting", "booking")
CANCELLED: Final = "You cancelled it. Nothing was charged."


@dataclass(frozen=True)
class Priced:
    """What some questions of a data set cost, and what to expect of the answers."""

    dataset: str
    quote: q.Quote

    def public(self) -> dict[str, Any]:
        return {"dataset": self.dataset} | self.quote.as_dict()


def parsed(content: Any) -> tuple[q.Question[Any], ...]:
    """Read questions from JSON. Whether rows can answer them is for their description to say."""
    if not isinstance(content, list) or not 0 < len(content) <= MOST_QUESTIONS:
        raise ArgumentError(f"questions must be a list of 1 to {MOST_QUESTIONS} questions.")
    return tuple(q.from_dict(each) for each in content)


@lru_cache(maxsize=8192)
def _expected(text: str, about: str, guess: q.Guess) -> dict[str, q.HalfWidths]:
    """The half-widths of one question; the same one is worked out once."""
    known = from_plain(json.loads(about))
    [found] = q.Quote(parsed([json.loads(text)]), known, guess).half_widths
    return found


def quote(
    service: Service, person: Person, dataset: str, content: Any, guess: Mapping[str, Any]
) -> Priced:
    """The exact price, and half-widths by a guess; no row is read, nothing is charged."""
    held = seen(service, person, dataset)
    questions = parsed(content)
    about = asked_of(held, questions)
    said = guess_of(held, guess)
    found = q.Quote(questions, about, said)
    known = json.dumps(plain(about), sort_keys=True)
    # What Quote.half_widths would work out, from what was worked out before.
    widths = []
    for each in content:
        with service.free.of(person.name):
            widths.append(_expected(json.dumps(each, sort_keys=True), known, said))
    vars(found)["half_widths"] = tuple(widths)
    return Priced(dataset, found)


def asked_of(held: Held, questions: Sequence[q.Question[Any]]) -> Description:
    """Return the public facts that questions are priced from, with a rival if one is compared."""
    about = held.ready()
    return with_rival(about) if any(each.rivals for each in questions) else about


def with_rival(about: Description) -> Description:
    """Return the facts of the rows beside the scores of a second model, where they have scores."""
    if not isinstance(about, ScoredRows):
        return about
    columns = dict(about.columns) | {RIVAL: "number"}
    return replace(about, columns=columns, rivals=(RIVAL,))


def why_not(held: Held, question: type[q.Question[Any]]) -> str | None:
    """Return why a kind of question cannot be asked of a data set; None if it can."""
    return question.why_not(with_rival(held.ready()))


def askable(held: Held) -> list[dict[str, Any]]:
    """Return every kind of question, and why a data set cannot answer it; none while it is shut."""
    if held.state != "open":
        return []
    return [
        {"question": each.kind, "asks": each.asks, "why_not": why_not(held, each)}
        for each in q.registered()
    ]


def guess_of(held: Held, guess: Mapping[str, Any]) -> q.Guess:
    """What somebody says of the rows, with what the custodian says of them."""
    return q.Guess(**_guessed(held, guess))


def _guessed(held: Held, guess: Mapping[str, Any]) -> dict[str, Any]:
    known = q.Guess.numbers()
    strange = [each for each in guess if each not in known]
    if strange:
        raise ArgumentError(f"guess has no field {shown(strange[0])}. Fields: {', '.join(known)}.")
    told = dict(guess)
    if "rows" not in told and held.rows_told is not None:
        told["rows"] = held.rows_told
    rows, share = held.ready().rows or told.get("rows"), held.declared.prevalence
    if "positives" not in told and share is not None and isinstance(rows, int):
        told["positives"] = max(1, round(share * rows))
    return told


def submit(
    service: Service,
    person: Person,
    *,
    dataset: str,
    artifact: str,
    content: Any,
    key: str,
    rival: str | None = None,
    most: Mapping[str, str] | None = None,
) -> tuple[Any, bool]:
    """A new evaluation, or the one that this key stands for; says whether it is new.

    `most` is the price that somebody agreed to. Everything that can be refused is refused here,
    before any work; the ledger has the last word when the price is booked.
    """
    checked_name("Idempotency-Key", key)
    asked = {"dataset": dataset, "artifact": artifact, "rival": rival, "questions": content}
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    with service.store.read() as connection:
        old = _of_key(connection, person, key)
    if old is not None:
        return _same(old, digest), False
    held = seen(service, person, dataset)
    account = share_of(service, person, dataset)
    questions = parsed(content)
    compared = {name for question in questions for name in question.rivals}
    if bool(compared) != (rival is not None):
        raise ArgumentError(
            "A comparison needs rival, the id of the second model; other questions take none."
        )
    if compared - {RIVAL}:
        raise ArgumentError(f"score of a comparison must be {RIVAL!r} here.")
    priced = q.Quote(questions, asked_of(held, questions), q.Guess())
    if most is not None and dict(most) != priced.loss.as_dict():
        raise Conflict("The price is another one than was agreed to. Ask for a new quote.")
    service.ledger.check(account, priced.event)
    brought = [artifacts.find(service, person, each) for each in (artifact, rival) if each]
    for row in brought:
        if row.state == "refused":
            raise ArgumentError(f"The artefact {shown(row.name)} cannot be used: {row.words}")
        if row.found:
            held.declared.check_found(row.found)
    row = {
        "id": new_id(),
        "owner": person.name,
        "dataset": dataset,
        "artifact": artifact,
        "rival": rival,
        "revision": held.revision,
        "questions": [each.as_dict() for each in questions],
        "key": key,
        "digest": digest,
        "price": priced.loss.as_dict(),
        "state": "waiting",
        "words": "It waits for a worker.",
        "statement": None,
        "created": now(),
        "visible": None,
    }
    with service.store.write() as connection:
        old = _of_key(connection, person, key)
        if old is not None:  # the same key at the same time
            return _same(old, digest), False
        limits.check_jobs(service, connection, person.name)
        after = None
        for each in brought:
            after = scored_first(service, connection, each, held, after)
        connection.execute(evaluations.insert(), row)
        subject, seconds = str(row["id"]), tick_of(service, held)
        jobs.enqueue(
            connection, "evaluate", subject, owner=person.name, seconds=seconds, after=after
        )
    return Row(**row), True


class Row(SimpleNamespace):
    """An evaluation that was just written, as it would be read."""


def scored_first(
    service: Service, connection: sa.Connection, row: Any, held: Held, after: int | None
) -> int:
    """The job after which the scores of an artefact are there."""
    place = {"artifact": row.id, "dataset": held.name, "revision": held.revision}
    known = sa.select(scorings.c.state).filter_by(**place)
    if connection.execute(known).first() is None:
        scores = len(held.declared.scores) or 1
        size = limits.SCORE_BYTES * scores * (held.rows_told or ROWS_A_TICK)
        limits.check_room(service, connection, row.owner, size)
        waiting = {"state": "waiting", "words": "", "visible": 0.0, "size": size}
        connection.execute(scorings.insert(), place | waiting)
    looked_at = artifacts.quarantine(connection, row.id, owner=row.owner)
    return jobs.enqueue(
        connection,
        "score",
        f"{row.id}/{held.revision}/{held.name}",
        owner=row.owner,
        seconds=scoring_seconds(service, held),
        after=max(looked_at, after or 0),
    )


def not_needed(connection: sa.Connection, artifact: str, dataset: str, revision: int) -> None:
    """Cancel a scoring that nobody waits for any more, if no worker has begun it."""
    asked = (evaluations.c.artifact == artifact) | (evaluations.c.rival == artifact)
    asked &= (evaluations.c.dataset == dataset) & (evaluations.c.revision == revision)
    asked &= evaluations.c.state.in_(UNPAID)
    on_rows = sa.select(boards.c.name).where(boards.c.dataset == dataset)
    shown_to = submissions.c.board.in_(on_rows) & (submissions.c.artifact == artifact)
    shown_to &= submissions.c.state.in_(UNPAID)
    for query in (
        sa.select(evaluations.c.id).where(asked),
        sa.select(submissions.c.id).where(shown_to),
    ):
        if connection.execute(query.limit(1)).first() is not None:
            return
    if jobs.cancel(connection, "score", f"{artifact}/{revision}/{dataset}"):
        place = {"artifact": artifact, "dataset": dataset, "revision": revision}
        connection.execute(scorings.delete().filter_by(**place))


def cancel(service: Service, person: Person, identity: str) -> Any:
    """Cancel an own evaluation whose price is not booked yet; nothing is charged."""
    mine = (evaluations.c.id == identity) & (evaluations.c.owner == person.name)
    with service.store.write() as connection:
        row = connection.execute(sa.select(evaluations).where(mine)).first()
        if row is None:
            raise Missing("There is no such evaluation of yours.")
        if may_cancel(row):
            ended = {"state": "cancelled", "words": CANCELLED, "visible": now()}
            connection.execute(evaluations.update().where(mine).values(ended))
            jobs.cancel(connection, "evaluate", identity)
            for each in (row.artifact, row.rival):
                if each:
                    not_needed(connection, each, row.dataset, row.revision)
        return connection.execute(sa.select(evaluations).where(mine)).one()


def may_cancel(row: Any) -> bool:
    """Whether something still waits, and nothing of it is booked; refuses what is over.

    One that was refused, which nobody is told before its tick, is still cancelled.
    """
    if row.state == "cancelled":
        return False
    told = row.visible is not None and row.visible <= now()
    if row.state == "waiting" or (row.state == "refused" and not told):
        return True
    if told:
        raise Conflict("It is over already, and cannot be cancelled.")
    raise Conflict("Its price is being booked, or was booked: it can no longer be cancelled.")


def _of_key(connection: sa.Connection, person: Person, key: str) -> Any:
    mine = (evaluations.c.owner == person.name) & (evaluations.c.key == key)
    return connection.execute(sa.select(evaluations).where(mine)).first()


def _same(row: Any, digest: str) -> Any:
    if row.digest != digest:
        raise Conflict("This Idempotency-Key stands for another request. Use a new one.")
    return row


def find_one(service: Service, person: Person, identity: str) -> Any:
    """An evaluation, for its owner or the custodian of its rows; of others nothing is told."""
    with service.store.read() as connection:
        row = connection.execute(sa.select(evaluations).where(evaluations.c.id == identity)).first()
    if row is not None and (
        row.owner == person.name
        or (person.role == "custodian" and find(service, row.dataset).owner == person.name)
    ):
        return row
    raise Missing("There is no such evaluation that you may see.")


def history(service: Service, person: Person, dataset: str | None = None) -> list[Any]:
    """A person's own evaluations, or those of a custodian's data sets, newest first."""
    query = sa.select(evaluations).order_by(evaluations.c.created.desc()).limit(500)
    if person.role == "analyst":
        query = query.where(evaluations.c.owner == person.name)
    else:
        names = [each.name for each in _own(service, person)]
        query = query.where(evaluations.c.dataset.in_(names))
    if dataset is not None:
        query = query.where(evaluations.c.dataset == dataset)
    with service.store.read() as connection:
        return list(connection.execute(query).all())


def _own(service: Service, person: Person) -> list[Held]:
    from heldout.server.datasets import visible

    return visible(service, person) if person.role == "custodian" else []


def public(service: Service, row: Any, *, answers: bool = True) -> dict[str, Any]:
    """What its owner may know now. Until its tick has come a finished one still runs."""
    done = row.visible is not None and row.visible <= now()
    found: dict[str, Any] = {
        "id": row.id,
        "state": row.state if done else "waiting",
        "words": row.words if done else "It waits for a worker, or for its tick.",
        "queue_place": 0 if done else _place(service, row),
        "owner": row.owner,
        "dataset": row.dataset,
        "artifact": row.artifact,
        "rival": row.rival,
        "questions": row.questions,
        "price": row.price,
        "created": row.created,
        "finished": row.visible if done else None,
        "receipt": None,
        "answers": None,
        "statement": None,
    }
    if done and row.statement is not None:
        found["receipt"] = row.statement["receipt"]
        if answers and row.statement["signed"] is not None:
            found["statement"] = row.statement["signed"]
            found["answers"] = [each.as_dict() for each in releases(row)]
    return found


def _place(service: Service, row: Any) -> int:
    """How many may come before it, as far as anybody is told: it changes at ticks.

    People take turns, so of everybody else at most one more than one's own that came before.
    """
    waiting = sa.select(evaluations.c.owner, sa.func.count()).where(limits.waits(evaluations))
    others = waiting.where(evaluations.c.owner != row.owner).group_by(evaluations.c.owner)
    before = waiting.where(evaluations.c.owner == row.owner, evaluations.c.created < row.created)
    with service.store.read() as connection:
        own = sum(int(row[1]) for row in connection.execute(before.group_by(evaluations.c.owner)))
        return own + sum(min(int(row[1]), own + 1) for row in connection.execute(others))


def releases(row: Any) -> tuple[Any, ...]:
    """The answers of an evaluation, rebuilt from what was drawn and signed."""
    return _rebuilt(row.id, json.dumps(row.statement["signed"]["statement"]["answer"]))


@lru_cache(maxsize=256)
def _rebuilt(_: str, content: str) -> tuple[Any, ...]:
    return Answered.from_dict(json.loads(content)).releases


def page(row: Any) -> str:
    """The answer as one self-contained page; only what was paid for and is due has one."""
    from heldout.server.answer_page import answer_page

    if row.state != "answered" or row.visible > now():
        raise Missing("There is no report of this evaluation, or not yet.")
    return answer_page(row.statement["signed"])


def tick_of(service: Service, held: Held) -> float:
    """How far apart the moments are at which prices are booked and answers appear.

    By public facts alone.
    """
    rows = held.rows_told or ROWS_A_TICK
    return service.settings.tick * math.ceil(rows / ROWS_A_TICK)


def scoring_tick(service: Service, held: Held) -> float:
    """The same for the scoring of a model."""
    rows = held.rows_told or ROWS_A_TICK
    return service.settings.scoring_tick * math.ceil(rows / SCORED_A_TICK)


def scoring_seconds(service: Service, held: Held) -> float:
    """The longest that the scoring of a model may take, and what it counts for."""
    return declared_seconds(
        rows=held.rows_told or ROWS_A_TICK,
        seconds_per_row=service.settings.seconds_per_row,
        one_process_per_row=False,
    )


def shown_at(service: Service, begun: float, tick: float) -> float:
    """The next moment that is a whole number of ticks after the beginning, on the server's clock.

    How many ticks it takes is fixed by public figures unless the work takes longer than a tick.
    The clock, whose steps are `settings.tick`, is the one that the ledger's times are read from.
    """
    moment = begun + math.ceil(max(now() - begun, 1e-9) / tick) * tick
    step = max(1, round(service.settings.tick * 1e6))  # microseconds, as the ledger counts
    return -(-round(moment * 1e6) // step) * step / 1e6
