"""People, their roles, passwords and tokens.

A token is random, shown once, stored as its SHA-256, scoped, expiring and revocable. It is an
"api" token for programs, a "browser" session, or a "link" that signs somebody in once.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from heldout.arguments import shown
from heldout.errors import ArgumentError
from heldout.kernel.ledger.records import checked_name
from heldout.server import factors
from heldout.server.provider import Identity
from heldout.server.service import (
    Conflict,
    Forbidden,
    Missing,
    Service,
    TooMany,
    checked_path_name,
    checked_person_name,
)
from heldout.server.settings import ROLES
from heldout.server.storage import Json, new_id, now, people, tokens, tries

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SCOPES: Final = ("read", "ask", "manage")
"""Look; submit, quote and ask; change what others may do. A browser session has all of them."""
DAY: Final = 86400
LIVES: Final = {"api": 90 * DAY, "browser": 12 * 3600, "link": 7 * DAY}
LONGEST: Final = 366 * DAY
SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 128
FREE_FAILURES: Final = 5
FORGOTTEN: Final = 3600
"""Seconds after which a try no longer counts: far more than the longest wait."""
BY_LINK: Final = "browser, by a link"
BY_PROVIDER: Final = "browser, by the provider"
BROWSER: Final[Json] = {"kind": "browser", "label": "browser", "scopes": SCOPES}
WRONG = "Name, password or code is wrong."
CODES: Final = "code"
"""In place of an address: wrong codes after a right password count wherever they come from."""
NO_ROLE: Final = (
    "Your institution gives you no role on this server. Ask whoever looks after it for one."
)


@dataclass(frozen=True)
class Person:
    """Who is asking, and by which token."""

    name: str
    role: str
    token: str
    kind: str
    scopes: tuple[str, ...]
    lacks_factor: bool = False
    """Whether this role must set up a second factor first."""

    def must_be(self, *roles: str, scope: str = "read") -> None:
        if self.role not in roles:
            raise Forbidden(f"This is for {' or '.join(roles)} only; you are {self.role}.")
        if scope not in self.scopes:
            raise Forbidden(f"This token lacks the scope {scope!r}. Make one that has it.")


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


# --- people --------------------------------------------------------------------------------------


def add_person(service: Service, *, name: str, role: str, by: Person | None = None) -> str:
    """Add a person; returns the secret of a link by which they sign in for the first time."""
    _check_administrator(by)
    checked_person_name(name)
    if role not in ROLES:
        raise ArgumentError(f"role must be one of {', '.join(ROLES)}, got {shown(role)}.")
    with service.store.write() as connection:
        if (other := _like(connection, name)) is not None:
            raise Conflict(f"There is a person {shown(other)} already. Choose another name.")
        row = {"name": name, "role": role, "password": None, "created": now()}
        connection.execute(people.insert(), row)
        secret = _link(connection, name)
    if by is not None:
        service.note(by.name, "add person", name)
    return secret


def _like(connection: sa.Connection, name: str) -> str | None:
    """Return who has this name, in capital letters or small ones: people would mix them up."""
    known = connection.execute(sa.select(people.c.name)).scalars()
    return next((other for other in known if other.casefold() == name.casefold()), None)


def new_link(service: Service, name: str, *, by: Person | None = None) -> str:
    """Return the secret of a link that signs a person in once; earlier links no longer do.

    Whoever comes through the provider shows a second factor there, which a link would go around:
    only a command on the server's machine makes one for them.
    """
    _check_administrator(by)
    with service.store.write() as connection:
        person = connection.execute(sa.select(people).where(people.c.name == name)).first()
        if person is None or person.disabled is not None:
            raise Missing(f"There is no person {shown(name)}.")
        if by is not None and person.subject is not None:
            raise Conflict(
                f"{shown(name)} signs in through the provider, and in no other way. Disconnect "
                "them first."
            )
        old = (tokens.c.person == name) & (tokens.c.kind == "link")
        connection.execute(_still_open(old).values(revoked=now()))
        secret = _link(connection, name)
    if by is not None:
        service.note(by.name, "make link", name)
    return secret


def administrator_link(
    service: Service, name: str | None = None, *, reset_factor: bool = False
) -> tuple[str, str]:
    """Return an administrator and the secret of a new link for them; for a command on the machine.

    Without a name it is the first who is not disabled; where none is left, one is added.
    """
    query = sa.select(people.c.name).where(people.c.role == "administrator")
    query = query.where(people.c.disabled.is_(None)).order_by(people.c.created, people.c.name)
    known = [row.name for row in service.store.rows(query)]
    taken = {row.name for row in service.store.rows(sa.select(people.c.name))}
    if name is not None and name not in known:
        raise Missing(f"There is no administrator {shown(name)}.")
    if known:
        name = name or known[0]
        if reset_factor:
            clear_factor(service, name)
        secret = new_link(service, name)
    else:
        free = (
            "administrator",
            *(f"administrator-{number}" for number in range(2, len(taken) + 3)),
        )
        name = next(one for one in free if one not in taken)
        secret = add_person(service, name=name, role="administrator")
    service.note(None, "make link", f"{name}, by a command on the server's machine")
    return name, secret


def _check_administrator(by: Person | None) -> None:
    """Refuse whoever is no administrator; None is a command on the server's own machine."""
    if by is not None:
        by.must_be("administrator", scope="manage")


