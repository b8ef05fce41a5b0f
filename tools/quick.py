"""Name the tests of a room of the package and of the rooms that import it, nearest first.

    python tools/quick.py ledger

A room is a folder or a module of `src/heldout`, by its own name. First come test files of that
name, then those of its folder, then files that import it, then all tests of the rooms that import
it, in the order in which rooms may import each other (tests/test_imports.py).
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.test_imports import height, imported, modules  # noqa: E402


def main(room: str) -> list[str]:
    """Return the paths, without repeats."""
    inside = {name for name in modules() if room in name.split(".")[1:]}
    if not inside:
        raise SystemExit(f"ROOM must be a folder or a module of src/heldout, got {room!r}.")
    above = [name for name in modules() if name not in inside and inside & {*imported(name)}]
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    chosen = [file for file in files if room in file.parts or room in file.stem]
    for names in (inside, None, above):
        if names is None:
            texts = {file: file.read_text(encoding="utf-8") for file in files}
            chosen += [file for file in files if any(name in texts[file] for name in inside)]
            continue
        for name in sorted(set(names) - {"heldout"}, key=height):
            place = name.split(".")[1]
            chosen += [file for file in files if place in (*file.parts, file.stem[len("test_") :])]
    return [str(file.relative_to(ROOT)) for file in dict.fromkeys(chosen)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: make quick ROOM=ledger")
    print(" ".join(main(sys.argv[1])))
