"""A verification server from afar: the words of a `Session`, the same releases, over HTTP.

server = heldout.client.Server("https://evaluate.example.org", token)
server.dataset("readmissions").ask(q.Auc(epsilon="1/2"), model="model.onnx")
"""

import hashlib
import http.client
import io
import json
import math
import os
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload
from urllib.parse import quote as escaped

from heldout import errors
from heldout import questions as q
from heldout.arguments import shown, visible
from heldout.errors import (
    AnswerLost,
    ArgumentError,
    HeldoutError,
    LedgerTampered,
    PrivacyError,
    ServerError,
    UnusableModel,
)
from heldout.kernel import Budget, Loss
from heldout.questions.answers import Answered
from heldout.questions.quote import check_questions

__all__ = ["Evaluation", "Quoted", "RemoteDataset", "Server"]

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
"""Content type of a file, by the ending of its name."""


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
            raise ArgumentError("url must hold no password. Pass the token as the second argument.")
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


# A verification server from afar: the same words as `Session`, the same releases.
if TYPE_CHECKING:
    import pyarrow

WAIT, PAUSE = 20, 0.2  # seconds
R = TypeVar("R")
Model = str | os.PathLike[str]
Head = Mapping[str, Any]
"""The ledger's id, and the number and the hash of its last entry."""


class Server:
    """A verification server, on behalf of the owner of a token.

    Parameters
    ----------
    url
        Its address, such as "https://evaluate.example.org".
    token
        A token that the server gave you. It is sent to this address alone, and never shown.
    key
        The server's public key, from its custodian. With it every answer's signature is checked,
        which needs the library cryptography.
    heads
        A file that remembers where the ledger was seen to end. A ledger that is put back to an
        older copy is then noticed by a later program too; without a file, by this object.
    timeout
        Seconds to wait for an answer that has no reason to take long.
    allow_http
        Send the token without encryption to another machine after all.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        key: str | None = None,
        heads: str | os.PathLike[str] | None = None,
        timeout: float = 60,
        allow_http: bool = False,
    ) -> None:
        self._transport = Transport(url, token, timeout=timeout, allow_http=allow_http)
        self._key = key
        self._heads = Heads(self._transport.url, None if heads is None else Path(heads))
        self._sent: dict[tuple[str, ...], str] = {}
        self._checked = False

    def __repr__(self) -> str:
        return f"Server({self._transport.url!r})"

    def datasets(self) -> list["RemoteDataset"]:
        """Return the data sets that you may ask about."""
        return [
            RemoteDataset(self, record["name"]) for record in self._transport.get_all("/datasets")
        ]

    def dataset(self, name: str) -> "RemoteDataset":
        """Return a data set by its name; refuse one that you may not ask about."""
        dataset = RemoteDataset(self, name)
        _ = dataset.facts
        return dataset

    def evaluation(self, identity: str) -> "Evaluation":
        """Return an evaluation by its id, such as one that an earlier program began."""
        path = f"/evaluations/{escaped(identity, safe='')}"
        return Evaluation(self, self._transport.get(path))

    def board(self, name: str) -> "RemoteBoard":
        """Return a leaderboard by its name; refuse one that is not there."""
        board = RemoteBoard(self, name)
        _ = board.facts
        return board

    def upload(self, model: Model, *, features: list[str] | None = None) -> str:
        """Send a model, or predictions by row key; return its id once it was checked.

        The server looks at the file in a sandbox, without any row; what it refuses costs nothing.
        The same file is sent once.
        """
        file = Path(model)
        digest = _file_digest(file)
        which = (digest, file.name, *(features or ()))
        if which not in self._sent:
            sent = self._transport.upload("/artifacts", file, name=file.name, features=features)
            with _Progress() as progress:
                while sent["state"] == "checking":
                    progress.say(f"{file.name} is being checked")
                    sent = self._transport.get(f"/artifacts/{sent['id']}", wait=WAIT)
            if sent["state"] == "refused":
                raise UnusableModel(str(sent["words"]))
            self._sent[which] = str(sent["id"])
        return self._sent[which]

    def head(self) -> Record:
        """Return where the server says that its ledger ends."""
        return self._transport.get("/ledger/head")

    def check_ledger(self) -> None:
        """Refuse a ledger that was put back or rewritten since this client saw its end."""
        seen = self._heads.seen
        self._heads.remember(self.head())
        if seen is not None and seen["sequence"]:
            self.find(seen["hash"], sequence=seen["sequence"])
        self._checked = True

    def _check_before_paying(self) -> None:
        """Check all of the chain once, and afterwards where it ends."""
        if self._checked:
            self._heads.remember(self.head())
        else:
            self.check_ledger()

    def find(self, receipt: str, *, sequence: int | None = None) -> int:
        """Return the number of the ledger's entry with this receipt; refuse if it is gone."""
        checked = self._transport.get("/ledger/verify", receipt=receipt)
        at = checked.get("receipt_sequence")
        if not checked.get("intact") or at is None or sequence not in (None, at):
            raise LedgerTampered(
                f"The entry with receipt {receipt} is not in the ledger: it was put back to an "
                f"older copy, or rewritten. {checked.get('words', '')}".strip()
            )
        return int(at)

    def _accepted(self, signed: Any) -> Answered:
        """Return the answer of a signed statement; check its signature where the key is known."""
        if self._key is not None:
            from heldout.server.signing import verify

            verify(signed, key=self._key)
        try:
            statement = signed["statement"]
            ledger, answered = str(statement["ledger"]), Answered.from_dict(statement["answer"])
            models = (statement.get("subject") or {}).get("models", ())
            answered = answered.of_models(*(str(model["name"]) for model in models))
        except (KeyError, TypeError, AttributeError):
            raise ServerError("The server's answer is not a signed statement.") from None
        receipt = answered.receipt
        head = {"ledger": ledger, "sequence": receipt.sequence, "hash": receipt.hash}
        if self._heads.seen is None or head["sequence"] > self._heads.seen["sequence"]:
            self._heads.remember(head)
        return answered


