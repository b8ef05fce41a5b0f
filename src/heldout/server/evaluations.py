"""Quotes and evaluations: what is asked of which model, at which price, and what became of it."""

import hashlib
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from heldout import questions as q
from heldout.arguments import guess as nearest
from heldout.arguments import shown
from heldout.data.classes import ClassifiedRows
from heldout.data.description import Description, ScoredRows
from heldout.doors import as_json
from heldout.errors import ArgumentError
from heldout.kernel.ledger.records import checked_name
from heldout.models.score import declared_seconds
from heldout.questions.answers import from_plain, plain
from heldout.questions.base import Rival
from heldout.server import artifacts, fitting, jobs
from heldout.server.accounts import Person
from heldout.server.datasets import Registered, find, has_share, seen, usable_share, visible
from heldout.server.parts import PARTS, Part
from heldout.server.service import Conflict, Missing, Service, note, secret_in
from heldout.server.signing import answer_of, answer_page
from heldout.server.storage import Json, evaluations, new_id, now, scorings
from heldout.server.storage import jobs as storage_jobs

if TYPE_CHECKING:
    from itsdangerous import URLSafeTimedSerializer

RIVAL: Final = Rival.elsewhere
"""Name of the column with a second model's scores."""
MOST_QUESTIONS: Final = 20
ROWS_A_TICK: Final = 100_000
SCORED_A_TICK: Final = 20_000
EXAMPLE: Final = {"risk": (0.0, 1.0)}
FROM_MODELS: Final = '"from_models": {"risk": [0, 1]}, and models bring it'
CANCELLED: Final = "You cancelled it. Nothing was charged."


def parsed(content: Any) -> tuple[q.Question[Any], ...]:
    """Read questions from JSON. Whether rows can answer them is for their description to say."""
    if not isinstance(content, list) or not 0 < len(content) <= MOST_QUESTIONS:
        raise ArgumentError(f"questions must be a list of 1 to {MOST_QUESTIONS} questions.")
    return tuple(q.from_dict(question) for question in content)


LONG: Final = 10_000
"""Characters of a question that is not kept: thousands of a megabyte would fill the memory."""


def _expected(text: str, description: str, guess: q.Guess) -> dict[str, q.HalfWidths]:
    """Return the half-widths of one question; the same one is worked out once."""
    known = _known_expected if len(text) <= LONG else _known_expected.__wrapped__
    return known(text, description, guess)


@lru_cache(maxsize=8192)
def _known_expected(text: str, description: str, guess: q.Guess) -> dict[str, q.HalfWidths]:
    known = from_plain(json.loads(description))
    [widths] = q.Quote(parsed([json.loads(text)]), known, guess).half_widths
    return widths


def priced(  # noqa: PLR0917
    service: Service,
    person: Person,
    registered: Registered,
    content: Any,
    guess: q.Guess,
    copy: str | None = None,
) -> q.Quote:
    """Return the exact price alone; half-widths are worked out where they are read."""
    sent = usable(service, person, copy) if copy and artifacts.needs_copy(content) else None
    with reading(service, person, content):
        questions = parsed(artifacts.with_copy(service, registered, content, sent))
        return q.Quote(questions, asked_of(registered, questions), guess)


def reading(service: Service, person: Person, content: Any) -> AbstractContextManager[None]:
    """Count towards a person's free work what it takes to read questions about a copy of rows.

    The copy is parsed and made into vectors before anything is booked; other questions are small.
    """
    return service.free.of(person.name) if artifacts.about_copy(content) else nullcontext()


def quote(  # noqa: PLR0917
    service: Service,
    person: Person,
    dataset: str,
    content: Any,
    guess: Mapping[str, Any],
    copy: str | None = None,
) -> q.Quote:
    """Return the exact price, and half-widths by a guess; no row is read, nothing is charged.

    `copy` is the id of the copy that a question is about which leaves its columns out.
    """
    registered = seen(service, person, dataset)
    guessed = guess_of(registered, guess)
    quoted = priced(service, person, registered, content, guessed, copy)
    if artifacts.needs_copy(content):
        with service.free.of(person.name):
            _ = quoted.half_widths
        return quoted
    known = json.dumps(plain(quoted.about), sort_keys=True)
    # What Quote.half_widths would work out, from what was worked out before.
    widths = []
    for question in content:
        with service.free.of(person.name):
            widths.append(_expected(json.dumps(question, sort_keys=True), known, guessed))
    vars(quoted)["half_widths"] = tuple(widths)
    return quoted


