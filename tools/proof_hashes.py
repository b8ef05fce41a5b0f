"""Compares each proof with the source that it proves, and rewrites the hashes once you reread it.

    python tools/proof_hashes.py                      what is stale (status 1 if anything is)
    python tools/proof_hashes.py --write              renew all proofs
    python tools/proof_hashes.py --write one-door     renew one

A proof names what it proves: Source: `src/heldout/<file>.py`::`<object>` sha256 `<hash>`, with
the first 16 hexadecimal digits of the sha256 of the object's source text. A stale hash means that
the code changed after the proof was last read. Read the proof against the new code first; then
write.
"""

import hashlib
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = re.compile(
    r"^Source: `(?P<file>src/[\w/]+\.py)`::`(?P<name>[\w.]+)` sha256 `?(?P<hash>\w+)`?[ ]*$",
    re.MULTILINE,
)
DIGITS = 16
PAGE = ROOT / "proofs" / "README.md"
LIST = re.compile(
    r"(<!-- the list is written by tools/proof_hashes.py --write -->\n).*?(<!-- to here -->)",
    re.DOTALL,
)
COMMAND = "python tools/proof_hashes.py"


@dataclass(frozen=True)
class Source:
    """One `Source:` line of a proof."""

    proof: Path
    file: str
    name: str
    recorded: str

    @property
    def current(self) -> str:
        """The hash of the object's source text as it is now."""
        return digest(find(self.file, self.name))

    @property
    def stale(self) -> bool:
        return self.recorded != self.current

    def __str__(self) -> str:
        return f"{self.proof.relative_to(ROOT)}: {self.file}::{self.name}"


def proofs() -> list[Path]:
    """Every proof, without the page that lists them."""
    return sorted(path for path in (ROOT / "proofs").glob("*.md") if path.name != "README.md")


def sources(proof: Path) -> Iterator[Source]:
    """The `Source:` lines of one proof."""
    for match in SOURCE.finditer(proof.read_text(encoding="utf-8")):
        yield Source(proof, match["file"], match["name"], match["hash"])


def find(file: str, name: str) -> Any:
    """The function, class or method that a `Source:` line names."""
    module = file.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
    found: Any = importlib.import_module(module.replace("/", "."))
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
        if isinstance(found, staticmethod | classmethod):
            found = found.__func__
        elif isinstance(found, property):
            found = found.fget
        elif isinstance(found, cached_property):
            found = found.func
    return inspect.unwrap(found)


def digest(found: Any) -> str:
    """The first digits of the sha256 of the source text."""
    return hashlib.sha256(inspect.getsource(found).encode()).hexdigest()[:DIGITS]


def write(proof: Path) -> int:
    """Renew the hashes of one proof; how many changed."""
    before = proof.read_text(encoding="utf-8")

    def renewed(match: re.Match[str]) -> str:
        file, name = match["file"], match["name"]
        return f"Source: `{file}`::`{name}` sha256 `{digest(find(file, name))}`"

    changed = sum(source.stale for source in sources(proof))
    after = SOURCE.sub(renewed, before)
    if after != before:
        proof.write_text(after, encoding="utf-8")
    return changed


def listed(before: str) -> str:
    """The page of proofs with its list renewed."""
    lines = []
    for proof in proofs():
        title, claim = proof.read_text(encoding="utf-8").split("\n", 1)[0][2:], proof.stem
        lines.append(f"- [{title}]({proof.name}) (`{claim}`)")
    return LIST.sub(lambda match: match[1] + "\n" + "\n".join(lines) + "\n\n" + match[2], before)


def main(arguments: list[str]) -> int:
    wanted = [each for each in arguments if each != "--write"]
    chosen = [path for path in proofs() if not wanted or path.stem in wanted]
    unknown = set(wanted) - {path.stem for path in chosen}
    if unknown:
        names = [path.stem for path in proofs()]
        near = [get_close_matches(one, names, n=1) for one in sorted(unknown)]
        meant = "".join(f" Did you mean {name}?" for names in near for name in names)
        print(f"no such proof: {', '.join(sorted(unknown))}.{meant}")
        return 2
    if "--write" in arguments:
        PAGE.write_text(listed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        for proof in chosen:
            if changed := write(proof):
                print(f"proofs/{proof.name}: {changed} renewed")
        return 0
    stale = [source for proof in chosen for source in sources(proof) if source.stale]
    for source in stale:
        print(f"{source} changed. Reread the proof, then: {COMMAND} --write {source.proof.stem}")
    if not stale:
        print(f"{len(chosen)} proofs match their sources")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
