"""The custodian's pages: registering rows, granting allowances, watching what is spent."""

from datetime import UTC, datetime, time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from heldout.errors import ArgumentError, HeldoutError
from heldout.server import accounts, artifacts, datasets, evaluations, ledger_view, site_analyst
from heldout.server.accounts import Person
from heldout.server.gate import Anyone
from heldout.server.site import Posted, Sent, Signed, noted, page, redirect
from heldout.server.spending import spending

__all__ = ["router"]

router = APIRouter()


def custodian(posted: Posted) -> Sent:
    posted.person.must_be("custodian", scope="manage")
    return posted


Order = Annotated[Sent, Depends(custodian)]


# --- one data set --------------------------------------------------------------------------------


@router.get("/datasets/{name}")
def dataset(service: Anyone, request: Request, person: Signed, name: str) -> Response:
    """A data set, as this role sees it."""
    person.must_be("custodian", "analyst", "auditor")
    if person.role == "analyst":
        return site_analyst.show(service, request, person, name)
    return _shown(service, request, person, name)


def _shown(
    service: Any, request: Request, person: Person, name: str, wrong: str | None = None
) -> Response:
    held = datasets.seen(service, person, name)
    opened = held.state in ("open", "closed")
    shares = datasets.shares(service, name) if opened else []
    recent: list[Any] = []
    if person.role == "custodian":
        rows = evaluations.history(service, person, name)[:50]
        recent = [evaluations.public(service, row, answers=False) for row in rows]
    have = {each["analyst"] for each in shares if not each["revoked"]}
    analysts = [
        each["name"]
        for each in accounts.everyone(service)
        if each["role"] == "analyst" and not each["disabled"] and each["name"] not in have
    ]
    if "hx-request" in request.headers:
        new = {} if held.state == "checking" else {"HX-Refresh": "true"}
        return Response(status_code=204, headers=new)
    entries = ledger_view.entries(service, person, name) if opened else []
    return page(
        request,
        "custodian_dataset.html",
        status=422 if wrong else 200,
        wrong=wrong,
        held=held,
        mine=held.owner == person.name,
        standing=datasets.standing(service, name) if opened else None,
        shares=shares,
        analysts=analysts if person.role == "custodian" else [],
        twin=site_analyst.twin_table(held),
        spent=spending(service, entries),
        recent=recent,
        names=artifacts.names(service, [each["artifact"] for each in recent]),
    )


@router.post("/datasets/{name}/grants")
def grant(service: Anyone, request: Request, order: Order, name: str) -> Response:
    """Give an analyst an allowance."""
    analyst = order.text("analyst")
    return _do(
        service, request, order, name, "granted", "grant", f"{name} to {analyst}",
        lambda: datasets.grant(
            service, order.person, name,
            analyst=analyst, budget=order.text("budget"), expires=_day(order.text("expires")),
        ),
    )  # fmt: skip


@router.post("/datasets/{name}/grants/{analyst}")
def change(service: Anyone, request: Request, order: Order, name: str, analyst: str) -> Response:
    """Raise an allowance, or move its end."""
    return _do(
        service, request, order, name, "changed", "change grant", f"{name} to {analyst}",
        lambda: datasets.change_grant(
            service, order.person, name, analyst=analyst,
            budget=order.text("budget") or None, expires=_day(order.text("expires")),
        ),
    )  # fmt: skip


@router.post("/datasets/{name}/grants/{analyst}/revoke")
def revoke(service: Anyone, request: Request, order: Order, name: str, analyst: str) -> Response:
    """Take an allowance away."""
    return _do(
        service, request, order, name, "revoked", "revoke", f"{name} of {analyst}",
        lambda: datasets.revoke(service, order.person, name, analyst=analyst),
    )  # fmt: skip


@router.post("/datasets/{name}/raise")
def raise_budget(service: Anyone, request: Request, order: Order, name: str) -> Response:
    """Raise what may be spent in all."""
    return _do(
        service, request, order, name, "raised", "raise", name,
        lambda: datasets.raise_budget(service, order.person, name, budget=order.text("budget")),
    )  # fmt: skip


@router.post("/datasets/{name}/close")
def close(service: Anyone, request: Request, order: Order, name: str) -> Response:
    """Close it for good."""
    if order.text("sure") != name:
        words = "Type the name of the data set to close it."
        return _shown(service, request, order.person, name, words)
    return _do(
        service, request, order, name, "closed", "close", name,
        lambda: datasets.close(service, order.person, name),
    )  # fmt: skip


@router.post("/datasets/{name}/refresh")
def refresh(service: Anyone, request: Request, order: Order, name: str) -> Response:
    """Take the rows anew from where they were; declaration, budget and what was spent stay."""
    held = datasets.owned(service, order.person, name)
    return _do(
        service, request, order, name, "registered", "register", name,
        lambda: datasets.register(
            service, order.person, name=name, source=dict(held.source),
            declaration=held.declared.content, budget=held.budget.as_dict(), facts=held.facts,
        ),
    )  # fmt: skip


def _do(  # noqa: PLR0917
    service: Any,
    request: Request,
    order: Sent,
    name: str,
    done: str,
    action: str,
    subject: str,
    change: Any,
) -> Response:
    """Do it and say so, or show the page with what was wrong."""
    datasets.owned(service, order.person, name)
    try:
        change()
    except HeldoutError as error:
        return _shown(service, request, order.person, name, str(error))
    noted(request, order.person.name, action, subject)
    return redirect(f"/datasets/{name}?done={done}")


def _day(text: str) -> float | None:
    """The end of a day, as a form sends it."""
    if not text:
        return None
    try:
        day = datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise ArgumentError("The last day must look like 2027-03-31.") from None
    return datetime.combine(day, time.max, UTC).timestamp()
