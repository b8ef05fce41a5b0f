"""The answer as one page that needs nothing from anywhere else, with the signed statement in it."""

import json
from collections.abc import Mapping
from typing import Any

from heldout.questions.answered import Answered
from heldout.report.report import Report

__all__ = ["answer_page"]


def answer_page(signed: Mapping[str, Any]) -> str:
    """The page of a signed statement; the same statement gives the same page."""
    answered = Answered.from_dict(signed["statement"]["answer"])
    [first, *more] = answered.releases
    if isinstance(first, Report) and not more:
        page = first.html()
    else:
        cards = "".join(each._repr_html_() for each in answered.releases)
        page = f"<!DOCTYPE html><html lang='en-GB'><body>{cards}</body></html>"
    text = json.dumps(signed, sort_keys=True).replace("<", "\\u003c")
    block = f'<script type="application/json" id="heldout-statement">{text}</script>'
    return page.replace("</body>", f"{block}\n</body>")
