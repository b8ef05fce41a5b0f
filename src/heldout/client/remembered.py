"""Where a server's ledger was seen to end: a ledger that is put back later is noticed."""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heldout.errors import ArgumentError, LedgerTampered

__all__ = ["Heads", "not_put_back"]

Head = Mapping[str, Any]
"""The ledger's id, and the number and the hash of its last entry."""


def not_put_back(*, seen: Head, now: Head) -> None:
    """Refuse a ledger that ends before the place where it was seen to end."""
    if now["ledger"] != seen["ledger"]:
        raise LedgerTampered("The server has another ledger than before.")
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
            found = json.loads(self._place.read_text(encoding="ascii"))
            for each in found.values():
                if (type(each["sequence"]), type(each["hash"]), type(each["ledger"])) != (
                    int,
                    str,
                    str,
                ):
                    raise ValueError
        except (OSError, ValueError, AttributeError, KeyError, TypeError):
            raise ArgumentError(
                "heads must be a file that this client wrote. Without it a ledger that was put "
                "back goes unnoticed, so it is not replaced."
            ) from None
        return dict(found)
