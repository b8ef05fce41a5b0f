"""Data sets as the web sees them: what was declared, what is public, and who may ask.

No row is read here. A worker checks the rows; their budget and every share of it is the ledger's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from heldout.arguments import shown
from heldout.data.description import Description
from heldout.data.sql import kind_of
from heldout.drawing.words import decimal
from heldout.errors import ArgumentError
from heldout.kernel import Account, Budget, accountant
from heldout.questions.answers import from_plain
from heldout.server import jobs
from heldout.server.accounts import Person
from heldout.server.declaration import (
    SERVED,
    Declaration,
    budget_of,
    checked_facts,
    checked_source,
)
from heldout.server.service import Conflict, Forbidden, Missing, Service, checked_path_name
from heldout.server.storage import Json, datasets, evaluations, grants, now, people, requests
from heldout.server.twin import twin_csv

if TYPE_CHECKING:
    from heldout.questions import Question

CHECKING: Final = "A worker is looking at the rows."
MOST_WHY: Final = 1000
"""Characters of why somebody needs more."""
LOOKING: Final = ("custodian", "analyst", "auditor")
NOT_SEEN: Final = "There is no data set {} that you may see, or no share of it."


@dataclass(frozen=True)
class Registered:
    """A registered data set."""

    name: str
    owner: str
    source: Mapping[str, Any]
    declaration: Declaration
    budget: Budget
    facts: str
    state: str
    words: str
    descriptions: tuple[Description, ...]
    """The public facts of the rows, for each kind of rows that questions can be about."""
    revision: int
    created: float

    @classmethod
    def of(cls, row: sa.Row[Any]) -> "Registered":
        """Return a data set from its row; one that was read before is not read again."""
        known = _KNOWN.get(row.name)
        if known is None or known[0] != row:
            known = _KNOWN[row.name] = (row, cls._read(row))
        return known[1]

    @classmethod
    def _read(cls, row: sa.Row[Any]) -> "Registered":
        stored = row.about if isinstance(row.about, list) else [row.about] if row.about else []
        read: Json = {
            "declaration": Declaration.of(row.declaration),
            "budget": Budget.from_dict(row.budget),
            "descriptions": tuple(map(_read_description, stored)),
        }
        names = [field.name for field in fields(cls) if field.name not in read]
        return cls(**read, **{name: getattr(row, name) for name in names})

    @property
    def description(self) -> Description | None:
        """Return what is public of the rows, first of all as those that models are judged on."""
        return self.descriptions[0] if self.descriptions else None

    def about(self, question: "type[Question[Any]]") -> Description | None:
        """Return the facts that a kind of question is asked on; None if it needs other rows."""
        return next((known for known in self.descriptions if type(known) in question.of), None)

    def with_model(self, known: Description) -> Description | None:
        """Return the facts of rows beside the numbers of a model; None if they have none."""
        part, brought = self.declaration.part_of(type(known)), self.declaration.from_models
        if not brought or part is None or part.with_model(brought) is None:
            return None
        return part.known_with_model(known, brought)

    @property
    def features(self) -> dict[str, str]:
        """The columns that a model may see, with the kind of their values."""
        if self.description is None or not self.declaration.scores:
            return {}
        own = self.declaration.unseen_columns
        named = self.declaration.features or [
            name for name in self.description.columns if name not in own
        ]
        return {name: self.description.columns[name] for name in named}

    @property
    def public_rows(self) -> int | None:
        """Return how many rows there are, or about how many the custodian says there are."""
        rows = None if self.description is None else self.description.rows
        return rows if rows is not None else self.declaration.expected_rows

    def ready(self) -> Description:
        """Return its public facts; refuses one that cannot be asked."""
        if self.state == "closed":
            raise Conflict(f"The data set {shown(self.name)} is closed.")
        if self.state != "open" or self.description is None:
            raise Conflict(f"The data set {shown(self.name)} is not open yet. Try again later.")
        return self.description

    def public(self) -> Json:
        """Return what whoever was granted something may know."""
        known = self.description
        plain = ("expected_rows", "prevalence", "label", "outcome", "row_key")
        return {name: getattr(self.declaration, name) for name in plain} | {
            "name": self.name,
            "state": self.state,
            "facts": self.facts,
            "protection": None if known is None else known.protection.as_dict(),
            "rows": None if known is None else known.rows,
            "classes": list(self.declaration.classes) or None,
            "groups": dict(self.declaration.groups or {}),
            "bounds": list(self.declaration.bounds or ()) or None,
            "score_range": list(self.declaration.range),
            "from_models": {
                name: list(ends) for name, ends in self.declaration.from_models.items()
            },
            "features": self.features,
            "revision": self.revision,
        }


_KNOWN: dict[str, tuple[Any, Registered]] = {}


def _read_description(stored: Json) -> Description:
    description = from_plain(stored)
    assert isinstance(description, Description)
    assert type(description) in SERVED
    # Earlier versions stored the types of an engine.
    kinds = {name: kind_of(kind) for name, kind in description.columns.items()}
    return replace(description, columns=kinds)


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
    uploaded: bool = False,
) -> None:
    """Keep what is declared, and let a worker look at the rows; custodians.

    Registering an own data set again takes its rows anew; declaration and budget stay. `uploaded`
    says that the source is a file that this person just sent.
    """
    person.must_be("custodian", scope="manage")
    checked_path_name("name", name)
    declared = Declaration.of(declaration)
    row: Json = {
        "source": dict(source) if uploaded else checked_source(source, service.settings),
        "declaration": declared.content,
        "budget": budget_of(budget).as_dict(),
        "facts": checked_facts(facts),
        "state": "checking",
        "words": CHECKING,
    }
    with service.store.write() as connection:
        old = connection.execute(sa.select(datasets).where(datasets.c.name == name)).first()
        if old is None:
            row |= {"name": name, "owner": person.name, "revision": 1, "created": now()}
            connection.execute(datasets.insert(), row)
        else:
            _check_refresh(old, person, row)
            row["revision"] = old.revision + 1
            connection.execute(datasets.update().where(datasets.c.name == name).values(row))
        subject = f"{name}/{row['revision']}"
        jobs.enqueue(connection, "register", subject, owner=person.name, seconds=0)
    service.note(person.name, "register", name)


def _check_refresh(old: sa.Row[Any], person: Person, row: Json) -> None:
    """Refuse rows under a name that is taken, or under another declaration or budget."""
    if old.owner != person.name or old.state == "closed":
        raise Conflict(f"There is a data set {shown(old.name)} already. Choose another name.")
    if old.state == "checking":
        raise Conflict(f"The rows of {shown(old.name)} are being looked at. Wait for the end.")
    check_refreshable(Registered.of(old))
    same = (old.declaration, old.budget) == (row["declaration"], row["budget"])
    if old.state == "open" and not same:
        raise Conflict(
            "Rows may be refreshed, but their declaration and budget stay. Register them as "
            "they were; a budget is raised by PATCH."
        )


def check_refreshable(registered: Registered) -> None:
    """Refuse other rows where nothing tells whether they are about the same people."""
    if registered.state == "open" and not registered.declaration.may_be_refreshed:
        raise Conflict(
            "No column names these rows, so the server numbered them: other rows are another "
            "registration. Register them under another name."
        )


def refresh(service: Service, person: Person, name: str) -> None:
    """Take the rows anew from where they were; declaration, budget and what was spent stay."""
    registered = owned(service, person, name)
    if "upload" in registered.source:
        raise Conflict("These rows were uploaded. Register them again with another file.")
    register(
        service,
        person,
        name=name,
        source=dict(registered.source),
        declaration=registered.declaration.content,
        budget=registered.budget.as_dict(),
        facts=registered.facts,
    )


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
    owned(service, person, name, scope="manage").ready()
    _check_expiry(expires)
    there = (people.c.name == analyst) & people.c.disabled.is_(None)
    known = service.store.row(sa.select(people.c.role).where(there))
    if known is None or known.role != "analyst":
        raise Missing(f"There is no analyst {shown(analyst)}. An administrator adds people.")
    account = service.ledger.grant(name, analyst=analyst, budget=budget_of(budget), who=person.name)
    mine = (grants.c.dataset == name) & (grants.c.analyst == analyst)
    row = {"account": account.id, "expires": expires, "revoked": None, "created": now()}
    with service.store.write() as connection:
        connection.execute(grants.delete().where(mine))
        connection.execute(grants.insert(), {"dataset": name, "analyst": analyst} | row)
    service.note(person.name, "grant", f"{name} to {analyst}")


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
    owned(service, person, name, scope="manage")
    _share(service, name, analyst)
    _check_expiry(expires)
    if budget is not None:
        service.ledger.raise_budget(
            name, analyst=analyst, budget=budget_of(budget), who=person.name
        )
        _forget_request(service, name, analyst)
    if expires is not None:
        mine = (grants.c.dataset == name) & (grants.c.analyst == analyst)
        service.store.change(grants.update().where(mine).values(expires=expires))
    service.note(person.name, "change grant", f"{name} to {analyst}")


# --- larger allowances ---------------------------------------------------------------------------


def request_allowance(
    service: Service, person: Person, name: str, *, budget: Any, why: str = ""
) -> None:
    """Ask the custodian for a larger allowance; a newer request takes the place of an older one."""
    person.must_be("analyst", scope="ask")
    share = _share(service, name, person.name)
    wanted = budget_of(budget)
    now_has = service.ledger.budget(Account(share.account, Budget(epsilon=1)))
    if not accountant.covers(wanted, now_has):
        raise ArgumentError(f"Ask for more than you have, which is {now_has}.")
    row = {"budget": decimal(wanted.epsilon) if wanted.epsilon is not None else str(wanted.rho)}
    row |= {"why": checked_facts(why)[:MOST_WHY]}
    place = {"dataset": name, "analyst": person.name}
    with service.store.write() as connection:
        connection.execute(requests.delete().filter_by(**place))
        connection.execute(requests.insert(), place | row | {"created": now()})
    service.note(person.name, "ask for allowance", name)


def allowance_request(service: Service, name: str, analyst: str) -> Json | None:
    """Return what an analyst asked for, if that still waits."""
    waiting = [one for one in allowance_requests(service, [name]) if one["analyst"] == analyst]
    return waiting[0] if waiting else None


def allowance_requests(service: Service, names: Sequence[str]) -> list[Json]:
    """Return the requests for larger allowances of some data sets, the oldest first."""
    query = sa.select(requests).where(requests.c.dataset.in_(names)).order_by(requests.c.created)
    return [dict(row._mapping) for row in service.store.rows(query)]


def decline_request(service: Service, person: Person, name: str, *, analyst: str) -> None:
    """Set a request aside; the allowance stays as it is."""
    owned(service, person, name, scope="manage")
    _forget_request(service, name, analyst)
    service.note(person.name, "decline", f"{name} of {analyst}")


def _forget_request(service: Service, name: str, analyst: str) -> None:
    service.store.change(requests.delete().filter_by(dataset=name, analyst=analyst))


def _check_expiry(expires: float | None) -> None:
    if expires is not None and not expires > now():
        raise ArgumentError("expires must be in the future. To end a share now, revoke it.")


def revoke(service: Service, person: Person, name: str, *, analyst: str) -> None:
    """Take a share away; whatever waits is refused, and charged nothing."""
    owned(service, person, name, scope="manage")
    _share(service, name, analyst)
    service.ledger.revoke(name, analyst=analyst, who=person.name)
    _forget_request(service, name, analyst)
    mine = (grants.c.dataset == name) & (grants.c.analyst == analyst)
    service.store.change(grants.update().where(mine).values(revoked=now()))
    service.note(person.name, "revoke", f"{name} of {analyst}")


def raise_budget(service: Service, person: Person, name: str, *, budget: Any) -> None:
    """Raise what may be spent on the data set in all."""
    owned(service, person, name, scope="manage").ready()
    raised = budget_of(budget)
    service.ledger.raise_budget(name, budget=raised, who=person.name)
    mine = datasets.update().where(datasets.c.name == name)
    service.store.change(mine.values(budget=raised.as_dict()))
    service.note(person.name, "raise", name)


def close(service: Service, person: Person, name: str) -> None:
    """Close a data set for good: nothing more is asked of it, ever."""
    owned(service, person, name, scope="manage").ready()
    service.ledger.close(name, who=person.name)
    mine, words = datasets.update().where(datasets.c.name == name), "Its custodian closed it."
    service.store.change(mine.values(state="closed", words=words, closed=now()))
    service.note(person.name, "close", name)


def owned(service: Service, person: Person, name: str, *, scope: str = "read") -> Registered:
    """Return a custodian's own data set."""
    person.must_be("custodian", scope=scope)
    registered = find(service, name)
    if registered.owner != person.name:
        raise Missing(NOT_SEEN.format(shown(name)))
    return registered


