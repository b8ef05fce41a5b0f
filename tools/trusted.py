"""Counts the lines that a reviewer must read to believe each claim; `--write` renews the list.

python tools/trusted.py            print
python tools/trusted.py --write    renew its part of proofs/README.md

A claim rests on the symbols of its proof's `Source:` lines and on every symbol of the kernel that
these refer to, directly or through others. References are read off the source text: names, the
modules they were imported from, and types in annotations. What an object does behind a type that is
not named is not followed.
"""

import ast
import contextlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
PAGE = ROOT / "proofs" / "README.md"
PART = re.compile(
    r"(?<=<!-- the lines are counted by tools/trusted.py --write -->\n).*(?=<!-- end of lines -->)",
    re.DOTALL,
)
KERNEL = "heldout.kernel"
SOURCE = re.compile(r"^Source: `src/(?P<file>[\w/]+)\.py`::`(?P<name>[\w.]+)`", re.MULTILINE)
SHARED = ("one-door", "staged", "composition", "ledger", "custody")
"""The claims that every other one passes through."""

Symbol = tuple[str, str]
"""A module and a name in it, with a dot for a method."""
Line = tuple[str, int]


@dataclass
class Module:
    """One file: its top-level symbols, what it imports, and which of its lines are code."""

    name: str
    tree: ast.Module
    symbols: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    code: set[int] = field(default_factory=set)


