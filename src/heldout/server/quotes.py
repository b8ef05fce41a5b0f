"""Quotes that can be held against the server: signed, for one person, good for a while."""

import secrets
from collections.abc import Mapping
from typing import Any

from heldout.server.accounts import Person
from heldout.server.evaluations import quote
from heldout.server.service import Conflict, Service, kept

__all__ = ["opened", "secret_of", "signed"]


def secret_of(service: Service, name: str = "web.key") -> str:
    """The web's own secret, made at first start; whoever is first makes it."""
    path = service.settings.folder / name
    return kept(path, lambda: secrets.token_hex(32).encode()).decode()


def _serializer(service: Service) -> Any:
    from itsdangerous import URLSafeTimedSerializer

    return URLSafeTimedSerializer(secret_of(service), salt="quote")


def signed(
    service: Service, person: Person, dataset: str, content: Any, guess: Mapping[str, Any]
) -> dict[str, Any]:
    """A quote as JSON, and the text that stands for it."""
    found = quote(service, person, dataset, content, guess).public()
    agreed = {
        "person": person.name,
        "dataset": dataset,
        "questions": content,
        "loss": found["loss"],
    }
    text = _serializer(service).dumps(agreed)
    return found | {"quote": text, "valid_seconds": service.settings.quote_seconds}


def opened(service: Service, person: Person, text: str) -> dict[str, Any]:
    """What was agreed to; refuses a text that is another's, changed or too old."""
    from itsdangerous import BadSignature

    try:
        found: dict[str, Any] = _serializer(service).loads(
            text, max_age=service.settings.quote_seconds
        )
    except BadSignature:
        raise Conflict("This quote is too old, or was changed. Ask for another one.") from None
    if found["person"] != person.name:
        raise Conflict("This quote was made for somebody else. Ask for one of your own.")
    return found
