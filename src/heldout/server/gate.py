"""The way of every request: limits, headers, errors in words, and who is asking."""

import asyncio
import contextlib
import math
import re
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Header, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from sqlalchemy.exc import DataError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.types import ASGIApp

from heldout.arguments import shown
from heldout.doors import as_json
from heldout.errors import (
    AccountClosed,
    BudgetExceeded,
    BudgetMismatch,
    HeldoutError,
    LedgerTampered,
)
from heldout.server.accounts import Person, of_token
from heldout.server.provider import ProviderAway
from heldout.server.service import (
    Busy,
    Conflict,
    Forbidden,
    Missing,
    Service,
    TooLarge,
    TooMany,
    TooSlow,
    address_of,
    print_line,
)
from heldout.server.settings import Settings
from heldout.server.storage import Json

Message = MutableMapping[str, Any]
Scope = Message
Headers = Mapping[str, str] | None
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Misdirected(HeldoutError):
    """A request for another host."""


STATUS: Final[tuple[tuple[type[HeldoutError], int], ...]] = (
    (BudgetExceeded, 402),
    (Forbidden, 403),
    (AccountClosed, 403),
    (Missing, 404),
    (TooSlow, 408),
    (Conflict, 409),
    (BudgetMismatch, 409),
    (TooLarge, 413),
    (Misdirected, 421),
    (Busy, 503),
    (TooMany, 429),
    (LedgerTampered, 503),
    (ProviderAway, 502),
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
SHORTEST, LONGEST = 0.01, 0.25
"""Seconds between two looks of a request that waits."""
LINGER_BYTES: Final = 64 * 2**20
LINGER_SECONDS: Final = 10.0
"""Limits on how much more of a refused request is read, and for how long."""
UPLOADS: Final = frozenset(
    {("PUT", "/api/v1/artifacts"), ("POST", "/artifacts"), ("POST", "/register/upload")}
)
"""The routes whose body is an artefact, or rows: these and no others, so that a path that merely
looks like one of them takes no more than any other."""
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
QUIET: Final = frozenset({"/health", "/ready", "/metrics", "/static/{name}"})
"""Routes that are left out of the access log: machines ask them all the time."""
FACTOR_FIRST: Final = (
    "Your role needs a second factor. Set it up on the page of your account, under your name."
)
INSIDE: Final = "Something went wrong inside the server. Whoever runs it finds it in the log."


KEY: Final = "Idempotency-Key"
KEYLESS: Final = (
    f"Send the header {KEY} with a name of your choice for this request, such as table-2. The same "
    "name is never charged twice, however often you send it."
)


class Unknown(HeldoutError):
    """Nobody knows who is asking."""


def status_of(error: HeldoutError) -> int:
    if isinstance(error, Unknown):
        return 401
    for kind, status in STATUS:
        if isinstance(error, kind):
            return status
    return 422


def problem(error: Exception) -> JSONResponse:
    """Return an error of any kind as JSON: what it is, and what is wrong in words (RFC 9457)."""
    if isinstance(error, HeldoutError):
        status = status_of(error)
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
        if isinstance(error, TooMany):
            headers["Retry-After"] = str(error.seconds)
        return refusal(type(error).__name__, status, as_json(str(error)), headers)
    if isinstance(error, AnyHTTPException):
        return refusal("HttpError", error.status_code, error.detail, error.headers)
    words = "A text holds a character that no database keeps: a NUL, or half of one."
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][1:]))
        words = f"{where or 'The request'}: {first['msg']}."
        if where == KEY and first["type"] == "missing":
            words = KEYLESS
    return refusal("RequestError", 422, words)


def refusal(kind: str, status: int, words: str, headers: Headers = None) -> JSONResponse:
    """Return what went wrong as JSON (RFC 9457)."""
    content = {"type": kind, "status": status, "detail": words}
    return JSONResponse(content, status, headers, media_type="application/problem+json")


ANSWERED: Final = (
    *(HeldoutError, AnyHTTPException, RequestValidationError),
    *(UnicodeEncodeError, DataError),
)
"""Errors that are answered in words; any other one is the server's own fault."""


