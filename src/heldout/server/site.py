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
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.datastructures import FormData

from heldout.doors import as_json
from heldout.drawing.page import environment
from heldout.drawing.words import decimal
from heldout.kernel import Loss
from heldout.server.accounts import LIVES, Person, of_token
from heldout.server.evaluations import web_secret
from heldout.server.gate import FACTOR_FIRST, Unknown, cookie_name, counted, service_of
from heldout.server.service import Forbidden, Missing, Service, kilobytes, moment
from heldout.server.storage import Json

if TYPE_CHECKING:
    from jinja2 import Environment

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
    "administrator": (("/", "People"), ("/operations", "Server")),
}  # fmt: skip
BEFORE_FACTOR: Final = frozenset(
    {"/account", "/account/password", "/account/factor", "/account/factor/confirm", "/sign-out",
     "/oidc/connect"}
)  # fmt: skip
"""Where somebody may go whose role needs a second factor, before they have one."""
DONE: Final = {
    "granted": "The allowance is granted.",
    "changed": "The allowance is changed.",
    "revoked": "The allowance is revoked. Whatever waited is refused, and charged nothing.",
    "raised": "The budget is raised.",
    "closed": "The data set is closed.",
    "published": "Sent. Once the rows are drawn, all analysts can download them.",
    "requested": "Sent. The custodian sees your request beside the allowances.",
    "declined": "The request is set aside. The allowance stays as it is.",
    "renamed": "The model is renamed. Answers that were signed before keep the name of then.",
    "registered": "Sent. A worker checks the rows against what you declared.",
    "password": "The password is set. All other sessions and all tokens of yours have ended.",
    "token": "The token is revoked, and every one that was made by it.",
    "known": "You sent this very file before: it is stored and scored once.",
    "factor": "The second factor is removed.",
    "reset": "The second factor is removed, and all sessions and tokens of this person ended.",
    "disconnected": "This person no longer signs in through the provider. Make a link for them.",
    "deleted": "The model is deleted. Answers about it stay.",
    "disabled": "This person can no longer sign in.",
}
"""Sentences that a page shows after something was done, by the word in its address."""


# --- who is looking ------------------------------------------------------------------------------


def keep(
    request: Request,
    answer: Response,
    name: str,
    value: str,
    seconds: int,
    *,
    from_elsewhere: bool = False,
) -> None:
    """Set a cookie that no script reads and no other site sends, unless a link from there may."""
    service = service_of(request)
    answer.set_cookie(
        cookie_name(service.settings, name),
        value,
        max_age=seconds,
        path="/",
        secure=service.settings.secure,
        httponly=True,
        samesite="lax" if from_elsewhere else "strict",
    )


def remembered(request: Request, name: str) -> str:
    """Return a cookie of ours; empty if there is none."""
    return request.cookies.get(cookie_name(service_of(request).settings, name), "")


def forget(request: Request, answer: Response, name: str) -> None:
    """Let the browser forget a cookie."""
    keep(request, answer, name, "", 0)


def leave(request: Request, answer: Response) -> None:
    """Let the browser forget its session."""
    forget(request, answer, "heldout")


def visitor(request: Request) -> Person | None:
    """Return the owner of the browser's session, or None."""
    if not hasattr(request.state, "person"):
        service = service_of(request)
        secret = remembered(request, "heldout")
        owner = None if not secret else of_token(service, secret, kind="browser")
        request.state.person = None if owner is None else counted(request, owner)
    person = request.state.person
    assert person is None or isinstance(person, Person)
    return person


def signed_in(request: Request) -> Person:
    person = visitor(request)
    if person is None:
        raise Unknown("Sign in first.")
    if person.lacks_factor and request.url.path not in BEFORE_FACTOR:
        raise Forbidden(FACTOR_FIRST)
    return person


Signed = Annotated[Person, Depends(signed_in)]


def _form_token(service: Service, anchor: str) -> str:
    return hmac.new(web_secret(service).encode(), f"form {anchor}".encode(), "sha256").hexdigest()


