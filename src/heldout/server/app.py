"""The web application: the API and the pages over one service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.responses import JSONResponse

import heldout
from heldout.server import api_asking, api_boards, api_books, api_datasets, gate, site
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
        """The database answers and the ledger can be read."""
        try:
            with service.store.read() as connection:
                connection.execute(sa.select(sa.literal(1)))
            service.ledger.head()
        except Exception:
            return JSONResponse({"state": "not ready"}, 503)
        return JSONResponse({"state": "ready"})

    return app
