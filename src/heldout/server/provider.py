"""Signing in through the institution: OpenID Connect, by Authlib and joserfc.

The browser goes to the provider and comes back with a code. The web exchanges the code for an ID
token, and believes it only if the configured provider signed it, for this server, just now, for the
very browser that set out: state and nonce are in a cookie that the web signed, and so is the secret
half of the PKCE pair that the exchange needs.

Who somebody is are the provider's address and its `sub`, which no user chooses. Names and e-mail
addresses never connect anybody with a person who is here already.
"""

import contextlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from heldout.arguments import shown, visible
from heldout.errors import ArgumentError, HeldoutError
from heldout.server.service import Forbidden, Service
from heldout.server.settings import Settings
from heldout.server.storage import Json

ALGORITHMS: Final = ("RS256", "PS256", "ES256", "RS384", "PS384", "ES384", "RS512", "PS512",
                     "ES512", "Ed25519", "EdDSA")  # fmt: skip
"""Signatures by a private key of the provider's; none that a public key could make."""
CALLBACK: Final = "/oidc/callback"
FLOW_SECONDS: Final = 600
LEEWAY: Final = 60
"""Seconds by which two clocks may differ."""
PATIENCE: Final = 10.0
REMEMBERED: Final = 3600.0
"""Seconds for which the provider's addresses and keys are remembered."""
AGAIN: Final = 30.0
"""Seconds before keys are asked for again because one is not known."""
REST: Final = 10.0
"""Seconds for which a provider that did not answer is not asked again: strangers could have every
thread of the web wait for it."""
TURN: Final = 2.0
"""Seconds that one request waits while another asks."""
MOST_BYTES: Final = 2**20
FAILED: Final = "Signing in through your institution failed: {} Try again, or ask an administrator."
SILENT: Final = FAILED.format("the provider does not answer.")
LOCAL: Final = ("127.0.0.1", "localhost", "::1")


class ProviderAway(HeldoutError):
    """The provider cannot be reached, or does not answer as it should."""


@dataclass(frozen=True)
class Identity:
    """Who somebody is, as the provider's signed token has it."""

    subject: str
    name: str
    roles: tuple[str, ...]


@dataclass(frozen=True)
class Flow:
    """One way to the provider and back, as the browser's signed cookie remembers it."""

    state: str
    nonce: str
    verifier: str
    then: str
    session: str
    """The session that is to be connected with the provider; empty if somebody signs in."""


