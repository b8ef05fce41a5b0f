"""People and their tokens: the API, and the pages for signing in, home, account, administrator."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import Field
from starlette.datastructures import FormData

from heldout.errors import ArgumentError, HeldoutError
from heldout.server import accounts, artifacts, datasets, evaluations, factors
from heldout.server.accounts import Person
from heldout.server.datasets import Registered
from heldout.server.evaluations import web_secret
from heldout.server.gate import PROBLEMS, Body, Caller, Serving, service_of, status_of
from heldout.server.provider import (
    CALLBACK,
    FLOW_SECONDS,
    Flow,
    Provider,
    provider_of,
)
from heldout.server.service import Conflict, Forbidden, Missing, Service, TooMany, address_of
from heldout.server.settings import ROLES
from heldout.server.site import (
    Posted,
    Signed,
    anonymous,
    forget,
    inside,
    keep,
    leave,
    page,
    redirect,
    remembered,
)
from heldout.server.storage import Json

api = APIRouter(prefix="/api/v1", responses=PROBLEMS)
pages = APIRouter()
Form = Annotated[FormData, Depends(anonymous)]
RECENT = 8
"""Evaluations that the home page lists."""


# --- the API -------------------------------------------------------------------------------------


class NewToken(Body):
    """A token for programs."""

    label: str = "token"
    scopes: list[str] = Field(default_factory=lambda: list(accounts.SCOPES))
    days: float | None = None


class NewPerson(Body):
    """Somebody who may sign in."""

    name: str
    role: str


@api.get("/me")
def me(person: Caller) -> Json:
    """Who the token's owner is."""
    return {"name": person.name, "role": person.role, "scopes": list(person.scopes)}


@api.post("/tokens", status_code=201)
def make_token(service: Serving, person: Caller, body: NewToken) -> Json:
    """A new token of the caller's own; its secret is shown this once."""
    return accounts.make_token(service, person, **body.model_dump())


@api.get("/tokens")
def list_tokens(service: Serving, person: Caller) -> list[Json]:
    """The caller's own tokens, without their secrets."""
    return accounts.list_tokens(service, person)


@api.delete("/tokens/{identity}", status_code=204)
def revoke_token(service: Serving, person: Caller, identity: str) -> None:
    """The token opens nothing from now on."""
    accounts.revoke_token(service, person, identity)


@api.get("/people")
def list_people(service: Serving, person: Caller) -> list[Json]:
    """Everybody; administrators, and custodians, who grant shares."""
    person.must_be("administrator", "custodian")
    everyone = accounts.everyone(service)
    if person.role == "custodian":
        return [{"name": one["name"]} for one in everyone if one["role"] == "analyst"]
    return everyone


@api.post("/people", status_code=201)
def add_person(service: Serving, person: Caller, body: NewPerson) -> Json:
    """A new person; the answer has the link by which they sign in first."""
    secret = accounts.add_person(service, **body.model_dump(), by=person)
    return {"name": body.name, "role": body.role, "link": f"/sign-in/{secret}"}


@api.post("/people/{name}/link", status_code=201)
def link(service: Serving, person: Caller, name: str) -> Json:
    """Another sign-in link; earlier ones open nothing any more."""
    secret = accounts.new_link(service, name, by=person)
    return {"name": name, "link": f"/sign-in/{secret}"}


@api.delete("/people/{name}", status_code=204)
def disable(service: Serving, person: Caller, name: str) -> None:
    """Nothing of this person's opens any door from now on."""
    accounts.disable(service, name, by=person)


@api.delete("/people/{name}/factor", status_code=204)
def reset_factor(service: Serving, person: Caller, name: str) -> None:
    """Take the second factor of somebody who lost it away; their sessions and tokens end."""
    accounts.clear_factor(service, name, by=person)


@api.delete("/people/{name}/provider", status_code=204)
def disconnect(service: Serving, person: Caller, name: str) -> None:
    """Let somebody no longer come through the institution's provider."""
    accounts.disconnect(service, name, by=person)


# --- in and out ----------------------------------------------------------------------------------


@pages.get("/sign-in")
def sign_in_page(request: Request, next: str = "/") -> Response:
    """Name, password, and code of a second factor."""
    return _sign_in_page(request, name="", then=inside(next))


def _sign_in_page(request: Request, **content: Any) -> Response:
    settings = service_of(request).settings
    title = settings.oidc_title if settings.oidc_issuer is not None else None
    return page(request, "sign_in.html", provider=title, **content)


