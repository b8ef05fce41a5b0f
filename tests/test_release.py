"""The door and what comes out of it: a sentence, stable JSON, and nothing that is private."""

import html.parser
import json
import pickle
import re
from typing import Any

import numpy as np
import pytest

import heldout as ho
from heldout.errors import AnswerLost, BudgetExceeded
from heldout.intervals.measure import Measure, Release
from heldout.kernel import Ledger
from heldout.kernel.noise import DiscreteLaplace

ROWS = 1729
TABLE: dict[str, Any] = {
    "y": [1] * 311 + [0] * (ROWS - 311),
    "p": np.linspace(0, 1, ROWS)[::-1],
    "who": np.arange(ROWS) // 2,
}


def release(neighbours: str = "replace-one", epsilon: str = "1/2", **options: Any) -> Any:
    declared: dict[str, Any] = {"label": "y", "score": "p", "neighbours": neighbours} | options
    session = ho.Session(ho.Dataset(TABLE, **declared), budget=ho.Budget(epsilon=10))
    return session.confusion(threshold=0.5, epsilon=epsilon)


# --- the sentence --------------------------------------------------------------------------------


def measure(value: float, interval: tuple[float, float], noise: tuple[float, float]) -> Measure:
    return Measure(
        value,
        name="accuracy",
        terms="epsilon 0.5, replace-one neighbours",
        interval=lambda level: interval,
        noise_interval=lambda level: noise,
    )


def test_a_measure_prints_as_the_sentence_that_was_promised() -> None:
    assert str(measure(0.861, (0.842, 0.879), (0.852, 0.870))) == (
        "accuracy 0.861, 95% interval 0.842 to 0.879 (privacy noise alone: ±0.009), "
        "epsilon 0.5, replace-one neighbours"
    )


NUMBER = r"\d+\.\d{3,9}"
SENTENCE = re.compile(
    rf"accuracy {NUMBER}, 95% interval {NUMBER} to {NUMBER} "
    rf"\(privacy noise alone: (±{NUMBER}|{NUMBER} to {NUMBER})\), epsilon 0.5, (?P<terms>.+)"
)


@pytest.mark.parametrize(
    ("options", "terms"),
    [
        ({}, "replace-one neighbours"),
        ({"neighbours": "add-remove"}, "add-remove neighbours"),
        (
            {"unit": "who", "rows_per_unit": 2},
            "replace-one neighbours, protecting each who with at most 2 rows",
        ),
    ],
    ids=str,
)
def test_a_release_prints_as_a_sentence_with_its_price_and_relation(
    options: dict[str, Any], terms: str
) -> None:
    found = release(**options)
    sentence, *matrix = str(found).split("\n")
    match = SENTENCE.fullmatch(sentence)
    assert match, str(found)
    assert match["terms"] == terms
    assert sentence == str(found.accuracy) == f"{found.accuracy}"
    assert matrix[0].split() == ["called", "negative", "called", "positive"]
    assert [line.split()[0] for line in matrix[1:]] == ["negatives", "positives", "Noise"]
    assert repr(found) == str(found)


def test_a_count_prints_without_decimals() -> None:
    assert re.fullmatch(
        r"true positives [\d,]+, 95% interval [\d,]+ to [\d,]+, epsilon 0.5, "
        r"replace-one neighbours",
        str(release().true_positives),
    )


@pytest.mark.parametrize("width", [1e-120, 1e-8, 0.5, 1e3, 1e140])
def test_a_sentence_of_any_scale_is_short(width: float) -> None:
    sentence = str(measure(width, (0, 2 * width), (width / 2, 3 * width / 2)))
    assert len(sentence) < 160
    assert float(sentence.split()[1].rstrip(",")) == pytest.approx(width, rel=0.01, abs=0)


def test_a_measure_is_a_float() -> None:
    half = measure(0.5, (0.4, 0.6), (0.45, 0.55))
    assert half == 0.5
    assert half + 1 == 1.5
    assert f"{half:.2f}" == "0.50"
    assert half.value == 0.5
    with pytest.raises(TypeError):
        pickle.dumps(half)


def test_an_interval_always_holds_its_value() -> None:
    odd = measure(0.9, (0.1, 0.2), (0.95, 0.97))
    assert odd.interval() == (0.1, 0.9)
    assert odd.noise_interval() == (0.9, 0.97)


# --- JSON ----------------------------------------------------------------------------------------

KEYS = {
    *("release", "value", "measures", "noisy", "loss", "protection", "rows"),
    *("parameters", "mechanism", "claim", "receipt"),
}


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_json_is_plain_and_stable(neighbours: str) -> None:
    found = release(neighbours)
    text = json.dumps(found.as_dict(), allow_nan=False)
    assert json.loads(text) == found.as_dict()
    assert set(found.as_dict()) >= KEYS
    assert found.as_dict()["loss"] == {"epsilon": "1/2", "delta": "0"}
    assert found.as_dict()["receipt"].keys() == {"sequence", "hash"}
    assert found.as_dict()["value"] == found.value
    for each in found.as_dict(0.9)["measures"].values():
        assert each.keys() == {"value", "level", "interval", "noise_interval", "informative"}
        assert each["level"] == 0.9
        assert each["interval"][0] <= each["value"] <= each["interval"][1]


