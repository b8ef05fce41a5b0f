"""Words of a message at each door: Python, the command line, the JSON of a server's requests.

Messages are written for Python and name an argument as `name=value` or `name=`. The other doors
rewrite these as their users write them, and nothing else. An argument within a call, such as
`Budget(epsilon=3)`, is Python at every door.
"""

import ast
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from shlex import quote
from typing import Any, Final

__all__ = ["as_json", "as_typed"]

_CALL: Final = re.compile(r"(?<![\w.])[\w.]+\((?:[^()]|\([^()]*\))*\)")
_NAMED: Final = re.compile(r"(?<![\w.\[{'\"/?&-])([a-z][a-z_]*)=(?!=)")
_PLAIN: Final = re.compile(r"-?\d[\d_.]*\d|-?\d|True|False|None")
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_SENTENCE: Final = re.compile(r"(?<=\.) ")
_END: Final = re.compile(r"[.,;:)]*(\s|$)")
_MORE: Final = re.compile(r",\s*\.\.\.(?=[)\]}])")
MOST: Final = 5000
"""Characters of a message; a longer one holds words of others and stays as it is."""
NOTHING: Final = object()
"""The value of an argument that a message merely names."""


def as_json(text: str) -> str:
    """Return a message with arguments as fields of JSON.

    >>> print(as_json("Register with people='ward' or new=True, or declare groups=."))
    Register with "people": "ward" or "new": true, or declare "groups".
    """

    def spelt(name: str, value: Any) -> str | None:
        if name == "renew_witness":
            return "heldout serve --accept-ledger"
        if value is NOTHING:
            return f'"{name}"'
        try:
            return f'"{name}": {json.dumps(value, default=lambda _: "...", allow_nan=False)}'
        except (TypeError, ValueError):  # somebody's own words, which are no JSON
            return None

    return _rewritten(text, spelt)


def as_typed(text: str, options: Collection[str], renamed: Mapping[str, str]) -> str:
    """Return a message with arguments as options of a command.

    What is wrong comes first; later sentences that need an option which the command does not have
    are left out.

    `renamed` has the options that are not called like their argument. One that ends with a blank
    takes no value; that of `name{}` takes the first of values by name; a whole command may stand
    there too.

    >>> text = "Declare score_map=(0, 1), values={'sex': {'F': 0}} or neighbours='label'."
    >>> print(as_typed(text, {"--score-map", "--values", "--neighbours"}, {}))
    Declare --score-map 0 1, --values sex=F:0 or --neighbours label.
    """

    def spelt(name: str, value: Any) -> str | None:
        option = renamed.get(name, "--" + name.replace("_", "-"))
        if isinstance(value, Mapping) and value and f"{name}{{}}" in renamed:
            option, value = renamed[f"{name}{{}}"], next(iter(value.values()))
        if option.startswith("heldout "):
            return option
        if option.strip() not in options:
            return None
        typed = "" if value is NOTHING or option.endswith(" ") else _typed(value)
        return f"{option.strip()} {typed}".strip()

    def is_useful(sentence: str) -> bool:
        written = (spelt(name, value) for name, value, _, _ in _arguments(sentence))
        return _is_open(sentence) or None not in written

    first, *advice = _SENTENCE.split(text)
    sentences = (first, *filter(is_useful, advice))
    return " ".join(_rewritten(sentence, spelt) for sentence in sentences)


def _is_open(sentence: str) -> bool:
    """Return whether a sentence is a part of a longer one, in parentheses."""
    return sentence.count("(") != sentence.count(")")


def _typed(value: Any) -> str:
    """Return a value as it is typed after its option; of True the option alone is enough."""
    if value is True:
        return ""
    if isinstance(value, Mapping):
        return " ".join(f"{quote(str(key))}={_within(item)}" for key, item in value.items())
    if isinstance(value, tuple):
        return " ".join(map(_within, value))
    return _within(value)


def _within(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(quote(f"{word}:{number}") for word, number in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(_within, value))
    if value is Ellipsis:
        return "..."
    return quote(str(value))


def _rewritten(text: str, spelt: Callable[[str, Any], str | None]) -> str:
    """Rewrite each argument; None leaves it as it is."""
    parts, done = [], 0
    for name, value, start, end in _arguments(text):
        words = spelt(name, value)
        if words is not None:
            parts += [text[done:start], words]
            done = end
    return "".join([*parts, text[done:]])


def _arguments(text: str) -> Iterator[tuple[str, Any, int, int]]:
    """Yield each argument that is named outside a call: its name and value, and where it stands."""
    if len(text) > MOST:
        return
    calls = [match.span() for match in _CALL.finditer(text)]
    done = 0
    for match in _NAMED.finditer(text):
        start, end = match.span()
        if start < done or any(first <= start < last for first, last in calls):
            continue
        value, done = _value(text, end)
        if _END.match(text, done):  # neither an expression nor age=0,120
            yield match[1], value, start, done


def _value(text: str, start: int) -> tuple[Any, int]:
    """Return the literal that begins there, if one does, and where it ends.

    Messages quote names that people choose, so nothing that stands there may fail.
    """
    first = text[start : start + 1]
    end = start
    if plain := _PLAIN.match(text, start):
        end = plain.end()
    elif first in ("'", '"') and first:
        end = text.find(first, start + 1) + 1
    elif first in _CLOSING:
        depth = 0
        for place in range(start, len(text)):
            depth += (text[place] in _CLOSING) - (text[place] in _CLOSING.values())
            if not depth:
                end = place + 1
                break
    try:
        return ast.literal_eval(_MORE.sub("", text[start:end])), end
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return NOTHING, start
