"""`heldout ledger`: accounts and budgets for the custodian, and what has been spent."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from heldout.cli.values import Json

if TYPE_CHECKING:
    from heldout.kernel.ledger.ledger import Ledger
    from heldout.kernel.ledger.records import Account
    from heldout.kernel.loss import Budget, Loss

app = App(name="ledger", help="Register data sets, grant shares, show and verify what was spent.")
Place = Annotated[str, Parameter(help="The ledger's file or database URL.")]
Flag = Annotated[bool, Parameter(negative="")]


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


UNSIGNED = Signed()
Signature = Annotated[Signed, Parameter(name="*")]


@app.command
def register(
    place: Place,
    name: str,
    /,
    *,
    budget: str,
    unit: str | None = None,
    rows_per_unit: int = 1,
    neighbours: Literal["replace-one", "add-remove"] = "replace-one",
    people: str | None = None,
    closed: Flag = False,
    rows: Path | None = None,
    row_key: str | None = None,
    new: Flag = False,
    signed: Signature = UNSIGNED,
) -> None:
    """Give a data set a name and a budget that stay, whatever becomes of its table.

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
    unit
        Column that says whose row it is.
    rows_per_unit
        How many rows of one unit may count.
    neighbours
        replace-one or add-remove. Without a unit, replace-one makes the number of rows public.
    people
        The account that data sets about the same people share; a new one gets this budget.
    closed
        Close the ledger to rows that are not registered.
    rows
        A file with the people, by unit or row key: tells which accounts know them already.
    row_key
        Column that tells rows apart, where there is no unit.
    new
        Register although other accounts know these people: they get a second budget.
    """
    from heldout.kernel.ledger.ledger import Ledger

    table = None
    if rows is not None:
        from heldout.data.table import People

        table = People(rows, unit=unit, rows_per_unit=rows_per_unit, row_key=row_key)
    with Ledger.open(place) as ledger:
        account = ledger.register(
            name,
            budget=_budget(budget),
            unit=unit,
            rows_per_unit=rows_per_unit,
            neighbours=neighbours,
            people=people,
            closed=closed,
            table=table,
            new=new,
            who=signed.who,
            why=signed.why,
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
    with _opened(place) as ledger:
        share = ledger.grant(
            account, analyst=analyst, budget=_budget(budget), who=signed.who, why=signed.why
        )
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
    with _opened(place) as ledger:
        share = ledger.revoke(account, analyst=analyst, who=signed.who, why=signed.why)
        _say(ledger, share, f"The share of {analyst} is revoked", signed.as_json)


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
    with _opened(place) as ledger:
        raised = ledger.raise_budget(
            account, analyst=analyst, budget=_budget(budget), who=signed.who, why=signed.why
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
    with _opened(place) as ledger:
        ledger.close(account, who=signed.who, why=signed.why)
        _say(ledger, account, f"{account} is closed", signed.as_json)


@app.command
def rekey(place: Place, /, *, signed: Signature = UNSIGNED) -> None:
    """Begin with a new key after the old one was lost.

    Accounts keep their budgets and are reached by their names from then on: --account NAME.

    ```
    heldout ledger rekey ledger.sqlite
    heldout ledger rekey ledger.sqlite --why "the disk died"
    ```
    """
    from heldout.cli.output import console, print_json

    with _opened(place) as ledger:
        ledger.renew_key(who=signed.who, why=signed.why)
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
    from heldout.cli.ledger_tables import print_summary, standing
    from heldout.cli.output import console, print_json
    from heldout.drawing.ledger import summarise

    with _opened(place, read_only=True) as ledger:
        history = ledger.history(account)
    found = summarise(history)
    if out is not None:
        from heldout.cli.ledger_page import page

        out.write_text(page(found), encoding="utf-8")
    if as_json:
        accounts = [standing(each) for each in found.accounts]
        spending = {
            by: {
                name: {kind: str(each) for kind, each in sums.items()} for name, sums in of.items()
            }
            for by, of in found.spending.items()
        }
        entries = [each.as_dict() for each in history]
        print_json({"accounts": accounts, "spending": spending, "entries": entries})
    elif not found.accounts:
        console().print("Nothing has been booked.")
    else:
        print_summary(found, last)


@app.command
def verify(place: Place, /, *, receipt: str | None = None, as_json: Json = False) -> None:
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
    """
    from heldout.cli.output import console, print_json

    with _opened(place, read_only=True) as ledger:
        verified = ledger.verify(receipt=None if receipt is None else _receipt(receipt))
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


def _opened(place: str, *, read_only: bool = False) -> "Ledger":
    from heldout.cli.values import existing_ledger
    from heldout.kernel.ledger.ledger import Ledger

    return Ledger.open(existing_ledger(place), read_only=read_only)


def _budget(text: str) -> "Budget":
    from heldout.kernel.loss import Budget

    return Budget(epsilon=text)


def _say(ledger: "Ledger", account: "Account | str", sentence: str, as_json: bool) -> None:
    """How the account stands after a decision: as JSON, or as a sentence."""
    from heldout.cli.failure import one_line
    from heldout.cli.output import console, print_json
    from heldout.drawing.words import amount

    stands: dict[str, Budget | Loss] = {
        "budget": ledger.budget(account),
        "spent": ledger.spent(account),
    }
    if as_json:
        print_json({name: each.as_dict() for name, each in stands.items()})
        return
    console().print(
        one_line(f"{sentence}: budget {amount(stands['budget'])}, spent {amount(stands['spent'])}.")
    )


def _receipt(typed: str) -> str:
    """A receipt, whole: a mistyped one must not be told as a change of the ledger."""
    import re

    from heldout.errors import ArgumentError

    found = typed.strip().lower()
    if not re.fullmatch("[0-9a-f]{64}", found):
        raise ArgumentError(
            f"--receipt must be 64 hexadecimal digits, got {len(found)} characters. Reports and "
            "heldout ledger show --json have it whole."
        )
    return found
