"""Work on all cores, or in this process."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Progress", "mapper"]

Progress = Callable[[str, int, int], None]
"""progress(label, done, total)."""


@contextmanager
def mapper(workers: int | None, jobs: int) -> Iterator[Callable[..., Any]]:
    """`map` over functions of a module and jobs that pickle, in any order."""
    count = min(jobs, os.cpu_count() or 1) if workers is None else workers
    if count <= 1:
        yield map
        return
    import multiprocessing

    # A fresh interpreter a worker: forking a process that has threads may hang.
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        yield pool.imap_unordered
