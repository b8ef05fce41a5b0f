"""Data sets as the web sees them: what was declared, what is public, and who may ask.

No row is read here. A worker checks the rows; their budget and every share of it is the ledger's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from heldout.arguments import shown
from heldout.data.description import Description, ScoredRows
from heldout.errors import ArgumentError
from heldout.privacy import Account, Budget
from heldout.server import jobs
from heldout.server.accounts import Person
from heldout.server.service import (
    Conflict,
    Forbidden,
    Missing,
    Service,
    Settings,
    checked_path_name,
)
from heldout.server.storage import datasets, evaluations, grants, now, people
from heldout.server.twin import twin_csv

__all__ = [
    "SCORE",
    "Declared",
    "Held",
    "budget_of",
    "change_grant",
    "close",
    "find",
    "grant",
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

SCORE: Final = "score"
"""What a model's scores are called beside the rows."""
FIELDS: Final = {
    "label": None,
    "row_key": None,
    "features": None,
    "positive": 1,
    "negative": None,
    "unit": None,
    "rows_per_unit": 1,
    "neighbours": "replace-one",
    "groups": None,
    "score_range": (0, 1),
    "default": None,
    "expected_rows": None,
    "schema": None,
    "people": None,
    "new": False,
}
"""What a custodian declares of the rows, with what holds if it is left out."""


class Declared:
    """A declaration, as a custodian sends it; names and forms are checked, rows later."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        if not isinstance(content, Mapping):
            raise ArgumentError("declaration must be an object with label and row_key.")
        strange = [each for each in content if each not in FIELDS]
        if strange:
            raise ArgumentError(
                f"declaration has no field {shown(strange[0])}. Fields: {', '.join(FIELDS)}."
            )
        told = FIELDS | dict(content)
        for name in ("label", "row_key"):
            if not isinstance(told[name], str) or not told[name]:
                raise ArgumentError(f"declaration must name the column {name}.")
        self.content = {name: told[name] for name in FIELDS if told[name] != FIELDS[name]}
        self.label, self.row_key, self.unit = told["label"], told["row_key"], told["unit"]
        self.default = told["default"]
        self.schema = told["schema"]
        self.ranges: dict[str, Any] = {}
        listed = told["features"]
        if isinstance(listed, Mapping):
            self.ranges = dict(listed)
            listed = list(listed)
        if listed is not None and not (
            isinstance(listed, list) and listed and all(isinstance(each, str) for each in listed)
        ):
            raise ArgumentError("features must be a list of columns, or {column: [low, high]}.")
        self.features: list[str] | None = listed
        self.expected_rows = _positive_whole("expected_rows", told["expected_rows"])
        own = ("positive", "negative", "unit", "rows_per_unit", "neighbours", "groups")
        self.of_dataset: dict[str, Any] = {name: told[name] for name in own}
        self._family = {"people": told["people"], "new": bool(told["new"])}
        low, high = _range(told["score_range"])
        self.of_dataset["score_range"] = (low, high)
        self.lowest = low
        if self.default is None:
            self.default = low
        if not isinstance(self.default, int | float) or not low <= self.default <= high:
            raise ArgumentError("default must be a score within score_range.")

    @property
    def own_columns(self) -> list[str]:
        """The columns that are no features: who, what, which group."""
        groups = self.of_dataset["groups"] or {}
        named = [self.row_key, self.unit, self.label, *groups]
        return list(dict.fromkeys(each for each in named if each is not None))

    @property
    def of_account(self) -> dict[str, Any]:
        """What the ledger wants to know of the rows."""
        own = ("unit", "rows_per_unit", "neighbours")
        return {name: self.of_dataset[name] for name in own} | self._family


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
    about: ScoredRows | None
    revision: int
    created: float

    @classmethod
    def of(cls, row: Any) -> "Held":
        about = None if row.about is None else Description.from_dict(row.about)
        assert about is None or isinstance(about, ScoredRows)
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
        """The columns that a model may see, with their types."""
        if self.about is None:
            return {}
        own = {*self.declared.own_columns, SCORE}
        named = self.declared.features or [each for each in self.about.columns if each not in own]
        return {name: self.about.columns[name] for name in named}

    @property
    def rows_told(self) -> int | None:
        """How many rows there are, or about how many the custodian says there are."""
        rows = None if self.about is None else self.about.rows
        return rows if rows is not None else self.declared.expected_rows

    def ready(self) -> ScoredRows:
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
            "label": self.declared.label,
            "row_key": self.declared.row_key,
            "groups": dict(self.declared.of_dataset["groups"] or {}),
            "score_range": list(self.declared.of_dataset["score_range"]),
            "features": self.features,
            "revision": self.revision,
        }


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
        "facts": _checked_facts(facts),
        "state": "checking",
        "words": "A worker is looking at the rows.",
    }
    with service.store.write() as connection:
        old = connection.execute(sa.select(datasets).where(datasets.c.name == name)).first()
        if old is None:
            fresh = {"name": name, "owner": person.name, "revision": 1, "created": now()}
            connection.execute(datasets.insert(), row | fresh)
            jobs.enqueue(connection, "register", f"{name}/1")
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
        jobs.enqueue(connection, "register", f"{name}/{row['revision']}")


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
    if expires is not None and not expires > now():
        raise ArgumentError("expires must be in the future.")
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
    if budget is not None:
        service.ledger.raise_budget(
            name, analyst=analyst, budget=budget_of(budget), who=person.name
        )
    if expires is not None:
        mine = (grants.c.dataset == name) & (grants.c.analyst == analyst)
        with service.store.write() as connection:
            connection.execute(grants.update().where(mine).values(expires=expires))


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
        raise Missing(f"There is no data set {shown(name)} of yours.")
    return held


# --- whoever may look ----------------------------------------------------------------------------


def find(service: Service, name: str) -> Held:
    with service.store.read() as connection:
        row = connection.execute(sa.select(datasets).where(datasets.c.name == name)).first()
    if row is None:
        raise Missing(f"There is no data set {shown(name)} that you may see.")
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
        return [Held.of(row) for row in connection.execute(query)]


def seen(service: Service, person: Person, name: str) -> Held:
    """One of the data sets that a person may see; of others nothing is told."""
    for held in visible(service, person):
        if held.name == name:
            return held
    raise Missing(f"There is no data set {shown(name)} that you may see.")


def share_of(service: Service, person: Person, name: str) -> Account:
    """The account of an analyst's own share, if it may be used now."""
    row = _share(service, name, person.name)
    if row.expires is not None and row.expires <= now():
        raise Forbidden("Your allowance has expired. Ask the custodian for another one.")
    account = Account(row.account, Budget(epsilon=1))
    return Account(row.account, service.ledger.budget(account))


