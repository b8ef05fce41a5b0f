"""The analyst's pages: data sets, models, asking, waiting, answers, comparing."""

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import PurePath
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from heldout.errors import ArgumentError, HeldoutError
from heldout.server import artifacts, asking, comparing, datasets, evaluations, quotes
from heldout.server.accounts import Person
from heldout.server.gate import REPORT_POLICY, Anyone, status_of
from heldout.server.service import Forbidden, Missing
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
    form = await sent(request, person)
    file = form.form.get("file")
    try:
        if not isinstance(file, UploadFile) or not file.filename:
            raise ArgumentError("Choose a file first.")
        name = PurePath(file.filename.replace("\\", "/")).name
        ending = PurePath(name).suffix.lower()
        if ending not in artifacts.ENDINGS:
            raise ArgumentError(
                "The name of the file must end in .onnx or .json (a model), or in .parquet or "
                ".csv (predictions by row key)."
            )
        identity = await artifacts.store(
            service,
            person,
            _pieces(file),
            content_type=artifacts.ENDINGS[ending],
            name=name,
            features=form.lines("features") or None,
        )
    except HeldoutError as error:
        mine = await run_in_threadpool(artifacts.mine, service, person)
        return page(request, "models.html", status=status_of(error), mine=mine, wrong=str(error))
    await run_in_threadpool(noted, request, person.name, "upload", identity)
    if request.headers.get("hx-request"):
        return Response(status_code=204, headers={"HX-Redirect": f"/artifacts/{identity}"})
    return redirect(f"/artifacts/{identity}")


async def _pieces(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(PIECE):
        yield piece


@router.get("/artifacts/{identity}")
def model(service: Anyone, request: Request, person: Analyst, identity: str) -> Response:
    """What was found in a file, and how to mend it."""
    found = artifacts.public(artifacts.find(service, person, identity))
    return page(
        request,
        "state_model.html" if request.headers.get("hx-request") else "model.html",
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
    lines = datasets.twin(datasets.seen(service, person, name), rows)
    headers = {"Content-Disposition": f'attachment; filename="{name}-twin.csv"'}
    return StreamingResponse(lines, media_type="text/csv", headers=headers)


# --- asking --------------------------------------------------------------------------------------


@router.get("/datasets/{name}/ask")
def ask(service: Anyone, request: Request, person: Analyst, name: str) -> Response:
    """Tick questions, drag what they may cost or how exact they are to be, and see the other.

    The page is there at once; its script then asks for the price, and so does whoever drags.
    """
    held = datasets.seen(service, person, name)
    wish = asking.Wish.of(request.query_params)
    part = "hx-request" in request.headers
    offer, wrong = None, None
    if part or "by" in request.query_params:
        try:
            offer = asking.offered(service, person, held, wish)
        except ArgumentError as error:
            wrong = str(error)
    content = _asking(service, person, held, wish, offer) | {"wrong": wrong}
    return page(request, "offer.html" if part else "ask.html", **content)


def _asking(
    service: Any, person: Person, held: datasets.Held, wish: asking.Wish, offer: Any
) -> dict[str, Any]:
    mine = [each for each in artifacts.mine(service, person) if each["state"] != "refused"]
    if not wish.artifact and len(mine) == 1:
        wish = replace(wish, artifact=mine[0]["id"])
    account = datasets.share_of(service, person, held.name)
    return {
        "held": held,
        "wish": wish,
        "offer": offer,
        "standing": datasets.standing(service, account),
        "choices": asking.CHOICES,
        "ladder": asking.LADDER,
        "widths": asking.WIDTHS,
        "mine": mine,
        "missing": _missing(wish, [each["id"] for each in mine]),
    }


def _missing(wish: asking.Wish, mine: list[str]) -> str:
    """What is still to be chosen before anything can be bought."""
    if not mine:
        return "Submit a model first."
    if wish.artifact not in mine:
        return "Choose the model that it is about."
    if not wish.ticked:
        return "Tick at least one question."
    if "compare" in wish.ticked and (wish.rival not in mine or wish.rival == wish.artifact):
        return "Choose the other model to compare with."
    return ""


@router.get("/datasets/{name}/confirm")
def confirm(service: Anyone, request: Request, person: Analyst, name: str) -> Response:
    """The price and what will be left, before anything is bought."""
    held = datasets.seen(service, person, name)
    wish = asking.Wish.of(request.query_params)
    try:
        offer = asking.offered(service, person, held, wish)
        content = _asking(service, person, held, wish, offer)
        if content["missing"] or offer is None or offer.why_not:
            content["wrong"] = content["missing"] or None
            return page(request, "ask.html", status=409, **content)
        agreed = quotes.signed(service, person, name, offer.questions, wish.guessed())
    except ArgumentError as error:
        content = _asking(service, person, held, wish, None)
        return page(request, "ask.html", status=422, **content | {"wrong": str(error)})
    named = {each["id"]: each["name"] for each in content["mine"]}
    if wish.artifact not in named:
        raise Missing("There is no such artefact of yours.")
    return page(
        request,
        "confirm.html",
        **content,
        quote=agreed["quote"],
        key=secrets.token_urlsafe(16),
        model=named[wish.artifact],
        rival=named.get(wish.rival, "") if "compare" in wish.ticked else "",
        back=urlencode(list(request.query_params.multi_items())),
    )


@router.post("/evaluations")
def pay(service: Anyone, request: Request, posted: Posted) -> Response:
    """Ask and pay: the button of the page that showed the price."""
    posted.person.must_be("analyst", scope="ask")
    agreed = quotes.opened(service, posted.person, posted.text("quote"))
    row, new = evaluations.submit(
        service,
        posted.person,
        dataset=agreed["dataset"],
        artifact=posted.text("artifact"),
        rival=posted.text("rival") or None,
        content=agreed["questions"],
        key=posted.text("key"),
        most=agreed["loss"],
    )
    if new:
        noted(request, posted.person.name, "evaluate", row.id)
    return redirect(f"/evaluations/{row.id}")


# --- waiting and answers -------------------------------------------------------------------------


def _reader(person: Signed) -> Person:
    person.must_be("analyst", "custodian")
    return person


Reader = Annotated[Person, Depends(_reader)]


@router.get("/evaluations/{identity}")
def evaluation(service: Anyone, request: Request, person: Reader, identity: str) -> Response:
    """Its state while it waits; its answer when it is there."""
    row = evaluations.find_one(service, person, identity)
    found = evaluations.public(service, row, answers=False)
    if request.headers.get("hx-request"):
        if found["state"] != "waiting":
            return Response(status_code=204, headers={"HX-Refresh": "true"})
        return page(request, "state_evaluation.html", found=found)
    blocks = comparing.blocks(row) if found["state"] == "answered" else ()
    names = artifacts.names(service, [row.artifact, row.rival or ""])
    return page(request, "evaluation_page.html", found=found, blocks=blocks, names=names)


@router.get("/evaluations/{identity}/report.html")
def report(service: Anyone, person: Reader, identity: str, download: bool = False) -> HTMLResponse:
    """The answer as one self-contained file, with its receipt."""
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
    side_by_side = comparing.side_by_side(
        [(names.get(row.artifact, row.artifact), row) for row in answered], measure
    )
    return page(request, "compare.html", known=known, chosen=chosen, found=side_by_side)
