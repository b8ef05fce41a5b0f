"""What the README and docs/ show is run; what they link to is there; how they spell is British."""

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.source import each_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "papers" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "proofs").glob("*.md")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE_RUN = "<!-- run by tests/"  # before a block that needs a server or a large library
LINK = re.compile(r"\]\(([^)\s]+)\)")
RUN = {"python", "console"}
KNOWN = {*RUN, "text"}

# Stems of American spellings, and the words in them that are nobody's to change.
AMERICAN = re.compile(
    r"\b(?:neighbor|behavior|color|favor|honor|labor|labeled|labeling|modeled|modeling|center|"
    r"meter(?:s|ed)?\b|catalog(?:s|ed)?\b|defense|offense|license[ds]\b|fulfill|enrol[l]?ment|"
    r"gray|mold|traveler|canceled|canceling|skeptic|aging\b|artifact|hemoglobin|anemia|"
    r"(?:normal|optim|general|summar|minim|maxim|real|recogn|organ|random|serial|util|initial|"
    r"character|emphas|priorit|categor|custom|standard|final|visual|synchron|anonym|penal|"
    r"discret|ideal|parameter|material|local|analy|equal|author|special|symbol|critic|apolog)"
    r"i?z(?:e|ed|es|ing|ation|ations|er|ers)\b|analyz)",
    re.IGNORECASE,
)
CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<source [^>]*>", re.DOTALL)
ELSEWHERE = re.compile(r"/(?:home|root|work|Users|tmp|mnt)/|localhost:\d")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[tuple[int, str, str]]:
    """Each fenced block: the line that it begins on, its language and its text."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        before = text[: match.start()].rstrip("\n").rpartition("\n")[2]
        language = "text" if before.startswith(ELSEWHERE_RUN) else match[1]
        yield text.count("\n", 0, match.start()) + 2, language, match[2]


RUNNING = [
    page
    for page in PAGES
    if any(language in RUN for _, language, _ in blocks(page))
    # tests/test_guides.py follows the ones, tools/check_wheel.py the others, from the wheel on.
    and not page.name.startswith(("adding-", "tutorial-"))
]


@pytest.mark.chance(1e-7)
@pytest.mark.parametrize("page", RUNNING, ids=_name)
@pytest.mark.slow
def test_what_a_page_shows_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__page__"}
    monkeypatch.setitem(sys.modules, "__page__", type(sys)("__page__"))
    for line, language, text in blocks(page):
        if language == "python":
            # Blank lines in front, so that a traceback shows the line of the page.
            code = compile("\n" * (line - 1) + text, _name(page), "exec", dont_inherit=True)
            exec(code, namespace)
        elif language == "console":
            for command in text.splitlines():
                _run(command)


def _run(command: str) -> None:
    """A line of a console block: `$ heldout ...` is run, `$ make ...` must have its target."""
    words = shlex.split(command)
    assert words[0] == "$", f"a console block holds commands alone, got: {command}"
    if words[1] == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[2] in targets, f"there is no make {words[2]}"
        return
    assert words[1] == "heldout", f"this cannot be checked; make it a text block: {command}"
    from heldout.cli import main

    assert main(words[2:]) == 0, command


@each_of(PAGES)
def test_a_block_says_what_it_is(page: Path) -> None:
    strays = [(line, language) for line, language, _ in blocks(page) if language not in KNOWN]
    assert not strays, "a block is python or console (run), or text (not run)"
    fences = re.findall(r"^```", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(list(blocks(page))), "a block is not closed"


@each_of(PAGES)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in LINK.findall(text):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        file, _, heading = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.is_file(), f"{_name(page)} links to {link}, which is not there"
        assert ROOT in target.parents, f"{_name(page)} links out of the repository: {link}"
        assert not heading or heading in _headings(target), f"no heading {link}"


@each_of(PAGES)
def test_every_picture_is_there_and_says_what_it_shows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for file in re.findall(r'\bsrc(?:set)?="([^"]+)"', text):
        assert (page.parent / file).is_file(), f"{_name(page)} shows {file}, which is not there"
    for image in re.findall(r"<img [^>]*>", text):
        assert re.search(r'alt="[^"]{20,}"', image), image


def _headings(page: Path) -> set[str]:
    lines = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", line.lower()).strip() for line in lines)
    return {re.sub(r"\s+", "-", line) for line in plain}


@each_of(PAGES)
def test_no_page_holds_both_sides_of_a_merge(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"^(?:<<<<<<<|>>>>>>>) ", text, re.MULTILINE)


@each_of(PAGES)
def test_prose_is_spelt_the_british_way(page: Path) -> None:
    prose = CODE.sub("", page.read_text(encoding="utf-8"))
    assert AMERICAN.findall(prose) == []


def test_the_spelling_list_knows_the_words_that_matter() -> None:
    for word in ("neighbors", "normalized", "color", "behavior", "labeled", "analyze", "randomize"):
        assert AMERICAN.search(word), word
    for word in ("neighbours", "normalised", "colour", "size", "prize", "parameters", "horizon"):
        assert not AMERICAN.search(word), word


@each_of(PAGES)
def test_no_page_names_a_place_on_somebodys_machine(page: Path) -> None:
    assert ELSEWHERE.findall(page.read_text(encoding="utf-8")) == []


def test_every_page_of_the_menu_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or not page.is_file():
            continue
        seen.add(page)
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            file = link.partition("#")[0]
            if file.endswith(".md") and "://" not in file:
                waiting.append((page.parent / file).resolve())
    menu = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(menu) > 5
    assert {ROOT / "docs" / page for page in menu} - seen - {ROOT / "docs" / "index.md"} == set()


def tool_of(name: str) -> ModuleType:
    """Load a program of tools/ as a module."""
    specification = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    tool = importlib.util.module_from_spec(specification)
    sys.modules[name] = tool
    specification.loader.exec_module(tool)
    return tool


@pytest.mark.parametrize(
    ("name", "line"), [("metrics_table", "| recall |"), ("questions_table", "| `log-loss` |")]
)
def test_the_table_of_metrics_and_that_of_questions_are_those_of_the_registries(
    name: str, line: str
) -> None:
    tool = tool_of(name)
    page = tool.PAGE.read_text(encoding="utf-8")
    assert page == tool.page(page), f"run tools/{name}.py --write"
    assert line in page


def test_the_page_of_proofs_counts_the_lines_of_the_source_as_it_is() -> None:
    tool = tool_of("trusted")
    page = tool.PAGE.read_text(encoding="utf-8")
    assert page == tool.page(page), "run tools/trusted.py --write"
    door = tool.kernel_behind({("heldout.kernel.door", "release")})
    reached = {name for module, name in door if module == "heldout.kernel.ledger.tables"}
    assert "Tables" in reached, "through the type of an argument, and from part to part"
    prices = {name for module, name in door if module == "heldout.kernel.events"}
    assert "_discrete_laplace" in prices, "through the table that a decorator fills"


def test_an_old_address_leads_to_a_page_and_a_heading() -> None:
    moved = tool_of("site_pages").MOVED
    assert "operations" in moved
    for name, target in moved.items():
        assert not (ROOT / "docs" / f"{name}.md").exists(), f"{name} is a page"
        file, _, heading = target.partition("#")
        page = {"proofs/index.html": ROOT / "proofs" / "README.md"}.get(
            file, (ROOT / "docs" / file).with_suffix(".md")
        )
        assert page.is_file(), target
        assert not heading or heading in _headings(page), target


@pytest.mark.slow
def test_the_site_builds_strictly_and_asks_nothing_of_another_host(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", "NO_MKDOCS_2_WARNING": "1", "NO_PROXY": "*"},
    )
    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        fetched = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?:[^\" >]+)",
                             page.read_text(encoding="utf-8"))  # fmt: skip
        assert fetched == [], page.name
    reference = (tmp_path / "reference.html").read_text(encoding="utf-8")
    assert 'id="heldout.questions.session.Session.auc"' in reference
    for page in tmp_path.glob("reference*.html"):
        private = re.findall(r'id="(heldout[\w.]*\._\w+)"', page.read_text(encoding="utf-8"))
        assert private == [], page.name
    for page in [*(ROOT / "docs").glob("*.md")]:
        shown = (tmp_path / page.name).with_suffix(".html").read_text(encoding="utf-8")
        for name in re.findall(r"<!-- picture: ([\w-]+) -->", page.read_text(encoding="utf-8")):
            assert f'src="./pictures/{name}.svg"' in shown, (page.name, name)
            assert (tmp_path / "pictures" / f"{name}.svg").read_text().startswith("<svg")
    menu = (tmp_path / "index.html").read_text(encoding="utf-8")
    tabs = re.findall(r'href="([^"]+)" class="md-tabs__link"', menu)
    assert "proofs/index.html" in tabs, "the proofs have a section of their own"
    assert (tmp_path / "search" / "search_index.json").is_file()
    listed = re.findall(r"\]\(([^)]+)\)", (tmp_path / "llms.txt").read_text(encoding="utf-8"))
    assert len(listed) > 20
    assert [name for name in listed if not (tmp_path / name).is_file()] == []


def resolved(name: str) -> bool:
    """Say whether `ho.regression.fit`, `pr.auc`, `q.Auc` or `session.auc` names something."""
    import heldout as ho
    from heldout import precision_recall, questions

    first, *rest = name.split(".")
    found = {"ho": ho, "pr": precision_recall, "q": questions, "session": ho.Session}[first]
    for part in rest:
        if first == "session":
            kinds = {kind.replace("-", "_") for kind in questions.kinds()}
            sessions = (ho.Session, ho.regression.RegressionSession)
            return part in kinds or any(hasattr(session, part) for session in sessions)
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
        if not isinstance(found, ModuleType):  # attributes of what it returns are shown by running
            return True
    return True


def test_every_public_name_that_a_page_mentions_is_there() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    mentioned = re.compile(r"(?<![\w.\"'/-])((?:ho|pr|q|session)(?:\.[A-Za-z]\w*)+)")
    named = {
        (page.name, name) for page in pages for name in mentioned.findall(page.read_text("utf-8"))
    }
    assert len(named) > 100
    assert [item for item in sorted(named) if not resolved(item[1])] == []
    assert not resolved("ho.features.PrivateSelector")
