"""`heldout ledger show` and `heldout ledger verify`."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

if TYPE_CHECKING:
    from heldout.privacy.ledger import Entry

app = App(name="ledger", help="Show or verify what has been spent.")
Json = Annotated[bool, Parameter(name="--json", show_default=False)]


@app.command
def show(place: str, /, *, as_json: Json = False) -> None:
    """Show every data set's budget and every booking.

    The whole chain of hashes is verified first. Examples:

    ```
    heldout ledger show ledger.sqlite
    heldout ledger show ledger.sqlite --json
    ```

    Parameters
    ----------
    place
        The ledger's file or database URL.
    as_json
        Print JSON and nothing else.
    """
    from heldout.cli.output import console, print_json, print_table
    from heldout.cli.values import existing_ledger
    from heldout.privacy.ledger import Ledger

    with Ledger.open(existing_ledger(place)) as ledger:
        history = ledger.history()
    accounts = _accounts(history)
    if as_json:
        entries = [each.as_dict() for each in history]
        print_json({"accounts": list(accounts.values()), "entries": entries})
        return
    if not accounts:
        console().print("Nothing has been booked.")
        return
    print_table(
        ("data", "account", "budget", "spent", "protection"),
        [
            (each["name"], each["account"][:6], each["budget"], each["spent"], each["protection"])
            for each in accounts.values()
        ],
        left=(0, 1, 2, 3, 4),
    )
    head: tuple[str, ...] = ("entry", "time (UTC)", "account", "release", "price", "receipt")
    rows = [_row(each) for each in history if each.kind == "booking"]
    if len(accounts) == 1:  # its column would say nothing, and a terminal has 80
        head, *rows = [(*row[:2], *row[3:]) for row in (head, *rows)]
    print_table(head, rows, left=range(1, len(head)))


@app.command
def verify(place: str, /, *, receipt: str | None = None, as_json: Json = False) -> None:
    """Recompute every hash, price and total of a ledger.

    Exit code 1 if the ledger was changed, was put back to an older copy, or does not hold the
    booking of the receipt. Examples:

    ```
    heldout ledger verify ledger.sqlite
    heldout ledger verify ledger.sqlite --receipt $RECEIPT
    ```

    Parameters
    ----------
    place
        The ledger's file or database URL.
    receipt
        The hash that came with a release; its booking must be there.
    as_json
        Print JSON and nothing else.
    """
    from heldout.cli.output import console, print_json
    from heldout.cli.values import existing_ledger
    from heldout.privacy.ledger import Ledger

    with Ledger.open(existing_ledger(place)) as ledger:
        verified = ledger.verify(receipt=receipt)
    if as_json:
        print_json({"verified": True, **verified.as_dict()})
        return
    say = console()
    say.print(
        f"The ledger is whole: entries {verified.entries:,}, data sets {verified.accounts:,}, "
        "every hash, price and total as it was written."
    )
    if receipt is not None:
        say.print(f"The receipt is that of entry {verified.receipt_sequence}.")
    print(f"Last entry: {verified.hash}")


def _accounts(history: list["Entry"]) -> dict[str, dict[str, Any]]:
    from heldout.drawing.words import amount

    accounts: dict[str, dict[str, Any]] = {}
    for entry in history:
        if entry.kind == "opening":
            accounts[entry.account] = {
                "account": entry.account,
                "name": entry.content.get("name") or "data",
                "budget": amount(entry.budget),
                "protection": _protection(entry.content.get("protection")),
            }
        accounts[entry.account]["spent"] = amount(entry.spent)
    return accounts


def _protection(stored: dict[str, Any] | None) -> str:
    if stored is None:
        return ""
    if not stored["unit"]:
        return str(stored["neighbours"])
    name = stored["unit_name"] or "unit"
    return f"{stored['neighbours']}, {name} with {stored['rows_per_unit']} rows"


def _row(entry: "Entry") -> tuple[str, ...]:
    from heldout.drawing.words import amount

    assert entry.loss is not None
    return (
        str(entry.sequence),
        f"{entry.time:%Y-%m-%d %H:%M}",
        entry.account[:6],
        str(entry.request.get("release", "")),
        amount(entry.loss),
        f"{entry.hash[:10]}…",
    )
