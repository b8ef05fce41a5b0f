"""Is this page what the server signed? Checked with its public key alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from heldout.errors import ArgumentError
from heldout.questions.answers import Answered
from heldout.server.answer_page import answer_page, statement_of
from heldout.server.signing import verify

__all__ = ["Genuine", "key_of"]


@dataclass(frozen=True)
class Genuine:
    """An answer that the owner of a key signed, rebuilt from the signed statement."""

    signed: Mapping[str, Any]
    answered: Answered

    @classmethod
    def of(cls, signed: Any, *, key: str) -> Self:
        """Check a statement's signature and build its answer."""
        statement = verify(signed, key=key)
        try:
            names = (statement["ledger"], statement["evaluation"])
            if not all(isinstance(each, str) for each in names):
                raise ValueError
            found = cls(signed, Answered.from_dict(statement["answer"]))
        except (KeyError, TypeError, ValueError) as error:
            why = f" {error}" if isinstance(error, ArgumentError) else ""
            raise ArgumentError(f"This is not the statement of an answer.{why}") from None
        return found

    @classmethod
    def in_page(cls, page: str, *, key: str) -> Self:
        """The same for the statement that a page holds; the page itself is not looked at."""
        return cls.of(statement_of(page), key=key)

    @property
    def head(self) -> dict[str, Any]:
        """Where the ledger ended when this was booked."""
        receipt = self.answered.receipt
        ledger = self.signed["statement"]["ledger"]
        return {"ledger": ledger, "sequence": receipt.sequence, "hash": receipt.hash}

    @property
    def evaluation(self) -> str:
        return str(self.signed["statement"]["evaluation"])

    def page(self) -> str:
        """The page as the statement makes it."""
        return answer_page(self.signed)


def key_of(given: str) -> str:
    """A public key from its text, or from a file that holds it."""
    place = Path(given)
    try:
        return place.read_text(encoding="ascii").strip() if place.is_file() else given
    except (OSError, ValueError):
        raise ArgumentError("The file of the server's key cannot be read.") from None
