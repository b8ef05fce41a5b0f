"""A ledger as one HTML page: how every account stands, and a plot of the spending."""

from typing import TYPE_CHECKING, Any, Final

from heldout.drawing.figure import Figure, rows, to_svg
from heldout.drawing.page import rendered
from heldout.drawing.words import amount, decimal
from heldout.privacy.summary import asked

if TYPE_CHECKING:
    from heldout.privacy.summary import Summary

__all__ = ["page"]

MOST: Final = 100
"""How many bookings the page lists, and accounts the plot shows."""


def page(found: "Summary") -> str:
    """The whole document."""
    names = {each.account: each.name for each in found.accounts}
    return rendered(
        "ledger.html",
        title="What has been spent",
        accounts=[
            (
                "\u2003" * each.depth + each.name,
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
    """What each account had spent, day by day."""
    title = "Spending over time"
    says = "What each account had spent in all by the end of each day."
    return Figure(to_svg(_chart(found, title), title=title, description=says), says)


def _chart(found: "Summary", title: str) -> Any:
    import altair as alt

    records = [
        {"account": name, "day": day, "spent": float(spent.epsilon or spent.rho or 0)}
        for name, day, spent in found.days
    ]
    base = alt.Chart(rows(records), title=title, width=520, height=260)
    line = base.mark_line(interpolate="step-after", point=True).encode(
        x=alt.X("day:T", title="Day (UTC)"),
        y=alt.Y("spent:Q", title="Spent in all (epsilon)"),
        color=alt.Color("account:N", title="Account"),
    )
    return line


def _sums(sums: dict[str, Any]) -> str:
    return ", ".join(f"{kind} {decimal(each)}" for kind, each in sums.items())
