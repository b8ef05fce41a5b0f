"""The package's source, parsed once in a process: many tests walk it."""

import ast
from collections.abc import Callable, Sequence
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


def each_of(files: Sequence[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Make one test of a check of every file: as many tests would take longer than the checks."""

    def make(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            for file in files:
                try:
                    check(file)
                except AssertionError as error:
                    error.add_note(f"in {file}")
                    raise

        test.__name__ = check.__name__
        return test

    return make
