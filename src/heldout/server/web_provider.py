"""Signing in through the institution's provider, and connecting oneself with it: pages alone."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from heldout.errors import HeldoutError
from heldout.server import accounts
from heldout.server.evaluations import web_secret
from heldout.server.gate import Serving, status_of
from heldout.server.provider import (
    CALLBACK,
    FLOW_SECONDS,
    Flow,
    Provider,
    provider_of,
)
from heldout.server.service import Forbidden, Missing, Service, TooMany
from heldout.server.site import Posted, forget, inside, keep, page, remembered

pages = APIRouter(prefix="/oidc")
api = APIRouter()
FLOW = "flow"
NOT_CONNECTED = "You are not connected"


def _provider(service: Service) -> Provider:
    provider = provider_of(service)
    if provider is None:
        raise Missing("There is no such page.")
    return provider


@pages.get("/start")
def start(service: Serving, request: Request, next: str = "/") -> Response:
    """Go to the provider."""
    address, flow = _provider(service).begin(then=inside(next))
    answer = RedirectResponse(address, 303)
    _remember(service, request, answer, flow)
    return answer


@pages.post("/connect")
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


@pages.get(CALLBACK.removeprefix("/oidc"))
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
