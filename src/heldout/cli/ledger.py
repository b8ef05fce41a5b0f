"""`heldout ledger`: accounts and budgets for the custodian, and what has been spent."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import App, Parameter

from heldout.cli.output import (
    Flag,
    Json,
    console,
    existing_ledger,
    one_line,
    print_json,
    print_table,
)
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from heldout.drawing.chart import Figure
    from heldout.drawing.ledger import Standing, Summary
    from heldout.kernel.ledger.ledger import Ledger
    from heldout.kernel.ledger.records import Account
    from heldout.kernel.loss import Budget, Loss

HELP = """Register data sets, grant shares, show and verify what was spent. Examples:

```
heldout ledger register ledger.sqlite readmissions --budget 3 --unit patient_id
heldout ledger grant ledger.sqlite readmissions analyst-7 --budget 1
heldout ledger show ledger.sqlite
```
"""
app = App(name="ledger", help=HELP)
Place = Annotated[str, Parameter(help="The ledger's file or database URL.")]
BAR: Final = 10  # characters
MOST_ON_PAGE: Final = 100  # bookings


@dataclass(frozen=True, kw_only=True)
class Signed:
    """Who decides, and why: both are kept in the ledger.

    Parameters
    ----------
    who
        Who decides this; the name of your login if left out.
    why
        The reason, for the record.
    """

    who: str | None = None
    why: str | None = None
    as_json: Json = False

    @property
    def decision(self) -> dict[str, Any]:
        """Return what the ledger writes down of it."""
        return {"who": self.who, "why": self.why}


UNSIGNED = Signed()
Signature = Annotated[Signed, Parameter(name="*")]


@dataclass(frozen=True, kw_only=True)
class Registration:
    """Options of a registration; the arguments of `Ledger.register`.

    Parameters
    ----------
    unit
        Column that says whose row it is.
    rows_per_unit
        How many rows of one unit may count.
    neighbours
        replace-one, add-remove, or label. Without a unit, replace-one makes the number of rows
        public; label makes everything public but the outcome.
    outcome
        With label: the column with the outcome, or time and event.
    people
        The account that data sets about the same people share; a new one gets this budget.
    closed
        Close the ledger to rows that are not registered.
    new
        Register although other accounts know these people: they get a second budget.
    """

    unit: str | None = None
    rows_per_unit: int = 1
    neighbours: Literal["replace-one", "add-remove", "label"] = "replace-one"
    outcome: tuple[str, ...] = ()
    people: str | None = None
    closed: Flag = False
    new: Flag = False


USUAL = Registration()


@app.command
def register(
    place: Place,
    name: str,
    /,
    *,
    budget: str,
    registration: Annotated[Registration, Parameter(name="*")] = USUAL,
    rows: Path | None = None,
    row_key: str | None = None,
    signed: Signature = UNSIGNED,
) -> None:
    """Give a data set a name and a budget, which stay even if its table changes.

    Makes the ledger if there is none. Examples:

    ```
    heldout ledger register ledger.sqlite readmissions --budget 3 \\
      --unit patient_id
    heldout ledger register ledger.sqlite 2026 --budget 3 --unit patient_id \\
      --people patients
    ```

    Parameters
    ----------
    name
        What to call the account: evaluate --account NAME.
    budget
        Epsilon that may be spent in all.
    rows
        A file with the people, by unit or row key: tells which accounts know them already.
    row_key
        Column that tells rows apart, where there is no unit.
    """
    from heldout.kernel.ledger.ledger import Ledger

    table = None
    if rows is not None:
        from heldout.data.table import People

        unit, rows_per_unit = registration.unit, registration.rows_per_unit
        table = People(rows, unit=unit, rows_per_unit=rows_per_unit, row_key=row_key)
    with Ledger.open(place) as ledger:
        account = ledger.register(
            name, budget=_budget(budget), table=table, **vars(registration), **signed.decision
        )
        _say(ledger, account, f"{name} is registered", signed.as_json)


@app.command
def grant(
    place: Place,
    account: str,
    analyst: str,
    /,
    *,
    budget: str,
    signed: Signature = UNSIGNED,
) -> None:
    """Give an analyst a share of a registered account.

    ```
    heldout ledger grant ledger.sqlite readmissions analyst-7 --budget 1
    heldout ledger grant ledger.sqlite readmissions analyst-8 --budget 1/2 \\
      --why "thesis"
    ```

    Parameters
    ----------
    account
        The registered account.
    analyst
        Who gets the share: evaluate --account ACCOUNT --analyst ANALYST.
    budget
        Epsilon that the analyst may spend.
    """
    with open_ledger(place) as ledger:
        share = ledger.grant(account, analyst=analyst, budget=_budget(budget), **signed.decision)
        _say(ledger, share, f"{analyst} has a share of {account}", signed.as_json)


@app.command
def revoke(
    place: Place,
    account: str,
    analyst: str,
    /,
    *,
    signed: Signature = UNSIGNED,
) -> None:
    """Take an analyst's share away.

    ```
    heldout ledger revoke ledger.sqlite readmissions analyst-7
    heldout ledger revoke ledger.sqlite readmissions analyst-7 \\
      --why "left the project"
    ```

    Parameters
    ----------
    account
        The registered account.
    analyst
        Whose share it is.
    """
    with open_ledger(place) as ledger:
        share = ledger.revoke(account, analyst=analyst, **signed.decision)
        _say(ledger, share, f"The share of {analyst} is revoked", signed.as_json, is_open=False)


@app.command(name="raise")
def raise_(
    place: Place,
    account: str,
    /,
    *,
    budget: str,
    analyst: str | None = None,
    signed: Signature = UNSIGNED,
) -> None:
    """Raise the budget of an account, or of an analyst's share.

    ```
    heldout ledger raise ledger.sqlite readmissions --budget 5 \\
      --why "board, 3 May"
    heldout ledger raise ledger.sqlite readmissions --analyst analyst-7 \\
      --budget 2
    ```

    Parameters
    ----------
    account
        The registered account.
    budget
        Epsilon in all, from now on; larger than before.
    analyst
        Whose share to raise, instead of the account.
    """
    with open_ledger(place) as ledger:
        raised = ledger.raise_budget(
            account, analyst=analyst, budget=_budget(budget), **signed.decision
        )
        _say(ledger, raised, f"The budget of {analyst or account} is raised", signed.as_json)


@app.command
def close(
    place: Place,
    account: str,
    /,
    *,
    signed: Signature = UNSIGNED,
) -> None:
    """Close an account for good: nothing more is booked on it or below it.

    ```
    heldout ledger close ledger.sqlite readmissions
    heldout ledger close ledger.sqlite readmissions --why "study ended"
    ```

    Parameters
    ----------
    account
        The account.
    """
    with open_ledger(place) as ledger:
        ledger.close(account, **signed.decision)
        _say(ledger, account, f"{account} is closed", signed.as_json, is_open=False)


@app.command
def rekey(place: Place, /, *, signed: Signature = UNSIGNED) -> None:
    """Begin with a new key after the old one was lost.

    Accounts keep their budgets and are reached by their names from then on: --account NAME.

    ```
    heldout ledger rekey ledger.sqlite
    heldout ledger rekey ledger.sqlite --why "the disk died"
    ```
    """
    with open_ledger(place) as ledger:
        ledger.renew_key(**signed.decision)
    if signed.as_json:
        print_json({"rekeyed": True})
    else:
        console().print("The ledger has a new key. Keep a copy of it apart from the ledger.")


@app.command
def show(
    place: Place,
    /,
    *,
    account: str | None = None,
    last: int = 20,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Show how every account stands, and who spent on what, when.

    Needs no key, and works on read-only media. Every hash is recomputed. Examples:

    ```
    heldout ledger show ledger.sqlite
    heldout ledger show ledger.sqlite --json
    ```

    Parameters
    ----------
    account
        Only this account and those below it.
    last
        How many of the last bookings to list.
    out
        Write an HTML page with a plot of the spending.
    as_json
        Print JSON and nothing else, with all entries.
    """
    from heldout.drawing.ledger import summarise

    with open_ledger(place, read_only=True) as ledger:
        history = ledger.history(account)
    summary = summarise(history)
    if out is not None:
        out.write_text(page(summary), encoding="utf-8")
    if as_json:
        spending = {
            by: {
                name: {kind: str(spent) for kind, spent in sums.items()}
                for name, sums in names.items()
            }
            for by, names in summary.spending.items()
        }
        print_json(
            {
                "accounts": [_as_dict(standing) for standing in summary.accounts],
                "spending": spending,
                "entries": [entry.as_dict() for entry in history],
            }
        )
    elif not summary.accounts:
        console().print("Nothing has been booked.")
    else:
        _print_summary(summary, last)


