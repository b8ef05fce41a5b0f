"""The command line: a thin shell. Commands are loaded when they are called.

To add one: its function in a module of this folder, and a line in `PLACES`.
"""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import heldout

if TYPE_CHECKING:
    from cyclopts import App

PLACES: dict[str, str] = {
    "first:demo": "See it work on bundled data, in a few seconds.",
    "evaluate:evaluate": "Evaluate a model on rows you must not show.",
    "ask:app": "Ask any question of rows you must not show, or of a server.",
    "evaluate:compare": "Which of two models ranks the same rows better?",
    "evaluate:curves": "ROC, precision-recall and reliability, paid once.",
    "presets:residuals": "Does a regression fit? Its residuals.",
    "presets:select": "Which features of private rows are worth keeping?",
    "evaluate:train": "Train a model on rows you must not show.",
    "evaluate:twin": "Made-up rows that are like the private ones.",
    "model:app": "Would a custodian take this model?",
    "plan:plan": "Which epsilon for which interval? Spends nothing.",
    "plan:pool": "The same question at several sites, as one answer.",
    "ledger:app": "Show or verify what has been spent.",
    "plan:board": "Plan a leaderboard that cannot be gamed.",
    "server:serve": "Let analysts ask: pages, API and a worker.",
    "server:worker": "Do a server's work on private rows.",
    "server:app": "Look after a server: copies and links.",
    "server:verify": "Is this page what a server signed?",
    "plan:pr": "Precision-recall space, on public numbers.",
    "audit:audit": "Try to prove the privacy claims wrong.",
    "audit:attack": "How exposed is a metric published without noise?",
    "presets:separability": "Is privatized data still the data?",
    "first:doctor": "What is installed here, and does it work?",
    "first:reproduce": "Redo the figures of the papers.",
}
"""Where each command is in this folder, and a line about it."""


def _name(place: str) -> str:
    """Return the name of a command: that of its function, or of the module of a group."""
    module, _, function = place.partition(":")
    return module if function == "app" else function


COMMANDS: dict[str, tuple[str, str]] = {
    _name(place): (place, line) for place, line in PLACES.items()
}

INTRODUCTION = """How good is this model on the data that I must not show?

A number or a curve, an honest interval, and an exact privacy price, booked before the answer
exists. Begin with `heldout demo`; every command has `--help` with examples, `--help-all` with
every option, and takes `--json`.

`heldout --install-completion` teaches your shell the options, and `heldout doctor` looks whether
all that is installed works.

Exit codes: 0 done; 1 refused because the budget is used up, or a ledger or a signed page was
changed; 2 anything else that is wrong, in one line on standard error.
"""

DONE, REFUSED, WRONG, INTERRUPTED = 0, 1, 2, 130  # exit codes


def make_app(*, listing: bool = True) -> "App":
    """Make the application; `listing` shows a line for each command instead of its own help."""
    from cyclopts import App, Parameter

    from heldout.cli.output import ShortHelp

    app = App(
        name="heldout",
        help=INTRODUCTION,
        version=heldout.__version__,
        help_format="markdown",
        help_formatter=ShortHelp(),
        default_parameter=Parameter(negative=()),
        suppress_keyboard_interrupt=False,  # `main` says what was booked
    )
    for index, (name, (place, line)) in enumerate(COMMANDS.items()):
        app.command(
            f"heldout.cli.{place}", name=name, help=line if listing else None, sort_key=index
        )
    app.register_install_completion_command(help="Teach your shell to complete options.")
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors become one line and an exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Our matrices are small: on a busy machine threads of one product wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from heldout.cli.output import speak_plainly

        speak_plainly()
        _run(words)
    except Exception as error:
        if os.environ.get("HELDOUT_DEBUG"):
            raise
        from heldout.cli.output import explained

        lines, code = explained(error, words)
        for line in lines:
            print(line, file=sys.stderr)
        return code
    except SystemExit as stopped:  # rich ends the process if `head` has read enough
        if not isinstance(stopped.__context__, BrokenPipeError):
            raise
    except KeyboardInterrupt as stopped:
        notes = getattr(stopped, "__notes__", ()) or ("What was booked stays booked.",)
        print("heldout: interrupted.", *notes, file=sys.stderr)
        return INTERRUPTED
    return DONE


def _run(words: list[str]) -> None:
    from heldout.cli.output import ALL, SHOWS_ALL, WORDS

    WORDS.set(words)
    SHOWS_ALL.set(ALL in words)
    words = ["--help" if word == ALL else word for word in words]
    app = make_app(listing=not words or words[0] not in COMMANDS)
    app(words, exit_on_error=False, print_error=False, result_action="return_value")
