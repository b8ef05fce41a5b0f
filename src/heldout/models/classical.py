"""Rules for the operators of ai.onnx.ml: scalers, encoders, linear models and trees."""

from heldout.models.calls import FLOATS, NUMBERS, Array, Call, NotRowWise, RowWise, Value, rule

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@rule("ai.onnx.ml.Scaler", inputs=1)
def scaler(call: Call) -> list[Value]:
    value = call.rows(kinds=NUMBERS, rank=2)
    for name in ("offset", "scale"):
        _width(call.numbers(name), value.shape[0], name)
    return [RowWise("float32", value.shape)]


@rule("ai.onnx.ml.Imputer", uneven=2, inputs=1)
def imputer(call: Call) -> list[Value]:
    value = call.rows(kinds=NUMBERS, rank=2)
    call.ignore("replaced_value_float", "replaced_value_int64")
    filling = call.numbers if value.kind in FLOATS else call.integers
    _width(
        filling("imputed_value_floats" if value.kind in FLOATS else "imputed_value_int64s"),
        value.shape[0],
        "imputed values",
    )
    return [value]


@rule("ai.onnx.ml.Normalizer", uneven=6, inputs=1)
def normalizer(call: Call) -> list[Value]:
    # Of a value with one axis the runtime makes a single row: so two axes are needed.
    call.word("norm", ("MAX", "L1", "L2"), "MAX")
    return [RowWise("float32", call.rows(kinds=NUMBERS, rank=2).shape)]


@rule("ai.onnx.ml.OneHotEncoder", uneven=10, inputs=1)
def one_hot_encoder(call: Call) -> list[Value]:
    numbers, texts = call.integers("cats_int64s"), call.texts("cats_strings")
    call.integer("zeros", 1)
    value = call.rows(kinds=("string",) if texts else NUMBERS)
    if bool(len(numbers)) == bool(texts):
        raise NotRowWise("its categories must be integers or texts")
    return [RowWise("float32", (*value.shape, len(numbers) or len(texts)))]


_ENCODED = {"floats": "float32", "int64s": "int64", "strings": "string"}


@rule("ai.onnx.ml.LabelEncoder", uneven=10, inputs=1)
def label_encoder(call: Call) -> list[Value]:
    call.ignore("default_float", "default_int64", "default_string")
    if "classes_strings" in call.attributes:  # the first version: texts to numbers and back
        call.texts("classes_strings")
        value = call.rows(kinds=("string", "int64"))
        return [RowWise("int64" if value.kind == "string" else "string", value.shape)]
    keys, key_kind = _table(call, "keys")
    values, value_kind = _table(call, "values")
    if keys != values:
        raise NotRowWise("it must have as many keys as values")
    return [RowWise(value_kind, call.rows(kinds=(key_kind,)).shape)]


def _table(call: Call, side: str) -> tuple[int, str]:
    tables = [
        (len(call.texts(f"{side}_{kind}") if kind == "strings" else _numbers(call, side, kind)), t)
        for kind, t in _ENCODED.items()
    ]
    tables = [table for table in tables if table[0]]
    if len(tables) != 1:
        raise NotRowWise(f"its {side} must be of one type")
    return tables[0]


def _numbers(call: Call, side: str, kind: str) -> Array:
    name = f"{side}_{kind}"
    return call.numbers(name) if kind == "floats" else call.integers(name)


@rule("ai.onnx.ml.FeatureVectorizer")
def feature_vectorizer(call: Call) -> list[Value]:
    widths = [int(width) for width in call.integers("inputdimensions")]
    values = [call.rows(place, kinds=NUMBERS, rank=2) for place in range(len(call.given))]
    if [value.shape[0] for value in values] != widths:
        raise NotRowWise("its inputdimensions differ from the widths of its inputs")
    call.same_kind(NUMBERS)
    return [RowWise("float32", (sum(widths),))]


