"""Everything that was made on one page: pictures, the papers' numbers beside ours, verdicts.

The same claims without pictures are `papers.md`, a page of the documentation.

Each table or figure leaves a small JSON file beside its picture. What a folder holds already, made
with as many repetitions by the same version, is not made again: a long run can be resumed.
"""

from __future__ import annotations

import json
from base64 import b64encode
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heldout_papers.registry import Entry, Reproduction

__all__ = ["PAPERS", "kept", "markdown", "remember", "write_page"]

_SHOWN_ROWS = 40


def kept(entry: Entry, out: Path, repetitions: int | None) -> dict[str, Any] | None:
    """What an earlier run left of this entry, if it was whole and alike."""
    try:
        found: dict[str, Any] = json.loads((out / f"{entry.name}.json").read_text("utf-8"))
        whole = all((out / name).is_file() for name in found["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    alike = (found["repetitions"], found["version"]) == (repetitions, version("heldout-papers"))
    return found if whole and alike else None


def remember(
    entry: Entry,
    result: Reproduction,
    files: list[Path],
    *,
    repetitions: int | None,
    seconds: float,
    out: Path,
) -> dict[str, Any]:
    """Write down what was made, last of all, so that half of it is never taken for the whole."""
    found = {
        "paper": entry.paper,
        "kind": entry.kind,
        "number": entry.number,
        "title": result.title,
        "description": result.description,
        "notes": list(result.notes),
        "claims": [claim.as_dict() for claim in result.claims],
        "rows": [{k: _plain(v) for k, v in row.items()} for row in result.table[:_SHOWN_ROWS]],
        "row_count": len(result.table),
        "files": [path.name for path in files],
        "repetitions": repetitions,
        "seconds": round(seconds, 1),
        "version": version("heldout-papers"),
    }
    (out / f"{entry.name}.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def write_page(
    found: list[dict[str, Any]], left_out: list[tuple[Entry, str]], *, quick: bool, out: Path
) -> Path:
    """Write the page, with its pictures inside it, and its claims as Markdown."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    (out / "papers.md").write_text(markdown(found), encoding="utf-8")

    loaders = [PackageLoader("heldout_papers"), PackageLoader("heldout.drawing")]
    templates = Environment(
        loader=ChoiceLoader(loaders), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    import platform

    text = templates.get_template("reproduced.html").render(
        title="The papers, made again",
        version=version("heldout-papers"),
        python=platform.python_version(),
        made=[each | {"pictures": _pictures(each, out)} for each in found],
        left_out=left_out,
        quick=quick,
        claims=[(each, claim) for each in found for claim in each["claims"]],
        minutes=sum(each["seconds"] for each in found) / 60,
        cell=_cell,
    )
    path = out / "index.html"
    path.write_text(text, encoding="utf-8")
    return path


PAPERS = {
    "stoddard-2014": "Stoddard, Chen and Machanavajjhala 2014",
    "chen-2016": "Chen, Machanavajjhala, Reiter and Barrientos 2016",
    "boyd-2014": "Boyd 2014",
    "boyd-2015": "Boyd, Lantz and Page 2015",
    "separability": "The separability metric",
}


def markdown(made: list[dict[str, Any]]) -> str:
    """Return the claims as a page of the documentation, one table per paper."""
    templates = files("heldout_papers") / "templates"
    parts = [(templates / "papers.md").read_text("utf-8").rstrip()]
    for paper, title in PAPERS.items():
        entries = [entry for entry in made if entry["paper"] == paper]
        rows = [
            _row(f"{entry['kind']} {entry['number']}", claim)
            for entry in entries
            for claim in entry["claims"]
        ]
        head = ["| where | claim | printed | here | verdict |", "|---|---|---|---|---|"]
        parts += [f"## {title}", "\n".join([*head, *rows])]
        silent = [f"{e['kind']} {e['number']}" for e in entries if not e["claims"]]
        if silent:
            parts.append(f"Drawn, with no claim to check: {', '.join(silent)}.")
    parts.append((templates / "errata.md").read_text("utf-8").rstrip())
    return "\n\n".join(parts) + "\n"


def _row(where: str, claim: dict[str, str]) -> str:
    text = claim["text"] + (f" ({claim['data']})" if claim["data"] else "")
    why = f". {claim['why']}" if claim["why"] and claim["verdict"] != "reproduced" else ""
    cells = (where, text, claim["printed"], claim["here"], f"**{claim['verdict']}**{why}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _pictures(found: dict[str, Any], out: Path) -> list[str]:
    names = [name for name in found["files"] if name.endswith(".svg")]
    return ["data:image/svg+xml;base64," + b64encode((out / name).read_bytes()).decode()
            for name in names]  # fmt: skip


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