@app.command
def verify(
    place: Place,
    /,
    *,
    receipt: str | None = None,
    renew_witness: Flag = False,
    as_json: Json = False,
) -> None:
    """Recompute every hash, price and total of a ledger.

    Exit code 1 if the ledger was changed, was put back to an older copy, or does not hold the
    booking of the receipt. Examples:

    ```
    heldout ledger verify ledger.sqlite
    heldout ledger verify ledger.sqlite --receipt $RECEIPT
    ```

    Parameters
    ----------
    receipt
        The hash that came with a release; its booking must be there.
    renew_witness
        Accept the ledger as it is, if you know why its witness is gone, and write a new one.
    """
    booking = None if receipt is None else _receipt(receipt)
    if renew_witness:
        _renew_witness(place, receipt=booking)
    with open_ledger(place, read_only=True) as ledger:
        verified = ledger.verify(receipt=booking)
    if as_json:
        print_json({"verified": True, **verified.as_dict()})
        return
    say = console()
    say.print(
        f"The ledger is whole: entries {verified.entries:,}, accounts {verified.accounts:,}, "
        "every hash, price and total as it was written."
    )
    if receipt is not None:
        say.print(f"The receipt is that of entry {verified.receipt_sequence}.")
    print(f"Last entry: {verified.hash}")


