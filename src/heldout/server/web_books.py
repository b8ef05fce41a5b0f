"""The ledger and the log, for custodians and auditors: the API and the pages."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from heldout.errors import LedgerTampered
from heldout.server import books, datasets
from heldout.server.gate import PROBLEMS, Caller, Serving
from heldout.server.site import Signed, page
from heldout.server.storage import Json

api = APIRouter(prefix="/api/v1", responses=PROBLEMS)
pages = APIRouter()
MOST = 200
"""Lines of the ledger that one page lists, the newest first."""
Before = Annotated[int | None, Query(ge=0, le=2**31 - 1)]


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


@api.get("/audit")
def audit(service: Serving, person: Caller, before: Before = None) -> list[Json]:
    """Who did what, newest first; auditors, and custodians what they did themselves."""
    person.must_be("auditor", "custodian")
    return books.log_lines(service, person, before)


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


@pages.get("/log")
def log(service: Serving, request: Request, person: Signed, before: Before = None) -> Response:
    """Who did what, newest first."""
    person.must_be("auditor", "custodian")
    return page(request, "log.html", lines=books.log_lines(service, person, before))


@pages.get("/health")
def health() -> JSONResponse:
    """The process lives."""
    return JSONResponse({"state": "alive"})


@pages.get("/ready")
def ready(service: Serving) -> JSONResponse:
    """The database answers, and the ledger can be read and has what was paid with it."""
    try:
        books.check_receipt(service)
        service.ledger.head()
    except LedgerTampered:
        words = "The ledger was changed or put back. Nothing is charged until it is restored."
        return JSONResponse({"state": "not ready", "words": words}, 503)
    except Exception:
        return JSONResponse({"state": "not ready"}, 503)
    return JSONResponse({"state": "ready"})
