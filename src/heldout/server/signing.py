"""The workers' signature: whoever has the public key can check an answer without the server."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heldout.errors import ArgumentError, NotGenuine, PrivacyError
from heldout.server.service import kept

__all__ = ["Signer", "canonical", "verify"]

FIELDS = {"statement", "signature", "key"}


def canonical(content: Any) -> bytes:
    """One text for one content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


class Signer:
    """An Ed25519 key in a file that only workers may read; its public half lies beside it."""

    def __init__(self, key: Any) -> None:
        self._key = key

    @classmethod
    def of(cls, folder: Path) -> "Signer":
        """The key of a server's folder, made at first start; whoever is first makes it."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        path = folder / "private" / "signing.key"
        made = kept(
            path, lambda: base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw())
        )
        try:
            raw = base64.b64decode(made, validate=True)
            found = cls(Ed25519PrivateKey.from_private_bytes(raw))
        except ValueError:
            raise PrivacyError(f"The signing key '{path}' cannot be read.") from None
        (folder / "signing.pub").write_text(found.public + "\n", encoding="ascii")
        return found

    @property
    def public(self) -> str:
        """The public key, as people pass it on."""
        return base64.b64encode(self._key.public_key().public_bytes_raw()).decode()

    def sign(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        signature = self._key.sign(canonical(statement))
        return {
            "statement": dict(statement),
            "signature": base64.b64encode(signature).decode(),
            "key": self.public,
        }


def verify(signed: Any, *, key: str) -> dict[str, Any]:
    """The statement, if the owner of `key` signed it; refuses everything else."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not isinstance(signed, Mapping) or set(signed) != FIELDS:
        raise ArgumentError("A signed statement has a statement, a signature and a key.")
    try:
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key.strip(), validate=True))
    except (ValueError, AttributeError):
        raise ArgumentError("key must be a server's public key: 44 characters of base64.") from None
    try:
        signature = base64.b64decode(signed["signature"], validate=True)
        public.verify(signature, canonical(signed["statement"]))
    except (InvalidSignature, ValueError, TypeError):
        raise NotGenuine(
            "The signature does not fit: the statement was changed, or another server made it."
        ) from None
    found: dict[str, Any] = signed["statement"]
    return found