def web_secret(service: Service) -> str:
    """Return the web's own secret, made at first start; whoever is first makes it."""
    path = service.settings.folder / "web.key"
    return secret_in(path, lambda: secrets.token_hex(32).encode()).decode()


def _serializer(service: Service) -> "URLSafeTimedSerializer":
    from itsdangerous import URLSafeTimedSerializer

    return URLSafeTimedSerializer(web_secret(service), salt="quote")


def signed_quote(  # noqa: PLR0917
    service: Service,
    person: Person,
    dataset: str,
    content: Any,
    guess: Mapping[str, Any],
    models: Sequence[str] = (),
) -> Json:
    """Return a quote as JSON, and the text that stands for it: for one person, for a while.

    With the models that it is meant for, those that do not fit are refused, and notes say what
    else to know of them.
    """
    person.must_be("analyst", scope="ask")
    notes = [] if artifacts.needs_copy(content) else fit(service, person, dataset, models)
    copy = next(iter(models), None)
    offered = quote(service, person, dataset, content, guess, copy)
    quoted = {"dataset": dataset} | offered.as_dict()
    if artifacts.needs_copy(content):
        quoted["questions"] = [artifacts.without_copy(one) for one in offered.questions]
    agreed = {
        "person": person.name,
        "dataset": dataset,
        "questions": content,
        "loss": quoted["loss"],
    }
    text = _serializer(service).dumps(agreed)
    valid = service.settings.quote_seconds
    return quoted | {"quote": text, "valid_seconds": valid, "notes": notes}


def fit(service: Service, person: Person, dataset: str, models: Sequence[str]) -> list[str]:
    """Refuse models that do not go with a data set; return what else to know of them."""
    registered = seen(service, person, dataset)
    brought = [usable(service, person, model) for model in models]
    for model in brought:
        fitting.check(registered, model)
    return [note for model in brought for note in fitting.notes(registered, model)]


def agreed_quote(service: Service, person: Person, text: str) -> Json:
    """Return what was agreed to; refuses a text that is another's, changed or too old."""
    from itsdangerous import BadSignature

    try:
        agreed: Json = _serializer(service).loads(text, max_age=service.settings.quote_seconds)
    except BadSignature:
        raise Conflict("This quote is too old, or was changed. Ask for another one.") from None
    if agreed["person"] != person.name:
        raise Conflict("This quote was made for somebody else. Ask for one of your own.")
    return agreed


def asked_of(registered: Registered, questions: Sequence[q.Question[Any]]) -> Description:
    """Return the public facts that questions are priced from, with a rival if one is compared."""
    known = _of_one_kind(registered, questions)
    part = registered.declaration.part_of(type(known))
    if part is not None:
        seen_alone = part.seen_by(questions[0], known)
        beside = registered.with_model(seen_alone)
        if beside is None or _priced(questions, seen_alone):
            return seen_alone
        return beside
    return with_rival(known) if any(question.rivals for question in questions) else known


def _priced(questions: Sequence[q.Question[Any]], known: Description) -> bool:
    """Return whether rows with these public facts can answer all of the questions."""
    try:
        q.Quote(tuple(questions), known, q.Guess())
    except ArgumentError:
        return False
    return True


def needs_model(registered: Registered, questions: Sequence[q.Question[Any]]) -> bool:
    """Return whether questions are about a model: the rows alone cannot answer them."""
    about = asked_of(registered, questions)
    if registered.declaration.part_of(type(about)) is None:
        return about.takes_model
    return any(name in about.columns for name in registered.declaration.from_models)


def evaluated_part(registered: Registered, questions: Sequence[q.Question[Any]]) -> Part | None:
    """Return the part of a declaration that questions are asked of; None for those of models."""
    part = registered.declaration.part_of(type(_of_one_kind(registered, questions)))
    if part is None:
        return None
    if needs_model(registered, questions):
        part = part.with_model(registered.declaration.from_models)
        assert part is not None
    return part.for_question(questions[0])