class Gate:
    """Middleware: sizes, rates and headers, for every path alike."""

    def __init__(
        self, app: ASGIApp, *, service: Service, page: Callable[[int, str], Response]
    ) -> None:
        self._app, self._settings, self._page = app, service.settings, page
        self._hosts, self._rates = service.settings.known_hosts, service.rates
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        root = self._settings.root
        scope = _without(scope, root)

        begun = False

        body = Incoming(receive, headers)

        async def decorated(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                if message["status"] >= 400:
                    await body.linger()
                begun = True
                self._note(scope, message["status"])
                present = {name.lower() for name, _ in message["headers"]}
                own = [header for header in HEADERS if header[0] not in present]
                if b"cache-control" not in present:
                    own.append((b"cache-control", b"no-store"))
                if self._settings.secure:
                    own.append((b"strict-transport-security", b"max-age=63072000"))
                message["headers"] = [*_under(message["headers"], root), *own]
            await send(message)

        refused = self._refused(headers, scope)
        if refused is not None:
            await self._shown(scope, problem(refused), str(refused))(scope, receive, decorated)
            return
        most, seconds = self._settings.most_body, self._settings.body_seconds
        if _streams(scope):  # a form has the file and little else; the API counts its file itself
            most, seconds = self._settings.most_upload + most, self._settings.upload_seconds
        body.bound(most, seconds)
        try:
            await self._app(scope, body.receive, decorated)
        except Exception as error:
            if begun:
                raise
            # Where it happened, and of which kind; its words may hold anything.
            frames = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in _frames(error)]
            print_line("error", kind=type(error).__name__, at=frames, route=_route(scope))
            await self._shown(scope, refusal("InternalError", 500, INSIDE), INSIDE)(
                scope, receive, decorated
            )

    def _note(self, scope: Scope, status: int) -> None:
        """Count a request, and print it for whoever runs the server; not how long it took."""
        route, method = _route(scope), str(scope["method"])
        if self._settings.metrics_token is not None:
            self._service.figures.count(method if method in METHODS else "other", route, status)
        if self._settings.access_log and route not in QUIET:
            who = scope.get("state", {}).get("who")
            facts = {"method": method, "route": route, "status": status, "person": who}
            print_line("request", **facts, address=address_of(scope))

    def _shown(self, scope: Scope, answer: Response, words: str) -> Response:
        """Return the API's answer as it is, and anybody else's as a page."""
        if scope["path"].startswith("/api/"):
            return answer
        page = self._page(answer.status_code, words)
        if "retry-after" in answer.headers:
            page.headers["retry-after"] = answer.headers["retry-after"]
        return page

    def _refused(self, headers: dict[bytes, bytes], scope: Scope) -> HeldoutError | None:
        """Why a request goes no further, if it does not."""
        host = _host(headers.get(b"host", b""))
        if host not in self._hosts:
            return Misdirected(
                f"This server does not answer to the name {shown(host)}. Use the address that its "
                "administrator gave you. (Whoever runs it: heldout serve --address, or --hosts.)"
            )
        try:
            self._count(headers, scope)
        except TooMany as error:
            return error
        return None

    def _count(self, headers: dict[bytes, bytes], scope: Scope) -> None:
        """Refuse whoever asks more often than is allowed.

        Who asks is first of all where they ask from: credentials may be made up. Every credential
        that a request shows counts, as it is read, whatever else stands in the header; whoever it
        belongs to is counted once that is known (`counted`).
        """
        address = address_of(scope)
        most = self._settings.requests_per_minute
        self._rates.take(f"at {address}", ADDRESS_SHARE * most)
        first = scope["path"].split("/")[1:2]
        if first == ["oidc"] or (scope["method"] == "POST" and first == ["sign-in"]):
            self._rates.take(f"sign in at {address}", self._settings.sign_ins_per_minute)
        request = Request(scope)
        for secret in (bearer(request), request.cookies.get(cookie_name(self._settings))):
            if secret:
                self._rates.take(f"token {hash(secret)}", most)


def _without(scope: Scope, root: str) -> Scope:
    """Return a request without the sub-path, if the proxy leaves it in."""
    if not root or not f"{scope['path']}/".startswith(f"{root}/"):
        return scope
    raw = scope.get("raw_path") or b""
    rest = {"path": scope["path"].removeprefix(root) or "/"}
    rest["raw_path"] = raw.removeprefix(root.encode()) or b"/"
    return {**scope, **rest}


def _under(headers: Sequence[tuple[bytes, bytes]], root: str) -> list[tuple[bytes, bytes]]:
    """Return an answer's headers, with the sub-path before where it leads on to."""
    return [
        (
            name,
            root.encode() + value if name.lower() == b"location" and value[:1] == b"/" else value,
        )
        for name, value in headers
    ]


def _frames(error: Exception) -> list[traceback.FrameSummary]:
    return traceback.extract_tb(error.__traceback__)[-4:]


def _route(scope: Scope) -> str:
    """Return the route as it was written: what was filled in may be a secret."""
    return str(getattr(scope.get("route"), "path", "?"))


def _streams(scope: Scope) -> bool:
    """Return whether the body is an artefact, which has a limit of its own."""
    return (scope["method"], scope["path"]) in UPLOADS


def _host(header: bytes) -> str:
    """Return the name in a Host header, without its port.

    >>> _host(b"Evaluate.example.org:8000"), _host(b"[::1]:8000"), _host(b"a@b"), _host(b"")
    ('evaluate.example.org', '::1', '', '')
    """
    match = re.fullmatch(
        r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d+)?", header.decode("latin-1").lower()
    )
    return "" if match is None else match[1] or match[2]


