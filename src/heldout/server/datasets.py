"""Data sets as the web sees them: what was declared, what is public, and who may ask.

No row is read here. A worker checks the rows; their budget and every share of it is the ledger's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa

from heldout.arguments import shown
from heldout.data.classes import ClassifiedRows
from heldout.data.description import ScoredRows
from heldout.data.sql import kind_of
from heldout.errors import ArgumentError
from heldout.kernel import Account, Budget
from heldout.questions.answers import from_plain
from heldout.server import jobs
from heldout.server.accounts import Person
from heldout.server.declaration import Declared, budget_of, checked_facts, checked_source
from heldout.server.service import Conflict, Forbidden, Missing, Service, checked_path_name
from heldout.server.storage import datasets, evaluations, grants, now, people
from heldout.server.twin import twin_csv

__all__ = [
    "SERVED",
    "Held",
    "change_grant",
    "check_there",
    "close",
    "find",
    "grant",
    "has_share",
    "owned",
    "raise_budget",
    "register",
    "revoke",
    "seen",
    "share_of",
    "shares",
    "standing",
    "twin",
    "visible",
]

CHECKING: Final = "A worker is looking at the rows."
SERVED: Final = (ScoredRows, ClassifiedRows)
"""The kinds of rows that a data set may have."""
NOT_SEEN: Final = "There is no data set {} that you may see, or no share of it."


@dataclass(frozen=True)
class Held:
    """A registered data set."""

    name: str
    owner: str
    source: Mapping[str, Any]
    declared: Declared
    budget: Budget
    facts: str
    state: str
    words: str
    about: ScoredRows | ClassifiedRows | None
    revision: int
    created: float

    @classmethod
    def of(cls, row: Any) -> "Held":
        """Read from its row; one that was read before is found again."""
        known = _KNOWN.get(row.name)
        if known is None or known[0] != row:
            known = _KNOWN[row.name] = (row, cls._read(row))
        return known[1]

    @classmethod
    def _read(cls, row: Any) -> "Held":
        about = None if row.about is None else from_plain(row.about)
        assert about is None or isinstance(about, SERVED)
        if about is not None:  # earlier versions stored the types of an engine
            kinds = {name: kind_of(kind) for name, kind in about.columns.items()}
            about = replace(about, columns=kinds)
        return cls(
            row.name,
            row.owner,
            row.source,
            Declared(row.declaration),
            Budget.from_dict(row.budget),
            row.facts,
            row.state,
            row.words,
            about,
            row.revision,
            row.created,
        )

    @property
    def features(self) -> dict[str, str]:
        """The columns that a model may see, with the kind of their values."""
        if self.about is None:
            return {}
        own = {*self.declared.own_columns, *self.declared.scores}
        named = self.declared.features or [each for each in self.about.columns if each not in own]
        return {name: self.about.columns[name] for name in named}

    @property
    def rows_told(self) -> int | None:
        """How many rows there are, or about how many the custodian says there are."""
        rows = None if self.about is None else self.about.rows
        return rows if rows is not None else self.declared.expected_rows

    def ready(self) -> ScoredRows | ClassifiedRows:
        """Its public facts; refuses one that cannot be asked."""
        if self.state == "closed":
            raise Conflict(f"The data set {shown(self.name)} is closed.")
        if self.state != "open" or self.about is None:
            raise Conflict(f"The data set {shown(self.name)} is not open yet. Try again later.")
        return self.about

    def public(self) -> dict[str, Any]:
        """What whoever was granted something may know."""
        about = self.about
        return {
            "name": self.name,
            "state": self.state,
            "facts": self.facts,
            "protection": None if about is None else about.protection.as_dict(),
            "rows": None if about is None else about.rows,
            "expected_rows": self.declared.expected_rows,
            "prevalence": self.declared.prevalence,
            "label": self.declared.label,
            "row_key": self.declared.row_key,
            "classes": list(self.declared.classes) or None,
            "groups": dict(self.declared.of_dataset["groups"] or {}),
            "score_range": list(self.declared.of_dataset["score_range"]),
            "features": self.features,
            "revision": self.revision,
        }


_KNOWN: dict[str, tuple[Any, Held]] = {}


# --- the custodian -------------------------------------------------------------------------------


def register(
    service: Service,
    person: Person,
    *,
    name: str,
    source: Any,
    declaration: Mapping[str, Any],
    budget: Any,
    facts: str = "",
) -> None:
    """Keep what is declared, and let a worker look at the rows.

    Registering an own data set again takes its rows anew; declaration and budget stay.
    """
    checked_path_name("name", name)
    declared = Declared(declaration)
    row = {
        "source": checked_source(source, service.settings),
        "declaration": declared.content,
        "budget": budget_of(budget).as_dict(),
        "facts": checked_facts(facts),
        "state": "checking",
        "words": CHECKING,
    }
    with service.store.write() as connection:
        old = connection.execute(sa.select(datasets).where(datasets.c.name == name)).first()
        if old is None:
            fresh = {"name": name, "owner": person.name, "revision": 1, "created": now()}
            connection.execute(datasets.insert(), row | fresh)
            _look_at_rows(connection, person, f"{name}/1")
            return
        if old.owner != person.name or old.state == "closed":
            raise Conflict(f"There is a data set {shown(name)} already. Choose another name.")
        if old.state == "checking":
            raise Conflict(f"The rows of {shown(name)} are being looked at. Wait for the end.")
        if old.state == "open" and (old.declaration, old.budget) != (
            declared.content,
            row["budget"],
        ):
            raise Conflict(
                "Rows may be refreshed, but their declaration and budget stay. Register them as "
                "they were; a budget is raised by PATCH."
            )
        row["revision"] = old.revision + 1
        connection.execute(datasets.update().where(datasets.c.name == name).values(row))
        _look_at_rows(connection, person, f"{name}/{row['revision']}")


def _look_at_rows(connection: sa.Connection, person: Person, subject: str) -> None:
    jobs.enqueue(connection, "register", subject, owner=person.name, seconds=0)


def grant(
    service: Service,
    person: Person,
    name: str,
    *,
    analyst: str,
    budget: Any,
    expires: float | None = None,
) -> None:
    """Give an analyst a share, or one whose share was revoked a new start."""
    held = owned(service, person, name)
    held.ready()
    _check_expiry(expires)
    with service.store.read() as connection:
        known = connection.execute(
            sa.select(people.c.role).where(people.c.name == analyst, people.c.disabled.is_(None))
        ).scalar()
    if known != "analyst":
        raise Missing(f"There is no analyst {shown(analyst)}. An administrator adds people.")
    account = service.ledger.grant(name, analyst=analyst, budget=budget_of(budget), who=person.name)
    mine = (grants.c.dataset == name) & (grants.c.analyst == analyst)
    row = {"account": account.id, "expires": expires, "revoked": None, "created": now()}
    with service.store.write() as connection:
        connection.execute(grants.delete().where(mine))
        connection.execute(grants.insert(), {"dataset": name, "analyst": analyst} | row)


def change_grant(
    service: Service,
    person: Person,
    name: str,
    *,
    analyst: str,
    budget: Any = None,
    expires: float | None = None,
) -> None:
    """Raise a share, or move its end."""
    owned(service, person, name)
    _share(service, name, analyst)
    _check_expiry(expires)
    if budget is not None:
        service.ledger.raise_budget(
            name, analyst=analyst, budget=budget_of(budget), who=person.name
        )
    if expires is not None:
        mine = (grants.c.dataset == name) & (grants.c.analyst == analyst)
        with service.store.write() as connection:
            connection.execute(grants.update().where(mine).values(expires=expires))


def _check_expiry(expires: float | None) -> None:
    if expires is not None and not expires > now():
        raise ArgumentError("expires must be in the future. To end a share now, revoke it.")


def revoke(service: Service, person: Person, name: str, *, analyst: str) -> None:
    """Take a share away; whatever waits is refused, and charged nothing."""
    owned(service, person, name)
    _share(service, name, analyst)
    service.ledger.revoke(name, analyst=analyst, who=person.name)
    mine = (grants.c.dataset == name) & (grants.c.analyst == analyst)
    with service.store.write() as connection:
        connection.execute(grants.update().where(mine).values(revoked=now()))


def raise_budget(service: Service, person: Person, name: str, *, budget: Any) -> None:
    """Raise what may be spent on the data set in all."""
    owned(service, person, name).ready()
    raised = budget_of(budget)
    service.ledger.raise_budget(name, budget=raised, who=person.name)
    with service.store.write() as connection:
        mine = datasets.update().where(datasets.c.name == name)
        connection.execute(mine.values(budget=raised.as_dict()))


def close(service: Service, person: Person, name: str) -> None:
    """Nothing more is asked of this data set, ever."""
    owned(service, person, name).ready()
    service.ledger.close(name, who=person.name)
    with service.store.write() as connection:
        mine = datasets.update().where(datasets.c.name == name)
        connection.execute(mine.values(state="closed", words="Its custodian closed it."))


def owned(service: Service, person: Person, name: str) -> Held:
    held = find(service, name)
    if held.owner != person.name:
        raise Missing(NOT_SEEN.format(shown(name)))
    return held


# --- whoever may look ----------------------------------------------------------------------------


def find(service: Service, name: str) -> Held:
    with service.store.read() as connection:
        row = connection.execute(sa.select(datasets).where(datasets.c.name == name)).first()
    if row is None:
        raise Missing(NOT_SEEN.format(shown(name)))
    return Held.of(row)


def visible(service: Service, person: Person) -> list[Held]:
    """The data sets that a person may see: their own, or those that they were granted."""
    query = sa.select(datasets).order_by(datasets.c.name)
    if person.role == "custodian":
        query = query.where(datasets.c.owner == person.name)
    elif person.role == "analyst":
        mine = sa.select(grants.c.dataset).where(grants.c.analyst == person.name)
        query = query.where(datasets.c.name.in_(mine.where(grants.c.revoked.is_(None))))
    elif person.role != "auditor":
        return []
    with service.store.read() as connection:
        return [_told(Held.of(row), person) for row in connection.execute(query)]


def _told(held: Held, person: Person) -> Held:
    """Whether the rows broke a rule is their custodian's to know: it depends on rows."""
    if person.name != held.owner and held.state == "refused":
        return replace(held, state="checking", words=CHECKING)
    return held


