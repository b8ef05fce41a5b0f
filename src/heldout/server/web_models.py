"""Models and predictions that analysts bring: the API and the pages."""

from collections.abc import AsyncIterator
from pathlib import PurePath
from typing import Annotated, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from heldout.errors import ArgumentError, HeldoutError
from heldout.server import artifacts, datasets, evaluations
from heldout.server.accounts import Person
from heldout.server.gate import (
    PROBLEMS,
    Body,
    Caller,
    Serving,
    Wait,
    after_wait,
    announced,
    status_of,
)
from heldout.server.service import Forbidden, Service
from heldout.server.site import Posted, Signed, page, redirect, sent
from heldout.server.storage import Json

api = APIRouter(prefix="/api/v1", responses=PROBLEMS)
pages = APIRouter()
PIECE = 2**20
BINARY = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in artifacts.KINDS}


def analyst(person: Signed) -> Person:
    person.must_be("analyst")
    return person


Analyst = Annotated[Person, Depends(analyst)]


async def _looked_at(
    service: Service, person: Person, identity: str, prefer: str | None, usual: float = 0
) -> Json:
    """Return an artefact once a worker has looked at it, or once the time to wait is over."""
    return await after_wait(
        lambda: artifacts.public(artifacts.find(service, person, identity)),
        lambda model: model["state"] != "checking",
        prefer,
        usual,
    )


@api.put(
    "/artifacts",
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": BINARY}},
)
async def upload(  # noqa: PLR0917  the framework passes them by name
    service: Serving,
    person: Caller,
    request: Request,
    name: Annotated[str, Query(max_length=199)] = "model",
    features: Annotated[list[str] | None, Query()] = None,
    kind: Annotated[Literal["copy"] | None, Query()] = None,
    prefer: Wait = None,
) -> Json:
    """Send a model or predictions as the body; a worker looks at it alone, in a sandbox.

    With kind=copy it is a CSV file of public rows, to be compared with private ones.
    """
    identity = await artifacts.store(
        service,
        person,
        request.stream(),
        length=announced(request),
        content_type=request.headers.get("content-type", ""),
        name=name,
        features=features,
        copy=kind is not None,
    )
    return await _looked_at(service, person, identity, prefer, usual=5)


@api.get("/artifacts")
def list_artifacts(service: Serving, person: Caller) -> list[Json]:
    """The caller's own artefacts."""
    return artifacts.mine(service, person)


@api.get("/artifacts/{identity}")
async def show_artifact(
    service: Serving, person: Caller, identity: str, prefer: Wait = None
) -> Json:
    """Say what was found, in words; its inputs; whether it is proven row by row."""
    return await _looked_at(service, person, identity, prefer)


class Rename(Body):
    """A new name of an artefact."""

    name: str


@api.patch("/artifacts/{identity}")
def rename_artifact(service: Serving, person: Caller, identity: str, body: Rename) -> Json:
    """Give an own artefact another name; what was signed keeps the one that it had then."""
    artifacts.rename(service, person, identity, body.name)
    return artifacts.public(artifacts.find(service, person, identity))


@api.delete("/artifacts/{identity}", status_code=204)
def delete_artifact(service: Serving, person: Caller, identity: str) -> None:
    """Forget an artefact and its scores; one that waits to be checked is cancelled by it."""
    artifacts.delete(service, person, identity)


# --- pages ---------------------------------------------------------------------------------------


@pages.get("/artifacts")
def models(service: Serving, request: Request, person: Analyst) -> Response:
    """Own models and predictions, and the form to submit one."""
    return page(request, "models.html", mine=artifacts.mine(service, person))


@pages.post("/artifacts")
async def submit(service: Serving, request: Request, person: Analyst) -> Response:
    """Take a file; a worker looks at it alone, in a sandbox."""
    try:
        async with artifacts.arriving(service, person, announced(request)) as arriving:
            form = await sent(request, person)
            file = form.form.get("file")
            if not isinstance(file, UploadFile) or not file.filename:
                raise ArgumentError("Choose a file first.")
            name = PurePath(file.filename.replace("\\", "/")).name
            ending = PurePath(name).suffix.lower()
            asked = form.text("copy_for")
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
                copy=bool(asked),
            )
    except Forbidden:
        raise
    except HeldoutError as error:
        mine = await run_in_threadpool(artifacts.mine, service, person)
        return page(request, "models.html", status=status_of(error), mine=mine, wrong=str(error))
    if asked:  # a copy of a data set's rows: back to the question that it was sent for
        back = {"question": form.text("question"), "copy": identity, "by": "price"}
        return redirect(f"/datasets/{quote(asked, safe='')}/ask?{urlencode(back)}")
    known = "" if identity == arriving.id else "?done=known"
    return redirect(f"/artifacts/{identity}{known}")


async def _pieces(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(PIECE):
        yield piece


@pages.post("/artifacts/{identity}/rename")
def rename(service: Serving, posted: Posted, identity: str) -> Response:
    """Give a model another name."""
    artifacts.rename(service, posted.person, identity, posted.text("name"))
    return redirect(f"/artifacts/{identity}?done=renamed")


@pages.post("/artifacts/{identity}/delete")
def delete(service: Serving, posted: Posted, identity: str) -> Response:
    """Forget a model and its scores; the answers about it stay."""
    artifacts.delete(service, posted.person, identity)
    return redirect("/artifacts?done=deleted")


@pages.get("/artifacts/{identity}")
def model(service: Serving, request: Request, person: Analyst, identity: str) -> Response:
    """Show what was found in a file, and how to mend it."""
    shown = artifacts.public(artifacts.find(service, person, identity))
    part = "hx-request" in request.headers
    if part and shown["state"] == "checking":
        return Response(status_code=204)  # nothing new
    history = evaluations.listed(service, person)
    return page(
        request,
        "state_model.html" if part else "model.html",
        model=shown,
        datasets=datasets.visible(service, person),
        asked=[one for one in history if identity in (one["artifact"], one["rival"])],
    )
