"""Data sets and shares: the API and the custodian's pages."""

import csv
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, time
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from heldout.errors import ArgumentError, HeldoutError
from heldout.server import accounts, artifacts, asking, books, datasets, evaluations, published
from heldout.server.accounts import Person
from heldout.server.datasets import LOOKING, Registered
from heldout.server.gate import (
    PROBLEMS,
    Amount,
    Body,
    Caller,
    Key,
    Serving,
    Wait,
    after_wait,
)
from heldout.server.service import Service
from heldout.server.site import Order, Posted, Sent, Signed, page, redirect
from heldout.server.storage import Json

api = APIRouter(prefix="/api/v1/datasets", responses=PROBLEMS)
pages = APIRouter()
PREVIEW = 5
"""Made-up rows that a data set's page shows."""
MOST_RECENT = 50
RowCount = Annotated[int, Query(ge=1, le=10_000)]


class NewDataset(Body):
    """Declares what a custodian registers."""

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


class NewRequest(Body):
    """A larger allowance in all, and what for."""

    budget: Amount
    why: str = ""


class NewPublished(Body):
    """A question whose answer is a file of rows, for everybody."""

    question: Json


class Change(Body):
    """Declares what may be raised, or moved."""

    budget: Amount | None = None
    expires: float | None = None


def _view(service: Service, person: Person, registered: Registered) -> Json:
    """Return what is public of a data set, what may be asked, and what is left to spend."""
    standing, why = datasets.allowance(service, person, registered)
    words = why if person.role == "analyst" else registered.words
    known = registered.public() | {"questions": evaluations.askable(registered)}
    return known | {"words": words, "allowance": standing}


def _own_view(service: Service, person: Person, name: str) -> Json:
    return _view(service, person, datasets.owned(service, person, name))


@api.post("", status_code=201)
async def register(service: Serving, person: Caller, body: NewDataset, prefer: Wait = None) -> Json:
    """Register rows; custodians. A worker looks at them, and the state says what it found."""
    await run_in_threadpool(datasets.register, service, person, **body.model_dump())
    return await after_wait(
        lambda: _own_view(service, person, body.name),
        lambda view: view["state"] != "checking",
        prefer,
        usual=10,
    )


@api.get("")
def list_datasets(service: Serving, person: Caller) -> list[Json]:
    """The data sets that the caller may see."""
    person.must_be(*LOOKING)
    return [_view(service, person, one) for one in datasets.visible(service, person)]


@api.get("/{name}")
def show_dataset(service: Serving, person: Caller, name: str) -> Json:
    """Public facts, features with types, allowance and what is left of it."""
    person.must_be(*LOOKING)
    return _view(service, person, datasets.seen(service, person, name))


@api.patch("/{name}")
def raise_dataset(service: Serving, person: Caller, name: str, body: Change) -> Json:
    """Raise the budget of a data set; its custodian."""
    person.must_be("custodian", scope="manage")
    if body.budget is None or body.expires is not None:
        raise ArgumentError("Send the new budget, which must be larger than it is now.")
    datasets.raise_budget(service, person, name, budget=body.budget)
    return _own_view(service, person, name)


@api.delete("/{name}")
def close_dataset(service: Serving, person: Caller, name: str) -> Json:
    """Close a data set for good; its custodian."""
    datasets.close(service, person, name)
    return _own_view(service, person, name)


@api.get(
    "/{name}/twin.csv",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/csv": {}}}},
)
def twin(service: Serving, person: Caller, name: str, rows: RowCount = 20) -> StreamingResponse:
    """Made-up rows of the same columns, from the declaration alone."""
    return _twin(service, person, name, rows)


def _twin(service: Service, person: Person, name: str, rows: int) -> StreamingResponse:
    person.must_be("custodian", "analyst")
    with service.free.of(person.name):
        lines = list(datasets.twin(datasets.seen(service, person, name), rows))
    return StreamingResponse(iter(lines), media_type="text/csv")


@api.post("/{name}/published", status_code=202)
def publish(
    service: Serving, person: Caller, name: str, body: NewPublished, idempotency_key: Key
) -> Json:
    """Book a file of made-up rows for all analysts, out of the data set's own budget."""
    row = published.publish(service, person, name, question=body.question, key=idempotency_key)
    return evaluations.public(service, row, reader=person, new=True)


@api.get("/{name}/published")
def list_published(service: Serving, person: Caller, name: str) -> list[Json]:
    """List what its custodian published, each with its price and what it will answer badly."""
    person.must_be(*LOOKING)
    return published.shown(service, person, datasets.seen(service, person, name))


