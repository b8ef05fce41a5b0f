"""An ONNX file as plain data: what the verifier reads, and the model that is built from its proof.

Only fields that are known are read. What runs in the end is not the file but a model built anew
from the nodes that were proven: so that no name given twice, no shape that is declared wrongly
and no node beside the score is left for the runtime to read in its own way.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from heldout.models.calls import TYPES, Array, NotRowWise, kind_of

if TYPE_CHECKING:
    import onnx

Plain: TypeAlias = float | int | str | list[str] | Array
"""The value of an attribute."""
MOST_BYTES = 2**28
MOST_NODES = 20_000
OPSETS = {"": range(7, 27), "ai.onnx.ml": range(1, 6)}
MOST_PROBLEMS = 10


class Unreadable(Exception):
    """Not a model that could run at all, whoever allows it."""


@dataclass(frozen=True)
class Input:
    """Describes an input of a model: `width` numbers or texts a row, as one or two axes."""

    name: str
    kind: str
    width: int
    rank: int
    fixed: bool  # declared for one row at a time


@dataclass(frozen=True)
class Node:
    """One operator, with its attributes as plain values."""

    label: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    proto: Any

    def attributes(self) -> dict[str, Plain]:
        values: dict[str, Plain] = {}
        for attribute in self.proto.attribute:
            if attribute.name in values:
                raise NotRowWise(f"its attribute {attribute.name} is given twice")
            values[attribute.name] = _attribute(attribute)
        return values


@dataclass(frozen=True)
class Graph:
    """The nodes that the score needs, in order, and where its constants are."""

    inputs: tuple[Input, ...]
    score: str  # the value that is the score
    output: str  # what the file calls it
    width: int | None  # as the file declares it: believed only of a model that is not proven
    classes: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, Any]
    opsets: Mapping[str, int]
    version: int
    problems: tuple[NotRowWise, ...]


def read(content: bytes, *, output: str | None = None) -> Graph:
    """The part of a model that leads to its score; `output` names it where there are several."""
    import onnx

    if len(content) > MOST_BYTES:
        raise Unreadable(f"the file is larger than {MOST_BYTES // 2**20} MB")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception:
        raise Unreadable("the file is not an ONNX model") from None
    graph, problems = model.graph, []
    if not graph.node:
        raise Unreadable("the file is not an ONNX model, or has no node")
    if len(graph.node) > MOST_NODES:
        raise Unreadable(f"it has {len(graph.node):,} nodes, more than {MOST_NODES:,}")
    for extra, what in (
        (model.functions, "it defines functions of its own"),
        (model.training_info, "it carries instructions for training"),
        (graph.sparse_initializer, "it has sparse constants"),
    ):
        if extra:
            problems.append(NotRowWise(what, "Export it without them."))
    constants = {tensor.name: tensor for tensor in graph.initializer}
    wanted = [value for value in graph.input if value.name not in constants]
    names = [*constants, *(value.name for value in wanted)]
    names += [name for node in graph.node for name in node.output if name]
    if len(set(names)) < len(names) or len(constants) < len(graph.initializer):
        problems.append(NotRowWise("two of its values have the same name"))
    if len({value.name for value in graph.input}) < len(graph.input):
        problems.append(NotRowWise("two of its inputs have the same name"))
    score, name, width, classes = _score(graph, output)
    nodes = _needed(graph.node, score)
    used = {name for node in nodes for name in node.inputs}
    inputs = tuple(_input(value) for value in wanted if value.name in used)
    if not inputs:
        raise Unreadable("its score does not depend on any input")
    return Graph(
        inputs=inputs,
        score=score,
        output=name,
        width=width,
        classes=classes or _labels(nodes),
        nodes=nodes,
        constants={constant: constants[constant] for constant in used if constant in constants},
        opsets=_opsets(model.opset_import, problems),
        version=min(max(int(model.ir_version), 4), 13),
        problems=tuple(problems),
    )


def _opsets(imports: Any, problems: list[NotRowWise]) -> dict[str, int]:
    versions: dict[str, int] = {}
    for opset in imports:
        domain = "" if opset.domain == "ai.onnx" else opset.domain
        if versions.get(domain, opset.version) != opset.version:
            problems.append(NotRowWise(f"it names the operator set {domain!r} twice"))
        if domain in OPSETS:
            versions[domain] = int(opset.version)
            if versions[domain] not in OPSETS[domain]:
                span = f"{OPSETS[domain][0]} to {OPSETS[domain][-1]}"
                problems.append(
                    NotRowWise(f"its operator set {domain or 'ai.onnx'} must be of version {span}")
                )
    return versions


def _score(graph: Any, output: str | None) -> tuple[str, str, int | None, tuple[str, ...]]:
    """The value that is the score: its name, the output's, the declared width and the classes."""
    makers = {name: node for node in graph.node for name in node.output}
    candidates = []
    for value in graph.output:
        maker, tensor = makers.get(value.name), value.type.tensor_type
        if maker is not None and maker.op_type == "ZipMap" and len(maker.input) == 1:
            # A list of dictionaries for people; the probabilities are what it is given.
            classes = _labels([_node(0, maker)])
            candidates.append((maker.input[0], value.name, len(classes) or None, classes))
        elif TYPES.get(tensor.elem_type) in ("float32", "float64") or len(graph.output) == 1:
            sizes = [d.dim_value for d in tensor.shape.dim]
            width = sizes[1] or None if len(sizes) == 2 else 1 if len(sizes) == 1 else None
            candidates.append((value.name, value.name, width, ()))
    if output is not None:
        candidates = [candidate for candidate in candidates if candidate[1] == output]
    if len(candidates) != 1:
        names = ", ".join(candidate[1] for candidate in candidates) or "none"
        raise Unreadable(
            f"it must have one output with numbers, or output= must name one (found: {names})"
        )
    return candidates[0]