def names_source(connection: sa.Connection, source: Mapping[str, Any]) -> bool:
    """Return whether a data set was registered from an upload."""
    rows = connection.execute(sa.select(datasets.c.source))
    return any(row.source.get("upload") == source.get("upload") for row in rows)


# --- whoever may look ----------------------------------------------------------------------------


FIND: Final = sa.select(datasets).where(datasets.c.name == sa.bindparam("named"))
SHARE: Final = sa.select(grants).where(
    grants.c.dataset == sa.bindparam("of"), grants.c.analyst == sa.bindparam("by")
)
GONE: Final = sa.select(people.c.name).where(
    people.c.name == sa.bindparam("named"), people.c.disabled.is_not(None)
)


def find(service: Service, name: str) -> Registered:
    row = service.store.row(FIND, named=name)
    if row is None:
        raise Missing(NOT_SEEN.format(shown(name)))
    return Registered.of(row)


def declared_ranges(service: Service) -> list[tuple[float, float]]:
    """Return where scores lie on any data set of the server: what uploads are counted against."""
    rows = service.store.rows(sa.select(datasets).where(datasets.c.state == "open"))
    return list(dict.fromkeys(Registered.of(row).declaration.range for row in rows))


def visible(service: Service, person: Person) -> list[Registered]:
    """Return the data sets that a person may see: their own, or those that they were granted."""
    query = sa.select(datasets).order_by(datasets.c.name)
    if person.role == "custodian":
        query = query.where(datasets.c.owner == person.name)
    elif person.role == "analyst":
        mine = sa.select(grants.c.dataset).where(grants.c.analyst == person.name)
        query = query.where(datasets.c.name.in_(mine.where(grants.c.revoked.is_(None))))
    elif person.role != "auditor":
        return []
    return [_as_seen_by(Registered.of(row), person) for row in service.store.rows(query)]


