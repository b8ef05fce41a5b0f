"""Rules for operators that look at one number of each input at a time, and for reductions."""

from heldout.models.calls import (
    FLOATS,
    NUMBERS,
    TYPES,
    Call,
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
            raise NotRowWise("its scale, bias, mean and variance must have one number a channel")
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
