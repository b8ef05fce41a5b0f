"""The workers' signature: what is signed, the page of an answer, and how both are checked.

Whoever has the public key can check an answer without the server. One statement makes one page,
byte for byte.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from heldout.arguments import shown
from heldout.errors import ArgumentError, NotGenuine, PrivacyError
from heldout.server.service import secret_in
from heldout.server.storage import Json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from heldout.questions.answers import Answered

FIELDS: Final = {"statement", "signature", "key"}
MARK: Final = "heldout-statement"
LEVEL: Final = 0.95


def canonical(content: object) -> bytes:
    """Return the one text of a content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


class Signer:
    """An Ed25519 key in a file that only workers may read; its public half lies beside it."""

    def __init__(self, key: "Ed25519PrivateKey") -> None:
        self._key = key

    @classmethod
    def of(cls, folder: Path) -> "Signer":
        """Return the key of a server's folder, made at first start; whoever is first makes it."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        path = folder / "private" / "signing.key"
        text = secret_in(
            path, lambda: base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw())
        )
        try:
            raw = base64.b64decode(text, validate=True)
            signer = cls(Ed25519PrivateKey.from_private_bytes(raw))
        except ValueError:
            raise PrivacyError(f"The signing key '{path}' cannot be read.") from None
        (folder / "signing.pub").write_text(signer.public + "\n", encoding="ascii")
        return signer

    @property
    def public(self) -> str:
        """The public key, as people pass it on."""
        return base64.b64encode(self._key.public_key().public_bytes_raw()).decode()

    def sign(self, statement: Mapping[str, object]) -> Json:
        signature = base64.b64encode(self._key.sign(canonical(statement))).decode()
        return {"statement": dict(statement), "signature": signature, "key": self.public}


def verify(signed: object, *, key: str) -> Json:
    """Return the statement, if the owner of `key` signed it; refuses everything else."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not isinstance(signed, Mapping) or set(signed) != FIELDS:
        raise ArgumentError("A signed statement has a statement, a signature and a key.")

    def fits(text: Any) -> bool:
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(text.strip(), validate=True))
        try:
            signature = base64.b64decode(signed["signature"], validate=True)
            public.verify(signature, canonical(signed["statement"]))
        except (InvalidSignature, ValueError, TypeError):
            return False
        return True

    try:
        is_right = fits(key)
    except (ValueError, AttributeError):
        raise ArgumentError("key must be a server's public key: 44 characters of base64.") from None
    if is_right:
        statement: Json = signed["statement"]
        return statement
    is_foreign = False
    with suppress(ValueError, AttributeError, TypeError):
        is_foreign = fits(signed["key"])
    if is_foreign:
        raise NotGenuine(
            "This was signed by another key: its fingerprint is "
            f"{fingerprint(signed['key'])}, and that of the key given is {fingerprint(key)}. "
            "Nothing was changed since. Get the key of the server that made it from its custodian."
        )
    raise NotGenuine("This was changed since it was signed: the signature does not fit.")


def fingerprint(key: str) -> str:
    """Return the first digits of a public key's SHA-256, by which people compare keys."""
    return "SHA256:" + hashlib.sha256(base64.b64decode(key.strip())).hexdigest()[:16]


def key_of(given: str) -> str:
    """Return a public key from its text, or from a file that holds it."""
    place = Path(given)
    try:
        return place.read_text(encoding="ascii").strip() if place.is_file() else given
    except (OSError, ValueError):
        raise ArgumentError("The file of the server's key cannot be read.") from None


# --- the page ------------------------------------------------------------------------------------


def answer_of(statement: Mapping[str, Any]) -> "Answered":
    """Return the answer of a statement, about models by the names that were signed."""
    from heldout.questions.answers import Answered

    models = (statement.get("subject") or {}).get("models", ())
    answered = Answered.from_dict(statement["answer"])
    return answered.of_models(*(str(model["name"]) for model in models))


def answer_page(signed: Mapping[str, Json]) -> str:
    """Return the page of a signed statement, which decides every byte of it.

    One report is its own page; other questions have a section each.
    """
    from heldout.drawing.page import rendered
    from heldout.questions.report import Report, answers_page

    statement = signed["statement"]
    answered = answer_of(statement)
    only = answered.releases[0] if len(answered.releases) == 1 else None
    page = (
        only.html(LEVEL, labels=answered.names)
        if isinstance(only, Report)
        else answers_page(answered)
    )
    words = rendered(
        "signed.html",
        receipt=answered.receipt,
        key=signed["key"],
        evaluation=statement["evaluation"],
        subject=statement.get("subject"),
    )
    before, end, after = page.rpartition("</main>")
    page = f"{before}{words}{end}{after}"
    before, end, after = page.rpartition("</body>")
    script = f'<script type="application/json" id="{MARK}">{_in_page(signed)}</script>'
    return f"{before}{script}{end}{after}"


