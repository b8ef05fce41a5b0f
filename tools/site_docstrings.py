"""How the reference reads docstrings: doctests are examples, a claim keeps its block."""

import re
from typing import Any

from griffe import Extension

CLAIM = re.compile(r"^(Claim: .*?)(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^>>> ", re.MULTILINE)


class Docstrings(Extension):
    def on_instance(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None and not obj.is_alias:
            obj.docstring.value = readable(obj.docstring.value)


def readable(text: str) -> str:
    """The same for a parser that expects headings."""
    text = CLAIM.sub(r"```text\n\1\n```", text, count=1)
    found = EXAMPLE.search(text)
    if found is None or "Examples\n----" in text:
        return text
    return f"{text[: found.start()]}Examples\n--------\n{text[found.start() :]}"