class Incoming:
    """The body of a request: so many bytes at most, which come in time.

    Whoever is refused may still be sending. If the server hung up then, a proxy would report that
    instead of the refusal; so it reads on for a while, and keeps nothing.
    """

    def __init__(self, receive: Receive, headers: dict[bytes, bytes]) -> None:
        self._receive, self._headers = receive, headers
        length = headers.get(b"content-length", b"0")
        self._length = int(length[:20]) if length.isdigit() else 0
        self._seen, self._whole = 0, not self._length and b"transfer-encoding" not in headers
        self._most, self._seconds, self._end = math.inf, 0.0, math.inf

    def bound(self, most: int, seconds: float) -> None:
        """Say how long the body may be, and how long it may take."""
        self._most, self._seconds, self._end = most, seconds, time.monotonic() + seconds

    async def receive(self) -> Message:
        """Return the next piece, or refuse it."""
        try:  # once all of it is there, the wait is for the end of the connection
            async with asyncio.timeout(None if self._whole else self._end - time.monotonic()):
                message = await self._next()
        except TimeoutError:
            words = (
                f"The request took more than {self._seconds:g} seconds to arrive. Send it again."
            )
            raise HTTPException(408, words) from None
        if max(self._seen, self._length) > self._most:
            raise HTTPException(413, f"A request must have at most {self._most // 1024} kB.")
        return message

    async def _next(self) -> Message:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        return message

    async def linger(self) -> None:
        """Read on for a while before a refusal is sent, unless the sender waits to be let in."""
        most = self._seen + LINGER_BYTES
        if self._length > most or b"expect" in self._headers:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._whole and self._seen <= most:
                    await self._next()


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def announced(request: Request) -> int | None:
    """Return how many bytes a request says that it has."""
    length = request.headers.get("content-length", "")
    return int(length[:20]) if length.isascii() and length.isdigit() else None


def cookie_name(settings: Settings, name: str = "heldout") -> str:
    """Return what a cookie of ours is called; without a name, the one of a browser's session."""
    return f"__Host-{name}" if settings.secure else name


def bearer(request: Request) -> str:
    """Return the secret of an Authorization header; empty if there is none."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def counted(request: Request, person: Person) -> Person:
    """Count a request towards what its person may ask, with whichever of their tokens."""
    service = service_of(request)
    request.state.who = person.name
    service.rates.take(f"person {person.name}", service.settings.requests_per_minute)
    return person


def caller(request: Request) -> Person:
    """Return who asks the API: the owner of a bearer token."""
    secret = bearer(request)
    if not secret:
        raise Unknown("Send a token: Authorization: Bearer TOKEN.")
    person = of_token(service_of(request), secret, kind="api")
    if person is None:
        raise Unknown("This token is unknown, expired or revoked. Make another one.")
    if person.lacks_factor:
        raise Forbidden(FACTOR_FIRST)
    return counted(request, person)


Serving = Annotated[Service, Depends(service_of)]
Caller = Annotated[Person, Depends(caller)]


# --- the API -------------------------------------------------------------------------------------


class Problem(BaseModel):
    """Says what went wrong, in words."""

    type: str
    status: int
    detail: str


PROBLEMS: dict[int | str, Json] = {
    status: {
        "description": words,
        "content": {"application/problem+json": {"schema": Problem.model_json_schema()}},
    }
    for status, words in {
        400: "The request cannot be read.",
        401: "No token, or one that opens nothing.",
        402: "It costs more than is left. Nothing was charged.",
        403: "Not for this role, scope or share.",
        404: "No such thing that the caller may see.",
        405: "No such method here.",
        408: "The request took too long to arrive.",
        409: "It does not fit the state that things are in.",
        413: "More bytes than are taken.",
        421: "Addressed to a name that this server does not answer to.",
        422: "An argument breaks its rule.",
        429: "Too many requests, waiting jobs or processor seconds; Retry-After says when.",
        503: "The ledger cannot be trusted; nothing is booked.",
    }.items()
}
Wait = Annotated[str | None, Header(alias="Prefer", pattern=r"^wait=\d{1,3}$")]
Key = Annotated[str, Header(alias=KEY, min_length=1, max_length=199)]
Amount = str | int | float | dict[str, str]
T = TypeVar("T")


class Body(BaseModel):
    """A request's JSON: fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid")


async def after_wait(
    look: Callable[[], T], is_over: Callable[[T], bool], prefer: str | None, usual: float = 0
) -> T:
    """Return what `look` finds once it is over, or once the time to wait is; no thread waits."""
    asked = re.fullmatch(r"wait=(\d{1,3})", prefer or "")
    seconds = usual if asked is None else min(float(asked[1]), 30.0)
    end, pause = time.monotonic() + seconds, SHORTEST
    while True:
        seen = await run_in_threadpool(look)
        if is_over(seen) or time.monotonic() >= end:
            return seen
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST)
