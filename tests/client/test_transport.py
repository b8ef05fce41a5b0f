"""What goes over the wire: tokens to one address alone, requests again without being paid twice."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from heldout.client import Transport
from heldout.errors import AccountClosed, HeldoutError, LedgerTampered, ServerError

GOOD = (200, "application/json", '{"state": "answered"}')


class Scripted(HTTPServer):
    """Answers what it is told, one after the other, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked: list[tuple[str, dict[str, str]]] = []
        super().__init__(("127.0.0.1", 0), Handler)

    def opened(self, *answers: Any) -> Transport:
        self.answers = list(answers)
        return Transport(
            f"http://127.0.0.1:{self.server_port}", "secret-token", timeout=5, allow_http=False
        )


class Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.path, dict(self.headers)))
        answer = self.server.answers.pop(0)
        if answer is None:  # hang up
            self.close_connection = True
            return
        status, kind, body = answer
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status == 307:
            self.send_header("Location", body)
        self.end_headers()
        self.wfile.write(body.encode("latin-1"))

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    monkeypatch.setattr("time.sleep", lambda _: None)
    found = Scripted()
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def problem(name: str, status: int = 422) -> tuple[int, str, str]:
    content = {"type": name, "status": status, "detail": f"This is {name}."}
    return status, "application/problem+json", json.dumps(content)


def test_a_request_that_is_lost_is_sent_again_with_its_key(wire: Scripted) -> None:
    busy = (502, "text/html", "<p>busy")
    transport = wire.opened(None, busy, problem("TooMany", 429), GOOD)
    assert transport.post("/evaluations", {}, key="k7") == {"state": "answered"}
    assert [headers["Idempotency-Key"] for _, headers in wire.asked] == ["k7"] * 4


def test_without_a_key_nothing_is_sent_twice(wire: Scripted) -> None:
    with pytest.raises(ServerError, match="cannot be reached"):
        wire.opened(None, GOOD).post("/quotes", {})
    assert len(wire.asked) == 1


def test_a_refusal_is_not_asked_for_again(wire: Scripted) -> None:
    for name, kind in (
        ("AccountClosed", AccountClosed),
        ("LedgerTampered", LedgerTampered),
        ("Missing", ServerError),
        ("AnswerLost", ServerError),  # it is made of more than words
        ("Exception", ServerError),
        ("shown", ServerError),
    ):
        wire.asked.clear()
        with pytest.raises(kind, match=f"This is {name}"):
            wire.opened(problem(name), GOOD).get("/datasets")
        assert len(wire.asked) == 1


def test_a_token_does_not_follow_a_server_that_points_elsewhere(wire: Scripted) -> None:
    other = Scripted()
    with pytest.raises(ServerError):
        wire.opened((307, "text/plain", f"http://127.0.0.1:{other.server_port}/")).get("/datasets")
    assert other.asked == []
    other.server_close()
    assert "secret-token" not in repr(wire.opened())


@pytest.mark.parametrize(
    "answer",
    [
        (200, "text/html", "<p>not ours"),
        (200, "application/json", ""),
        (200, "application/json", "[" * 100_000),
        (500, "application/problem+json", "{}"),
        (500, "application/problem+json", '{"type": 7, "detail": null}'),
        (404, "text/html", "\xff\xfe"),
    ],
    ids=str,
)
def test_what_is_no_answer_of_ours_is_told_in_words(wire: Scripted, answer: Any) -> None:
    with pytest.raises(HeldoutError):
        wire.opened(*[answer] * 6).get("/datasets")