@api.get(
    "/{name}/published/{identity}.csv",
    response_class=Response,
    responses={200: {"content": {"text/csv": {}}}},
)
def published_rows(service: Serving, person: Caller, name: str, identity: str) -> Response:
    """The made-up rows that were published."""
    text = published.rows_of(service, person, name, identity)
    return Response(text, media_type="text/csv")


@api.get("/{name}/grants")
def list_grants(service: Serving, person: Caller, name: str) -> list[Json]:
    """Who may spend what, and did; its custodian and auditors."""
    person.must_be("custodian", "auditor")
    return datasets.shares(service, datasets.seen(service, person, name).name)


@api.post("/{name}/grants", status_code=201)
def grant(service: Serving, person: Caller, name: str, body: NewGrant) -> list[Json]:
    """Give an analyst a share; the data set's custodian."""
    datasets.grant(service, person, name, **body.model_dump())
    return datasets.shares(service, name)


@api.post("/{name}/request", status_code=201)
def request_allowance(service: Serving, person: Caller, name: str, body: NewRequest) -> Json:
    """Ask the custodian for a larger allowance; whoever has one."""
    datasets.request_allowance(service, person, name, **body.model_dump())
    return datasets.allowance_request(service, name, person.name) or {}


@api.patch("/{name}/grants/{analyst}")
def change_grant(
    service: Serving, person: Caller, name: str, analyst: str, body: Change
) -> list[Json]:
    """Raise a share, or move its end."""
    datasets.change_grant(service, person, name, analyst=analyst, **body.model_dump())
    return datasets.shares(service, name)


@api.delete("/{name}/grants/{analyst}")
def revoke_grant(service: Serving, person: Caller, name: str, analyst: str) -> list[Json]:
    """Take a share away."""
    datasets.revoke(service, person, name, analyst=analyst)
    return datasets.shares(service, name)


# --- the page of a data set ----------------------------------------------------------------------


@pages.get("/datasets/{name}")
def dataset(service: Serving, request: Request, person: Signed, name: str) -> Response:
    """A data set, as this role sees it."""
    person.must_be(*LOOKING)
    return _show(service, request, person, name)


def _show(
    service: Service, request: Request, person: Person, name: str, wrong: str | None = None
) -> Response:
    registered = datasets.seen(service, person, name)
    if person.role != "analyst" and "hx-request" in request.headers:
        new = {} if registered.state == "checking" else {"HX-Refresh": "true"}
        return Response(status_code=204, headers=new)
    standing, why = datasets.allowance(service, person, registered)
    recent = [] if person.role == "auditor" else evaluations.listed(service, person, name)
    content: Json = {
        "dataset": registered,
        "standing": standing,
        "twin": _twin_table(registered),
        "published": published.shown(service, person, registered),
        "recent": recent if person.role == "analyst" else recent[:MOST_RECENT],
        "names": artifacts.names(service, [one["artifact"] for one in recent]),
    }
    if person.role == "analyst":
        asked_for = datasets.allowance_request(service, name, person.name)
        return page(request, "dataset.html", why=why, asked_for=asked_for, **content)
    has_account = registered.state in ("open", "closed")
    shares = datasets.shares(service, name) if has_account else []
    lines = books.bookings(service, person, name) if has_account else []
    have = {share["analyst"] for share in shares if not share["revoked"]}
    analysts = [
        one["name"]
        for one in accounts.everyone(service)
        if one["role"] == "analyst" and not one["disabled"] and one["name"] not in have
    ]
    return page(
        request,
        "custodian_dataset.html",
        status=422 if wrong else 200,
        wrong=wrong,
        mine=registered.owner == person.name,
        shares=shares,
        requests=datasets.allowance_requests(service, [name]),
        analysts=analysts if person.role == "custodian" else [],
        spent=books.spending(service, lines),
        publishing=_publishing(registered) if registered.state == "open" else [],
        waiting=published.waiting(service, registered),
        key=secrets.token_urlsafe(16),
        **content,
    )


def _twin_table(registered: Registered) -> list[list[str]]:
    """Return the first rows of the twin, the header first; none while the rows are not open."""
    is_open = registered.state == "open"
    return list(csv.reader(datasets.twin(registered, PREVIEW))) if is_open else []


@pages.get("/datasets/{name}/twin.csv")
def twin_file(
    service: Serving, person: Signed, name: str, rows: RowCount = 1000
) -> StreamingResponse:
    """Made-up rows to try code on."""
    answer = _twin(service, person, name, rows)
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}-twin.csv"'
    return answer


