"""The verification server: `heldout serve`, `heldout worker`, and `heldout verify` of its pages."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from heldout.arguments import shown, visible
from heldout.cli.output import (
    Flag,
    Json,
    Several,
    console,
    one_line,
    print_json,
    print_measures,
    text_of,
)
from heldout.errors import ArgumentError, NotGenuine

if TYPE_CHECKING:
    from heldout.server.service import Service
    from heldout.server.signing import Genuine


HELP = """Look after a server: copies, links, keys and retention. Examples:

```
heldout server backup hospital /backup/hospital-2026-11-18
heldout server admin-link hospital --address https://evaluate.example.org
```
"""
app = App(name="server", help=HELP)


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Options of serving; the arguments of `heldout.server.run.serve`.

    Parameters
    ----------
    host
        The address that it listens at, usually 127.0.0.1; 0.0.0.0 is reached from other machines.
    port
        The port that it listens at, usually 8000.
    database
        A PostgreSQL database for the server's tables and the ledger.
    workers
        How many workers to start, usually 2; with 0, start them elsewhere by `heldout worker`. One
        person has one of them at a time, so with two nobody waits for one other person's model.
    processes
        How many web processes share the port, usually 1.
    rows
        The one folder from which custodians may register files. Left out: any file of this
        machine, by its whole path.
    address
        What people type to reach the server, where a proxy stands before it. With https, cookies
        travel by https alone.
    hosts
        Further names that people type to reach the server. Requests for any name but these, the
        one in `address` and localhost are refused.
    demo
        Begin with a made-up hospital: a data set, a custodian, an analyst and a model.
    """

    host: str | None = None
    port: int | None = None
    database: str | None = None
    workers: int | None = None
    processes: int | None = None
    rows: Path | None = None
    address: str | None = None
    hosts: Several = ()
    demo: Flag = False


USUAL = Serving()


def serve(
    folder: Path,
    /,
    *,
    serving: Annotated[Serving, Parameter(name="*")] = USUAL,
    prepare: Flag = False,
    accept_ledger: Flag = False,
) -> None:
    """Let analysts ask about data that nobody may look at: web pages, API and workers.

    The first start makes the folder and prints the administrator's sign-in link. Everything is
    kept in the folder, in SQLite files, unless `--database` names a PostgreSQL database. Ctrl-C
    stops it; a job that was begun is finished first. Every setting can also come from the
    environment or a file: docs/server.md lists them. Examples:

    ```
    heldout serve hospital --demo
    heldout serve hospital --rows /srv/rows --port 8080
    heldout serve hospital --database postgresql://heldout@db/heldout --workers 0
    ```

    Parameters
    ----------
    folder
        Where the server keeps its files.
    prepare
        As the owner of the PostgreSQL database, make or upgrade the tables, give the roles
        heldout_web and heldout_worker their rights, and end.
    accept_ledger
        Once, if the newest ledger is lost for good: take the older copy for the truth. Bookings
        after its end are forgotten; the log says which. Without it such a ledger is refused.
    """
    from heldout.server.run import serve as run

    run(folder, **vars(serving), prepare_only=prepare, accept_ledger=accept_ledger)


def worker(folder: Path, /, *, database: str | None = None, rows: Path | None = None) -> None:
    """Do the server's work on private rows: check, score, book and answer.

    Start one per core, on machines that may read the rows. SIGTERM stops one; a job
    that was begun is finished first. Examples:

    ```
    heldout worker hospital
    heldout worker hospital --database postgresql://heldout@db/heldout
    ```

    Parameters
    ----------
    folder
        The server's folder; workers share `private` and `artifacts` in it.
    database
        As in `heldout serve`.
    rows
        As in `heldout serve`.
    """
    from heldout.server.run import work

    work(folder, database=database, rows=rows)


# --- looking after a server ----------------------------------------------------------------------


@contextmanager
def _open(
    folder: Path, *, database: str | None, address: str | None = None, new: bool = False
) -> Iterator["Service"]:
    """Open a server as a command on its machine sees it; one that is not `new` must be there."""
    from heldout.server.backups import check_there
    from heldout.server.run import open_service

    with closing(open_service(folder, database=database, address=address, new=new)) as service:
        if not new:
            check_there(service)
        yield service


