"""The page of a replay: a line for each kind, relation and unit, and the sources it was run on.

The page is also what a run goes on from. A line carries a digest of the sources that decide what is
drawn for its kind; where they are still the same, its cells stand and only what is missing is
replayed. So a run may be stopped, or limited to a few kinds, and taken up again later.
"""

import ast
import hashlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

import heldout
from heldout import questions as q
from heldout.audit.tables import ENGINES, ENTRANCES

if TYPE_CHECKING:
    from heldout.audit.replay import Comparison

TOLERANCE: Final = 1e-6
"""Of the claim: ratios of ladders and comparisons are computed in doubles."""
Place = tuple[str, str, str, str]
"""Kind, relation, unit, entrance."""
Line = tuple[str, str, str]
"""Kind, relation, unit."""
OLDER: Final = "*"
"""Behind what was replayed on older sources than the line's."""
NONE: Final = "–"
"""Shown where a question is refused for such rows, by what is public of them."""


@dataclass
class Cell:
    """Counts replays of one kind under one relation, by one unit, through one entrance."""

    pairs: int = 0
    """0 where the question is refused for such rows, by what is public of them."""
    mixed: int = 0
    """Pairs of tables in mixed encodings, of those that were not refused."""
    worst: float = 0.0
    broken: int = 0
    first: str = ""
    """Of what broke: the question, and what differs."""

    def add(self, result: "Comparison", words: str, *, mixed: bool = False) -> None:
        self.pairs += 1
        self.mixed += mixed
        self.worst = max(self.worst, result.ratio)
        if not result.holds:
            self.broken += 1
            differs = result.differences[0] if result.differences else f"loss {result.ratio:.3f}"
            self.first = self.first or f"{words}: {differs}"

    def merge(self, other: "Cell") -> None:
        """Add the pairs that another process, or another run, replayed."""
        self.pairs += other.pairs
        self.mixed += other.mixed
        self.worst = max(self.worst, other.worst)
        self.broken += other.broken
        self.first = self.first or other.first


@dataclass
class Replay:
    """Cells of one run, and of those before that it goes on from."""

    cells: dict[Place, Cell] = field(default_factory=dict)
    sources: dict[Line, str] = field(default_factory=dict)
    """The sources that each line was replayed on, which may be older than those of today."""
    older: dict[Place, Cell] = field(default_factory=dict)
    """Cells that were replayed on other sources, and not again since."""
    refused: int = 0
    """Tables that were refused when they were opened: nothing was asked of them."""
    seconds: float = 0.0
    processor: float = 0.0

    @property
    def bad(self) -> list[str]:
        """Return the cells where a neighbour could be recognised by more than the claim allows."""
        every = {**self.older, **self.cells}
        return [" x ".join(place) for place, cell in every.items() if not _holds(cell)]

    @property
    def stale(self) -> list[Line]:
        """Return the lines whose sources changed since they were replayed."""
        return [line for line, digest in self.sources.items() if digest != source_digest(line[0])]

    def cell(self, *place: str) -> Cell:
        kind, relation, unit, entrance = place
        return self.cells.setdefault((kind, relation, unit, entrance), Cell())

    def merge(self, other: "Replay") -> None:
        """Add what was replayed now, in place of what was replayed on other sources before."""
        for line in {place[:3] for place in other.cells} & set(self.stale):
            del self.sources[line]
            for place in [place for place in self.cells if place[:3] == line]:
                self.older[place] = self.cells.pop(place)
        for place, cell in other.cells.items():
            self.older.pop(place, None)
            self.cell(*place).merge(cell)
        self.refused += other.refused
        self.processor += other.processor

    def markdown(self) -> str:
        """Return the page."""
        stale = set(self.stale)
        every = {place: cell for place, cell in {**self.older, **self.cells}.items() if cell.pairs}
        broken = {place: cell for place, cell in every.items() if not _holds(cell)}
        new = {
            place: cell
            for place, cell in every.items()
            if place in self.cells and place[:3] not in stale
        }
        mixed = sum(cell.mixed for cell in new.values())
        verdict = f"**{_counted(new)}.** {mixed:,} of the pairs were in mixed encodings."
        if len(new) < len(every):
            old = {place: cell for place, cell in every.items() if place not in new}
            verdict += f" **On older sources than those of this version: {_counted(old)}.**"
        lines = [_HEAD.format(version=heldout.__version__, verdict=verdict), *self._table()]
        if broken:
            lines += ["", "## What broke", ""]
            lines += [f"- {' x '.join(place)}: `{cell.first}`" for place, cell in broken.items()]
        took = f"{self.seconds / 60:.0f} minutes, {self.processor / 60:.0f} of processor time"
        refused = f"{self.refused:,} tables were refused when opened"
        lines += ["", f"The last run took {took}; {refused}."]
        return "\n".join([*lines, ""])

    def _table(self) -> list[str]:
        """Return a line per kind, relation and unit, with a column per entrance."""
        every = {**self.older, **self.cells}
        names = [name for name in ENTRANCES if any(place[3] == name for place in every)]
        head = ["kind", "relation", "unit", *names, "mixed", "sources"]
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for kind, relation, unit in sorted({place[:3] for place in self.cells}):
            line = (kind, relation, unit)
            row = [self.cells.get((*line, name)) for name in names]
            old = [self.older.get((*line, name)) for name in names]
            mixed = sum(cell.mixed for cell in row if cell is not None)
            digest = self.sources.get(line) or source_digest(kind)
            texts = [
                _shown(cell) or (_shown(before) and f"{_shown(before)}{OLDER}")
                for cell, before in zip(row, old, strict=True)
            ]
            shown = [*line, *texts, str(mixed), f"`{digest}`"]
            lines.append("| " + " | ".join(shown) + " |")
        return lines