def _anchor(request: Request, person: Person | None) -> str:
    """Return what a form's token is made of: the session, or before it a cookie of its own."""
    if person is not None:
        return person.token
    return remembered(request, "visit")


@dataclass(frozen=True)
class Sent:
    """A form that came from a page of ours."""

    person: Person
    form: FormData

    def text(self, name: str, default: str = "") -> str:
        value = self.form.get(name, default)
        return value.strip() if isinstance(value, str) else default

    def lines(self, name: str) -> list[str]:
        """Return the entries of a text: by lines and commas."""
        entries = self.text(name).replace("\n", ",").split(",")
        return [entry.strip() for entry in entries if entry.strip()]


MOST_FIELDS: Final = 5000
"""Of one form: the one with a table of columns has a few for every column."""


async def _checked(request: Request, person: Person | None) -> FormData:
    """Return the form of a request, if it was sent by a page of ours to this very visitor."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("This form was sent by another site.")
    form = await request.form(max_files=1, max_fields=MOST_FIELDS)
    token, anchor = form.get("form_token"), _anchor(request, person)
    right = _form_token(service_of(request), anchor).encode()
    given = token.encode() if isinstance(token, str) else b""
    if not anchor or not hmac.compare_digest(given, right):
        raise Forbidden("This form is too old. Load the page again, then send it again.")
    return form


async def sent(request: Request, person: Signed) -> Sent:
    return Sent(person, await _checked(request, person))


async def anonymous(request: Request) -> FormData:
    """Return a form from a page before signing in."""
    return await _checked(request, visitor(request))


Posted = Annotated[Sent, Depends(sent)]


def _custodian(posted: Posted) -> Sent:
    posted.person.must_be("custodian", scope="manage")
    return posted


Order = Annotated[Sent, Depends(_custodian)]


# --- how pages say amounts, times, sizes and states ----------------------------------------------


def price(amount: Loss | Mapping[str, str]) -> str:
    """Return an amount of privacy as people read it, from JSON or from a loss."""
    return str(Loss.from_dict(amount) if isinstance(amount, Mapping) else amount)


def _number(amount: Mapping[str, str]) -> Fraction:
    loss = Loss.from_dict(amount)
    number = loss.rho if loss.epsilon is None else loss.epsilon
    assert number is not None
    return number


def allowance(standing: Mapping[str, Json], more: Fraction | None = None) -> Json:
    """Return a bar: what is spent, what a purchase would take and what is left, as shares.

    >>> bar = allowance({name: {"epsilon": number, "delta": "0"} for name, number in
    ...                  {"budget": "4", "spent": "1", "remaining": "2"}.items()}, Fraction(1))
    >>> bar["spent_share"], bar["more_share"], bar["left"], bar["after"], bar["limited"]
    (25.0, 25.0, 'epsilon 2', 'epsilon 1', True)
    """
    budget, spent, left = (_number(standing[name]) for name in ("budget", "spent", "remaining"))
    plain = "epsilon" in standing["remaining"]
    after = None
    if more is not None and plain and more <= left:
        after = f"epsilon {decimal(left - more)}"
    taken = min(spent / budget, Fraction(1))
    wanted = Fraction(0) if more is None or not plain else min(more / budget, 1 - taken)
    return {
        "budget": price(standing["budget"]),
        "spent": price(standing["spent"]),
        "left": price(standing["remaining"]),
        "after": after,
        "spent_share": round(100 * float(taken), 2),
        "more_share": round(100 * float(wanted), 2),
        "limited": left < budget - spent,
    }


def date_input(time: float | None) -> str:
    """Return a day as a form has it."""
    return "" if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d")


def clock(moment: float) -> str:
    """Return the time of day.

    >>> clock(3661)
    '01:01:01'
    """
    return datetime.fromtimestamp(moment, UTC).strftime("%H:%M:%S")


def state_words(state: str) -> str:
    return {"checking": "being checked"}.get(state, state)


# --- pages ---------------------------------------------------------------------------------------


LINK: Final = re.compile(r"""((?:href|src|action|formaction|hx-[a-z]+)=")/""")


