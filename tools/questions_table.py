"""Prints the tables of questions from the registry; `--write` puts them in their page.

python tools/questions_table.py            print
python tools/questions_table.py --write    renew the page and the types
"""

import re
import sys
from pathlib import Path
from typing import Any

from heldout.cli.rows import options_for
from heldout.questions import Question, registered
from heldout.server.declaration import SERVED

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference.md"
TYPED = ROOT / "src" / "heldout" / "questions" / "__init__.py"
FAMILIES = re.compile(r"(    from heldout\.questions\.[\w.]+ import \*  # noqa: F403\n)+")
BETWEEN = re.compile(r"(<!-- from the registry -->\n).*?(<!-- to here -->)", re.DOTALL)
WHERE = re.compile(r"(<!-- where, from the registry -->\n).*?(<!-- to here -->)", re.DOTALL)
SHELLS = ("library", "command line", "API", "page", "client")
HEAD = ("kind", "question", "what it tells", "of", "by group", "in a report", "pooled")


def table() -> str:
    """Return one line per kind of question."""
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    lines += [f"| {' | '.join(_cells(question))} |" for question in registered()]
    return "\n".join(lines) + "\n"


def _cells(question: type[Question[Any]]) -> tuple[str, ...]:
    section = question.section
    place = "no" if section is None else "always" if section.always else "if asked"
    return (
        f"`{question.kind}`",
        question.asks,
        question.tells,
        " or ".join(kind.rows_in_words for kind in question.of),
        "yes" if question.by_group() else "no",
        place,
        "yes" if question.pools() else f"no: {question.cannot_pool}",
    )


def why_not(question: type[Question[Any]]) -> dict[str, str | None]:
    """Return, for every shell, why a question cannot be asked there; None if it can."""
    rows = " or ".join(each.rows_in_words for each in question.of)
    local = None if options_for(question.of) is not None else f"No command opens {rows}."
    remote = None if set(SERVED) & set(question.of) else f"No server holds {rows}, so far."
    return dict(zip(SHELLS, (None, local, remote, remote, remote), strict=True))


def where() -> str:
    """Return where each kind can be asked, and the reason of every cell that is not "yes"."""
    lines = [f"| kind | class | {' | '.join(SHELLS)} |", "|---" * (2 + len(SHELLS)) + "|"]
    reasons: list[str] = []
    for question in registered():
        cells = [f"`{question.kind}`", f"`{question.__name__}`"]
        for reason in why_not(question).values():
            if reason is not None and reason not in reasons:
                reasons.append(reason)
            cells.append("yes" if reason is None else f"no ({reasons.index(reason) + 1})")
        lines.append(f"| {' | '.join(cells)} |")
    notes = [f"{place}. {reason}" for place, reason in enumerate(reasons, start=1)]
    return "\n".join([*lines, "", *notes]) + "\n"


def page(before: str) -> str:
    """Return the page with the tables renewed."""
    renewed = BETWEEN.sub(lambda match: match[1] + "\n" + table() + "\n" + match[2], before)
    return WHERE.sub(lambda match: match[1] + "\n" + where() + "\n" + match[2], renewed)


def families() -> str:
    """Return the import of every family of this package, by which type checkers know its kinds."""
    modules = {question.__module__ for question in registered()}
    ours = sorted(module for module in modules if module.startswith("heldout.questions."))
    return "".join(f"    from {module} import *  # noqa: F403\n" for module in ours)


def main(arguments: list[str]) -> int:
    if "--write" in arguments:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        typed = FAMILIES.sub(families(), TYPED.read_text(encoding="utf-8"))
        TYPED.write_text(typed, encoding="utf-8")
    else:
        print(table(), where(), sep="\n", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
