"""People, their roles, passwords and tokens.

A token is random, shown once, stored as its SHA-256, scoped, expiring and revocable. It is an
"api" token for programs, a "browser" session, or a "link" that signs somebody in once.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from heldout.arguments import shown
from heldout.errors import ArgumentError
from heldout.privacy.books import checked_name
from heldout.server.service import (
    Conflict,
    Forbidden,
    Missing,
    Service,
    TooMany,
    checked_path_name,
)
from heldout.server.storage import new_id, now, people, tokens

__all__ = [
    "ROLES",
    "SCOPES",
    "Person",
    "add_person",
    "change_password",
    "disable",
    "everyone",
    "list_tokens",
    "make_token",
    "new_link",
    "of_token",
    "revoke_token",
    "sign_in",
    "sign_in_by_link",
]

ROLES: Final = ("custodian", "analyst", "auditor", "administrator")
SCOPES: Final = ("read", "ask", "manage")
"""Look; submit, quote and ask; change what others may do. A browser session has all of them."""
DAY: Final = 86400
LIVES: Final = {"api": 90 * DAY, "browser": 12 * 3600, "link": 7 * DAY}
LONGEST: Final = 366 * DAY
SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 128
FREE_FAILURES: Final = 5
MOST_STRANGERS: Final = 10_000
BY_LINK: Final = "browser, by a link"
WRONG = "Name or password is wrong."


@dataclass(frozen=True)
class Person:
    """Who is asking, and by which token."""

    name: str
    role: str
    token: str
    kind: str
    scopes: tuple[str, ...]

    def must_be(self, *roles: str, scope: str = "read") -> None:
        if self.role not in roles:
            raise Forbidden(f"This is for {' or '.join(roles)} only; you are {self.role}.")
        if scope not in self.scopes:
            raise Forbidden(f"This token lacks the scope {scope!r}. Make one that has it.")


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


# --- people --------------------------------------------------------------------------------------


def add_person(service: Service, *, name: str, role: str) -> str:
    """A new person; returns the secret of a link by which they sign in for the first time."""
    checked_path_name("name", name)
    if role not in ROLES:
        raise ArgumentError(f"role must be one of {', '.join(ROLES)}, got {shown(role)}.")
    with service.store.write() as connection:
        if connection.execute(sa.select(people).where(people.c.name == name)).first():
            raise Conflict(f"There is a person {shown(name)} already. Choose another name.")
        row = {"name": name, "role": role, "password": None, "created": now()}
        connection.execute(people.insert(), row)
    return new_link(service, name)


def new_link(service: Service, name: str) -> str:
    """The secret of a link that signs a person in once; earlier links no longer do."""
    with service.store.write() as connection:
        found = connection.execute(sa.select(people).where(people.c.name == name)).first()
        if found is None or found.disabled is not None:
            raise Missing(f"There is no person {shown(name)}.")
        old = (tokens.c.person == name) & (tokens.c.kind == "link") & tokens.c.revoked.is_(None)
        connection.execute(tokens.update().where(old).values(revoked=now()))
        return _add_token(connection, name, kind="link", label="sign-in link", scopes=())[1]


def everyone(service: Service) -> list[dict[str, Any]]:
    with service.store.read() as connection:
        rows = connection.execute(sa.select(people).order_by(people.c.name)).all()
    return [
        {
            "name": row.name,
            "role": row.role,
            "created": row.created,
            "disabled": row.disabled is not None,
            "password": row.password is not None,
        }
        for row in rows
    ]


def disable(service: Service, name: str) -> None:
    """Nothing of this person's opens any door from now on; what they asked stays on record."""
    with service.store.write() as connection:
        done = connection.execute(
            people.update()
            .where(people.c.name == name, people.c.disabled.is_(None))
            .values(disabled=now())
        )
        if done.rowcount != 1:
            raise Missing(f"There is no person {shown(name)}.")
        connection.execute(
            tokens.update()
            .where(tokens.c.person == name, tokens.c.revoked.is_(None))
            .values(revoked=now())
        )


# --- signing in ----------------------------------------------------------------------------------


def _hasher() -> Any:
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _nobodys() -> str:
    """A digest that no password fits, so that a name that nobody has takes as long to refuse."""
    return str(_hasher().hash(secrets.token_hex(16)))


def change_password(service: Service, person: Person, password: str, *, current: str = "") -> None:
    """Set the password and end every other browser session of this person.

    Whoever signed in by the one they have says it again; by a link, they may have forgotten it.
    """
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise ArgumentError(
            f"password must have {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters. A sentence "
            "will do."
        )
    with service.store.read() as connection:
        by_link = sa.select(tokens.c.id).where(
            tokens.c.id == person.token, tokens.c.label == BY_LINK
        )
        known = sa.select(people.c.password).where(people.c.name == person.name)
        must_say = connection.execute(known).scalar() is not None
        must_say = must_say and connection.execute(by_link).first() is None
    if must_say and not _fits(service, person.name, current):
        raise Forbidden("The current password is wrong.")
    hashed = _hasher().hash(password)
    others = (tokens.c.person == person.name) & (tokens.c.kind != "api")
    others &= (tokens.c.id != person.token) & tokens.c.revoked.is_(None)
    with service.store.write() as connection:
        change = people.update().where(people.c.name == person.name)
        connection.execute(change.values(password=hashed, failures=0, retry=0.0))
        connection.execute(tokens.update().where(others).values(revoked=now()))