def _of_one_kind(registered: Registered, questions: Sequence[q.Question[Any]]) -> Description:
    """Return the facts that all questions are asked on; refuses those that need several kinds."""
    registered.ready()
    known: Description | None = None
    for question in questions:
        about = registered.about(q.find(question.kind))
        if about is None:
            why = why_not(registered, q.find(question.kind))
            raise ArgumentError(
                f"The question {question.kind!r} cannot be asked of these rows: {why}."
            )
        if known is not None and about is not known:
            raise ArgumentError(
                f"Ask {questions[0].kind!r} and {question.kind!r} separately: one is about "
                f"{known.rows_in_words}, the other about {about.rows_in_words}."
            )
        known = about
    assert known is not None
    part = registered.declaration.part_of(type(known))
    if part is not None and part.one_at_a_time and len(questions) > 1:
        raise ArgumentError(f"Ask {questions[0].kind!r} alone, without other questions.")
    return known


def with_rival(known: Description) -> Description:
    """Return the facts of the rows beside the scores of a second model, where they have scores."""
    if isinstance(known, ClassifiedRows):
        return replace(known, rivals=(RIVAL,))
    if not isinstance(known, ScoredRows):
        return known
    columns = dict(known.columns) | {RIVAL: "number"}
    return replace(known, columns=columns, rivals=(RIVAL,))


def why_not(registered: Registered, question: type[q.Question[Any]]) -> str | None:
    """Return why a kind of question cannot be asked of a data set, and what it would need.

    None if it can be asked.
    """
    why = _why_not(registered, question)
    return None if why is None else as_json(why)


def _why_not(registered: Registered, question: type[q.Question[Any]]) -> str | None:
    first, about = registered.ready(), registered.about(question)
    if about is not None:
        why = question.why_not(registered.with_model(about) or with_rival(about))
        part = registered.declaration.part_of(type(about))
        if why is None or part is None or part.with_model(EXAMPLE) is None:
            return why
        return f"{why}; or its custodian would declare {FROM_MODELS}"
    why = question.why_not(first)
    examples = [part.example for part in PARTS.values() if part.of in question.of]
    return f"{why}; its custodian would declare {examples[0]}" if examples else why


def askable(registered: Registered) -> list[Json]:
    """Return every kind of question, and why a data set cannot answer it; none while it is shut."""
    if registered.state != "open":
        return []
    return [
        {
            "question": kind.kind,
            "asks": kind.asks,
            "takes_model": takes_model(registered, kind),
            "why_not": why_not(registered, kind),
        }
        for kind in q.registered()
    ]


def takes_model(registered: Registered, kind: type[q.Question[Any]]) -> bool:
    """Return whether a kind of question always needs a model on these rows.

    Others may: where the columns that a question names are a model's.
    """
    about = registered.about(kind)
    if about is None or registered.with_model(about) is None:
        return kind.takes_model()
    return kind.why_not(about) is not None


def guess_of(registered: Registered, guess: Mapping[str, Any]) -> q.Guess:
    """Return what somebody guesses of the rows, with what the custodian says of them."""
    known = q.Guess.numbers()
    unknown = [name for name in guess if name not in known]
    if unknown:
        meant = nearest(unknown[0], known)
        raise ArgumentError(
            f"guess has no field {shown(unknown[0])}.{meant} Fields: {', '.join(known)}."
        )
    guessed = dict(guess)
    if "rows" not in guessed and registered.public_rows is not None:
        guessed["rows"] = registered.public_rows
    rows, share = registered.ready().rows or guessed.get("rows"), registered.declaration.prevalence
    if "positives" not in guessed and share is not None and isinstance(rows, int):
        guessed["positives"] = max(1, round(share * rows))
    return q.Guess(**guessed)


