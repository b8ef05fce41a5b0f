"""A ledger as one HTML page: how every account stands, and a plot of the spending."""

from datetime import date
from typing import TYPE_CHECKING, Any, Final

from heldout.drawing.chart import Chart, Field, Figure, Layer, Numbers
from heldout.drawing.colours import PALETTE
from heldout.drawing.ledger import asked
from heldout.drawing.page import rendered
from heldout.drawing.words import amount, decimal

if TYPE_CHECKING:
    from heldout.drawing.ledger import Summary

__all__ = ["page"]

MOST: Final = 100
"""How many bookings the page lists."""


def page(found: "Summary") -> str:
    """The whole document."""
    names = {each.account: each.name for each in found.accounts}
    return rendered(
        "ledger.html",
        title="What has been spent",
        accounts=[
            (
                "– " * each.depth + each.name,
                amount(each.budget),
                amount(each.spent),
                "closed" if each.closed else f"{each.share_left:.0%}",
            )
            for each in found.accounts
        ],
        spending={
            by: [(name, _sums(sums)) for name, sums in sorted(of.items())]
            for by, of in found.spending.items()
        },
        bookings=[
            (
                str(each.sequence),
                f"{each.time:%Y-%m-%d %H:%M}",
                names[each.account],
                asked(each.request),
                "" if each.loss is None else amount(each.loss),
                each.hash,
            )
            for each in found.bookings[-MOST:]
        ],
        count=len(found.bookings),
        drawn=[figure(found)] if found.days else [],
    )


def figure(found: "Summary") -> Figure:
    """What the accounts that spent most had spent, day by day."""
    says = "What each account had spent in all by the end of each day."
    return Figure(_chart(found).svg(says=says), says)


def _chart(found: "Summary") -> Chart:
    lines: dict[str, list[dict[str, float]]] = {}
    first = min(date.fromisoformat(day) for _, day, _ in found.days)
    for name, day, spent in found.days:
        at = float((date.fromisoformat(day) - first).days)
        line = lines.setdefault(name, [{"day": at, "spent": 0.0}])
        line.append({"day": at, "spent": float(spent.epsilon or spent.rho or 0)})
    last = max(1.0, *(point["day"] + 1 for line in lines.values() for point in line))
    most = sorted(lines, key=lambda name: -lines[name][-1]["spent"])[: len(PALETTE)]
    colours = dict(zip(most, PALETTE, strict=False))
    return Chart(
        [
            Layer(
                "line",
                [
                    {**point, "account": name}
                    for name in most
                    for point in (*lines[name], lines[name][-1] | {"day": last})
                ],
                x="day",
                y="spent",
                color=Field("account"),
                style={"interpolate": "step-after"},
            )
        ],
        x=Numbers(f"Days since {first}", 0.0, last),
        y=Numbers("Spent in all", 0.0, max(lines[most[0]][-1]["spent"], 1e-9) * 1.05),
        title="Spending over time",
        width=520,
        height=260,
        colours=colours,
    )


def _sums(sums: dict[str, Any]) -> str:
    return ", ".join(f"{kind} {decimal(each)}" for kind, each in sums.items())
