"""What analysts bring: a model or predictions, kept as it came until a worker has looked at it."""

import hashlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool

from heldout.errors import ArgumentError
from heldout.kernel.ledger.records import checked_name
from heldout.models.isolate import START
from heldout.server import jobs, limits
from heldout.server.accounts import Person
from heldout.server.service import Conflict, Missing, Service, TooLarge
from heldout.server.storage import artifacts, evaluations, new_id, now, submissions
from heldout.server.words import kilobytes

__all__ = [
    "KINDS",
    "delete",
    "file_of",
    "find",
    "mine",
    "names",
    "normalised",
    "public",
    "quarantine",
    "store",
]

KINDS = {
    "application/onnx": ("model", ".onnx"),
    "application/octet-stream": ("model", ".onnx"),
    "application/json": ("model", ".json"),
    "application/vnd.apache.parquet": ("predictions", ".parquet"),
    "application/x-parquet": ("predictions", ".parquet"),
    "text/csv": ("predictions", ".csv"),
}
"""Content types that are taken, what each is, and how its file ends."""
ENDINGS = {
    ".onnx": "application/onnx",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
}
"""What a browser's file is, by its name."""
HIDDEN = ("receiving", "deleted")
CHECKING = "It waits for a worker to look at it, in a sandbox and without any row."


async def store(
    service: Service,
    person: Person,
    content: AsyncIterator[bytes],
    *,
    content_type: str,
    name: str,
    features: Sequence[str] | None = None,
    length: int | None = None,
) -> str:
    """Write a stream to a file of its own, a piece at a time; returns the artefact's id.

    `length` is how many bytes were announced, if they were.
    """
    checked_name("name", name)
    kind, ending = kind_of(content_type)
    identity, digest, size = new_id(), hashlib.sha256(), 0
    most = await run_in_threadpool(
        _expect, service, person, identity, kind=kind, name=name, features=features, length=length
    )
    path = service.settings.artifacts / f"{identity}{ending}"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            async for piece in content:
                size += len(piece)
                if size > most:
                    raise _too_large(service, size)
                digest.update(piece)
                file.write(piece)
        if not size:
            raise ArgumentError("The artefact is empty. Send the file as the body of the request.")
        await run_in_threadpool(_arrived, service, person, identity, size, digest.hexdigest())
    except BaseException:
        path.unlink(missing_ok=True)
        with service.store.write() as connection:
            mine = (artifacts.c.id == identity) & (artifacts.c.state == "receiving")
            gone = {"state": "deleted", "words": "It did not arrive."}
            connection.execute(artifacts.update().where(mine).values(gone))
        raise
    return identity


def _too_large(service: Service, size: int) -> TooLarge:
    if size > service.settings.most_upload:
        return TooLarge(f"An artefact must have at most {kilobytes(service.settings.most_upload)}.")
    return TooLarge("More bytes came than there is room for, or than the request announced.")


def _expect(
    service: Service,
    person: Person,
    identity: str,
    *,
    kind: str,
    name: str,
    features: Sequence[str] | None,
    length: int | None,
) -> int:
    """Set the room for an upload aside before a byte of it is read; how many bytes may come."""
    if length is not None and length > service.settings.most_upload:
        raise _too_large(service, length)
    row = {
        "id": identity,
        "owner": person.name,
        "name": name,
        "kind": kind,
        "sha256": "",
        "state": "receiving",
        "words": "It is being sent.",
        "features": None if features is None else list(features),
        "found": None,
        "created": now(),
    }
    with service.store.write() as connection:
        limits.check_jobs(service, connection, person.name)
        left = service.settings.most_kept - limits.bytes_of(connection, person.name)
        most = min(left, service.settings.most_upload) if length is None else length
        limits.check_room(service, connection, person.name, max(most, 1))
        connection.execute(artifacts.insert(), row | {"size": most})
    return most


def _arrived(service: Service, person: Person, identity: str, size: int, digest: str) -> None:
    """The file is there; a worker is to look at it."""
    came = {"size": size, "sha256": digest, "state": "checking", "words": CHECKING}
    with service.store.write() as connection:
        mine = artifacts.update().where(artifacts.c.id == identity)
        connection.execute(mine.values(came))
        quarantine(connection, identity, owner=person.name)


