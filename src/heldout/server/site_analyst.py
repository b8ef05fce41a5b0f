"""The analyst's pages: data sets, models, asking, waiting, answers, comparing."""

from collections.abc import AsyncIterator
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from heldout import questions as q
from heldout.errors import ArgumentError, HeldoutError
from heldout.server import artifacts, comparing, datasets, evaluations
from heldout.server.accounts import Person
from heldout.server.gate import REPORT_POLICY, Anyone, announced, status_of
from heldout.server.service import Forbidden
from heldout.server.site import Posted, Signed, noted, page, redirect, sent

__all__ = ["router"]

router = APIRouter()
PREVIEW = 5
"""Made-up rows that a data set's page shows."""
PIECE = 2**20


def analyst(person: Signed) -> Person:
    person.must_be("analyst")
    return person


Analyst = Annotated[Person, Depends(analyst)]


# --- models --------------------------------------------------------------------------------------


@router.get("/artifacts")
def models(service: Anyone, request: Request, person: Analyst) -> Response:
    """Own models and predictions, and the form to submit one."""
    return page(request, "models.html", mine=artifacts.mine(service, person))


@router.post("/artifacts")
async def submit(service: Anyone, request: Request, person: Analyst) -> Response:
    """Take a file; a worker looks at it alone, in a sandbox."""
    try:
        async with artifacts.arriving(service, person, announced(request)) as arriving:
            form = await sent(request, person)
            file = form.form.get("file")
            if not isinstance(file, UploadFile) or not file.filename:
                raise ArgumentError("Choose a file first.")
            name = PurePath(file.filename.replace("\\", "/")).name
            ending = PurePath(name).suffix.lower()
            if ending not in artifacts.ENDINGS:
                raise ArgumentError(
                    "The name of the file must end in .onnx or .json (a model), or in .parquet or "
                    ".csv (predictions by row key)."
                )
            identity = await arriving.take(
                _pieces(file),
                content_type=artifacts.ENDINGS[ending],
                name=name,
                features=form.lines("features") or None,
            )
    except Forbidden:
        raise
    except HeldoutError as error:
        mine = await run_in_threadpool(artifacts.mine, service, person)
        return page(request, "models.html", status=status_of(error), mine=mine, wrong=str(error))
    await run_in_threadpool(noted, request, person.name, "upload", identity)
    return redirect(f"/artifacts/{identity}")


@router.post("/artifacts/{identity}/delete")
def delete(service: Anyone, request: Request, posted: Posted, identity: str) -> Response:
    """Forget a model and its scores; the answers about it stay."""
    posted.person.must_be("analyst", scope="ask")
    artifacts.delete(service, posted.person, identity)
    noted(request, posted.person.name, "delete artefact", identity)
    return redirect("/artifacts?done=deleted")


