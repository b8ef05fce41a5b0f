"""The API: thin routes over the service. Every one says who may call it."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from heldout.errors import ArgumentError
from heldout.server import accounts, artifacts, datasets, evaluations, ledger_view, logs, quotes
from heldout.server.gate import REPORT_POLICY, Anyone, Caller
from heldout.server.service import Forbidden
from heldout.server.waiting import until

__all__ = ["router"]


class Problem(BaseModel):
    """What went wrong, in words."""

    type: str
    status: int
    detail: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": words,
        "content": {"application/problem+json": {"schema": Problem.model_json_schema()}},
    }
    for status, words in {
        400: "The request cannot be read.",
        401: "No token, or one that opens nothing.",
        402: "It costs more than is left. Nothing was charged.",
        403: "Not for this role, scope or share.",
        404: "No such thing that the caller may see.",
        405: "No such method here.",
        409: "It does not fit the state that things are in.",
        413: "More bytes than are taken.",
        422: "An argument breaks its rule.",
        429: "Too many requests.",
        503: "The ledger cannot be trusted; nothing is booked.",
    }.items()
}
router = APIRouter(prefix="/api/v1", responses=PROBLEMS)

Json = dict[str, Any]
Wait = Annotated[str | None, Header(alias="Prefer", pattern=r"^wait=\d{1,3}$")]
ASKING = ("analyst",)
LOOKING = ("custodian", "analyst", "auditor")


class Body(BaseModel):
    """A request's JSON: fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid")


Amount = str | int | float | dict[str, str]


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


class NewQuote(Body):
    """Questions as data; the guess says what the rows may be like."""

    dataset: str
    questions: list[Json]
    guess: Json = Field(default_factory=dict)


class NewEvaluation(Body):
    """Questions about an artefact, or a quote of them."""

    dataset: str | None = None
    artifact: str
    rival: str | None = None
    questions: list[Json] | None = None
    quote: str | None = None


class NewToken(Body):
    """A token for programs."""

    label: str = "token"
    scopes: list[str] = Field(default_factory=lambda: list(accounts.SCOPES))
    days: float = 90


class NewPerson(Body):
    """Somebody who may sign in."""

    name: str
    role: str


def _seconds(prefer: str | None, default: float) -> float:
    found = re.fullmatch(r"wait=(\d{1,3})", prefer or "")
    return default if found is None else min(float(found[1]), 30.0)


# --- data sets -----------------------------------------------------------------------------------


@router.post("/datasets", status_code=201)
async def register(service: Anyone, person: Caller, body: NewDataset, prefer: Wait = None) -> Json:
    """Register rows; custodians. A worker looks at them, and the state says what it found."""
    person.must_be("custodian", scope="manage")
    await run_in_threadpool(datasets.register, service, person, **body.model_dump())
    logs_of(service, person, "register", body.name)

    def look() -> Json | None:
        held = datasets.owned(service, person, body.name)
        return None if held.state == "checking" else _own_view(service, held)

    found = await until(look, _seconds(prefer, 10))
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
    return StreamingResponse(
        datasets.twin(datasets.seen(service, person, name), rows), media_type="text/csv"
    )


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
            return held.public() | {"words": str(error), "allowance": None}
        return held.public() | {"words": "", "allowance": datasets.standing(service, account)}
    return _own_view(service, held)


def _own_view(service: Any, held: datasets.Held) -> Json:
    opened = held.state in ("open", "closed")
    standing = datasets.standing(service, held.name) if opened else None
    return held.public() | {"words": held.words, "allowance": standing}


# --- artefacts -----------------------------------------------------------------------------------