def leaves(content: Any) -> Any:
    if isinstance(content, dict):
        for each in content.values():
            yield from leaves(each)
    elif isinstance(content, list | tuple):
        for each in content:
            yield from leaves(each)
    else:
        yield content


def attributes(found: object, depth: int = 6) -> Any:
    """Everything that can be reached from a release by looking."""
    yield found
    if depth and hasattr(found, "__dict__"):
        for each in vars(found).values():
            yield from attributes(each, depth - 1)


def test_neither_the_json_nor_the_object_holds_anything_private() -> None:
    """No row, no digest of the rows, and under add-remove no exact count."""
    dataset = ho.Dataset(TABLE, label="y", score="p", neighbours="add-remove")
    session = ho.Session(dataset, budget=ho.Budget(epsilon=10))
    found = session.confusion(threshold=0.5, epsilon="1/1000")
    text = json.dumps(found.as_dict())
    digest = dataset._fingerprint.hex()
    macs = session._ledger._storage.read(lambda tables: [tie.mac for tie in tables.ties()])
    for private in (digest, digest[:16], *macs, session._account.id):
        assert private not in text
    assert found.as_dict()["rows"] is None
    assert ROWS not in list(leaves(found.as_dict()))
    for each in attributes(found):
        assert not isinstance(each, ho.Dataset | ho.Session | Ledger)
        assert not isinstance(each, bytes)
        assert not (isinstance(each, int) and each == ROWS)


def test_what_is_public_does_not_depend_on_the_rows() -> None:
    """But for the noisy numbers and what is read off them, neighbours give the same JSON."""
    seen = []
    for rows in (5, 6):
        table = {"y": [1] * rows, "p": [0.5] * rows}
        dataset = ho.Dataset(table, label="y", score="p", neighbours="add-remove")
        found = ho.Session(dataset, budget=ho.Budget(epsilon=1)).confusion(epsilon=1).as_dict()
        for noisy in ("value", "measures", "noisy"):
            del found[noisy]
        del found["receipt"]["hash"]
        seen.append(json.dumps(found, sort_keys=True))
    assert seen[0] == seen[1]


# --- notebooks -----------------------------------------------------------------------------------


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "\"'><img src=x onerror=y>", "&"])
def test_the_html_escapes_what_people_named(hostile: str) -> None:
    table = TABLE | {hostile: TABLE["who"]}
    dataset = ho.Dataset(table, label="y", score="p", unit=hostile, name=hostile)
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1))
    shown = session.confusion(epsilon=1)._repr_html_()
    tags = Tags()
    tags.feed(shown)
    assert not tags.seen & {"script", "img"}
    assert hostile == "&" or hostile not in shown
    assert "Accuracy" in shown


# --- the order of the door -----------------------------------------------------------------------


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    order: list[str] = []

    def watch(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def wrapped(*arguments: Any, **keywords: Any) -> Any:
            order.append(name)
            return original(*arguments, **keywords)

        monkeypatch.setattr(owner, name, wrapped)

    watch(Ledger, "book")
    watch(ho.Dataset, "_fetch")
    watch(DiscreteLaplace, "sample")
    return order


def test_the_price_is_booked_before_a_row_is_read_or_noise_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = recorded(monkeypatch)
    release()
    assert order == ["book", "_fetch", "sample"]


def test_a_refused_booking_reads_and_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ho.Session(ho.Dataset(TABLE, label="y", score="p"), budget=ho.Budget(epsilon=1))
    order = recorded(monkeypatch)
    with pytest.raises(BudgetExceeded):
        session.confusion(epsilon=2)
    assert order == ["book"]
    assert session.remaining == ho.Loss.pure(1)


@pytest.mark.parametrize("owner", [ho.Dataset, DiscreteLaplace], ids=["reading", "drawing"])
@pytest.mark.parametrize("error", [RuntimeError, MemoryError, KeyboardInterrupt])
def test_what_fails_after_the_booking_stays_booked(
    owner: Any, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = ho.Session(ho.Dataset(TABLE, label="y", score="p"), budget=ho.Budget(epsilon=1))

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(owner, "_fetch" if owner is ho.Dataset else "sample", fail)
        with pytest.raises(AnswerLost if issubclass(error, Exception) else error):
            session.confusion(epsilon="1/4")
    assert session.spent == ho.Loss.pure("1/4")
    assert isinstance(session.confusion(epsilon="1/4"), Release)
    assert session.spent == ho.Loss.pure("1/2")


def test_asking_again_for_what_was_released_is_free_and_the_same() -> None:
    session = ho.Session(ho.Dataset(TABLE, label="y", score="p"), budget=ho.Budget(epsilon=1))
    found = session.confusion(epsilon=1)
    first = found.as_dict()
    for _ in range(3):
        assert found.as_dict() == first
        assert found.f_score(2) == found.f_score(2)
    assert len(session._ledger.entries(session._account)) == 1