class RemoteDataset:
    """Private rows on a server, and your share of their budget: the words of a `Session`."""

    def __init__(self, server: Server, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"name must be that of a data set, got {shown(name)}.")
        self.name, self._server = name, server

    def __repr__(self) -> str:
        return f"RemoteDataset({visible(self.name)!r} on {self._server._transport.url})"

    @property
    def facts(self) -> Record:
        """Ask what is public of the rows now: columns with types, protection, your allowance."""
        return self._server._transport.get(self._path)

    @property
    def _path(self) -> str:
        return f"/datasets/{escaped(self.name, safe='')}"

    @property
    def budget(self) -> Budget:
        """Return what you may spend on these rows in all."""
        return Budget.from_dict(self._allowance["budget"])

    @property
    def spent(self) -> Loss:
        return Loss.from_dict(self._allowance["spent"])

    @property
    def remaining(self) -> Loss:
        """Return what is left for you, by your share and by everybody's budget."""
        return Loss.from_dict(self._allowance["remaining"])

    @property
    def _allowance(self) -> Record:
        return dict(self.facts["allowance"])

    def quote(self, *questions: q.Question[Any], **guess: Any) -> "Quoted":
        """Return what `ask` would charge, exactly, and the half-widths to expect: free."""
        content = {"dataset": self.name, "questions": _as_data(questions), "guess": guess}
        return Quoted(questions, self._server._transport.post("/quotes", content))

    @property
    def questions(self) -> dict[str, str | None]:
        """Every kind of question that the server knows: None, or why these rows cannot answer."""
        return {question["question"]: question["why_not"] for question in self.facts["questions"]}

    @overload
    def ask(
        self,
        question: q.Question[R],
        /,
        *,
        model: Model | None = None,
        rival: Model | None = None,
        features: list[str] | None = None,
        key: str | None = None,
    ) -> R: ...
    @overload
    def ask(
        self, *questions: q.Question[Any], model: Model | None = None, **options: Any
    ) -> tuple[Any, ...]: ...
    def ask(
        self, *questions: q.Question[Any], model: Model | None = None, **options: Any
    ) -> object:
        """Pay for the questions, wait for the answers, and return the releases.

        One question gives its release, several a tuple of them, as `Session.ask` does; `options`
        are those of `submit`.
        """
        releases = self.answer(*questions, model=model, **options).releases
        return releases[0] if len(questions) == 1 else releases

    def answer(
        self, *questions: q.Question[Any], model: Model | None = None, **options: Any
    ) -> Answered:
        """Ask, and return all that is needed to keep the answers; `options` as in `submit`."""
        return self.submit(*questions, model=model, **options).wait()

    def ask_all(
        self,
        *questions: q.Question[Any],
        models: Sequence[Model],
        key: str | None = None,
        features: list[str] | None = None,
    ) -> dict[str, Any]:
        """Ask the same questions about several models, and return the releases by model.

        All are submitted before the first is waited for, each with a booking of its own. With a
        `key` a second call after an error pays for nothing again: it fetches what is there and
        asks the rest.
        """
        names = [str(model) for model in models]
        if len(set(names)) < len(names):
            raise ArgumentError("Pass different models: each is asked about once.")
        waiting = {
            name: self.submit(
                *questions,
                model=model,
                features=features,
                key=None if key is None else f"{key} {_digest_of(model)}",
            )
            for name, model in zip(names, models, strict=True)
        }
        answers = {name: evaluation.wait().releases for name, evaluation in waiting.items()}
        return {
            name: releases[0] if len(questions) == 1 else releases
            for name, releases in answers.items()
        }

    def submit(
        self,
        *questions: q.Question[Any],
        model: Model | None = None,
        rival: Model | None = None,
        features: list[str] | None = None,
        key: str | None = None,
    ) -> "Evaluation":
        """Pay for the questions, and do not wait for the answers.

        `model` is a file (ONNX, a linear model as JSON, predictions by row key), which is sent
        first, or the id of something that was sent before; questions about the rows alone, such as
        training, take none. `rival` is the second model of a
        comparison, whose question has score="rival". `features` are the columns in the order of
        the model's one input. `key` is an idempotency key of your own: what was paid with it
        before is not paid again, it is fetched.
        """
        self._server._check_before_paying()
        content: Record = {"dataset": self.name, "questions": _as_data(questions)}
        if model is not None:
            content["artifact"] = self._sent(model, features)
        if rival is not None:
            content["rival"] = self._sent(rival, features)
        key = secrets.token_hex(16) if key is None else key
        asked = self._server._transport.post("/evaluations", content, key=key)
        return Evaluation(self._server, asked)

    def _sent(self, model: Model, features: list[str] | None) -> str:
        return str(model) if _is_id(model) else self._server.upload(model, features=features)

    def history(self) -> list["Evaluation"]:
        """Return your evaluations of these rows, the newest first."""
        records = self._server._transport.get_all("/evaluations", dataset=self.name)
        return [Evaluation(self._server, record) for record in records]

    def twin(self, rows: int = 100) -> "pyarrow.Table":
        """Return made-up rows with the same columns, to try a model on. No row was read."""
        return self._table(f"{self._path}/twin.csv", rows=rows)

    @property
    def published(self) -> list[Record]:
        """Return the private twins that the custodian published: id, price, and bad questions."""
        return self._server._transport.get_all(f"{self._path}/published")

    def published_rows(self, identity: str) -> "pyarrow.Table":
        """Return the rows of a private twin by its id."""
        return self._table(f"{self._path}/published/{escaped(identity, safe='')}.csv")

    def _table(self, path: str, **query: Any) -> "pyarrow.Table":
        import pyarrow.csv

        text = self._server._transport.text(path, **query)
        return pyarrow.csv.read_csv(io.BytesIO(text.encode()))