def seen(service: Service, person: Person, name: str) -> Held:
    """One of the data sets that a person may see; of others nothing is told."""
    held = find(service, name)
    if person.role == "analyst":
        _share(service, name, person.name)
    elif person.role != "auditor" and held.owner != person.name:
        raise Missing(NOT_SEEN.format(shown(name)))
    return _told(held, person)


def share_of(service: Service, person: Person, name: str) -> Account:
    """The account of an analyst's own share, if it may be used now."""
    row = _share(service, name, person.name)
    check_there(service, person.name)
    if row.expires is not None and row.expires <= now():
        raise Forbidden("Your allowance has expired. Ask the custodian for another one.")
    return Account(row.account, service.ledger.budget(Account(row.account, Budget(epsilon=1))))


def check_there(service: Service, person: str) -> None:
    """Refuse what waits for somebody who was disabled meanwhile."""
    gone = sa.select(people.c.name).where(people.c.name == person)
    with service.store.read() as connection:
        if connection.execute(gone.where(people.c.disabled.is_not(None))).first():
            raise Forbidden("An administrator disabled this person. Nothing was charged.")


def standing(service: Service, account: Account | str) -> dict[str, Any]:
    """Budget, spent and left, as JSON."""
    found = service.ledger.standing(account)
    names = ("budget", "spent", "remaining")
    return {name: each.as_dict() for name, each in zip(names, found, strict=True)}


