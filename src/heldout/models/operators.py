"""Rules for operators that look at one number of each input at a time, and for reductions."""

import math
from typing import Any

from heldout.models.calls import (
    FLOATS,
    MIXES,
    NUMBERS,
    TYPES,
    Call,
    Dims,
    NotRowWise,
    RowWise,
    Value,
    kind_of,
    rule,
)

_NEWER = "Export it for operator set 13 or later."
_SMOOTH = (
    *("Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Erf", "Softplus", "Softsign", "Reciprocal"),
    *("HardSwish", "Mish", "Atan"),
)
_BENT = ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu", "Selu", "HardSigmoid", "Swish")
FURTHEST = {"float32": 2.0**13, "float64": 2.0**26}
"""Angles beyond these count as these: bringing them into the circle takes up to 8 times as long."""


@rule("Floor", "Ceil", "Round", inputs=1)
@rule(*_SMOOTH, uneven=1, inputs=1)
def smooth(call: Call) -> list[Value]:
    return [call.rows(kinds=FLOATS)]


@rule("Sin", "Cos", uneven=2, inputs=1)
def angle(call: Call) -> list[Value]:
    if call.opset < 8:
        raise NotRowWise("it is older than the operators that bound its angle", _NEWER)
    return [call.rows(kinds=FLOATS)]


@rule(*_BENT, uneven=1, inputs=1)
def bent(call: Call) -> list[Value]:
    for name in ("alpha", "beta", "gamma"):
        call.number(name, 0.0)
    return [call.rows(kinds=FLOATS)]


@rule("Gelu", uneven=1, inputs=1)
def gelu(call: Call) -> list[Value]:
    call.word("approximate", ("none", "tanh"), "none")
    return [call.rows(kinds=FLOATS)]


@rule("Abs", "Neg", "Sign", "Relu", inputs=1)
def signed(call: Call) -> list[Value]:
    return [call.rows(kinds=NUMBERS)]


@rule("Identity", inputs=1)
def identity(call: Call) -> list[Value]:
    return [call.rows()]


@rule("Not", inputs=1)
def negation(call: Call) -> list[Value]:
    return [call.rows(kinds=("bool",))]


@rule("IsNaN", "IsInf", inputs=1)
def odd_numbers(call: Call) -> list[Value]:
    call.integer("detect_negative", 1)
    call.integer("detect_positive", 1)
    return [RowWise("bool", call.rows(kinds=FLOATS).shape)]


@rule("Cast", inputs=1)
def cast(call: Call) -> list[Value]:
    call.integer("saturate", 1)
    kind, value = TYPES.get(call.integer("to", 0)), call.rows()
    if kind is None:
        raise NotRowWise("it casts to a type that the verifier does not know")
    if (kind == "string") != (value.kind == "string"):
        raise NotRowWise(
            "it casts between texts and numbers",
            "Encode categories by OneHotEncoder or LabelEncoder.",
        )
    return [RowWise(kind, value.shape)]


@rule("Dropout")
def dropout(call: Call) -> list[Value]:
    if call.has(2) and bool(call.constant(2).any()):
        raise NotRowWise("it is in training mode, and random", "Export in evaluation mode.")
    call.optional(1)
    call.number("ratio", 0.5)
    call.integer("seed", 0)
    return [call.rows(kinds=FLOATS)]


@rule("Add", "Sub", "Mul", "Min", "Max")
def arithmetic(call: Call) -> list[Value]:
    return [RowWise(call.same_kind(NUMBERS), call.broadcast())]


@rule("Sum", "Mean")
@rule("PRelu", uneven=5)
def sums(call: Call) -> list[Value]:
    shape = call.broadcast()
    if call.operator == "PRelu" and shape != call.rows(0).shape:
        raise NotRowWise("its slope is wider than its input")
    return [RowWise(call.same_kind(FLOATS), shape)]


@rule("Div", inputs=2)
def division(call: Call) -> list[Value]:
    kind = call.same_kind(NUMBERS)
    if kind not in FLOATS:
        divisor = call.constant(1)
        if bool(((divisor == 0) | (divisor == -1)).any()):
            raise NotRowWise(
                "it divides integers by 0 or -1, which fails on some rows", "Divide floats."
            )
    return [RowWise(kind, call.broadcast())]