def open_ledger(place: str, *, read_only: bool = False) -> "Ledger":
    """Open a ledger that is there already."""
    from heldout.kernel.ledger.ledger import Ledger

    return Ledger.open(existing_ledger(place), read_only=read_only)


def _renew_witness(place: str, *, receipt: str | None) -> None:
    """Write a new witness of a ledger that is whole in itself, and has a receipt's booking."""
    from heldout.kernel.ledger.ledger import Ledger

    with Ledger.open(existing_ledger(place), read_only=True, witness=None) as ledger:
        ledger.verify(receipt=receipt)
    Ledger.open(place, renew_witness=True).close()


def _budget(text: str) -> "Budget":
    from heldout.kernel.loss import Budget

    return Budget(epsilon=text)


def _say(
    ledger: "Ledger",
    account: "Account | str",
    sentence: str,
    as_json: bool,
    *,
    is_open: bool = True,
) -> None:
    """Print how the account stands after a decision: as JSON, or as a sentence."""
    budget, spent, left = ledger.standing(account)
    if as_json:
        print_json({"budget": budget.as_dict(), "spent": spent.as_dict()})
    else:
        may = f", left {left} with the accounts above it" if is_open else ""
        console().print(one_line(f"{sentence}: budget {budget}, spent {spent}{may}."))


def _receipt(typed: str) -> str:
    """Return a whole receipt: a mistyped one must not be taken for a change of the ledger."""
    receipt = typed.strip().lower()
    if not re.fullmatch("[0-9a-f]{64}", receipt):
        raise ArgumentError(
            f"--receipt must be 64 hexadecimal digits, got {len(receipt)} characters. Reports and "
            "heldout ledger show --json have it whole."
        )
    return receipt


# --- what `heldout ledger show` prints ---


