"""Constants that a model computes from constants, worked out before it runs."""

from collections.abc import Callable
from typing import Any

from heldout.models.calls import Call
from heldout.models.values import TYPES, NotRowWise, kind_of

__all__ = ["folded"]

MOST_FOLDED = 2**22


def folded(call: Call) -> Any:
    """The value of a node that depends on no row; few operators, since exporters fold the rest."""
    import numpy as np

    if call.operator not in _FOLDS:
        raise NotRowWise("it computes with constants alone", "Export with constants folded.")
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(_FOLDS[call.operator](call))
    except (ValueError, IndexError, TypeError, OverflowError):
        raise NotRowWise("its shapes do not fit") from None
    call.finish()
    return np.ascontiguousarray(found).reshape(found.shape)


def _written(call: Call) -> Any:
    import numpy as np

    call.only(0)
    if len(call.attributes) != 1:
        raise NotRowWise("it must have one value")
    (name,) = call.attributes
    if name in ("value", "value_ints"):
        return call.array(name)
    if name == "value_floats":
        return call.numbers(name).astype(np.float32)
    if name == "value_float":
        return np.asarray(call.number(name, 0.0), np.float32)
    if name == "value_int":
        return np.asarray(call.integer(name, 0), np.int64)
    raise NotRowWise("its value must be numbers or a tensor")


def _cast(call: Call) -> Any:
    kind = TYPES.get(call.integer("to", 0), "string")
    if "string" in (kind, kind_of(call.constant(0))):
        raise NotRowWise("it casts texts")
    return call.constant(0).astype(kind)


def _transposed(call: Call) -> Any:
    order = [int(each) for each in call.integers("perm")]
    return call.constant(0).transpose(order or None)


def _unsqueezed(call: Call) -> Any:
    import numpy as np

    return np.expand_dims(call.constant(0), tuple(call.axes(1) or ()))


def _squeezed(call: Call) -> Any:
    axes = call.axes(1)
    return call.constant(0).squeeze(None if axes is None else tuple(axes))


def _reshaped(call: Call) -> Any:
    shape = call.whole_numbers(1)
    if 0 in shape or call.integer("allowzero", 0) != 0:
        raise NotRowWise("it reshapes a constant to a shape with 0")
    return call.constant(0).reshape(shape)


def _joined(call: Call) -> Any:
    import numpy as np

    parts = [call.constant(place) for place in range(len(call.given))]
    if sum(part.size for part in parts) > MOST_FOLDED:
        raise NotRowWise("it makes a constant that is too large")
    if len({kind_of(part) for part in parts}) > 1:
        raise NotRowWise("its inputs differ in type")
    return np.concatenate(parts, call.integer("axis", 0))


_FOLDS: dict[str, Callable[[Call], Any]] = {
    "Constant": _written,
    "Identity": lambda call: call.constant(0),
    "Cast": _cast,
    "Transpose": _transposed,
    "Unsqueeze": _unsqueezed,
    "Squeeze": _squeezed,
    "Reshape": _reshaped,
    "Concat": _joined,
}