@rule("Pow", uneven=12, inputs=2)
def power(call: Call) -> list[Value]:
    exponent = call.at(1)
    if isinstance(exponent, RowWise) and exponent.kind not in FLOATS:
        raise NotRowWise("it raises to a power that is an integer computed from the rows")
    if not isinstance(exponent, RowWise) and kind_of(call.constant(1)) not in NUMBERS:
        raise NotRowWise("its power must be a number")
    return [RowWise(call.same_kind(FLOATS, [0]), call.broadcast())]


@rule("Clip", inputs=3)
def clip(call: Call) -> list[Value]:
    for place in (1, 2):
        bound = call.optional(place)
        if bound is not None and bound.size != 1:
            raise NotRowWise("its bounds must be single numbers")
    call.number("min", 0.0)
    call.number("max", 0.0)
    value = call.rows(kinds=NUMBERS)
    call.same_kind(NUMBERS, [place for place in range(len(call.given)) if call.has(place)])
    return [value]


@rule("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", inputs=2)
def comparison(call: Call) -> list[Value]:
    call.same_kind((*NUMBERS, "bool"))
    return [RowWise("bool", call.broadcast())]


@rule("And", "Or", "Xor", inputs=2)
def logic(call: Call) -> list[Value]:
    return [RowWise(call.same_kind(("bool",)), call.broadcast())]


@rule("Where", inputs=3)
def where(call: Call) -> list[Value]:
    call.same_kind(("bool",), [0])
    return [RowWise(call.same_kind((*NUMBERS, "bool"), [1, 2]), call.broadcast())]


# --- along the features --------------------------------------------------------------------------

_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "SumSquare")


@rule("ReduceLogSumExp", uneven=24, inputs=2)
@rule(*(f"Reduce{name}" for name in _REDUCTIONS), inputs=2)
def reduction(call: Call) -> list[Value]:
    value = call.rows(kinds=NUMBERS)
    call.integer("noop_with_empty_axes", 0)
    axes = call.inner_axes(call.axes(1), value.rank)
    return [_reduced(value, axes, keep=call.integer("keepdims", 1) != 0)]


@rule("ArgMax", "ArgMin", inputs=1)
def best(call: Call) -> list[Value]:
    value = call.rows(kinds=NUMBERS)
    call.integer("select_last_index", 0)
    axis = call.inner(call.integer("axis", 0), value.rank)
    reduced = _reduced(value, [axis], keep=call.integer("keepdims", 1) != 0)
    return [RowWise("int64", reduced.shape)]


def _reduced(value: RowWise, axes: list[int], *, keep: bool) -> RowWise:
    shape = [1 if i in axes else extent for i, extent in enumerate(value.shape)]
    if not keep:
        shape = [extent for i, extent in enumerate(value.shape) if i not in axes]
    return RowWise(value.kind, tuple(shape))


@rule("Softmax", "LogSoftmax", "Hardmax", uneven=2, inputs=1)
def softmax(call: Call) -> list[Value]:
    # Before opset 13 it works along this axis and all later ones; so the same condition will do.
    value = call.rows(kinds=FLOATS)
    call.inner(call.integer("axis", -1 if call.opset >= 13 else 1), value.rank)
    return [value]


@rule("LpNormalization", inputs=1)
def lp_normalization(call: Call) -> list[Value]:
    value = call.rows(kinds=FLOATS)
    call.inner(call.integer("axis", -1), value.rank)
    if call.integer("p", 2) not in (1, 2):
        raise NotRowWise("its p must be 1 or 2")
    return [value]


@rule("LayerNormalization", "RMSNormalization", inputs=3)
def layer_normalization(call: Call) -> list[Value]:
    value = call.rows(kinds=FLOATS)
    first = call.inner(call.integer("axis", -1), value.rank)
    call.number("epsilon", 1e-5)
    call.integer("stash_type", 1)
    for place in (1, 2):
        weights = call.optional(place) if place == 2 else call.constant(place)
        if weights is None:
            continue
        if kind_of(weights) != value.kind or weights.shape != value.shape[first:]:
            raise NotRowWise("its scale and bias must be as wide as what it normalises")
    return [value]