def sign_in(service: Service, *, name: str, password: str) -> str:
    """The secret of a browser session. Each failure after a few makes the next one wait longer."""
    if not _fits(service, name, password):
        raise Forbidden(WRONG)
    with service.store.write() as connection:
        mine = people.update().where(people.c.name == name)
        connection.execute(mine.values(failures=0, retry=0.0))
        return _add_token(connection, name, kind="browser", label="browser", scopes=SCOPES)[1]


def _fits(service: Service, name: str, password: str) -> bool:
    """Whether it is this person's password; a try that is counted."""
    from argon2.exceptions import Argon2Error, InvalidHashError

    found = _counted_try(service, name)
    usable = found is not None and found.password is not None and found.disabled is None
    known = found.password if usable and found is not None else _nobodys()
    try:
        return bool(_hasher().verify(known, password[: LONGEST_PASSWORD + 1])) and usable
    except (Argon2Error, InvalidHashError):
        return False


def _counted_try(service: Service, name: str) -> Any:
    """Who it would be. A try is counted before it is looked at: of many at once, each counts.

    Names that nobody has are counted too, so that waiting tells nothing of who is there.
    """
    with service.store.write() as connection:
        found = connection.execute(sa.select(people).where(people.c.name == name)).first()
        tries, retry = service.strangers.get(name, (0, 0.0))
        if found is not None:
            tries, retry = found.failures, found.retry
        if retry > now():
            wait = int(retry - now()) + 1
            raise TooMany(f"Too many wrong passwords. Try again in {wait} seconds.", wait)
        tries += 1
        retry = now() + (min(2 ** (tries - FREE_FAILURES), 300) if tries >= FREE_FAILURES else 0)
        if found is None:
            if len(service.strangers) >= MOST_STRANGERS:
                service.strangers.clear()
            service.strangers[name] = (tries, retry)
        else:
            mine = people.update().where(people.c.name == name)
            connection.execute(mine.values(failures=tries, retry=retry))
    return found


def sign_in_by_link(service: Service, secret: str) -> str:
    """Use up a link; the secret of a browser session."""
    link = of_token(service, secret, kind="link")
    if link is None:
        raise Forbidden("This link was used before, or is too old. Ask for another one.")
    with service.store.write() as connection:
        used = tokens.update().where(tokens.c.id == link.token, tokens.c.revoked.is_(None))
        if connection.execute(used.values(revoked=now())).rowcount != 1:
            raise Forbidden("This link was used before, or is too old. Ask for another one.")
        named = {"kind": "browser", "label": BY_LINK, "scopes": SCOPES}
        return _add_token(connection, link.name, **named)[1]  # type: ignore[arg-type]


# --- tokens --------------------------------------------------------------------------------------


def make_token(
    service: Service,
    person: Person,
    *,
    label: str,
    scopes: Sequence[str] = SCOPES,
    days: float = LIVES["api"] / DAY,
) -> dict[str, Any]:
    """A new token for programs; its secret is in the answer and nowhere else, ever."""
    checked_name("label", label)
    unknown = [each for each in scopes if each not in SCOPES]
    if unknown or not scopes:
        raise ArgumentError(f"scopes must be some of {', '.join(SCOPES)}, got {shown(scopes)}.")
    beyond = [each for each in scopes if each not in person.scopes]
    if beyond:
        raise Forbidden(f"A token cannot give more than the one that makes it: {beyond[0]!r}.")
    if not 0 < days * DAY <= LONGEST:
        raise ArgumentError(f"days must be above 0 and at most 366, got {shown(days)}.")
    with service.store.write() as connection:
        row, secret = _add_token(
            connection, person.name, kind="api", label=label, scopes=scopes, lives=days * DAY
        )
    return _shown_token(row) | {"token": secret}


def list_tokens(service: Service, person: Person) -> list[dict[str, Any]]:
    query = sa.select(tokens).where(tokens.c.person == person.name, tokens.c.kind == "api")
    with service.store.read() as connection:
        rows = connection.execute(query.order_by(tokens.c.created)).mappings().all()
    return [_shown_token(dict(row)) for row in rows if row["revoked"] is None]


def revoke_token(service: Service, person: Person, token: str) -> None:
    mine = tokens.update().where(tokens.c.id == token, tokens.c.person == person.name)
    with service.store.write() as connection:
        done = connection.execute(mine.where(tokens.c.revoked.is_(None)).values(revoked=now()))
    if done.rowcount != 1:
        raise Missing("There is no such token of yours.")


def of_token(service: Service, secret: str, *, kind: str) -> Person | None:
    """Whose token it is, if it is one that still opens doors."""
    query = sa.select(tokens, people.c.role, people.c.disabled).join_from(
        tokens, people, tokens.c.person == people.c.name
    )
    with service.store.read() as connection:
        found = connection.execute(query.where(tokens.c.digest == digest_of(secret))).first()
    if found is None or found.kind != kind or found.revoked is not None:
        return None
    if found.expires <= now() or found.disabled is not None:
        return None
    return Person(found.person, found.role, found.id, found.kind, tuple(found.scopes))


def _add_token(
    connection: sa.Connection,
    person: str,
    *,
    kind: str,
    label: str,
    scopes: Sequence[str],
    lives: float | None = None,
) -> tuple[dict[str, Any], str]:
    secret = f"heldout_{secrets.token_urlsafe(32)}"
    row = {
        "id": new_id(),
        "person": person,
        "kind": kind,
        "digest": digest_of(secret),
        "label": label,
        "scopes": list(scopes),
        "created": now(),
        "expires": now() + (LIVES[kind] if lives is None else lives),
        "revoked": None,
    }
    connection.execute(tokens.insert(), row)
    return row, secret


def _shown_token(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("id", "label", "scopes", "created", "expires")}
