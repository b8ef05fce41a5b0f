"""The types of arrays, so that signatures say what they take; and how many threads use them."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread for many small products: the threads of one product wait for one another.

    >>> with one_thread():
    ...     np.ones((2, 2)) @ np.ones(2)
    array([2., 2.])
    """
    with _pools().limit(limits=1):
        yield


@cache
def _pools() -> Any:
    """Return the libraries that use threads: NumPy's, looked up once in the maps of the process."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()
