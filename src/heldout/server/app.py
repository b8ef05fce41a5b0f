"""The web application: the API and the pages over one service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.responses import JSONResponse

import heldout
from heldout.errors import LedgerTampered
from heldout.server import api_asking, api_boards, api_books, api_datasets, gate, receipts, site
from heldout.server.api_ground import question_schemas
from heldout.server.service import Service

__all__ = ["make_app"]

ABOUT = """How good is this model on the data that nobody may look at?

Every answer has an exact price, which is booked before the answer exists. See docs/server.md."""


def make_app(service: Service) -> FastAPI:
    """The application on a service; it never reads a row."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="heldout",
        description=ABOUT,
        version=heldout.__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=life,
    )
    app.state.service = service
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]
    for each in (api_datasets, api_asking, api_books, api_boards):
        app.include_router(each.router)
    gate.install(app)
    site.install(app)
    app.add_middleware(gate.Gate, service=service, page=site.stopped)

    @app.get("/health", include_in_schema=False)
    def health() -> JSONResponse:
        """The process lives."""
        return JSONResponse({"state": "alive"})

    @app.get("/ready", include_in_schema=False)
    def ready() -> JSONResponse:
        """The database answers, and the ledger can be read and has what was paid with it."""
        try:
            with service.store.read() as connection:
                connection.execute(sa.select(sa.literal(1)))
            receipts.check(service)
            service.ledger.head()
        except LedgerTampered:
            words = "The ledger was changed or put back. Nothing is charged until it is restored."
            return JSONResponse({"state": "not ready", "words": words}, 503)
        except Exception:
            return JSONResponse({"state": "not ready"}, 503)
        return JSONResponse({"state": "ready"})

    return app


def _description(app: FastAPI) -> dict[str, Any]:
    """Return the description of the API, with every registered kind of question."""
    if app.openapi_schema is None:
        made = FastAPI.openapi(app)
        made["components"]["schemas"] |= question_schemas()
    return FastAPI.openapi(app)
