"""The auditor's pages, which custodians see of their own data: the ledger and the log."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from heldout.server import datasets, ledger_view
from heldout.server.gate import Anyone
from heldout.server.site import Signed, page

__all__ = ["router"]

router = APIRouter()
MOST = 200
"""Entries that one page lists, the newest first."""


@router.get("/ledger")
def ledger(  # noqa: PLR0917  the framework passes them by name
    service: Anyone,
    request: Request,
    person: Signed,
    dataset: str = "",
    check: bool = False,
    receipt: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Who spent what on which model; the button checks the whole chain."""
    person.must_be("custodian", "auditor")
    entries = ledger_view.entries(service, person, dataset or None)
    found = ledger_view.verify(service, person, receipt.strip() or None) if check else None
    return page(
        request,
        "ledger_page.html",
        entries=entries[::-1][:MOST],
        count=len(entries),
        known=[each.name for each in datasets.visible(service, person)],
        dataset=dataset,
        receipt=receipt,
        found=found,
        head=ledger_view.head(service),
    )


@router.get("/log")
def log(
    service: Anyone,
    request: Request,
    person: Signed,
    before: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
) -> Response:
    """Who did what, newest first."""
    person.must_be("auditor", "custodian")
    return page(request, "log.html", lines=ledger_view.log_of(service, person, before))