@router.put(
    "/artifacts",
    status_code=201,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                each: {"schema": {"type": "string", "format": "binary"}} for each in artifacts.KINDS
            },
        }
    },
)
async def upload(  # noqa: PLR0917  the framework passes them by name
    service: Anyone,
    person: Caller,
    request: Request,
    name: Annotated[str, Query(max_length=199)] = "model",
    features: Annotated[list[str] | None, Query()] = None,
    prefer: Wait = None,
) -> Json:
    """Send a model or predictions as the body; a worker looks at it alone, in a sandbox."""
    person.must_be(*ASKING, scope="ask")
    identity = await artifacts.store(
        service,
        person,
        request.stream(),
        content_type=request.headers.get("content-type", ""),
        name=name,
        features=features,
    )
    logs_of(service, person, "upload", identity)

    def look() -> Json | None:
        row = artifacts.find(service, person, identity)
        return None if row.state == "checking" else artifacts.public(row)

    found = await until(look, _seconds(prefer, 5))
    return found or artifacts.public(artifacts.find(service, person, identity))


@router.get("/artifacts")
def list_artifacts(service: Anyone, person: Caller) -> list[Json]:
    """The caller's own artefacts."""
    person.must_be(*ASKING)
    return artifacts.mine(service, person)


@router.get("/artifacts/{identity}")
async def show_artifact(
    service: Anyone, person: Caller, identity: str, prefer: Wait = None
) -> Json:
    """What was found, in words; its inputs; whether it is proven row by row."""
    person.must_be(*ASKING)

    def look() -> Json | None:
        row = artifacts.find(service, person, identity)
        return None if row.state == "checking" else artifacts.public(row)

    found = await until(look, _seconds(prefer, 0))
    return found or artifacts.public(artifacts.find(service, person, identity))


# --- quotes and evaluations ----------------------------------------------------------------------


@router.post("/quotes")
def quote(service: Anyone, person: Caller, body: NewQuote) -> Json:
    """The exact price and the half-widths to expect; signed, and good for a while."""
    person.must_be(*ASKING, scope="ask")
    return quotes.signed(service, person, body.dataset, body.questions, body.guess)


@router.post("/evaluations", status_code=202)
def evaluate(
    service: Anyone,
    person: Caller,
    body: NewEvaluation,
    idempotency_key: Annotated[str, Header(min_length=1, max_length=199)],
) -> Json:
    """Ask and pay: one booking for all questions. The same key is never charged twice."""
    person.must_be(*ASKING, scope="ask")
    asked = body.model_dump(exclude={"quote"})
    most = None
    if body.quote is not None:
        if body.questions is not None:
            raise ArgumentError("Send a quote or questions, not both.")
        agreed = quotes.opened(service, person, body.quote)
        asked |= {"dataset": agreed["dataset"], "questions": agreed["questions"]}
        most = agreed["loss"]
    if asked["dataset"] is None or asked["questions"] is None:
        raise ArgumentError("Send dataset and questions, or a quote.")
    content = asked.pop("questions")
    row, new = evaluations.submit(
        service, person, content=content, key=idempotency_key, most=most, **asked
    )
    if new:
        logs_of(service, person, "evaluate", row.id)
    return evaluations.public(service, row)


@router.get("/evaluations")
def list_evaluations(service: Anyone, person: Caller, dataset: str | None = None) -> list[Json]:
    """The caller's own, or those of a custodian's data sets."""
    person.must_be("analyst", "custodian")
    rows = evaluations.history(service, person, dataset)
    return [evaluations.public(service, row, answers=False) for row in rows]


@router.get("/evaluations/{identity}")
async def show_evaluation(
    service: Anyone, person: Caller, identity: str, prefer: Wait = None
) -> Json:
    """Its state, its place in the queue, and its answer once it is there."""
    person.must_be("analyst", "custodian")

    def look() -> Json | None:
        found = evaluations.public(service, evaluations.find_one(service, person, identity))
        return None if found["state"] == "waiting" else found

    found = await until(look, _seconds(prefer, 0))
    return found or evaluations.public(service, evaluations.find_one(service, person, identity))


@router.get("/reports/{identity}.html", response_class=HTMLResponse)
def report(service: Anyone, person: Caller, identity: str) -> HTMLResponse:
    """The answer as one self-contained page, with its receipt."""
    person.must_be("analyst", "custodian")
    row = evaluations.find_one(service, person, identity)
    headers = {"Content-Security-Policy": REPORT_POLICY.decode()}
    return HTMLResponse(evaluations.page(row), headers=headers)


