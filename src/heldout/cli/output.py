"""Read, print and say what commands need: typed values, tables, JSON, errors, patience.

What was paid for reaches somebody: the screen, or a file that the error names.
"""

import codecs
import contextlib
import io
import json
import math
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

from cyclopts import Parameter
from cyclopts.help import DefaultFormatter, HelpEntry, HelpPanel

from heldout.arguments import shown, visible
from heldout.cli import DONE, REFUSED, WRONG
from heldout.errors import (
    AccountClosed,
    ArgumentError,
    BudgetExceeded,
    HeldoutError,
    LedgerTampered,
    NotGenuine,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

    from heldout.intervals.measure import Measure, Release
    from heldout.kernel import Loss
    from heldout.questions.report import Report

PATIENCE: Final = 2.0  # seconds before something moves on the screen
LARGEST_FILE: Final = 50_000_000  # bytes of a page or of an answer
WORDS: ContextVar[Sequence[str]] = ContextVar("words", default=())
"""The words of the command that runs."""
PLAIN = {"±": "+/-", "…": "...", "─": "-", "━": "-", "·": ".", "→": "->", "×": "x", "²": "2"}
SECRETS = re.compile(
    # What stands before an @ is a password; without one, all but the number of a port may be.
    r"(://[^\s:/@]*:)(?:\S+(?=@)|(?!\d{1,5}\b)[^\s@&'\"]+)|(\bpassword=)[^\s@&'\"]+",
    re.IGNORECASE,
)

# --- values as they are typed ---

Json = Annotated[
    bool, Parameter(name="--json", show_default=False, help="Print JSON and nothing else.")
]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Several = Annotated[
    tuple[str, ...], Parameter(consume_multiple=True, negative="", show_default=False)
]


def label_value(text: str) -> object:
    """Read a label as it is typed: a whole number, a number, true or false, or else text.

    >>> [label_value(typed) for typed in ("1", "0", "true", "1.5", "yes", "'1'")]
    [1, 0, True, 1.5, 'yes', '1']
    """
    plain = text.strip()
    if plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    if len(plain) >= 2 and plain[0] == plain[-1] and plain[0] in "'\"":
        return plain[1:-1]
    for kind in (int, float):
        with suppress(ValueError):
            number = kind(plain)
            if math.isfinite(number):
                return number
    return text


def checked_labels(names: Sequence[str | None], pairs: Sequence[str]) -> dict[str, str]:
    """Read NAME=TEXT as they are typed, before anything is paid."""
    from heldout.drawing.page import checked_labels as checked

    labels = dict(pair.partition("=")[::2] for pair in pairs)
    empty = [pair for pair in pairs if not pair.partition("=")[2]]
    if empty:
        raise ArgumentError(f"--labels must be like score='Risk model', got {shown(empty[0])}.")
    checked(names, labels)
    return labels


def declared_values(pairs: Sequence[str]) -> dict[str, list[object]]:
    """Read COLUMN=VALUE,VALUE as they are typed; quoted values ("'1'") are texts.

    >>> declared_values(["sex=F,M", "ward=1,2"])
    {'sex': ['F', 'M'], 'ward': [1, 2]}
    """
    declared = {}
    for pair in pairs:
        name, _, values = pair.partition("=")
        if not name or not all(values.split(",")):
            raise ArgumentError(f"--groups must be like sex=F,M, got {shown(pair)}.")
        declared[name] = [label_value(value) for value in values.split(",")]
    return declared


def existing_ledger(place: str) -> str:
    """Return a ledger that is there already: looking at one must not make one."""
    with suppress(OSError, ValueError):  # a name that the system cannot spell
        if "://" in place or Path(place).exists() or Path(place + ".witness").exists():
            return place
    raise ArgumentError(f"No such ledger: {shown(place)}. Check the path.")


def words_in(file: Path, option: str) -> list[str]:
    """Read public words from a file, one per line, in lower case."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ArgumentError(
            f"--{option} must be a file of words, one per line, got {shown(file.name)}. Check the "
            "path."
        ) from None
    return [line.strip().lower() for line in lines if line.strip()]


def text_of(file: Path, what: str) -> str:
    """Read a file that somebody else wrote; `what` says what it must be."""
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise ArgumentError(f"{shown(file.name)} is too long for {what}.")
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise ArgumentError(f"{shown(file.name)} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise ArgumentError(f"{shown(file.name)} is not {what}: it holds no UTF-8.") from None


# --- what is printed ---


def console() -> "Console":
    """Return standard output; names of columns are text to it, never markup."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False, soft_wrap=False)


def print_json(content: object) -> None:
    """Print JSON for machines; what a terminal would obey is written as JSON's own escapes."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    if not text.replace("\n", "").isprintable():
        text = json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False)
    print(text)


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)
) -> None:
    """Print columns of numbers to the right, the others (by number) to the left."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(head):
        # A long name goes on in the next line: none is cut.
        table.add_column(name, justify="left" if index in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console().print(table)


def print_measures(
    measures: "Mapping[str, Measure]", *, level: float = 0.95, what: str = "measure"
) -> None:
    """Print measures as a table, with both intervals."""
    from heldout.drawing.words import spread, tested

    rows = [[tested(name, measure), *spread(measure, level)] for name, measure in measures.items()]
    print_table((what, "value", f"{level * 100:g}% interval", "noise alone"), rows)


def print_report(report: "Report", *, level: float = 0.95, brief: bool = False) -> None:
    """Print a report as a table, with its price; briefly, without counts and receipts."""
    from heldout.drawing.words import decimal, few
    from heldout.questions.registry import places

    say = console()
    subject = report.subject
    say.print(
        one_line(f"{few(subject.score)} on {subject.name}, outcome {subject.label}"), style="bold"
    )
    print_measures(report.plotted() if brief else report.measures(), level=level)
    say.print(one_line(str(report.headline)) + ".")
    if report.weighing:
        say.print(one_line(f"Weights: {report.weighing}."))
    ties = report.tie_bound(level)
    if ties is not None:
        say.print(ties.sentence())
    for name, reason in report.left_out.items():
        why = in_options(reason, WORDS.get())
        say.print(f"{places()[name].section.title} is left out: {why}.")
    shares = ", ".join(f"{name} {decimal(share)}" for name, share in report.shares.items())
    say.print(
        f"Paid epsilon {decimal(report.epsilon)} ({shares}). Left: {report.remaining} of "
        f"{report.budget}."
    )
    if not brief:
        print(f"Receipt: {next(iter(report)).receipt.hash}")


def print_release(release: "Release | Report", remaining: "Loss") -> None:
    """Print any release: its measures, what it says, its price and its receipt."""
    from heldout.questions.report import Report

    if isinstance(release, Report):
        print_report(release)
        return
    print_measures(release.measures)
    sentence = str(release).partition("\n")[0]
    if not sentence.startswith(str(release.headline)):  # which is the first line of the table
        console().print(one_line(f"{sentence.rstrip('.')}."))
    print_paid(release, remaining)


def print_paid(release: "Release", remaining: "Loss") -> None:
    """Print the price, what is left, and the receipt."""
    print(one_line(f"Paid {release.terms}; left: {remaining}."))
    print(f"Receipt: {release.receipt.hash}")


def print_unremembered(ledger: str | None) -> None:
    """Say so where no ledger keeps count."""
    if ledger is None:
        print("Nothing is remembered: give --ledger FILE to keep count of what is spent.")


@contextmanager
def patience(doing: str) -> Iterator[None]:
    """Show a moving line on a terminal if this takes more than two seconds."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    progress.add_task(one_line(doing))
    begin = threading.Timer(PATIENCE, progress.start)
    begin.daemon = True
    begin.start()
    try:
        yield
    finally:
        begin.cancel()
        begin.join()
        progress.stop()


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
    return "".join(PLAIN.get(letter, "?") for letter in wrong), error.end


# --- what was paid for is delivered, or stored ---


class Paid(Protocol):
    """A release or a report."""

    def as_dict(self) -> dict[str, Any]: ...


class Undelivered(HeldoutError):
    """An answer that was paid for could not be shown; `place` is where it is stored."""

    def __init__(self, receipt: str, place: Path | None, why: str) -> None:
        where = f"It is kept in {place}." if place is not None else "Nor could it be kept."
        super().__init__(
            f"The answer was booked and drawn, but could not be delivered whole: {why}. {where} "
            f"Receipt: {receipt}"
        )
        self.receipt, self.place = receipt, place


@contextmanager
def delivering(*answers: Paid, ledger: str | None = None) -> Iterator[None]:
    """Show paid answers within; if that fails in any way, even by Ctrl-C, store them as JSON.

    They go beside the ledger, or into the current or the temporary directory, whichever can be
    written first. A pipe gets all of them at once, so that a reader who stops after two lines
    (`| head -2`) has them all the same, and nothing failed.
    """
    text = io.StringIO()
    at_once = contextlib.nullcontext() if sys.stdout.isatty() else contextlib.redirect_stdout(text)
    try:
        try:
            with at_once:
                yield
        finally:
            print(text.getvalue(), end="", flush=True)
    except BaseException as error:
        if isinstance(error, OSError):
            _forget_unwritten()
        receipt = _receipt(answers[0])
        place = _store([answer.as_dict() for answer in answers], receipt, ledger)
        undelivered = Undelivered(receipt, place, _reason(error))
    else:
        return
    raise undelivered


def _forget_unwritten() -> None:
    """Say nothing more to a reader that went away or a disk that is full, not even at exit.

    Python would write what is left once more, and end with a status of its own: 120.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _receipt(answer: Any) -> str:
    release = answer if hasattr(answer, "receipt") else next(iter(answer))
    return str(release.receipt.hash)


def _reason(error: BaseException) -> str:
    """Return a few words that hold no private value."""
    if isinstance(error, HeldoutError):
        return str(error).rstrip(".")
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, BrokenPipeError):
        return "the reader went away"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


def _store(content: list[dict[str, Any]], receipt: str, ledger: str | None) -> Path | None:
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


# --- errors: one line, without a traceback and without a private value ---


def explained(error: Exception, words: Sequence[str]) -> tuple[list[str], int]:
    """Return what to print for an error, and the exit code.

    >>> explained(HeldoutError("score must be finite."), [])
    (['heldout: score must be finite.'], 2)
    """
    from cyclopts import CycloptsError

    if isinstance(error, HeldoutError):
        refused = isinstance(error, AccountClosed | BudgetExceeded | LedgerTampered | NotGenuine)
        line = one_line(in_options(str(error), words))
        return [f"heldout: {line}"], REFUSED if refused else WRONG
    if isinstance(error, CycloptsError):
        command = " ".join(["heldout", *map(str, error.command_chain or ())])
        wrong = _misspelt(error, words) or _nothing_given(error, words) or _wrong_words(error)
        return [f"heldout: {wrong} Try '{command} --help'."], WRONG
    if isinstance(error, BrokenPipeError):  # `head` has read enough
        _forget_unwritten()
        return [], DONE
    # The message of an unknown error may quote a row, so only its type is shown.
    return [
        f"heldout: internal error ({type(error).__name__}). What was booked stays booked: see "
        "heldout ledger show. HELDOUT_DEBUG=1 shows a traceback, which may hold private values."
    ], WRONG


RENAMED: Final = {
    "into": "--score",
    "out_of_range": "--clip ",
    "rivals": "--rival",
    "scores": "--class-scores",
    "score_range{}": "--rival-range",
    "renew_witness": "heldout ledger verify LEDGER --renew-witness",
}
"""Options whose names differ from those of their arguments."""
STARTS: Final = {"renew_witness": "--accept-ledger"}
"""The same of commands that start or restore a server."""


def in_options(text: str, words: Sequence[str]) -> str:
    """Return a message with the options of the command that these words call."""
    from heldout.doors import as_typed

    if "=" not in text:
        return text
    options = _options_of(words)
    renamed = RENAMED | {name: own for name, own in STARTS.items() if own in options}
    return as_typed(text, options, renamed)


def _options_of(words: Sequence[str]) -> set[str]:
    """Return the names of the options of the command that these words call."""
    from cyclopts import CycloptsError

    from heldout.cli import make_app

    try:
        chain, apps, _ = make_app(listing=False).parse_commands(list(words))
    except CycloptsError:
        return set()
    if tuple(chain) == ("ask",):
        from heldout.cli.ask import options_of

        return options_of(words[1:])
    return {name for one in apps[-1].assemble_argument_collection() for name in one.names}


def one_line(text: str) -> str:
    """Return text on one line, with nothing in it that could steer a terminal.

    >>> one_line("a\\n  b\\x1b[31m")
    'a b\\\\x1b[31m'
    >>> one_line("got postgresql://me:secret@db.example/clinic?password=secret.")
    'got postgresql://me:***@db.example/clinic?password=***'
    >>> one_line("http://localhost:8000 cannot be reached.")
    'http://localhost:8000 cannot be reached.'
    """
    return visible(SECRETS.sub(r"\1\2***", " ".join(text.split())))


def _wrong_words(error: Exception) -> str:
    """Say what is wrong with the words of a command; the library's own sentence but for one."""
    from cyclopts import MissingArgumentError

    missing = error.argument if isinstance(error, MissingArgumentError) else None
    if missing is not None and not missing.tokens:
        return f"{one_line(missing.name)} must be given."
    sentence = one_line(str(error))
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def _nothing_given(error: object, words: Sequence[str]) -> str | None:
    """Show the first example of a command that was called without a word and needs a price."""
    from cyclopts import MissingArgumentError

    if not isinstance(error, MissingArgumentError) or error.argument is None:
        return None
    if error.argument.name not in ("--epsilon", "--rival") or len(words) > len(
        error.command_chain or ()
    ):
        return None
    function = getattr(error.app, "default_command", None)
    lines = (line.strip() for line in (getattr(function, "__doc__", None) or "").splitlines())
    example = next((line for line in lines if line.startswith("heldout ")), None)
    return None if example is None else f"Give the rows and a price, such as '{example}'."


def _misspelt(error: object, words: Sequence[str]) -> str | None:
    """Name an option that the command does not have, before anything that it may lack for that."""
    from difflib import get_close_matches

    app = getattr(error, "app", None)
    if app is None or app.default_command is None:
        return None
    known = {name for argument in app.assemble_argument_collection() for name in argument.names}
    known |= {"--help", "--version"}
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("--") and len(option) > 2 and option not in known:
            # Without the dashes, by which any two options are somewhat alike.
            names = [name[2:] for name in known if name.startswith("--")]
            near = get_close_matches(option[2:], names, n=3)
            swapped = [name for name in near if sorted(name) == sorted(option[2:])]
            mean = f" Did you mean --{(swapped or near)[0]}?" if near else ""
            return f"No option {one_line(option)}.{mean}"
    return None


# --- Help pages: the options that people need first; --help-all shows every one -------------------


ALL: Final = "--help-all"
SHOWS_ALL: ContextVar[bool] = ContextVar("shows_all", default=False)
"""True while the page that is printed shows everything."""
FEW: Final = 3
"""A group of so few options is shown whole."""
WHOLE: Final = ("Arguments", "Parameters", "The question")
"""Groups that are shown whole: what a command asks is its own."""
EXAMPLES: Final = 3
FIRST: Final = frozenset(
    (
        *("--label", "--positive", "--score", "--score-range", "--unit", "--rows-per-unit"),
        *("--row-key", "--groups", "--observed", "--predicted", "--bounds", "--values"),
        *("--time", "--event", "--ledger", "--budget", "--model", "--server", "--dataset"),
        *("--token-file", "--out", "--json", "--yes"),
    )
)
"""The options of rows, ledger, model, server and answer that a first hour needs."""


class ShortHelp(DefaultFormatter):
    """Prints the first options of each group, and how many more there are."""

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: HelpPanel) -> None:
        rest = len(panel.entries)
        is_long = rest > FEW and str(panel.title) not in WHOLE
        if not SHOWS_ALL.get() and panel.format == "parameter" and is_long:
            first = [entry for entry in panel.entries if FIRST.intersection(entry.names)]
            rest -= len(first)
            if first and rest:
                more = HelpEntry(positional_label="...", description=f"{rest} more: {ALL}.")
                panel = panel.copy(entries=[*first, more])
        super().__call__(console, options, panel)

    def render_description(
        self, console: "Console", options: "ConsoleOptions", description: Any
    ) -> None:
        """Print the description with its first examples."""
        from rich.markdown import Markdown

        text = getattr(description, "primary_renderable", None)
        if not SHOWS_ALL.get() and isinstance(text, Markdown):
            description.primary_renderable = Markdown(_shortened(text.markup))
        super().render_description(console, options, description)


def _shortened(text: str) -> str:
    """Keep three of the examples, which are the lines of a block of code that begin a command.

    >>> print(_shortened("It asks.\\n```\\nheldout a\\nheldout b\\nheldout c\\nheldout d\\n```"))
    It asks.
    ```
    heldout a
    heldout b
    heldout c
    ```
    1 more example: --help-all.
    """
    before, fence, block = text.partition("```\n")
    lines = block.splitlines()
    begins = [place for place, line in enumerate(lines) if line.startswith("heldout ")]
    rest = len(begins) - EXAMPLES
    if not fence or rest <= 0:
        return text
    end = lines.index("```") if "```" in lines else len(lines)
    more = f"{rest} more example{'s' * (rest > 1)}: {ALL}."
    return "\n".join([before + "```", *lines[: begins[EXAMPLES]], "```", more, *lines[end + 1 :]])
