"""The package's source, parsed once in a process: many tests walk it."""

import ast
from functools import cache
from pathlib import Path

import heldout

PACKAGE = Path(heldout.__file__).parent


@cache
def trees() -> dict[str, ast.Module]:
    """Return each file's tree, by its path in the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {
        file.relative_to(PACKAGE).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
        for file in files
    }


def module_of(path: str) -> str:
    """Return the dotted name of a file.

    >>> module_of("kernel/__init__.py"), module_of("errors.py")
    ('heldout.kernel', 'heldout.errors')
    """
    return ".".join(("heldout", *Path(path).with_suffix("").parts)).removesuffix(".__init__")