# --- the books -----------------------------------------------------------------------------------


@router.get("/ledger")
def show_ledger(service: Anyone, person: Caller, dataset: str | None = None) -> list[Json]:
    """Who spent what on which model."""
    person.must_be("custodian", "auditor")
    return ledger_view.entries(service, person, dataset)


@router.get("/ledger/head")
def ledger_head(service: Anyone, person: Caller) -> Json:
    """Where the chain ends: keep it, and a ledger that is put back is noticed."""
    person.must_be(*LOOKING)
    return ledger_view.head(service)


@router.get("/ledger/verify")
def verify_ledger(
    service: Anyone, person: Caller, receipt: Annotated[str | None, Query(max_length=64)] = None
) -> Json:
    """Check the whole chain; with a receipt's hash, find that booking. Analysts name a receipt."""
    person.must_be(*LOOKING)
    return ledger_view.verify(service, person, receipt)


@router.get("/audit")
def audit(
    service: Anyone,
    person: Caller,
    before: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
) -> list[Json]:
    """Who did what, newest first; auditors, and custodians of what concerns them."""
    person.must_be("auditor", "custodian")
    return ledger_view.log_of(service, person, before)


# --- people and tokens ---------------------------------------------------------------------------


@router.get("/me")
def me(person: Caller) -> Json:
    """Who the token's owner is."""
    return {"name": person.name, "role": person.role, "scopes": list(person.scopes)}


@router.post("/tokens", status_code=201)
def make_token(service: Anyone, person: Caller, body: NewToken) -> Json:
    """A new token of the caller's own; its secret is shown this once."""
    person.must_be(*accounts.ROLES, scope="manage")
    made = accounts.make_token(service, person, **body.model_dump())
    logs_of(service, person, "make token", made["id"])
    return made


@router.get("/tokens")
def list_tokens(service: Anyone, person: Caller) -> list[Json]:
    """The caller's own tokens, without their secrets."""
    return accounts.list_tokens(service, person)


@router.delete("/tokens/{identity}", status_code=204)
def revoke_token(service: Anyone, person: Caller, identity: str) -> None:
    """The token opens nothing from now on."""
    person.must_be(*accounts.ROLES, scope="manage")
    accounts.revoke_token(service, person, identity)
    logs_of(service, person, "revoke token", identity)


@router.get("/people")
def list_people(service: Anyone, person: Caller) -> list[Json]:
    """Everybody; administrators, and custodians, who grant shares."""
    person.must_be("administrator", "custodian")
    found = accounts.everyone(service)
    if person.role == "custodian":
        return [{"name": each["name"]} for each in found if each["role"] == "analyst"]
    return found


@router.post("/people", status_code=201)
def add_person(service: Anyone, person: Caller, body: NewPerson) -> Json:
    """A new person; the answer has the link by which they sign in first."""
    person.must_be("administrator", scope="manage")
    secret = accounts.add_person(service, **body.model_dump())
    logs_of(service, person, "add person", body.name)
    return {"name": body.name, "role": body.role, "link": f"/sign-in/{secret}"}


@router.post("/people/{name}/link", status_code=201)
def link(service: Anyone, person: Caller, name: str) -> Json:
    """Another sign-in link; earlier ones open nothing any more."""
    person.must_be("administrator", scope="manage")
    secret = accounts.new_link(service, name)
    logs_of(service, person, "make link", name)
    return {"name": name, "link": f"/sign-in/{secret}"}


@router.delete("/people/{name}", status_code=204)
def disable(service: Anyone, person: Caller, name: str) -> None:
    """Nothing of this person's opens any door from now on."""
    person.must_be("administrator", scope="manage")
    accounts.disable(service, name)
    logs_of(service, person, "disable", name)


def logs_of(service: Any, person: Any, action: str, subject: str) -> None:
    logs.note(service, person=person.name, action=action, subject=subject, status=200)
