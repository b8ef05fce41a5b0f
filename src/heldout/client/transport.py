"""One server's API over HTTP: JSON in and out, and its problems as the library's own errors."""

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from heldout import errors
from heldout.arguments import shown
from heldout.errors import ArgumentError, HeldoutError, ServerError

Record = dict[str, Any]
"""A JSON object of the API."""
T = TypeVar("T")
MOST_BYTES: Final = 2**27
"""Of an answer; a page with a hundred curves has a hundredth of it."""
ATTEMPTS: Final = 6
HERE: Final = ("localhost", "127.0.0.1", "::1")
KINDS: Final = {
    ".onnx": "application/onnx",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
}
"""What a file is, by how its name ends."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token goes to the address it was meant for, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Transport:
    """Requests with a token; it shows the address and never the token."""

    def __init__(self, url: str, token: str, *, timeout: float, allow_http: bool) -> None:
        parts = urllib.parse.urlsplit(url if isinstance(url, str) else "")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise ArgumentError(f"url must be a server's address, got {shown(url)}.")
        if parts.username or parts.password:
            raise ArgumentError("url must hold no password. Pass the token apart.")
        if parts.scheme == "http" and parts.hostname not in HERE and not allow_http:
            raise ArgumentError(
                "url must begin with https://, or the token could be read on the way. Pass "
                "allow_http=True for a network that you trust."
            )
        if not isinstance(token, str) or not token.strip().isascii() or not token.strip():
            raise ArgumentError("token must be the text that the server gave you.")
        self.url = url.rstrip("/")
        self._token, self._timeout = token.strip(), timeout
        self._opener = urllib.request.build_opener(_NoRedirect)

    def __repr__(self) -> str:
        return f"Transport({self.url!r})"

    def get(self, path: str, *, wait: int = 0, **query: Any) -> Record:
        """Read the JSON at a path; the server may take `wait` seconds until it has news."""
        return _record(self.text(path, wait=wait, **query))

    def get_all(self, path: str, **query: Any) -> list[Record]:
        """Read the JSON list at a path."""
        return [
            _expected(record, dict) for record in _expected(_parsed(self.text(path, **query)), list)
        ]

    def text(self, path: str, *, wait: int = 0, **query: Any) -> str:
        """Read the text at a path."""
        headers = {"Prefer": f"wait={wait}"} if wait else {}
        return self._patiently("GET", _with(path, query), headers=headers, extra=wait)

    def post(self, path: str, content: Mapping[str, Any], *, key: str | None = None) -> Record:
        """Send JSON; with an idempotency key a lost request is sent again, and counts once."""
        headers = {"Content-Type": "application/json"}
        body = json.dumps(content, allow_nan=False).encode()
        if key is None:
            return _record(self._once("POST", path, body=body, headers=headers))
        headers["Idempotency-Key"] = key
        return _record(self._patiently("POST", path, body=body, headers=headers))

    def delete(self, path: str) -> Record:
        """Delete what is at a path, and read what is said of it."""
        return _record(self._once("DELETE", path, headers={}) or "{}")

    def upload(self, path: str, file: Path, **query: Any) -> Record:
        """Send a file, a piece at a time."""
        if file.suffix.lower() not in KINDS:
            raise ArgumentError(f"model must end in {', '.join(KINDS)}, got {shown(file.name)}.")
        try:
            with file.open("rb") as body:
                headers = {
                    "Content-Type": KINDS[file.suffix.lower()],
                    "Content-Length": str(file.stat().st_size),
                }
                return _record(
                    self._once("PUT", _with(path, query), body=body, headers=headers, extra=600)
                )
        except OSError as error:
            raise ArgumentError(f"{shown(file.name)} cannot be read ({error.strerror}).") from None

    def _patiently(self, method: str, path: str, **more: Any) -> str:
        """Try again after a pause, where the connection failed or the server is busy."""
        for attempt in range(ATTEMPTS):
            try:
                return self._once(method, path, **more)
            except ServerError as error:
                if error.status not in (None, 429, 502, 504) or attempt == ATTEMPTS - 1:
                    raise
                time.sleep(max(error.retry_after, 0.1 * 2**attempt))
        raise AssertionError

    def _once(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        headers: Mapping[str, str],
        extra: float = 0,
    ) -> str:
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            data=body,
            method=method,
            headers={"Authorization": f"Bearer {self._token}", **headers},
        )
        try:
            with self._opener.open(request, timeout=self._timeout + extra) as answer:
                return _read(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise _problem(error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            why = getattr(reason, "strerror", None) or type(reason).__name__
            raise ServerError(f"{self.url} cannot be reached ({why}).") from None


def _with(path: str, query: Mapping[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urllib.parse.urlencode(given, doseq=True)}" if given else path


def _read(answer: Any) -> str:
    content = answer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ServerError("The server's answer is too long.", status=200)
    return str(content.decode("utf-8", errors="replace"))


def _record(text: str) -> Record:
    return _expected(_parsed(text), dict)


def _expected(content: object, kind: type[T]) -> T:
    if not isinstance(content, kind):
        raise ServerError("The server's answer is not what its API promises. Check its address.")
    return content


def _parsed(text: str) -> object:
    try:
        content: object = json.loads(text)
    except (ValueError, RecursionError):
        raise ServerError("The server's answer is not JSON. Check its address.") from None
    return content


def _problem(error: urllib.error.HTTPError) -> HeldoutError:
    """Return the library's error of the same name, where there is one."""
    try:
        content = json.loads(_read(error))
        name, words = str(content["type"]), str(content["detail"])
    except (ValueError, KeyError, TypeError, OSError, ServerError):
        name, words = "HttpError", f"The server answered with status {error.code}."
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, HeldoutError) and _simple(kind):
        return kind(words)
    wait = str(error.headers.get("Retry-After", ""))
    return ServerError(words, status=error.code, retry_after=float(wait) if wait.isdigit() else 0)


def _simple(kind: type[HeldoutError]) -> bool:
    """Return whether an error is made of its words alone."""
    ours = (parent for parent in kind.__mro__ if parent.__module__ == errors.__name__)
    return all("__init__" not in vars(parent) for parent in ours)
