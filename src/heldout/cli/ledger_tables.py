"""What `heldout ledger show` prints: accounts, spending and the last bookings."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heldout.drawing.ledger import Standing, Summary
    from heldout.kernel.loss import Budget, Loss

__all__ = ["print_summary", "standing"]

BAR = 10


def print_summary(found: "Summary", last: int) -> None:
    from heldout.cli.output import print_table
    from heldout.drawing.ledger import asked
    from heldout.drawing.words import amount

    print_table(
        ("account", "budget", "spent", "left", "protection"),
        [
            (
                "- " * each.depth + each.name,
                amount(each.budget),
                amount(each.spent),
                _bar(each),
                _protection(each.protection),
            )
            for each in found.accounts
        ],
        left=(0, 1, 2, 3, 4),
    )
    for by, of in found.spending.items():
        if of and (by == "month" or any(not name.startswith("(") for name in of)):
            rows = [(name, _sums(sums)) for name, sums in sorted(of.items())]
            print_table((f"by {by}", "spent"), rows, left=(0, 1))
    if not found.bookings or last < 1:
        return
    names = {each.account: each.name for each in found.accounts}
    head = ("entry", "time (UTC)", "account", "release", "price", "receipt")
    lines = [
        (
            str(each.sequence),
            f"{each.time:%Y-%m-%d %H:%M}",
            names[each.account],
            asked(each.request),
            "" if each.loss is None else amount(each.loss),
            f"{each.hash[:10]}…",
        )
        for each in found.bookings[-last:]
    ]
    if len(names) == 1:  # its column would say nothing, and a terminal has 80
        head, *lines = [(*row[:2], *row[3:]) for row in (head, *lines)]  # type: ignore[assignment]
    print_table(head, lines, left=range(1, len(head)))
    if len(found.bookings) > last:
        print(f"The last {last} of {len(found.bookings):,} bookings; --last shows more.")


def standing(each: "Standing") -> dict[str, Any]:
    from heldout.drawing.words import amount

    amounts: dict[str, Budget | Loss] = {
        "budget": each.budget,
        "spent": each.spent,
        "left": each.left,
    }
    return {
        "account": each.account,
        "name": each.name,
        "kind": each.kind,
        "parent": each.parent,
        "closed": each.closed,
        "protection": _protection(each.protection),
        **{name: amount(value) for name, value in amounts.items()},
        "exact": {name: value.as_dict() for name, value in amounts.items()},
    }


def _bar(each: "Standing") -> str:
    """What is left, as a bar that any terminal can print."""
    if each.closed:
        return "closed"
    full = round(each.share_left * BAR)
    return f"{'#' * full}{'.' * (BAR - full)} {each.share_left:.0%}"


def _sums(sums: dict[str, Any]) -> str:
    from heldout.drawing.words import decimal

    return ", ".join(f"{kind} {decimal(amount)}" for kind, amount in sums.items())


def _protection(stored: dict[str, Any] | None) -> str:
    if stored is None:
        return ""
    if not stored["unit"]:
        return str(stored["neighbours"])
    name = stored["unit_name"] or "unit"
    count = stored["rows_per_unit"]
    rows = "1 row" if count == 1 else f"{count} rows"
    return f"{stored['neighbours']}, {name} with {rows}"
