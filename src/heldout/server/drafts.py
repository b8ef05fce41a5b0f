"""Registrations that a custodian is filling in, step by step: a source, its columns, a form a step.

A worker lists what there is to choose from and reads the columns of what was chosen. Nothing is
typed that can be picked, and every step is checked before the next one. A person has one draft.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import sqlalchemy as sa

from heldout.arguments import FormField, Values, shown
from heldout.data.sql import kind_of
from heldout.drawing.words import decimal
from heldout.errors import ArgumentError
from heldout.server import datasets, jobs
from heldout.server.accounts import Person
from heldout.server.datasets import Registered
from heldout.server.declaration import Declaration, budget_of, checked_source
from heldout.server.parts import PARTS, names_column
from heldout.server.service import Missing, Service, checked_path_name
from heldout.server.storage import Json, drafts, new_id, now

Form = Mapping[str, Sequence[str]]
"""Texts by field, as a step sent them."""
STEPS: Final = ("kinds", "outcome", "rows", "columns", "spend")
TITLES: Final = {
    "kinds": "What kind of values?",
    "outcome": "What do models predict?",
    "rows": "Whose rows are they?",
    "columns": "What may models see?",
    "spend": "What may be spent?",
}
KINDS: Final = {
    "text": "VARCHAR", "number": "DOUBLE", "whole number": "BIGINT", "true or false": "BOOLEAN",
    "date or time": "TIMESTAMP",
}  # fmt: skip
"""Kinds that a column of a CSV file may be declared as, and the type that each is read as."""
SORTS: Final = {
    "two": "Yes or no: whether something is there",
    "classes": "One of several classes",
    "number": "A number",
}
SURVEYING: Final = "A worker is looking which files and tables there are."
LOOKING: Final = "A worker is reading the names and types of the columns. No row is read."
CHOOSE: Final = "Choose where the rows are."


@dataclass(frozen=True)
class Draft:
    """A registration as far as it was filled in."""

    id: str
    owner: str
    state: str
    words: str
    offered: Json | None
    source: Json | None
    columns: dict[str, str] | None
    picks: dict[str, dict[str, list[str]]]
    created: float

    @property
    def of_csv(self) -> bool:
        """Return whether its columns have no types of their own; the custodian then says them."""
        name = (self.source or {}).get("file", "")
        return str(name).lower().endswith(".csv")

    @property
    def steps(self) -> tuple[str, ...]:
        return STEPS if self.of_csv else STEPS[1:]

    @property
    def step(self) -> str:
        """The first step that was not sent yet; the last one if all were."""
        return next((step for step in self.steps if step not in self.picks), self.steps[-1])

    def after(self, step: str) -> str:
        """Return the step that follows."""
        return self.steps[min(self.steps.index(step) + 1, len(self.steps) - 1)]

    @property
    def kinds(self) -> dict[str, str]:
        """The columns with the kind of values that they hold."""
        types = (self.columns or {}) | self.types
        return {name: kind_of(kind) for name, kind in types.items()}

    @property
    def types(self) -> dict[str, str]:
        """The types of a CSV file's columns, as the custodian says."""
        form = self.picks.get("kinds", {})
        return {
            name: KINDS.get(one(form, f"kind.{place}"), "VARCHAR")
            for place, name in enumerate(self.columns or ())
            if self.of_csv
        }

    @property
    def where(self) -> str:
        """The source as people read it."""
        source = self.source or {}
        if "file" in source:
            return str(source["file"]).rstrip("/").rpartition("/")[2]
        return " ".join(map(str, source.values()))


def one(form: Form, name: str) -> str:
    """Return the text of a field, without blanks around it; empty if it was not sent."""
    return (form.get(name) or ("",))[0].strip()


def listed(form: Form, name: str) -> list[str]:
    """Return the entries of a text: by lines and commas."""
    entries = one(form, name).replace("\n", ",").split(",")
    return [entry.strip() for entry in entries if entry.strip()]


# --- beginning, choosing, ending -----------------------------------------------------------------