def _link(connection: sa.Connection, name: str) -> str:
    return _add_token(connection, name, kind="link", label="sign-in link", scopes=())[1]


def everyone(service: Service) -> list[Json]:
    return [
        {
            "name": row.name,
            "role": row.role,
            "created": row.created,
            "disabled": row.disabled is not None,
            "password": row.password is not None,
            "second_factor": factors.has_factor(row),
            "provider": row.subject is not None,
        }
        for row in service.store.rows(sa.select(people).order_by(people.c.name))
    ]


def disable(service: Service, name: str, *, by: Person | None = None) -> None:
    """Open no door to this person from now on; what they asked stays on record.

    Nobody disables themself, and of all administrators one who can sign in stays.
    """
    _check_administrator(by)
    if by is not None and name == by.name:
        raise Forbidden("You cannot disable yourself. Let another administrator do it.")
    with service.store.write() as connection:
        role = connection.execute(sa.select(people.c.role).where(people.c.name == name)).scalar()
        if role == "administrator":
            _check_other_administrator(connection, name)
        done = connection.execute(
            people.update()
            .where(people.c.name == name, people.c.disabled.is_(None))
            .values(disabled=now())
        )
        if done.rowcount != 1:
            raise Missing(f"There is no person {shown(name)}.")
        connection.execute(_still_open(tokens.c.person == name).values(revoked=now()))
    if by is not None:
        service.note(by.name, "disable", name)


def _check_other_administrator(connection: sa.Connection, name: str) -> None:
    """Refuse to lose the last administrator who signs in here without anybody's help."""
    others = (people.c.role == "administrator") & people.c.disabled.is_(None)
    others &= (people.c.name != name) & people.c.password.is_not(None)
    if connection.execute(sa.select(people.c.name).where(others).limit(1)).first() is None:
        raise Conflict(
            f"{shown(name)} is the last administrator: no other one has set a password. Add "
            "another, let them set their password, and try again."
        )


# --- signing in ----------------------------------------------------------------------------------


def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _nobodys() -> str:
    """Return a digest that no password fits: a name that nobody has takes as long to refuse."""
    return str(_hasher().hash(secrets.token_hex(16)))


def change_password(service: Service, person: Person, password: str, *, current: str = "") -> str:
    """Set the password and end every session, token and link of this person, this one too.

    Whoever signed in by the one they have says it again; by a link, they may have forgotten it.
    Returns the secret of a new session.
    """
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise ArgumentError(
            f"password must have {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters. A sentence "
            "will do."
        )
    if is_connected(service, person.name):
        raise Forbidden("You sign in through your institution, and have no password here.")
    _check_current(service, person, current)
    with service.hashing():
        hashed = _hasher().hash(password)
    with service.store.write() as connection:
        change = people.update().where(people.c.name == person.name)
        connection.execute(change.values(password=hashed))
        everything = tokens.c.person == person.name
        connection.execute(_still_open(everything).values(revoked=now()))
        connection.execute(tries.delete().where(tries.c.name == digest_of(person.name)))
        secret = _add_token(connection, person.name, **BROWSER)[1]
    service.note(person.name, "set password", person.name)
    return secret


