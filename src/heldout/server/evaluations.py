"""Quotes and evaluations: what is asked of which model, at which price, and what became of it."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Final

import sqlalchemy as sa

from heldout import questions as q
from heldout.arguments import shown
from heldout.data.description import ScoredRows
from heldout.errors import ArgumentError
from heldout.privacy.books import checked_name
from heldout.questions.answered import Answered
from heldout.questions.kept import from_plain, plain
from heldout.server import artifacts, jobs
from heldout.server.accounts import Person
from heldout.server.datasets import Held, find, seen, share_of
from heldout.server.service import Conflict, Missing, Service, TooMany
from heldout.server.storage import evaluations, new_id, now, scorings

__all__ = [
    "ASKABLE",
    "Priced",
    "asked_of",
    "find_one",
    "guess_of",
    "history",
    "page",
    "public",
    "quote",
    "releases",
    "scored_first",
    "submit",
    "tick_of",
]

ASKABLE: Final = (
    "auc",
    "average-precision",
    "brier",
    "class-auc",
    "class-average-precision",
    "class-confusion",
    "compare",
    "confusion",
    "curves",
    "grid-ties",
    "log-loss",
    "mean-absolute-error",
    "mean-squared-error",
    "ndcg",
    "precision-at-k",
    "report",
    "top-k",
)
RIVAL: Final = "rival"
"""What the scores of a second model are called beside the rows."""
MOST_QUESTIONS: Final = 20
ROWS_A_TICK: Final = 50_000
SCORED_A_TICK: Final = 2_000


@dataclass(frozen=True)
class Priced:
    """What some questions of a data set cost, and what to expect of the answers."""

    dataset: str
    quote: q.Quote

    def public(self) -> dict[str, Any]:
        return {"dataset": self.dataset} | self.quote.as_dict()


def parsed(content: Any) -> tuple[q.Question, ...]:
    """Questions from JSON; kinds that need other rows are refused."""
    if not isinstance(content, list) or not 0 < len(content) <= MOST_QUESTIONS:
        raise ArgumentError(f"questions must be a list of 1 to {MOST_QUESTIONS} questions.")
    for each in content:
        if isinstance(each, Mapping) and each.get("question") not in ASKABLE:
            raise ArgumentError(
                f"question must be one of {', '.join(ASKABLE)}, got {shown(each.get('question'))}."
            )
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
    about = asked_of(held, content)
    said = guess_of(held, guess)
    found = q.Quote(parsed(content), about, said)
    known = json.dumps(plain(about), sort_keys=True)
    # What Quote.half_widths would work out, from what was worked out before.
    vars(found)["half_widths"] = tuple(
        _expected(json.dumps(each, sort_keys=True), known, said) for each in content
    )
    return Priced(dataset, found)


def asked_of(held: Held, content: Any) -> Any:
    """The public facts that questions are priced from; a comparison has a rival beside."""
    from dataclasses import replace

    about = held.ready()
    compares = isinstance(content, list) and any(
        isinstance(each, Mapping) and each.get("question") == "compare" for each in content
    )
    if not compares or not isinstance(about, ScoredRows):
        return about
    columns = dict(about.columns) | {RIVAL: "DOUBLE"}
    return replace(about, columns=columns, rivals=(RIVAL,))


def guess_of(held: Held, guess: Mapping[str, Any]) -> q.Guess:
    """What somebody says of the rows, with what the custodian says of them."""
    return q.Guess(**_guessed(held, guess))


def _guessed(held: Held, guess: Mapping[str, Any]) -> dict[str, Any]:
    known = ("rows", "positives", "auc", "average_precision", "mean_error", "error_spread")
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
    wants_rival = any(isinstance(each, q.Compare) for each in questions)
    if wants_rival != (rival is not None):
        raise ArgumentError(
            "A comparison needs rival, the id of the second model; other questions take none."
        )
    if any(isinstance(each, q.Compare) and each.score != RIVAL for each in questions):
        raise ArgumentError(f"score of a comparison must be {RIVAL!r} here.")
    priced = q.Quote(questions, asked_of(held, content), q.Guess())
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
        _not_too_many(service, connection, person)
        after = None
        for each in brought:
            after = scored_first(connection, each, held, after)
        connection.execute(evaluations.insert(), row)
        jobs.enqueue(connection, "evaluate", str(row["id"]), after=after)
    return Row(**row), True


class Row(SimpleNamespace):
    """An evaluation that was just written, as it would be read."""


def scored_first(connection: sa.Connection, row: Any, held: Held, after: int | None) -> int:
    """The job after which the scores of an artefact are there."""
    place = {"artifact": row.id, "dataset": held.name, "revision": held.revision}
    known = sa.select(scorings.c.state).filter_by(**place)
    if connection.execute(known).first() is None:
        waiting = {"state": "waiting", "words": "", "visible": 0.0}
        connection.execute(scorings.insert(), place | waiting)
    looked_at = jobs.enqueue(connection, "quarantine", row.id)
    subject = f"{row.id}/{held.revision}/{held.name}"
    return jobs.enqueue(connection, "score", subject, after=max(looked_at, after or 0))


def _not_too_many(service: Service, connection: sa.Connection, person: Person) -> None:
    # Not by their state: a place that is free before the tick would tell when the work was done.
    waiting = sa.select(sa.func.count()).where(evaluations.c.owner == person.name, _waits())
    if connection.execute(waiting).scalar_one() >= service.settings.most_waiting:
        raise TooMany(
            f"{service.settings.most_waiting} evaluations of yours are waiting. Wait for them.", 5
        )


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
    """How many that came before it still wait, as far as anybody is told: it changes at ticks."""
    before = sa.select(sa.func.count()).where(evaluations.c.created < row.created, _waits())
    with service.store.read() as connection:
        return int(connection.execute(before).scalar_one())


def _waits() -> sa.ColumnElement[bool]:
    """Whether an evaluation still waits, as far as anybody is told."""
    return evaluations.c.visible.is_(None) | (evaluations.c.visible > now())


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
    """How far apart the moments are at which answers appear: by public facts alone."""
    rows = held.rows_told or ROWS_A_TICK
    return service.settings.tick * math.ceil(rows / ROWS_A_TICK)


def scoring_tick(service: Service, held: Held) -> float:
    """The same for the scoring of a model."""
    rows = held.rows_told or ROWS_A_TICK
    return service.settings.tick * math.ceil(rows / SCORED_A_TICK)


def shown_at(begun: float, tick: float) -> float:
    """The first moment from now that is a whole number of ticks after the beginning."""
    return begun + math.ceil(max(now() - begun, 1e-9) / tick) * tick
