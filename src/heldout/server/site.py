"""The pages' own ground: who is looking, forms that nobody else can send, and how a page is made.

A browser session is a cookie that no script reads and no other site sends. Every form carries a
token that is made of the session, so that a form from elsewhere is refused.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from heldout.drawing.page import environment
from heldout.drawing.words import decimal
from heldout.errors import HeldoutError
from heldout.server import logs
from heldout.server.accounts import LIVES, Person, of_token
from heldout.server.gate import Unknown, counted, service_of, status_of
from heldout.server.quotes import secret_of
from heldout.server.service import Forbidden, Missing, Service, TooMany

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = [
    "Sent",
    "Signed",
    "anonymous",
    "inside",
    "install",
    "keep",
    "leave",
    "noted",
    "page",
    "redirect",
    "stopped",
]

HERE: Final = Path(__file__).parent
STATIC: Final = {
    "house.css": (HERE.parent / "drawing" / "templates" / "house.css", "text/css"),
    "site.css": (HERE / "static" / "site.css", "text/css"),
    "site.js": (HERE / "static" / "site.js", "text/javascript"),
    "htmx.min.js": (HERE / "static" / "htmx.min.js", "text/javascript"),
}
NAVIGATION: Final = {
    "analyst": (("/", "Data sets"), ("/artifacts", "Models"), ("/compare", "Compare"),
                ("/boards", "Boards")),
    "custodian": (("/", "Data sets"), ("/register", "Register"), ("/boards", "Boards"),
                  ("/ledger", "Ledger"), ("/log", "Log")),
    "auditor": (("/", "Data sets"), ("/ledger", "Ledger"), ("/log", "Log")),
    "administrator": (("/", "People"),),
}  # fmt: skip
DONE: Final = {
    "granted": "The allowance is granted.",
    "changed": "The allowance is changed.",
    "revoked": "The allowance is revoked. Whatever waited is refused, and charged nothing.",
    "raised": "The budget is raised.",
    "closed": "The data set is closed.",
    "registered": "Sent. A worker checks the rows against what you declared.",
    "password": "The password is set. All other sessions and all tokens of yours have ended.",
    "token": "The token is revoked, and every one that was made by it.",
    "deleted": "The model is deleted. Answers about it stay.",
    "disabled": "This person can no longer sign in.",
}
"""What a page says after something was done, by the word in its address."""


# --- who is looking ------------------------------------------------------------------------------


def _cookie(service: Service, name: str) -> str:
    return f"__Host-{name}" if service.settings.secure else name


def keep(request: Request, answer: Response, name: str, value: str, seconds: int) -> None:
    """A cookie that no script reads and no other site sends."""
    service = service_of(request)
    answer.set_cookie(
        _cookie(service, name),
        value,
        max_age=seconds,
        path="/",
        secure=service.settings.secure,
        httponly=True,
        samesite="strict",
    )


def leave(request: Request, answer: Response) -> None:
    """The browser forgets its session."""
    keep(request, answer, "heldout", "", 0)


def visitor(request: Request) -> Person | None:
    """The owner of the browser's session, or None."""
    if not hasattr(request.state, "person"):
        service = service_of(request)
        secret = request.cookies.get(_cookie(service, "heldout"))
        person = None if not secret else of_token(service, secret, kind="browser")
        request.state.person = None if person is None else counted(request, person)
    found: Person | None = request.state.person
    return found


def signed_in(request: Request) -> Person:
    person = visitor(request)
    if person is None:
        raise Unknown("Sign in first.")
    return person


Signed = Annotated[Person, Depends(signed_in)]


def _form_token(service: Service, anchor: str) -> str:
    return hmac.new(secret_of(service).encode(), f"form {anchor}".encode(), "sha256").hexdigest()


def _anchor(request: Request, person: Person | None) -> str:
    """What a form's token is made of: the session, or before it a cookie of its own."""
    if person is not None:
        return person.token
    return request.cookies.get(_cookie(service_of(request), "visit"), "")


@dataclass(frozen=True)
class Sent:
    """A form that came from a page of ours."""

    person: Person
    form: FormData

    def text(self, name: str, default: str = "") -> str:
        value = self.form.get(name, default)
        return value.strip() if isinstance(value, str) else default

    def lines(self, name: str) -> list[str]:
        """The entries of a text: by lines and commas."""
        found = self.text(name).replace("\n", ",").split(",")
        return [each.strip() for each in found if each.strip()]


