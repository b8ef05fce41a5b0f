"""`heldout serve` and `heldout worker`: the verification server."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def serve(
    folder: Path,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    database: str | None = None,
    workers: int = 2,
    processes: int = 1,
    rows: Path | None = None,
    address: str | None = None,
    hosts: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    demo: Annotated[bool, Parameter(negative="")] = False,
    prepare: Annotated[bool, Parameter(negative="")] = False,
    accept_ledger: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Let analysts ask about data that nobody may look at: web pages, API and workers.

    The first start makes the folder and prints the administrator's sign-in link. Everything is
    kept in the folder, in SQLite files, unless `--database` names a PostgreSQL database. Ctrl-C
    stops it; a job that was begun is finished first. Examples:

    ```
    heldout serve hospital --demo
    heldout serve hospital --rows /srv/rows --port 8080
    heldout serve hospital --database postgresql://heldout@db/heldout --workers 0
    ```

    Parameters
    ----------
    folder
        Where the server keeps its files.
    host
        The address that it listens at; 0.0.0.0 is reached from other machines.
    port
        The port that it listens at.
    database
        A PostgreSQL database for the server's tables and the ledger.
    workers
        How many workers to start; with 0, start them elsewhere by `heldout worker`. One person has
        one of them at a time, so with two nobody waits for one other person's model.
    processes
        How many web processes share the port.
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
    prepare
        As the owner of the PostgreSQL database, make or upgrade the tables, give the roles
        heldout_web and heldout_worker their rights, and end.
    accept_ledger
        Once, if the newest ledger is lost for good: take the older copy for the truth. Bookings
        after its end are forgotten; the log says which. Without it such a ledger is refused.
    """
    from heldout.server.run import serve as run

    run(
        folder,
        host=host,
        port=port,
        database=database,
        workers=workers,
        processes=processes,
        rows=rows,
        address=address,
        hosts=hosts or (),
        demo=demo,
        prepare_only=prepare,
        accept_ledger=accept_ledger,
    )


def worker(folder: Path, /, *, database: str | None = None, rows: Path | None = None) -> None:
    """Do the server's work on private rows: check, score, book and answer.

    Start as many as there are cores, on machines that may read the rows. SIGTERM stops one; a job
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