def _labels(nodes: Sequence[Node]) -> tuple[str, ...]:
    """The names of the classes, as the last classifier has them."""
    for node in reversed(nodes):
        for attribute in node.proto.attribute:
            if attribute.name == "classlabels_strings":
                return tuple(value.decode("utf-8", "replace") for value in attribute.strings)
            if attribute.name in ("classlabels_int64s", "classlabels_ints"):
                return tuple(str(value) for value in attribute.ints)
    return ()


def _needed(nodes: Any, score: str) -> tuple[Node, ...]:
    """The nodes that lead to the score; the runtime would run the others all the same."""
    wanted, needed = {score}, []
    for place in range(len(nodes) - 1, -1, -1):
        if wanted.intersection(nodes[place].output):
            needed.append(_node(place, nodes[place]))
            wanted.update(name for name in nodes[place].input if name)
    return tuple(reversed(needed))


def _node(place: int, proto: Any) -> Node:
    domain = "" if proto.domain in ("", "ai.onnx") else f"{proto.domain}."
    return Node(
        label=proto.name or f"number {place + 1}",
        operator=f"{domain}{proto.op_type}",
        inputs=tuple(proto.input),
        outputs=tuple(proto.output),
        proto=proto,
    )


def _input(proto: Any) -> Input:
    tensor = proto.type.tensor_type
    kind, sizes = TYPES.get(tensor.elem_type), [d.dim_value for d in tensor.shape.dim]
    if kind is None or len(sizes) not in (1, 2):
        raise Unreadable(f"its input {proto.name!r} must be numbers or texts with one or two axes")
    width = sizes[1] if len(sizes) == 2 else 1
    if width < 1 or width > 2**16:
        raise Unreadable(
            f"its input {proto.name!r} must declare how many features it has. Export it with a "
            "fixed second dimension"
        )
    if sizes[0] not in (0, 1):
        raise Unreadable(f"its input {proto.name!r} must leave the number of rows open, or be 1")
    return Input(proto.name, kind, int(width), len(sizes), fixed=sizes[0] == 1)


