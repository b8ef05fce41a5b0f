"""Writes the table of settings into docs/server.md, between its two marks.

python tools/settings_table.py
"""

from pathlib import Path

from heldout.server.settings import table

PAGE = Path(__file__).parents[1] / "docs" / "server.md"
BEGIN, END = "<!-- settings: made by tools/settings_table.py -->\n", "<!-- end of settings -->"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + BEGIN + table() + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
