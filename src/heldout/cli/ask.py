"""`heldout ask`: any registered question, of a table or of a server."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, CycloptsError, Parameter

from heldout.arguments import no_such
from heldout.cli.frame import ANSWER, FRAME, QUESTION, ROWS, Bought, Framed, Page, buy
from heldout.cli.output import ShortHelp
from heldout.cli.rows import Custody, Where, make_options, option_of, options_for, read_option
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from heldout.questions import Question

HELP = """Ask any question, of a table or of a server.

`heldout ask ROWS QUESTION --epsilon PRICE`, where QUESTION is one of those below. Each has options
of its own: `heldout ask auc --help` lists them. Every question takes `--json`. Examples:

```
heldout ask test.parquet auc --label readmitted --score risk_a --epsilon 1
heldout ask test.parquet confusion --label readmitted --score risk_a --threshold 0.3 \\
  --epsilon 1/2 --json
heldout ask test.parquet compare --label readmitted --score risk_a --rival risk_b --epsilon 1
heldout ask auc --server https://evaluate.example.org --token-file token.txt \\
  --dataset readmissions --model model.onnx --epsilon 1
```
"""
SHARED = {"expected_rows"}
"""Fields of some questions that every command has an option for: see `Frame`."""

app = App(name="ask", help_flags=[], version_flags=[])  # words are read once the kind is known


@app.default
def ask(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
    """Ask any question, of a table or of a server."""
    rest, askable = list(words), _askable()
    kinds = [question.kind for question in askable]
    place = _place_of_kind(rest, kinds)
    if place is not None:
        askable = {one: options for one, options in askable.items() if one.kind == rest[place]}
        rest = [rest[place], *rest[:place], *rest[place + 1 :]]
    elif rest and rest not in (["--help"], ["-h"]):
        _refuse(rest, kinds)
    how: dict[str, Any] = {"exit_on_error": False, "print_error": False}
    try:
        make_app(askable)(rest or ["--help"], result_action="return_value", **how)
    except CycloptsError as error:
        error.command_chain = ("ask", *(error.command_chain or ()))
        raise


def options_of(words: Sequence[str]) -> set[str]:
    """Return the options of the question that these words ask; none where they name none."""
    askable = _askable()
    kinds = [question.kind for question in askable]
    place = _place_of_kind(words, kinds)
    if place is None:
        return set()
    one = {question: own for question, own in askable.items() if question.kind == words[place]}
    arguments = make_app(one)[words[place]].assemble_argument_collection()
    return {name for argument in arguments for name in argument.names}


def _askable() -> dict[type["Question[Any]"], type[Custody]]:
    """Return every registered question whose rows a command can open, and the rows' options."""
    from heldout.questions import registered

    askable = {question: options_for(question.of) for question in registered()}
    return {question: options for question, options in askable.items() if options is not None}


def make_app(askable: Mapping[type["Question[Any]"], type[Custody]]) -> App:
    """Make a command of each of these questions: of all for a list, else of one."""
    asking = App(
        name="heldout ask",
        help=HELP,
        help_format="markdown",
        help_formatter=ShortHelp(),
        default_parameter=Parameter(negative=()),
        suppress_keyboard_interrupt=False,
        version_flags=[],
    )
    asking["--help"].group = "Parameters"
    for place, (question, options) in enumerate(askable.items()):
        command = _command(question, options)
        asking.command(command, name=question.kind, help=_help(question), sort_key=place)
    return asking


def _help(question: type["Question[Any]"]) -> str:
    return f"{question.asks}\n\n{question.tells}"  # a list shows the first of the two


def _place_of_kind(words: Sequence[str], kinds: Sequence[str]) -> int | None:
    """Find the word that is a question: not the value of an option, unless nothing else is one."""
    places = [place for place, word in enumerate(words) if word in kinds]
    free = [place for place in places if not (place and words[place - 1].startswith("--"))]
    # In `ask auc auc` the first is the table.
    return next(iter(free[1:2] if free == [0, 1] else free or places), None)


def _refuse(words: Sequence[str], kinds: Sequence[str]) -> None:
    free = [
        word
        for place, word in enumerate(words)
        if not word.startswith("-") and not (place and words[place - 1].startswith("--"))
    ]
    if len(free) < 2 and not get_close_matches((free or [""])[0], kinds):
        raise ArgumentError(f"Name a question after the rows: {', '.join(kinds)}.")
    word = free[-1]
    raise ArgumentError(no_such("question", word, kinds, most=99))


def _command(question: type["Question[Any]"], options: type[Custody]) -> Callable[..., None]:
    """Return the function of one kind: its own fields, and the options of its rows."""
    form = {field.name: field for field in question.form()}
    taken = {field.option for field in form.values()}
    own = [option_of(field) for name, field in form.items() if name not in SHARED]
    chosen: Any = make_options("Fields", own)
    rows_type: Any = _beside(options, taken)

    def command(
        table: Where | None = None,
        /,
        *,
        chosen: Annotated[chosen, Parameter(name="*", group=QUESTION)],
        rows: Annotated[rows_type | None, Parameter(name="*", group=ROWS)] = None,
        frame: Framed = FRAME,
        out: Annotated[Path | None, Parameter(group=ANSWER)] = None,
    ) -> None:
        """Ask it.

        Parameters
        ----------
        out
            Write the answer and its pictures to this .html file, as one page; rows that are made
            up go to a .csv file.
        """
        words: dict[str, Any] = {
            name: read_option(form[name], value) for name, value in vars(chosen).items()
        }
        words |= {name: getattr(frame, name) for name in SHARED & set(form)}
        Page(out=out).check(*question.writes)
        if question.writes and not (out or frame.as_json or frame.remote.server):
            raise ArgumentError(
                f"--out must be given: the answer is a {question.writes[0]} file, such as "
                f"--out answer{question.writes[0]}. Or pass --json."
            )
        asked = question(**{name: value for name, value in words.items() if value is not None})
        bought = buy(asked, table=table, rows=rows, options=options, frame=frame)
        bought.deliver(
            out=out, write=lambda place: _write(place, bought, question.writes), noun="Answer"
        )

    return command


def _write(place: Path, bought: Bought, endings: Sequence[str]) -> None:
    """Write the page of an answer, its own if it has one, or a file with another ending."""
    from heldout.drawing.page import write_page
    from heldout.questions.report import answers_page

    [release] = bought.releases
    is_page = place.suffix.lower() not in endings
    if hasattr(release, "save") and not (endings and is_page):
        release.save(place)
    else:
        write_page(place, lambda: answers_page(bought.answered))


def _beside(options: type[Custody], taken: set[str]) -> type[Custody]:
    """Return the rows' options beside those of a question: one that it has goes by --rows-NAME."""
    renamed = [
        (option.name, Annotated[option.type, Parameter(name=f"--rows-{option.name}")], option)
        for option in fields(options)
        if "--" + option.name.replace("_", "-") in taken
    ]
    return options if not renamed else make_options(options.__name__, renamed, options)
