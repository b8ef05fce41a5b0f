"""`heldout verify`: is this page what a server signed, and is it still in the ledger?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from heldout.server.signing import Genuine

LARGEST = 50_000_000  # bytes of a page


def verify(
    page: Path,
    /,
    *,
    server_key: str,
    server: str | None = None,
    token_file: Path | None = None,
    model: Path | None = None,
    out: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", show_default=False)] = False,
) -> None:
    """Is this page what a server signed?

    Checks the signature with the server's public key, builds the answer again from the signed
    numbers and compares the page with it, byte by byte. Needs no server and reads no row. Exits
    with 1 if the page was changed. Examples:

    ```
    heldout verify report.html --server-key signing.pub
    heldout verify report.html --server-key signing.pub --model model.onnx
    heldout verify report.html --server-key signing.pub --out again.html --json
    heldout verify report.html --server-key signing.pub \\
      --server https://evaluate.example.org --token-file token.txt
    ```

    Parameters
    ----------
    page
        The .html file.
    server_key
        The server's public key, or a file that holds it; from its custodian, not from the page.
    server
        Ask this server whether the booking is still in its ledger.
    token_file
        A file that holds your token for it.
    model
        Check that the answer is about this file: a model, or predictions, as it was submitted.
    out
        Write the page that the signed numbers make to this .html file.
    as_json
        Print JSON and nothing else.
    """
    from heldout.cli.output import console, print_json
    from heldout.drawing.place import write_page
    from heldout.drawing.words import amount
    from heldout.errors import ArgumentError, NotGenuine
    from heldout.server.signing import Genuine, key_of

    if (server is None) != (token_file is None):
        raise ArgumentError("--server must go with --token-file.")
    given = _text(page)
    found = Genuine.in_page(given, key=key_of(server_key))
    about_model = None if model is None else found.check_model(model)
    again = found.page()
    if out is not None:
        write_page(out, lambda: again)
    in_ledger = None
    if server is not None and token_file is not None:
        in_ledger = _found_by(server, token_file, found)
    receipt, same = found.answered.receipt, given == again
    if as_json:
        print_json(
            {
                "evaluation": found.evaluation,
                "ledger": found.head["ledger"],
                "receipt": receipt.as_dict(),
                "questions": [each.as_dict() for each in found.answered.questions],
                "answers": [each.as_dict() for each in found.answered.releases],
                "page": "as signed" if same else "another",
                "in_ledger": in_ledger,
                "subject": found.subject,
                "model": about_model,
            }
        )
    else:
        _print_numbers(found)
        say = console()
        say.print("Signature: good.")
        _print_subject(found, model)
        say.print(f"Paid: {amount(receipt.loss)}, entry {receipt.sequence} of the ledger.")
        print(f"Receipt: {receipt.hash}")
        if in_ledger is not None:
            say.print(f"The booking is in the server's ledger, which ends at entry {in_ledger}.")
    if not same:
        raise NotGenuine(
            f"{page.name} is not the page that the signed numbers make: it was changed, or made "
            "by other versions of heldout and its libraries. The numbers that were signed are "
            "those printed here; --out writes their page."
        )
    if not as_json:
        print("Page: every byte is as the signed numbers make it.")


def _print_subject(found: "Genuine", model: Path | None) -> None:
    """Print what the answer is about, where the statement says so."""
    from heldout.arguments import visible

    if found.subject is None:
        return
    for each in found.subject["models"]:
        print(f"Model: {visible(each['name'])}, SHA-256 {each['sha256']}")
    registration = found.subject["registration"]["revision"]
    print(f"Data set: {visible(found.subject['dataset'])}, registration {registration}")
    print(f"Evaluation: {found.evaluation}, {found.subject['time']}")
    if model is not None:
        print(f"{visible(model.name)} is the file that the answer is about.")


def _text(page: Path) -> str:
    from heldout.arguments import shown
    from heldout.errors import ArgumentError

    try:
        if page.stat().st_size > LARGEST:
            raise ArgumentError(f"{shown(page.name)} is too long for a page of an answer.")
        return page.read_bytes().decode("utf-8")
    except OSError as error:
        raise ArgumentError(f"{shown(page.name)} cannot be read ({error.strerror}).") from None
    except ValueError:
        raise ArgumentError(f"{shown(page.name)} is not a page: it holds no UTF-8.") from None


def _found_by(address: str, token_file: Path, found: "Genuine") -> int:
    """Where the server's ledger ends, if it holds the booking and was not put back."""
    from heldout.cli.remote import opened
    from heldout.client.remembered import not_put_back

    server, receipt = opened(address, token_file), found.answered.receipt
    now = server.head()
    not_put_back(seen=found.head, now=now)
    server.find(receipt.hash, sequence=receipt.sequence)
    return int(now["sequence"])


def _print_numbers(found: "Genuine") -> None:
    from heldout.cli.failure import one_line
    from heldout.cli.output import console, print_table
    from heldout.drawing.words import spread
    from heldout.questions.report import Report

    about = found.answered.drawn.about
    console().print(one_line(f"{about.model} on {about.name}"), style="bold")
    rows = [
        [name, *spread(measure, 0.95)]
        for each in found.answered.releases
        for name, measure in (
            each.measures() if isinstance(each, Report) else each.measures
        ).items()
    ]
    print_table(("measure", "value", "95% interval", "noise alone"), rows)