async def _checked(request: Request, person: Person | None) -> FormData:
    """The form of a request, if it was sent by a page of ours to this very visitor."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("This form was sent by another site.")
    form = await request.form(max_files=1, max_fields=200)
    token, anchor = form.get("form_token"), _anchor(request, person)
    right = _form_token(service_of(request), anchor).encode()
    told = token.encode() if isinstance(token, str) else b""
    if not anchor or not hmac.compare_digest(told, right):
        raise Forbidden("This form is too old. Load the page again, then send it again.")
    return form


async def sent(request: Request, person: Signed) -> Sent:
    return Sent(person, await _checked(request, person))


async def anonymous(request: Request) -> FormData:
    """A form from a page before signing in."""
    return await _checked(request, visitor(request))


Posted = Annotated[Sent, Depends(sent)]


def noted(request: Request, person: str, action: str, subject: str, status: int = 200) -> None:
    """Keep it for the auditor."""
    logs.note(service_of(request), person=person, action=action, subject=subject, status=status)


# --- pages ---------------------------------------------------------------------------------------


@cache
def _templates() -> "Environment":
    from jinja2 import ChoiceLoader, PackageLoader

    from heldout.server import words

    loaders = [PackageLoader("heldout.server", "pages"), PackageLoader("heldout.drawing")]
    found = environment(ChoiceLoader(loaders))
    found.globals |= {name: getattr(words, name) for name in words.__all__}
    found.globals |= {"static": _static_names()}
    found.filters["told"] = decimal
    return found


@cache
def _static_names() -> dict[str, str]:
    """Addresses that change with the content, so that browsers may keep what they have."""
    return {
        name: f"/static/{name}?v={hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
        for name, (path, _) in STATIC.items()
    }


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    person: Person | None = None,
    **content: Any,
) -> HTMLResponse:
    """A template as an answer, with what every page shows."""
    who = person or visitor(request)
    anchor, fresh = _anchor(request, who), False
    if not anchor:
        anchor, fresh = secrets.token_urlsafe(16), True
    text = (
        _templates()
        .get_template(template)
        .render(
            {
                "person": who,
                "here": request.url.path,
                "navigation": NAVIGATION[who.role] if who else (),
                "form_token": _form_token(service_of(request), anchor),
                "done": DONE.get(request.query_params.get("done", "")),
                "wrong": None,
                "year": datetime.now(UTC).year,
            }
            | content
        )
    )
    answer = HTMLResponse(text, status, dict(headers or {}))
    if fresh:
        keep(request, answer, "visit", anchor, LIVES["browser"])
    return answer


def redirect(address: str) -> RedirectResponse:
    return RedirectResponse(address, 303)


def _static(name: str) -> FileResponse:
    if name not in STATIC:
        raise Missing("There is no such page.")
    path, kind = STATIC[name]
    return FileResponse(path, media_type=kind, headers={"Cache-Control": "public, max-age=86400"})


TITLES: Final = {401: "Sign in first", 402: "Not enough allowance", 403: "Not for you",
                 404: "Not found", 408: "Too slow", 413: "Too large", 421: "Wrong address",
                 429: "Too many requests", 500: "Something went wrong", 503: "Busy"}  # fmt: skip


def wrong(request: Request, status: int, words: str) -> Response:
    """What went wrong, as a page; whoever is not signed in is asked to."""
    if "hx-request" in request.headers:  # a part of a page: all of it says what is wrong
        return Response(status_code=204, headers={"HX-Refresh": "true"})
    if status == 401:
        # No browser sends the session along a link from elsewhere; the page itself then asks again.
        if request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site":
            return page(request, "again.html")
        then = request.url.path if request.method == "GET" else "/"
        return redirect("/sign-in" + ("" if then == "/" else f"?next={quote(then)}"))
    title = TITLES.get(status, "That did not work")
    return page(request, "wrong.html", status=status, title=title, words=words)


def stopped(status: int, words: str) -> HTMLResponse:
    """What went wrong before anybody was asked for, as a page that needs no database."""
    nobody = {"person": None, "navigation": (), "here": "", "done": None, "wrong": None}
    content = nobody | {"title": TITLES[status], "words": words, "year": datetime.now(UTC).year}
    return HTMLResponse(_templates().get_template("wrong.html").render(content), status)


def inside(address: str) -> str:
    """A page of ours to go on to: a path, and nothing that leads to another host.

    >>> inside("/evaluations/3"), inside("//elsewhere.example"), inside("https://elsewhere.example")
    ('/evaluations/3', '/', '/')
    """
    return address if re.fullmatch(r"/(?!/)[A-Za-z0-9._~%/-]*", address) else "/"


def install(app: FastAPI) -> None:
    """Add the pages to an application whose API is there already."""
    from heldout.server import (
        site_account,
        site_analyst,
        site_asking,
        site_boards,
        site_books,
        site_custodian,
        site_register,
    )

    routers: tuple[APIRouter, ...] = (
        site_account.router,
        site_analyst.router,
        site_asking.router,
        site_custodian.router,
        site_register.router,
        site_books.router,
        site_boards.router,
    )
    for each in routers:
        app.include_router(each, include_in_schema=False)
    app.add_api_route("/static/{name}", _static, include_in_schema=False)

    for kind in (HeldoutError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _pages_or(app.exception_handlers[kind]))


def _pages_or(api: Any) -> Any:
    """A handler that answers with a page, and leaves the API's errors to the API."""

    def handler(request: Request, error: Exception) -> Response:
        if request.url.path.startswith("/api/"):
            answer: Response = api(request, error)
            return answer
        if isinstance(error, HeldoutError):
            found = wrong(request, status_of(error), str(error))
            if isinstance(error, TooMany):
                found.headers["retry-after"] = str(error.seconds)
            return found
        if isinstance(error, HTTPException):
            words = "There is no such page." if error.status_code == 404 else str(error.detail)
            return wrong(request, error.status_code, words)
        return wrong(request, 422, "The address or the form is not as this page expects it.")

    return handler
