"""The web application: the API and the pages over one service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

import heldout
from heldout.doors import as_json
from heldout.errors import HeldoutError
from heldout.server import (
    gate,
    site,
    web_asking,
    web_boards,
    web_datasets,
    web_models,
    web_operations,
    web_people,
    web_register,
)
from heldout.server.service import Service
from heldout.server.storage import Json

ABOUT = """How good is this model on the data that nobody may look at?

Every answer has an exact price, which is booked before the answer exists. See docs/server.md."""
PARTS = (
    web_datasets,
    web_register,
    web_models,
    web_asking,
    web_people,
    web_boards,
    web_operations,
)


def make_app(service: Service) -> FastAPI:
    """Return the application on a service; it never reads a row."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    root = service.settings.root
    app = FastAPI(
        title="heldout",
        description=ABOUT,
        version=heldout.__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=life,
        servers=[{"url": root}] if root else None,
    )
    app.state.service = service
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]
    for part in PARTS:
        app.include_router(part.api)
    for part in PARTS:
        app.include_router(part.pages, include_in_schema=False)
    app.add_api_route("/static/{name}", site.static, include_in_schema=False)
    for kind in gate.ANSWERED:
        app.add_exception_handler(kind, _refused)
    app.add_middleware(gate.Gate, service=service, page=partial(site.stopped, root=root))
    return app


def _description(app: FastAPI) -> Json:
    """Return the description of the API, with every registered kind of question."""
    if app.openapi_schema is None:
        made = FastAPI.openapi(app)
        made["components"]["schemas"] |= web_asking.question_schemas()
    return FastAPI.openapi(app)


def _refused(request: Request, error: Exception) -> Response:
    """Say what is wrong: as JSON under /api/, and elsewhere on a page."""
    answer = gate.problem(error)
    if request.url.path.startswith("/api/"):
        return answer
    if answer.status_code == 405 and request.method == "GET":
        # The address that a form went to, typed again or reloaded: the page that has the form.
        return site.redirect(request.url.path.rpartition("/")[0] or "/")
    words = "The address or the form is not as this page expects it."
    if isinstance(error, HeldoutError):
        words = as_json(str(error))
    elif isinstance(error, HTTPException):
        words = "There is no such page." if error.status_code == 404 else str(error.detail)
    shown = site.wrong(request, answer.status_code, words)
    if "retry-after" in answer.headers:
        shown.headers["retry-after"] = answer.headers["retry-after"]
    return shown
