"""A ledger in words for people: how accounts stand, and who spent on what, when."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from heldout.drawing.chart import PALETTE, Chart, Field, Figure, Layer, Numbers
from heldout.kernel import accountant
from heldout.kernel.ledger.records import Entry, State
from heldout.kernel.loss import Budget, Loss, stored


@dataclass(frozen=True)
class Standing:
    """States how one account stands now."""

    account: str
    kind: str
    name: str
    parent: str | None
    depth: int
    protection: dict[str, Any] | None
    budget: Budget
    spent: Loss
    closed: bool

    @property
    def left(self) -> Loss:
        return accountant.remaining(self.spent, self.budget)

    @property
    def share_left(self) -> float:
        """From 1 (nothing is spent) to 0."""
        left, budget = self.left, self.budget
        parts = (left.epsilon, budget.epsilon) if budget.rho is None else (left.rho, budget.rho)
        assert parts[0] is not None
        assert parts[1] is not None
        return float(parts[0] / parts[1])


@dataclass
class Summary:
    """A ledger at a glance; `spending` has exact sums, of which a budget's kind has one each."""

    accounts: list[Standing] = field(default_factory=list)
    bookings: list[Entry] = field(default_factory=list)
    spending: dict[str, dict[str, dict[str, Fraction]]] = field(default_factory=dict)
    days: list[tuple[str, str, Loss]] = field(default_factory=list)
    """By account and day, what was spent at the end of the day."""


def asked(request: dict[str, Any]) -> str:
    """Say in a few words what a booking was for.

    >>> asked({"release": "auc"}), asked({"questions": [{"kind": "auc"}, {"kind": "curves"}]})
    ('auc', 'auc, curves')
    """
    if "release" in request:
        return str(request["release"])
    parts = [str(question.get("kind", "")) for question in request.get("questions", ())]
    return ", ".join(f"{part} x{count}" if count > 1 else part
                     for part, count in Counter(parts).items())  # fmt: skip


@dataclass(frozen=True)
class Booking:
    """One line of a session's history."""

    time: datetime
    asked: str
    model: str | None
    loss: Loss
    receipt: str

    @classmethod
    def of(cls, entry: Entry) -> "Booking":
        assert entry.loss is not None
        model = entry.request.get("model")
        return cls(entry.time, asked(entry.request), model, entry.loss, entry.hash)

    def __repr__(self) -> str:
        about = "" if self.model is None else f" of {self.model}"
        return f"{self.time:%Y-%m-%d %H:%M} {self.asked}{about}, {self.loss}, {self.receipt[:10]}"


def summarise(history: Iterable[Entry]) -> Summary:
    """Walk once over the entries."""
    summary = Summary()
    first: dict[str, dict[str, Any]] = {}
    parents: dict[str, str | None] = {}
    last: dict[str, dict[str, Any]] = {}
    days: dict[tuple[str, str], dict[str, Any]] = {}
    charges: Counter[tuple[str, str, str, str]] = Counter()
    for entry in history:
        content = entry.content
        path = [content, *content.get("above", ())] if entry.account else []
        for place, state in enumerate(path):
            account = state["account"]
            parents[account] = path[place + 1]["account"] if place + 1 < len(path) else None
            last[account] = state
            days[account, content["time"][:10]] = state["spent"]
        first.setdefault(entry.account, content)
        if content["kind"] != "booking":
            continue
        summary.bookings.append(entry)
        request = content["request"]
        groups = {
            "analyst": content.get("analyst") or "(nobody named)",
            "model": str(request.get("model", request.get("score", "(no model named)"))),
            "month": content["time"][:7],
        }
        for kind, text in content["charge"].items():
            charges.update((by, name, kind, text) for by, name in groups.items())
    for (by, name, kind, text), count in charges.items():
        if kind != "delta" or text != "0":
            sums = summary.spending.setdefault(by, {}).setdefault(name, {})
            sums[kind] = sums.get(kind, Fraction(0)) + count * stored(text)
    _add_accounts(summary, first, parents, last)
    names = {standing.account: standing.name for standing in summary.accounts}
    names |= {
        share.account: f"{names[str(share.parent)]}: {share.name}"
        for share in summary.accounts
        if share.kind == "analyst" and share.parent in names
    }
    summary.days = [
        (names[account], day, Loss.from_dict(spent))
        for (account, day), spent in days.items()
        if account in names
    ]
    return summary


def _add_accounts(
    summary: Summary,
    first: dict[str, dict[str, Any]],
    parents: dict[str, str | None],
    last: dict[str, dict[str, Any]],
) -> None:
    """Each account below the one above it, in the order in which they were opened."""
    children: dict[str | None, list[str]] = defaultdict(list)
    for account, parent in parents.items():
        if account in first:  # of one account's history, those above it are not shown
            children[parent if parent in first else None].append(account)
    kinds = {"opening": "rows", "registration": "data", "grant": "analyst"}

    def add(account: str, depth: int) -> None:
        opening, state = first[account], State.from_dict(last[account])
        name = opening.get("analyst") or opening.get("name") or "data"
        summary.accounts.append(
            Standing(
                account=account,
                kind="people"
                if depth == 0 and _is_data(children[account])
                else kinds[opening["kind"]],
                name=name,
                parent=parents[account],
                depth=depth,
                protection=opening.get("protection"),
                budget=state.budget,
                spent=state.spent,
                closed=state.closed,
            )
        )
        for child in children[account]:
            add(child, depth + 1)

    def _is_data(below: list[str]) -> bool:
        return any(first[account]["kind"] == "registration" for account in below)

    for account in children[None]:
        add(account, 0)


def spending_over_time(
    spent: Mapping[str, Sequence[tuple[float, float]]], *, x: str, last: float, says: str
) -> Figure:
    """Draw what each had spent in all since time 0, in steps up to `last`; most spenders first.

    `spent` has points of time and sum by name, in order.
    """
    most = sorted(spent, key=lambda name: -spent[name][-1][1])[: len(PALETTE)]
    points = [
        {"x": at, "y": total, "who": name}
        for name in most
        for at, total in ((0.0, 0.0), *spent[name], (last, spent[name][-1][1]))
    ]
    chart = Chart(
        [Layer("line", points, color=Field("who"), style={"interpolate": "step-after"})],
        x=Numbers(x, 0.0, last),
        y=Numbers("Spent in all", 0.0, max(spent[most[0]][-1][1], 1e-9) * 1.05),
        title="Spending over time",
        width=520,
        height=250,
        colours=dict(zip(most, PALETTE, strict=False)),
    )
    return Figure(chart.svg(says=says), says)