def _holds(cell: Cell) -> bool:
    return cell.worst <= 1 + TOLERANCE


def _counted(cells: Mapping[Place, Cell]) -> str:
    """Say how many cells hold.

    >>> _counted({("auc", "replace-one", "none", "list"): Cell(pairs=9, worst=0.5)})[:19]
    '0 of 1 cells broken'
    """
    broken = sum(not _holds(cell) for cell in cells.values())
    worst = max((cell.worst for cell in cells.values()), default=0.0)
    fewest = {
        name: min((cell.pairs for place, cell in cells.items() if place[3] in names), default=0)
        for name, names in {"engine": ENGINES, "cell": ENTRANCES}.items()
    }
    return (
        f"{broken} of {len(cells)} cells broken; the largest realised loss is {_ratio(worst)} of "
        f"the claim; {sum(cell.pairs for cell in cells.values()):,} pairs, at least "
        f"{fewest['engine']} by lists and on each other engine, {fewest['cell']} in any cell"
    )


def _ratio(worst: float) -> str:
    return "∞" if worst == inf else f"{worst:.3f}"


def _shown(cell: Cell | None) -> str:
    """Return what stands in a cell; nothing where nothing was tried."""
    if cell is None:
        return ""
    return f"{_ratio(cell.worst)} ({cell.pairs})" if cell.pairs else NONE


def read_page(page: str) -> Replay:
    """Return the cells of a page, to go on from. A page without digests has none."""
    lines = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("|")]
    head, *rows = [[text.strip() for text in line] for line in lines] or [[""]]
    replay = Replay()
    if head[-1] != "sources":
        return replay
    for kind, relation, unit, *texts, mixed, digest in rows[1:]:
        replay.sources[kind, relation, unit] = digest.strip("`")
        left = int(mixed)  # of the whole line: kept with its first cell
        for entrance, text in zip(head[3:-2], texts, strict=True):
            if not text:
                continue
            place, shown = (kind, relation, unit, entrance), text.rstrip(OLDER)
            cell = Cell()
            if shown != NONE:
                worst, pairs = shown.rstrip(")").split(" (")
                cell.worst = inf if worst == _ratio(inf) else float(worst)
                cell.pairs, cell.broken = int(pairs), int(not _holds(cell))
            if text.endswith(OLDER):
                replay.older[place] = cell
            else:
                cell.mixed, left = left, 0
                replay.cells[place] = cell
    return replay