def _check_current(service: Service, person: Person, password: str) -> None:
    """Refuse whoever does not say the password they have, unless a link stands for it."""
    mine = (tokens.c.id == person.token) & (tokens.c.label == BY_LINK)
    by_link = service.store.row(sa.select(tokens.c.id).where(mine)) is not None
    known = service.store.row(sa.select(people.c.password).where(people.c.name == person.name))
    if known is not None and known.password is not None and not by_link:
        _check_password(service, person, password)


def _check_password(service: Service, person: Person, password: str) -> None:
    """Refuse a session whose user does not know the password of the person it belongs to."""
    # An open session that is not its owner's guesses on an account of its own.
    own = f"session {person.token}"
    if not _fits(service, person.name, password, own):
        raise Forbidden("The current password is wrong.")
    service.store.change(tries.delete().where(_tried(person.name, own)))


def sign_in(
    service: Service, *, name: str, password: str, code: str = "", address: str = ""
) -> str:
    """Return the secret of a browser session. Failures after a few make the next one wait longer.

    Failures count by name and address: a stranger's guesses do not lock the owner out. Whoever has
    a second factor types its code as well; that the password was right is not said.
    """
    fits = _fits(service, name, password, address)
    if fits:
        _count_code(service, name)
    with service.store.write() as connection:
        row = connection.execute(sa.select(people).where(people.c.name == name)).first()
        if fits and row is not None and _code_fits(service, connection, row, code):
            connection.execute(tries.delete().where(_tried(name, address)))
            return _add_token(connection, name, **BROWSER)[1]
    raise Forbidden(WRONG)


def _code_fits(service: Service, connection: sa.Connection, row: sa.Row[Any], code: str) -> bool:
    """Return whether a person needs no code, or typed a right one, which is then used up."""
    if row.disabled is not None:
        return False
    if factors.has_factor(row) and not factors.use(service, connection, row, code):
        return False
    connection.execute(tries.delete().where(_tried(row.name, CODES)))
    return True


def _count_code(service: Service, name: str) -> None:
    """Count a try of a code before it is looked at: of many at once, each counts."""
    if factors.codes_left(service, name) is not None:
        _counted_try(service, name, CODES)


def _fits(service: Service, name: str, password: str, address: str) -> bool:
    """Return whether it is this person's password; a try that is counted."""
    from argon2.exceptions import Argon2Error, InvalidHashError

    with service.hashing():
        known = _counted_try(service, name, address)
        usable = known is not None and known.password is not None and known.disabled is None
        digest = known.password if usable and known is not None else _nobodys()
        try:
            return bool(_hasher().verify(digest, password[: LONGEST_PASSWORD + 1])) and usable
        except (Argon2Error, InvalidHashError):
            return False


def _tried(name: str, address: str) -> sa.ColumnElement[bool]:
    return (tries.c.name == digest_of(name)) & (tries.c.address == address)


def _may_try(old: sa.Row[Any] | None) -> None:
    if old is not None and old.retry > now():
        wait = int(old.retry - now()) + 1
        raise TooMany(f"Too many wrong passwords. Try again in {wait} seconds.", wait)


def _counted_try(service: Service, name: str, address: str) -> sa.Row[Any] | None:
    """Return who it would be. A try counts before it is looked at: of many at once, each counts.

    Names that nobody has are counted too, so that waiting tells nothing of who is there.
    """
    with service.store.write() as connection:
        connection.execute(tries.delete().where(tries.c.time < now() - FORGOTTEN))
        old = connection.execute(sa.select(tries).where(_tried(name, address))).first()
        _may_try(old)
        count = 1 if old is None else old.failures + 1
        retry = now() + (min(2 ** (count - FREE_FAILURES), 300) if count >= FREE_FAILURES else 0)
        row = {"failures": count, "retry": retry, "time": now()}
        if old is None:
            row |= {"name": digest_of(name), "address": address}
            connection.execute(tries.insert(), row)
        else:
            connection.execute(tries.update().where(_tried(name, address)).values(row))
        return connection.execute(sa.select(people).where(people.c.name == name)).first()