@rule("ai.onnx.ml.LinearRegressor", inputs=1)
def linear_regressor(call: Call) -> list[Value]:
    value, targets = call.rows(kinds=NUMBERS, rank=2), call.integer("targets", 1)
    call.word("post_transform", TRANSFORMS, "NONE")
    coefficients, intercepts = call.numbers("coefficients"), call.numbers("intercepts")
    if targets < 1 or len(coefficients) != targets * value.shape[0]:
        raise NotRowWise("it must have one coefficient per feature and target")
    if len(intercepts) not in (0, targets):
        raise NotRowWise("it must have one intercept per target")
    return [RowWise("float32", (targets,))]


@rule("ai.onnx.ml.LinearClassifier", inputs=1)
def linear_classifier(call: Call) -> list[Value]:
    value, (labels, kind) = call.rows(kinds=NUMBERS, rank=2), class_labels(call)
    call.word("post_transform", TRANSFORMS, "NONE")
    call.integer("multi_class", 0)
    coefficients, intercepts = call.numbers("coefficients"), call.numbers("intercepts")
    scored = len(intercepts)
    if not (scored == labels or (scored == 1 and labels == 2)):
        raise NotRowWise("it must have one intercept per class")
    if len(coefficients) != scored * value.shape[0]:
        raise NotRowWise("it must have one coefficient per feature and class")
    return [RowWise(kind, ()), RowWise("float32", (labels,))]


def class_labels(call: Call) -> tuple[int, str]:
    """Return how many classes there are, and of which type their labels."""
    texts = call.texts("classlabels_strings")
    whole = [*call.integers("classlabels_int64s"), *call.integers("classlabels_ints")]
    if bool(texts) == bool(whole) or len(texts or whole) < 2:
        raise NotRowWise("it must have two class labels or more, all integers or all texts")
    return len(texts or whole), "string" if texts else "int64"


def _width(numbers: Array, width: int, what: str) -> None:
    if len(numbers) not in (1, width):
        raise NotRowWise(f"its {what} must be one number, or one per feature")


# --- ensembles of trees: that each is a tree, and looks at features that exist ------------------

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
DEEPEST = 4096
_STRIDE = 2**31  # a tree's number and a node's, in one integer


@rule("ai.onnx.ml.TreeEnsembleClassifier")
def tree_classifier(call: Call) -> list[Value]:
    labels, kind = class_labels(call)
    _check_ensemble(call, leaf="class", targets=labels)
    if labels == 2 and call.integers("class_ids").any():
        # A row that meets leaves of class 0 alone would get one score, and the runtime's memory
        # for the other: what an earlier row left there.
        raise NotRowWise("its leaves must all give to the first of its two classes")
    return [RowWise(kind, ()), RowWise("float32", (labels,))]


@rule("ai.onnx.ml.TreeEnsembleRegressor")
def tree_regressor(call: Call) -> list[Value]:
    targets = call.integer("n_targets", 1)
    call.word("aggregate_function", ("SUM", "AVERAGE", "MIN", "MAX"), "SUM")
    if not 1 <= targets <= 2**16:
        raise NotRowWise("it must have one target or more")
    _check_ensemble(call, leaf="target", targets=targets)
    return [RowWise("float32", (targets,))]


def _check_ensemble(call: Call, *, leaf: str, targets: int) -> None:
    import numpy as np

    call.only(1)
    width = call.rows(kinds=NUMBERS, rank=2).shape[0]
    call.word("post_transform", TRANSFORMS, "NONE")
    tree, node = call.integers("nodes_treeids"), call.integers("nodes_nodeids")
    feature, values = call.integers("nodes_featureids"), _values(call, "nodes_values")
    left, right = call.integers("nodes_truenodeids"), call.integers("nodes_falsenodeids")
    modes = np.asarray(call.texts("nodes_modes"), dtype=object)
    count = len(tree)
    lengths = {len(column) for column in (tree, node, feature, values, left, right, modes)}
    if lengths != {count} or count < 1:
        raise NotRowWise("its lists of nodes differ in length")
    for name in ("nodes_hitrates", "nodes_hitrates_as_tensor"):
        call.ignore(name)
    tracks = call.integers("nodes_missing_value_tracks_true")
    if len(tracks) not in (0, count):
        raise NotRowWise("its list of missing values differs in length from its nodes")
    if not set(modes.tolist()) <= {*MODES, "LEAF"}:
        raise NotRowWise("one of its nodes has a mode that the verifier does not know")
    numbers = np.concatenate([tree, node])
    if numbers.min() < 0 or numbers.max() >= _STRIDE:
        raise NotRowWise("one of its trees or nodes has a number out of range")
    branch = modes != "LEAF"
    if branch.any() and not (feature[branch].min() >= 0 and feature[branch].max() < width):
        raise NotRowWise(f"one of its nodes looks at a feature that is not one of {width}")
    keys = tree * _STRIDE + node
    call.steps = _check_trees(tree, keys, branch, (left, right))
    _check_leaves(call, leaf, targets, keys[~branch])


