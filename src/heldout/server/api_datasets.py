"""The API of data sets and shares. Every route says who may call it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from heldout.errors import ArgumentError
from heldout.server import datasets, evaluations
from heldout.server.api_ground import LOOKING, PROBLEMS, Amount, Body, Json, Wait, logs_of, seconds
from heldout.server.gate import Anyone, Caller
from heldout.server.service import Forbidden
from heldout.server.waiting import until

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", responses=PROBLEMS)


class NewDataset(Body):
    """What a custodian registers."""

    name: str
    source: str | dict[str, str]
    declaration: Json
    budget: Amount
    facts: str = ""


class NewGrant(Body):
    """A share for an analyst."""

    analyst: str
    budget: Amount
    expires: float | None = None


class Change(Body):
    """What may be raised, or moved."""

    budget: Amount | None = None
    expires: float | None = None


@router.post("/datasets", status_code=201)
async def register(service: Anyone, person: Caller, body: NewDataset, prefer: Wait = None) -> Json:
    """Register rows; custodians. A worker looks at them, and the state says what it found."""
    person.must_be("custodian", scope="manage")
    await run_in_threadpool(datasets.register, service, person, **body.model_dump())
    logs_of(service, person, "register", body.name)

    def look() -> Json | None:
        held = datasets.owned(service, person, body.name)
        return None if held.state == "checking" else _own_view(service, held)

    found = await until(look, seconds(prefer, 10))
    return found or _own_view(service, datasets.owned(service, person, body.name))


@router.get("/datasets")
def list_datasets(service: Anyone, person: Caller) -> list[Json]:
    """The data sets that the caller may see."""
    person.must_be(*LOOKING)
    return [_view(service, person, each) for each in datasets.visible(service, person)]


@router.get("/datasets/{name}")
def show_dataset(service: Anyone, person: Caller, name: str) -> Json:
    """Public facts, features with types, allowance and what is left of it."""
    person.must_be(*LOOKING)
    return _view(service, person, datasets.seen(service, person, name))


@router.patch("/datasets/{name}")
def raise_dataset(service: Anyone, person: Caller, name: str, body: Change) -> Json:
    """Raise the budget of a data set; its custodian."""
    person.must_be("custodian", scope="manage")
    if body.budget is None or body.expires is not None:
        raise ArgumentError("Send the new budget, which must be larger than it is now.")
    datasets.raise_budget(service, person, name, budget=body.budget)
    logs_of(service, person, "raise", name)
    return _own_view(service, datasets.owned(service, person, name))


@router.delete("/datasets/{name}")
def close_dataset(service: Anyone, person: Caller, name: str) -> Json:
    """Close a data set for good; its custodian."""
    person.must_be("custodian", scope="manage")
    datasets.close(service, person, name)
    logs_of(service, person, "close", name)
    return _own_view(service, datasets.owned(service, person, name))


@router.get(
    "/datasets/{name}/twin.csv",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/csv": {}}}},
)
def twin(
    service: Anyone, person: Caller, name: str, rows: Annotated[int, Query(ge=1, le=10_000)] = 20
) -> StreamingResponse:
    """Made-up rows of the same columns, from the declaration alone."""
    person.must_be("custodian", "analyst")
    with service.free.of(person.name):
        lines = list(datasets.twin(datasets.seen(service, person, name), rows))
    return StreamingResponse(iter(lines), media_type="text/csv")


@router.get("/datasets/{name}/grants")
def list_grants(service: Anyone, person: Caller, name: str) -> list[Json]:
    """Who may spend what, and did; its custodian and auditors."""
    person.must_be("custodian", "auditor")
    return datasets.shares(service, datasets.seen(service, person, name).name)


@router.post("/datasets/{name}/grants", status_code=201)
def grant(service: Anyone, person: Caller, name: str, body: NewGrant) -> list[Json]:
    """Give an analyst a share; the data set's custodian."""
    person.must_be("custodian", scope="manage")
    datasets.grant(service, person, name, **body.model_dump())
    logs_of(service, person, "grant", f"{name} to {body.analyst}")
    return datasets.shares(service, name)


@router.patch("/datasets/{name}/grants/{analyst}")
def change_grant(
    service: Anyone, person: Caller, name: str, analyst: str, body: Change
) -> list[Json]:
    """Raise a share, or move its end."""
    person.must_be("custodian", scope="manage")
    datasets.change_grant(service, person, name, analyst=analyst, **body.model_dump())
    logs_of(service, person, "change grant", f"{name} to {analyst}")
    return datasets.shares(service, name)


@router.delete("/datasets/{name}/grants/{analyst}")
def revoke_grant(service: Anyone, person: Caller, name: str, analyst: str) -> list[Json]:
    """Take a share away."""
    person.must_be("custodian", scope="manage")
    datasets.revoke(service, person, name, analyst=analyst)
    logs_of(service, person, "revoke", f"{name} of {analyst}")
    return datasets.shares(service, name)


def _view(service: Any, person: Any, held: datasets.Held) -> Json:
    if person.role == "analyst":
        try:
            account = datasets.share_of(service, person, held.name)
        except Forbidden as error:  # it has expired; the other data sets are shown all the same
            return _facts(held) | {"words": str(error), "allowance": None}
        standing = datasets.standing(service, account)
        return _facts(held) | {"words": "", "allowance": standing}
    return _own_view(service, held)


def _own_view(service: Any, held: datasets.Held) -> Json:
    opened = held.state in ("open", "closed")
    standing = datasets.standing(service, held.name) if opened else None
    return _facts(held) | {"words": held.words, "allowance": standing}


def _facts(held: datasets.Held) -> Json:
    """Return what is public of a data set, and which questions it can answer."""
    return held.public() | {"questions": evaluations.askable(held)}