_HEAD = """# The latest replay

Made by `heldout audit --replay`, which `make audit` runs, with version {version}; do not edit.

Every kind of question is asked of a made-up table through the public interface, while every draw of
noise is recorded. Then it is asked of a neighbour with the same outputs forced. Kinds, scales,
shapes, order and number of the draws, and everything that is released, must be equal: a difference
is a leak without a bound and is shown as a ratio of infinity. The loss of all draws together, over
the price, is the *ratio*, or that of a single step over what its own noise claims, if it is larger;
more than 1 would be a broken promise. Neighbours differ in one row, or in one unit of up to 3
counted rows (and up to 5 in the table); under the relation `label` in their outcomes alone. Each
two of up to 7 tables that differ in the same row or unit are a pair; under `add-remove` each two
of up to 12 of which one has one more. There are ties, cells at the edges of bins and missing cells;
where the storage does not declare types, one person's cells may have other encodings (1, 1.0, True,
Decimal("1.0"), "1").
How it is done: [security](security.md#the-audit).

DuckDB counts lists and the files and frames beside them. Lists, PostgreSQL and Spark have all
pairs, the other entrances a quarter. What may be kept of an answer is compared in all tables; what
is read off it, on those three, for every fifth group of tables. In parentheses: pairs; *mixed*:
those of them, in all of the line, in mixed encodings. A dash: the question is refused for such
rows, by what is public of them. *sources*: a digest of the code that decides what a kind draws (its
module and all that this imports, and the replay's own); a line is replayed again when it changes. A
star: replayed on older sources than its line.

{verdict}
"""


# --- the sources of a kind -----------------------------------------------------------------------

_ROOT: Final = Path(heldout.__file__).parent
_OWN: Final = ("replay", "tables", "tape", "log_ratios")
"""Of the replay itself: they decide what is compared."""
_NO_FURTHER: Final = ("heldout", "heldout.questions", "heldout.audit", "heldout.drawing")
"""Packages that name everything, and what is drawn for people of numbers that are public."""
_NO_QUESTIONS: Final = {"board": "heldout.board", "search": "heldout.estimators"}
_SHARE: Final = "share-of-"


@cache
def source_digest(kind: str) -> str:
    """Return 12 digits that change with the code that decides what a kind draws.

    Comments and docstrings do not count. A kind that is not there any more has none.
    """
    if kind in _NO_QUESTIONS:
        modules = [_NO_QUESTIONS[kind]]
    elif kind.removeprefix(_SHARE) not in q.kinds():
        return ""
    else:
        modules = [q.find(kind.removeprefix(_SHARE)).__module__]
        modules += ["heldout.pooling.pool"] * kind.startswith(_SHARE)
    needed = {f"heldout.audit.{name}" for name in _OWN}
    while modules:
        module = modules.pop()
        if module not in needed and module not in _NO_FURTHER:
            needed.add(module)
            modules += _imported(module)
    hashed = hashlib.sha256()
    for module in sorted(needed):
        hashed.update(f"{module} {_code_digest(module)}\n".encode())
    return hashed.hexdigest()[:12]


def _file(module: str) -> Path | None:
    """Return where a module of this package is; of another one only if it was imported."""
    first, *rest = module.split(".")
    if first != "heldout":
        there = sys.modules.get(module)
        return Path(inspect.getfile(there)) if there is not None else None
    place = _ROOT.joinpath(*rest)
    for file in (place / "__init__.py", place.with_suffix(".py")):
        if file.is_file():
            return file
    return None


@cache
def _parsed(module: str) -> ast.Module:
    file = _file(module)
    return ast.parse("" if file is None else file.read_text(encoding="utf-8"))


@cache
def _imported(module: str) -> tuple[str, ...]:
    """Return the modules of this package that one imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(_parsed(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return tuple(name for name in names if name.split(".")[0] == "heldout" and _file(name))


@cache
def _code_digest(module: str) -> str:
    """Return a digest of a module's lines without comments and without texts that stand alone."""
    file = _file(module)
    lines = [] if file is None else file.read_text(encoding="utf-8").splitlines()
    for node in ast.walk(_parsed(module)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            assert node.end_lineno is not None
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    code = [line for line in map(str.rstrip, lines) if line and not line.lstrip().startswith("#")]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()