def shares(service: Service, name: str) -> list[dict[str, Any]]:
    """Every share of a data set, for its custodian."""
    query = sa.select(grants).where(grants.c.dataset == name).order_by(grants.c.analyst)
    asked = sa.select(evaluations.c.owner, sa.func.count()).where(evaluations.c.dataset == name)
    with service.store.read() as connection:
        rows = connection.execute(query).all()
        asked = asked.group_by(evaluations.c.owner)
        counts = {row[0]: row[1] for row in connection.execute(asked)}
    return [
        {
            "analyst": row.analyst,
            "expires": row.expires,
            "revoked": row.revoked is not None,
            "evaluations": counts.get(row.analyst, 0),
        }
        | standing(service, Account(row.account, Budget(epsilon=1)))
        for row in rows
    ]


def has_share(service: Service, name: str, analyst: str) -> bool:
    """Whether an analyst was granted something of a data set, and may know its columns."""
    try:
        _share(service, name, analyst)
    except Missing:
        return False
    return True


def _share(service: Service, name: str, analyst: str) -> Any:
    mine = (grants.c.dataset == name) & (grants.c.analyst == analyst)
    with service.store.read() as connection:
        row = connection.execute(sa.select(grants).where(mine)).first()
    if row is None or row.revoked is not None:
        raise Missing(NOT_SEEN.format(shown(name)))
    return row


def twin(held: Held, rows: int) -> Iterator[str]:
    """Made-up rows of the same columns as a CSV file, from the declaration alone."""
    about = held.ready()
    scores = held.declared.scores
    columns = {name: kind for name, kind in about.columns.items() if name not in scores}
    return twin_csv(columns, held.declared.content, rows=rows)
