"""Models as people export them are proven, and score as their own library does."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import heldout as ho
from heldout.models import sandbox
from heldout.models.verify import examine

pytestmark = pytest.mark.skipif(not sandbox.available()["seccomp"], reason="no seccomp here")
pytest.importorskip("skl2onnx")

ROWS, WIDTH = 400, 6
NAMES = [f"x{i}" for i in range(WIDTH)]


def numbers(seed: int = 0) -> tuple[Any, Any, Any]:
    """Features, a label with two classes and one with three."""
    source = np.random.default_rng(seed)
    x = source.normal(size=(ROWS, WIDTH)).astype(np.float32)
    signal = x[:, 0] - x[:, 1] * x[:, 2] + source.normal(size=ROWS) * 0.3
    return x, (signal > 0).astype(int), np.digitize(signal, [-0.7, 0.7])


def scored(content: bytes, frame: pd.DataFrame, **options: Any) -> Any:
    model = ho.models.load(content)
    assert model.row_wise, model.why_not
    found = ho.models.score(model, frame, default=-9.0, **options)
    table = found.to_arrow()
    return np.column_stack([table[name].to_numpy() for name in found.scores])


def converted(estimator: Any, x: Any, **options: Any) -> bytes:
    from skl2onnx import to_onnx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bytes(to_onnx(estimator, x[:1], **options).SerializeToString())


def estimators() -> dict[str, Any]:
    from sklearn import ensemble, linear_model, naive_bayes, neural_network, preprocessing
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    logistic = linear_model.LogisticRegression
    return {
        "logistic": logistic(),
        "boosting": ensemble.GradientBoostingClassifier(n_estimators=20),
        "forest": ensemble.RandomForestClassifier(n_estimators=20, random_state=0),
        "extra": ensemble.ExtraTreesClassifier(n_estimators=10, random_state=0),
        "network": neural_network.MLPClassifier((8,), max_iter=50, random_state=0),
        "bayes": naive_bayes.GaussianNB(),
        "scaled": make_pipeline(preprocessing.StandardScaler(), logistic()),
        "polynomial": make_pipeline(preprocessing.PolynomialFeatures(2), logistic(max_iter=500)),
        "imputed": make_pipeline(SimpleImputer(), preprocessing.MinMaxScaler(), logistic()),
    }


# One of each kind of graph here: linear, trees, a network, and columns that are made on the way.
OFTEN = ("logistic", "boosting", "network", "imputed")


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.slow] * (each not in OFTEN)) for each in estimators()],
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_classifiers_are_proven_and_score_alike(name: str) -> None:
    x, y, _ = numbers()
    estimator = estimators()[name].fit(x, y)
    found = scored(converted(estimator, x), pd.DataFrame(x, columns=NAMES), features=NAMES)
    assert np.abs(found[:, 0] - estimator.predict_proba(x)[:, 1]).max() < 1e-5


@pytest.mark.filterwarnings("ignore")
def test_three_classes_have_a_column_each() -> None:
    from sklearn.ensemble import RandomForestClassifier

    x, _, y = numbers()
    words = np.array(["low", "middle", "high"])[y]
    forest = RandomForestClassifier(n_estimators=10, random_state=0).fit(x, words)
    content, frame = converted(forest, x), pd.DataFrame(x, columns=NAMES)
    found = ho.models.score(ho.models.load(content), frame, features=NAMES)
    assert found.scores == tuple(f"score_{each}" for each in forest.classes_)
    assert np.abs(scored(content, frame, features=NAMES) - forest.predict_proba(x)).max() < 1e-5


@pytest.mark.filterwarnings("ignore")
def test_regressors_score_alike() -> None:
    from sklearn import ensemble, linear_model, neural_network

    x, frame = numbers()[0], pd.DataFrame(numbers()[0], columns=NAMES)
    for estimator in (
        linear_model.Ridge(),
        ensemble.GradientBoostingRegressor(n_estimators=10),
        ensemble.RandomForestRegressor(n_estimators=10),
        neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=50),
    ):
        estimator.fit(x, x[:, 0] - x[:, 1])
        found, _ = examine(converted(estimator, x), output=None)
        assert found["problems"] == []
    found = scored(converted(estimator, x), frame, features=NAMES)
    assert np.abs(found[:, 0] - estimator.predict(x)).max() < 1e-5


def clinic() -> pd.DataFrame:
    source = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "age": source.normal(60, 12, ROWS).astype(np.float32),
            "visits": source.integers(0, 9, ROWS),
            "sex": source.choice(["F", "M"], ROWS),
            "site": source.choice(["north", "south", "west"], ROWS),
        }
    )


@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_with_scaler_and_one_hot_takes_columns_by_name() -> None:
    from skl2onnx import to_onnx
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = clinic()
    y = (frame["age"] + 10 * (frame["sex"] == "M") > 65).astype(int)
    steps = make_column_transformer(
        (StandardScaler(), ["age", "visits"]),
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "site"]),
    )
    pipeline = make_pipeline(steps, LogisticRegression()).fit(frame, y)
    content = bytes(to_onnx(pipeline, frame[:1]).SerializeToString())
    assert [each.name for each in ho.models.load(content).inputs] == list(frame.columns)
    found = scored(content, frame.sample(frac=1, random_state=0).sort_index())
    assert np.abs(found[:, 0] - pipeline.predict_proba(frame)[:, 1]).max() < 1e-5


def test_xgboost_is_proven_and_scores_alike() -> None:
    xgboost = pytest.importorskip("xgboost")
    onnxmltools = pytest.importorskip("onnxmltools")
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, y, three = numbers()
    for label in (y, three):
        model = xgboost.XGBClassifier(n_estimators=30, max_depth=4).fit(x, label)
        kinds = [("x", FloatTensorType([None, WIDTH]))]
        content = onnxmltools.convert_xgboost(model, initial_types=kinds).SerializeToString()
        found = scored(content, pd.DataFrame(x, columns=NAMES), features=NAMES)
        expected = model.predict_proba(x)
        assert np.abs(found - (expected[:, 1:] if label is y else expected)).max() < 1e-5


def test_lightgbm_is_proven_and_scores_alike() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    onnxmltools = pytest.importorskip("onnxmltools")
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, y, _ = numbers()
    x[0, 0] = np.nan
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1).fit(x, y)
    kinds = [("x", FloatTensorType([None, WIDTH]))]
    content = onnxmltools.convert_lightgbm(model, initial_types=kinds).SerializeToString()
    found = scored(content, pd.DataFrame(x, columns=NAMES), features=NAMES)
    assert np.abs(found[:, 0] - model.predict_proba(x)[:, 1]).max() < 1e-5


def test_a_network_of_pytorch_is_proven_and_scores_alike(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")

    layers = torch.nn
    network = layers.Sequential(
        layers.Linear(WIDTH, 16),
        layers.BatchNorm1d(16),
        layers.ReLU(),
        layers.Dropout(0.2),
        layers.LayerNorm(16),
        layers.Linear(16, 1),
        layers.Sigmoid(),
    ).eval()
    x = torch.from_numpy(numbers()[0])
    torch.onnx.export(
        network,
        (x[:2],),
        tmp_path / "network.onnx",
        dynamo=True,
        dynamic_shapes=({0: torch.export.Dim("rows")},),
        external_data=False,
        verbose=False,
    )
    content = (tmp_path / "network.onnx").read_bytes()
    found = scored(content, pd.DataFrame(x.numpy(), columns=NAMES), features=NAMES)
    assert np.abs(found[:, 0] - network(x).detach().numpy()[:, 0]).max() < 1e-5