@pages.post("/sign-in")
def sign_in(service: Serving, request: Request, form: Form) -> Response:
    """Open a session, or say that name or password is wrong."""
    name, password, code = (str(form.get(field, "")) for field in ("name", "password", "code"))
    then, address = inside(str(form.get("next", "/"))), address_of(request.scope)
    try:
        secret = accounts.sign_in(service, name=name, password=password, code=code, address=address)
    except HeldoutError as error:
        status = status_of(error)
        service.note(name, "sign in", "refused", status)
        headers = {"Retry-After": str(error.seconds)} if isinstance(error, TooMany) else {}
        typed: Json = {"name": name, "then": then, "wrong": str(error)}
        return _sign_in_page(request, status=status, headers=headers, **typed)
    return _signed_in(service, request, secret, name, then)


@pages.get("/sign-in/{secret}")
def link_page(service: Serving, request: Request, secret: str) -> Response:
    """A link is used up by the button, so that a preview of it does no harm."""
    link = accounts.of_token(service, secret, kind="link")
    if link is None:
        raise Forbidden("This link was used before, or is too old. Ask for another one.")
    return _link_page(service, request, link.name)


def _link_page(service: Service, request: Request, name: str, **more: Any) -> Response:
    needs_code = factors.codes_left(service, name) is not None
    return page(request, "sign_in_link.html", name=name, needs_code=needs_code, **more)


@pages.post("/sign-in/{secret}")
def sign_in_by_link(service: Serving, request: Request, secret: str, form: Form) -> Response:
    """Use a link up."""
    link = accounts.of_token(service, secret, kind="link")
    try:
        code = str(form.get("code", ""))
        session = accounts.sign_in_by_link(service, secret, code=code)
    except (Forbidden, TooMany) as error:
        if link is None:
            raise
        service.note(link.name, "sign in", "refused", status_of(error))
        typed = {"status": status_of(error), "wrong": str(error)}
        return _link_page(service, request, link.name, **typed)
    person = accounts.of_token(service, session, kind="browser")
    return _signed_in(service, request, session, "" if person is None else person.name)


def _signed_in(
    service: Service, request: Request, secret: str, name: str, then: str = "/"
) -> Response:
    service.note(name, "sign in", "browser")
    answer = redirect(then)
    keep(request, answer, "heldout", secret, accounts.LIVES["browser"])
    return answer


@pages.post("/sign-out")
def sign_out(service: Serving, request: Request, sent: Posted) -> Response:
    """The session opens nothing any more, here or anywhere."""
    accounts.revoke_token(service, sent.person, sent.person.token)
    answer = redirect("/sign-in")
    leave(request, answer)
    return answer


@pages.get("/")
def home(service: Serving, request: Request, person: Signed) -> Response:
    """Show what a person of this role begins with."""
    if person.role == "administrator":
        return _people(service, request)
    tiles = []
    for registered in datasets.visible(service, person):
        standing, why = datasets.allowance(service, person, registered)
        tiles.append({"dataset": registered, "standing": standing, "why": why})
    recent: list[Json] = []
    if person.role != "auditor":
        rows = evaluations.history(service, person)[:RECENT]
        recent = [evaluations.public(service, row) for row in rows]
    names = artifacts.names(service, [evaluation["artifact"] for evaluation in recent])
    coming = _next(service, person, datasets.visible(service, person), bool(recent))
    return page(request, "home.html", datasets=tiles, recent=recent, names=names, next=coming)


def _next(
    service: Service, person: Person, known: list[Registered], has_asked: bool
) -> Json | None:
    """Return what to do next, for somebody who has just begun; None for whoever is under way."""
    ready = [registered for registered in known if registered.state == "open"]
    if person.role == "analyst":
        return _next_of_analyst(service, person, ready, has_asked)
    if person.role != "custodian":
        return None if known else {"words": "No data set is registered yet.", "address": ""}
    if not known:
        words = "Register the rows of a test set. A worker reads them; analysts never do."
        return {"words": words, "address": "/register", "button": "Register a data set"}
    waiting = datasets.allowance_requests(service, [registered.name for registered in known])
    if waiting:
        first = waiting[0]
        words = f"{first['analyst']} asks for a larger allowance on {first['dataset']}."
        return {"words": words, "address": f"/datasets/{first['dataset']}", "button": "Look at it"}
    unused = [one for one in ready if not datasets.shares(service, one.name)]
    if unused:
        words = f"Nobody may ask {unused[0].name} yet. Grant an analyst an allowance."
        return {"words": words, "address": f"/datasets/{unused[0].name}", "button": "Grant one"}
    return None


