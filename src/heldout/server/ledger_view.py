"""The books, as custodians, auditors and analysts may see them."""

from typing import Any

from heldout.errors import LedgerTampered
from heldout.server import logs, receipts
from heldout.server.accounts import Person
from heldout.server.datasets import seen, visible
from heldout.server.service import Forbidden, Service

__all__ = ["entries", "head", "log_of", "verify"]


def entries(service: Service, person: Person, dataset: str | None) -> list[dict[str, Any]]:
    """Every entry of the ledger that a person may see, in order."""
    chosen = visible(service, person) if dataset is None else [seen(service, person, dataset)]
    names = [each.name for each in chosen if each.about is not None]  # others have no account
    found = {
        entry.sequence: _shown(name, entry)
        for name in names
        for entry in service.ledger.history(name)
    }
    return [found[each] for each in sorted(found)]


def _shown(dataset: str, entry: Any) -> dict[str, Any]:
    content = entry.content
    request = content.get("request", {})
    return {
        "sequence": entry.sequence,
        "kind": content["kind"],
        "dataset": dataset,
        "analyst": content.get("analyst"),
        "time": content["time"],
        "hash": entry.hash,
        "charge": content.get("charge"),
        "budget": content.get("budget"),
        "questions": request.get("questions"),
        "evaluation": request.get("reference"),
        "who": content.get("who"),
        "why": content.get("why"),
    }


def head(service: Service) -> dict[str, Any]:
    """Where the chain ends."""
    return dict(vars(service.ledger.head()))


def verify(service: Service, person: Person, receipt: str | None) -> dict[str, Any]:
    """Check the chain from its first entry; an analyst learns of a receipt only."""
    if person.role == "analyst" and receipt is None:
        raise Forbidden("Name the receipt to look for: ?receipt=HASH.")
    try:
        receipts.check(service)
        found = service.ledger.verify(receipt=receipt).as_dict()
    except LedgerTampered as error:
        return {"intact": False, "words": str(error)}
    if person.role == "analyst":
        found = {"receipt_sequence": found["receipt_sequence"], "ledger": found["ledger"]}
    return {"intact": True, "words": "Every entry is as it was written."} | found


def log_of(service: Service, person: Person, before: int | None) -> list[dict[str, Any]]:
    """The access log: all of it for an auditor, of a custodian what was done in their name.

    Not by subject: a data set may be called what the log calls something else, and only its
    custodian changes it.
    """
    lines = logs.entries(service, before=before)
    if person.role == "auditor":
        return lines
    return [each for each in lines if each["person"] == person.name]
