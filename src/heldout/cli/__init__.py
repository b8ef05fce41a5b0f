"""The command line: a thin shell. Commands are loaded when they are called.

To add one: a module with its function, and one line in `PLACES`.
"""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import heldout

if TYPE_CHECKING:
    from cyclopts import App

PLACES: dict[str, str] = {
    "heldout.cli.demo:demo": "See it work on bundled data, in a few seconds.",
    "heldout.cli.evaluate:evaluate": "Evaluate a model on rows you must not show.",
    "heldout.cli.ask:app": "Ask any question of rows you must not show, or of a server.",
    "heldout.cli.compare:compare": "Which of two models ranks the same rows better?",
    "heldout.cli.curves:curves": "ROC, precision-recall and reliability, paid once.",
    "heldout.cli.residuals:residuals": "Does a regression fit? Its residuals.",
    "heldout.cli.select:select": "Which features of private rows are worth keeping?",
    "heldout.cli.model:app": "Would a custodian take this model?",
    "heldout.cli.plan:plan": "Which epsilon for which interval? Spends nothing.",
    "heldout.cli.pool:pool": "The same question at several sites, as one answer.",
    "heldout.cli.ledger:app": "Show or verify what has been spent.",
    "heldout.cli.board:app": "Plan a leaderboard that cannot be gamed.",
    "heldout.cli.serve:serve": "Let analysts ask: pages, API and a worker.",
    "heldout.cli.serve:worker": "Do a server's work on private rows.",
    "heldout.cli.verify:verify": "Is this page what a server signed?",
    "heldout.cli.pr:pr": "Precision-recall space, on public numbers.",
    "heldout.cli.audit:audit": "Try to prove the privacy claims wrong.",
    "heldout.cli.attack:attack": "How exposed is a metric published without noise?",
    "heldout.cli.separability:separability": "Is privatized data still the data?",
    "heldout.cli.doctor:doctor": "What is installed here, and does it work?",
    "heldout.cli.reproduce:reproduce": "Redo the figures of the papers.",
}
"""Where each command is, and a line about it."""


def _name(place: str) -> str:
    """Return the name of a command: that of its function, or of the module of a group."""
    module, _, function = place.partition(":")
    return module.rpartition(".")[2] if function == "app" else function


COMMANDS: dict[str, tuple[str, str]] = {
    _name(place): (place, line) for place, line in PLACES.items()
}

INTRODUCTION = """How good is this model on the data that I must not show?

A number or a curve, an honest interval, and an exact privacy price, booked before the answer
exists. Begin with `heldout demo`; every command has `--help` with examples and takes `--json`.

`heldout --install-completion` teaches your shell the options, and `heldout doctor` looks whether
all that is installed works.

Exit codes: 0 done; 1 refused because the budget is used up, or a ledger or a signed page was
changed; 2 anything else that is wrong, in one line on standard error.
"""

DONE, REFUSED, WRONG, INTERRUPTED = 0, 1, 2, 130


def make_app(*, listing: bool = True) -> "App":
    """The application; `listing` puts one line beside each command instead of its own help."""
    from cyclopts import App, Parameter

    app = App(
        name="heldout",
        help=INTRODUCTION,
        version=heldout.__version__,
        help_format="markdown",
        default_parameter=Parameter(negative=()),
        suppress_keyboard_interrupt=False,  # `main` says what was booked
    )
    for index, (name, (place, line)) in enumerate(COMMANDS.items()):
        app.command(place, name=name, help=line if listing else None, sort_key=index)
    app.register_install_completion_command(help="Teach your shell to complete options.")
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors become one line and an exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Our matrices are small: on a busy machine threads of one product wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from heldout.cli.delivery import speak_plainly

        speak_plainly()
        _run(words)
    except Exception as error:
        if os.environ.get("HELDOUT_DEBUG"):
            raise
        from heldout.cli.failure import explained

        lines, code = explained(error, words)
        print(*lines, sep="\n", file=sys.stderr)
        return code
    except KeyboardInterrupt as stopped:
        said = getattr(stopped, "__notes__", ()) or ("What was booked stays booked.",)
        print("heldout: interrupted.", *said, file=sys.stderr)
        return INTERRUPTED
    return DONE


def _run(words: list[str]) -> None:
    app = make_app(listing=not words or words[0] not in COMMANDS)
    app(words, exit_on_error=False, print_error=False, result_action="return_value")
