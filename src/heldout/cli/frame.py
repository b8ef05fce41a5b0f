"""The frame of every command that asks: open rows or a server, look ahead, ask, deliver, print."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Group, Parameter

from heldout.arguments import shown
from heldout.cli.model import Scoring
from heldout.cli.output import (
    Flag,
    Json,
    Several,
    checked_labels,
    delivering,
    patience,
    print_json,
    print_release,
    print_unremembered,
)
from heldout.cli.rows import Address, Custody
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from heldout.client import RemoteDataset, Server
    from heldout.data.description import Description
    from heldout.kernel import Loss
    from heldout.questions import Guess, Question
    from heldout.questions.answers import Answered

TRIED: Final = (*map(Fraction, ["1/50", "1/20", "1/10", "1/5", "1/2", "1", "2", "5", "10", "20"]),)
"""The prices that are tried, from below, where noise would hide an answer."""
LEVEL: Final = 0.95

QUESTION, ROWS = Group("The question", sort_key=1), Group("The rows", sort_key=2)
MODEL = Group("A model to score the rows with", sort_key=4)
SERVER = Group("A server with the rows", sort_key=5)
ANSWER = Group("What to do with the answer", sort_key=6)


# --- a verification server in the place of rows of one's own ---


def open_server(address: str, token_file: Path, **more: Any) -> "Server":
    """Return the server, with the token that a file holds.

    Where its ledger ended is remembered beside that file, if its folder can be written.
    """
    from heldout.client import Server

    try:
        token = token_file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        raise ArgumentError(
            f"--token-file must be a file that holds a token, got {shown(token_file.name)}."
        ) from None
    heads = token_file.with_name(token_file.name + ".heads")
    can_write = os.access(heads if heads.exists() else heads.parent, os.W_OK)
    return Server(address, token, heads=heads if can_write else None, **more)


@dataclass(frozen=True, kw_only=True)
class Remote:
    """Rows that a verification server holds, instead of a table.

    Parameters
    ----------
    server
        Address of the server. It gets the file of --model, and its answers are printed.
    token_file
        A file that holds your token for it.
    dataset
        Which of its data sets.
    server_key
        The server's public key, or a file that holds it, to check the answer's signature.
    """

    server: str | None = None
    token_file: Path | None = None
    dataset: str | None = None
    server_key: str | None = None

    @property
    def given(self) -> bool:
        """Return whether a server has the rows."""
        if self.server is None and (self.token_file or self.dataset or self.server_key):
            raise ArgumentError("--token-file, --dataset and --server-key go with --server.")
        return self.server is not None

    def rows(self) -> "RemoteDataset":
        """Return the data set, once the server says that it may be asked about."""
        if self.server is None or self.token_file is None or self.dataset is None:
            raise ArgumentError("--server needs --token-file and --dataset.")
        key = None
        if self.server_key is not None:
            from heldout.server.signing import key_of

            key = key_of(self.server_key)
        return open_server(self.server, self.token_file, key=key).dataset(self.dataset)


# --- the options that commands share ---


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Options of asking, and of what to do with the answer.

    Parameters
    ----------
    expected_rows
        A public guess at the number of rows, if it is private. It forecasts the noise and helps to
        divide the price.
    yes
        Pay without asking back, even if noise will hide the answer.
    """

    scoring: Annotated[Scoring, Parameter(name="*", group=MODEL)] = field(default_factory=Scoring)
    remote: Annotated[Remote, Parameter(name="*", group=SERVER)] = field(default_factory=Remote)
    expected_rows: Annotated[int | None, Parameter(group=ANSWER)] = None
    yes: Annotated[Flag, Parameter(group=ANSWER)] = False
    as_json: Annotated[Json, Parameter(group=ANSWER)] = False


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of the answer.

    Parameters
    ----------
    out
        Write the answer and its pictures to this .html file, as one page.
    title
        The heading of the page.
    labels
        What the page calls a column or the data, such as risk_b="The new model".
    """

    out: Annotated[Path | None, Parameter(group=ANSWER)] = None
    title: Annotated[str | None, Parameter(group=ANSWER)] = None
    labels: Annotated[Several, Parameter(group=ANSWER)] = ()

    def check(self, *pictures: str) -> None:
        """Refuse a place that cannot be written; `pictures` are endings beside .html."""
        from heldout.drawing.page import checked_place

        if self.out is not None:
            checked_place(self.out, *pictures)

    @property
    def is_svg(self) -> bool:
        """Return whether one picture is wanted, and no page."""
        return self.out is not None and self.out.suffix.lower() == ".svg"


FRAME, PAGE = Frame(), Page()
Framed = Annotated[Frame, Parameter(name="*")]
Paged = Annotated[Page, Parameter(name="*")]


# --- ask, and deliver ---


@dataclass(frozen=True)
class Bought:
    """Holds what was paid for, and shows it."""

    answered: "Answered"
    frame: Frame
    ledger: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """Names that pages show instead of those of columns."""
    signed_page: Callable[[], str] | None = None
    """The server's page, where a server has the rows."""

    @property
    def releases(self) -> tuple[Any, ...]:
        """The answers, one for each question."""
        return self.answered.releases

    @property
    def remaining(self) -> "Loss":
        """Return what is left after it."""
        return self.answered.standing.remaining

    def content(self, **more: Any) -> dict[str, Any]:
        """Return the first answer as JSON, and what is left."""
        return {**self.releases[0].as_dict(), **more, "remaining": self.remaining.as_dict()}

    def deliver(
        self,
        *,
        text: Callable[[], None] | None = None,
        content: Callable[[], object] | None = None,
        out: Path | None = None,
        write: Callable[[Path], object] | None = None,
        noun: str = "Report",
        may_guess: bool = True,
    ) -> None:
        """Write and print it; if that fails, it is stored where the error says.

        `may_guess` is whether the command takes --expected-rows.
        """
        from heldout.drawing.page import write_page

        with delivering(*self.releases, ledger=self.ledger):
            try:
                is_page = out is not None and out.suffix.lower() != ".svg"
                if out is not None and self.signed_page is not None and is_page:
                    write_page(out, self.signed_page)
                elif out is not None and write is not None:
                    with patience(f"Writing {out.name}"):
                        write(out)
            finally:
                if self.frame.as_json:
                    print_json(self.content() if content is None else content())
                else:
                    if text is None:
                        print_release(self.releases[0], self.remaining)
                    else:
                        text()
                    self._print_hints(may_guess)
            if out is not None and not self.frame.as_json:
                print(f"{noun}: {out}")

    def _print_hints(self, may_guess: bool) -> None:
        if self.signed_page is not None:
            return
        print_unremembered(self.ledger)
        is_private = self.answered.drawn.about.rows is None
        if may_guess and is_private and self.frame.expected_rows is None:
            print(
                "The number of rows is private here. Next time pass --expected-rows N, a public "
                "guess, to plan before you pay."
            )