@cache
def module_of(name: str) -> Module | None:
    """Read a module of the package; None if there is none of this name."""
    path = SRC.joinpath(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not name.startswith("heldout") or not file.is_file():
        return None
    return _read(name, file.read_text(encoding="utf-8"))


def _known(name: str) -> Module:
    module = module_of(name)
    if module is None:
        raise SystemExit(f"No module {name}: a proof names a file that is gone.")
    return module


def kernel() -> dict[str, Module]:
    """Read every module of the kernel, by the path of its file."""
    files = sorted((SRC / "heldout" / "kernel").rglob("*.py"))
    names = {path: ".".join(path.relative_to(SRC).with_suffix("").parts) for path in files}
    return {
        path.relative_to(SRC / "heldout").as_posix(): _known(name.removesuffix(".__init__"))
        for path, name in names.items()
    }


def _read(name: str, text: str) -> Module:
    module = Module(name, ast.parse(text))
    skipped: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            skipped |= _span(node)
            for alias in node.names:
                local = alias.asname or alias.name.partition(".")[0]
                source = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                module.imports[local] = source + (alias.name if source or alias.asname else local)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped |= _span(node) if isinstance(node.value.value, str) else set()
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.strip().startswith("#") and number not in skipped:
            module.code.add(number)
    for node in module.tree.body:
        for symbol in _defined(node):
            if symbol == "__all__":
                module.code -= _span(node)
            else:
                module.symbols.setdefault(symbol, []).append(node)
    return module


def _span(node: ast.stmt) -> set[int]:
    """Return the lines of a statement, its decorators included."""
    starts = [node, *getattr(node, "decorator_list", ())]
    return set(range(min(part.lineno for part in starts), (node.end_lineno or 0) + 1))


def _defined(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a top-level statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        for part in ast.walk(target) if target is not None else ():
            if isinstance(part, ast.Name):
                yield part.id


def resolve(module: str, name: str) -> Symbol | None:
    """Find the symbol of this package that a name means in a module."""
    here = module_of(module)
    if here is None:
        return None
    if name in here.symbols:
        return module, name
    target = here.imports.get(name, "")
    owner, _, inner = target.rpartition(".")
    return None if module_of(target) is not None else resolve(owner, inner)


def nodes_of(symbol: Symbol) -> list[ast.stmt]:
    """Return the statements that define a symbol."""
    module, name = symbol
    first, *rest = name.split(".")
    nodes = _known(module).symbols[first]
    for part in rest:
        nodes = [
            inner
            for node in nodes
            for inner in ast.walk(node)
            if isinstance(inner, ast.FunctionDef) and inner.name == part
        ]
    return nodes


@cache
def references(symbol: Symbol) -> set[Symbol]:
    """Return the symbols of this package that a symbol's source names."""
    module, named = symbol[0], set()
    imports = _known(module).imports
    for node in nodes_of(symbol):
        for part in [*ast.walk(node), *_quoted_types(node)]:
            if isinstance(part, ast.Name):
                named.add(resolve(module, part.id))
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                named.add(resolve(imports.get(part.value.id, ""), part.attr))
    return {other for other in named if other is not None} | _registered(symbol)


def _quoted_types(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of annotations that are written as text."""
    for part in ast.walk(node):
        for annotation in (getattr(part, "annotation", None), getattr(part, "returns", None)):
            for text in ast.walk(annotation) if annotation is not None else ():
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    with contextlib.suppress(SyntaxError):  # help texts are in annotations too
                        yield from ast.walk(ast.parse(text.value, mode="eval"))


def _registered(symbol: Symbol) -> set[Symbol]:
    """Return the functions that a decorator of the same module puts into a table."""
    here = _known(symbol[0])
    if not all(isinstance(node, ast.Assign | ast.AnnAssign) for node in nodes_of(symbol)):
        return set()
    registered = set()
    for name, nodes in here.symbols.items():
        for decorator in getattr(nodes[0], "decorator_list", ()):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            own = here.symbols.get(getattr(called, "id", ""), ())
            names = {
                part.id for node in own for part in ast.walk(node) if isinstance(part, ast.Name)
            }
            if symbol[1] in names:
                registered.add((symbol[0], name))
    return registered


def kernel_behind(symbols: set[Symbol]) -> set[Symbol]:
    """Return the symbols of the kernel that these refer to, directly or through others."""
    seen, waiting = set(symbols), list(symbols)
    while waiting:
        for other in references(waiting.pop()):
            if other not in seen and other[0].startswith(KERNEL):
                seen.add(other)
                waiting.append(other)
    return seen


def lines_of(symbols: set[Symbol]) -> set[Line]:
    """Return the lines of code of these symbols, each once."""
    return {
        (symbol[0], number)
        for symbol in symbols
        for node in nodes_of(symbol)
        for number in _span(node) & _known(symbol[0]).code
    }


def claims() -> dict[str, set[Symbol]]:
    """Return the symbols that the proof of each claim names."""
    read = {}
    for proof in sorted(path for path in (ROOT / "proofs").glob("*.md") if path.stem != "README"):
        matches = SOURCE.finditer(proof.read_text(encoding="utf-8"))
        read[proof.stem] = {
            (match["file"].replace("/", ".").removesuffix(".__init__"), match["name"])
            for match in matches
        }
    return read


def page(text: str) -> str:
    """Return the page of proofs with the lines as they are now."""
    return PART.sub(lambda _: part(), text)


def part() -> str:
    """Return what the page of proofs says of lines."""
    proved = claims()
    behind = {claim: kernel_behind(symbols) for claim, symbols in proved.items()}
    shared = lines_of(set().union(*(behind[claim] for claim in SHARED)))
    files = {file: module for file, module in kernel().items() if module.code}
    total = sum(len(module.code) for module in files.values())
    reached = {line for symbols in behind.values() for line in lines_of(symbols)}
    inside = sum(module.startswith(KERNEL) for module, _ in shared)
    text = [
        "",
        "A claim of privacy is as good as the code behind it. These tables count that code: lines "
        "that are neither blank nor a comment, a docstring, an import or a list of exported names.",
        "",
        f"- The kernel (`src/heldout/kernel`) has **{total:,} lines** in {len(files)} files.",
        f"- Every release passes through **{inside:,} lines** of them, and {len(shared) - inside} "
        "lines outside: the door, the envelope of exact numbers, prices, composition and the "
        "ledger. Read these once.",
        "- For one claim, read also the symbols that its proof names, and "
        "the parts of the kernel that these refer to. The table counts both, without the shared "
        "lines.",
        "",
        "References are read off the source text (names, imports, types in annotations). An object "
        "behind a type that nobody names is not followed, and neither are libraries.",
        "",
        "### By claim",
        "",
        "| claim | symbols of the proof | their lines | further kernel lines | in all |",
        "|---|---|---|---|---|",
    ]
    for claim, symbols in proved.items():
        own = lines_of(symbols)
        others = lines_of(behind[claim]) - own
        if claim not in SHARED:
            own, others = own - shared, others - shared
        names = ", ".join(f"`{name}`" for name in sorted(name for _, name in symbols))
        mark = " (shared)" if claim in SHARED else ""
        row = (f"[{claim}]({claim}.md){mark}", names, len(own), len(others))
        text.append(f"| {' | '.join(map(str, row))} | {len(own) + len(others)} |")
    text += ["", "### By file of the kernel", ""]
    text += ["| file | lines | shared by all | behind some claim |", "|---|---|---|---|"]
    for file, module in files.items():
        mine = {(module.name, number) for number in module.code}
        counts = (len(mine), len(mine & shared), len(mine & reached))
        text.append(f"| `{file}` | {' | '.join(map(str, counts))} |")
    return "\n".join(text) + "\n\n"


def main(arguments: list[str]) -> int:
    if arguments == ["--write"]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(part())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