def submit(
    service: Service,
    person: Person,
    *,
    dataset: str,
    artifact: str | None,
    content: Any,
    key: str,
    rival: str | None = None,
    most: Mapping[str, str] | None = None,
) -> sa.Row[Any]:
    """Return a new evaluation, or the one that this key stands for.

    `most` is the price that somebody agreed to. Everything that can be refused is refused here,
    before any work; the ledger has the last word when the price is booked.
    """
    person.must_be("analyst", scope="ask")
    checked_name("Idempotency-Key", key)
    asked = {"dataset": dataset, "artifact": artifact, "rival": rival, "questions": content}
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    with service.store.look() as connection:
        old = _of_key(connection, person, key)
    if old is not None:
        return _same(old, digest)
    registered = find(service, dataset)
    account = usable_share(service, person.name, registered)
    copy = usable(service, person, artifact) if artifact and artifacts.needs_copy(content) else None
    with reading(service, person, content):
        questions = parsed(artifacts.with_copy(service, registered, content, copy))
        compared = {name for question in questions for name in question.rivals}
        if bool(compared) != (rival is not None):
            raise ArgumentError(
                "A comparison needs rival, the id of the second model; other questions take none."
            )
        if compared - {RIVAL}:
            raise ArgumentError(f"score of a comparison must be {RIVAL!r} here.")
        about = asked_of(registered, questions)
        about_model = needs_model(registered, questions) or copy is not None
        if about_model != (artifact is not None):
            raise ArgumentError(
                "artifact must be the id of the model that the questions are about."
                if about_model
                else f"{questions[0].kind!r} is about the rows alone: leave artifact out."
            )
        offered = q.Quote(questions, about, q.Guess())
    if most is not None and dict(most) != offered.loss.as_dict():
        raise Conflict("The price differs from the one that was agreed to. Ask for a new quote.")
    service.ledger.check(account, offered.event)
    brought = [usable(service, person, one) for one in (artifact, rival) if one]
    for model in brought if copy is None else ():
        fitting.check(registered, model)
    return keep_new(
        service,
        person,
        registered,
        offered,
        key=key,
        models=brought,
        stored=[artifacts.without_copy(one) for one in questions] if copy is not None else None,
        artifact=artifact or "",
        rival=rival,
        digest=digest,
    )


def keep_new(
    service: Service,
    person: Person,
    registered: Registered,
    offered: q.Quote,
    *,
    key: str,
    models: Sequence[sa.Row[Any]] = (),
    stored: list[Json] | None = None,
    published: bool = False,
    **about: Any,
) -> sa.Row[Any]:
    """Write down a new evaluation and let a worker take it up, or return the one of this key.

    What a custodian has `published` counts towards no quota. `stored` are the questions as they are
    kept, if not whole; `about` says which models they are about, and what was sent.
    """
    stored = stored or [question.as_dict() for question in offered.questions]
    row: Json = {
        "id": new_id(),
        "owner": person.name,
        "dataset": registered.name,
        "artifact": "",
        "rival": None,
        "revision": registered.revision,
        "questions": stored,
        "key": key,
        "digest": "",
        "price": offered.loss.as_dict(),
        "state": "waiting",
        "words": "It waits for a worker.",
        "statement": None,
        "created": now(),
        "visible": None,
    } | about
    with service.store.write() as connection:
        old = _of_key(connection, person, key)
        if old is not None:  # the same key at the same time
            return _same(old, row["digest"])
        if not published:
            jobs.check_jobs(service, connection, person.name)
        new: sa.Row[Any] = connection.execute(INSERT, row).one()
        seconds = answer_tick(service, registered, stored)
        after = scored_before(service, connection, registered, models)
        job: Json = {"owner": person.name, "seconds": seconds, "after": after, "new": True}
        jobs.enqueue(connection, "evaluate", new.id, **job)
        done = ("publish", f"{registered.name} {new.id}") if published else ("evaluate", new.id)
        note(connection, person.name, *done)
    return new


INSERT: Final = evaluations.insert().returning(evaluations)


def usable(service: Service, person: Person, artifact: str) -> sa.Row[Any]:
    """Return an own artefact; refuses one that was found to be no good."""
    model = artifacts.find(service, person, artifact)
    if model.state == "refused":
        raise ArgumentError(f"The artefact {shown(model.name)} cannot be used: {model.words}")
    return model


def scored_before(
    service: Service,
    connection: sa.Connection,
    registered: Registered,
    models: Sequence[sa.Row[Any]],
) -> int | None:
    """Return the job after which every model has scores, and a copy was looked at."""
    after = None
    for model in models:
        place = {"artifact": model.id, "dataset": registered.name, "revision": registered.revision}
        ready = connection.execute(READY, place).scalar()
        if ready is not None and ready <= now():
            continue  # the scores are there, and everybody may know
        if model.kind == artifacts.COPY:
            after = artifacts.quarantine(connection, model.id, owner=model.owner)
        else:
            after = scored_first(service, connection, model, registered, after)
    return after


READY: Final = sa.select(scorings.c.visible).where(
    *(scorings.c[name] == sa.bindparam(name) for name in ("artifact", "dataset", "revision")),
    scorings.c.state == "ready",
)


