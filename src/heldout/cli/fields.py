"""Options of a command from the fields of a form: of a question, or of rows that it is asked of."""

from collections.abc import Sequence
from dataclasses import Field, field, make_dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from heldout.arguments import Flag, FormField


def option_of(form_field: FormField) -> tuple[str, Any, Field[Any]]:
    """Return the option of one field, as a field of a dataclass."""
    flag = isinstance(form_field.rule, Flag)
    several = form_field.rule.takes_several
    words: dict[str, Any] = {"name": form_field.option, "help": _hint(form_field)}
    if several:
        words |= {"consume_multiple": True, "negative": ""}
    if flag and form_field.default:
        words |= {"negative": "--no-" + form_field.option.removeprefix("--")}
    kind: Any = bool if flag else tuple[str, ...] if several else str
    if form_field.required:
        return form_field.name, Annotated[kind, Parameter(**words)], field()
    words["show_default"] = False
    optional: Any = field(default=None)
    return form_field.name, Annotated[kind | None, Parameter(**words)], optional


def _hint(form_field: FormField) -> str:
    """Return the help of a field, with its choices and its default."""
    schema = form_field.rule.schema()
    choices = schema.get("enum") or schema.get("items", {}).get("enum")
    hint = form_field.help
    if choices and not all(choice in hint for choice in choices):
        hint += f" One of: {', '.join(choices)}."
    if form_field.default not in (None, False, {}, ()):
        default = "yes" if form_field.default is True else form_field.default
        hint += f" [default: {default}]"
    return hint


def read_option(form_field: FormField, value: str | bool | Sequence[str] | None) -> object:
    """Read what was typed by the rule of its field."""
    if value is None or isinstance(value, bool):
        return value
    words = [value] if isinstance(value, str) else list(value)
    return form_field.rule.from_command(words, form_field.option)


def make_options(name: str, content: Sequence[Any], *bases: type) -> type[Any]:
    """Return the options as a dataclass, which a command takes."""
    words = [
        (called, kind, field(default=old.default, kw_only=True)) for called, kind, old in content
    ]
    made = make_dataclass(name, words, bases=bases, frozen=True, kw_only=True)
    made.__module__ = __name__  # the parser looks into classes of packages only
    if bases:
        made.__doc__ = bases[0].__doc__
    return made
