"""Help pages: the options that people need first. `--help-all` shows every one.

A command that asks has about 45 options. Its `--help` shows the first of each group and three
examples, and says how many more there are.
"""

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from cyclopts.help import DefaultFormatter, HelpEntry, HelpPanel

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

ALL: Final = "--help-all"
SHOWS_ALL: ContextVar[bool] = ContextVar("shows_all", default=False)
"""True while the page that is printed shows everything."""
FEW: Final = 3
"""A group of so few options is shown whole."""
WHOLE: Final = ("Arguments", "Parameters", "The question")
"""Groups that are shown whole: what a command asks is its own."""
EXAMPLES: Final = 3
FIRST: Final = frozenset(
    (
        *("--label", "--positive", "--score", "--score-range", "--unit", "--rows-per-unit"),
        *("--row-key", "--groups", "--observed", "--predicted", "--bounds", "--values"),
        *("--time", "--event", "--ledger", "--budget", "--model", "--server", "--dataset"),
        *("--token-file", "--out", "--json", "--yes"),
    )
)
"""The options of rows, ledger, model, server and answer that a first hour needs."""


class ShortHelp(DefaultFormatter):
    """Prints the first options of each group, and how many more there are."""

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: HelpPanel) -> None:
        rest = len(panel.entries)
        is_long = rest > FEW and str(panel.title) not in WHOLE
        if not SHOWS_ALL.get() and panel.format == "parameter" and is_long:
            first = [entry for entry in panel.entries if FIRST.intersection(entry.names)]
            rest -= len(first)
            if first and rest:
                more = HelpEntry(positional_label="...", description=f"{rest} more: {ALL}.")
                panel = panel.copy(entries=[*first, more])
        super().__call__(console, options, panel)

    def render_description(
        self, console: "Console", options: "ConsoleOptions", description: Any
    ) -> None:
        """Print the description with its first examples."""
        from rich.markdown import Markdown

        text = getattr(description, "primary_renderable", None)
        if not SHOWS_ALL.get() and isinstance(text, Markdown):
            description.primary_renderable = Markdown(_shortened(text.markup))
        super().render_description(console, options, description)


def _shortened(text: str) -> str:
    """Keep three of the examples, which are the lines of a block of code that begin a command.

    >>> print(_shortened("It asks.\\n```\\nheldout a\\nheldout b\\nheldout c\\nheldout d\\n```"))
    It asks.
    ```
    heldout a
    heldout b
    heldout c
    ```
    1 more example: --help-all.
    """
    before, fence, block = text.partition("```\n")
    lines = block.splitlines()
    begins = [place for place, line in enumerate(lines) if line.startswith("heldout ")]
    rest = len(begins) - EXAMPLES
    if not fence or rest <= 0:
        return text
    end = lines.index("```") if "```" in lines else len(lines)
    more = f"{rest} more example{'s' * (rest > 1)}: {ALL}."
    return "\n".join([before + "```", *lines[: begins[EXAMPLES]], "```", more, *lines[end + 1 :]])