def sign_in_by_link(service: Service, secret: str, *, code: str = "") -> str:
    """Use up a link; returns the secret of a browser session.

    A link stands for the password, not for the second factor. A wrong code leaves it as it is.
    """
    gone = "This link was used before, or is too old. Ask for another one."
    link = of_token(service, secret, kind="link")
    if link is None:
        raise Forbidden(gone)
    _count_code(service, link.name)
    with service.store.write() as connection:
        used = tokens.update().where(tokens.c.id == link.token, tokens.c.revoked.is_(None))
        row = connection.execute(sa.select(people).where(people.c.name == link.name)).one()
        if _code_fits(service, connection, row, code):
            if connection.execute(used.values(revoked=now())).rowcount != 1:
                raise Forbidden(gone)
            return _add_token(connection, link.name, **BROWSER | {"label": BY_LINK})[1]
    raise Forbidden(factors.WRONG_CODE)


# --- the second factor ---------------------------------------------------------------------------


def offer_factor(service: Service, person: Person, *, password: str) -> factors.Offer:
    """Offer a secret for an app to whoever knows the password."""
    _check_password(service, person, password)
    return factors.offer(service, person.name)


def confirm_factor(service: Service, person: Person, code: str) -> list[str]:
    """Let the factor count, and end whatever was opened without it; returns recovery codes.

    That is every other session, token and link of this person.
    """
    _counted_try(service, person.name, CODES)
    codes = factors.confirm(service, person.name, code)
    others = (tokens.c.person == person.name) & (tokens.c.id != person.token)
    with service.store.write() as connection:
        connection.execute(_still_open(others).values(revoked=now()))
        connection.execute(tries.delete().where(_tried(person.name, CODES)))
    return codes


def remove_factor(service: Service, person: Person, *, password: str, code: str) -> None:
    """Take one's own second factor away, with password and code."""
    _check_password(service, person, password)
    _count_code(service, person.name)
    with service.store.write() as connection:
        row = connection.execute(sa.select(people).where(people.c.name == person.name)).one()
        fits = factors.has_factor(row) and _code_fits(service, connection, row, code)
        if fits:
            factors.remove(connection, person.name)
    if not fits:
        raise Forbidden(factors.WRONG_CODE)
    service.note(person.name, "remove second factor", person.name)


def clear_factor(service: Service, name: str, *, by: Person | None = None) -> None:
    """Take the second factor of somebody who lost it away, and end all their sessions and tokens.

    An administrator does it for others, never for themself: that takes password and code, or a
    command on the server's machine.
    """
    _check_administrator(by)
    if by is not None and by.name == name:
        raise Forbidden("Remove your own second factor on the page of your account, with a code.")
    with service.store.write() as connection:
        factors.remove(connection, name)
        connection.execute(_still_open(tokens.c.person == name).values(revoked=now()))
        connection.execute(tries.delete().where(_tried(name, CODES)))
    where = "by a command on the server's machine"
    service.note(None if by is None else by.name, "reset second factor",
                 name if by is not None else f"{name}, {where}")  # fmt: skip


# --- through the institution ---------------------------------------------------------------------


def sign_in_by_provider(service: Service, identity: Identity) -> str:
    """Return the secret of a session of whoever the provider says it is.

    Somebody new is added if the provider's claims give them a role, under a name that nobody has.
    With roles by claims, a role that changed there changes here; without one there, no door opens.
    """
    by_claims = bool(service.settings.oidc_roles)
    refused, changed = None, ""
    with service.store.write() as connection:
        mine = people.c.subject == identity.subject
        row = connection.execute(sa.select(people).where(mine)).first()
        role = _claimed_role(identity) if by_claims else None if row is None else row.role
        name = identity.name if row is None else row.name
        if row is not None and row.disabled is not None:
            refused = "You were disabled here. Ask an administrator."
        elif len(identity.roles) > 1:
            refused = (
                f"Your institution gives you several roles here: {', '.join(identity.roles)}. One "
                "person has one. Ask whoever looks after it."
            )
        elif role is None:
            refused = NO_ROLE if by_claims else (
                "Nobody here is connected with you. Sign in by the link that an administrator gave "
                "you, and connect yourself on the page of your account."
            )  # fmt: skip
        elif row is None:
            _check_new_name(connection, name)
            new = {"name": name, "role": role, "created": now(), "subject": identity.subject}
            connection.execute(people.insert(), new | {"password": None})
            changed = "add person"
        elif row.role != role:
            if row.role == "administrator":
                _check_other_administrator(connection, name)
            connection.execute(people.update().where(mine).values(role=role))
            changed = "change role"
        if row is not None and (changed or refused):
            connection.execute(_still_open(tokens.c.person == name).values(revoked=now()))
        secret = (
            "" if refused else _add_token(connection, name, **BROWSER | {"label": BY_PROVIDER})[1]
        )
    if refused is not None:
        service.note(name if row is not None else None, "sign in", "refused, by the provider", 403)
        raise Forbidden(refused)
    if changed:
        service.note(None, changed, f"{name}, {role}, by the provider")
    return secret


