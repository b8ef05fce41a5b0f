"""What every request passes: limits, headers, errors in words, and who is asking."""

import re
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import DataError
from starlette.exceptions import HTTPException

from heldout.arguments import shown
from heldout.errors import (
    AccountClosed,
    BudgetExceeded,
    BudgetMismatch,
    HeldoutError,
    LedgerTampered,
)
from heldout.server.accounts import Person, of_token
from heldout.server.limits import address_of
from heldout.server.logs import told
from heldout.server.service import Busy, Conflict, Forbidden, Missing, Service, TooLarge, TooMany

__all__ = ["Anyone", "Caller", "Gate", "Unknown", "problem", "status_of"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Misdirected(HeldoutError):
    """A request for another host."""


STATUS: Final[tuple[tuple[type[HeldoutError], int], ...]] = (
    (BudgetExceeded, 402),
    (Forbidden, 403),
    (AccountClosed, 403),
    (Missing, 404),
    (Conflict, 409),
    (BudgetMismatch, 409),
    (TooLarge, 413),
    (Misdirected, 421),
    (Busy, 503),
    (TooMany, 429),
    (LedgerTampered, 503),
)
HEADERS: Final = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; "
        b"img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
        b"base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
REPORT_POLICY: Final = (
    b"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'; sandbox"
)
"""Of a report, which is one file with its own style and no script that runs."""


ADDRESS_SHARE: Final = 10
UPLOADS: Final = frozenset({("PUT", "/api/v1/artifacts"), ("POST", "/artifacts")})
"""The routes whose body is an artefact: these and no others, so that a path that merely looks like
one of them takes no more than any other."""
MOST_BUCKETS: Final = 50_000
INSIDE: Final = "Something went wrong inside the server. Whoever runs it finds it in the log."


class Unknown(HeldoutError):
    """Nobody knows who is asking."""


def status_of(error: HeldoutError) -> int:
    if isinstance(error, Unknown):
        return 401
    for kind, status in STATUS:
        if isinstance(error, kind):
            return status
    return 422


def problem(error: HeldoutError) -> JSONResponse:
    """An error as JSON: its kind, and what is wrong in words (RFC 9457)."""
    status = status_of(error)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if isinstance(error, TooMany):
        headers["Retry-After"] = str(error.seconds)
    content = {"type": type(error).__name__, "status": status, "detail": str(error)}
    return JSONResponse(content, status, headers, media_type="application/problem+json")


def install(app: FastAPI) -> None:
    """Errors of every kind become words."""

    @app.exception_handler(HeldoutError)
    def _ours(_: Request, error: HeldoutError) -> Response:
        return problem(error)

    @app.exception_handler(RequestValidationError)
    def _form(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(each) for each in first["loc"][1:])
        words = f"{where or 'The request'}: {first['msg']}."
        content = {"type": "RequestError", "status": 422, "detail": words}
        return JSONResponse(content, 422, media_type="application/problem+json")

    @app.exception_handler(UnicodeEncodeError)
    @app.exception_handler(DataError)
    def _text(_: Request, error: Exception) -> Response:
        words = "A text holds a character that no database keeps: a NUL, or half of one."
        content = {"type": "RequestError", "status": 422, "detail": words}
        return JSONResponse(content, 422, media_type="application/problem+json")

    @app.exception_handler(HTTPException)
    def _http(_: Request, error: HTTPException) -> Response:
        content = {"type": "HttpError", "status": error.status_code, "detail": error.detail}
        return JSONResponse(
            content, error.status_code, error.headers, media_type="application/problem+json"
        )


class Gate:
    """Middleware: sizes, rates and headers, for every path alike."""

    def __init__(self, app: Any, *, service: Service, page: Callable[[int, str], Response]) -> None:
        self._app, self._settings, self._page = app, service.settings, page
        self._hosts = service.settings.known_hosts
        self._buckets: dict[str, tuple[float, float]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}

        begun = False

        async def decorated(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                present = {name.lower() for name, _ in message["headers"]}
                own = [each for each in HEADERS if each[0] not in present]
                if b"cache-control" not in present:
                    own.append((b"cache-control", b"no-store"))
                if self._settings.secure:
                    own.append((b"strict-transport-security", b"max-age=63072000"))
                message["headers"] = [*message["headers"], *own]
            await send(message)

        refused = self._refused(headers, scope)
        if refused is not None:
            await self._told(scope, problem(refused), str(refused))(scope, receive, decorated)
            return
        most = self._settings.most_body
        if _streams(scope):  # a form has the file and little else
            most = self._settings.most_upload + most
        if scope["method"] != "PUT" or not _streams(scope):  # the API's file is counted as it comes
            receive = _bounded(receive, headers, most)
        try:
            await self._app(scope, receive, decorated)
        except Exception as error:
            if begun:
                raise
            # Where it happened, and of which kind; its words may hold anything.
            frames = [f"{Path(each.filename).name}:{each.lineno}" for each in _frames(error)]
            told("error", kind=type(error).__name__, at=frames, route=_route(scope))
            await self._told(scope, _inside(), INSIDE)(scope, receive, decorated)

    def _told(self, scope: Scope, answer: Response, words: str) -> Response:
        """The API's answer as it is, and anybody else's as a page."""
        if scope["path"].startswith("/api/"):
            return answer
        found = self._page(answer.status_code, words)
        if "retry-after" in answer.headers:
            found.headers["retry-after"] = answer.headers["retry-after"]
        return found

    def _refused(self, headers: dict[bytes, bytes], scope: Scope) -> HeldoutError | None:
        """Why a request goes no further, if it does not."""
        host = _host(headers.get(b"host", b""))
        if host not in self._hosts:
            return Misdirected(
                f"This server does not answer to the name {shown(host)}. Use the address that its "
                "administrator gave you. (Whoever runs it: start it with --address, or --hosts.)"
            )
        wait = self._wait(headers, scope)
        if wait is not None:
            return TooMany(f"Too many requests. Try again in {wait} seconds.", wait)
        return None

    def _wait(self, headers: dict[bytes, bytes], scope: Scope) -> int | None:
        """Seconds to wait, for whoever asks more often than is allowed.

        Who asks is first of all where they ask from: credentials may be made up.
        """
        address = address_of(scope)
        most = self._settings.requests_per_minute
        asked = [(f"at {address}", ADDRESS_SHARE * most)]
        if scope["method"] == "POST" and scope["path"].split("/")[1:2] == ["sign-in"]:
            asked.append((f"sign in at {address}", self._settings.sign_ins_per_minute))
        shown = headers.get(b"authorization") or headers.get(b"cookie")
        if shown is not None:
            asked.append((str(hash(shown)), most))
        for name, often in asked:
            if not self._taken(name, often):
                return 1 + int(60 / often)
        return None

    def _taken(self, name: str, most: int) -> bool:
        """Take one request out of a bucket that refills, if there is one."""
        then = time.monotonic()
        left, last = self._buckets.get(name, (float(most), then))
        left = min(left + (then - last) * most / 60, float(most)) - 1
        if len(self._buckets) > MOST_BUCKETS:  # those that have refilled say nothing
            recent = {each for each, (_, last) in self._buckets.items() if then - last < 60}
            self._buckets = {each: self._buckets[each] for each in recent}
        self._buckets[name] = (max(left, -1.0), then)
        return left >= 0


def _inside() -> Response:
    content = {"type": "InternalError", "status": 500, "detail": INSIDE}
    return JSONResponse(content, 500, media_type="application/problem+json")


def _frames(error: Exception) -> list[traceback.FrameSummary]:
    return traceback.extract_tb(error.__traceback__)[-4:]


def _route(scope: Scope) -> str:
    """The route as it was written: what was filled in may be a secret."""
    return str(getattr(scope.get("route"), "path", "?"))


def _streams(scope: Scope) -> bool:
    """Whether the body is an artefact, which has a limit of its own."""
    return (scope["method"], scope["path"]) in UPLOADS


def _host(header: bytes) -> str:
    """The name in a Host header, without its port.

    >>> _host(b"Evaluate.example.org:8000"), _host(b"[::1]:8000"), _host(b"a@b"), _host(b"")
    ('evaluate.example.org', '::1', '', '')
    """
    found = re.fullmatch(
        r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d+)?", header.decode("latin-1").lower()
    )
    return "" if found is None else found[1] or found[2]


def _bounded(receive: Receive, headers: dict[bytes, bytes], most: int) -> Receive:
    length = headers.get(b"content-length", b"0")
    seen = 0

    async def bounded() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most or (length.isdigit() and int(length) > most):
            raise HTTPException(413, f"A request must have at most {most // 1024} kB.")
        return message

    return bounded


def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


def caller(request: Request) -> Person:
    """Who asks the API: the owner of a bearer token."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secret:
        raise Unknown("Send a token: Authorization: Bearer TOKEN.")
    person = of_token(service_of(request), secret.strip(), kind="api")
    if person is None:
        raise Unknown("This token is unknown, expired or revoked. Make another one.")
    return person


Anyone = Annotated[Service, Depends(service_of)]
Caller = Annotated[Person, Depends(caller)]