class Provider:
    """The one provider that this server believes."""

    def __init__(self, settings: Settings) -> None:
        issuer = settings.oidc_issuer
        assert issuer is not None
        parts = urlsplit(issuer)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL):
            raise ArgumentError(f"oidc_issuer must begin with https://, got {shown(issuer)}.")
        if not settings.oidc_client:
            raise ArgumentError("oidc_issuer needs oidc_client, this server's name there.")
        self.issuer, self._settings = issuer, settings
        self._lock = threading.Lock()
        self._away = -REST
        self._known: tuple[float, Json] | None = None
        self._keys: tuple[float, Json] | None = None

    def begin(self, *, then: str, session: str = "") -> tuple[str, Flow]:
        """Return the address at the provider to go to, and what to remember until the return."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        place = self._place("authorization_endpoint")
        with self._client() as client:
            address, _ = client.create_authorization_url(
                place, state=state, nonce=nonce, code_verifier=verifier
            )
        return str(address), Flow(state, nonce, verifier, then, session)

    def finish(self, flow: Flow, answered: Mapping[str, str]) -> Identity:
        """Return who came back, or refuse."""
        state = answered.get("state", "")
        if not hmac.compare_digest(state.encode(), flow.state.encode()):
            raise _failed("the answer belongs to another browser or another try.")
        if answered.get("iss", self.issuer) != self.issuer:  # RFC 9207
            raise _failed("the answer is another provider's.")
        if "error" in answered or not answered.get("code"):
            raise _failed(f"it answered {visible(answered.get('error', 'without a code'))[:60]}.")
        token = self._exchange(answered["code"], flow)
        claims = self._checked(token, flow.nonce)
        return self._identity(claims)

    def _exchange(self, code: str, flow: Flow) -> Json:
        from authlib.integrations.base_client import OAuthError
        from httpx import HTTPError

        place = self._place("token_endpoint")
        try:
            with self._client() as client:
                token = client.fetch_token(place, code=code, code_verifier=flow.verifier)
        except OAuthError:
            raise _failed("the code was refused.") from None
        except (HTTPError, ValueError):
            raise ProviderAway(SILENT) from None
        if not isinstance(token, dict) or not isinstance(token.get("id_token"), str):
            raise _failed("there is no ID token.")
        return dict(token)

    def _checked(self, token: Json, nonce: str) -> Json:
        """Return the claims of an ID token that is genuine, new and meant for this server."""
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError, JoseError

        client = self._settings.oidc_client
        try:
            try:
                decoded = jwt.decode(token["id_token"], self._key_set(), list(ALGORITHMS))
            except (InvalidKeyIdError, ValueError):  # keys change now and then
                decoded = jwt.decode(token["id_token"], self._key_set(again=True), list(ALGORITHMS))
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                {
                    "iss": {"essential": True, "value": self.issuer},
                    "aud": {"essential": True, "value": client},
                    "nonce": {"essential": True, "value": nonce},
                    "sub": {"essential": True},
                },
                {"client_id": client, "nonce": nonce, "access_token": token.get("access_token")},
            )
            claims.validate(leeway=LEEWAY)
        except (JoseError, ValueError, TypeError, KeyError, AttributeError):
            raise _failed("the ID token is not genuine, too old, or not for this server.") from None
        return dict(claims)

    def _identity(self, claims: Json) -> Identity:
        subject, name = claims["sub"], claims.get(self._settings.oidc_name, "")
        if not isinstance(subject, str) or not subject.strip():
            raise _failed("the ID token names nobody.")
        given = _inside(claims, self._settings.oidc_role)
        values = given if isinstance(given, list) else [given]
        known = self._settings.oidc_roles
        roles = {known[value] for value in values if isinstance(value, str) and value in known}
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", str(name)).strip("-._")[:64]
        return Identity(f"{self.issuer} {subject}", plain, tuple(sorted(roles)))

    # --- what the provider says of itself --------------------------------------------------------

    def _place(self, name: str) -> str:
        """Return an address of the provider's, which its description names."""
        with self._turn():
            if self._known is None or time.monotonic() - self._known[0] > REMEMBERED:
                where = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
                content = self._answer(where)
                if content.get("issuer") != self.issuer:
                    raise ProviderAway(FAILED.format("the provider names itself differently."))
                self._known = time.monotonic(), content
            place = self._known[1].get(name)
        mine = urlsplit(self.issuer).scheme
        if not isinstance(place, str) or urlsplit(place).scheme not in ("https", mine):
            raise ProviderAway(FAILED.format("the provider's description lacks an address."))
        return place

    def _key_set(self, *, again: bool = False) -> Any:
        from joserfc.jwk import KeySet

        place = self._place("jwks_uri")
        with self._turn():
            age = float("inf") if self._keys is None else time.monotonic() - self._keys[0]
            if self._keys is None or age > REMEMBERED or (again and age > AGAIN):
                self._keys = time.monotonic(), self._answer(place)
            content = self._keys[1]
        return KeySet.import_key_set(content)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for another request that asks the provider, but not for long."""
        if not self._lock.acquire(timeout=TURN):
            raise ProviderAway(SILENT)
        try:
            yield
        finally:
            self._lock.release()

    def _answer(self, address: str) -> Json:
        """Return a document of the provider's, unless it did not answer a moment ago."""
        if time.monotonic() - self._away < REST:
            raise ProviderAway(SILENT)
        try:
            return _fetched(address)
        except ProviderAway:
            self._away = time.monotonic()
            raise

    def _client(self) -> Any:
        from authlib.integrations.httpx_client import OAuth2Client

        settings = self._settings
        return OAuth2Client(
            settings.oidc_client,
            settings.oidc_secret,
            token_endpoint_auth_method="client_secret_basic" if settings.oidc_secret else "none",
            scope=" ".join(settings.oidc_scopes),
            redirect_uri=settings.address + CALLBACK,
            code_challenge_method="S256",
            timeout=PATIENCE,
        )


def provider_of(service: Service) -> Provider | None:
    """Return the provider, if there is one; it is remembered with the service."""
    if service.settings.oidc_issuer is None:
        return None
    known = service.__dict__.get("provider")
    if known is None:
        known = service.__dict__.setdefault("provider", Provider(service.settings))
    assert isinstance(known, Provider)
    return known


def _failed(why: str) -> Forbidden:
    return Forbidden(FAILED.format(why))


def _inside(claims: Mapping[str, Any], path: str) -> object:
    """Return a claim by its name, or by names with dots for one inside others.

    >>> _inside({"realm": {"roles": ["a"]}}, "realm.roles"), _inside({"a.b": 1}, "a.b")
    (['a'], 1)
    """
    if path in claims:
        return claims[path]
    value: object = claims
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def _fetched(address: str) -> Json:
    """Return a JSON document of the provider's."""
    import httpx

    try:
        answer = httpx.get(address, timeout=PATIENCE, follow_redirects=False)
        answer.raise_for_status()
        content = answer.json() if len(answer.content) <= MOST_BYTES else None
    except (httpx.HTTPError, ValueError):
        content = None
    if not isinstance(content, dict):
        raise ProviderAway(SILENT)
    return content