@rule("BatchNormalization", inputs=5)
def batch_normalization(call: Call) -> list[Value]:
    value = call.rows(kinds=FLOATS)
    call.number("epsilon", 1e-5)
    call.number("momentum", 0.9)
    if call.integer("training_mode", 0) != 0 or call.outputs > 1 or call.opset < 9:
        raise NotRowWise(
            "it is in training mode: it normalises by the mean of the batch",
            "Export in evaluation mode (model.eval()).",
        )
    if value.rank < 2:
        raise NotRowWise("its input needs at least 2 axes")
    for place in range(1, 5):
        if call.constant(place).shape != value.shape[:1]:
            raise NotRowWise("its scale, bias, mean and variance must have one number per channel")
    call.same_kind(FLOATS)
    return [value]


@rule("CumSum", inputs=2)
def running_sum(call: Call) -> list[Value]:
    value = call.rows(kinds=NUMBERS)
    axes = call.whole_numbers(1)
    call.integer("exclusive", 0)
    call.integer("reverse", 0)
    call.inner_axes(axes if len(axes) == 1 else None, value.rank)
    return [value]


@rule("TopK", uneven=40, inputs=2)
def largest(call: Call) -> list[Value]:
    value = call.rows(kinds=NUMBERS)
    axis = call.inner(call.integer("axis", -1), value.rank)
    call.integer("largest", 1)
    call.integer("sorted", 1)
    count = call.whole_numbers(1)
    if len(count) != 1 or not 1 <= count[0] <= value.shape[axis]:
        raise NotRowWise("its k must be a constant from 1 to the width of its axis")
    shape = (*value.shape[:axis], count[0], *value.shape[axis + 1 :])
    return [RowWise(value.kind, shape), RowWise("int64", shape)]


# Rules for operators that move numbers within a row, and for products with weights.
_END = 2**31 - 1  # what exporters write for "to the end"


@rule("Shape", inputs=1)
def shape_of(call: Call) -> list[Value]:
    extents = (None, *call.rows().shape)
    start, end = call.integer("start", 0), call.integer("end", len(extents))
    return [Dims(extents[start:end])]


@rule("ConstantOfShape", inputs=1)
def filled(call: Call) -> list[Value]:
    import numpy as np

    value = call.tensor("value", np.zeros(1, np.float32))
    return [RowWise(kind_of(value), _wanted(call, call.at(0), None))]


@rule("Reshape", inputs=2)
def reshape(call: Call) -> list[Value]:
    value = call.rows()
    zero_copies = call.integer("allowzero", 0) == 0
    return [
        RowWise(value.kind, _wanted(call, call.at(1), value, zero_copies=zero_copies)),
    ]


