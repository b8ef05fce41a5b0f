"""The envelope for an un-noised statistic: everything that would show its content refuses."""

from typing import Any, Generic, NoReturn, TypeVar

from heldout.errors import SealedError

Content = TypeVar("Content")


class Sealed(Generic[Content]):
    """Holds an exact statistic between the rows and the noise.

    Python cannot hide a value from code that runs in the same process; this keeps it out of
    prints, logs, tracebacks, JSON, pickles and comparisons, where values escape by accident. Only
    `heldout.kernel.noise` has the key, `unseal`; a test reads the source to be sure.

    >>> secret = Sealed(42)
    >>> secret
    <Sealed statistic>
    >>> float(secret)
    Traceback (most recent call last):
    heldout.errors.SealedError: an un-noised statistic must not be shown. Release it through ...
    """

    __slots__ = ("_content",)

    def __init__(self, content: Content) -> None:
        self._content = content

    def __repr__(self) -> str:
        return "<Sealed statistic>"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise SealedError(
            "an un-noised statistic must not be shown. Release it through a Session."
        ) from None

    __str__ = __format__ = __float__ = __int__ = __index__ = __complex__ = __bool__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _refuse
    __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse
    __array__ = __copy__ = __deepcopy__ = _refuse
    __reduce__ = __reduce_ex__ = __getstate__ = _refuse