def _as_seen_by(registered: Registered, person: Person) -> Registered:
    """Return whether the rows broke a rule is their custodian's to know: it depends on rows."""
    if person.name != registered.owner and registered.state == "refused":
        return replace(registered, state="checking", words=CHECKING)
    return registered


def seen(service: Service, person: Person, name: str) -> Registered:
    """Return one of the data sets that a person may see; of others nothing is known."""
    registered = find(service, name)
    if person.role == "analyst":
        _share(service, name, person.name)
    elif person.role != "auditor" and registered.owner != person.name:
        raise Missing(NOT_SEEN.format(shown(name)))
    return _as_seen_by(registered, person)


def share_of(service: Service, person: Person, name: str) -> Account:
    """Return the account of an analyst's own share with its budget, if it may be used now."""
    account = usable_share(service, person.name, find(service, name))
    return Account(account.id, service.ledger.budget(account))


def usable_share(service: Service, analyst: str, registered: Registered) -> Account:
    """Return the account of an analyst's share, which may be used now; the ledger is not read.

    Its budget is of the kind that the data set's is, in which everything is charged.
    """
    row = _share(service, registered.name, analyst)
    check_there(service, analyst)
    if row.expires is not None and row.expires <= now():
        raise Forbidden("Your allowance has expired. Ask the custodian for another one.")
    return Account(row.account, registered.budget)


