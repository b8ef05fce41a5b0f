"""Rules for ensembles of trees: that each is a tree, and looks at features that exist."""

from typing import Any

from heldout.models.calls import NUMBERS, Call, rule
from heldout.models.classical import TRANSFORMS, class_labels
from heldout.models.values import NotRowWise, Rows, Value

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
    return [Rows(kind, ()), Rows("float32", (labels,))]


@rule("ai.onnx.ml.TreeEnsembleRegressor")
def tree_regressor(call: Call) -> list[Value]:
    targets = call.integer("n_targets", 1)
    call.word("aggregate_function", ("SUM", "AVERAGE", "MIN", "MAX"), "SUM")
    if not 1 <= targets <= 2**16:
        raise NotRowWise("it must have one target or more")
    _check_ensemble(call, leaf="target", targets=targets)
    return [Rows("float32", (targets,))]


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
    lengths = {len(each) for each in (tree, node, feature, values, left, right, modes)}
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


def _values(call: Call, name: str) -> Any:
    """Numbers given as floats, or as a tensor of doubles; not as both."""
    plain, tensor = call.numbers(name), call.numbers(f"{name}_as_tensor")
    if len(plain) and len(tensor):
        raise NotRowWise(f"its attribute {name} is given twice")
    return plain if len(plain) else tensor


def _check_trees(tree: Any, keys: Any, branch: Any, children: tuple[Any, Any]) -> int:
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
        found = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
        if (ordered[found] != wanted)[branch].any():
            raise NotRowWise("one of its branches leads out of its tree")
        places.append(order[found])
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


def _check_leaves(call: Call, leaf: str, targets: int, leaves: Any) -> None:
    import numpy as np

    tree, node = call.integers(f"{leaf}_treeids"), call.integers(f"{leaf}_nodeids")
    target, weights = call.integers(f"{leaf}_ids"), _values(call, f"{leaf}_weights")
    if len({len(each) for each in (tree, node, target, weights)}) != 1 or not len(tree):
        raise NotRowWise("its lists of leaves differ in length")
    if target.min() < 0 or target.max() >= targets:
        raise NotRowWise("one of its leaves gives to a class or target that does not exist")
    if min(tree.min(), node.min()) < 0 or max(tree.max(), node.max()) >= _STRIDE:
        raise NotRowWise("one of its leaves has a number out of range")
    if not np.isin(tree * _STRIDE + node, leaves).all():
        raise NotRowWise("one of its weights belongs to a node that is no leaf")
    base = _values(call, "base_values")
    if len(base) not in ({0, targets, 1} if targets == 2 else {0, targets}):
        raise NotRowWise("its base values must be one a class or target")
