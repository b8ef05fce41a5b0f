"""Results on disk, so that an audit of an hour can be broken off and go on where it was."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import heldout
from heldout.audit.auditor import audit
from heldout.audit.result import AuditResult
from heldout.audit.samplers import Check
from heldout.audit.subjects import find
from heldout.errors import ArgumentError

__all__ = ["Kept"]


class Kept:
    """Looks a result up by all that it depends on, and makes and keeps it if it is not there."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        self.seconds = 0.0
        if path is None or not path.exists():
            return
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            self._known = {each["key"]: each for each in map(json.loads, lines)}
        except (OSError, ValueError, KeyError, TypeError):
            raise ArgumentError(
                f"resume must name a file that an audit wrote, got {path.name}. Name another one."
            ) from None

    def audit(self, name: str, **words: Any) -> AuditResult:
        """As `audit`, which see."""
        subject = find(name)
        given = ("samples", "confidence", "door")
        fixed: dict[str, Any] = {key: words[key] for key in given if key in words}
        fixed |= {"epsilon": subject.epsilon, "slowness": subject.slowness}

        def make() -> dict[str, Any]:
            return audit(name, **words).as_dict()

        return AuditResult.from_dict(self._look([name, fixed], make))

    def checks(self, name: str, make: Callable[[], Sequence[Check]]) -> list[Check]:
        """Checks of samplers that belong together."""

        def plain() -> list[dict[str, Any]]:
            return [each.as_dict() for each in make()]

        return [Check(**each) for each in self._look([name], plain)]

    def _look(self, parts: list[Any], make: Callable[[], Any]) -> Any:
        key = json.dumps([heldout.__version__, *parts])
        if key not in self._known:
            begun = time.perf_counter()
            line = {"key": key, "found": make(), "seconds": round(time.perf_counter() - begun, 1)}
            self._known[key] = line
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
        self.seconds += self._known[key]["seconds"]
        return self._known[key]["found"]