def scored_first(
    service: Service,
    connection: sa.Connection,
    row: sa.Row[Any],
    registered: Registered,
    after: int | None,
) -> int:
    """Return the job after which the scores of an artefact are there."""
    place = {"artifact": row.id, "dataset": registered.name, "revision": registered.revision}
    known = sa.select(scorings.c.state).filter_by(**place)
    if connection.execute(known).first() is None:
        scores = len(registered.declaration.scores) or 1
        size = jobs.SCORE_BYTES * scores * (registered.public_rows or ROWS_A_TICK)
        jobs.check_room(service, connection, row.owner, size)
        waiting = {"state": "waiting", "words": "", "visible": 0.0, "size": size}
        connection.execute(scorings.insert(), place | waiting)
    looked_at = artifacts.quarantine(connection, row.id, owner=row.owner)
    return jobs.enqueue(
        connection,
        "score",
        f"{row.id}/{registered.revision}/{registered.name}",
        owner=row.owner,
        seconds=scoring_seconds(service, registered),
        after=max(looked_at, after or 0),
    )


def not_needed(connection: sa.Connection, artifact: str, dataset: str, revision: int) -> None:
    """Cancel a scoring that nobody waits for any more, if no worker has begun it."""
    place: Json = {"artifact": artifact, "dataset": dataset, "revision": revision}
    if jobs.is_needed(connection, jobs.is_unpaid, **place):
        return
    if jobs.cancel(connection, "score", f"{artifact}/{revision}/{dataset}"):
        connection.execute(scorings.delete().filter_by(**place))


def cancel(service: Service, person: Person, identity: str) -> sa.Row[Any]:
    """Cancel an own evaluation whose price is not booked yet; nothing is charged."""
    mine = (evaluations.c.id == identity) & (evaluations.c.owner == person.name)
    row = cancel_asked(service, person, evaluations, mine, kind="evaluate")
    service.note(person.name, "cancel", identity)
    return row


def cancel_asked(
    service: Service,
    person: Person,
    table: sa.Table,
    mine: sa.ColumnElement[bool],
    *,
    kind: str,
    on: tuple[str, int] | None = None,
) -> sa.Row[Any]:
    """Cancel an evaluation or a submission, the job it waits for, and scorings nobody needs.

    `on` is the data set and the revision that it is about, unless its row says so.
    """
    person.must_be("analyst", scope="ask")
    with service.store.write() as connection:
        row = connection.execute(sa.select(table).where(mine)).first()
        if row is None:
            what = "evaluation" if table is evaluations else "submission"
            raise Missing(f"There is no such {what} of yours.")
        if may_cancel(row):
            ended = {"state": "cancelled", "words": CANCELLED, "visible": now()}
            connection.execute(table.update().where(mine).values(ended))
            jobs.cancel(connection, kind, row.id)
            models = (row.artifact, row.rival) if table is evaluations else (row.artifact,)
            for model in filter(None, models):
                not_needed(connection, model, *(on or (row.dataset, row.revision)))
        return connection.execute(sa.select(table).where(mine)).one()


def may_cancel(row: sa.Row[Any]) -> bool:
    """Return whether something still waits, and nothing of it is booked; refuses what is over.

    One that was refused, which nobody knows before its tick, is still cancelled.
    """
    if row.state == "cancelled":
        return False
    if row.state == "waiting" or (row.state == "refused" and not is_visible(row)):
        return True
    if is_visible(row):
        raise Conflict("It is over already, and cannot be cancelled.")
    raise Conflict("Its price is being booked, or was booked: it can no longer be cancelled.")


def is_visible(row: sa.Row[Any]) -> bool:
    """Return whether the tick has come at which people see how something ended."""
    return row.visible is not None and row.visible <= now()


def _of_key(connection: sa.Connection, person: Person, key: str) -> sa.Row[Any] | None:
    return connection.execute(OF_KEY, {"by": person.name, "under": key}).first()


OF_KEY: Final = sa.select(evaluations).where(
    evaluations.c.owner == sa.bindparam("by"), evaluations.c.key == sa.bindparam("under")
)


def _same(row: sa.Row[Any], digest: str) -> sa.Row[Any]:
    if row.digest != digest:
        raise Conflict("This Idempotency-Key was used for another request. Use a new one.")
    return row


