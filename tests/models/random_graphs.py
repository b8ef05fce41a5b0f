"""Random graphs, row-wise and not: what a careless or hostile exporter could write."""

from typing import Any

import attacks as made  # beside this file
import numpy as np

WIDTH = made.WIDTH
UNARY = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Floor", "Identity", "Softsign", "Erf", "Exp"]
BINARY = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"]
COMPARE = ["Less", "Greater", "Equal", "LessOrEqual"]
REDUCE = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceLogSumExp"]
ML = "ai.onnx.ml"
SHAPES = [(), (1,), (2,), (WIDTH,), (1, 1), (1, WIDTH), (WIDTH, 1), (2, WIDTH), (1, 1, WIDTH)]


class Maker:
    """Draws nodes one after the other; most of them fit what is there, and some mix rows."""

    def __init__(self, source: np.random.Generator, batch: int) -> None:
        self.source, self.batch = source, batch
        self.opset = int(self.pick([11, 13, 18, 20]))
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.floats = ["x"]
        self.bools: list[str] = []

    def pick(self, options: Any) -> Any:
        return options[int(self.source.integers(len(options)))]

    def value(self) -> str:
        """A late value more often than an early one."""
        return self.floats[-1] if self.source.random() < 0.6 else str(self.pick(self.floats))

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def numbers(self) -> str:
        shape = self.pick(SHAPES)
        return self.constant(np.asarray(self.source.normal(size=shape), np.float32))

    def add(
        self,
        operator: str,
        inputs: list[str],
        *,
        kind: str = "float",
        also: int = 0,
        **attributes: Any,
    ) -> None:
        """One node; `also` so many outputs that nothing needs."""
        name = f"v{len(self.nodes)}"
        outputs = [name, *(f"{name}_{i}" for i in range(also))]
        self.nodes.append(made.node(operator, inputs, outputs, **attributes))
        if kind == "int":
            self.nodes.append(made.node("Cast", [name], [f"{name}f"], to=1))
            name = f"{name}f"
        (self.bools if kind == "bool" else self.floats).append(name)

    def axis(self) -> int:
        return int(self.pick([1, 1, -1, -1, 0, -2, 2]))

    def step(self) -> None:
        getattr(self, self.pick(STEPS))(self.value())

    def other(self) -> str:
        return self.numbers() if self.source.random() < 0.5 else self.value()

    def maybe_axis(self) -> dict[str, int]:
        return {"axis": self.axis()} if self.source.random() < 0.8 else {}

    def make_unary(self, x: str) -> None:
        self.add(self.pick(UNARY), [x])

    def make_binary(self, x: str) -> None:
        pair = [x, self.other()] if self.source.random() < 0.7 else [self.other(), x]
        self.add(self.pick(BINARY), pair)

    def make_reduction(self, x: str) -> None:
        keep = {"keepdims": int(self.source.integers(2))}
        name = self.pick(REDUCE)
        axis = self.axis()
        if self.source.random() < 0.1:
            self.add(name, [x], **keep)
        elif self.opset >= 18 or (name == "ReduceSum" and self.opset >= 13):
            self.add(name, [x, self.integers(axis)], **keep)
        else:
            self.add(name, [x], axes=[axis], **keep)

    def make_softmax(self, x: str) -> None:
        self.add(self.pick(["Softmax", "LogSoftmax", "Hardmax"]), [x], **self.maybe_axis())

    def make_reshape(self, x: str) -> None:
        options = [-1, 0, 1, 1, 2, WIDTH, self.batch]
        target = [self.pick(options) for _ in range(self.pick([1, 2, 2, 3]))]
        self.add("Reshape", [x, self.integers(*target)])

    def make_reshape_by_shape(self, x: str) -> None:
        name = f"s{len(self.nodes)}"
        self.nodes += [
            made.node("Shape", [self.value()], [f"{name}a"]),
            made.node("Slice", [f"{name}a", *(self.integers(i) for i in (0, 1))], [f"{name}b"]),
            made.node("Concat", [f"{name}b", self.integers(self.pick([-1, 1, WIDTH]))], [name],
                      axis=0),
        ]  # fmt: skip
        self.add(self.pick(["Reshape", "Expand"]), [x, name])

    def make_filled(self, x: str) -> None:
        name = f"s{len(self.nodes)}"
        self.nodes.append(made.node("Shape", [x], [name]))
        self.add("ConstantOfShape", [name])

    def make_transpose(self, x: str) -> None:
        order = self.source.permutation(self.pick([2, 2, 3]))
        self.add("Transpose", [x], perm=[int(i) for i in order])

    def make_squeeze(self, x: str) -> None:
        name, axis = self.pick(["Unsqueeze", "Squeeze"]), self.axis()
        if self.opset >= 13:
            self.add(name, [x, self.integers(axis)])
        else:
            self.add(name, [x], axes=[axis])

    def make_concat(self, x: str) -> None:
        self.add("Concat", [x, self.value()], axis=self.axis())

    def make_slice(self, x: str) -> None:
        bounds = [self.pick([0, 1, -1]), self.pick([1, 2, 3, 2**31 - 1, -1])]
        given = [*bounds, self.axis(), self.pick([1, 1, 2, -1])]
        kept = given if self.source.random() < 0.8 else bounds
        self.add("Slice", [x, *(self.integers(each) for each in kept)])

    def make_gather(self, x: str) -> None:
        picks = [int(i) for i in self.source.integers(-2, 3, self.pick([1, 1, 2]))]
        self.add("Gather", [x, self.integers(*picks)], **self.maybe_axis())

    def make_features(self, x: str) -> None:
        picks = [int(i) for i in self.source.integers(0, 4, 2)]
        self.add("ArrayFeatureExtractor", [x, self.integers(*picks)], domain=ML)

    def make_product(self, x: str) -> None:
        weights = self.constant(made.floats(self.pick([WIDTH, 1, 2]), self.pick([1, WIDTH, 3])))
        self.add("MatMul", [x, weights] if self.source.random() < 0.8 else [x, self.value()])

    def make_gemm(self, x: str) -> None:
        weights = self.constant(made.floats(self.pick([WIDTH, 2]), self.pick([1, WIDTH])))
        bias = [self.numbers()] if self.source.random() < 0.5 else []
        self.add("Gemm", [x, weights, *bias], **({"transA": 1} if self.pick(range(5)) == 0 else {}))

    def make_best(self, x: str) -> None:
        keep = {"keepdims": int(self.source.integers(2))}
        self.add(self.pick(["ArgMax", "ArgMin"]), [x], kind="int", **self.maybe_axis(), **keep)

    def make_comparison(self, x: str) -> None:
        self.add(self.pick(COMPARE), [x, self.other()], kind="bool")

    def make_choice(self, x: str) -> None:
        if self.bools:
            self.add("Where", [self.pick(self.bools), x, self.value()])

    def make_expanded(self, x: str) -> None:
        shape = [self.pick([1, 1, self.batch, WIDTH]) for _ in range(self.pick([1, 2, 3]))]
        self.add("Expand", [x, self.integers(*shape)])

    def make_sum(self, x: str) -> None:
        self.add("CumSum", [x, self.constant(np.array(self.axis(), np.int64))])

    def make_flat(self, x: str) -> None:
        self.add(self.pick(["Flatten", "LpNormalization"]), [x], **self.maybe_axis())

    def make_largest(self, x: str) -> None:
        self.add("TopK", [x, self.integers(self.pick([1, 2]))], also=1, **self.maybe_axis())

    def make_split(self, x: str) -> None:
        many = {"num_outputs": 2} if self.opset >= 18 else {}
        self.add("Split", [x], also=1, **self.maybe_axis(), **many)

    def make_one_hot(self, x: str) -> None:
        name = f"i{len(self.nodes)}"
        self.nodes.append(made.node("Cast", [x], [name], to=7))
        depth = self.constant(np.array(3, np.int64))
        self.add("OneHot", [name, depth, self.constant(made.floats(2))], **self.maybe_axis())

    def make_normalised(self, x: str) -> None:
        width = self.pick([1, WIDTH])
        weights = [self.constant(np.abs(made.floats(width)) + 1) for _ in range(4)]
        if self.source.random() < 0.5:
            self.add("BatchNormalization", [x, *weights])
        else:
            self.add("LayerNormalization", [x, *weights[:2]], **self.maybe_axis())

    def make_classical(self, x: str) -> None:
        width = self.pick([1, WIDTH])
        name, given = self.pick(
            [
                ("Scaler", {"offset": [0.5] * width, "scale": [2.0] * width}),
                ("Normalizer", {"norm": "L1"}),
                ("Binarizer", {"threshold": 0.5}),
                ("Imputer", {"imputed_value_floats": [1.0] * width}),
                ("OneHotEncoder", {"cats_int64s": [0, 1, 2]}),
                ("LinearRegressor", {"coefficients": [1.0] * width * 2, "targets": 2}),
                ("FeatureVectorizer", {"inputdimensions": [width]}),
                ("LabelEncoder", {"keys_floats": [1.0, 0.0], "values_floats": [3.0, 4.0]}),
            ]
        )
        self.add(name, [x], domain=ML, **given)


STEPS = [name for name in vars(Maker) if name.startswith("make_")]


def random_graph(seed: int, *, batch: int) -> bytes:
    """One graph of up to six steps; the same for the same seed."""
    maker = Maker(np.random.default_rng(seed), batch)
    while len(maker.nodes) < 1 or (len(maker.nodes) < 7 and maker.source.random() < 0.75):
        maker.step()
    return bytes(
        made.model(maker.nodes, maker.constants, output=maker.floats[-1], opset=maker.opset)
    )
