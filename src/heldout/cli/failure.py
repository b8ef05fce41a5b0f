"""Errors as one line, without a traceback and without a private value."""

import os
import re
import sys
from collections.abc import Sequence

from heldout.arguments import visible
from heldout.errors import AccountClosed, BudgetExceeded, HeldoutError, LedgerTampered, NotGenuine

REFUSED, WRONG = 1, 2
SECRETS = re.compile(
    # What stands before an @ is a password; without one, all but the number of a port may be.
    r"(://[^\s:/@]*:)(?:\S+(?=@)|(?!\d{1,5}\b)[^\s@&'\"]+)|(\bpassword=)[^\s@&'\"]+",
    re.IGNORECASE,
)


def explained(error: Exception, words: Sequence[str]) -> tuple[list[str], int]:
    """What to print for an error, and the exit code.

    >>> explained(HeldoutError("score must be finite."), [])
    (['heldout: score must be finite.'], 2)
    """
    from cyclopts import CycloptsError

    if isinstance(error, HeldoutError):
        refused = isinstance(error, AccountClosed | BudgetExceeded | LedgerTampered | NotGenuine)
        return [f"heldout: {one_line(str(error))}"], REFUSED if refused else WRONG
    if isinstance(error, CycloptsError):
        command = " ".join(["heldout", *_command(error)])
        said = _misspelt(error, words) or _wrong_words(error)
        return [f"heldout: {said} Try '{command} --help'."], WRONG
    if isinstance(error, BrokenPipeError):
        # The reader of something unpaid went away; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return [], WRONG
    # The message of an unknown error may quote a row, so only its type is shown.
    return [
        f"heldout: internal error ({type(error).__name__}). What was booked stays booked: see "
        "heldout ledger show. HELDOUT_DEBUG=1 shows a traceback, which may hold private values."
    ], WRONG


def one_line(text: str) -> str:
    """Text on one line, with nothing in it that could steer a terminal.

    >>> one_line("a\\n  b\\x1b[31m")
    'a b\\\\x1b[31m'
    >>> one_line("got postgresql://me:secret@db.example/clinic?password=secret.")
    'got postgresql://me:***@db.example/clinic?password=***'
    >>> one_line("http://localhost:8000 cannot be reached.")
    'http://localhost:8000 cannot be reached.'
    """
    joined = SECRETS.sub(r"\1\2***", " ".join(text.split()))
    return visible(joined)


def _wrong_words(error: Exception) -> str:
    """What is wrong with the words of a command; the library's own sentence but for one."""
    from cyclopts import MissingArgumentError

    missing = error.argument if isinstance(error, MissingArgumentError) else None
    if missing is not None and not missing.tokens:
        return f"{one_line(missing.name)} must be given."
    said = one_line(str(error))
    return said if said.endswith((".", "?", "!")) else f"{said}."


def _misspelt(error: object, words: Sequence[str]) -> str | None:
    """An option that the command does not have, before anything that it may lack for that."""
    from difflib import get_close_matches

    app = getattr(error, "app", None)
    if app is None or app.default_command is None:
        return None
    known = {name for each in app.assemble_argument_collection() for name in each.names}
    known |= {"--help", "--version"}
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("--") and len(option) > 2 and option not in known:
            near = get_close_matches(option, known, n=3)
            swapped = [each for each in near if sorted(each) == sorted(option)]
            mean = f" Did you mean {(swapped or near)[0]}?" if near else ""
            return f"No option {one_line(option)}.{mean}"
    return None


def _command(error: object) -> Sequence[str]:
    chain = getattr(error, "command_chain", None) or ()
    return [str(each) for each in chain]