def _values(call: Call, name: str) -> Array:
    """Numbers given as floats, or as a tensor of doubles; not as both."""
    plain, tensor = call.numbers(name), call.numbers(f"{name}_as_tensor")
    if len(plain) and len(tensor):
        raise NotRowWise(f"its attribute {name} is given twice")
    return plain if len(plain) else tensor


def _check_trees(tree: Array, keys: Array, branch: Array, children: tuple[Array, Array]) -> int:
    """Check that every node is reached once from the first of its tree: no loop, no two parents.

    Return the steps of a row that takes the longest way down every tree.
    """
    import numpy as np

    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    if (ordered[1:] == ordered[:-1]).any():
        raise NotRowWise("two of its nodes have the same number")
    places = []
    for side in children:
        if branch.any() and (side[branch].min() < 0 or side[branch].max() >= _STRIDE):
            raise NotRowWise("one of its branches leads out of its tree")
        wanted = np.where(branch, tree * _STRIDE + side, ordered[0])
        nearest = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
        if (ordered[nearest] != wanted)[branch].any():
            raise NotRowWise("one of its branches leads out of its tree")
        places.append(order[nearest])
    # The runtime begins at the first node of each run of the same tree.
    roots = np.flatnonzero(np.concatenate([[True], tree[1:] != tree[:-1]]))
    if len(np.unique(tree)) != len(roots):
        raise NotRowWise("the nodes of one of its trees do not stand together")
    reached = np.zeros(len(tree), int)
    front, steps = roots, 0
    for _ in range(DEEPEST):
        np.add.at(reached, front, 1)
        if reached.max() > 1:
            raise NotRowWise("one of its trees has a node with two parents, or a loop")
        front = front[branch[front]]
        if not len(front):
            break
        steps += len(np.unique(tree[front]))
        front = np.concatenate([places[0][front], places[1][front]])
    else:
        raise NotRowWise(f"one of its trees is deeper than {DEEPEST}")
    if reached.min() < 1:
        raise NotRowWise("one of its nodes cannot be reached from the first of its tree")
    return steps


def _check_leaves(call: Call, leaf: str, targets: int, leaves: Array) -> None:
    import numpy as np

    tree, node = call.integers(f"{leaf}_treeids"), call.integers(f"{leaf}_nodeids")
    target, weights = call.integers(f"{leaf}_ids"), _values(call, f"{leaf}_weights")
    if len({len(column) for column in (tree, node, target, weights)}) != 1 or not len(tree):
        raise NotRowWise("its lists of leaves differ in length")
    if target.min() < 0 or target.max() >= targets:
        raise NotRowWise("one of its leaves gives to a class or target that does not exist")
    if min(tree.min(), node.min()) < 0 or max(tree.max(), node.max()) >= _STRIDE:
        raise NotRowWise("one of its leaves has a number out of range")
    if not np.isin(tree * _STRIDE + node, leaves).all():
        raise NotRowWise("one of its weights belongs to a node that is no leaf")
    base = _values(call, "base_values")
    if len(base) not in ({0, targets, 1} if targets == 2 else {0, targets}):
        raise NotRowWise("its base values must be one per class or target")