def begin(service: Service, person: Person, *, picks: Json | None = None) -> str:
    """Begin a registration, in the place of one that was begun before; a worker lists sources."""
    person.must_be("custodian", scope="manage")
    identity = new_id()
    row: Json = {"id": identity, "owner": person.name, "state": "surveying", "words": SURVEYING}
    row |= {"picks": picks or {}, "created": now()}
    discard(service, person)
    with service.store.write() as connection:
        connection.execute(drafts.insert(), row)
        jobs.enqueue(connection, "survey", identity, owner=person.name, seconds=0)
    return identity


def discard(service: Service, person: Person) -> None:
    """Forget what a person began to register, and what was uploaded for it."""
    old = of(service, person)
    if old is None:
        return
    with service.store.write() as connection:
        connection.execute(drafts.delete().where(drafts.c.id == old.id))
        used = datasets.names_source(connection, old.source or {})
        if "upload" in (old.source or {}) and not used:
            jobs.enqueue(connection, "unload", old.id, owner=person.name, seconds=0)


def of(service: Service, person: Person) -> Draft | None:
    """Return what a person began to register, if there is something."""
    row = service.store.row(sa.select(drafts).where(drafts.c.owner == person.name))
    return None if row is None else _read(row)


def find(service: Service, person: Person, identity: str) -> Draft:
    """Return an own draft by its name."""
    person.must_be("custodian", scope="manage")
    draft = of(service, person)
    if draft is None or draft.id != identity:
        raise Missing("You have no such registration. Begin a new one.")
    return draft


def _read(row: sa.Row[Any]) -> Draft:
    return Draft(**{field.name: getattr(row, field.name) for field in fields(Draft)})


def choose(service: Service, draft: Draft, source: Json) -> None:
    """Take a source; a worker reads its columns. What was filled in stays where it still fits."""
    if "upload" not in source:
        source = checked_source(source, service.settings)
    values = {"source": source, "state": "looking", "words": LOOKING, "columns": None}
    with service.store.write() as connection:
        connection.execute(drafts.update().where(drafts.c.id == draft.id).values(values))
        subject = f"{draft.id}/{new_id()}"
        jobs.enqueue(connection, "look", subject, owner=draft.owner, seconds=0)


def again(service: Service, person: Person, name: str) -> str:
    """Begin anew with what a data set was registered with; uploaded rows are sent once more."""
    registered = datasets.owned(service, person, name)
    identity = begin(service, person, picks={"again": {"name": [name]}})
    if "upload" not in registered.source:
        choose(service, find(service, person, identity), dict(registered.source))
    return identity


def fill_in(service: Service, draft: Draft, step: str, form: Form) -> Draft:
    """Keep what a step sent, once it is checked together with the steps before it."""
    picks = draft.picks | {step: {name: list(values) for name, values in form.items()}}
    filled = replace(draft, picks=picks)
    before = draft.steps[: draft.steps.index(step) + 1]
    declaration_of(filled, before)
    service.store.change(drafts.update().where(drafts.c.id == draft.id).values(picks=picks))
    return filled


def register(service: Service, person: Person, draft: Draft, form: Form) -> str:
    """Register what was filled in; a worker checks the rows. Returns the data set's name."""
    name = checked_path_name("name", one(form, "name"))
    filled = fill_in(service, draft, "spend", form)
    datasets.register(
        service,
        person,
        name=name,
        source=dict(draft.source or {}),
        declaration=declaration_of(filled, draft.steps),
        budget=one(form, "budget"),
        facts=one(form, "facts"),
        uploaded="upload" in (draft.source or {}),
    )
    discard(service, person)
    return name


# --- what a worker writes down -------------------------------------------------------------------


def surveyed(connection: sa.Connection, identity: str, offered: Json) -> None:
    """Write down what there is to choose from; one that goes on already keeps its state."""
    mine = drafts.update().where(drafts.c.id == identity)
    connection.execute(mine.values(offered=offered))
    waits = mine.where(drafts.c.state == "surveying")
    connection.execute(waits.values(state="choosing", words=CHOOSE))