@dataclass(frozen=True)
class Quoted:
    """The exact price of some questions on a server, and the half-widths to expect."""

    questions: tuple[q.Question[Any], ...]
    content: Mapping[str, Any]

    @property
    def loss(self) -> Loss:
        """The price, exactly."""
        return Loss.from_dict(self.content["loss"])

    @property
    def half_widths(self) -> tuple[dict[str, q.HalfWidths], ...]:
        """For each question: how far its measures' intervals will reach, if the guess is right."""
        return tuple(
            {name: q.HalfWidths(**width) for name, width in widths.items()}
            for widths in self.content["half_widths"]
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """For each question: what its half-widths take for granted beside the guess; or nothing."""
        return tuple(self.content["assumes"])


class Evaluation:
    """Holds what was asked of a model, and what became of it."""

    def __init__(self, server: Server, content: Mapping[str, Any]) -> None:
        self._server, self._record = server, content

    @property
    def id(self) -> str:
        return str(self._record["id"])

    @property
    def state(self) -> str:
        """waiting, answered, refused or cancelled (nothing was charged), or lost (it was)."""
        return str(self._record["state"])

    @property
    def words(self) -> str:
        """The reason of the state."""
        return str(self._record["words"])

    @property
    def questions(self) -> tuple[q.Question[Any], ...]:
        return tuple(q.from_dict(data) for data in self._record["questions"])

    @property
    def price(self) -> Loss:
        return Loss.from_dict(self._record["price"])

    @property
    def done(self) -> bool:
        """Return whether it is over, as far as this object knows; `refresh` looks again."""
        return self.state != "waiting"

    @property
    def expected(self) -> float | None:
        """When the answer appears, in seconds since 1970; None in the queue, or if it is over."""
        moment = self._record.get("expected")
        return None if moment is None else float(moment)

    def refresh(self) -> "Evaluation":
        """Ask the server how it stands now; returns this object."""
        self._refresh()
        return self

    def wait(self, timeout: float | None = None) -> Answered:
        """Return the answer, once it is there; raise what came of it instead.

        After `timeout` seconds it raises `TimeoutError`. The server goes on: call it again.
        """
        until = math.inf if timeout is None else time.monotonic() + timeout
        if self.state != "answered" or not self._record.get("statement"):
            self._refresh()
        try:
            with _Progress() as progress:
                while not self.done:
                    left = until - time.monotonic()
                    if left <= 0:
                        raise TimeoutError(
                            f"Evaluation {self.id} is still waiting. The server keeps working "
                            "on it: call wait again, or fetch it later with "
                            "Server.evaluation."
                        )
                    place = self._record.get("queue_place") or 0
                    progress.say(f"At most {place} before yours" if place else "Being worked on")
                    self._refresh(wait=max(1, min(WAIT, math.ceil(left) if timeout else WAIT)))
        except KeyboardInterrupt as stopped:
            stopped.add_note(f"The server goes on with evaluation {self.id}; history() has it.")
            raise
        if self.state == "lost":
            receipt = self._record["receipt"]
            raise AnswerLost(receipt["sequence"], receipt["hash"])
        if self.state != "answered":
            raise PrivacyError(self.words)
        return self._server._accepted(self._record["statement"])

    def cancel(self) -> None:
        """Cancel it before its price is booked; refused afterwards."""
        self._record = self._server._transport.delete(f"/evaluations/{self.id}")

    def page(self) -> str:
        """Return the self-contained page of the answer, with its signed statement."""
        return self._server._transport.text(f"/reports/{self.id}.html")

    def _refresh(self, wait: int = 0) -> None:
        self._record = self._server._transport.get(f"/evaluations/{self.id}", wait=wait)

    def __repr__(self) -> str:
        return f"Evaluation({self.id!r}, {self.state}: {visible(self.words)})"


def _digest_of(model: Model) -> str:
    """Return what names a model in an idempotency key: the digest of its file, or its id."""
    return str(model) if _is_id(model) else _file_digest(Path(model))


def _is_id(model: Model) -> bool:
    """Return whether it names something that was sent before, and is no file."""
    return isinstance(model, str) and not Path(model).suffix and not Path(model).exists()


def _file_digest(file: Path) -> str:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise ArgumentError(f"{shown(file.name)} cannot be read ({error.strerror}).") from None


def _as_data(questions: tuple[q.Question[Any], ...]) -> list[Record]:
    check_questions(questions)
    return [question.as_dict() for question in questions]


class _Progress:
    """A line on a terminal that says what is waited for; nothing elsewhere."""

    def __enter__(self) -> "_Progress":
        self._width = 0
        return self

    def say(self, words: str) -> None:
        if sys.stderr.isatty():
            line = visible(words)
            print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)
            self._width = len(line)

    def __exit__(self, *_: object) -> None:
        if self._width:
            print(f"\r{'':<{self._width}}\r", end="", file=sys.stderr, flush=True)


