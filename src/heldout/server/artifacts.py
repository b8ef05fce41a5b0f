"""Artefacts that analysts bring: models and predictions, as they came until a worker looked."""

import hashlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool

from heldout import questions as q
from heldout.arguments import FormField, shown
from heldout.data.description import Description
from heldout.errors import ArgumentError
from heldout.kernel.ledger.records import checked_name
from heldout.models.isolate import START
from heldout.models.predictions import read_copy
from heldout.server import jobs
from heldout.server.accounts import Person
from heldout.server.datasets import Registered
from heldout.server.service import Conflict, Missing, Service, TooLarge, TooSlow, kilobytes
from heldout.server.storage import Json, artifacts, new_id, now

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
"""Type of a file from a browser, by the ending of its name."""
HIDDEN = ("receiving", "deleted")
CHECKING = "It waits for a worker to look at it, in a sandbox and without any row."


class Upload:
    """A file that arrives: its room was set aside before a byte of it was read."""

    def __init__(self, service: Service, person: Person, length: int | None) -> None:
        person.must_be("analyst", scope="ask")
        settings = service.settings
        if length is not None and length > settings.most_upload + settings.most_body:
            raise _too_large(service, length)
        self._service, self._owner, self.id = service, person.name, new_id()
        row = {
            "id": self.id,
            "owner": person.name,
            "name": "",
            "kind": "model",
            "sha256": "",
            "state": "receiving",
            "words": "It is being sent.",
            "features": None,
            "found": None,
            "created": now(),
        }
        with service.store.write() as connection:
            jobs.check_jobs(service, connection, person.name)
            left = settings.most_kept - jobs.bytes_of(service, connection, person.name)
            self.most = min(left, settings.most_upload) if length is None else length
            jobs.check_room(service, connection, person.name, max(self.most, 1))
            connection.execute(artifacts.insert(), row | {"size": self.most})

    async def take(
        self,
        content: AsyncIterator[bytes],
        *,
        content_type: str,
        name: str,
        features: Sequence[str] | None = None,
        copy: bool = False,
    ) -> str:
        """Write a stream to a file of its own, a piece at a time; returns the artefact's id."""
        checked_name("name", name)
        kind, ending = kind_of(content_type)
        if copy and ending != ".csv":
            raise ArgumentError("A copy of the rows must be a CSV file, sent as text/csv.")
        kind = "copy" if copy else kind
        most = min(self.most, self._service.settings.most_upload)
        digest, size = hashlib.sha256(), 0
        path = self._service.settings.artifacts / f"{self.id}{ending}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            async for piece in content:
                size += len(piece)
                if size > most:
                    raise _too_large(self._service, size)
                digest.update(piece)
                file.write(piece)
        if not size:
            raise ArgumentError("The artefact is empty. Send the file as the body of the request.")
        came = {"kind": kind, "name": name, "size": size, "sha256": digest.hexdigest()}
        came |= {"features": None if features is None else list(features)}
        return await run_in_threadpool(self._arrived, came)

    def _arrived(self, came: dict[str, object]) -> str:
        """Let a worker look at the file; one whose room was given away is refused.

        A file that its owner sent before is stored, looked at and scored once: its artefact stands
        for both. Of other people's files nobody learns anything.
        """
        values = came | {"state": "checking", "words": CHECKING}
        mine = (artifacts.c.id == self.id) & jobs.is_arriving(self._service)
        with self._service.store.write() as connection:
            known = self._sent_before(connection, came)
            if known is not None:
                gone = {"state": "deleted", "words": "It was there already.", "size": 0}
                connection.execute(artifacts.update().where(mine).values(gone))
                for file in self._service.settings.artifacts.glob(f"{self.id}.*"):
                    file.unlink(missing_ok=True)
                return known
            if connection.execute(artifacts.update().where(mine).values(values)).rowcount != 1:
                raise TooSlow("The file took too long to arrive. Send it again.")
            quarantine(connection, self.id, owner=self._owner)
        self._service.note(self._owner, "upload", self.id)
        return self.id

    def _sent_before(self, connection: sa.Connection, came: dict[str, object]) -> str | None:
        """Return the artefact of the same owner, file and columns, if it is of use."""
        same = ("kind", "sha256")
        mine = sa.select(artifacts).filter_by(owner=self._owner, **{key: came[key] for key in same})
        rows = connection.execute(mine.where(artifacts.c.state.in_(("checking", "ready"))))
        return next((row.id for row in rows if row.features == came["features"]), None)

    def give_up(self) -> None:
        """Free the room of a file that did not arrive."""
        for file in self._service.settings.artifacts.glob(f"{self.id}.*"):
            file.unlink(missing_ok=True)
        mine = (artifacts.c.id == self.id) & (artifacts.c.state == "receiving")
        gone = {"state": "deleted", "words": "It did not arrive.", "size": 0}
        self._service.store.change(artifacts.update().where(mine).values(gone))


