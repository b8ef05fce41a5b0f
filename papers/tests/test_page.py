"""The page of claims in the documentation, beside the reproductions that it is made from."""

import ast
import re
from pathlib import Path

import pytest

import heldout_papers
from heldout_papers.page import PAPERS, markdown
from heldout_papers.registry import Claim, Verdict, discover

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
SOURCES = Path(heldout_papers.__file__).parent
ROW = re.compile(r"^\| (figure|table) (\S+) \| (.+?) \| .* \| \*\*(.+?)\*\*")


def _sections() -> dict[str, str]:
    text = PAGE.read_text("utf-8")
    return {
        paper: text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
        for paper, title in PAPERS.items()
    }


def _rows() -> list[tuple[str, str, str, str, str]]:
    return [
        (paper, *match.groups())
        for paper, section in _sections().items()
        for match in map(ROW.match, section.splitlines())
        if match
    ]


def test_every_claim_on_the_page_has_an_entry_that_states_it() -> None:
    modules = {
        (entry.paper, entry.kind, entry.number): entry.make.__module__ for entry in discover()
    }
    texts = [pattern for source in SOURCES.glob("*.py") for pattern in _texts(source)]
    for paper, kind, number, claim, verdict in _rows():
        assert (paper, kind, number) in modules, f"{paper} {kind} {number} cannot be made"
        stated = re.sub(r" \([^()]*\)$|(?:,| at epsilon) [\d.]+$", "", claim)
        assert any(pattern.fullmatch(text) for text in (claim, stated) for pattern in texts), claim
        assert verdict in set(Verdict)


def test_the_page_has_every_table_and_figure() -> None:
    sections = _sections()
    for entry in discover():
        name = re.escape(f"{entry.kind} {entry.number}")
        assert re.search(rf"(\| |[:,] ){name}( \||,|\.)", sections[entry.paper]), entry.name


def test_the_page_ends_with_the_errata_as_the_command_writes_them() -> None:
    errata = (SOURCES / "templates" / "errata.md").read_text("utf-8")
    assert errata.startswith("## Errata\n")
    assert PAGE.read_text("utf-8").endswith(errata)
    assert markdown([]).endswith(errata)


def test_the_page_has_rows_of_every_paper_and_more_than_one_verdict() -> None:
    rows = _rows()
    assert {row[0] for row in rows} == set(PAPERS)
    assert {row[-1] for row in rows} >= {"reproduced", "differs", "ours / open question"}


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [(True, "reproduced"), (False, "differs"), (Verdict.OURS, "ours / open question")],
)
def test_a_claim_is_a_row_with_its_verdict(holds: bool | Verdict, verdict: str) -> None:
    claim = Claim("It | falls", "0.5", "0.4", holds, "A cause.", data="made-up rows")
    entry = {
        "paper": "chen-2016", "kind": "figure", "number": "3", "claims": [claim.as_dict()],
    }  # fmt: skip
    why = "" if verdict == "reproduced" else ". A cause."
    row = rf"| figure 3 | It \| falls (made-up rows) | 0.5 | 0.4 | **{verdict}**{why} |"
    assert row in markdown([entry])


def _texts(source: Path) -> list[re.Pattern[str]]:
    """Return the texts of a module, any value in the place of what is filled in."""
    found = []
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            fixed = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
            if len("".join(fixed)) < 8:
                continue  # it would fit anything
            parts = [
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+"
                for part in node.values
            ]
            found.append(re.compile("".join(parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            found.append(re.compile(re.escape(node.value)))
    return found
