"""`heldout twin`: made-up rows that are like the private ones, to work with in their place."""

from typing import Annotated

from cyclopts import Parameter

from heldout.cli.ask import ask


def twin(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
    """Make up rows that are like the private ones, for a price.

    Columns and their bounds are declared. `heldout ask private-twin --help` lists the options, and
    `--json` gives the noisy tables. Examples:

    ```
    heldout twin people.csv --values age=18,65 --values pay=0,90000 --whole age --epsilon 1 \\
      --out twin.csv
    ```
    """
    ask("private-twin", *words)
