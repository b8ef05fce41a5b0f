"""Models that try to carry one row's secret into another row's score, or out of the sandbox.

Each is a function that gives the bytes of an ONNX file with an input `x` of four floats a row,
unless its name is in `OTHER_INPUTS`. None of them may be proven row-wise.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

from heldout.models.keeper import Field, Task

ATTACKS: dict[str, Callable[[], bytes]] = {}
WIDTH = 4


def attack(function: Callable[[], bytes]) -> Callable[[], bytes]:
    ATTACKS[function.__name__] = function
    return function


def node(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    return helper.make_node(operator, inputs, outputs, **attributes)


def model(
    nodes: list[Any],
    constants: dict[str, Any] | None = None,
    *,
    output: str = "y",
    opset: int = 17,
    kind: int = TensorProto.FLOAT,
    shape: list[Any] | None = None,
    inputs: list[Any] | None = None,
    functions: list[Any] | None = None,
    domains: dict[str, int] | None = None,
    change: Callable[[ModelProto], None] | None = None,
) -> bytes:
    """The bytes of a model from rows `x` to `output`."""
    rows = ["rows", WIDTH] if shape is None else shape
    graph = helper.make_graph(
        nodes,
        "attack",
        inputs or [helper.make_tensor_value_info("x", kind, rows)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    opsets += [helper.make_opsetid(*each) for each in (domains or {}).items()]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions or [])
    if change is not None:
        change(made)
    return bytes(made.SerializeToString())


def harmless_task() -> Task:
    """Return a task for a keeper, with a model that does nothing wrong."""
    return Task(
        content=model([node("Relu", ["x"], ["y"])]),
        output=None,
        sandboxed=True,
        memory=2**30,
        seconds=60,
        rows=8,
        fields=(Field("x", "float32", 4, 2),),
        width=4,
    )


def whole(*values: int) -> Any:
    return np.array(values, np.int64)


def floats(*shape: int) -> Any:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


# --- the batch is reduced, moved or broadcast ----------------------------------------------------


def _reducing(name: str, **attributes: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        return model(
            [node(name, ["x"], ["m"], **attributes), node("Add", ["x", "m"], ["y"])], opset=12
        )

    made.__name__ = f"{name.lower()}_{attributes or 'all'}"
    return made


for each in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSumExp"):
    attack(_reducing(each, axes=[0]))
    attack(_reducing(each, axes=[-2]))
    attack(_reducing(each, axes=[0, 1]))
    attack(_reducing(each))


@attack
def axes_computed_from_the_rows() -> bytes:
    nodes = [
        node("ArgMax", ["x"], ["a"], axis=1, keepdims=0),
        node("ReduceSum", ["x", "a"], ["m"]),
        node("Add", ["x", "m"], ["y"]),
    ]
    return model(nodes)


@attack
def argmax_of_the_batch_by_default() -> bytes:
    nodes = [node("ArgMax", ["x"], ["a"]), node("Cast", ["a"], ["f"], to=1)]
    return model([*nodes, node("Add", ["x", "f"], ["y"])])


@attack
def softmax_along_rows() -> bytes:
    return model([node("Softmax", ["x"], ["y"], axis=0)])


@attack
def softmax_along_rows_by_a_negative_axis() -> bytes:
    return model([node("Softmax", ["x"], ["y"], axis=-2)])


@attack
def softmax_of_one_axis_by_default() -> bytes:
    nodes = [node("Squeeze", ["x", "one"], ["s"]), node("Softmax", ["s"], ["y"])]
    return model(nodes, {"one": whole(1)}, shape=["rows", 1])


@attack
def cumulative_sum_over_rows() -> bytes:
    return model([node("CumSum", ["x", "axis"], ["y"])], {"axis": np.array(0, np.int64)})


@attack
def top_k_of_the_batch() -> bytes:
    return model([node("TopK", ["x", "k"], ["y", "i"], axis=0)], {"k": whole(1)})


@attack
def transposed_twice_with_a_reduction_between() -> bytes:
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0]),
        node("Softmax", ["t"], ["s"], axis=1),
        node("Transpose", ["s"], ["y"], perm=[1, 0]),
    ]
    return model(nodes)


@attack
def transposed_by_default() -> bytes:
    return model([node("Transpose", ["x"], ["t"]), node("Transpose", ["t"], ["y"])])


@attack
def reshaped_to_one_row() -> bytes:
    nodes = [node("Reshape", ["x", "s"], ["f"]), node("Softmax", ["f"], ["p"], axis=1)]
    return model(
        [*nodes, node("Reshape", ["p", "t"], ["y"])], {"s": whole(1, -1), "t": whole(-1, WIDTH)}
    )


@attack
def reshaped_so_that_rows_become_features() -> bytes:
    nodes = [node("Reshape", ["x", "s"], ["f"]), node("Softmax", ["f"], ["y"], axis=1)]
    return model(nodes, {"s": whole(-1, 2 * WIDTH)})


@attack
def reshaped_with_a_zero_that_copies_features() -> bytes:
    return model([node("Reshape", ["x", "s"], ["y"])], {"s": whole(-1, 0, 2)})


@attack
def reshaped_to_a_shape_computed_from_the_rows() -> bytes:
    nodes = [
        node("ArgMax", ["x"], ["a"], axis=1),
        node("Reshape", ["a", "flat"], ["s"]),
        node("Reshape", ["x", "s"], ["y"]),
    ]
    return model(nodes, {"flat": whole(-1)})


@attack
def flattened_from_axis_zero() -> bytes:
    return model([node("Flatten", ["x"], ["f"], axis=0), node("Softmax", ["f"], ["y"], axis=1)])


@attack
def flattened_from_axis_zero_of_one_axis() -> bytes:
    nodes = [node("ReduceSum", ["x", "one"], ["s"], keepdims=0)]
    return model([*nodes, node("Flatten", ["s"], ["y"], axis=0)], {"one": whole(1)})


@attack
def flattened_past_the_features() -> bytes:
    return model([node("Flatten", ["x"], ["y"], axis=2)])


@attack
def squeezed_of_every_axis_of_one() -> bytes:
    nodes = [node("Squeeze", ["x"], ["s"]), node("ReduceSum", ["s"], ["m"])]
    return model([*nodes, node("Add", ["x", "m"], ["y"])])


@attack
def unsqueezed_before_the_rows() -> bytes:
    nodes = [node("Unsqueeze", ["x", "a"], ["u"]), node("Softmax", ["u"], ["s"], axis=1)]
    return model([*nodes, node("Squeeze", ["s", "a"], ["y"])], {"a": whole(0)})


@attack
def rows_broadcast_against_features() -> bytes:
    nodes = [node("ReduceSum", ["x", "one"], ["s"], keepdims=0), node("Sub", ["x", "s"], ["y"])]
    return model(nodes, {"one": whole(1)})


@attack
def rows_meet_rows_in_a_comparison() -> bytes:
    nodes = [
        node("Unsqueeze", ["x", "two"], ["u"]),
        node("ReduceSum", ["x", "one"], ["s"], keepdims=0),
        node("Less", ["u", "s"], ["b"]),
        node("Cast", ["b"], ["f"], to=1),
        node("ReduceSum", ["f", "last"], ["y"], keepdims=0),
    ]
    return model(nodes, {"one": whole(1), "two": whole(2), "last": whole(2)})


@attack
def a_constant_as_long_as_the_batch() -> bytes:
    return model([node("Add", ["x", "c"], ["y"])], {"c": floats(3, WIDTH)})


@attack
def rows_times_rows() -> bytes:
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("MatMul", ["x", "t"], ["y"])]
    return model(nodes)


@attack
def weights_times_rows() -> bytes:
    return model([node("MatMul", ["w", "x"], ["y"])], {"w": floats(1, 1)})


@attack
def gemm_transposes_the_rows() -> bytes:
    return model([node("Gemm", ["x", "w"], ["y"], transA=1)], {"w": floats(1, 3)})


@attack
def gemm_with_rows_as_bias() -> bytes:
    nodes = [node("Gemm", ["x", "w"], ["h"]), node("Gemm", ["x", "w", "h"], ["y"])]
    return model(nodes, {"w": floats(WIDTH, WIDTH)})


@attack
def einsum_over_the_batch() -> bytes:
    return model([node("Einsum", ["x", "x"], ["y"], equation="ij,kj->ik")])


@attack
def gathered_from_another_row() -> bytes:
    return model([node("Gather", ["x", "i"], ["y"])], {"i": whole(0)})


@attack
def gathered_by_elements_of_another_row() -> bytes:
    return model([node("GatherElements", ["x", "i"], ["y"], axis=0)], {"i": whole(0).reshape(1, 1)})


@attack
def gathered_by_a_number_in_the_row() -> bytes:
    nodes = [node("Cast", ["x"], ["i"], to=7), node("Gather", ["table", "i"], ["y"])]
    return model(nodes, {"table": floats(8)})


@attack
def gathered_out_of_range() -> bytes:
    return model([node("Gather", ["x", "i"], ["y"], axis=1)], {"i": whole(WIDTH)})


@attack
def features_extracted_out_of_range() -> bytes:
    extract = node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")
    return model([extract], {"i": whole(-1)})


@attack
def sliced_rows() -> bytes:
    nodes = [node("Slice", ["x", "s", "e", "a"], ["first"]), node("Add", ["x", "first"], ["y"])]
    return model(nodes, {"s": whole(0), "e": whole(1), "a": whole(0)})


@attack
def reversed_rows() -> bytes:
    constants = {"s": whole(-1), "e": whole(-(2**31)), "a": whole(0), "t": whole(-1)}
    return model([node("Slice", ["x", "s", "e", "a", "t"], ["y"])], constants)


@attack
def sliced_along_rows_by_default() -> bytes:
    return model([node("Slice", ["x", "s", "e"], ["y"])], {"s": whole(0), "e": whole(1)})


@attack
def split_along_rows_by_default() -> bytes:
    return model([node("Split", ["x"], ["y"])])


@attack
def concatenated_along_rows() -> bytes:
    nodes = [node("Concat", ["x", "x"], ["c"], axis=0), node("Softmax", ["c"], ["y"], axis=0)]
    return model(nodes)


@attack
def a_constant_concatenated_beside_rows() -> bytes:
    return model([node("Concat", ["x", "c"], ["y"], axis=1)], {"c": floats(1, 2)})


@attack
def tiled_rows() -> bytes:
    return model([node("Tile", ["x", "r"], ["y"])], {"r": whole(2, 1)})


@attack
def expanded_along_rows() -> bytes:
    return model([node("Expand", ["x", "s"], ["y"])], {"s": whole(3, WIDTH)})


@attack
def the_number_of_rows_as_a_score() -> bytes:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Cast", ["s"], ["f"], to=1),
        node("ReduceSum", ["f"], ["n"]),
        node("Add", ["x", "n"], ["y"]),
    ]
    return model(nodes)


@attack
def the_size_as_a_score() -> bytes:
    nodes = [node("Size", ["x"], ["s"]), node("Cast", ["s"], ["f"], to=1)]
    return model([*nodes, node("Add", ["x", "f"], ["y"])])


@attack
def batch_normalisation_in_training() -> bytes:
    constants = {name: np.ones(WIDTH, np.float32) for name in "sbmv"}
    bn = node("BatchNormalization", ["x", *"sbmv"], ["y", "r", "v2"], training_mode=1)
    return model([bn], constants)


@attack
def batch_normalisation_with_five_outputs() -> bytes:
    constants = {name: np.ones(WIDTH, np.float32) for name in "sbmv"}
    bn = node("BatchNormalization", ["x", *"sbmv"], ["y", "r1", "r2", "r3", "r4"])
    return model([bn], constants, opset=9)


@attack
def layer_normalisation_from_the_rows() -> bytes:
    constants = {"w": floats(1, WIDTH)}
    return model([node("LayerNormalization", ["x", "w"], ["y"], axis=0)], constants)


@attack
def lp_normalisation_along_rows() -> bytes:
    return model([node("LpNormalization", ["x"], ["y"], axis=0)])


@attack
def normalizer_of_one_axis() -> bytes:
    nodes = [
        node("Squeeze", ["x", "one"], ["s"]),
        node("Normalizer", ["s"], ["y"], norm="L1", domain="ai.onnx.ml"),
    ]
    return model(nodes, {"one": whole(1)}, shape=["rows", 1])


@attack
def quantised_by_the_range_of_the_batch() -> bytes:
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    return model(nodes)


@attack
def unique_values_of_the_batch() -> bytes:
    return model([node("Unique", ["x"], ["y"])])


@attack
def rows_that_are_not_zero() -> bytes:
    nodes = [node("NonZero", ["x"], ["n"]), node("Cast", ["n"], ["y"], to=1)]
    return model(nodes)


@attack
def compressed_by_a_condition() -> bytes:
    return model([node("Compress", ["x", "c"], ["y"], axis=0)], {"c": np.array([True])})


@attack
def scattered_into_another_row() -> bytes:
    constants = {"i": whole(0).reshape(1, 1), "u": floats(1, 1)}
    return model([node("ScatterElements", ["x", "i", "u"], ["y"], axis=0)], constants)


@attack
def one_hot_on_the_axis_of_the_rows() -> bytes:
    nodes = [node("Cast", ["x"], ["i"], to=7), node("OneHot", ["i", "d", "v"], ["y"], axis=0)]
    return model(nodes, {"d": np.array(4, np.int64), "v": floats(2)})


@attack
def trained_dropout() -> bytes:
    constants = {"r": np.array(0.5, np.float32), "t": np.array(True)}
    return model([node("Dropout", ["x", "r", "t"], ["y"])], constants)


# --- state, randomness, control flow -------------------------------------------------------------


def _random(name: str, **attributes: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        like = name.endswith("Like") or name == "Bernoulli"
        nodes = [node(name, ["x"] if like else [], ["r"], **attributes)]
        return model([*nodes, node("Add", ["x", "r"], ["y"])])

    made.__name__ = f"state_in_{name.lower()}"
    return made


attack(_random("RandomUniform", shape=[1, WIDTH], seed=1.0))
attack(_random("RandomNormal", shape=[1, WIDTH]))
attack(_random("RandomUniformLike"))
attack(_random("RandomNormalLike", seed=7.0))
attack(_random("Bernoulli"))


def _graph(nodes: list[Any], outputs: list[str]) -> Any:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    return helper.make_graph(nodes, "inner", [], infos)


@attack
def randomness_drawn_only_if_a_row_says_so() -> bytes:
    draw = [
        node("RandomUniform", [], ["u"], shape=[1, 1], seed=1.0),
        node("Identity", ["u"], ["then_y"]),
    ]
    rest = [node("Constant", [], ["else_y"], value_floats=[0.0])]
    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["b"]),
        node("If", ["b"], ["drawn"], then_branch=_graph(draw, ["then_y"]),
             else_branch=_graph(rest, ["else_y"])),
        node("RandomUniform", [], ["r"], shape=[1, WIDTH], seed=1.0),
        node("Add", ["r", "drawn"], ["y"]),
    ]  # fmt: skip
    return model(nodes, {"zero": np.array(0, np.float32)})


@attack
def a_loop_as_long_as_a_row_says() -> bytes:
    body = helper.make_graph(
        [node("Identity", ["c"], ["c2"]), node("Add", ["v", "v"], ["v2"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("c2", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v2", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        node("ReduceSum", ["x"], ["s"], keepdims=0),
        node("Cast", ["s"], ["n"], to=7),
        node("Loop", ["n", "t", "x"], ["y"], body=body),
    ]
    return model(nodes, {"t": np.array(True)})


@attack
def a_scan_over_the_rows() -> bytes:
    body = helper.make_graph(
        [node("Add", ["s", "r"], ["s2"]), node("Identity", ["s2"], ["o"])],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [WIDTH]) for name in "sr"],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [WIDTH]) for name in ("s2", "o")],
    )
    scan = node("Scan", ["zero", "x"], ["last", "y"], body=body, num_scan_inputs=1)
    return model([scan], {"zero": np.zeros(WIDTH, np.float32)})


@attack
def a_sequence_of_rows() -> bytes:
    nodes = [
        node("SplitToSequence", ["x"], ["q"], axis=0),
        node("ConcatFromSequence", ["q"], ["y"], axis=0),
    ]
    return model(nodes)


@attack
def a_recurrent_network_over_the_rows() -> bytes:
    constants = {"w": floats(1, 4, WIDTH), "r": floats(1, 4, 1), "zero": whole(0)}
    nodes = [
        node("Unsqueeze", ["x", "one"], ["u"]),
        node("LSTM", ["u", "w", "r"], ["h"], hidden_size=1),
        node("Reshape", ["h", "s"], ["y"]),
    ]
    return model(nodes, {**constants, "one": whole(1), "s": whole(-1, 1)})


@attack
def a_function_of_its_own() -> bytes:
    inner = [node("ReduceMean", ["a"], ["m"]), node("Add", ["a", "m"], ["b"])]
    opset = [helper.make_opsetid("", 17)]
    made = helper.make_function("local", "Score", ["a"], ["b"], inner, opset)
    return model([node("Score", ["x"], ["y"], domain="local")], functions=[made],
                 domains={"local": 1})  # fmt: skip


@attack
def a_function_with_the_name_of_a_known_operator() -> bytes:
    inner = [node("ReduceMean", ["a"], ["m"]), node("Add", ["a", "m"], ["b"])]
    made = helper.make_function("", "Relu", ["a"], ["b"], inner, [helper.make_opsetid("", 17)])
    return model([node("Relu", ["x"], ["y"])], functions=[made])


@attack
def an_overload_of_a_known_operator() -> bytes:
    relu = node("Relu", ["x"], ["y"])
    relu.overload = "mine"
    return model([relu])


@attack
def functions_that_double() -> bytes:
    opset, made = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)], []
    for depth in range(30):
        below = (f"F{depth - 1}", "f") if depth else ("Relu", "")
        inner = [
            helper.make_node(below[0], ["a"], ["c"], domain=below[1]),
            helper.make_node(below[0], ["c"], ["b"], domain=below[1]),
        ]
        made.append(helper.make_function("f", f"F{depth}", ["a"], ["b"], inner, opset))
    return model([node("F29", ["x"], ["y"], domain="f")], functions=made, domains={"f": 1})


@attack
def another_domain() -> bytes:
    gelu = node("Gelu", ["x"], ["y"], domain="com.microsoft")
    return model([gelu], domains={"com.microsoft": 1})


# --- failing, waiting, filling memory ------------------------------------------------------------


@attack
def integers_divided_by_a_cell() -> bytes:
    nodes = [node("Cast", ["x"], ["i"], to=7), node("Div", ["c", "i"], ["q"])]
    return model([*nodes, node("Cast", ["q"], ["y"], to=1)], {"c": whole(-(2**63))})


@attack
def integers_divided_by_minus_one() -> bytes:
    nodes = [node("Cast", ["x"], ["i"], to=7), node("Div", ["i", "c"], ["q"])]
    return model([*nodes, node("Cast", ["q"], ["y"], to=1)], {"c": whole(-1)})


@attack
def a_remainder_of_integers() -> bytes:
    nodes = [node("Cast", ["x"], ["i"], to=7), node("Mod", ["i", "i"], ["q"])]
    return model([*nodes, node("Cast", ["q"], ["y"], to=1)])


@attack
def a_bit_shifted_out() -> bytes:
    nodes = [
        node("Cast", ["x"], ["i"], to=13),
        node("BitShift", ["i", "i"], ["q"], direction="LEFT"),
    ]
    return model([*nodes, node("Cast", ["q"], ["y"], to=1)])


@attack
def unsigned_bytes_that_wrap_around() -> bytes:
    nodes = [node("Cast", ["x"], ["i"], to=2), node("Add", ["i", "i"], ["q"])]
    return model([*nodes, node("Cast", ["q"], ["y"], to=1)])


@attack
def a_tensor_of_a_terabyte() -> bytes:
    nodes = [node("ConstantOfShape", ["s"], ["big"]), node("ReduceSum", ["big"], ["b"])]
    return model([*nodes, node("Add", ["x", "b"], ["y"])], {"s": whole(2**20, 2**18)})


@attack
def a_tensor_as_large_as_a_row_says() -> bytes:
    nodes = [
        node("Cast", ["x"], ["i"], to=7),
        node("Reshape", ["i", "flat"], ["s"]),
        node("ConstantOfShape", ["s"], ["big"]),
        node("ReduceSum", ["big"], ["b"]),
        node("Add", ["x", "b"], ["y"]),
    ]
    return model(nodes, {"flat": whole(-1)})


@attack
def a_row_that_grows() -> bytes:
    nodes = [node("Expand", ["x", "s"], ["e"]), node("ReduceSum", ["e", "a"], ["y"])]
    return model(nodes, {"s": whole(1, 2**30, WIDTH), "a": whole(1)}, shape=["rows", 1, 4])


@attack
def one_hot_of_a_billion() -> bytes:
    nodes = [node("Cast", ["x"], ["i"], to=7), node("OneHot", ["i", "d", "v"], ["h"])]
    return model(
        [*nodes, node("ReduceSum", ["h", "a"], ["y"], keepdims=0)],
        {"d": np.array(2**30, np.int64), "v": floats(2), "a": whole(2)},
    )


@attack
def a_hundred_thousand_nodes() -> bytes:
    chain = [node("Relu", ["x" if i == 0 else f"v{i}"], [f"v{i + 1}"]) for i in range(1000)]

    def many(made: ModelProto) -> None:
        for i in range(1000, 100_000):
            made.graph.node.add(op_type="Relu", input=[f"v{i}"], output=[f"v{i + 1}"])

    return model(chain, output="v100000", change=many)


@attack
def a_cycle() -> bytes:
    return model([node("Add", ["x", "y"], ["a"]), node("Relu", ["a"], ["y"])])


@attack
def a_node_that_feeds_itself() -> bytes:
    return model([node("Add", ["x", "y"], ["y"])])


# --- files that lie ------------------------------------------------------------------------------


@attack
def weights_in_another_file() -> bytes:
    def outside(made: ModelProto) -> None:
        tensor = made.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="/etc/passwd")

    return model([node("MatMul", ["x", "w"], ["y"])], {"w": floats(WIDTH, 1)}, change=outside)


@attack
def weights_in_another_file_within_a_node() -> bytes:
    tensor = numpy_helper.from_array(floats(1, WIDTH), "c")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../secret")
    return model([node("Constant", [], ["c"], value=tensor), node("Add", ["x", "c"], ["y"])])


@attack
def weights_shorter_than_they_say() -> bytes:
    def cut(made: ModelProto) -> None:
        made.graph.initializer[0].raw_data = b"\0" * 4

    return model([node("MatMul", ["x", "w"], ["y"])], {"w": floats(WIDTH, 1)}, change=cut)


@attack
def weights_of_negative_size() -> bytes:
    def negative(made: ModelProto) -> None:
        made.graph.initializer[0].dims[:] = [-4, -1]

    return model([node("MatMul", ["x", "w"], ["y"])], {"w": floats(WIDTH, 1)}, change=negative)


@attack
def two_constants_of_one_name() -> bytes:
    def twice(made: ModelProto) -> None:
        made.graph.initializer.append(numpy_helper.from_array(whole(0), "a"))

    nodes = [node("ReduceSum", ["x", "a"], ["m"]), node("Add", ["x", "m"], ["y"])]
    return model(nodes, {"a": whole(1)}, change=twice)


@attack
def a_value_named_twice() -> bytes:
    nodes = [
        node("Relu", ["x"], ["v"]),
        node("ReduceMean", ["x"], ["v"], axes=[0]),
        node("Add", ["x", "v"], ["y"]),
    ]
    return model(nodes)


@attack
def a_constant_with_the_name_of_a_node() -> bytes:
    nodes = [node("Relu", ["x"], ["c"]), node("Add", ["x", "c"], ["y"])]
    return model(nodes, {"c": floats(1, WIDTH)})


@attack
def two_inputs_of_one_name() -> bytes:
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", WIDTH])
    other = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTH])
    return model([node("Relu", ["x"], ["y"])], inputs=[info, other])


@attack
def a_sparse_constant() -> bytes:
    def sparse(made: ModelProto) -> None:
        values = numpy_helper.from_array(floats(1), "w")
        indices = numpy_helper.from_array(whole(0), "i")
        made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))

    return model([node("Add", ["x", "w"], ["y"])], change=sparse)


@attack
def an_operator_set_named_twice() -> bytes:
    def twice(made: ModelProto) -> None:
        made.opset_import.append(helper.make_opsetid("ai.onnx", 9))

    return model([node("Softmax", ["x"], ["y"])], change=twice)


@attack
def an_operator_set_from_the_future() -> bytes:
    return model([node("Relu", ["x"], ["y"])], opset=99)


@attack
def no_operator_set() -> bytes:
    def none(made: ModelProto) -> None:
        del made.opset_import[:]

    return model([node("Relu", ["x"], ["y"])], change=none)


@attack
def an_unknown_attribute() -> bytes:
    return model([node("Relu", ["x"], ["y"], axis=0)])


@attack
def an_attribute_given_twice() -> bytes:
    twice = node("Softmax", ["x"], ["y"], axis=1)
    twice.attribute.append(helper.make_attribute("axis", 0))
    return model([twice])


@attack
def an_attribute_of_the_wrong_type() -> bytes:
    odd = node("Softmax", ["x"], ["y"])
    odd.attribute.append(helper.make_attribute("axis", 0.0))
    return model([odd])


@attack
def an_attribute_that_refers_to_a_function() -> bytes:
    odd = node("Softmax", ["x"], ["y"])
    odd.attribute.add(name="axis", ref_attr_name="axis", type=AttributeProto.INT)
    return model([odd])


@attack
def instructions_for_training() -> bytes:
    def training(made: ModelProto) -> None:
        made.training_info.add()

    return model([node("Relu", ["x"], ["y"])], change=training)


@attack
def a_batch_of_five() -> bytes:
    return model([node("Relu", ["x"], ["y"])], shape=[5, WIDTH])


@attack
def an_input_of_unknown_width() -> bytes:
    return model([node("Relu", ["x"], ["y"])], shape=["rows", "width"])


@attack
def a_score_that_is_a_constant() -> bytes:
    return model([node("Identity", ["c"], ["y"])], {"c": floats(1, 1)})


@attack
def a_score_of_texts() -> bytes:
    return model([node("Cast", ["x"], ["y"], to=8)])


@attack
def texts_read_as_numbers() -> bytes:
    nodes = [node("Cast", ["x"], ["t"], to=8), node("Cast", ["t"], ["y"], to=1)]
    return model(nodes)


@attack
def a_normalised_text() -> bytes:
    nodes = [
        node("StringNormalizer", ["x"], ["t"], case_change_action="LOWER"),
        node("LabelEncoder", ["t"], ["y"], keys_strings=["a"], values_floats=[1.0],
             domain="ai.onnx.ml"),
    ]  # fmt: skip
    return model(nodes, kind=TensorProto.STRING)


@attack
def a_regular_expression() -> bytes:
    nodes = [
        node("RegexFullMatch", ["x"], ["b"], pattern="(a+)+$"),
        node("Cast", ["b"], ["y"], to=1),
    ]
    return model(nodes, kind=TensorProto.STRING, opset=20)


# --- trees that are none -------------------------------------------------------------------------


def tree(**changes: Any) -> bytes:
    """A stump, with some of its attributes changed."""
    stump = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [1, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
        "n_targets": 1,
    }
    attributes = {**stump, **changes}
    made = node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    return model([made])


def _tree(what: str, **changes: Any) -> None:
    def made() -> bytes:
        return tree(**changes)

    made.__name__ = f"a_tree_{what}"
    attack(made)


@attack
def a_tree_that_leaves_a_score_unwritten() -> bytes:
    """A row that meets the first leaf alone gets one score; the other is what memory holds."""
    nodes = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.0, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "class_treeids": [0, 0, 0],
        "class_nodeids": [1, 2, 2],
        "class_ids": [0, 0, 1],
        "class_weights": [-0.25, 0.5, 0.75],
        "classlabels_int64s": [0, 1],
        "base_values": [0.125],
        "post_transform": "LOGISTIC",
    }
    made = node("TreeEnsembleClassifier", ["x"], ["label", "y"], domain="ai.onnx.ml", **nodes)
    return model([made])


_tree("with_a_loop", nodes_truenodeids=[0, 0, 0])
_tree("whose_branches_meet", nodes_falsenodeids=[1, 0, 0])
_tree("that_leads_outside", nodes_falsenodeids=[7, 0, 0])
_tree("that_looks_at_no_feature", nodes_featureids=[WIDTH, 0, 0])
_tree("that_looks_before_the_row", nodes_featureids=[-1, 0, 0])
_tree("with_a_target_too_many", target_ids=[0, 1])
_tree("with_a_negative_target", target_ids=[0, -1])
_tree("with_weights_at_a_branch", target_nodeids=[0, 2])
_tree("with_lists_of_two_lengths", nodes_values=[0.5])
_tree("with_an_unknown_mode", nodes_modes=["BRANCH_MEMBER", "LEAF", "LEAF"])
_tree("with_two_nodes_of_one_number", nodes_nodeids=[0, 1, 1])
_tree("with_negative_numbers", nodes_treeids=[-1, -1, -1])
_tree("with_a_node_nobody_reaches", nodes_modes=["LEAF", "LEAF", "LEAF"])
_tree("with_too_many_base_values", base_values=[0.0, 1.0, 2.0])
_tree("with_no_target", n_targets=0)
_tree("with_an_unknown_transform", post_transform="SECRET")


# --- other operators of classical models, with attributes that do not fit ------------------------


def _classical(what: str, operator: str, **attributes: Any) -> None:
    def made() -> bytes:
        outputs = ["label", "y"] if operator == "LinearClassifier" else ["y"]
        return model([node(operator, ["x"], outputs, domain="ai.onnx.ml", **attributes)])

    made.__name__ = f"{operator.lower()}_{what}"
    attack(made)


_classical("too_wide", "Scaler", offset=[0.0] * 9, scale=[1.0] * 9)
_classical("too_narrow", "Scaler", offset=[0.0, 0.0], scale=[1.0, 1.0])
_classical("too_wide", "Imputer", imputed_value_floats=[0.0] * 9, replaced_value_float=1.0)
_classical("short", "LinearRegressor", coefficients=[1.0])
_classical("of_two_targets", "LinearRegressor", coefficients=[1.0] * 4, targets=2)
_classical("short", "LinearClassifier", coefficients=[1.0], intercepts=[0.0, 0.0],
           classlabels_ints=[0, 1])  # fmt: skip
_classical("of_no_class", "LinearClassifier", coefficients=[1.0] * 4, intercepts=[0.0])
_classical("without_classes", "OneHotEncoder", zeros=1)
_classical("of_two_kinds", "OneHotEncoder", cats_int64s=[1], cats_strings=["a"])
_classical("with_fewer_values", "LabelEncoder", keys_floats=[1.0, 2.0], values_floats=[1.0])
_classical("with_other_widths", "FeatureVectorizer", inputdimensions=[9])
_classical("unchecked", "SVMRegressor", kernel_type="RBF")
