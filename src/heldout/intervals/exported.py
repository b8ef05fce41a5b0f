"""Answers as other tools take them: plain JSON, and a frame."""

import json
from typing import Any

from heldout.errors import MissingDependency

__all__ = ["Exported", "framed", "schema"]


class Exported:
    """What has `as_dict` and `measures` as JSON text and as a pandas frame."""

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Stable JSON; `Release.schema()` is its JSON schema."""
        found: dict[str, Any] = self.as_dict(level)  # type: ignore[attr-defined]
        return found

    def to_json(self, level: float = 0.95, *, indent: int | None = None) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(level), allow_nan=False, indent=indent)

    def to_frame(self, level: float = 0.95) -> Any:
        """The measures as a pandas frame: value, both intervals, and whether there is a value."""
        found: Any = self.measures  # type: ignore[attr-defined]
        measures = found() if callable(found) else found
        return framed(
            measure=list(measures),
            value=[each.value for each in measures.values()],
            low=[each.interval(level)[0] for each in measures.values()],
            high=[each.interval(level)[1] for each in measures.values()],
            noise_low=[each.noise_interval(level)[0] for each in measures.values()],
            noise_high=[each.noise_interval(level)[1] for each in measures.values()],
            informative=[each.informative for each in measures.values()],
        ).set_index("measure")

    @staticmethod
    def schema() -> dict[str, Any]:
        """The JSON schema (draft 2020-12) of what `to_json` and the command line's --json give."""
        return schema()


def framed(**columns: Any) -> Any:
    """Columns as a pandas frame."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise MissingDependency("A frame requires pandas: pip install pandas.") from None
    return DataFrame(columns)


def schema() -> dict[str, Any]:
    from importlib.resources import files

    text = files("heldout.intervals").joinpath("release.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
