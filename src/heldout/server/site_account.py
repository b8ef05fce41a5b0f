"""Pages for everybody: signing in and out, home, password and tokens; and the administrator's."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from starlette.datastructures import FormData

from heldout.errors import ArgumentError, HeldoutError
from heldout.server import accounts, artifacts, datasets, evaluations
from heldout.server.gate import Anyone, status_of
from heldout.server.limits import address_of
from heldout.server.service import Forbidden, TooMany
from heldout.server.site import (
    Posted,
    Signed,
    anonymous,
    inside,
    keep,
    leave,
    noted,
    page,
    redirect,
)

__all__ = ["router"]

router = APIRouter()
Form = Annotated[FormData, Depends(anonymous)]
RECENT = 8
"""Evaluations that the home page lists."""


# --- in and out ----------------------------------------------------------------------------------


@router.get("/sign-in")
def sign_in_page(request: Request, next: str = "/") -> Response:
    """Name and password."""
    return page(request, "sign_in.html", name="", then=inside(next))


@router.post("/sign-in")
def sign_in(service: Anyone, request: Request, form: Form) -> Response:
    """Open a session, or say that name or password is wrong."""
    name, password = str(form.get("name", "")), str(form.get("password", ""))
    then = inside(str(form.get("next", "/")))
    try:
        secret = accounts.sign_in(
            service, name=name, password=password, address=address_of(request.scope)
        )
    except HeldoutError as error:
        noted(request, name, "sign in", "refused", status_of(error))
        words, status = str(error), status_of(error)
        headers = {"Retry-After": str(error.seconds)} if isinstance(error, TooMany) else {}
        shown: dict[str, Any] = {
            "status": status,
            "headers": headers,
            "name": name,
            "then": then,
            "wrong": words,
        }
        return page(request, "sign_in.html", **shown)
    return _opened(request, secret, name, then)


@router.get("/sign-in/{secret}")
def link_page(service: Anyone, request: Request, secret: str) -> Response:
    """A link is used up by the button, so that a preview of it does no harm."""
    link = accounts.of_token(service, secret, kind="link")
    if link is None:
        raise Forbidden("This link was used before, or is too old. Ask for another one.")
    return page(request, "sign_in_link.html", name=link.name)


@router.post("/sign-in/{secret}")
def sign_in_by_link(service: Anyone, request: Request, secret: str, form: Form) -> Response:
    """Use a link up."""
    opened = accounts.sign_in_by_link(service, secret)
    person = accounts.of_token(service, opened, kind="browser")
    return _opened(request, opened, "" if person is None else person.name)


def _opened(request: Request, secret: str, name: str, then: str = "/") -> Response:
    noted(request, name, "sign in", "browser")
    answer = redirect(then)
    keep(request, answer, "heldout", secret, accounts.LIVES["browser"])
    return answer


@router.post("/sign-out")
def sign_out(service: Anyone, request: Request, sent: Posted) -> Response:
    """The session opens nothing any more, here or anywhere."""
    accounts.revoke_token(service, sent.person, sent.person.token)
    noted(request, sent.person.name, "sign out", "browser")
    answer = redirect("/sign-in")
    leave(request, answer)
    return answer


# --- home ----------------------------------------------------------------------------------------


@router.get("/")
def home(service: Anyone, request: Request, person: Signed) -> Response:
    """What a person of this role begins with."""
    if person.role == "administrator":
        return _people(service, request)
    held = [_summary(service, person, each) for each in datasets.visible(service, person)]
    recent: list[Any] = []
    if person.role in ("analyst", "custodian"):
        rows = evaluations.history(service, person)[:RECENT]
        recent = [evaluations.public(service, row, answers=False) for row in rows]
    names = artifacts.names(service, [each["artifact"] for each in recent])
    return page(request, "home.html", held=held, recent=recent, names=names)


def _summary(service: Any, person: accounts.Person, held: datasets.Held) -> dict[str, Any]:
    """A data set as a list shows it; an allowance that has expired says so."""
    standing, why = None, ""
    if person.role == "analyst":
        try:
            standing = datasets.standing(service, datasets.share_of(service, person, held.name))
        except Forbidden as error:
            why = str(error)
    elif held.state in ("open", "closed"):
        standing = datasets.standing(service, held.name)
    return {"held": held, "standing": standing, "why": why}


# --- password and tokens -------------------------------------------------------------------------


@router.get("/account")
def account(service: Anyone, request: Request, person: Signed) -> Response:
    """Password and tokens."""
    return _account(service, request, person)


def _account(service: Any, request: Request, person: accounts.Person, **more: Any) -> Response:
    more = {"made": None, "tokens": accounts.list_tokens(service, person)} | more
    status = 422 if more.get("wrong") else 200
    return page(request, "account.html", status=status, scopes=accounts.SCOPES, **more)


@router.post("/account/password")
def set_password(service: Anyone, request: Request, sent: Posted) -> Response:
    """Set the password, typed twice."""
    password, again = (str(sent.form.get(each, "")) for each in ("password", "again"))
    try:
        if password != again:
            raise ArgumentError("The two passwords differ. Type the same one twice.")
        current = str(sent.form.get("current", ""))
        secret = accounts.change_password(service, sent.person, password, current=current)
    except (ArgumentError, Forbidden) as error:
        return _account(service, request, sent.person, wrong=str(error))
    noted(request, sent.person.name, "set password", sent.person.name)
    answer = redirect("/account?done=password")
    keep(request, answer, "heldout", secret, accounts.LIVES["browser"])
    return answer


@router.post("/account/tokens")
def make_token(service: Anyone, request: Request, sent: Posted) -> Response:
    """A token for programs; the page that answers shows its secret this once."""
    try:
        days = float(sent.text("days", "90"))
        scopes = [str(each) for each in sent.form.getlist("scopes")]
        made = accounts.make_token(
            service, sent.person, label=sent.text("label") or "token", scopes=scopes, days=days
        )
    except (HeldoutError, ValueError) as error:
        words = str(error) if isinstance(error, HeldoutError) else "days must be a number."
        return _account(service, request, sent.person, wrong=words)
    noted(request, sent.person.name, "make token", made["id"])
    return _account(service, request, sent.person, made=made)


@router.post("/account/tokens/{identity}/revoke")
def revoke_token(service: Anyone, request: Request, sent: Posted, identity: str) -> Response:
    """The token opens nothing from now on."""
    accounts.revoke_token(service, sent.person, identity)
    noted(request, sent.person.name, "revoke token", identity)
    return redirect("/account?done=token")


# --- the administrator ---------------------------------------------------------------------------


def _people(service: Any, request: Request, **more: Any) -> Response:
    everyone = accounts.everyone(service)
    more = {"link": None, "of": "", "name": ""} | more
    status = 422 if more.get("wrong") else 200
    return page(
        request, "people.html", status=status, everyone=everyone, roles=accounts.ROLES, **more
    )


@router.post("/people")
def add_person(service: Anyone, request: Request, sent: Posted) -> Response:
    """Somebody new; the page that answers shows their sign-in link."""
    sent.person.must_be("administrator", scope="manage")
    name = sent.text("name")
    try:
        secret = accounts.add_person(service, name=name, role=sent.text("role"))
    except HeldoutError as error:
        return _people(service, request, wrong=str(error), name=name)
    noted(request, sent.person.name, "add person", name)
    return _with_link(service, request, name, secret)


@router.post("/people/{name}/link")
def new_link(service: Anyone, request: Request, sent: Posted, name: str) -> Response:
    """Another sign-in link."""
    sent.person.must_be("administrator", scope="manage")
    secret = accounts.new_link(service, name)
    noted(request, sent.person.name, "make link", name)
    return _with_link(service, request, name, secret)


def _with_link(service: Any, request: Request, name: str, secret: str) -> Response:
    link = f"{service.settings.address}/sign-in/{secret}"
    return _people(service, request, link=link, of=name)


@router.post("/people/{name}/disable")
def disable(service: Anyone, request: Request, sent: Posted, name: str) -> Response:
    """Nothing of theirs opens any door from now on."""
    sent.person.must_be("administrator", scope="manage")
    accounts.disable(service, name, by=sent.person.name)
    noted(request, sent.person.name, "disable", name)
    return redirect("/?done=disabled")