class RemoteBoard:
    """Shows what a board has published, and submits to it."""

    def __init__(self, server: Server, name: str) -> None:
        self._server, self.name = server, name

    @property
    def facts(self) -> Record:
        """Its terms, what it has shown, its certificate, and what is left."""
        return self._server._transport.get(f"/boards/{self.name}")

    @property
    def best(self) -> float:
        return float(self.facts["best"])

    def submissions(self) -> list[Record]:
        """Return your own, newest first."""
        return self._server._transport.get_all(f"/boards/{self.name}/submissions")

    def submit(
        self,
        model: Model,
        *,
        title: str | None = None,
        key: str | None = None,
        seconds: float = 600,
    ) -> Record:
        """Submit a model (a file, or the id of one that was sent) and wait for what it learns."""
        file = Path(model)
        artifact = self._server.upload(file) if file.suffix else str(model)
        body = {"artifact": artifact, "title": title or file.name}
        made = self._server._transport.post(
            f"/boards/{self.name}/submissions", body, key=key or secrets.token_urlsafe(16)
        )
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            submission = {record["id"]: record for record in self.submissions()}[made["id"]]
            if submission["state"] == "judged":
                return submission
            if submission["state"] == "refused":
                raise PrivacyError(str(submission["words"]))
            time.sleep(PAUSE)
        raise PrivacyError("The submission is still waiting. Look at submissions() later.")

    def __repr__(self) -> str:
        return f"RemoteBoard({self.name!r})"