def standing(service: Service, account: Account | str) -> dict[str, Any]:
    """Budget, spent and left, as JSON."""
    ledger = service.ledger
    return {
        "budget": ledger.budget(account).as_dict(),
        "spent": ledger.spent(account).as_dict(),
        "remaining": ledger.remaining(account).as_dict(),
    }


def shares(service: Service, name: str) -> list[dict[str, Any]]:
    """Every share of a data set, for its custodian."""
    query = sa.select(grants).where(grants.c.dataset == name).order_by(grants.c.analyst)
    asked = sa.select(evaluations.c.owner, sa.func.count()).where(evaluations.c.dataset == name)
    with service.store.read() as connection:
        rows = connection.execute(query).all()
        counts = dict(connection.execute(asked.group_by(evaluations.c.owner)).tuples().all())
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


def _share(service: Service, name: str, analyst: str) -> Any:
    mine = (grants.c.dataset == name) & (grants.c.analyst == analyst)
    with service.store.read() as connection:
        row = connection.execute(sa.select(grants).where(mine)).first()
    if row is None or row.revoked is not None:
        raise Missing(f"There is no share of {shown(name)} for {shown(analyst)}.")
    return row


def twin(held: Held, rows: int) -> Iterator[str]:
    """Made-up rows of the same columns as a CSV file, from the declaration alone."""
    about = held.ready()
    columns = {name: kind for name, kind in about.columns.items() if name != SCORE}
    return twin_csv(columns, held.declared.content, rows=rows)


# --- what is declared, checked -------------------------------------------------------------------


def budget_of(told: Any) -> Budget:
    """A budget from JSON: "3", 3, {"epsilon": "3"} or {"rho": "1/8", "delta": "1e-6"}."""
    if isinstance(told, Mapping):
        strange = [each for each in told if each not in ("epsilon", "rho", "delta")]
        if strange:
            raise ArgumentError(f"budget has no field {shown(strange[0])}.")
        return Budget(**told)
    return Budget(epsilon=told)


def checked_source(source: Any, settings: Settings) -> dict[str, Any]:
    """Where a worker finds the rows: a file, a table of a database, or a table of Spark.

    A database is named by a variable of the workers' environment that holds its address, so that
    no password is kept here.
    """
    if isinstance(source, str):
        source = {"file": source}
    kinds = ({"file"}, {"database", "table"}, {"database", "query"}, {"spark"})
    texts = isinstance(source, Mapping) and all(isinstance(each, str) for each in source.values())
    if not texts or set(source) not in kinds:
        raise ArgumentError(
            'source must be {"file": PATH}, {"database": VARIABLE, "table": NAME}, {"database": '
            'VARIABLE, "query": SELECT} or {"spark": TABLE}.'
        )
    if "database" in source and not source["database"].isidentifier():
        raise ArgumentError(
            "database must be the name of a variable of the worker's environment that holds the "
            "address, such as ROWS_URL."
        )
    if "file" in source:
        path = Path(source["file"])
        root = settings.rows
        if root is not None:
            path = (root / path).resolve()
            if not path.is_relative_to(root.resolve()):
                raise ArgumentError("source must be a file in the folder of rows.")
        elif not path.is_absolute():
            path = settings.folder / "rows" / path
        return {"file": str(path)}
    return dict(source)


def _checked_facts(facts: Any) -> str:
    if not isinstance(facts, str) or len(facts) > 10_000:
        raise ArgumentError("facts must be a text of at most 10,000 characters.")
    return facts


def _positive_whole(name: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise ArgumentError(f"{name} must be a whole number above 0, got {shown(value)}.")


def _range(told: Any) -> tuple[float, float]:
    try:
        low, high = (float(each) for each in told)
    except (TypeError, ValueError):
        low = high = 0.0
    if not low < high:
        raise ArgumentError("score_range must be two numbers, the lower first.")
    return low, high
