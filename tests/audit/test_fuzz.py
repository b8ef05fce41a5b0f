"""Whatever comes in: a typed error in one line or a valid answer. Hypothesis looks for others.

atheris was left out untried: one more dependency, and the parsers below ours (DuckDB, Arrow,
SQLite) are other people's. So coverage does not guide these searches.
"""

import contextlib
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import heldout as ho
from heldout.audit import exposure
from heldout.cli import main
from heldout.errors import HeldoutError
from heldout.privacy.events import Event

CANARY = "Canaria"
quick = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.binary(max_size=4),
    st.just(CANARY),
    st.sampled_from([0, 1, 0.5, "0", "1", "0.5", -0.0, 5e-324, 1e308]),
)
names = st.one_of(
    st.sampled_from(["y", "p", "P", "", "label", "é", "e\u0301"]), st.text(max_size=8)
)


def refused(action: Any) -> bool:
    """Whether it was refused, properly; anything else that is raised fails the test."""
    found: HeldoutError | None = None
    try:
        action()
    except HeldoutError as error:
        found = error
    if found is not None:
        assert "\n" not in str(found)
        assert CANARY not in f"{found} {found.__context__!r}"
    return found is not None


def ask(dataset: ho.Dataset) -> None:
    session = ho.Session(dataset, budget=ho.Budget(epsilon=100))
    for answer in (session.confusion(epsilon="1"), session.brier(epsilon="1")):
        assert math.isfinite(float(answer))
        assert CANARY not in json.dumps(answer.as_dict(), allow_nan=False)


@quick
@given(
    table=st.dictionaries(names, st.lists(cells, max_size=5), max_size=4),
    label=names,
    score=names,
)
def test_any_columns(table: dict[str, Any], label: str, score: str) -> None:
    refused(lambda: ask(ho.Dataset(table, label=label, score=score)))


@quick
@given(labels=st.lists(cells, min_size=1, max_size=6), data=st.data())
def test_any_labels_and_scores(labels: list[Any], data: Any) -> None:
    scores = data.draw(st.lists(cells, min_size=len(labels), max_size=len(labels)))
    refused(lambda: ask(ho.Dataset({"y": labels, "p": scores}, label="y", score="p")))


@quick
@given(
    positive=cells,
    negative=cells,
    score_range=st.one_of(cells, st.tuples(cells, cells)),
    rows_per_unit=cells,
    neighbours=cells,
)
def test_any_declaration(**words: Any) -> None:
    rows = {"y": [1, 0, 1], "p": [0.5, 0.25, 1.0], "u": [1, 2, 3], "who": [CANARY] * 3}
    for word, value in words.items():
        if value == CANARY or (isinstance(value, tuple) and CANARY in value):
            continue
        unit = {"unit": "u"} if word == "rows_per_unit" else {}
        refused(lambda w=word, v=value, u=unit: ask(ho.Dataset(rows, label="y", score="p", **{w: v}, **u)))  # fmt: skip # noqa: E501


@quick
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_as_a_file(content: bytes, tmp_path: Path) -> None:
    for name in ("a.csv", "a.tsv", "a.parquet"):
        path = tmp_path / name
        path.write_bytes(content if name == "a.parquet" else b"y,p\n" + content)
        refused(lambda p=path: ask(ho.Dataset(p, label="y", score="p")))


@quick
@given(epsilon=cells, threshold=cells)
def test_any_question(epsilon: Any, threshold: Any) -> None:
    dataset = ho.Dataset({"y": [1, 0], "p": [0.5, 0.25]}, label="y", score="p")
    session = ho.Session(dataset, budget=ho.Budget(epsilon=50))
    before = session.remaining
    if CANARY in (epsilon, threshold):
        return
    if refused(lambda: session.confusion(threshold=threshold, epsilon=epsilon)):
        assert session.remaining == before, "a refusal costs nothing"
    refused(lambda: session.auc(epsilon=epsilon))
    refused(lambda: ho.plan(rows=100, positives=10, auc=0.8, epsilon=epsilon))
    refused(lambda: ho.plan(rows=epsilon, positives=threshold, auc=0.8, target=0.1))


@quick
@given(labels=st.lists(cells, max_size=6), scores=st.lists(cells, max_size=6))
def test_any_arrays(labels: list[Any], scores: list[Any]) -> None:
    refused(lambda: ho.confusion_matrix(labels, scores, epsilon="1"))
    refused(lambda: ho.roc_auc_score(labels, scores, epsilon="1"))


@quick
@given(
    content=st.recursive(
        cells, lambda each: st.lists(each, max_size=3) | st.dictionaries(names, each, max_size=3)
    )
)
def test_any_json_as_an_event(content: Any) -> None:
    refused(lambda: Event.from_dict(content))
    with contextlib.suppress(TypeError, ValueError):
        text = json.dumps(content)
        refused(lambda: Event.decode(text))


@quick
@given(content=st.binary(max_size=300))
def test_any_bytes_as_a_ledger(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    for each in tmp_path.iterdir():
        each.unlink()
    path.write_bytes(content)
    refused(lambda: ho.Ledger.open(path))


@quick
@given(
    words=st.lists(
        st.one_of(
            st.sampled_from(
                [
                    "evaluate",
                    "plan",
                    "attack",
                    "audit",
                    "pr",
                    "ledger",
                    "compare",
                    "reproduce",
                    "--label",
                    "--score",
                    "--epsilon",
                    "--rows",
                    "--list",
                    "--json",
                    "a.csv",
                    "auc",
                ]
            ),
            st.text(max_size=6),
        ),
        max_size=7,
    )
)
def test_any_words_on_the_command_line(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(f"y,p,who\n1,0.5,{CANARY}\n0,0.2,{CANARY}\n")
    out, err = io.StringIO(), io.StringIO()
    if words[:1] == ["reproduce"] and "--list" not in words:
        return
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    assert code in (0, 1, 2)
    assert "internal error" not in err.getvalue()
    assert CANARY not in out.getvalue() + err.getvalue()


@quick
@given(
    labels=st.lists(st.integers(0, 1), min_size=2, max_size=12),
    data=st.data(),
    metric=st.sampled_from(["auc", "average-precision", "roc"]),
    decimals=st.one_of(st.none(), st.integers(0, 15)),
)
def test_any_small_data_can_be_attacked(
    labels: list[int], data: Any, metric: str, decimals
) -> None:
    scores = data.draw(st.lists(st.floats(0, 1), min_size=len(labels), max_size=len(labels)))
    assert 0 <= exposure(labels, scores, metric=metric, decimals=decimals).recovered <= 1
