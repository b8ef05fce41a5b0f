"""The page of a signed answer: one file with its numbers, and the statement they come from."""

import json
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any, Final

from heldout.drawing.page import rendered
from heldout.errors import ArgumentError
from heldout.questions.answers import Answered
from heldout.questions.report import Report
from heldout.questions.report.page import answers_page

__all__ = ["answer_page", "statement_of"]

MARK: Final = "heldout-statement"
LEVEL: Final = 0.95


def answer_page(signed: Mapping[str, Any]) -> str:
    """The page of a signed statement, which decides every byte of it.

    One report is its own page; other questions have a section each.
    """
    answered = Answered.from_dict(signed["statement"]["answer"])
    only = answered.releases[0] if len(answered.releases) == 1 else None
    page = only.html(LEVEL) if isinstance(only, Report) else answers_page(answered)
    words = rendered("signed.html", receipt=answered.receipt, key=signed["key"])
    before, end, after = page.rpartition("</main>")
    page = f"{before}{words}{end}{after}"
    before, end, after = page.rpartition("</body>")
    return (
        f'{before}<script type="application/json" id="{MARK}">{_held(signed)}</script>{end}{after}'
    )


def _held(content: Any) -> str:
    """JSON that no page can be left from: without angle brackets and ampersands.

    >>> print(_held("</script>"))
    "\\u003c/script\\u003e"
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    for each in "<>&":
        text = text.replace(each, f"\\u{ord(each):04x}")
    return text


def statement_of(page: str) -> Any:
    """The signed statement that a page holds, not yet verified; refuses a page without one."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    if len(reader.found) != 1:
        raise ArgumentError(
            "This page holds no signed statement. Pages of `heldout evaluate` on one's own rows "
            "have none; a server's have one."
            if not reader.found
            else "This page holds more than one signed statement: it was changed."
        )
    try:
        return json.loads(reader.found[0])
    except (ValueError, RecursionError):
        raise ArgumentError("The signed statement in this page cannot be read.") from None


class _Reader(HTMLParser):
    """Collects what stands in the marked places of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script" and dict(attrs).get("id") == MARK
        if self._inside:
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found[-1] += data