def _in_page(content: object) -> str:
    """Return JSON that no page can be left from: without angle brackets and ampersands.

    >>> print(_in_page("</script>"))
    "\\u003c/script\\u003e"
    """
    text = canonical(content).decode()
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def statement_of(page: str) -> object:
    """Return the signed statement of a page, not yet verified; refuses a page without one."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    if len(reader.statements) != 1:
        raise ArgumentError(
            "This page holds no signed statement. Pages of `heldout evaluate` on one's own rows "
            "have none; a server's have one."
            if not reader.statements
            else "This page holds more than one signed statement: it was changed."
        )
    try:
        statement: object = json.loads(reader.statements[0])
    except (ValueError, RecursionError):
        raise ArgumentError("The signed statement in this page cannot be read.") from None
    return statement


class _Reader(HTMLParser):
    """Collects what stands in the marked places of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.statements: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script" and dict(attrs).get("id") == MARK
        if self._inside:
            self.statements.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.statements[-1] += data


def _check_subject(statement: Json) -> None:
    """Refuse a subject of another form, or one that its answer contradicts."""
    subject = statement.get("subject")
    if subject is None:
        return
    texts = [subject["dataset"], subject["time"], subject["server_key"]]
    texts += [model[name] for model in subject["models"] for name in ("name", "sha256")]
    texts += [subject["registration"]["declaration"], str(subject["registration"]["revision"])]
    receipt = statement["answer"]["receipt"]
    same = (subject["price"], subject["time"]) == (receipt["loss"], receipt["time"])
    if not same or not all(isinstance(text, str) for text in texts):
        raise ValueError


@dataclass(frozen=True)
class Genuine:
    """An answer that the owner of a key signed, rebuilt from the signed statement."""

    signed: Mapping[str, Json]
    answered: "Answered"

    @classmethod
    def of(cls, signed: object, *, key: str) -> Self:
        """Check a statement's signature and build its answer."""
        statement = verify(signed, key=key)
        assert isinstance(signed, Mapping)
        try:
            names = (statement["ledger"], statement["evaluation"])
            if not all(isinstance(name, str) for name in names):
                raise ValueError
            _check_subject(statement)
            return cls(signed, answer_of(statement))
        except (KeyError, TypeError, ValueError) as error:
            why = f" {error}" if isinstance(error, ArgumentError) else ""
            raise ArgumentError(f"This is not the statement of an answer.{why}") from None

    @classmethod
    def in_page(cls, page: str, *, key: str) -> Self:
        """Do the same for the statement that a page holds; the page itself is not looked at."""
        return cls.of(statement_of(page), key=key)

    @property
    def head(self) -> Json:
        """Where the ledger ended when this was booked."""
        receipt = self.answered.receipt
        ledger = self.signed["statement"]["ledger"]
        return {"ledger": ledger, "sequence": receipt.sequence, "hash": receipt.hash}

    @property
    def evaluation(self) -> str:
        return str(self.signed["statement"]["evaluation"])

    @property
    def subject(self) -> Json | None:
        """Return what the answer is about: models, data set, price, time; None in older ones."""
        return self.signed["statement"].get("subject")

    def check_model(self, file: Path) -> str:
        """Return the name of the model that a file is, if the answer is about it."""
        if self.subject is None:
            raise ArgumentError(
                "This answer does not name its model: an older version of the server signed it."
            )
        try:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise ArgumentError(f"{shown(file.name)} cannot be read ({error.strerror}).") from None
        for model in self.subject["models"]:
            if model["sha256"] == digest:
                return str(model["name"])
        known = ", ".join(
            f"{shown(one['name'])} ({one['sha256']})" for one in self.subject["models"]
        )
        raise NotGenuine(
            f"The answer is not about {shown(file.name)} ({digest}), but about {known}."
        )

    @property
    def is_read_anew(self) -> bool:
        """Return whether an older version signed noisy numbers alone, of which this one reads more.

        Its page has then other numbers than the one that was made at the time.
        """
        releases = self.answered.releases
        stored = self.answered.readings or (None,) * len(releases)
        return any(
            reads_more(release.stored_readings(), before)
            for release, before in zip(releases, stored, strict=True)
        )

    def page(self) -> str:
        """Return the page as the statement makes it."""
        return answer_page(self.signed)


def reads_more(now: Any, stored: Any) -> bool:
    """Return whether something that is read today, of a section or a group too, was not stored."""
    if now is None:
        return False
    if not isinstance(now, Mapping):
        return stored is None
    return not isinstance(stored, Mapping) or any(
        reads_more(part, stored.get(name)) for name, part in now.items()
    )