@app.command
def backup(
    folder: Path, to: Path, /, *, database: str | None = None, only_ledger: Flag = False
) -> None:
    """Copy a whole server, which may be running, to a new folder.

    The copy has everything that `heldout server restore` needs: people, data sets, models, scores,
    answers, keys, the rows that the server copied, and the ledger. Guard it as you guard the rows.
    Examples:

    ```
    heldout server backup hospital /backup/hospital-2026-11-18
    heldout server backup hospital /backup/ledger.sqlite --only-ledger
    ```

    Parameters
    ----------
    folder
        The server's folder.
    to
        Where to write the copy: a folder that does not exist.
    database
        As in `heldout serve`; the address of the tables' owner.
    only_ledger
        Copy the ledger alone to one file, over the copy that is there. Every few minutes, say: what
        was spent must never be forgotten.
    """
    from heldout.server.backups import make_backup, save_ledger

    with _open(folder, database=database) as service:
        if only_ledger:
            head = save_ledger(service, to)
            print(f"{to} has the ledger, which ends with entry {head.sequence}.")
            return
        made = make_backup(service, to)
        print(f"{to} has {len(made.files)} files. Its ledger ends with entry ", end="")
        print(
            f"{made.ledger.sequence}. It holds private rows and keys: guard it as you guard them."
        )


@app.command
def restore(
    backup: Path,
    folder: Path,
    /,
    *,
    database: str | None = None,
    ledger: Path | None = None,
    accept_ledger: Flag = False,
    keep_tokens: Flag = False,
) -> None:
    """Put a copy of a server back, into a folder where no server is.

    The ledger never goes back in time. If one is in the folder or the database already, it is kept,
    and must continue the copy's. Else name the newest that you have. Everybody signs in again, and
    makes new tokens, because the copy does not know which were revoked since. Examples:

    ```
    heldout server restore /backup/hospital-2026-11-18 hospital --ledger /backup/ledger.sqlite
    heldout server restore /backup/hospital-2026-11-18 hospital --accept-ledger
    ```

    Parameters
    ----------
    backup
        The folder that `heldout server backup` wrote.
    folder
        Where the server goes.
    database
        A PostgreSQL database for its tables and ledger, whatever they were in before.
    ledger
        The newest copy of the ledger: the old server's own file, or `--only-ledger`'s.
    accept_ledger
        Take the copy's own ledger, because there is no newer one. What was booked after the copy
        was made is forgotten, and the log says so.
    keep_tokens
        Let tokens of programs stay valid: for a planned move, where none was revoked meanwhile.
    """
    from heldout.server.backups import Backup
    from heldout.server.backups import restore as put_back

    copy = Backup.at(backup)
    with _open(folder, database=database, new=True) as service:
        done = put_back(
            copy, service, newest=ledger, accept_ledger=accept_ledger, keep_tokens=keep_tokens
        )
        print(f"The server of {copy.made} is in {folder}: {done.line}.")
        print("Start it with heldout serve; heldout server admin-link makes a sign-in link.")


@app.command
def sweep(folder: Path, /, *, database: str | None = None, dry_run: Flag = False) -> None:
    """Delete what is older than the rules of retention allow, as workers do once a day.

    The settings keep_models, keep_scores, keep_answers and keep_rows are the rules. The ledger,
    receipts and the log are never touched. Every deletion is in the log. Example:

    ```
    heldout server sweep hospital --dry-run
    ```

    Parameters
    ----------
    folder
        The server's folder.
    database
        As in `heldout serve`; the address of the tables' owner.
    dry_run
        Print what would be deleted, and delete nothing.
    """
    from heldout.server import retention

    with _open(folder, database=database) as service:
        done = retention.sweep(service, dry_run=dry_run)
        for words in done:
            print(visible(words))
        be = "would be" if dry_run else "was" if len(done) == 1 else "were"
        print(f"{len(done)} {be} deleted.")


@app.command
def downgrade(folder: Path, /, *, to: str, database: str | None = None) -> None:
    """Bring the tables back to an older revision, before an older version of heldout is started.

    Stop web and workers, and make a backup first. Upgrading needs no command: a start does it. The
    ledger has no revisions, and stays as it is. Example:

    ```
    heldout server downgrade hospital --to 4
    ```

    Parameters
    ----------
    folder
        The server's folder.
    to
        The revision that the older version knows: docs/server.md lists them.
    database
        As in `heldout serve`; the address of the tables' owner.
    """
    from heldout.server.storage import revision_of, revisions

    with _open(folder, database=database) as service:
        if to not in revisions():
            raise ArgumentError(f"to must be one of {', '.join(revisions())}, got {shown(to)}.")
        service.store.migrate(to, back=True)
        print(f"The tables are of revision {revision_of(service.store)}.")


@app.command
def key() -> None:
    """Print a new key for the setting rows_key, under which workers encrypt their copies of rows.

    Keep it outside the server's folder and outside its backups. If it is lost, refresh the data
    sets: their rows are copied again, under the new key. Example:

    ```
    heldout server key > /etc/heldout/rows.key
    ```
    """
    from cryptography.fernet import Fernet

    print(Fernet.generate_key().decode())