def check_owner(service: Service, person: Person, *, password: str, code: str) -> None:
    """Refuse to connect an open session whose user knows neither password nor code.

    Both go when a person is connected, and whoever comes through the provider then is that person.
    """
    _check_current(service, person, password)
    _count_code(service, person.name)
    with service.store.write() as connection:
        row = connection.execute(sa.select(people).where(people.c.name == person.name)).one()
        fits = _code_fits(service, connection, row, code)
    if not fits:
        raise Forbidden(factors.WRONG_CODE)


def connect(service: Service, session: str, identity: Identity) -> str:
    """Let a person who is signed in come through the provider from now on, and in no other way.

    Their password and second factor go, and all sessions and tokens end. Returns a new session.
    """
    with service.store.write() as connection:
        open_one = sa.select(tokens.c.person).where(
            tokens.c.id == session, tokens.c.revoked.is_(None), tokens.c.expires > now()
        )
        name = connection.execute(open_one).scalar()
        if name is None:
            raise Forbidden("Your session ended meanwhile. Sign in, and connect yourself again.")
        taken = sa.select(people.c.name).where(people.c.subject == identity.subject)
        if connection.execute(taken).first() is not None:
            raise Conflict("Somebody here is connected with this account at the provider already.")
        row = connection.execute(sa.select(people).where(people.c.name == name)).one()
        if row.subject is not None or row.disabled is not None:
            raise Conflict("You are connected already. Ask an administrator to end it first.")
        if row.role == "administrator":
            _check_other_administrator(connection, name)
        if service.settings.oidc_roles and identity.roles != (row.role,):
            raise Conflict(f"Your institution does not give you the role {row.role} here.")
        change = people.update().where(people.c.name == name)
        values = {"subject": identity.subject, "password": None, "factor": sa.null()}
        connection.execute(change.values(values))
        connection.execute(_still_open(tokens.c.person == name).values(revoked=now()))
        secret = _add_token(connection, name, **BROWSER | {"label": BY_PROVIDER})[1]
    service.note(name, "connect", "with the provider")
    return secret


def is_connected(service: Service, name: str) -> bool:
    """Return whether somebody signs in through the provider."""
    row = service.store.row(sa.select(people.c.subject).where(people.c.name == name))
    return row is not None and row.subject is not None


def disconnect(service: Service, name: str, *, by: Person | None = None) -> None:
    """Let somebody no longer come through the provider; a link lets them set a password."""
    _check_administrator(by)
    with service.store.write() as connection:
        mine = people.update().where(people.c.name == name, people.c.subject.is_not(None))
        if connection.execute(mine.values(subject=None)).rowcount != 1:
            raise Missing(f"{shown(name)} is not connected with the provider.")
        connection.execute(_still_open(tokens.c.person == name).values(revoked=now()))
    service.note(None if by is None else by.name, "disconnect", name)


def _claimed_role(identity: Identity) -> str | None:
    return identity.roles[0] if len(identity.roles) == 1 else None


def _check_new_name(connection: sa.Connection, name: str) -> None:
    """Refuse a name from the provider that cannot be one, or is somebody else's."""
    checked_path_name("The name that your institution gives you", name)
    if (other := _like(connection, name)) is not None:
        raise Conflict(
            f"There is a person {shown(other)} here already, who is not connected with you. If it "
            "is you, sign in as before and connect yourself on the page of your account."
        )


# --- tokens --------------------------------------------------------------------------------------