def not_put_back(*, seen: Head, now: Head) -> None:
    """Refuse a ledger that ends before the place where it was seen to end."""
    if now["ledger"] != seen["ledger"]:
        raise LedgerTampered("The server's ledger is not the one that it had before.")
    shorter = now["sequence"] < seen["sequence"]
    if shorter or (now["sequence"] == seen["sequence"] and now["hash"] != seen["hash"]):
        raise LedgerTampered(
            f"The ledger ends at entry {now['sequence']}, and it was seen at entry "
            f"{seen['sequence']}: it was put back to an older copy, or rewritten."
        )


class Heads:
    """The last head of one server, in memory and in a file if there is one."""

    def __init__(self, url: str, place: Path | None) -> None:
        self._url, self._place = url, place
        self.seen: Head | None = self._all().get(url)

    def remember(self, now: Head) -> None:
        """Take a head for the last one, unless it is of a ledger that was put back."""
        if self.seen is not None:
            not_put_back(seen=self.seen, now=now)
            if now["sequence"] == self.seen["sequence"]:
                return
        self.seen = {name: now[name] for name in ("ledger", "sequence", "hash")}
        if self._place is not None:
            text = json.dumps(self._all() | {self._url: self.seen}, indent=2)
            temporary = self._place.with_name(f"{self._place.name}.{secrets.token_hex(4)}")
            try:
                temporary.write_text(text, encoding="ascii")
                temporary.replace(self._place)
            except OSError as error:
                raise ArgumentError(
                    f"heads must be a file that can be written ({error.strerror})."
                ) from None

    def _all(self) -> dict[str, Any]:
        if self._place is None or not self._place.exists():
            return {}
        try:
            heads = json.loads(self._place.read_text(encoding="ascii"))
            for head in heads.values():
                if [type(head[name]) for name in ("sequence", "hash", "ledger")] != [int, str, str]:
                    raise ValueError
        except (OSError, ValueError, AttributeError, KeyError, TypeError):
            raise ArgumentError(
                "heads must be a file that this client wrote. Without it a ledger that was put "
                "back goes unnoticed, so it is not replaced."
            ) from None
        return dict(heads)
