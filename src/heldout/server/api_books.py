"""The API of the ledger, the log, people and their tokens."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from heldout.server import accounts, ledger_view
from heldout.server.api_ground import LOOKING, PROBLEMS, Body, Json, logs_of
from heldout.server.gate import Anyone, Caller

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", responses=PROBLEMS)


class NewToken(Body):
    """A token for programs."""

    label: str = "token"
    scopes: list[str] = Field(default_factory=lambda: list(accounts.SCOPES))
    days: float | None = None


class NewPerson(Body):
    """Somebody who may sign in."""

    name: str
    role: str


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
    with service.free.of(person.name):
        return ledger_view.verify(service, person, receipt)


@router.get("/audit")
def audit(
    service: Anyone,
    person: Caller,
    before: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
) -> list[Json]:
    """Who did what, newest first; auditors, and custodians what they did themselves."""
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
    accounts.disable(service, name, by=person.name)
    logs_of(service, person, "disable", name)