def make_token(
    service: Service,
    person: Person,
    *,
    label: str,
    scopes: Sequence[str] = SCOPES,
    days: float | None = None,
) -> Json:
    """Make a token for programs; its secret is in the answer and nowhere else, ever.

    One that a token makes does not outlive it, and is revoked with it. Left out, `days` is 90, or
    what is left of the token that makes it.
    """
    person.must_be(*ROLES, scope="manage")
    checked_name("label", label)
    if not scopes or any(scope not in SCOPES for scope in scopes):
        raise ArgumentError(f"scopes must be some of {', '.join(SCOPES)}, got {shown(scopes)}.")
    beyond = [scope for scope in scopes if scope not in person.scopes]
    if beyond:
        raise Forbidden(f"A token cannot give more than the one that makes it: {beyond[0]!r}.")
    if days is not None and not 0 < days * DAY <= LONGEST:
        raise ArgumentError(f"days must be above 0 and at most 366, got {shown(days)}.")
    parent = person.token if person.kind == "api" else None
    with service.store.write() as connection:
        expires = now() + (LIVES["api"] if days is None else days * DAY)
        mine = sa.select(tokens.c.expires).where(tokens.c.id == person.token)
        ends = connection.execute(mine.where(tokens.c.revoked.is_(None))).scalar()
        if person.token and ends is None:  # while this request was on its way; a session's too
            raise Forbidden("The token or session that asks was revoked.")
        if parent is not None:
            assert ends is not None
            if days is not None and expires > ends:
                raise Forbidden(
                    "A token cannot outlive the one that makes it. Ask for fewer days, or make it "
                    "on the page of your account."
                )
            expires = min(expires, ends)
        described: Json = {"kind": "api", "label": label, "scopes": scopes}
        row, secret = _add_token(
            connection, person.name, **described, expires=expires, parent=parent
        )
    service.note(person.name, "make token", row["id"])
    return _shown_token(row) | {"token": secret}


def list_tokens(service: Service, person: Person) -> list[Json]:
    query = sa.select(tokens).where(tokens.c.person == person.name, tokens.c.kind == "api")
    rows = service.store.rows(query.order_by(tokens.c.created))
    return [_shown_token(dict(row._mapping)) for row in rows if row.revoked is None]


def revoke_token(service: Service, person: Person, token: str) -> None:
    """Open no door to a token from now on, nor to any that was made by it."""
    person.must_be(*ROLES, scope="manage")
    mine = _still_open((tokens.c.id == token) & (tokens.c.person == person.name))
    with service.store.write() as connection:
        if connection.execute(mine.values(revoked=now())).rowcount != 1:
            raise Missing("You have no such token.")
        above = [token]
        while above:
            children = sa.select(tokens.c.id).where(tokens.c.parent.in_(above))
            above = list(connection.execute(children).scalars())
            connection.execute(_still_open(tokens.c.id.in_(above)).values(revoked=now()))
    leaves = token == person.token and person.kind == "browser"
    service.note(person.name, *(("sign out", "browser") if leaves else ("revoke token", token)))


def _still_open(which: sa.ColumnElement[bool]) -> sa.Update:
    return tokens.update().where(which, tokens.c.revoked.is_(None))


OF_TOKEN: Final = (
    sa.select(tokens, people.c.role, people.c.disabled, people.c.subject, people.c.factor)
    .join_from(tokens, people, tokens.c.person == people.c.name)
    .where(tokens.c.digest == sa.bindparam("secret"))
)


def of_token(service: Service, secret: str, *, kind: str) -> Person | None:
    """Return whose token it is, if it is one that still opens doors."""
    row = service.store.row(OF_TOKEN, secret=digest_of(secret))
    if row is None or row.kind != kind or row.revoked is not None:
        return None
    if row.expires <= now() or row.disabled is not None:
        return None
    must = row.role in service.settings.second_factor and row.subject is None
    lacks = must and not factors.has_factor(row)
    return Person(row.person, row.role, row.id, row.kind, tuple(row.scopes), lacks)


def _add_token(
    connection: sa.Connection,
    person: str,
    *,
    kind: str,
    label: str,
    scopes: Sequence[str],
    expires: float | None = None,
    parent: str | None = None,
) -> tuple[Json, str]:
    secret = f"heldout_{secrets.token_urlsafe(32)}"
    row = {
        "id": new_id(),
        "person": person,
        "kind": kind,
        "digest": digest_of(secret),
        "label": label,
        "scopes": list(scopes),
        "created": now(),
        "expires": now() + LIVES[kind] if expires is None else expires,
        "revoked": None,
        "parent": parent,
    }
    connection.execute(tokens.insert(), row)
    return row, secret


def _shown_token(row: Json) -> Json:
    return {name: row[name] for name in ("id", "label", "scopes", "created", "expires")}