def _next_of_analyst(
    service: Service, person: Person, ready: list[Registered], has_asked: bool
) -> Json | None:
    if not ready:
        words = "Nobody has granted you an allowance yet. Ask the custodian of the data for one; "
        return {"words": f"{words}you are known here as {person.name}.", "address": ""}
    if not artifacts.mine(service, person):
        words = f"Download the made-up twin of {ready[0].name}, try your code on it, and submit a "
        words += "model: it is checked at once, and that costs nothing."
        return {"words": words, "address": "/artifacts", "button": "Submit a model"}
    if not has_asked:
        words = f"Ask about your model on {ready[0].name}: tick a question and see its price."
        address = f"/datasets/{ready[0].name}/ask"
        return {"words": words, "address": address, "button": "Ask about a model"}
    return None


# --- password and tokens -------------------------------------------------------------------------


@pages.get("/account")
def account(service: Serving, request: Request, person: Signed) -> Response:
    """Password and tokens."""
    return _account(service, request, person)


def _account(service: Service, request: Request, person: Person, **more: Any) -> Response:
    settings = service.settings
    about: Json = {
        "made": None,
        "tokens": accounts.list_tokens(service, person),
        "scopes": accounts.SCOPES,
        "offer": None,
        "recovery": None,
        "codes_left": factors.codes_left(service, person.name),
        "provider": settings.oidc_title if settings.oidc_issuer is not None else None,
        "connected": accounts.is_connected(service, person.name),
    }
    status = 422 if more.get("wrong") else 200
    return page(request, "account.html", status=status, **about | more)


@pages.post("/account/factor")
def offer_factor(service: Serving, request: Request, sent: Posted) -> Response:
    """Show the secret for an app, this once."""
    try:
        offer = accounts.offer_factor(
            service, sent.person, password=str(sent.form.get("current", ""))
        )
    except (Forbidden, Conflict) as error:
        return _account(service, request, sent.person, wrong=str(error))
    return _account(service, request, sent.person, offer=offer)


@pages.post("/account/factor/confirm")
def confirm_factor(service: Serving, request: Request, sent: Posted) -> Response:
    """Let the app's codes count; the page that answers shows recovery codes this once."""
    try:
        codes = accounts.confirm_factor(service, sent.person, sent.text("code"))
    except (Forbidden, Conflict) as error:
        return _account(service, request, sent.person, wrong=f"{error} Nothing is set up yet.")
    return _account(service, request, sent.person, recovery=codes)


@pages.post("/account/factor/remove")
def remove_factor(service: Serving, request: Request, sent: Posted) -> Response:
    """Take one's own second factor away."""
    password = str(sent.form.get("current", ""))
    try:
        accounts.remove_factor(service, sent.person, password=password, code=sent.text("code"))
    except Forbidden as error:
        return _account(service, request, sent.person, wrong=str(error))
    return redirect("/account?done=factor")


@pages.post("/account/password")
def set_password(service: Serving, request: Request, sent: Posted) -> Response:
    """Set the password, typed twice."""
    password, again, current = (
        str(sent.form.get(name, "")) for name in ("password", "again", "current")
    )
    try:
        if password != again:
            raise ArgumentError("The two passwords differ. Type the same one twice.")
        secret = accounts.change_password(service, sent.person, password, current=current)
    except (ArgumentError, Forbidden) as error:
        return _account(service, request, sent.person, wrong=str(error))
    answer = redirect("/account?done=password")
    keep(request, answer, "heldout", secret, accounts.LIVES["browser"])
    return answer


@pages.post("/account/tokens")
def make_token_page(service: Serving, request: Request, sent: Posted) -> Response:
    """A token for programs; the page that answers shows its secret this once."""
    try:
        days = float(sent.text("days", "90"))
        scopes = [str(scope) for scope in sent.form.getlist("scopes")]
        token = accounts.make_token(
            service, sent.person, label=sent.text("label") or "token", scopes=scopes, days=days
        )
    except (HeldoutError, ValueError) as error:
        words = str(error) if isinstance(error, HeldoutError) else "days must be a number."
        return _account(service, request, sent.person, wrong=words)
    return _account(service, request, sent.person, made=token)


@pages.post("/account/tokens/{identity}/revoke")
def revoke_token_page(service: Serving, sent: Posted, identity: str) -> Response:
    """The token opens nothing from now on."""
    accounts.revoke_token(service, sent.person, identity)
    return redirect("/account?done=token")


# --- the administrator ---------------------------------------------------------------------------


def _people(service: Service, request: Request, **more: Any) -> Response:
    everyone = accounts.everyone(service)
    more = {"link": None, "of": "", "name": ""} | more
    status = 422 if more.get("wrong") else 200
    return page(request, "people.html", status=status, everyone=everyone, roles=ROLES, **more)


