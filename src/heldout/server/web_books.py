"""The ledger, for custodians and auditors: the API and the pages."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from heldout.server import books, datasets
from heldout.server.gate import PROBLEMS, Caller, Serving
from heldout.server.site import Signed, page
from heldout.server.storage import Json

api = APIRouter(prefix="/api/v1", responses=PROBLEMS)
pages = APIRouter()
MOST = 200
"""Lines of the ledger that one page lists, the newest first."""


@api.get("/ledger")
def show_ledger(service: Serving, person: Caller, dataset: str | None = None) -> list[Json]:
    """Who spent what on which model."""
    person.must_be("custodian", "auditor")
    return books.bookings(service, person, dataset)


@api.get("/ledger/head")
def ledger_head(service: Serving, person: Caller) -> Json:
    """Where the chain ends: keep it, and a ledger that is put back is noticed."""
    person.must_be(*datasets.LOOKING)
    return books.head(service)


@api.get("/ledger/verify")
def verify_ledger(
    service: Serving, person: Caller, receipt: Annotated[str | None, Query(max_length=64)] = None
) -> Json:
    """Check the whole chain; with a receipt's hash, find that booking. Analysts name a receipt."""
    person.must_be(*datasets.LOOKING)
    with service.free.of(person.name):
        return books.verify(service, person, receipt)


@pages.get("/ledger")
def ledger(  # noqa: PLR0917  the framework passes them by name
    service: Serving,
    request: Request,
    person: Signed,
    dataset: str = "",
    check: bool = False,
    receipt: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Who spent what on which model; the button checks the whole chain."""
    person.must_be("custodian", "auditor")
    lines = books.bookings(service, person, dataset or None)
    return page(
        request,
        "ledger_page.html",
        entries=lines[::-1][:MOST],
        count=len(lines),
        known=[registered.name for registered in datasets.visible(service, person)],
        dataset=dataset,
        receipt=receipt,
        found=books.verify(service, person, receipt.strip() or None) if check else None,
        head=books.head(service),
    )
