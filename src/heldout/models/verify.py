"""Proves from the graph alone that each score is a function of its own row, without state.

Claim:       in a graph that is accepted, entry i of every value that depends on the rows is a
             function of row i and of constants of the model.           [claim: row-wise-models]
Neighbours:  any: a row that is changed, added or removed changes no other row's score.
Sensitivity: by induction over the nodes; every operator on the allow-list has a rule that keeps
             the claim, and what has no rule, or breaks its rule, is refused.
Numerics:    exact: the graph is judged, no row is read.
Refuses:     operators, types, attributes and files that are not known; control flow, randomness,
             functions, other domains, sparse or external constants; more than `MOST_UNEVEN`
             nanoseconds per row that depend on its cells.
Reference:   Cousot and Cousot 1977, abstract interpretation; the ONNX operator specifications.
Cost:        O(nodes + constants) time and memory.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heldout.models import classical, operators
from heldout.models.calls import (
    FLOATS,
    INPUTS,
    RULES,
    TYPES,
    Array,
    Call,
    Dims,
    NotRowWise,
    Problem,
    RowWise,
    Value,
    kind_of,
)
from heldout.models.graph import (
    MOST_PROBLEMS,
    Graph,
    Node,
    Unreadable,
    build,
    constant,
    read,
    retargeted,
)
from heldout.models.operators import FURTHEST

MOST_UNEVEN = 2**18
"""Nanoseconds by which the time of a row may depend on its cells."""
_ROOMS = (classical, operators, operators)  # where the rules are


@dataclass(frozen=True)
class Proof:
    """The verdict: no problem, and a model to run; or the problems."""

    problems: tuple[Problem, ...]
    width: int
    content: bytes

    @property
    def row_wise(self) -> bool:
        return not self.problems


class _Unknown:
    """A value of a node that was refused: whatever needs it is not judged a second time."""


def verify(graph: Graph) -> Proof:
    """Judge every node that the score needs, in order."""
    problems = [Problem("the model", problem.why, problem.mend) for problem in graph.problems]
    values: dict[str, Value | _Unknown] = {
        field.name: RowWise(field.kind, (field.width,) if field.rank == 2 else ())
        for field in graph.inputs
    }
    for name, proto in graph.constants.items():
        try:
            values[name] = constant(proto)
        except NotRowWise as error:
            problems.append(Problem("the model", error.why, error.mend))
            values[name] = _Unknown()
    fixed, needed, uneven = all(field.fixed for field in graph.inputs), [], 0
    for node in graph.nodes:
        try:
            outputs, spread = _judge(node, values, graph, fixed=fixed)
            uneven += spread
        except NotRowWise as error:
            problems.append(Problem(_named(node), error.why, error.mend))
            outputs = [_Unknown()] * len(node.outputs)
        except (ValueError, LookupError, TypeError, ArithmeticError, MemoryError):
            problems.append(Problem(_named(node), "it is not what its operator must be", ""))
            outputs = [_Unknown()] * len(node.outputs)
        values.update(
            (name, value) for name, value in zip(node.outputs, outputs, strict=False) if name
        )
        if any(isinstance(value, RowWise | Dims) for value in outputs):
            needed.append(node)
    if uneven > MOST_UNEVEN:
        why = "its time may differ too much between two rows"
        problems.append(Problem("the model", why, "Use fewer or shallower trees, or floats."))
    score = values.get(graph.score)
    width, content = 1, b""
    if not problems:
        try:
            width = _score_width(score)
            content = _built(graph, needed, values)
        except NotRowWise as error:
            problems.append(Problem(f"output {graph.output!r}", error.why, error.mend))
        except (ValueError, TypeError):
            problems.append(Problem("the model", "its names or constants cannot be written", ""))
    return Proof(tuple(problems[:MOST_PROBLEMS]), width, content)


def _judge(
    node: Node, values: dict[str, Value | _Unknown], graph: Graph, *, fixed: bool
) -> tuple[Sequence[Value | _Unknown], int]:
    """Return what a node gives, and by how many nanoseconds its time may differ between rows."""
    domain = node.operator.rpartition(".")[0]
    if node.operator not in RULES and node.operator != "Constant":
        raise NotRowWise(
            "this operator is not on the list of those that are known to look at one row",
            _MENDS.get(node.operator, ""),
        )
    if node.proto.overload:
        raise NotRowWise("it asks for an overload of its operator")
    for name in node.inputs:
        if name and name not in values:
            raise NotRowWise(f"its input {name!r} is made by no earlier node")
    inputs = [values[name] if name else None for name in node.inputs]
    given = [value for value in inputs if not isinstance(value, _Unknown)]
    if len(given) < len(inputs):
        return [_Unknown()] * len(node.outputs), 0
    if domain not in graph.opsets:
        raise NotRowWise(f"the model names no version of the operator set {domain or 'ai.onnx'!r}")
    call = Call(
        operator=node.operator,
        opset=graph.opsets[domain],
        attributes=node.attributes(),
        given=given,
        fixed_batch=fixed,
        outputs=len(node.outputs),
    )
    if node.operator == "Constant" or not any(isinstance(value, RowWise | Dims) for value in given):
        return [folded(call)], 0
    call.only(INPUTS[node.operator])
    gives = RULES[node.operator](call)
    call.finish()
    return gives, call.uneven()


def _score_width(score: Any) -> int:
    if not isinstance(score, RowWise):
        raise NotRowWise("it does not depend on the rows")
    if score.kind not in (*FLOATS, "int64") or len(score.shape) > 1:
        raise NotRowWise("it must be one number per row, or one per class")
    return score.size


def _built(graph: Graph, nodes: Sequence[Node], values: dict[str, Any]) -> bytes:
    values = dict(values)
    nodes = [step for node in nodes for step in _bounded(node, values)]
    made = {name for node in nodes for name in node.outputs}
    used = {name for node in nodes for name in node.inputs if name} - made
    taken = {field.name for field in graph.inputs}
    constants = {name: values[name] for name in sorted(used - taken)}
    return build(graph, nodes, constants, values[graph.score].kind)


def _bounded(node: Node, values: dict[str, Any]) -> list[Node]:
    """Bring an angle into the circle with the same few steps, however large it is."""
    if node.operator not in ("Sin", "Cos"):
        return [node]
    import numpy as np
    from onnx import helper

    (angle,) = node.inputs
    steps: list[Node] = []
    kind, start = values[angle].kind, f"angle of {node.outputs[0]}: "
    if any(name.startswith(start) for name in values):
        raise NotRowWise(f"one of its names begins with {start!r}", "Rename values.")

    def step(operator: str, given: str, other: str | float | None = None) -> str:
        if isinstance(other, float):
            constant = f"{start}constant {len(steps)}"
            values[constant], other = np.asarray(other, kind), constant
        inputs = (given,) if other is None else (given, other)
        name = f"{start}{len(steps)}"
        proto = helper.make_node(operator, inputs, [name])
        steps.append(Node(name, operator, inputs, (name,), proto))
        return name

    bounded = step("Max", step("Min", angle, FURTHEST[kind]), -FURTHEST[kind])
    if kind == "float64":  # of floats many are worked out at once, all in the same way
        turns = step("Floor", step("Add", step("Mul", bounded, 0.5 / math.pi), 0.5))
        bounded = step("Sub", bounded, step("Mul", turns, 2 * math.pi))
    return [*steps, replace(node, inputs=(bounded,))]


def _named(node: Node) -> str:
    return f"node {node.label} ({node.operator})"


_LOOPS = "Loops and conditions are not allowed; compute both branches and choose with Where."
_RANDOM = "A score must not be random. Export in evaluation mode."
_MENDS = {
    **dict.fromkeys(("Loop", "Scan", "If"), _LOOPS),
    **dict.fromkeys(("RandomNormal", "RandomUniform", "RandomNormalLike"), _RANDOM),
    **dict.fromkeys(("RandomUniformLike", "Multinomial", "Bernoulli"), _RANDOM),
    "ai.onnx.ml.Binarizer": "It fails on NaN. Compare with Greater, and cast.",
    "ai.onnx.ml.ZipMap": "Convert with options={'zipmap': False}.",
    "DynamicQuantizeLinear": "It reads its scale off the batch. Quantise with fixed scales.",
}


# --- constants that a model computes from constants, worked out before it runs ------------------

MOST_FOLDED = 2**22


def folded(call: Call) -> Array:
    """The value of a node that depends on no row; few operators, since exporters fold the rest."""
    import numpy as np

    if call.operator not in _FOLDS:
        raise NotRowWise("it computes with constants alone", "Export with constants folded.")
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(_FOLDS[call.operator](call))
    except (ValueError, IndexError, TypeError, OverflowError):
        raise NotRowWise("its shapes do not fit") from None
    call.finish()
    return np.ascontiguousarray(value).reshape(value.shape)


def _written(call: Call) -> Array:
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


def _cast(call: Call) -> Array:
    kind = TYPES.get(call.integer("to", 0), "string")
    if "string" in (kind, kind_of(call.constant(0))):
        raise NotRowWise("it casts texts")
    return call.constant(0).astype(kind)


def _transposed(call: Call) -> Array:
    order = [int(axis) for axis in call.integers("perm")]
    return call.constant(0).transpose(order or None)


def _unsqueezed(call: Call) -> Array:
    import numpy as np

    return np.expand_dims(call.constant(0), tuple(call.axes(1) or ()))


def _squeezed(call: Call) -> Array:
    axes = call.axes(1)
    return call.constant(0).squeeze(None if axes is None else tuple(axes))


def _reshaped(call: Call) -> Array:
    shape = call.whole_numbers(1)
    if 0 in shape or call.integer("allowzero", 0) != 0:
        raise NotRowWise("it reshapes a constant to a shape with 0")
    return call.constant(0).reshape(shape)


def _joined(call: Call) -> Array:
    import numpy as np

    parts = [call.constant(place) for place in range(len(call.given))]
    if sum(part.size for part in parts) > MOST_FOLDED:
        raise NotRowWise("it makes a constant that is too large")
    if len({kind_of(part) for part in parts}) > 1:
        raise NotRowWise("its inputs differ in type")
    return np.concatenate(parts, call.integer("axis", 0))


_FOLDS: dict[str, Callable[[Call], Array]] = {
    "Constant": _written,
    "Identity": lambda call: call.constant(0),
    "Cast": _cast,
    "Transpose": _transposed,
    "Unsqueeze": _unsqueezed,
    "Squeeze": _squeezed,
    "Reshape": _reshaped,
    "Concat": _joined,
}


def examine(content: bytes, *, output: str | None) -> tuple[dict[str, Any], bytes]:
    """The verdict as JSON data, and the model to run: the proven one, or the file's."""
    try:
        graph = read(content, output=output)
    except Unreadable as error:
        return {"unreadable": str(error)}, b""
    proof = verify(graph)
    return {
        "inputs": [[field.name, field.kind, field.width, field.rank] for field in graph.inputs],
        "problems": [[problem.node, problem.why, problem.mend] for problem in proof.problems],
        "score": graph.score,
        "width": proof.width if proof.row_wise else graph.width or 1,
        "classes": list(graph.classes),
        "loads": True,
    }, proof.content or retargeted(content, graph.score)