def check_there(service: Service, person: str) -> None:
    """Refuse what waits for somebody who was disabled meanwhile."""
    if service.store.first(GONE, named=person) is not None:
        raise Forbidden("An administrator disabled this person. Nothing was charged.")


def allowance(service: Service, person: Person, registered: Registered) -> tuple[Json | None, str]:
    """Return budget, spent and left as a person may see them, and why not if not."""
    if person.role == "analyst":
        try:
            return standing(service, share_of(service, person, registered.name)), ""
        except Forbidden as error:  # it has expired; the data set is shown all the same
            return None, str(error)
    if registered.state not in ("open", "closed"):
        return None, ""
    return standing(service, registered.name), ""


def standing(service: Service, account: Account | str) -> Json:
    """Return budget, spent and left, as JSON."""
    amounts = service.ledger.standing(account)
    names = ("budget", "spent", "remaining")
    return {name: amount.as_dict() for name, amount in zip(names, amounts, strict=True)}


def shares(service: Service, name: str) -> list[Json]:
    """Return every share of a data set, for its custodian and auditors."""
    query = sa.select(grants).where(grants.c.dataset == name).order_by(grants.c.analyst)
    asked = sa.select(evaluations.c.owner, sa.func.count()).where(evaluations.c.dataset == name)
    counts = {row[0]: row[1] for row in service.store.rows(asked.group_by(evaluations.c.owner))}
    return [
        {
            "analyst": row.analyst,
            "expires": row.expires,
            "revoked": row.revoked is not None,
            "evaluations": counts.get(row.analyst, 0),
        }
        | standing(service, Account(row.account, Budget(epsilon=1)))
        for row in service.store.rows(query)
    ]


