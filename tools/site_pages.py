"""MkDocs hook: brings pages that live beside docs/ into the site, draws its pictures, and lists
pages by themselves.

In the repository a page of docs/ links to `../proofs/one-door.md`, which works on any host that
shows Markdown. In the site the proofs lie within docs/, so the links are shortened on the way.
"""

import html
import importlib
import inspect
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md")
HEADER = re.compile(r"^((?:Claim|Source): `.*)$", re.MULTILINE)  # of a proof: one line each
SCHEMA = "release.schema.json"
SVG = "http://www.w3.org/2000/svg"
PICTURE = re.compile(r"^<!-- picture: ([\w-]+) -->$", re.MULTILINE)
REFERENCE = re.compile(r"^<!-- reference: ([\w.]+) -->$", re.MULTILINE)
MOVED = {  # pages that are now part of another one, by the address that they had
    "board": "values.html",
    "choosing-epsilon": "how-it-works.html#choosing-epsilon",
    "coming-from": "questions.html#coming-from-another-tool",
    "conclusions": "synthetic-data.html",
    "engines-cost": "engines.html",
    "errata": "papers.html#errata",
    "known-limits": "security.html#known-limits",
    "metrics": "reference.html#metrics",
    "models": "custodian.html#models-from-outside",
    "neighbours-and-units": "how-it-works.html#neighbours-and-units",
    "nist-800-226": "standards.html",
    "asvs": "standards.html#the-server-against-asvs",
    "operations": "server.html#running-a-server",
    "precision-recall": "ranking.html",
    "private-benchmark": "values.html",
    "reading-a-release": "questions.html#reading-a-release",
    "scikit-learn": "questions.html#scikit-learn",
    "scores": "questions.html#scores-of-any-size-and-ranking-on-the-grid",
    "separability": "synthetic-data.html",
    "several-sites": "custodian.html#several-sites",
    "server-pages": "server.html#the-pages-step-by-step",
    "survival": "values.html#time-to-an-event",
    "thresholds": "curves.html",
    "trusted-lines": "proofs/index.html#lines-to-read-before-you-believe-a-claim",
}
LINK = re.compile(r"(\]\()([^)#\s]+\.(?:md|json))(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """List what mkdocs.yml does not name: further pages, decisions and proofs."""
    named = set(re.findall(r"[\w/-]+\.md", str(config.nav)))
    docs = Path(config.docs_dir)
    more = [path.name for path in sorted(docs.glob("*.md")) if path.name not in named]
    decisions = [f"decisions/{path.name}" for path in sorted((docs / "decisions").glob("*.md"))]
    sections = {
        "More": more,
        "Decisions": decisions,
        "Proofs": ["proofs/README.md", *(f"proofs/{path.name}" for path in _proofs())],
        "Project": list(BESIDE),
    }
    config.nav = [*config.nav, *({name: pages} for name, pages in sections.items() if pages)]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that live beside docs/."""
    for path in (*_proofs(), ROOT / "proofs" / "README.md", *(ROOT / name for name in BESIDE)):
        content = path.read_text(encoding="utf-8")
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), content=content))
    files.append(File.generated(config, "llms.txt", content=_llms()))
    text = (ROOT / "src" / "heldout" / "intervals" / SCHEMA).read_text(encoding="utf-8")
    files.append(File.generated(config, SCHEMA, content=text))
    for name, picture in _pictures().items():
        svg = picture().svg
        named = svg if "xmlns=" in svg else svg.replace("<svg", f'<svg xmlns="{SVG}"', 1)
        files.append(File.generated(config, f"pictures/{name}.svg", content=named))
    return files


def on_post_build(config: Any) -> None:
    """Lead old addresses to where their pages went."""
    for name, target in MOVED.items():
        refresh = f'<meta http-equiv="refresh" content="0; url={target}">'
        text = f'<!doctype html>{refresh}<a href="{target}">This page has moved.</a>\n'
        (Path(config.site_dir) / f"{name}.html").write_text(text, encoding="utf-8")


def _llms() -> str:
    """Return the list of pages for language models: a title and a first sentence each."""
    lines = ["# heldout", "", "> Private evaluation of models on data that nobody may see.", ""]
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^# (.+)$", text, re.MULTILINE)
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
        prose = re.search(r"^[`\w].+(?:\n.+)*", text, re.MULTILINE)
        if title:
            plain = " ".join(prose[0].split()) if prose else ""
            first = re.split(r"(?<=[.?]) ", plain)[0].rstrip(".:")
            lines.append(f"- [{title[1]}]({path.stem}.html): {first}")
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn links of the repository's layout into links of the site's."""
    here = page.file.src_uri
    beside = here.startswith("proofs/") or here in BESIDE
    folder = posixpath.dirname(here if beside else f"docs/{here}")

    def moved(match: re.Match[str]) -> str:
        if "://" in match[2]:
            return match[0]
        target = posixpath.normpath(posixpath.join(folder, match[2]))
        target = "index.md" if target == "README.md" else target.removeprefix("docs/")
        target = SCHEMA if target.endswith(SCHEMA) else target
        short = posixpath.relpath(target, posixpath.dirname(here) or ".")
        return f"{match[1]}{short}{match[3] or ''})"

    text = LINK.sub(moved, HEADER.sub(r"- \1", markdown))
    text = REFERENCE.sub(lambda match: _reference(match[1]), text)
    root = posixpath.relpath(".", posixpath.dirname(here) or ".")
    return PICTURE.sub(lambda match: _picture(match[1], root), text)


def _pictures() -> Any:
    import importlib.util

    place = ROOT / "tools" / "site_pictures.py"
    specification = importlib.util.spec_from_file_location("site_pictures", place)
    assert specification is not None
    assert specification.loader is not None
    if specification.name not in sys.modules:
        module = importlib.util.module_from_spec(specification)
        sys.modules[specification.name] = module
        specification.loader.exec_module(module)
    return sys.modules[specification.name].PICTURES


def _picture(name: str, root: str) -> str:
    caption = html.escape(_pictures()[name]().caption)
    image = f'<img class="picture" src="{root}/pictures/{name}.svg" alt="{caption}">'
    return f'<figure class="picture">{image}<figcaption>{caption}</figcaption></figure>'


def _reference(module: str) -> str:
    """What a module offers, by name: nothing that begins with an underscore."""
    found = importlib.import_module(module)
    places = []
    for name in sorted(found.__all__, key=str.lower):
        each = getattr(found, name)
        if inspect.isclass(each) or inspect.isfunction(each):
            places.append(f"::: {each.__module__}.{each.__qualname__}")
    return "\n\n".join(places)


def _proofs() -> list[Path]:
    return sorted(path for path in (ROOT / "proofs").glob("*.md") if path.name != "README.md")
