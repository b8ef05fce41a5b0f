"""Rules for the operators of ai.onnx.ml: scalers, encoders and linear models."""

from typing import Any

from heldout.models.calls import FLOATS, NUMBERS, Call, rule
from heldout.models.values import NotRowWise, Rows, Value

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@rule("ai.onnx.ml.Scaler")
def scaler(call: Call) -> list[Value]:
    call.only(1)
    value = call.rows(kinds=NUMBERS, rank=2)
    for name in ("offset", "scale"):
        _width(call.numbers(name), value.shape[0], name)
    return [Rows("float32", value.shape)]


@rule("ai.onnx.ml.Imputer", uneven=2)
def imputer(call: Call) -> list[Value]:
    call.only(1)
    value = call.rows(kinds=NUMBERS, rank=2)
    call.ignore("replaced_value_float", "replaced_value_int64")
    filling = call.numbers if value.kind in FLOATS else call.integers
    _width(
        filling("imputed_value_floats" if value.kind in FLOATS else "imputed_value_int64s"),
        value.shape[0],
        "imputed values",
    )
    return [value]


@rule("ai.onnx.ml.Normalizer", uneven=6)
def normalizer(call: Call) -> list[Value]:
    # Of a value with one axis the runtime makes a single row: so two axes are needed.
    call.only(1)
    call.word("norm", ("MAX", "L1", "L2"), "MAX")
    return [Rows("float32", call.rows(kinds=NUMBERS, rank=2).shape)]


@rule("ai.onnx.ml.OneHotEncoder", uneven=10)
def one_hot_encoder(call: Call) -> list[Value]:
    call.only(1)
    numbers, texts = call.integers("cats_int64s"), call.texts("cats_strings")
    call.integer("zeros", 1)
    value = call.rows(kinds=("string",) if texts else NUMBERS)
    if bool(len(numbers)) == bool(texts):
        raise NotRowWise("its categories must be integers or texts")
    return [Rows("float32", (*value.shape, len(numbers) or len(texts)))]


_ENCODED = {"floats": "float32", "int64s": "int64", "strings": "string"}


@rule("ai.onnx.ml.LabelEncoder", uneven=10)
def label_encoder(call: Call) -> list[Value]:
    call.only(1)
    call.ignore("default_float", "default_int64", "default_string")
    if "classes_strings" in call.attributes:  # the first version: texts to numbers and back
        call.texts("classes_strings")
        value = call.rows(kinds=("string", "int64"))
        return [Rows("int64" if value.kind == "string" else "string", value.shape)]
    keys, key_kind = _table(call, "keys")
    values, value_kind = _table(call, "values")
    if keys != values:
        raise NotRowWise("it must have as many keys as values")
    return [Rows(value_kind, call.rows(kinds=(key_kind,)).shape)]


def _table(call: Call, side: str) -> tuple[int, str]:
    found = [
        (len(call.texts(f"{side}_{kind}") if kind == "strings" else _numbers(call, side, kind)), t)
        for kind, t in _ENCODED.items()
    ]
    found = [each for each in found if each[0]]
    if len(found) != 1:
        raise NotRowWise(f"its {side} must be of one type")
    return found[0]


def _numbers(call: Call, side: str, kind: str) -> Any:
    name = f"{side}_{kind}"
    return call.numbers(name) if kind == "floats" else call.integers(name)


@rule("ai.onnx.ml.FeatureVectorizer")
def feature_vectorizer(call: Call) -> list[Value]:
    widths = [int(each) for each in call.integers("inputdimensions")]
    values = [call.rows(place, kinds=NUMBERS, rank=2) for place in range(len(call.given))]
    if [value.shape[0] for value in values] != widths:
        raise NotRowWise("its inputdimensions differ from the widths of its inputs")
    call.same_kind(NUMBERS)
    return [Rows("float32", (sum(widths),))]


@rule("ai.onnx.ml.LinearRegressor")
def linear_regressor(call: Call) -> list[Value]:
    call.only(1)
    value, targets = call.rows(kinds=NUMBERS, rank=2), call.integer("targets", 1)
    call.word("post_transform", TRANSFORMS, "NONE")
    coefficients, intercepts = call.numbers("coefficients"), call.numbers("intercepts")
    if targets < 1 or len(coefficients) != targets * value.shape[0]:
        raise NotRowWise("it must have one coefficient a feature and target")
    if len(intercepts) not in (0, targets):
        raise NotRowWise("it must have one intercept a target")
    return [Rows("float32", (targets,))]


@rule("ai.onnx.ml.LinearClassifier")
def linear_classifier(call: Call) -> list[Value]:
    call.only(1)
    value, (labels, kind) = call.rows(kinds=NUMBERS, rank=2), class_labels(call)
    call.word("post_transform", TRANSFORMS, "NONE")
    call.integer("multi_class", 0)
    coefficients, intercepts = call.numbers("coefficients"), call.numbers("intercepts")
    scored = len(intercepts)
    if not (scored == labels or (scored == 1 and labels == 2)):
        raise NotRowWise("it must have one intercept a class")
    if len(coefficients) != scored * value.shape[0]:
        raise NotRowWise("it must have one coefficient a feature and class")
    return [Rows(kind, ()), Rows("float32", (labels,))]


def class_labels(call: Call) -> tuple[int, str]:
    """How many classes there are, and of which type their labels."""
    texts = call.texts("classlabels_strings")
    whole = [*call.integers("classlabels_int64s"), *call.integers("classlabels_ints")]
    if bool(texts) == bool(whole) or len(texts or whole) < 2:
        raise NotRowWise("it must have two class labels or more, all integers or all texts")
    return len(texts or whole), "string" if texts else "int64"


def _width(found: Any, width: int, what: str) -> None:
    if len(found) not in (1, width):
        raise NotRowWise(f"its {what} must be one number, or one a feature")
