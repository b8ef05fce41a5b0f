"""The API of leaderboards."""

from typing import Annotated, Any

from fastapi import APIRouter, Header

from heldout.server import boards
from heldout.server.api_ground import PROBLEMS, Body, Json, logs_of
from heldout.server.gate import Anyone, Caller

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/boards", responses=PROBLEMS)
EVERYBODY = ("custodian", "analyst", "auditor", "administrator")


class NewBoard(Body):
    """A board's terms; `terms` has price, improvements, submissions, metric, start and step."""

    name: str
    dataset: str
    terms: dict[str, Any]
    facts: str = ""
    each: int | None = None
    ends: float | None = None


class NewSubmission(Body):
    """A model before a board, and what it is called there."""

    artifact: str
    title: str


@router.get("")
def list_boards(service: Anyone, person: Caller) -> list[Json]:
    """Every board."""
    person.must_be(*EVERYBODY)
    return [each.public(person.name) for each in boards.everyone(service)]


@router.post("", status_code=201)
def open_board(service: Anyone, person: Caller, body: NewBoard) -> Json:
    """Open a board on an own data set; custodians. Refuses one that would show nothing."""
    person.must_be("custodian", scope="manage")
    boards.open_board(service, person, **body.model_dump())
    logs_of(service, person, "open board", body.name)
    return boards.find_board(service, body.name).public(person.name)


@router.get("/{name}")
def show_board(service: Anyone, person: Caller, name: str) -> Json:
    """What the board has shown, with intervals and certificate."""
    person.must_be(*EVERYBODY)
    return boards.find_board(service, name).public(person.name)


@router.get("/{name}/submissions")
def list_submissions(service: Anyone, person: Caller, name: str) -> list[Json]:
    """The caller's own submissions; the board's custodian sees all."""
    person.must_be("analyst", "custodian")
    return boards.mine(service, person, name)


@router.post("/{name}/submissions", status_code=202)
def submit(
    service: Anyone,
    person: Caller,
    name: str,
    body: NewSubmission,
    idempotency_key: Annotated[str, Header(min_length=1, max_length=199)],
) -> Json:
    """Submit a model; it learns whether it improved. The same key is one submission."""
    person.must_be("analyst", scope="ask")
    row = boards.submit(service, person, name, key=idempotency_key, **body.model_dump())
    logs_of(service, person, "submit to board", f"{name} {row.id}")
    return boards.public_submission(row)


@router.delete("/{name}/submissions/{identity}")
def cancel(service: Anyone, person: Caller, name: str, identity: str) -> Json:
    """Cancel an own submission before it is judged; it does not count as one."""
    person.must_be("analyst", scope="ask")
    row = boards.cancel(service, person, name, identity)
    logs_of(service, person, "cancel submission", f"{name} {identity}")
    return boards.public_submission(row)