async def _pieces(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(PIECE):
        yield piece


@router.get("/artifacts/{identity}")
def model(service: Anyone, request: Request, person: Analyst, identity: str) -> Response:
    """What was found in a file, and how to mend it."""
    found = artifacts.public(artifacts.find(service, person, identity))
    part = "hx-request" in request.headers
    if part and found["state"] == "checking":
        return Response(status_code=204)  # nothing new
    return page(
        request,
        "state_model.html" if part else "model.html",
        model=found,
        held=datasets.visible(service, person),
        asked=_asked_about(service, person, identity),
    )


def _asked_about(service: Any, person: Person, identity: str) -> list[dict[str, Any]]:
    return [
        evaluations.public(service, row, answers=False)
        for row in evaluations.history(service, person)
        if identity in (row.artifact, row.rival)
    ]


# --- data sets -----------------------------------------------------------------------------------


def show(service: Any, request: Request, person: Person, name: str) -> Response:
    """A data set, as somebody with an allowance sees it."""
    held = datasets.seen(service, person, name)
    standing, why = None, ""
    try:
        standing = datasets.standing(service, datasets.share_of(service, person, name))
    except Forbidden as error:
        why = str(error)
    rows = evaluations.history(service, person, name)
    recent = [evaluations.public(service, row, answers=False) for row in rows]
    return page(
        request,
        "dataset.html",
        held=held,
        standing=standing,
        why=why,
        twin=twin_table(held),
        recent=recent,
        names=artifacts.names(service, [each["artifact"] for each in recent]),
    )


def twin_table(held: datasets.Held) -> list[list[str]]:
    """The first rows of the twin, the header first; none while the rows are not open."""
    import csv

    return list(csv.reader(datasets.twin(held, PREVIEW))) if held.state == "open" else []


@router.get("/datasets/{name}/twin.csv")
def twin(
    service: Anyone,
    person: Signed,
    name: str,
    rows: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> StreamingResponse:
    """Made-up rows to try code on."""
    person.must_be("custodian", "analyst")
    with service.free.of(person.name):
        lines = list(datasets.twin(datasets.seen(service, person, name), rows))
    headers = {"Content-Disposition": f'attachment; filename="{name}-twin.csv"'}
    return StreamingResponse(iter(lines), media_type="text/csv", headers=headers)


# --- waiting and answers -------------------------------------------------------------------------


def _reader(person: Signed) -> Person:
    person.must_be("analyst", "custodian")
    return person


Reader = Annotated[Person, Depends(_reader)]


@router.get("/evaluations/{identity}")
def evaluation(
    service: Anyone, request: Request, person: Reader, identity: str, place: int | None = None
) -> Response:
    """Its state while it waits; its answer when it is there. A page that looks again tells what
    place in the queue it shows, and is sent nothing until there is something new."""
    row = evaluations.find_one(service, person, identity)
    found = evaluations.public(service, row, answers=False)
    if request.headers.get("hx-request"):
        if found["state"] != "waiting":
            return Response(status_code=204, headers={"HX-Refresh": "true"})
        if found["queue_place"] == place:
            return Response(status_code=204)
        return page(request, "state_evaluation.html", found=found)
    blocks: tuple[comparing.Block, ...] = ()
    if found["state"] == "answered":
        with service.free.of(person.name):
            blocks = comparing.blocks(row)
    names = artifacts.names(service, [row.artifact, row.rival or ""])
    return page(request, "evaluation_page.html", found=found, blocks=blocks, names=names)


@router.post("/evaluations/{identity}/cancel")
def cancel(service: Anyone, request: Request, posted: Posted, identity: str) -> Response:
    """Cancel an own evaluation before its price is booked."""
    posted.person.must_be("analyst", scope="ask")
    evaluations.cancel(service, posted.person, identity)
    noted(request, posted.person.name, "cancel", identity)
    return redirect(f"/evaluations/{identity}")


@router.get("/evaluations/{identity}/report.html")
def report(service: Anyone, person: Reader, identity: str, download: bool = False) -> HTMLResponse:
    """The answer as one self-contained file, with its receipt."""
    with service.free.of(person.name):
        text = evaluations.page(evaluations.find_one(service, person, identity))
    headers = {"Content-Security-Policy": REPORT_POLICY.decode()}
    if download:
        headers["Content-Disposition"] = f'attachment; filename="report-{identity}.html"'
    return HTMLResponse(text, headers=headers)


@router.get("/compare")
def compare(
    service: Anyone,
    request: Request,
    person: Analyst,
    dataset: str | None = None,
    measure: str | None = None,
) -> Response:
    """Own answers side by side: arithmetic on what was paid for."""
    known = [each.name for each in datasets.visible(service, person)]
    chosen = dataset if dataset in known else next(iter(known), None)
    rows = evaluations.history(service, person, chosen) if chosen else []
    answered = [
        row
        for row in rows[::-1]
        if evaluations.public(service, row, answers=False)["state"] == "answered"
    ]
    names = artifacts.names(service, [row.artifact for row in answered])
    sharper = [each for each in q.registered() if each.rival_field() is not None]
    with service.free.of(person.name):
        side_by_side = comparing.side_by_side(
            [(names.get(row.artifact, row.artifact), row) for row in answered], measure
        )
    return page(
        request, "compare.html", known=known, chosen=chosen, found=side_by_side, sharper=sharper
    )