def _attribute(proto: Any) -> Plain:
    import numpy as np
    import onnx

    if proto.ref_attr_name:
        raise NotRowWise(f"its attribute {proto.name} refers to a function's")
    types = onnx.AttributeProto
    plain: dict[int, Callable[[], Plain]] = {
        types.FLOAT: lambda: float(proto.f),
        types.INT: lambda: int(proto.i),
        types.FLOATS: lambda: np.asarray(proto.floats, float),
        types.INTS: lambda: np.asarray(proto.ints, np.int64),
        types.STRING: proto.s.decode,
        types.STRINGS: lambda: [text.decode() for text in proto.strings],
        types.TENSOR: lambda: constant(proto.t),
    }
    if proto.type not in plain:
        raise NotRowWise(
            f"its attribute {proto.name} holds a graph, or something else that is no plain value",
            "Loops and conditions are not allowed.",
        )
    try:
        return plain[proto.type]()
    except UnicodeDecodeError:
        raise NotRowWise(f"its attribute {proto.name} is not readable text") from None


def _rewritten(proto: Any) -> "onnx.AttributeProto":
    """An attribute with its one value, whatever else the file put into it."""
    import onnx
    from onnx import numpy_helper

    types = onnx.AttributeProto
    again = types(name=proto.name, type=proto.type)
    if proto.type == types.TENSOR:
        again.t.CopyFrom(numpy_helper.from_array(constant(proto.t)))
        return again
    fields = {types.FLOAT: "f", types.INT: "i", types.STRING: "s"}
    if proto.type in fields:
        setattr(again, fields[proto.type], getattr(proto, fields[proto.type]))
        return again
    lists = {types.FLOATS: "floats", types.INTS: "ints", types.STRINGS: "strings"}
    getattr(again, lists[proto.type]).extend(getattr(proto, lists[proto.type]))
    return again


def constant(proto: Any) -> Array:
    """A constant of the file as a NumPy array; what lies about its size or is elsewhere, not."""
    from onnx import numpy_helper

    if proto.data_location == proto.EXTERNAL or proto.external_data or proto.HasField("segment"):
        raise NotRowWise(
            f"its constant {proto.name!r} is in another file", "Save the model as one file."
        )
    if proto.data_type not in TYPES:
        raise NotRowWise(f"its constant {proto.name!r} has a type that the verifier does not know")
    if any(extent < 0 for extent in proto.dims):
        raise NotRowWise(f"its constant {proto.name!r} has a dimension below 0")
    try:
        array: Array = numpy_helper.to_array(proto)
    except Exception:
        raise NotRowWise(f"its constant {proto.name!r} is not what it declares") from None
    if kind_of(array) != TYPES[proto.data_type]:
        raise NotRowWise(f"its constant {proto.name!r} is not what it declares")
    return array


def retargeted(content: bytes, score: str) -> bytes:
    """The file as it is, with the score as its only output: for a model that is not proven."""
    import onnx

    model = onnx.ModelProto()
    model.ParseFromString(content)
    del model.graph.output[:]
    model.graph.output.add().name = score
    file: bytes = model.SerializeToString()
    return file


def build(graph: Graph, nodes: Sequence[Node], constants: Mapping[str, Any], kind: str) -> bytes:
    """The model that runs: the proven nodes, their constants, and the score alone."""
    from onnx import helper, numpy_helper

    numbers = {name: number for number, name in TYPES.items()}
    made = []
    for node in nodes:
        domain, _, operator = node.operator.rpartition(".")
        again = helper.make_node(operator, node.inputs, node.outputs, domain=domain)
        again.attribute.extend(_rewritten(attribute) for attribute in node.proto.attribute)
        made.append(again)
    whole = helper.make_graph(
        made,
        "scores",
        [
            helper.make_tensor_value_info(
                field.name,
                numbers[field.kind],
                [1 if field.fixed else "rows", *([field.width] if field.rank == 2 else [])],
            )
            for field in graph.inputs
        ],
        [helper.make_tensor_value_info(graph.score, numbers[kind], None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid(*opset) for opset in graph.opsets.items()]
    model = helper.make_model(whole, opset_imports=opsets, ir_version=graph.version)
    content: bytes = model.SerializeToString()
    return content