@asynccontextmanager
async def arriving(service: Service, person: Person, length: int | None) -> AsyncIterator[Upload]:
    """Set room for an upload aside before a byte of it is read; freed if it does not arrive.

    `length` is how many bytes were announced, if they were.
    """
    upload = await run_in_threadpool(Upload, service, person, length)
    try:
        yield upload
    except BaseException:
        upload.give_up()
        raise


async def store(
    service: Service,
    person: Person,
    content: AsyncIterator[bytes],
    *,
    length: int | None = None,
    **described: Any,
) -> str:
    """Take a stream that is nothing but a file; `described` is what `Upload.take` wants to know."""
    async with arriving(service, person, length) as upload:
        return await upload.take(content, **described)


def _too_large(service: Service, size: int) -> TooLarge:
    if size > service.settings.most_upload:
        return TooLarge(f"An artefact must have at most {kilobytes(service.settings.most_upload)}.")
    return TooLarge("More bytes came than there is room for, or than the request announced.")


def quarantine(connection: sa.Connection, identity: str, *, owner: str) -> int:
    """Add the job that looks at an artefact."""
    return jobs.enqueue(connection, "quarantine", identity, owner=owner, seconds=START)


def rename(service: Service, person: Person, identity: str, name: str) -> None:
    """Give an own artefact another name; what was signed keeps the name that it had then."""
    person.must_be("analyst", scope="ask")
    find(service, person, identity)
    mine = artifacts.update().where(artifacts.c.id == identity)
    service.store.change(mine.values(name=checked_name("name", name)))
    service.note(person.name, "rename artefact", identity)


def delete(service: Service, person: Person, identity: str) -> None:
    """Forget an artefact: what was sent, and what workers made of it. Its answers stay.

    One that waits to be looked at is cancelled by it.
    """
    person.must_be("analyst", scope="ask")
    with service.store.write() as connection:
        row = connection.execute(_own(person).where(artifacts.c.id == identity)).first()
        if row is None:
            raise Missing("You have no such artefact.")
        if jobs.is_needed(connection, jobs.waits, artifact=identity):
            raise Conflict("You asked about it, and that still waits. Cancel it, or wait for it.")
        mine = artifacts.update().where(artifacts.c.id == identity)
        connection.execute(mine.values(state="deleted", words="You deleted it."))
        jobs.cancel(connection, "quarantine", identity)
        jobs.enqueue(connection, "forget", identity, owner=person.name, seconds=0)
    for file in service.settings.artifacts.glob(f"{identity}.*"):
        file.unlink(missing_ok=True)
    service.note(person.name, "delete artefact", identity)


def kind_of(content_type: str) -> tuple[str, str]:
    plain = content_type.split(";", maxsplit=1)[0].strip().lower()
    if plain not in KINDS:
        raise ArgumentError(
            "Content-Type must be application/onnx (a model), application/json (a linear model), "
            "application/vnd.apache.parquet or text/csv (predictions by row key)."
        )
    return KINDS[plain]


def file_of(service: Service, row: sa.Row[Any]) -> Path:
    """Return the file of an artefact, as it came."""
    files = sorted(service.settings.artifacts.glob(f"{row.id}.*"))
    if not files:
        raise Missing("The artefact's file is gone.")
    return files[0]


def normalised(service: Service, row: sa.Row[Any]) -> Path:
    """Return the file of predictions as a worker read them."""
    return service.settings.private / f"predictions-{row.id}.parquet"


def _own(person: Person) -> sa.Select[Any]:
    mine = sa.select(artifacts).where(artifacts.c.owner == person.name)
    return mine.where(artifacts.c.state.not_in(HIDDEN))


def find(service: Service, person: Person, identity: str) -> sa.Row[Any]:
    """Return one of a person's own artefacts; of others nothing is known."""
    person.must_be("analyst")
    row = service.store.row(FIND, by=person.name, named=identity)
    if row is None:
        raise Missing("You have no such artefact.")
    return row


FIND: Final = sa.select(artifacts).where(
    artifacts.c.owner == sa.bindparam("by"),
    artifacts.c.state.not_in(HIDDEN),
    artifacts.c.id == sa.bindparam("named"),
)