def find_one(service: Service, person: Person, identity: str) -> sa.Row[Any]:
    """Return an evaluation, for its owner or the custodian of its rows."""
    person.must_be("analyst", "custodian")
    return _may_see(service, person, service.store.row(ONE, named=identity))


ONE: Final = sa.select(evaluations).where(evaluations.c.id == sa.bindparam("named"))
GLANCE: Final = sa.select(evaluations.c.owner, evaluations.c.dataset, evaluations.c.visible).where(
    evaluations.c.id == sa.bindparam("named")
)


def glance(service: Service, person: Person, identity: str) -> sa.Row[Any]:
    """Return when an evaluation may be seen, for whoever waits for it; without what it says."""
    person.must_be("analyst", "custodian")
    return _may_see(service, person, service.store.first(GLANCE, named=identity))


def _may_see(service: Service, person: Person, row: sa.Row[Any] | None) -> sa.Row[Any]:
    if row is not None and (row.owner == person.name or _is_about_own(service, person, row)):
        return row
    raise Missing("There is no such evaluation that you may see.")


def _is_about_own(service: Service, person: Person, row: Any) -> bool:
    """Return whether it is of a custodian's data set, or was published to a person."""
    owner = find(service, row.dataset).owner
    if person.role == "custodian":
        return owner == person.name
    return bool(row.owner == owner and has_share(service, row.dataset, person.name))


def history(service: Service, person: Person, dataset: str | None = None) -> list[sa.Row[Any]]:
    """Return a person's own evaluations, or those of a custodian's data sets, newest first."""
    person.must_be("analyst", "custodian")
    query = sa.select(evaluations).order_by(evaluations.c.created.desc()).limit(500)
    if person.role == "analyst":
        query = query.where(evaluations.c.owner == person.name)
    else:
        names = [registered.name for registered in visible(service, person)]
        query = query.where(evaluations.c.dataset.in_(names))
    if dataset is not None:
        query = query.where(evaluations.c.dataset == dataset)
    return service.store.rows(query)


def public(
    service: Service, row: sa.Row[Any], *, reader: Person | None = None, new: bool = False
) -> Json:
    """Return what its owner may know now. Until its tick has come a finished one still runs.

    With a `reader`, its answers too: to read them for the first time may take seconds, which are
    free work. When the answer of a `new` one appears is not known yet.
    """
    done = is_visible(row)
    same = ("id", "owner", "dataset", "rival", "questions", "price", "created")
    shown_now: Json = {name: getattr(row, name) for name in same} | {
        "artifact": row.artifact or None,
        "state": row.state if done else "waiting",
        "words": row.words if done else "It waits for a worker, or for its tick.",
        "queue_place": 0 if done else _place(service, row),
        "expected": None if done or new else expected(service, row),
        "finished": row.visible if done else None,
        "receipt": None,
        "answers": None,
        "statement": None,
    }
    if done and row.statement is not None:
        shown_now["receipt"] = row.statement["receipt"]
        if reader is not None and row.statement["signed"] is not None:
            shown_now["statement"] = row.statement["signed"]
            with service.free.of(reader.name):
                shown_now["answers"] = [release.as_dict() for release in releases(row)]
    return shown_now


def listed(service: Service, person: Person, dataset: str | None = None) -> list[Json]:
    """Return the history of a person as JSON, without answers."""
    rows = history(service, person, dataset)
    return [public(service, row) for row in rows]


def _place(service: Service, row: sa.Row[Any]) -> int:
    """Return how many may come before it, as far as anybody knows: it changes at ticks.

    People take turns, so of everybody else at most one more than one's own that came before.
    """
    before = service.store.rows(BEFORE, by=row.owner, made=row.created, time=now())
    waiting = {who: int(count) for who, count in before}
    own = waiting.pop(row.owner, 0)
    return own + sum(min(count, own + 1) for count in waiting.values())


BEFORE: Final = (
    sa.select(evaluations.c.owner, sa.func.count())
    .where(
        evaluations.c.visible.is_(None) | (evaluations.c.visible > sa.bindparam("time")),
        (evaluations.c.owner != sa.bindparam("by"))
        | (evaluations.c.created < sa.bindparam("made", type_=sa.Float(53))),
    )
    .group_by(evaluations.c.owner)
)


