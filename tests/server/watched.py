"""Servers that are watched: whatever they said is kept, and two of them can be compared."""

import itertools
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.conftest import Site, rows

from heldout.server import storage

AUC = {"question": "auc", "epsilon": "1/4"}
CELLS = {"question": "confusion", "epsilon": "1/4", "threshold": 0.5}
VARIES = ("date", "server")  # headers that are no fact of the server's
DRAWN = re.compile(r"-?\d+\.\d+(e-?\d+)?|-?\d+e-?\d+")
CHAINED = re.compile(
    r"\b[0-9a-f]{32,64}\b|[A-Za-z0-9+/_.-]{80,}={0,2}|[A-Za-z0-9+/]{43}=|20\d\d-\d\d-\d\dT[0-9:.+]+"
)


class Watched(Site):
    """A site whose every answer is kept."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.said: list[Any] = []
        super().__init__(folder, **settings)

    def client(self, name: str | None = None) -> Any:
        found = super().client(name)
        found.event_hooks = {"response": [self._keep]}
        return found

    def _keep(self, answer: Any) -> None:
        answer.read()
        self.said.append(answer)

    def opened(self, path: Path, **more: Any) -> "Watched":
        """The rows of this file registered, and a share for ana."""
        found = self.register(path, budget="100", **more)
        assert found["state"] == "open", found
        self.grant(budget="50")
        return self

    def send(self, content: bytes, kind: str, *, who: str = "ana") -> Any:
        """An artefact as raw bytes; the answer to it."""
        headers = {"Content-Type": kind, "Prefer": "wait=0"}
        return self.client(who).put("/api/v1/artifacts", content=content, headers=headers)

    def transcript(self) -> list[str]:
        """Everything that was said, with its headers and size; of answers, only their form."""
        return [told(each) for each in self.said]


def told(answer: Any) -> str:
    """One answer as a text; noise, and what is chained to times and noise, is left out."""
    headers = {name: value for name, value in answer.headers.items() if name not in VARIES}
    text = CHAINED.sub("@", answer.text)
    if '"receipt":{' in text:  # whole seconds are written shorter
        headers.pop("content-length", None)
    if '"answers":[' in text or "heldout-statement" in text:
        headers.pop("content-length", None)
        # A report is made of the answer that is compared: a test says so.
        text = "a report" if "heldout-statement" in text else _form(json.loads(text))
    request = answer.request
    return (
        f"{request.method} {request.url.path} {answer.status_code} {sorted(headers.items())} {text}"
    )


def _form(content: Any) -> str:
    """JSON in which what was drawn is a mark."""

    def form(value: Any, drawn: bool) -> Any:
        if isinstance(value, dict):
            inside = {"answers", "statement"}
            return {name: form(each, drawn or name in inside) for name, each in value.items()}
        if isinstance(value, list):
            return [form(each, drawn) for each in value]
        if drawn and isinstance(value, int | float):
            return "#"
        return DRAWN.sub("#", value) if drawn and isinstance(value, str) else value

    return json.dumps(form(content, False), sort_keys=True)


class Steady:
    """Identities in order and a clock that stands: two servers can be compared byte by byte.

    Nothing of the noise or of a secret is touched.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.restart()
        hexes = SimpleNamespace(token_hex=lambda size: f"{next(self.numbers):0{2 * size}x}")
        clock = SimpleNamespace(time=lambda: self.at, sleep=self._pass)
        monkeypatch.setattr(storage, "time", clock)
        monkeypatch.setattr(storage, "secrets", hexes)

    def _pass(self, seconds: float) -> None:
        self.at += seconds

    def restart(self) -> None:
        self.at, self.numbers = 1_900_000_000.0, itertools.count(1)


def predictions(keys: list[str], scores: list[float] | None = None) -> bytes:
    chosen = [0.25 + at % 7 / 10 for at in range(len(keys))] if scores is None else scores
    lines = [f"{key},{score}\n" for key, score in zip(keys, chosen, strict=True)]
    return ("key,score\n" + "".join(lines)).encode()


def all_keys(count: int = 400) -> list[str]:
    return list(rows(count)["admission"])
