"""What analysts bring: a model or predictions, kept as it came until a worker has looked at it."""

import hashlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from heldout.errors import ArgumentError
from heldout.privacy.books import checked_name
from heldout.server import jobs
from heldout.server.accounts import Person
from heldout.server.service import Missing, Service
from heldout.server.storage import artifacts, new_id, now

__all__ = ["KINDS", "file_of", "find", "mine", "names", "normalised", "public", "store"]

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


class TooLarge(ArgumentError):
    """More bytes than the server takes."""


async def store(
    service: Service,
    person: Person,
    content: AsyncIterator[bytes],
    *,
    content_type: str,
    name: str,
    features: Sequence[str] | None = None,
) -> str:
    """Write a stream to a file of its own, a piece at a time; returns the artefact's id."""
    checked_name("name", name)
    kind, ending = kind_of(content_type)
    left = service.settings.most_kept - _kept(service, person)
    identity, digest, size = new_id(), hashlib.sha256(), 0
    path = service.settings.artifacts / f"{identity}{ending}"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            async for piece in content:
                size += len(piece)
                if size > service.settings.most_upload:
                    most = service.settings.most_upload // 2**20
                    raise TooLarge(f"An artefact must have at most {most} MB.")
                if size > left:
                    raise TooLarge("Your artefacts take all the room that one analyst has.")
                digest.update(piece)
                file.write(piece)
        if not size:
            raise ArgumentError("The artefact is empty. Send the file as the body of the request.")
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    row = {
        "id": identity,
        "owner": person.name,
        "name": name,
        "kind": kind,
        "size": size,
        "sha256": digest.hexdigest(),
        "state": "checking",
        "words": "It waits for a worker to look at it, in a sandbox and without any row.",
        "features": None if features is None else list(features),
        "found": None,
        "created": now(),
    }
    with service.store.write() as connection:
        connection.execute(artifacts.insert(), row)
        jobs.enqueue(connection, "quarantine", identity)
    return identity


def _kept(service: Service, person: Person) -> int:
    """Bytes of all that a person brought so far."""
    query = sa.select(sa.func.coalesce(sa.func.sum(artifacts.c.size), 0))
    with service.store.read() as connection:
        return int(connection.execute(query.where(artifacts.c.owner == person.name)).scalar_one())


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


def find(service: Service, person: Person, identity: str) -> Any:
    """One of a person's own artefacts; of others nothing is told."""
    query = sa.select(artifacts).where(artifacts.c.id == identity)
    with service.store.read() as connection:
        row = connection.execute(query.where(artifacts.c.owner == person.name)).first()
    if row is None:
        raise Missing("There is no such artefact of yours.")
    return row


def mine(service: Service, person: Person) -> list[dict[str, Any]]:
    query = sa.select(artifacts).where(artifacts.c.owner == person.name)
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