@pages.post("/people")
def add_person_page(service: Serving, request: Request, sent: Posted) -> Response:
    """Somebody new; the page that answers shows their sign-in link."""
    sent.person.must_be("administrator", scope="manage")
    name = sent.text("name")
    try:
        secret = accounts.add_person(service, name=name, role=sent.text("role"), by=sent.person)
    except HeldoutError as error:
        return _people(service, request, wrong=str(error), name=name)
    return _with_link(service, request, name, secret)


@pages.post("/people/{name}/link")
def link_for(service: Serving, request: Request, sent: Posted, name: str) -> Response:
    """Another sign-in link."""
    secret = accounts.new_link(service, name, by=sent.person)
    return _with_link(service, request, name, secret)


def _with_link(service: Service, request: Request, name: str, secret: str) -> Response:
    link = f"{service.settings.address}/sign-in/{secret}"
    return _people(service, request, link=link, of=name)


@pages.post("/people/{name}/disable")
def disable_page(service: Serving, sent: Posted, name: str) -> Response:
    """Nothing of theirs opens any door from now on."""
    accounts.disable(service, name, by=sent.person)
    return redirect("/?done=disabled")


@pages.post("/people/{name}/factor/reset")
def reset_factor_page(service: Serving, sent: Posted, name: str) -> Response:
    """Take the second factor of somebody who lost it away."""
    accounts.clear_factor(service, name, by=sent.person)
    return redirect("/?done=reset")


@pages.post("/people/{name}/disconnect")
def disconnect_page(service: Serving, sent: Posted, name: str) -> Response:
    """Let somebody no longer come through the institution's provider."""
    accounts.disconnect(service, name, by=sent.person)
    return redirect("/?done=disconnected")


# --- signing in through the institution's provider, and connecting oneself with it --------------


FLOW = "flow"
NOT_CONNECTED = "You are not connected"


def _provider(service: Service) -> Provider:
    provider = provider_of(service)
    if provider is None:
        raise Missing("There is no such page.")
    return provider


@pages.get("/oidc/start")
def start(service: Serving, request: Request, next: str = "/") -> Response:
    """Go to the provider."""
    address, flow = _provider(service).begin(then=inside(next))
    answer = RedirectResponse(address, 303)
    _remember(service, request, answer, flow)
    return answer


@pages.post("/oidc/connect")
def connect(service: Serving, request: Request, sent: Posted) -> Response:
    """Set out to connect whoever is signed in with the provider, and knows password and code."""
    password, code = str(sent.form.get("current", "")), sent.text("code")
    try:
        accounts.check_owner(service, sent.person, password=password, code=code)
    except (Forbidden, TooMany) as error:
        return page(
            request, "wrong.html", status=status_of(error), title=NOT_CONNECTED, words=str(error)
        )
    address, flow = _provider(service).begin(then="/account", session=sent.person.token)
    # A form of ours may not lead to another host: a link does.
    title = service.settings.oidc_title
    answer = page(request, "connect.html", address=address, provider=title)
    _remember(service, request, answer, flow)
    return answer


@pages.get(CALLBACK)
def back(service: Serving, request: Request) -> Response:
    """Take in who comes back from the provider."""
    provider = _provider(service)
    try:
        flow = _recall(service, request)
        identity = provider.finish(flow, dict(request.query_params))
        if flow.session:
            secret = accounts.connect(service, flow.session, identity)
        else:
            secret = accounts.sign_in_by_provider(service, identity)
    except HeldoutError as error:
        status = status_of(error)
        title = "You are not signed in"
        answer: Response = page(request, "wrong.html", status=status, title=title, words=str(error))
    else:
        person = accounts.of_token(service, secret, kind="browser")
        service.note(None if person is None else person.name, "sign in", "by the provider")
        # The browser came from elsewhere, and sends its session once our own page asks.
        answer = page(request, "signed_in.html", then=flow.then)
        keep(request, answer, "heldout", secret, accounts.LIVES["browser"])
    forget(request, answer, FLOW)
    return answer


def _remember(service: Service, request: Request, answer: Response, flow: Flow) -> None:
    from itsdangerous import URLSafeTimedSerializer

    signed = URLSafeTimedSerializer(web_secret(service), salt="provider").dumps(vars(flow))
    # The way back begins at the provider's: a strict cookie would stay behind.
    keep(request, answer, FLOW, str(signed), FLOW_SECONDS, from_elsewhere=True)


def _recall(service: Service, request: Request) -> Flow:
    from itsdangerous import BadSignature, URLSafeTimedSerializer

    signed = remembered(request, FLOW)
    serializer = URLSafeTimedSerializer(web_secret(service), salt="provider")
    try:
        return Flow(**serializer.loads(signed, max_age=FLOW_SECONDS))
    except (BadSignature, TypeError):
        raise Forbidden(
            "This browser did not set out to sign in, or took more than 10 minutes. Try again."
        ) from None