def mine(service: Service, person: Person) -> list[Json]:
    """Return a person's own artefacts, the newest first."""
    person.must_be("analyst")
    newest = _own(person).order_by(artifacts.c.created.desc())
    return [public(row) for row in service.store.rows(newest)]


def names(service: Service, identities: Sequence[str]) -> dict[str, str]:
    """Return what owners call their artefacts, for pages that list what was asked about them."""
    query = sa.select(artifacts.c.id, artifacts.c.name)
    query = query.where(artifacts.c.id.in_(set(identities)))
    return {row.id: row.name for row in service.store.rows(query)}


def public(row: sa.Row[Any]) -> Json:
    """Return what its owner may know: all of it was made from the artefact alone."""
    described = row.found or {}
    plain = ("id", "name", "kind", "size", "sha256", "state", "words", "created")
    return {name: getattr(row, name) for name in plain} | {
        "inputs": described.get("inputs", []),
        "row_wise": described.get("row_wise"),
        "problems": described.get("problems", []),
    }


# --- public copies of rows, to be compared with the private ones ----------------------------------
#
# A copy is a CSV file, read as text in a process that is shut off. A question about one leaves its
# columns out; they are read from the file where it is priced and where it is answered, as numbers
# or texts by what the custodian declared of the rows.


COPY: Final = "copy"
MOST_CELLS: Final = 1_000_000
MOST_BYTES: Final = 2**25
"""Of the file: the web and the workers hold all of it in memory, as texts."""
Cells = Mapping[str, Sequence[str]]


def file_field(kind: type[q.Question[Any]]) -> FormField | None:
    """Return the field of a question that a file is sent for; None if it has none."""
    return next((field for field in kind.form() if field.rule.takes_file), None)


def needs_copy(content: Any) -> bool:
    """Return whether questions, as data, leave columns out that are those of a copy."""
    return any(field not in question for question, field in _with_file_field(content))


def about_copy(content: Any) -> bool:
    """Return whether questions, as data, are about a copy, whether or not they have its columns."""
    return any(True for _ in _with_file_field(content))


def _with_file_field(content: Any) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the questions that a file is sent for, each with the name of that field."""
    for question in content if isinstance(content, list) else ():
        name = question.get("question") if isinstance(question, Mapping) else None
        field = file_field(q.find(name)) if isinstance(name, str) and name in q.kinds() else None
        if field is not None:
            yield question, field.name


def with_copy(service: Service, registered: Registered, content: Any, copy: Any) -> Any:
    """Return questions with the columns of a copy, where they leave them out.

    `copy` is the artefact's row, or None; whoever asks owns it.
    """
    if not needs_copy(content):
        return content
    if copy is None or copy.kind != COPY:
        raise ArgumentError(
            "artifact must be the id of a copy of the rows: a CSV file that is sent with kind=copy."
        )
    return [_with_columns(service, registered, question, copy) for question in content]


def _with_columns(
    service: Service, registered: Registered, question: Mapping[str, Any], copy: Any
) -> Mapping[str, Any]:
    kind = q.find(question["question"])
    field, about = file_field(kind), registered.about(kind)
    if field is None or field.name in question or about is None:
        return question
    cells = cells_of(file_of(service, copy))
    return {**question, field.name: field.rule.from_cells(cells, about, field.name)}


def without_copy(question: q.Question[Any]) -> Json:
    """Return a question as data, without the columns of a copy."""
    field = file_field(type(question))
    return {
        name: value
        for name, value in question.as_dict().items()
        if field is None or name != field.name
    }


def not_comparable(copy: Any, about: Description) -> list[str]:
    """Return the columns of a copy that the rows have nothing to compare with."""
    declared = {*getattr(about, "numbers", ()), *getattr(about, "texts", ())}
    return [name for name in (copy.found or {}).get("columns", ()) if name not in declared]


@lru_cache(maxsize=2)
def cells_of(file: Path) -> Cells:
    """Return the columns of a CSV file, by name; the sandbox reads it and refuses what is none."""
    if file.stat().st_size > MOST_BYTES:
        raise ArgumentError(
            f"A copy must have at most {MOST_BYTES // 2**20} MB. Send some of its rows or columns."
        )
    return read_copy(file, most_cells=MOST_CELLS)


def describe_copy(file: Path) -> tuple[Json, str]:
    """Return what is known of a copy by itself, and the same in words."""
    cells = cells_of(file)
    rows = len(next(iter(cells.values())))
    known: Json = {"kind": COPY, "rows": rows, "columns": list(cells)}
    listed = ", ".join(shown(name) for name in list(cells)[:20])
    return known, f"A copy of {rows:,} rows, with the columns {listed}."