def has_share(service: Service, name: str, analyst: str) -> bool:
    """Return whether an analyst was granted something of a data set, and may know its columns."""
    try:
        _share(service, name, analyst)
    except Missing:
        return False
    return True


def _share(service: Service, name: str, analyst: str) -> sa.Row[Any]:
    row: sa.Row[Any] | None = service.store.first(SHARE, of=name, by=analyst)
    if row is None or row.revoked is not None:
        raise Missing(NOT_SEEN.format(shown(name)))
    return row


def _made_up(registered: Registered) -> Json:
    """Return the ranges and values of columns for the twin: of features, and of parts."""
    declared = registered.declaration.content.get("features")
    known: Json = dict(declared) if isinstance(declared, Mapping) else {}
    known = {name: values for name, values in known.items() if values is not None}
    for description in registered.descriptions:
        for name, value in getattr(description, "values", {}).items():
            known.setdefault(name, list(value.words) or list(value.ends))
        event = getattr(description, "event", None)
        if event is not None:
            known.setdefault(event, ["0", "1"])
    return known


def twin(registered: Registered, rows: int) -> Iterator[str]:
    """Return made-up rows of the same columns as a CSV file, from the declaration alone."""
    scores = registered.declaration.scores
    registered.ready()
    described = {
        name: kind for known in registered.descriptions for name, kind in known.columns.items()
    }
    columns = {name: kind for name, kind in described.items() if name not in scores}
    declared = registered.declaration
    content = declared.content | {"observed": declared.outcome, "bounds": declared.bounds}
    content["row_key"] = declared.key_column
    content["features"] = _made_up(registered)
    return twin_csv(columns, content, rows=rows)
