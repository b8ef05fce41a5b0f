"""Everything that was made on one HTML page: pictures, the papers' numbers beside ours, verdicts.

Each table or figure leaves a small JSON file beside its picture. What a folder holds already, made
with as many repetitions by the same version, is not made again: a long run can be resumed.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heldout_papers.registry import Entry, Reproduction

__all__ = ["kept", "remember", "write_page"]

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
        "claims": [asdict(each) | {"verdict": each.verdict} for each in result.claims],
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
    """One file: pictures are inside it, nothing is fetched from elsewhere."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

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
