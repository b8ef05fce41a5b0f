"""A second factor for people with a password: codes of an app (TOTP), and recovery codes.

The secret of the app's codes is stored encrypted, under a key in the web's folder; recovery codes
as their SHA-256, like tokens. A code opens one door once. Whoever comes through the institution's
provider shows a second factor there, and has none here.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from heldout.arguments import shown
from heldout.server.service import Conflict, Forbidden, Missing, Service, secret_in
from heldout.server.storage import Json, now, people

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

KEY: Final = "factor.key"
LATE: Final = 1
"""Codes before and after the newest that count: clocks differ by half a minute."""
RECOVERY_CODES: Final = 10
RECOVERY_BYTES: Final = 10
WRONG_CODE: Final = "The code is wrong, or was used before. Wait for the next one."


@dataclass(frozen=True)
class Offer:
    """A secret for somebody's app, before they have shown that the app has it."""

    secret: str
    address: str

    @property
    def picture(self) -> str:
        """Return the address as a QR code, for `src`."""
        import segno

        return str(segno.make(self.address, micro=False).svg_data_uri(scale=4, border=3))


def has_factor(row: Any) -> bool:
    """Return whether a person of the table has a second factor that counts."""
    return row.factor is not None and bool(row.factor["confirmed"])


def offer(service: Service, name: str) -> Offer:
    """Make a secret for a person's app; it counts once they have typed one of its codes."""
    import pyotp

    secret = pyotp.random_base32()
    sealed = _fernet(service).encrypt(secret.encode()).decode()
    factor: Json = {"secret": sealed, "confirmed": False, "step": 0, "codes": []}
    with service.store.write() as connection:
        row = _person(connection, name)
        if has_factor(row):
            raise Conflict("You have a second factor. Remove it before you set up another.")
        if row.subject is not None:
            raise Conflict("You sign in through your institution. Set up the second factor there.")
        _set(connection, name, factor)
    issuer = service.settings.known_name
    address = pyotp.TOTP(secret).provisioning_uri(name=name, issuer_name=issuer)
    return Offer(secret, address)


def confirm(service: Service, name: str, code: str) -> list[str]:
    """Let an offered factor count, once its app shows the right code; returns recovery codes."""
    made = [secrets.token_hex(RECOVERY_BYTES) for _ in range(RECOVERY_CODES)]
    with service.store.write() as connection:
        row = _person(connection, name)
        if row.factor is None or has_factor(row):
            raise Conflict("There is no second factor to confirm. Begin again.")
        step = _step_of(service, row.factor, code)
        if step is None:
            raise Forbidden(WRONG_CODE)
        changed = {"confirmed": True, "step": step, "codes": [_digest(one) for one in made]}
        _set(connection, name, row.factor | changed)
    service.note(name, "set second factor", name)
    return [f"{one[:5]}-{one[5:10]}-{one[10:15]}-{one[15:]}" for one in made]


def use(service: Service, connection: sa.Connection, row: Any, code: str) -> bool:
    """Use up a code of a person's app, or a recovery code; the transaction is a writer's."""
    factor: Json = row.factor
    digest = _digest(code.replace("-", "").replace(" ", "").lower())
    fitting = [one for one in factor["codes"] if hmac.compare_digest(one, digest)]
    if fitting:
        left = [one for one in factor["codes"] if one not in fitting]
        _set(connection, row.name, factor | {"codes": left})
        return True
    step = _step_of(service, factor, code)
    if step is None:
        return False
    _set(connection, row.name, factor | {"step": step})
    return True


def remove(connection: sa.Connection, name: str) -> None:
    """Take a person's second factor away; whoever may do so was asked before."""
    _person(connection, name)
    _set(connection, name, None)


def codes_left(service: Service, name: str) -> int | None:
    """Return how many recovery codes a person has; None without a second factor."""
    with service.store.read() as connection:
        row = _person(connection, name)
    return len(row.factor["codes"]) if has_factor(row) else None


def _step_of(service: Service, factor: Json, code: str) -> int | None:
    """Return the half minute that a code belongs to, if it is right and was not used."""
    import pyotp
    from cryptography.fernet import InvalidToken

    try:
        secret = _fernet(service).decrypt(factor["secret"].encode()).decode()
    except InvalidToken:  # the key is another: whoever runs the server takes the factor away
        return None
    totp = pyotp.TOTP(secret)
    newest = totp.timecode(datetime.fromtimestamp(now(), UTC))
    typed = code.replace(" ", "").encode()
    fitting = [
        step
        for step in range(newest - LATE, newest + LATE + 1)
        if hmac.compare_digest(totp.generate_otp(step).encode(), typed)
    ]
    return next((step for step in fitting if step > factor["step"]), None)


def _fernet(service: Service) -> "Fernet":
    from cryptography.fernet import Fernet

    return Fernet(secret_in(service.settings.folder / KEY, Fernet.generate_key))


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


def _person(connection: sa.Connection, name: str) -> sa.Row[Any]:
    row = connection.execute(sa.select(people).where(people.c.name == name)).first()
    if row is None:
        raise Missing(f"There is no person {shown(name)}.")
    return row


def _set(connection: sa.Connection, name: str, factor: Json | None) -> None:
    value = sa.null() if factor is None else factor
    connection.execute(people.update().where(people.c.name == name).values(factor=value))