@app.command
def admin_link(
    folder: Path,
    /,
    *,
    database: str | None = None,
    address: str | None = None,
    name: str | None = None,
    reset_factor: Flag = False,
) -> None:
    """Make a sign-in link for an administrator, on the server's own machine.

    For whoever lost the first link or the password. Where no administrator is left, one is added.
    The log keeps that a link was made here. Example:

    ```
    heldout server admin-link hospital --address https://evaluate.example.org
    ```

    Parameters
    ----------
    folder
        The server's folder.
    database
        As in `heldout serve`.
    address
        As in `heldout serve`.
    name
        Which administrator; left out, the first one who is not disabled.
    reset_factor
        Take away the second factor as well, for whoever lost their app and recovery codes.
    """
    from heldout.server import accounts

    with _open(folder, database=database, address=address) as service:
        who, secret = accounts.administrator_link(service, name, reset_factor=reset_factor)
        print(f"Sign in as {who}, once, by {service.settings.reached}/sign-in/{secret}")


def verify(
    page: Path,
    /,
    *,
    server_key: str,
    server: str | None = None,
    token_file: Path | None = None,
    model: Path | None = None,
    out: Path | None = None,
    as_json: Json = False,
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
    """
    from heldout.drawing.page import write_page
    from heldout.server.signing import Genuine, key_of

    if (server is None) != (token_file is None):
        raise ArgumentError("--server needs --token-file.")
    given = text_of(page, "a page of an answer")
    genuine = Genuine.in_page(given, key=key_of(server_key))
    about_model = None if model is None else genuine.check_model(model)
    again = genuine.page()
    if out is not None:
        write_page(out, lambda: again)
    in_ledger = None
    if server is not None and token_file is not None:
        in_ledger = _end_of_ledger(server, token_file, genuine)
    receipt, same = genuine.answered.receipt, given == again
    anew = not same and genuine.is_read_anew
    if as_json:
        print_json(
            {
                "evaluation": genuine.evaluation,
                "ledger": genuine.head["ledger"],
                "receipt": receipt.as_dict(),
                "questions": [question.as_dict() for question in genuine.answered.questions],
                "answers": [release.as_dict() for release in genuine.answered.releases],
                "page": "as signed" if same else "not comparable" if anew else "another",
                "in_ledger": in_ledger,
                "subject": genuine.subject,
                "model": about_model,
            }
        )
    else:
        _print_numbers(genuine)
        say = console()
        say.print("Signature: good.")
        _print_subject(genuine, model)
        say.print(f"Paid: {receipt.loss}, entry {receipt.sequence} of the ledger.")
        print(f"Receipt: {receipt.hash}")
        if in_ledger is not None:
            say.print(f"The booking is in the server's ledger, which ends at entry {in_ledger}.")
    if anew:
        raise NotGenuine(
            f"{page.name} cannot be compared: an earlier version of heldout signed the noisy "
            "counts of its curves alone, and this version reads curves anew. The signature "
            "is good. Compare the page with the version that made it; --out writes today's."
        )
    if not same:
        raise NotGenuine(
            f"{page.name} is not the page that the signed numbers make: it was changed, or made "
            "by other versions of heldout and its libraries. The numbers that were signed are "
            "those printed here; --out writes their page."
        )
    if not as_json:
        print("Page: every byte is as the signed numbers make it.")


def _print_subject(genuine: "Genuine", model: Path | None) -> None:
    """Print what the answer is about, where the statement says so."""
    subject = genuine.subject
    if subject is None:
        return
    for signed in subject["models"]:
        print(f"Model: {visible(signed['name'])}, SHA-256 {signed['sha256']}")
    registration = subject["registration"]["revision"]
    print(f"Data set: {visible(subject['dataset'])}, registration {registration}")
    print(f"Evaluation: {genuine.evaluation}, {subject['time']}")
    if model is not None:
        print(f"{visible(model.name)} is the file that the answer is about.")


def _end_of_ledger(address: str, token_file: Path, genuine: "Genuine") -> int:
    """Return where the server's ledger ends, if it holds the booking and was not put back."""
    from heldout.cli.frame import open_server
    from heldout.client import not_put_back

    server, receipt = open_server(address, token_file), genuine.answered.receipt
    now = server.head()
    not_put_back(seen=genuine.head, now=now)
    server.find(receipt.hash, sequence=receipt.sequence)
    return int(now["sequence"])


def _print_numbers(genuine: "Genuine") -> None:
    from heldout.intervals.measure import measures_of

    about = genuine.answered.drawn.about
    console().print(one_line(f"{about.model} on {about.name}"), style="bold")
    for release in genuine.answered.releases:
        print_measures(measures_of(release))