def buy(
    *questions: "Question[Any]",
    table: Path | Address | None,
    rows: Custody | None,
    options: type[Custody],
    frame: Frame = FRAME,
    labels: Sequence[str] = (),
) -> Bought:
    """Ask the questions as one booking, of a table or of a server.

    `options` is what rows are named by, for the message where they are not named.
    """
    if frame.remote.given:
        if table is not None or rows is not None or labels:
            raise ArgumentError(
                "The server has the rows and makes the page: leave the table, its columns and "
                "the page's labels out."
            )
        return _buy_from_server(questions, frame)
    if rows is None and options.needed() is None:
        rows = options()
    if table is None or rows is None:
        raise ArgumentError(f"{'TABLE' if table is None else options.needed()} must be given.")
    source = rows.source(table, frame.scoring)
    with patience(f"Reading {table.name}"):
        session = rows.session(source, asked=questions)
        called = checked_labels(session.dataset.names, labels)
        hidden = None if frame.yes else _hidden(questions, session.dataset, frame.expected_rows)
    if hidden is not None:
        _confirm(*hidden)
    with patience(f"Asking {table.name}"):
        return Bought(session.answer(*questions), frame, rows.ledger, called)


def _buy_from_server(questions: Sequence["Question[Any]"], frame: Frame) -> Bought:
    from heldout.drawing.words import decimal
    from heldout.questions import find

    scoring = frame.scoring
    takes_model = any(find(question.kind).takes_model() for question in questions)
    if scoring.model is None and takes_model:
        raise ArgumentError("--model must be given: the model that the server evaluates.")
    rows = frame.remote.rows()
    if scoring.model is not None and not takes_model and not rows.facts.get("from_models"):
        raise ArgumentError("This question is about the rows alone: leave --model out.")
    files = [Path(name) for question in questions for name in question.rivals]
    asked = [_elsewhere(question) for question in questions]
    if not frame.yes:
        for question, widths in zip(asked, rows.quote(*asked).half_widths, strict=True):
            hidden = [name for name, width in widths.items() if not width.informative]
            if 2 * len(hidden) > len(widths):
                _confirm(question, hidden, f"At epsilon {decimal(question.price)},", "")
    evaluation = rows.submit(
        *asked,
        model=scoring.model,
        rival=files[0] if files else None,
        features=list(scoring.features) or None,
    )
    return Bought(evaluation.wait(), frame, signed_page=evaluation.page)


