"""The first start: tables, keys, and the administrator's sign-in link."""

import sqlalchemy as sa

from heldout.server import accounts, receipts
from heldout.server.service import Service, Settings, kept
from heldout.server.signing import Signer
from heldout.server.storage import people

__all__ = ["prepare"]

ADMINISTRATOR = "administrator"


def _hide_key(settings: Settings) -> None:
    """Move the ledger's key, which older versions kept where the web can read it."""
    old, new = settings.folder / "ledger.key", settings.private / "ledger.key"
    if old.exists() and not new.exists():
        kept(new, old.read_bytes)
        old.unlink()


def prepare(service: Service, *, worker: bool = True) -> str | None:
    """Bring everything up to date; the secret of the administrator's link on the first start."""
    service.store.migrate()
    if worker:
        _hide_key(service.settings)
    service.ledger.head()
    if service.accept_ledger:
        line = receipts.accept(service)
        print(f"The ledger is accepted as it is: {line or 'nothing is missing'}.", flush=True)
    receipts.check(service)
    if worker:
        Signer.of(service.settings.folder)
    with service.store.read() as connection:
        known = connection.execute(sa.select(people.c.name).limit(1)).first()
    if known is not None:
        return None
    return accounts.add_person(service, name=ADMINISTRATOR, role="administrator")