def _wanted(
    call: Call, target: Value, value: RowWise | None, *, zero_copies: bool = True
) -> tuple[int, ...]:
    """Return the shape of a row after a reshape to `target`, which must leave the rows alone."""
    if isinstance(target, RowWise):
        raise NotRowWise("its shape is computed from the rows", "Reshape to a constant shape.")
    extents: list[int | None] = (
        list(target.extents)
        if isinstance(target, Dims)
        else [int(extent) for extent in target.reshape(-1)]
    )
    if not extents:
        raise NotRowWise(f"{MIXES}: it leaves no axis for the rows")
    first, inner = extents[0], extents[1:]
    if value is not None and zero_copies:
        inner = [
            value.shape[i] if extent == 0 and i < len(value.shape) else extent
            for i, extent in enumerate(inner)
        ]
        first = None if first == 0 else first
    if value is not None and inner.count(-1) == 1 and first != -1 and None not in inner:
        known = math.prod(extent for extent in inner if extent is not None and extent != -1)
        if known > 0 and value.size % known == 0:
            inner = [value.size // known if extent == -1 else extent for extent in inner]
    sizes = [extent for extent in inner if extent is not None and extent > 0]
    if len(sizes) < len(inner):
        raise NotRowWise(f"{MIXES}: only the first axis of its shape may be the rows")
    if value is not None and math.prod(sizes) != value.size:
        raise NotRowWise(
            f"{MIXES}: its shape puts {math.prod(sizes)} numbers where a row has {value.size}",
            "Reshape to (-1, ...) with the rest as wide as a row.",
        )
    rows_stay = first is None or (value is not None and first == -1)
    if not rows_stay and not (call.fixed_batch and first == 1):
        raise NotRowWise(
            f"its shape has {first} for the number of rows, and must leave it open",
            "Export with a dynamic first dimension.",
        )
    return tuple(sizes)


@rule("Flatten", inputs=1)
def flatten(call: Call) -> list[Value]:
    value = call.rows()
    axis = call.integer("axis", 1)
    if axis != 1 and not (axis < 0 and axis + value.rank == 1):
        raise NotRowWise(f"{MIXES}: its axis must be 1", "Flatten from axis 1.")
    return [RowWise(value.kind, (value.size,))]


@rule("Transpose", inputs=1)
def transpose(call: Call) -> list[Value]:
    value, order = call.rows(), [int(axis) for axis in call.integers("perm")]
    order = order or list(range(value.rank))[::-1]
    if sorted(order) != list(range(value.rank)) or order[0] != 0:
        raise NotRowWise(
            f"{MIXES}: it moves the axis of the rows", "Keep axis 0 first in its perm."
        )
    return [RowWise(value.kind, tuple(value.shape[i - 1] for i in order[1:]))]


@rule("Squeeze", inputs=2)
def squeeze(call: Call) -> list[Value]:
    value = call.rows()
    axes = call.inner_axes(call.axes(1), value.rank)
    if any(value.shape[axis] != 1 for axis in axes):
        raise NotRowWise("it squeezes an axis that is wider than 1")
    return [RowWise(value.kind, tuple(e for i, e in enumerate(value.shape) if i not in axes))]


@rule("Unsqueeze", inputs=2)
def unsqueeze(call: Call) -> list[Value]:
    axes, value = call.axes(1), call.at(0)
    if isinstance(value, Dims):
        if not value.scalar or axes not in ([0], [-1]):
            raise NotRowWise("it computes with the number of rows")
        return [Dims(value.extents)]
    value = call.rows()
    places = call.inner_axes(axes, value.rank + len(axes or ()))
    shape = list(value.shape)
    for place in sorted(places):
        shape.insert(place, 1)
    return [RowWise(value.kind, tuple(shape))]


@rule("Concat")
def concat(call: Call) -> list[Value]:
    if any(isinstance(value, Dims) for value in call.given):
        return [_concat_dims(call)]
    values = [call.rows(place) for place in range(len(call.given))]
    axis = call.inner(call.integer("axis", 0), values[0].rank)
    others = {(v.kind, v.rank, v.shape[:axis], v.shape[axis + 1 :]) for v in values}
    if len(others) != 1:
        raise NotRowWise("its inputs differ in type or in another axis")
    width = sum(value.shape[axis] for value in values)
    first = values[0]
    return [RowWise(first.kind, (*first.shape[:axis], width, *first.shape[axis + 1 :]))]


def _concat_dims(call: Call) -> Dims:
    extents: list[int | None] = []
    for place, value in enumerate(call.given):
        if isinstance(value, Dims) and not value.scalar:
            extents += value.extents
        else:
            extents += call.whole_numbers(place)
    if call.integer("axis", 0) not in (0, -1):
        raise NotRowWise("its axis must be 0")
    return Dims(tuple(extents))


@rule("Split", inputs=2)
def split(call: Call) -> list[Value]:
    value = call.rows()
    axis = call.inner(call.integer("axis", 0), value.rank)
    width, parts = value.shape[axis], [int(part) for part in call.integers("split")]
    if call.has(1):
        parts = call.whole_numbers(1)
    pieces = call.integer("num_outputs", call.outputs)
    if not parts:
        if pieces != call.outputs or pieces < 1 or width % pieces:
            raise NotRowWise("its parts must be given, or be equally wide")
        parts = [width // pieces] * pieces
    if len(parts) != call.outputs or sum(parts) != width or min(parts) < 1:
        raise NotRowWise("its parts must add up to the width of its axis")
    return [
        RowWise(value.kind, (*value.shape[:axis], part, *value.shape[axis + 1 :])) for part in parts
    ]


@rule("Slice", inputs=5)
def piece(call: Call) -> list[Value]:
    starts, ends = call.whole_numbers(1), call.whole_numbers(2)
    axes = call.whole_numbers(3) if call.has(3) else list(range(len(starts)))
    steps = call.whole_numbers(4) if call.has(4) else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise NotRowWise("its starts, ends, axes and steps must be equally many, and no step 0")
    value = call.at(0)
    if isinstance(value, Dims):
        if value.scalar or axes not in ([0], [-1]):
            raise NotRowWise("it computes with the number of rows")
        return [Dims(value.extents[starts[0] : ends[0] : steps[0]])]
    value = call.rows()
    shape, seen = list(value.shape), set()
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        whole = start == 0 and end >= _END and step == 1
        if axis in (0, -value.rank) and whole:
            continue
        place = call.inner(axis, value.rank)
        if place in seen:
            raise NotRowWise("one of its axes is named twice")
        seen.add(place)
        shape[place] = len(range(*slice(start, end, step).indices(value.shape[place])))
    return [RowWise(value.kind, tuple(shape))]


@rule("Gather", inputs=2)
def gather(call: Call) -> list[Value]:
    axis, value = call.integer("axis", 0), call.at(0)
    chosen = call.constant(1)
    if chosen.dtype.kind != "i":
        raise NotRowWise("its indices must be integers")
    if isinstance(value, Dims):
        if value.scalar or chosen.ndim > 1:
            raise NotRowWise("it computes with the number of rows")
        _check_indices(chosen, len(value.extents))
        picked = tuple(value.extents[int(index)] for index in chosen.reshape(-1))
        return [Dims(picked, scalar=chosen.ndim == 0)]
    value = call.rows()
    place = call.inner(axis, value.rank)
    _check_indices(chosen, value.shape[place])
    return [RowWise(value.kind, (*value.shape[:place], *chosen.shape, *value.shape[place + 1 :]))]


def _check_indices(chosen: Any, width: int) -> None:
    if chosen.size and not (-width <= chosen.min() and chosen.max() < width):
        raise NotRowWise("one of its indices is out of range")


@rule("ai.onnx.ml.ArrayFeatureExtractor", inputs=2)
def chosen_features(call: Call) -> list[Value]:
    value, chosen = call.rows(rank=2), call.constant(1)
    if chosen.dtype.kind != "i" or chosen.size < 1:
        raise NotRowWise("its indices must be integers")
    if chosen.min() < 0:
        raise NotRowWise("one of its indices is out of range")
    _check_indices(chosen, value.shape[0])
    return [RowWise(value.kind, (chosen.size,))]


@rule("Expand", inputs=2)
def expand(call: Call) -> list[Value]:
    value, target = call.rows(), call.at(1)
    if isinstance(target, RowWise):
        raise NotRowWise("its shape is computed from the rows")
    extents = list(target.extents) if isinstance(target, Dims) else call.whole_numbers(1)
    if len(extents) > value.rank or (len(extents) == value.rank and extents[0] not in (1, None)):
        raise NotRowWise(f"{MIXES}: it copies along the rows", "Expand along later axes.")
    inner = extents[1:] if len(extents) == value.rank else extents
    if None in inner:
        raise NotRowWise(f"{MIXES}: only the first axis of its shape may be the rows")
    import numpy as np

    try:
        shape = np.broadcast_shapes(value.shape, tuple(int(extent or 0) for extent in inner))
    except ValueError:
        raise NotRowWise("its shape does not fit its input") from None
    return [RowWise(value.kind, tuple(int(extent) for extent in shape))]


@rule("OneHot", inputs=3)
def one_hot(call: Call) -> list[Value]:
    value, depth, pair = call.rows(kinds=NUMBERS), call.constant(1), call.constant(2)
    if call.integer("axis", -1) not in (-1, value.rank) or depth.size != 1 or pair.size != 2:
        raise NotRowWise("its axis must be the last, its depth one number, its values two")
    if depth.dtype.kind != "i" or kind_of(pair) == "string":
        raise NotRowWise("its depth must be an integer and its values numbers")
    return [RowWise(kind_of(pair), (*value.shape, int(depth.reshape(-1)[0])))]


# --- products with weights -----------------------------------------------------------------------


@rule("MatMul", inputs=2)
def product(call: Call) -> list[Value]:
    kind, left = call.same_kind(FLOATS), call.rows(0)
    right = call.at(1)
    if isinstance(right, RowWise):
        same = left.rank == right.rank >= 3 and left.shape[:-2] == right.shape[:-2]
        if not same or left.shape[-1] != right.shape[-2]:
            raise NotRowWise(
                f"{MIXES}: it multiplies rows by rows", "Multiply by weights that are constants."
            )
        return [RowWise(kind, (*left.shape[:-1], right.shape[-1]))]
    weights = call.constant(1)
    if left.rank < 2 or weights.ndim != 2 or weights.shape[0] != left.shape[-1]:
        raise NotRowWise("its weights must be a matrix with one row per feature")
    return [RowWise(kind, (*left.shape[:-1], int(weights.shape[1])))]


@rule("Gemm", inputs=3)
def general_product(call: Call) -> list[Value]:
    left, weights = call.rows(0, rank=2), call.constant(1)
    bias = call.optional(2)
    call.number("alpha", 1.0)
    call.number("beta", 1.0)
    if call.integer("transA", 0) != 0:
        raise NotRowWise(f"{MIXES}: it transposes the rows", "Set transA to 0.")
    if weights.ndim != 2:
        raise NotRowWise("its weights must be a matrix")
    inside, outside = weights.shape[::-1] if call.integer("transB", 0) else weights.shape
    if inside != left.shape[0]:
        raise NotRowWise("its weights must be a matrix with one row per feature")
    if bias is not None:
        if bias.ndim > 2 or (bias.ndim == 2 and bias.shape[0] != 1):
            raise NotRowWise(f"{MIXES}: its bias has several rows", "Give the bias one row.")
        if bias.ndim and bias.shape[-1] not in (1, outside):
            raise NotRowWise("its bias must be as wide as its result")
    kind = call.same_kind(FLOATS, [place for place in range(3) if call.has(place)])
    return [RowWise(kind, (int(outside),))]


@rule("Conv", inputs=3)
def convolution(call: Call) -> list[Value]:
    value, weights = call.rows(kinds=FLOATS), call.constant(1)
    bias = call.optional(2)
    spatial = value.rank - 2
    group = call.integer("group", 1)
    call.word("auto_pad", ("NOTSET",), "NOTSET")
    strides, dilations = (
        _numbers_by_axis(call, name, spatial) for name in ("strides", "dilations")
    )
    pads = [int(pad) for pad in call.integers("pads")] or [0] * (2 * spatial)
    kernel = [int(extent) for extent in call.integers("kernel_shape")] or list(weights.shape[2:])
    fits = weights.ndim == value.rank and kernel == list(weights.shape[2:]) and spatial >= 1
    if not fits or group < 1 or weights.shape[1] * group != value.shape[0]:
        raise NotRowWise("its weights do not fit its input")
    if weights.shape[0] % group or (bias is not None and bias.shape != weights.shape[:1]):
        raise NotRowWise("its weights do not fit its groups or its bias")
    if len(pads) != 2 * spatial or min(pads) < 0 or max(pads) > 2**16:
        raise NotRowWise("its pads must be two whole numbers per axis")
    call.same_kind(FLOATS, [place for place in range(3) if call.has(place)])
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    shape = [
        (value.shape[1 + i] + pads[i] + pads[spatial + i] - reach[i]) // strides[i] + 1
        for i in range(spatial)
    ]
    return [RowWise(value.kind, (int(weights.shape[0]), *shape))]


def _numbers_by_axis(call: Call, name: str, count: int) -> list[int]:
    numbers = [int(number) for number in call.integers(name)] or [1] * count
    if len(numbers) != count or min(numbers, default=1) < 1:
        raise NotRowWise(f"its {name} must be one whole number per axis")
    return numbers
