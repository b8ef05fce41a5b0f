"""A small OpenID Connect provider on this machine, which lies in whichever way a test asks for."""

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

CLIENT, SECRET = "heldout-server", "a-secret-of-the-client"


class LoopbackProvider:
    """Signs whoever `claims` says in, at once; `lies` changes what a right provider would say."""

    def __init__(self) -> None:
        self.claims: dict[str, Any] = {"sub": "1", "preferred_username": "eva"}
        self.lies: dict[str, Any] = {}
        self.asked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self.renew_key("first")
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.answer(self, None)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                provider.answer(self, parse_qs(self.rfile.read(length).decode()))

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def renew_key(self, name: str) -> None:
        self.key = ECKey.generate_key("P-256", {"kid": name, "alg": "ES256", "use": "sig"})

    def answer(self, asked: Any, form: dict[str, list[str]] | None) -> None:
        path = urlsplit(asked.path).path
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            content = {
                "issuer": self.lies.get("issuer", self.issuer),
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
            }
        elif path == "/keys":
            content = KeySet([self.key]).as_dict(private=False)
        elif path == "/authorize":
            query = {name: one[0] for name, one in parse_qs(urlsplit(asked.path).query).items()}
            asked.send_response(303)
            asked.send_header("Location", self.way_back(query))
            asked.end_headers()
            return
        else:
            assert form is not None
            content = self._token(asked, {name: one[0] for name, one in form.items()})
        body = json.dumps(content).encode()
        asked.send_response(400 if "error" in content else 200)
        asked.send_header("Content-Type", "application/json")
        asked.end_headers()
        asked.wfile.write(body)

    def way_back(self, query: dict[str, str]) -> str:
        """Where the provider sends a browser that signed in there."""
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert query["client_id"] == CLIENT
        code = secrets.token_hex(8)
        self._codes[code] = query
        back = {"code": code, "state": query["state"], "iss": self.issuer}
        return f"{query['redirect_uri']}?{urlencode(back | self.lies.get('back', {}))}"

    def _token(self, asked: Any, form: dict[str, str]) -> dict[str, Any]:
        query = self._codes.pop(form["code"], None)
        who = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        challenge = _base64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if query is None or query["code_challenge"] != challenge:
            return {"error": "invalid_grant"}
        if asked.headers.get("Authorization") != f"Basic {who}":
            return {"error": "invalid_client"}
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": int(time.time()),
            "exp": int(time.time()) + 300,
            "nonce": query["nonce"],
        } | self.claims
        claims |= self.lies.get("claims", {})
        claims = {name: value for name, value in claims.items() if value is not None}
        token = self.lies.get("token", self.sign)(claims)
        return {"access_token": "x", "token_type": "Bearer", "id_token": token}

    def sign(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "ES256", "kid": self.key.kid}, claims, self.key)

    def sign_with_nothing(self, claims: dict[str, Any]) -> str:
        """A token that says it needs no signature."""
        return self._unsigned("none", claims) + "."

    def sign_with_the_public_key(self, claims: dict[str, Any]) -> str:
        """A token signed by a secret that everybody knows: the public key."""
        text = self._unsigned("HS256", claims)
        digest = hmac.digest(self.key.as_pem(private=False), text.encode(), "sha256")
        return f"{text}.{_base64(digest)}"

    def _unsigned(self, algorithm: str, claims: dict[str, Any]) -> str:
        parts = [{"alg": algorithm, "kid": self.key.kid}, claims]
        return ".".join(_base64(json.dumps(part).encode()) for part in parts)

    def sign_with_another_key(self, claims: dict[str, Any]) -> str:
        other = ECKey.generate_key("P-256", {"kid": self.key.kid})
        return jwt.encode({"alg": "ES256", "kid": self.key.kid}, claims, other)


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