@cache
def _templates(root: str) -> "Environment":
    """Return the pages' templates; every link of theirs begins with the server's sub-path."""
    from jinja2 import ChoiceLoader, PackageLoader
    from jinja2.ext import Extension

    class SubPath(Extension):
        """Puts the sub-path before each link that a template writes."""

        def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
            return LINK.sub(r"\1{{ root }}/", source)

    loaders = [PackageLoader("heldout.server", "pages"), PackageLoader("heldout.drawing")]
    templates = environment(ChoiceLoader(loaders))
    templates.add_extension(SubPath)
    templates.globals["root"] = root
    for function in (allowance, clock, date_input, decimal, kilobytes, moment, price, state_words):
        templates.globals[function.__name__] = function
    templates.globals["static"] = {name: root + at for name, at in _static_names().items()}
    templates.filters["decimal"] = decimal
    return templates


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
    wrong: str | None = None,
    **content: Any,
) -> HTMLResponse:
    """Return a template as an answer, with what every page shows, and what went wrong."""
    who = person or visitor(request)
    anchor, fresh = _anchor(request, who), False
    if not anchor:
        anchor, fresh = secrets.token_urlsafe(16), True
    text = (
        _templates(service_of(request).settings.root)
        .get_template(template)
        .render(
            {
                "person": who,
                "here": request.url.path,
                "navigation": NAVIGATION[who.role] if who else (),
                "form_token": _form_token(service_of(request), anchor),
                "done": DONE.get(request.query_params.get("done", "")),
                "year": datetime.now(UTC).year,
            }
            | content
            | {"wrong": as_json(wrong) if wrong else None}
        )
    )
    answer = HTMLResponse(text, status, dict(headers or {}))
    if fresh:
        keep(request, answer, "visit", anchor, LIVES["browser"])
    return answer


def redirect(address: str) -> RedirectResponse:
    return RedirectResponse(address, 303)


def static(name: str) -> FileResponse:
    if name not in STATIC:
        raise Missing("There is no such page.")
    path, kind = STATIC[name]
    return FileResponse(path, media_type=kind, headers={"Cache-Control": "public, max-age=86400"})


TITLES: Final = {401: "Sign in first", 402: "Not enough allowance", 403: "Not for you",
                 404: "Not found", 408: "Too slow", 413: "Too large", 421: "Wrong address",
                 429: "Too many requests", 500: "Something went wrong", 503: "Busy"}  # fmt: skip


def wrong(request: Request, status: int, words: str) -> Response:
    """Return what went wrong, as a page; whoever is not signed in is asked to."""
    if "hx-request" in request.headers:  # a part of a page: all of it says what is wrong
        return Response(status_code=204, headers={"HX-Refresh": "true"})
    if status == 401:
        # No browser sends the session along a link from elsewhere; the page itself then asks again.
        if request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site":
            return page(request, "again.html")
        then = request.url.path if request.method == "GET" else "/"
        return redirect("/sign-in" + ("" if then == "/" else f"?next={quote(then)}"))
    first = words == FACTOR_FIRST
    title = "One step first" if first else TITLES.get(status, "That did not work")
    return page(request, "wrong.html", status=status, title=title, words=words, account_first=first)


def stopped(status: int, words: str, *, root: str = "") -> HTMLResponse:
    """Return what went wrong before anybody was asked for, as a page that needs no database."""
    nobody = {"person": None, "navigation": (), "here": "", "done": None, "wrong": None}
    content = nobody | {"title": TITLES[status], "words": words, "year": datetime.now(UTC).year}
    return HTMLResponse(_templates(root).get_template("wrong.html").render(content), status)


def inside(address: str) -> str:
    """Return a page of ours to go on to: a path, and nothing that leads to another host.

    >>> inside("/evaluations/3"), inside("//elsewhere.example"), inside("https://elsewhere.example")
    ('/evaluations/3', '/', '/')
    """
    return address if re.fullmatch(r"/(?!/)[A-Za-z0-9._~%/-]*", address) else "/"
