"""The colours of every picture; house.css names what becomes of them in a dark room."""

from typing import Final

__all__ = ["FONT", "GRID", "HEAT", "INK", "MUTED", "PALETTE", "SHADE"]

INK: Final = "#22303c"
MUTED: Final = "#6b7785"
GRID: Final = "#e6eaee"
SHADE: Final = "#dfe4e8"
HEAT: Final = "#00659e"  # behind text, so it is the same in a dark room
PALETTE: Final = (
    "#0072b2",  # blue
    "#d55e00",  # vermilion
    "#009e73",  # green
    "#cc79a7",  # pink
    "#e69f00",  # orange
    "#56b4e9",  # sky
    "#7a5195",  # purple
    "#8c8c00",  # olive
)
"""Eight colours that most colour-blind readers can tell apart; use them in this order."""

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
