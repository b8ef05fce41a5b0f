"""The first start: tables, keys, and the administrator's sign-in link."""

import sqlalchemy as sa

from heldout.server import accounts
from heldout.server.service import Service
from heldout.server.signing import Signer
from heldout.server.storage import people

__all__ = ["prepare"]

ADMINISTRATOR = "administrator"


def prepare(service: Service, *, worker: bool = True) -> str | None:
    """Bring everything up to date; the secret of the administrator's link on the first start."""
    service.store.migrate()
    service.ledger.head()
    if worker:
        Signer.of(service.settings.folder)
    with service.store.read() as connection:
        known = connection.execute(sa.select(people.c.name).limit(1)).first()
    if known is not None:
        return None
    return accounts.add_person(service, name=ADMINISTRATOR, role="administrator")