def _elsewhere(question: "Question[Any]") -> "Question[Any]":
    """Name the other model as a server names it: its file is sent along."""
    from heldout.questions.base import Rival

    named = question.rival_field()
    if named is None:
        return question
    changed: dict[str, Any] = {named.name: Rival.elsewhere}
    return replace(question, **changed)


Hidden = tuple["Question[Any]", Sequence[str], str, str]
"""A question, what noise would hide of it, where that is, and a better price in words."""


def _hidden(
    questions: Sequence["Question[Any]"], about: "Description", expected_rows: int | None
) -> Hidden | None:
    """Look ahead, by a public row count or guess: would noise leave nothing to read?"""
    from heldout.drawing.words import decimal
    from heldout.questions import Guess

    if about.rows is None and expected_rows is None:
        return None
    guess = Guess(rows=expected_rows).about(about.rows)
    for question in questions:
        question.check(about)
        names = question.hidden_by_noise(about, guess)
        if names:
            where = f"This data set has {guess.rows:,} rows. At epsilon {decimal(question.price)},"
            return question, names, where, _better(question, about, guess)
    return None


def _better(question: "Question[Any]", about: "Description", guess: "Guess") -> str:
    """Return a price at which it could be read, in words; empty if none was tried that does."""
    from heldout.drawing.words import decimal
    from heldout.questions import HalfWidths

    for price in TRIED:
        if price <= 2 * question.price:
            continue
        raised = question.at(price)
        if not raised.hidden_by_noise(about, guess):
            release = raised.typical_release(about, guess)
            width = "" if release is None else HalfWidths.of(release.headline, LEVEL).noise
            return f"Ask for epsilon {decimal(price)}" + (f" (±{width:.2g})" if width else "")
    return ""


def _confirm(question: "Question[Any]", names: Sequence[str], where: str, better: str) -> None:
    """Ask before something is bought that will say nothing; refuse where nobody can be asked."""
    *rest, last = [f"the {name.replace('_', ' ')}" for name in names]
    listed = f"{', '.join(rest)} and {last}" if rest else last
    warning = f"{where} noise would hide {listed}."
    if sys.stdin.isatty() and sys.stderr.isatty():
        print(f"{warning} Buy all the same? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    choices = [better or "Pay more"]
    if any(form_field.name == "sections" for form_field in question.form()):
        choices.append("leave them out by --sections")
    raise ArgumentError(f"{warning} {', '.join([*choices, 'or pass --yes'])}. Nothing was charged.")
