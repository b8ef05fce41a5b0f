"""Pieces of a page that needs nothing from anywhere else: document, section, table, figures.

Cells and bodies are HTML already; whoever puts text into them escapes it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.resources import files

import heldout
from heldout.report.sections import Figure

__all__ = ["cards", "document", "facts", "figures", "numbers", "section", "table"]


def document(title: str, body: str, *, style: str = "") -> str:
    """The whole page; no script, and nothing from another place. `style` is added to ours."""
    style = files("heldout.report").joinpath("page.css").read_text(encoding="utf-8") + style
    return (
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta name="generator" content="heldout {escape(heldout.__version__)}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def section(title: str, body: str) -> str:
    name = title.lower().replace(" ", "-")
    return (
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(title)}</h2>\n'
        f"{body}\n</section>"
    )


def facts(listed: Iterable[tuple[str, str]]) -> str:
    items = "".join(f"<dt>{escape(name)}</dt><dd>{text}</dd>" for name, text in listed)
    return f'<dl class="facts">{items}</dl>'


def cards(listed: Iterable[tuple[str, str, str, str]]) -> str:
    """Name, value, what stands under it, and a note, all of them text."""
    items = "".join(
        f'<li><span class="name">{escape(name)}</span><span class="value">{escape(value)}</span>'
        f'<span class="range">{escape(under)}</span><span class="note">{escape(note)}</span></li>'
        for name, value, under, note in listed
    )
    return f'<ul class="cards">{items}</ul>'


def figures(drawn: Iterable[Figure]) -> str:
    items = "".join(
        f"<figure>{each.svg}<figcaption>{escape(each.caption)}</figcaption></figure>"
        for each in drawn
    )
    return f'<div class="figures">{items}</div>'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first cell of a row is its header."""
    said = escape(caption)
    top = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{said}"><table>'
        f"<caption>{said}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def numbers(values: Sequence[float]) -> Callable[[float], str]:
    """Numbers as a person writes them: as many decimals as the width of the values asks for.

    >>> numbers([0, 52000])(1234.5), numbers([0, 52])(1.2345), numbers([8, 8.4])(8.12345)
    ('1,234', '1.2', '8.123')
    """
    width = float(max(values)) - float(min(values))
    if not 1e-6 < width < 1e12:
        return lambda value: f"{value:.4g}"
    places = max(0, 2 - math.floor(math.log10(width)))
    return lambda value: f"{value:,.{places}f}"
