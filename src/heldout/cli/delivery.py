"""What was paid for reaches somebody: the screen, or a file that the error names."""

import codecs
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from heldout.errors import HeldoutError

__all__ = ["Undelivered", "delivering", "speak_plainly"]

PLAIN = {"±": "+/-", "…": "...", "─": "-", "━": "-", "·": ".", "→": "->", "×": "x", "²": "2"}


class Undelivered(HeldoutError):
    """An answer that was paid for could not be shown; `place` is where it is kept."""

    def __init__(self, receipt: str, place: Path | None, why: str) -> None:
        where = f"It is kept in {place}." if place is not None else "Nor could it be kept."
        super().__init__(
            f"The answer was booked and drawn, but could not be delivered whole: {why}. {where} "
            f"Receipt: {receipt}"
        )
        self.receipt, self.place = receipt, place


@contextmanager
def delivering(*answers: Any, ledger: str | None = None) -> Iterator[None]:
    """Show paid answers within; if that fails in any way, even by Ctrl-C, they are kept as JSON.

    They go beside the ledger, or into the current or the temporary directory, whichever can be
    written first.
    """
    try:
        yield
        sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, BrokenPipeError):
            # The reader went away; nothing more can be said to it, not even at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        receipt = _receipt(answers[0])
        place = _kept([each.as_dict() for each in answers], receipt, ledger)
        undelivered = Undelivered(receipt, place, _reason(error))
    else:
        return
    raise undelivered


def _receipt(answer: Any) -> str:
    release = answer if hasattr(answer, "receipt") else next(iter(answer))
    return str(release.receipt.hash)


def _reason(error: BaseException) -> str:
    """A few words that hold no private value."""
    if isinstance(error, HeldoutError):
        return str(error).rstrip(".")
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, BrokenPipeError):
        return "the reader went away"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


def _kept(content: list[Any], receipt: str, ledger: str | None) -> Path | None:
    beside = [] if ledger is None or "://" in ledger else [Path(ledger).parent]
    text = json.dumps(content[0] if len(content) == 1 else content, indent=2)
    for folder in (*beside, Path.cwd(), Path(tempfile.gettempdir())):
        place = folder / f"heldout-answer-{receipt[:16]}.json"
        with suppress(OSError):
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(handle)
            return place.absolute()
    return None


def speak_plainly() -> None:
    """Let terminals that know ASCII alone read what is printed: +/- for a sign they lack."""
    codecs.register_error("heldout-plain", _plainly)
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower()
        if encoding.replace("-", "") != "utf8" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="heldout-plain")


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(PLAIN.get(each, "?") for each in wrong), error.end
