"""Fields of a form: a name, a rule and a help text, from which shells build what people fill in."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from heldout.arguments.rules import Rule


@dataclass(frozen=True)
class FormField:
    """A field of a question or of a declaration, as a form, a command or a schema needs it."""

    name: str
    rule: Rule
    help: str
    default: Any
    required: bool

    @property
    def option(self) -> str:
        """Return its spelling on the command line."""
        return self.rule.option or "--" + self.name.replace("_", "-")

    @property
    def in_sight(self) -> bool:
        """Return whether a form shows it at once: it must be given, or its default is a number.

        What else may be chosen is folded away.
        """
        return self.required or type(self.default) in (int, float)

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema, with its help and its default."""
        content = self.rule.schema() | {"description": self.help}
        if self.default is None and not self.required:
            inner = {name: content.pop(name) for name in list(content) if name != "description"}
            return {"anyOf": [inner, {"type": "null"}], **content}
        return content if self.required else content | {"default": plain_json(self.default)}


def plain_json(value: Any) -> object:
    """Return a value as JSON has it: exact numbers as texts, tuples as lists."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain_json(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain_json(item) for item in value]
    return value