def source_in(service: Service, identity: str) -> Json | None:
    """Return the source that a draft has; None if it is gone."""
    row = service.store.row(sa.select(drafts.c.source).where(drafts.c.id == identity))
    return None if row is None else row.source


def looked_at(connection: sa.Connection, identity: str, columns: Mapping[str, str]) -> None:
    values = {"state": "ready", "words": "", "columns": dict(columns)}
    connection.execute(drafts.update().where(drafts.c.id == identity).values(values))


def stopped(connection: sa.Connection, identity: str, words: str) -> None:
    """Let another source be chosen, and say why."""
    values = {"state": "choosing", "words": words}
    connection.execute(drafts.update().where(drafts.c.id == identity).values(values))


# --- what the forms declare ----------------------------------------------------------------------


def declaration_of(draft: Draft, steps: Sequence[str]) -> Json:
    """Return what these steps declare, checked; every later step must fit to it."""
    declared: Json = {}
    for step in steps:
        declared |= _READERS[step](draft, draft.picks.get(step, {}))
    _check_roles(declared)
    if any(step != "kinds" for step in steps):
        Declaration.of(declared)
    return declared


def _kinds(draft: Draft, form: Form) -> Json:
    return {"schema": draft.types}


def _outcome(draft: Draft, form: Form) -> Json:
    sort = one(form, "sort")
    if sort in PARTS:
        typed = one(form, f"{sort}.from_models").split()
        brought = Values().from_words(typed, "Numbers of models") if typed else None
        return {sort: _part(draft, sort, form), "from_models": _as_json(brought)}
    if sort not in SORTS:
        raise ArgumentError("Choose what models predict.")
    name = _column(draft, form, "label", "the column that models predict")
    kind = draft.kinds[name]
    if sort == "number":
        if kind != "number":
            raise ArgumentError(f"{shown(name)} holds no numbers. Pick a column of numbers.")
        ends = [_number(form, end, words) for end, words in
                (("bound_low", "lower bound"), ("bound_high", "upper bound"))]  # fmt: skip
        return {"outcome": name, "bounds": ends}
    declared: Json = {"label": name, "score_range": [
        _number(form, "lowest", "lowest score", 0), _number(form, "highest", "highest score", 1),
    ]}  # fmt: skip
    if sort == "classes":
        classes = [_value(text, kind) for text in listed(form, "classes")]
        if len(classes) < 3:
            raise ArgumentError("List three classes or more, separated by commas.")
        return declared | {"classes": classes}
    declared["positive"] = _value(one(form, "positive") or "1", kind)
    if one(form, "negative"):
        declared["negative"] = _value(one(form, "negative"), kind)
    if listed(form, "score_values"):
        declared["score_values"] = [_score(text) for text in listed(form, "score_values")]
    if one(form, "prevalence"):
        declared["prevalence"] = _number(form, "prevalence", "share of positive rows")
    return declared


def _part(draft: Draft, name: str, form: Form) -> Json:
    """Return a part of a declaration from its fields, by their own rules."""
    declared: Json = {}
    for field in part_fields(name):
        if names_column(field):
            if one(form, f"{name}.{field.name}"):
                words = f"the column for {field.name.replace('_', ' ')}"
                declared[field.name] = _column(draft, form, f"{name}.{field.name}", words)
        elif one(form, f"{name}.{field.name}"):
            typed = one(form, f"{name}.{field.name}").split()
            value = field.rule.from_words(typed, field.name)
            declared[field.name] = _as_json(value)
        if field.required and field.name not in declared:
            raise ArgumentError(f"Fill in {field.name.replace('_', ' ')}.")
    return declared


def part_fields(name: str) -> tuple[FormField, ...]:
    """Return the fields of a part that a page can ask for."""
    return PARTS[name].of.declares