def quarantine(connection: sa.Connection, identity: str, *, owner: str) -> int:
    """The job that looks at an artefact."""
    return jobs.enqueue(connection, "quarantine", identity, owner=owner, seconds=START)


def delete(service: Service, person: Person, identity: str) -> None:
    """Forget an artefact: what was sent, and what workers made of it. Its answers stay.

    One that waits to be looked at is cancelled by it.
    """
    with service.store.write() as connection:
        row = connection.execute(_own(person, identity)).first()
        if row is None:
            raise Missing("There is no such artefact of yours.")
        if _waited_for(connection, identity):
            raise Conflict("You asked about it, and that still waits. Cancel it, or wait for it.")
        mine = artifacts.update().where(artifacts.c.id == identity)
        connection.execute(mine.values(state="deleted", words="You deleted it."))
        jobs.cancel(connection, "quarantine", identity)
        jobs.enqueue(connection, "forget", identity, owner=person.name, seconds=0)
    for file in service.settings.artifacts.glob(f"{identity}.*"):
        file.unlink(missing_ok=True)


def _waited_for(connection: sa.Connection, identity: str) -> bool:
    """Whether somebody still waits for an answer about it, as far as anybody is told."""
    asked = (evaluations.c.artifact == identity) | (evaluations.c.rival == identity)
    queries = (
        sa.select(evaluations.c.id).where(asked, limits.waits(evaluations)),
        sa.select(submissions.c.id).where(
            submissions.c.artifact == identity, limits.waits(submissions)
        ),
    )
    return any(connection.execute(query.limit(1)).first() is not None for query in queries)


def kind_of(content_type: str) -> tuple[str, str]:
    plain = content_type.split(";", maxsplit=1)[0].strip().lower()
    if plain not in KINDS:
        raise ArgumentError(
            "Content-Type must be application/onnx (a model), application/json (a linear model), "
            "application/vnd.apache.parquet or text/csv (predictions by row key)."
        )
    return KINDS[plain]


def file_of(service: Service, row: Any) -> Path:
    """The file of an artefact, as it came."""
    found = sorted(service.settings.artifacts.glob(f"{row.id}.*"))
    if not found:
        raise Missing("The artefact's file is gone.")
    return found[0]


def normalised(service: Service, row: Any) -> Path:
    """Predictions as a worker read them."""
    return service.settings.private / f"predictions-{row.id}.parquet"


def _own(person: Person, identity: str) -> Any:
    query = sa.select(artifacts).where(artifacts.c.id == identity, artifacts.c.owner == person.name)
    return query.where(artifacts.c.state.not_in(HIDDEN))


def find(service: Service, person: Person, identity: str) -> Any:
    """One of a person's own artefacts; of others nothing is told."""
    with service.store.read() as connection:
        row = connection.execute(_own(person, identity)).first()
    if row is None:
        raise Missing("There is no such artefact of yours.")
    return row


def mine(service: Service, person: Person) -> list[dict[str, Any]]:
    query = sa.select(artifacts).where(artifacts.c.owner == person.name)
    query = query.where(artifacts.c.state.not_in(HIDDEN))
    with service.store.read() as connection:
        rows = connection.execute(query.order_by(artifacts.c.created.desc())).all()
    return [public(row) for row in rows]


def names(service: Service, identities: Sequence[str]) -> dict[str, str]:
    """What owners call their artefacts, for pages that list what was asked about them."""
    query = sa.select(artifacts.c.id, artifacts.c.name)
    with service.store.read() as connection:
        rows = connection.execute(query.where(artifacts.c.id.in_(set(identities))))
        return {row.id: row.name for row in rows}


def public(row: Any) -> dict[str, Any]:
    """What its owner may know: all of it was made from the artefact alone."""
    found = row.found or {}
    return {
        "id": row.id,
        "name": row.name,
        "kind": row.kind,
        "size": row.size,
        "sha256": row.sha256,
        "state": row.state,
        "words": row.words,
        "inputs": found.get("inputs", []),
        "row_wise": found.get("row_wise"),
        "problems": found.get("problems", []),
        "created": row.created,
    }