def _beginning() -> sa.Select[Any]:
    job, first = storage_jobs.alias("job"), storage_jobs.alias("first")
    query = sa.select(job.c.state, job.c.begun, first.c.state, first.c.begun)
    query = query.join_from(job, first, job.c.after == first.c.id, isouter=True)
    return query.where(job.c.kind == "evaluate", job.c.subject == sa.bindparam("named"))


BEGUN: Final = _beginning()


def expected(service: Service, row: sa.Row[Any]) -> float | None:
    """Return when the answer appears if nothing takes longer than its tick; None in the queue.

    By when a worker took it up, which is a tick, and by public figures.
    """
    known = service.store.first(BEGUN, named=row.id)
    if known is None:
        return None
    state, begun, before, scoring = tuple(known)
    if "running" not in (state, before):
        return None
    registered = find(service, row.dataset)
    start = begun if state == "running" else scoring + scoring_tick(service, registered)
    tick = answer_tick(service, registered, row.questions)
    step = service.settings.tick
    return float(math.ceil((start + 2 * tick) / step) * step)


def positives_bought(service: Service, person: Person, dataset: str) -> tuple[int, float] | None:
    """Return how many rows are positive by a person's newest answer that tells it, and when."""
    for row in history(service, person, dataset):
        kinds = [q.find(question["question"]) for question in row.questions]
        if row.state != "answered" or not is_visible(row):
            continue
        for kind, release in zip(kinds, releases(row), strict=True):
            count = kind.positives_in(release)
            if count is not None and row.revision == find(service, dataset).revision:
                return count, row.created
    return None


def releases(row: sa.Row[Any]) -> tuple[Any, ...]:
    """Return the answers of an evaluation, rebuilt from what was drawn and signed."""
    statement = row.statement["signed"]["statement"]
    needed = {name: statement.get(name) for name in ("answer", "subject")}
    return _rebuilt(row.id, json.dumps(needed))


@lru_cache(maxsize=256)
def _rebuilt(_: str, content: str) -> tuple[Any, ...]:
    return answer_of(json.loads(content)).releases


def page(row: sa.Row[Any]) -> str:
    """Return the answer as one self-contained page; only what was paid for and is due has one."""
    if row.state != "answered" or not is_visible(row):
        raise Missing("There is no report of this evaluation, or not yet.")
    return answer_page(row.statement["signed"])


def tick_of(service: Service, registered: Registered) -> float:
    """Return how far apart the moments are at which prices are booked and answers appear.

    By public facts alone.
    """
    rows = registered.public_rows or ROWS_A_TICK
    return service.settings.tick * math.ceil(rows / ROWS_A_TICK)


def answer_tick(
    service: Service, registered: Registered, content: Sequence[Mapping[str, Any]]
) -> float:
    """Return the tick of an evaluation: a longer one where reading takes longer than a tick.

    Training on 50,000 rows takes 0.05 to 0.4 processor seconds, by what the rows hold, and a
    concordance of 100,000 rows 0.16 to 0.41 (2026-11-18): more than the tick of scored rows, so
    that the number of ticks would tell of rows. 19 other kinds took 0.13 at most.
    """
    kinds = [q.find(question["question"]) for question in content]
    about = registered.about(kinds[0])
    of_part = about is None or registered.declaration.part_of(type(about)) is not None
    long = of_part or any(kind.takes_long for kind in kinds)
    return (scoring_tick if long else tick_of)(service, registered)


def scoring_tick(service: Service, registered: Registered) -> float:
    """Return the same for the scoring of a model."""
    rows = registered.public_rows or ROWS_A_TICK
    return service.settings.scoring_tick * math.ceil(rows / SCORED_A_TICK)


def scoring_seconds(service: Service, registered: Registered) -> float:
    """Return the longest that the scoring of a model may take, and what it counts for."""
    return declared_seconds(
        rows=registered.public_rows or ROWS_A_TICK,
        seconds_per_row=service.settings.seconds_per_row,
        one_process_per_row=False,
    )


def shown_at(service: Service, begun: float, tick: float) -> float:
    """Return the next moment that is whole ticks after the beginning, on the server's clock.

    How many ticks it takes is fixed by public figures unless the work takes longer than a tick.
    The clock, whose steps are `settings.tick`, is the one that the ledger's times are read from.
    """
    moment = begun + math.ceil(max(now() - begun, 1e-9) / tick) * tick
    step = max(1, round(service.settings.tick * 1e6))  # microseconds, as the ledger counts
    return -(-round(moment * 1e6) // step) * step / 1e6