def _as_json(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _as_json(item) for name, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _typed(value: object) -> str | None:
    """Return a field of a part as a custodian would type it."""
    if not isinstance(value, Mapping):
        return None if value is None else str(value)
    words = []
    for name, ends in value.items():
        cells = ends.items() if isinstance(ends, Mapping) else (("", end) for end in ends)
        words.append(
            f"{name}=" + ",".join(f"{cell}:{n}" if cell else f"{n:g}" for cell, n in cells)
        )
    return " ".join(words)


def _rows(draft: Draft, form: Form) -> Json:
    declared: Json = {"neighbours": one(form, "neighbours") or "replace-one"}
    if one(form, "row_key"):
        declared["row_key"] = _column(draft, form, "row_key", "the column that names a row")
    if one(form, "unit"):
        declared["unit"] = _column(draft, form, "unit", "the column that names a person")
        declared["rows_per_unit"] = _whole(form, "rows_per_unit", "rows of one person", 1)
    if one(form, "expected_rows"):
        declared["expected_rows"] = _whole(form, "expected_rows", "number of rows")
    return declared


def _columns(draft: Draft, form: Form) -> Json:
    """Return what a model may see, with ranges and values for the twin, groups and weights."""
    features: Json = {}
    groups: Json = {}
    for place, (name, kind) in enumerate(draft.kinds.items()):
        values = listed(form, f"values.{place}")
        if one(form, f"feature.{place}"):
            features[name] = values or _range(form, place, name)
        if one(form, f"group.{place}"):
            if len(values) < 2:
                raise ArgumentError(f"List the values of {shown(name)} to compare its groups.")
            groups[name] = [_value(text, kind) for text in values]
    declared: Json = {"features": features or None, "groups": groups or None}
    if one(form, "weight"):
        declared["weight"] = _column(draft, form, "weight", "the column of weights")
        declared["largest_weight"] = _number(form, "largest_weight", "largest weight")
    return declared


def _range(form: Form, place: int, name: str) -> list[float] | None:
    """Return where a column's numbers lie, as the twin should have them; None if nobody says."""
    ends = [one(form, f"{end}.{place}") for end in ("low", "high")]
    if not any(ends):
        return None
    low, high = (_number(form, f"{end}.{place}", f"range of {shown(name)}")
                 for end in ("low", "high"))  # fmt: skip
    if low >= high:
        raise ArgumentError(f"The range of {shown(name)} must have its lower end first.")
    return [low, high]


def _spend(draft: Draft, form: Form) -> Json:
    budget_of(one(form, "budget"))
    return {"people": one(form, "people") or None, "new": bool(one(form, "new"))}


_READERS: Final = {
    "kinds": _kinds, "outcome": _outcome, "rows": _rows, "columns": _columns, "spend": _spend,
}  # fmt: skip


def own_columns(draft: Draft) -> set[str]:
    """Return the columns that earlier steps took: outcome, keys and the columns of a part."""
    before = [step for step in ("outcome", "rows") if step in draft.picks]
    declared = declaration_of(draft, before) if before else {}
    return set(_roles(declared).values())


def _roles(declared: Json) -> dict[str, str]:
    """Return which column was picked as what."""
    names = {"label": "outcome", "outcome": "outcome", "row_key": "row key", "unit": "person",
             "weight": "weight"}  # fmt: skip
    return {role: declared[field] for field, role in names.items() if declared.get(field)}


def _check_roles(declared: Json) -> None:
    """Refuse a column that was picked as two things; a group may be seen by models too."""
    roles = _roles(declared)
    seen: dict[str, str] = {}
    for role, name in roles.items():
        if name in seen:
            raise ArgumentError(
                f"{shown(name)} is picked as {seen[name]} and as {role}. Pick another column for "
                "one of them."
            )
        seen[name] = role
    for name in declared.get("features") or ():
        if name in seen:
            raise ArgumentError(
                f"{shown(name)} is the {seen[name]}: a model must not see it. Untick it."
            )


def _column(draft: Draft, form: Form, field: str, words: str) -> str:
    name = one(form, field)
    if name not in (draft.columns or {}):
        raise ArgumentError(f"Pick {words}.")
    return name


def _value(text: str, kind: str) -> int | float | str | bool:
    """Return a value as its column holds it: a number, a truth value or a text."""
    if kind == "boolean" and text.lower() in ("true", "false", "1", "0"):
        return text.lower() in ("true", "1")
    if kind != "number":
        return text
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    raise ArgumentError(f"{shown(text)} is not a number, but the column holds numbers.")


def _score(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentError("The only scores must be numbers, separated by commas.") from None


def _number(form: Form, field: str, words: str, usual: float | None = None) -> float:
    text = one(form, field)
    if not text and usual is not None:
        return float(usual)
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ArgumentError(f"The {words} must be a number.")
    return number


def _whole(form: Form, field: str, words: str, usual: int | None = None) -> int:
    text = one(form, field)
    if not text and usual is not None:
        return usual
    try:
        return int(text.replace(",", ""))
    except ValueError:
        raise ArgumentError(f"The {words} must be a whole number.") from None


# --- what the forms are filled in with -----------------------------------------------------------


def registered_forms(registered: Registered, draft: Draft) -> dict[str, dict[str, list[str]]]:
    """Return the forms that would declare what a data set was registered with, where they can."""
    declared, columns = registered.declaration, list(draft.columns or ())
    content, epsilon = declared.content, registered.budget.epsilon
    part = next(iter(declared.parts), "")
    sort = "number" if declared.outcome else "classes" if declared.classes else "two"
    outcome = {
        "sort": sort if declared.target else part,
        "label": declared.target,
        "positive": declared.positive,
        "negative": declared.negative,
        "classes": ", ".join(map(str, declared.classes)),
        "lowest": f"{declared.score_range[0]:g}",
        "highest": f"{declared.score_range[1]:g}",
        "score_values": ", ".join(f"{score:g}" for score in declared.score_values or ()),
        "prevalence": declared.prevalence,
    }
    outcome |= {f"{part}.{name}": _typed(value) for name, value in content.get(part, {}).items()}
    outcome[f"{part}.from_models"] = _typed(content.get("from_models"))
    if declared.bounds is not None:
        outcome |= {"bound_low": f"{declared.bounds[0]:.17g}",
                    "bound_high": f"{declared.bounds[1]:.17g}"}  # fmt: skip
    seen = content.get("features")
    own = {*declared.own_columns, *declared.scores}
    picked: dict[str, object] = {"weight": declared.weight,
                                 "largest_weight": declared.largest_weight}  # fmt: skip
    for place, name in enumerate(columns):
        groups = (declared.groups or {}).get(name)
        known = seen.get(name) if isinstance(seen, Mapping) else None
        if name in seen if seen is not None else name not in own:
            picked[f"feature.{place}"] = "yes"
        if groups is not None:
            picked[f"group.{place}"] = "yes"
        if groups is not None or (known and not all(isinstance(end, int | float) for end in known)):
            picked[f"values.{place}"] = ", ".join(map(str, groups or known or ()))
        elif known:
            picked[f"low.{place}"], picked[f"high.{place}"] = (f"{end:g}" for end in known)
    names = {kind: name for name, kind in KINDS.items()}
    kinds = {f"kind.{place}": names.get((declared.types or {}).get(name, ""), "text")
             for place, name in enumerate(columns)}  # fmt: skip
    rows = {name: getattr(declared, name) for name in
            ("row_key", "unit", "rows_per_unit", "neighbours", "expected_rows")}  # fmt: skip
    spend = {"name": registered.name, "facts": registered.facts, "people": declared.people,
             "new": "yes" if declared.new else "",
             "budget": "" if epsilon is None else decimal(epsilon)}  # fmt: skip
    forms = {"kinds": kinds, "outcome": outcome, "rows": rows, "columns": picked, "spend": spend}
    return {step: {name: [str(value)] for name, value in form.items() if value is not None}
            for step, form in forms.items()}  # fmt: skip
