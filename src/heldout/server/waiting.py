"""Waiting for something to happen, without a thread that waits."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

__all__ = ["until"]

T = TypeVar("T")
SHORTEST, LONGEST = 0.01, 0.25


async def until(look: Callable[[], T | None], seconds: float) -> T | None:
    """What `look` finds, if it finds something in time."""
    end, pause = time.monotonic() + seconds, SHORTEST
    while True:
        found = await run_in_threadpool(look)
        if found is not None or time.monotonic() >= end:
            return found
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST)
