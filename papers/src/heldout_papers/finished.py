"""What is left of an interrupted figure: the results of the jobs that it had finished.

A folder holds one file a job, named by the job itself. It is the command's own scratch folder,
removed when the figure is made; results are pickled, so open no such folder of a stranger.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Finished", "keeping"]


class Finished(NamedTuple):
    """The folder, or None to keep nothing."""

    folder: Path | None

    def look_for(
        self, work: Callable[[Any], Any], jobs: Sequence[Any]
    ) -> tuple[list[tuple[Any, Path | None]], list[Any]]:
        """The jobs that are left, each with the place of its result, and the results found."""
        if self.folder is None:
            return [(job, None) for job in jobs], []
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        left: list[tuple[Any, Path | None]] = []
        found = []
        for job in jobs:
            place = self.folder / f"{_name(work, job)}.pickle"
            try:
                found.append(pickle.loads(place.read_bytes()))
            except (OSError, EOFError, pickle.UnpicklingError):
                left.append((job, place))
        return left, found


def keeping(each: tuple[Callable[[Any], Any], Any, Path | None]) -> Any:
    """Do one job and write its result down, whole or not at all."""
    work, job, place = each
    result = work(job)
    if place is not None:
        half = place.with_suffix(".half")
        half.write_bytes(pickle.dumps(result))
        half.replace(place)
    return result


def _name(work: Callable[[Any], Any], job: Any) -> str:
    said = f"{work.__module__}.{work.__qualname__} {version('heldout-papers')} "
    return sha256(said.encode() + pickle.dumps(job)).hexdigest()[:32]