def _publishing(registered: Registered) -> list[Json]:
    """Return what a custodian may publish, with the controls of its form."""
    plain = asking.Unfilled()
    return [
        {"kind": kind, "controls": asking.Choice(kind, None).controls(plain)}
        for kind in published.kinds(registered)
    ]


@pages.post("/datasets/{name}/publish")
def publish_page(service: Serving, request: Request, order: Order, name: str) -> Response:
    """Book a file of made-up rows for all analysts."""

    def change() -> None:
        asked = asking.typed_question(order.text("kind"), order.form, order.text("epsilon"))
        published.publish(service, order.person, name, question=asked, key=order.text("key"))

    return _do(service, request, order, name, "published", change)


@pages.get("/datasets/{name}/published/{identity}.csv")
def published_file(service: Serving, person: Signed, name: str, identity: str) -> Response:
    """The made-up rows that were published."""
    named = {"Content-Disposition": f'attachment; filename="{name}-private-twin.csv"'}
    text = published.rows_of(service, person, name, identity)
    return Response(text, media_type="text/csv", headers=named)


@pages.post("/datasets/{name}/grants")
def grant_page(service: Serving, request: Request, order: Order, name: str) -> Response:
    """Give an analyst an allowance."""
    return _do(service, request, order, name, "granted", lambda: datasets.grant(
        service, order.person, name, analyst=order.text("analyst"), budget=order.text("budget"),
        expires=_day(order.text("expires")),
    ))  # fmt: skip


@pages.post("/datasets/{name}/grants/{analyst}")
def change_page(
    service: Serving, request: Request, order: Order, name: str, analyst: str
) -> Response:
    """Raise an allowance, or move its end."""
    return _do(service, request, order, name, "changed", lambda: datasets.change_grant(
        service, order.person, name, analyst=analyst, budget=order.text("budget") or None,
        expires=_day(order.text("expires")),
    ))  # fmt: skip


@pages.post("/datasets/{name}/request")
def request_page(service: Serving, posted: Posted, name: str) -> Response:
    """Ask the custodian for a larger allowance."""
    person = posted.person
    budget, why = posted.text("budget"), posted.text("why")
    datasets.request_allowance(service, person, name, budget=budget, why=why)
    return redirect(f"/datasets/{name}?done=requested")


@pages.post("/datasets/{name}/grants/{analyst}/decline")
def decline_page(
    service: Serving, request: Request, order: Order, name: str, analyst: str
) -> Response:
    """Set a request for more aside."""
    return _do(service, request, order, name, "declined", lambda: datasets.decline_request(
        service, order.person, name, analyst=analyst
    ))  # fmt: skip


@pages.post("/datasets/{name}/grants/{analyst}/revoke")
def revoke_page(
    service: Serving, request: Request, order: Order, name: str, analyst: str
) -> Response:
    """Take an allowance away."""
    return _do(service, request, order, name, "revoked", lambda: datasets.revoke(
        service, order.person, name, analyst=analyst
    ))  # fmt: skip


@pages.post("/datasets/{name}/raise")
def raise_page(service: Serving, request: Request, order: Order, name: str) -> Response:
    """Raise what may be spent in all."""
    return _do(service, request, order, name, "raised", lambda: datasets.raise_budget(
        service, order.person, name, budget=order.text("budget")
    ))  # fmt: skip


@pages.post("/datasets/{name}/close")
def close_page(service: Serving, request: Request, order: Order, name: str) -> Response:
    """Close it for good."""
    if order.text("sure") != name:
        words = "Type the name of the data set to close it."
        return _show(service, request, order.person, name, words)
    return _do(service, request, order, name, "closed", lambda: datasets.close(
        service, order.person, name
    ))  # fmt: skip


@pages.post("/datasets/{name}/refresh")
def refresh_page(service: Serving, request: Request, order: Order, name: str) -> Response:
    """Take the rows anew from where they were; declaration, budget and what was spent stay."""
    return _do(service, request, order, name, "registered", lambda: datasets.refresh(
        service, order.person, name
    ))  # fmt: skip


def _do(  # noqa: PLR0917
    service: Service,
    request: Request,
    order: Sent,
    name: str,
    done: str,
    change: Callable[[], None],
) -> Response:
    """Do it and say so, or show the page with what was wrong."""
    datasets.owned(service, order.person, name)
    try:
        change()
    except HeldoutError as error:
        return _show(service, request, order.person, name, str(error))
    return redirect(f"/datasets/{name}?done={done}")


def _day(text: str) -> float | None:
    """Return the end of a day, as a form sends it."""
    if not text:
        return None
    try:
        day = datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise ArgumentError("The last day must look like 2027-03-31.") from None
    return datetime.combine(day, time.max, UTC).timestamp()
