"""The ledger, the log, and for whoever runs the server: is it alive, figures, workers, queue."""

import hmac
import shutil
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

import heldout
from heldout.errors import LedgerTampered
from heldout.server import books, datasets, jobs
from heldout.server.books import Filter
from heldout.server.gate import PROBLEMS, Caller, Serving, bearer
from heldout.server.jobs import KIND
from heldout.server.service import Missing
from heldout.server.site import Signed, page
from heldout.server.storage import Json

api = APIRouter(prefix="/api/v1", responses=PROBLEMS)
pages = APIRouter()
Before = Annotated[int | None, Query(ge=0, le=2**31 - 1)]
Text = Annotated[str, Query(max_length=100)]
MOST = 200
"""Lines of the ledger that one page lists, the newest first."""


# --- the ledger, for custodians and auditors ------------------------------------------------------


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


def _chosen(who: Text = "", action: Text = "", since: Text = "", until: Text = "") -> Filter:
    return Filter(who, action, since, until)


Chosen = Annotated[Filter, Depends(_chosen)]


def _page_of(chosen: Chosen, before: Before = None) -> Filter:
    return replace(chosen, before=before)


Paged = Annotated[Filter, Depends(_page_of)]


# --- the log -------------------------------------------------------------------------------------


@api.get("/audit")
def audit(service: Serving, person: Caller, chosen: Paged) -> list[Json]:
    """Who did what, newest first: all for auditors; custodians' own deeds and their data sets'."""
    return books.log_lines(service, person, chosen)


@api.get(
    "/audit.csv",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/csv": {}}}},
)
def audit_table(service: Serving, person: Caller, chosen: Chosen) -> Response:
    """The same as CSV, without a limit."""
    return _table(service, person, chosen)


@pages.get("/log")
def log(service: Serving, request: Request, person: Signed, chosen: Paged) -> Response:
    """Who did what, newest first."""
    lines = books.log_lines(service, person, chosen)
    return page(
        request,
        "log.html",
        lines=lines,
        chosen=chosen,
        actions=books.actions(service),
        more=len(lines) == books.MOST_LINES,
    )


@pages.get("/log.csv")
def log_table(service: Serving, person: Signed, chosen: Chosen) -> Response:
    """The same as CSV, without a limit."""
    return _table(service, person, chosen)


def _table(service: Serving, person: Caller, chosen: Filter) -> Response:
    books.log_lines(service, person, chosen)  # refuses before the first byte is sent
    name = {"Content-Disposition": 'attachment; filename="log.csv"'}
    lines = books.as_csv(service, person, chosen)
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=name)


# --- the administrator ---------------------------------------------------------------------------


@pages.get("/operations")
def operations(service: Serving, request: Request, person: Signed) -> Response:
    """Workers, queue and disk."""
    person.must_be("administrator")
    disk = shutil.disk_usage(service.settings.folder)
    try:
        books.check_receipt(service)
        ledger = f"It ends with entry {service.ledger.head().sequence}."
    except LedgerTampered as error:
        ledger = str(error)
    return page(
        request,
        "operations.html",
        workers=jobs.listed(service),
        queue=jobs.queue(service),
        free=10 * int(10 * disk.free / disk.total),  # a size to the byte would tell of rows
        ledger=ledger,
        version=heldout.__version__,
    )


# --- for machines --------------------------------------------------------------------------------


@pages.get("/health")
def health() -> JSONResponse:
    """The process lives."""
    return JSONResponse({"state": "alive"})


@pages.get("/ready")
def ready(
    service: Serving, workers_wanted: Annotated[int, Query(alias="workers", ge=0, le=1000)] = 0
) -> JSONResponse:
    """The database answers, the ledger has what was paid with it, and so many workers are alive."""
    try:
        books.check_receipt(service)
        service.ledger.head()
        alive = jobs.count_alive(service)
    except LedgerTampered:
        words = "The ledger was changed or put back. Nothing is charged until it is restored."
        return JSONResponse({"state": "not ready", "words": words}, 503)
    except Exception:
        return JSONResponse({"state": "not ready"}, 503)
    if alive < workers_wanted:
        words = f"{alive} of {workers_wanted} workers are alive. Start more: heldout worker FOLDER."
        return JSONResponse({"state": "not ready", "words": words, "workers": alive}, 503)
    return JSONResponse({"state": "ready", "workers": alive})


@pages.get("/metrics")
def metrics(service: Serving, request: Request) -> Response:
    """Figures for a monitoring system that has the token for it."""
    token = service.settings.metrics_token
    if token is None:
        raise Missing("There is no such page.")
    if not hmac.compare_digest(bearer(request).encode(), token.encode()):
        words = "Send the token of the metrics: Authorization: Bearer TOKEN."
        return PlainTextResponse(f"{words}\n", 401, {"WWW-Authenticate": "Bearer"})
    return Response(service.figures.text(), media_type=KIND)
