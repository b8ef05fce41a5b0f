"""The frame of every command that asks: open rows or a server, look ahead, ask, deliver, print."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heldout.cli.model import Scoring
from heldout.cli.remote import Remote
from heldout.cli.rows import Address, Custody, Rows

if TYPE_CHECKING:
    from heldout.questions import Question
    from heldout.questions.answers import Answered

__all__ = ["NO_MODEL", "NO_SERVER", "Bought", "buy", "deliver"]

NO_MODEL, NO_SERVER = Scoring(), Remote()
TRIED: Final = (*map(Fraction, ["1/50", "1/20", "1/10", "1/5", "1/2", "1", "2", "5", "10", "20"]),)
"""The prices that are tried, from below, where noise would hide an answer."""
LEVEL: Final = 0.95


@dataclass(frozen=True)
class Bought:
    """What was paid for, and how to show it."""

    answered: "Answered"
    ledger: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """What pages call columns."""
    signed_page: Callable[[], str] | None = None
    """The server's page, where a server has the rows."""
    expected_rows: int | None = None

    @property
    def releases(self) -> tuple[Any, ...]:
        """The answers, one for each question."""
        return self.answered.releases

    @property
    def remaining(self) -> Any:
        """What is left after it."""
        return self.answered.standing.remaining

    def content(self, **more: Any) -> dict[str, Any]:
        """Return the first answer as JSON, and what is left."""
        return {**self.releases[0].as_dict(), **more, "remaining": self.remaining.as_dict()}


def buy(
    *questions: "Question[Any]",
    table: Path | Address | None,
    rows: Custody | None,
    options: type[Custody],
    scoring: Scoring = NO_MODEL,
    remote: Remote = NO_SERVER,
    yes: bool = False,
    expected_rows: int | None = None,
    labels: Sequence[str] = (),
) -> Bought:
    """Ask the questions as one booking, of a table or of a server.

    `options` is what rows are named by, for the message where they are not named.
    """
    from heldout.cli.output import patience
    from heldout.cli.values import checked_labels
    from heldout.errors import ArgumentError

    if remote.given:
        if table is not None or rows is not None or labels:
            raise ArgumentError(
                "The server has the rows and makes the page: leave the table, its columns and "
                "the page's labels out."
            )
        return _buy_from_server(questions, remote, scoring, yes=yes)
    if rows is None and options.needed() is None:
        rows = options()
    if table is None or rows is None:
        raise ArgumentError(f"{'TABLE' if table is None else options.needed()} must be given.")
    if isinstance(rows, Rows):
        scored = scoring.scored(rows.source(table), into=rows.score, row_key=rows.row_key)
    elif scoring.model is not None:
        raise ArgumentError("--model is for rows with a label, or for --server. Leave it out.")
    with patience(f"Reading {table.name}"):
        if isinstance(rows, Rows):
            session: Any = rows.session(table, asked=questions, scored=scored)
        else:
            session = rows.session(table, asked=questions)
        called = checked_labels(session.dataset.names, labels)
        hidden = () if yes else _hidden(questions, session.dataset, expected_rows)
    if hidden:
        _confirm(*hidden)
    with patience(f"Asking {table.name}"):
        answered = session.answer(*questions)
    return Bought(answered, rows.ledger, called, expected_rows=expected_rows)


def _buy_from_server(
    questions: Sequence["Question[Any]"], remote: Remote, scoring: Scoring, *, yes: bool
) -> Bought:
    from heldout.drawing.words import decimal
    from heldout.errors import ArgumentError

    if scoring.model is None:
        raise ArgumentError("--model must be given: the file that the server is to judge.")
    files = [Path(name) for question in questions for name in question.rivals]
    asked = [_elsewhere(question) for question in questions]
    rows = remote.rows()
    if not yes:
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
    return Bought(evaluation.wait(), signed_page=evaluation.page)


def _elsewhere(question: "Question[Any]") -> "Question[Any]":
    """Name the other model as a server names it: its file is sent along."""
    from heldout.questions.base import Rival

    named = question.rival_field()
    if named is None:
        return question
    changed: dict[str, Any] = {named.name: Rival.elsewhere}
    return replace(question, **changed)


def _hidden(
    questions: Sequence["Question[Any]"], about: Any, expected_rows: int | None
) -> tuple["Question[Any]", Sequence[str], str, str] | tuple[()]:
    """Look ahead, by a public row count or guess: would noise leave nothing to read of a question?

    Returns the question, the names of what would be hidden, where that is, and a better price.
    """
    from heldout.drawing.words import decimal
    from heldout.questions import Guess

    if about.rows is None and expected_rows is None:
        return ()
    guess = Guess(rows=expected_rows).about(about.rows)
    for question in questions:
        question.check(about)
        names = question.hidden_by_noise(about, guess)
        if names:
            where = f"This data set has {guess.rows:,} rows. At epsilon {decimal(question.price)},"
            return question, names, where, _better(question, about, guess)
    return ()


def _better(question: "Question[Any]", about: Any, guess: Any) -> str:
    """Return a price at which it could be read, in words; empty if none was tried that does."""
    from heldout.drawing.words import decimal
    from heldout.questions import HalfWidths

    for price in TRIED:
        if price <= 2 * question.price:
            continue
        dearer = question.at(price)
        if not dearer.hidden_by_noise(about, guess):
            release = dearer.typical_release(about, guess)
            width = "" if release is None else HalfWidths.of(release.headline, LEVEL).noise
            return f"Ask for epsilon {decimal(price)}" + (f" (±{width:.2g})" if width else "")
    return ""


def _confirm(question: "Question[Any]", names: Sequence[str], where: str, better: str) -> None:
    """Ask before something is bought that will say nothing; refuse where nobody can be asked."""
    from heldout.errors import ArgumentError

    warning = f"{where} noise would hide {_listed(names)}."
    if sys.stdin.isatty() and sys.stderr.isatty():
        print(f"{warning} Buy all the same? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    choices = [better or "Pay more"]
    choices += ["leave them out by --sections"] * any(
        each.name == "sections" for each in question.form()
    )
    advice = ", ".join([*choices, "or pass --yes"])
    raise ArgumentError(f"{warning} {advice}. Nothing was charged.")


def _listed(names: Sequence[str]) -> str:
    *rest, last = [f"the {name.replace('_', ' ')}" for name in names]
    return f"{', '.join(rest)} and {last}" if rest else last


def deliver(
    bought: Bought,
    *,
    text: Callable[[], None],
    as_json: bool,
    content: Callable[[], Any] | None = None,
    out: Path | None = None,
    write: Callable[[Path], object] | None = None,
    noun: str = "Report",
    may_guess: bool = True,
) -> None:
    """Write and print what was paid for; if that fails, it is stored where the error says.

    `may_guess` is whether the command takes --expected-rows.
    """
    from heldout.cli.delivery import delivering
    from heldout.cli.output import patience, print_expected, print_json, print_unremembered
    from heldout.drawing.place import write_page

    with delivering(*bought.releases, ledger=bought.ledger):
        try:
            if out is not None and bought.signed_page is not None:
                write_page(out, bought.signed_page)
            elif out is not None and write is not None:
                with patience(f"Writing {out.name}"):
                    write(out)
        finally:
            if as_json:
                print_json(bought.content() if content is None else content())
            else:
                text()
                if bought.signed_page is None:
                    print_unremembered(bought.ledger)
                    if may_guess:
                        print_expected(bought.answered.drawn.about.rows, bought.expected_rows)
        if out is not None and not as_json:
            print(f"{noun}: {out}")
