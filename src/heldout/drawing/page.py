"""Pages and notebook cards from templates in which every text is escaped.

A page is one file: no script, and no font, style or picture from another place. Jinja2 is
imported when the first page is made.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heldout.arguments import shown, visible
from heldout.drawing import words
from heldout.drawing.chart import Figure, captions
from heldout.drawing.pictures import interval_plot
from heldout.errors import ArgumentError

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

    from heldout.intervals.measure import Measure


def rendered(template: str, **content: Any) -> str:
    """Return the text of a template; `content` is what it shows."""
    return _templates().get_template(template).render(content)


def checked_labels(names: Sequence[str | None], labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return what the page is to call the data and its columns; refuse names that they lack."""
    unknown = [label for label in labels if label not in names]
    if unknown:
        known = ", ".join(shown(name) for name in names if name)
        raise ArgumentError(f"labels must name some of {known}, got {shown(unknown[0])}.")
    return labels


def card(
    says: str,
    *,
    drawn: Sequence[Figure] = (),
    head: Sequence[str] = (),
    rows: Iterable[Sequence[object]] = (),
    note: str = "",
) -> str:
    """Return what a notebook shows: a sentence, pictures, a table (none without a head), a note."""
    return rendered("card.html", says=says, drawn=drawn, head=head, rows=list(rows), note=note)


def measures_card(
    says: str, measures: Mapping[str, "Measure"], *, drawn: Sequence[Figure] = (), note: str = ""
) -> str:
    """Return a card with a table of measures; without pictures it shows their intervals."""
    if not drawn and all(
        0 <= end <= 1 for measure in measures.values() for end in measure.interval()
    ):
        drawn = [interval_plot(measures, level=0.95)]
    rows = [
        (_sentence(words.tested(name, measure)), *words.spread(measure, 0.95))
        for name, measure in measures.items()
    ]
    head = ("Measure", "Value", "95% interval", "Noise alone")
    return card(says, drawn=drawn, head=head, rows=rows, note=note)


@cache
def _templates() -> "Environment":
    from jinja2 import PackageLoader

    return environment(PackageLoader("heldout.drawing"))


def environment(loader: "BaseLoader") -> "Environment":
    """Return templates in which every text is escaped and no name may be missing."""
    import platform
    from importlib.metadata import version

    from jinja2 import Environment, StrictUndefined

    templates = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_seen,
    )
    templates.globals |= {name: getattr(words, name) for name in words.__all__}
    templates.globals["captions"] = captions
    templates.globals |= {"python": platform.python_version(), "version": version("heldout")}
    templates.filters |= {"percent": _percent, "sentence": _sentence, "whole": "{:,.0f}".format}
    return templates


def _seen(value: object) -> object:
    """Return a text as people can see it; markup of ours, such as a picture, stays as it is."""
    return visible(value, allowed="\n\t") if type(value) is str else value


def _percent(share: float) -> str:
    """
    >>> _percent(0.95), _percent(0.123), _percent(0.00123)
    ('95%', '12.3%', '0.12%')
    """
    return f"{share * 100:.{3 if share >= 0.1 else 2}g}%"


def _sentence(text: str) -> str:
    """Return it with a capital at its beginning; the rest stays as it is."""
    return text[:1].upper() + text[1:]


# --- where a page is written ---


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


def checked_place(path: str | os.PathLike[str], *pictures: str) -> Path:
    """Return a place for a page, looked at before anything is paid for what will be in it.

    `pictures` are the endings that it may have beside .html.
    """
    place = Path(path)
    if place.suffix.lower() not in (".html", ".htm", *pictures):
        endings = " or ".join((".html", *pictures))
        raise ArgumentError(f"A page must be saved as {endings}, got {shown(place.name)}.")
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
