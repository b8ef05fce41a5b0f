"""Where a page is written."""

import os
from collections.abc import Callable
from pathlib import Path

from heldout.arguments import shown
from heldout.errors import ArgumentError


def write_page(path: str | os.PathLike[str], make: Callable[[], str]) -> Path:
    """Make a page and write it, if there is a place for it."""
    place = checked_place(path)
    write_file(place, make())
    return place


def write_file(place: Path, content: str) -> None:
    """Write a page or a picture; a failure, such as a full disk, raises a HeldoutError."""
    try:
        place.write_text(content, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(
            f"path must be a file that can be written, got {shown(place.name)} ({error.strerror})."
        ) from None


def checked_place(path: str | os.PathLike[str]) -> Path:
    """A place for a page, looked at before anything is paid for what will be in it."""
    place = Path(path)
    if place.suffix.lower() not in (".html", ".htm"):
        raise ArgumentError(f"path must end in .html, got {shown(place.name)}.")
    if not _is_writable(place):
        raise ArgumentError(
            f"path must be a file that can be written, got {shown(place.name)}. Check its "
            "directory."
        )
    return place


def _is_writable(place: Path) -> bool:
    try:
        if b"\0" in os.fsencode(place):
            return False
        there = place if place.exists() else place.parent
        return not place.is_dir() and there.exists() and os.access(there, os.W_OK)
    except (OSError, ValueError):  # a name that the system cannot spell, or too long a one
        return False
