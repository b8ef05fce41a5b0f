"""What is held of private rows in this process: whoever prints what is around it sees nothing."""

from typing import Any, ClassVar, Generic, TypeVar

__all__ = ["Unshown"]

T = TypeVar("T")


class Unshown(Generic[T]):
    """Rows or counts that statements read: everything that would show them refuses.

    >>> {"kept": Unshown([("Ada", 1)])}
    {'kept': <private rows>}
    """

    __slots__ = ("_held",)
    what: ClassVar[str] = "private rows"

    def __init__(self, held: T) -> None:
        self._held = held

    def open(self) -> T:
        """For whoever reads the rows alone."""
        return self._held

    def __repr__(self) -> str:
        return f"<{self.what}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{self.what} must not be pickled or copied.")

    def __getstate__(self) -> Any:
        raise TypeError(f"{self.what} must not be pickled or copied.")