def _print_summary(summary: "Summary", last: int) -> None:

    print_table(
        ("account", "budget", "spent", "left", "protection"),
        [
            (
                "- " * standing.depth + standing.name,
                str(standing.budget),
                str(standing.spent),
                _bar(standing),
                _protection(standing.protection),
            )
            for standing in summary.accounts
        ],
        left=range(5),
    )
    for by, names in summary.spending.items():
        if names and (by == "month" or any(not name.startswith("(") for name in names)):
            rows = [(name, _sums(sums)) for name, sums in sorted(names.items())]
            print_table((f"by {by}", "spent"), rows, left=(0, 1))
    if not summary.bookings or last < 1:
        return
    head: Sequence[str] = ("entry", "time (UTC)", "account", "release", "price", "receipt")
    lines = [(*row[:-1], f"{row[-1][:10]}…") for row in _bookings(summary, last)]
    if len(summary.accounts) == 1:  # its column would say nothing, and a terminal has 80
        head, *lines = [(*row[:2], *row[3:]) for row in (head, *lines)]
    print_table(head, lines, left=range(1, len(head)))
    if len(summary.bookings) > last:
        print(f"The last {last} of {len(summary.bookings):,} bookings; --last shows more.")


def _bookings(summary: "Summary", last: int) -> list[tuple[str, ...]]:
    """Return the last bookings: entry, time, account, release, price and receipt."""
    from heldout.drawing.ledger import asked

    names = {standing.account: standing.name for standing in summary.accounts}
    return [
        (
            str(booking.sequence),
            f"{booking.time:%Y-%m-%d %H:%M}",
            names[booking.account],
            asked(booking.request),
            "" if booking.loss is None else str(booking.loss),
            booking.hash,
        )
        for booking in summary.bookings[-last:]
    ]


def _as_dict(standing: "Standing") -> dict[str, Any]:

    amounts: dict[str, Budget | Loss] = {
        "budget": standing.budget,
        "spent": standing.spent,
        "left": standing.left,
    }
    return {
        "account": standing.account,
        "name": standing.name,
        "kind": standing.kind,
        "parent": standing.parent,
        "closed": standing.closed,
        "protection": _protection(standing.protection),
        **{name: str(value) for name, value in amounts.items()},
        "exact": {name: value.as_dict() for name, value in amounts.items()},
    }


def _bar(standing: "Standing") -> str:
    """Return what is left, as a bar that any terminal can print."""
    if standing.closed:
        return "closed"
    full = round(standing.share_left * BAR)
    return f"{'#' * full}{'.' * (BAR - full)} {standing.share_left:.0%}"


def _sums(sums: Mapping[str, Fraction]) -> str:
    from heldout.drawing.words import decimal

    return ", ".join(f"{kind} {decimal(spent)}" for kind, spent in sums.items())


def _protection(stored: dict[str, Any] | None) -> str:
    if stored is None:
        return ""
    relation = str(stored["neighbours"])
    if stored.get("outcome"):
        relation += f" ({stored['outcome']})"
    if not stored["unit"]:
        return relation
    name = stored["unit_name"] or "unit"
    count = stored["rows_per_unit"]
    rows = "1 row" if count == 1 else f"{count} rows"
    return f"{relation}, {name} with {rows}"


# --- its page ---


def page(summary: "Summary") -> str:
    """Return one HTML page: how every account stands, and a plot of the spending."""
    from heldout.drawing.page import rendered

    return rendered(
        "ledger.html",
        title="What has been spent",
        accounts=[
            (
                "– " * standing.depth + standing.name,
                str(standing.budget),
                str(standing.spent),
                "closed" if standing.closed else f"{standing.share_left:.0%}",
            )
            for standing in summary.accounts
        ],
        spending={
            by: [(name, _sums(sums)) for name, sums in sorted(names.items())]
            for by, names in summary.spending.items()
        },
        bookings=_bookings(summary, MOST_ON_PAGE),
        count=len(summary.bookings),
        drawn=[_figure(summary)] if summary.days else [],
    )


def _figure(summary: "Summary") -> "Figure":
    """Draw what the accounts that spent most had spent, day by day."""
    from heldout.drawing.ledger import spending_over_time

    spent: dict[str, list[tuple[float, float]]] = {}
    first = min(date.fromisoformat(day) for _, day, _ in summary.days)
    for name, day, loss in summary.days:
        at = float((date.fromisoformat(day) - first).days)
        spent.setdefault(name, []).append((at, float(loss.epsilon or loss.rho or 0)))
    last = max(1.0, *(line[-1][0] + 1 for line in spent.values()))
    says = "What each account had spent in all by the end of each day."
    return spending_over_time(spent, x=f"Days since {first}", last=last, says=says)
