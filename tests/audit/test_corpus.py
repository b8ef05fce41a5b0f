"""A corpus of awkward input for every public entry: one typed line or a valid answer, and silence.

Every table carries canaries in its rows. Whatever happens, they are in no message, no answer, no
log, no ledger and no temporary file. tests/data/test_refusals.py says which error each bad table
gets; here nothing is said but that it is one of ours.
"""

import json
import logging
import math
import time
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import heldout as ho
from heldout.cli import main

# Of fifteen digits: seven come up by chance in the digits of noisy answers.
NUMBER = 867530912345678
CANARIES = ("Canaria", str(NUMBER))
NAN, INF = math.nan, math.inf
SUBNORMAL = 5e-324
NFC, NFD = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")


def frame(scores: Any, labels: Any = None, **more: Any) -> dict[str, Any]:
    rows = len(scores)
    labels = [i % 2 for i in range(rows)] if labels is None else labels
    return {"y": labels, "p": scores, "who": ["Canaria"] * rows, "n": [NUMBER] * rows, **more}


FRAMES: dict[str, Any] = {
    "subnormals": frame([SUBNORMAL, 0.0, 1.0, 2 * SUBNORMAL]),
    "minus zero": frame([-0.0, 0.0, 1.0, -0.0]),
    "NaN among them": pa.table(frame([0.5, NAN, 0.1, 0.2])),
    "infinities": frame([0.5, INF, -INF, 0.2]),
    "largest doubles": frame([1.7976931348623157e308, 0.0, -1.7976931348623157e308, 1.0]),
    "booleans for scores": frame([True, False, True, False]),
    "booleans for labels": frame([0.1, 0.2, 0.3, 0.4], [True, False, True, False]),
    "digits as text": frame(["0.5", "1", "0", "0.25"], ["1", "0", "1", "0"]),
    "odd digits": frame(["٠", "1e400", "0x1p-1", "1_0"]),
    "huge integers": frame([2**62, -(2**62), 1, 0]),
    "decimals": pa.table(
        frame(pa.array([0, 1, 0, 1]).cast(pa.decimal128(38, 10)), pa.array([0, 1, 0, 1], "uint8"))
    ),
    "half floats": pa.table(frame(pa.array(np.array([0.5, 1, 0, 0.25], dtype=np.float16)))),
    "dictionary": pa.table(frame(pa.array(["0.5", "1", "0", "1"]).dictionary_encode())),
    "nested": frame([{"a": 0.5}] * 4),
    "bytes": frame([b"0.5", b"\x00", b"1", b"0"]),
    "dates": frame(pd.date_range("2020", periods=4).to_list()),
    "all NULL": frame([None] * 4),
    "one row": frame([0.5]),
    "no rows": {"y": pa.array([], "int64"), "p": pa.array([], "float64")},
    "NUL in a cell": frame([0.5, 1, 0, 0.25], ["a\0", "b", "a\0", "b"]),
    "surrogates": frame(["\ud800", "1", "0", "1"]),
    "pandas objects": pd.DataFrame({"y": [1, 0], "p": pd.Series([0.5, "Canaria"], dtype=object)}),
    "pandas with copies": pd.DataFrame([[1, 0.5, 2]], columns=["y", "p", "p"]),
    "pandas with numbers for names": pd.DataFrame({0: [1, 0], "y": [1, 0], "p": [0.5, 0.1]}),
    "a list of lists": [[1, 0.5], [0, 0.2]],
    "a text": "nowhere",
    "nothing": None,
}

NAMES: dict[str, tuple[str, str]] = {
    "composed": (NFC, NFC),
    "composed asked decomposed": (NFC, NFD),
    "both spellings": (NFC + "x", NFD + "x"),
    "right to left": ("\u202eרישום", "\u202eרישום"),
    "NUL": ("a\0b", "a\0b"),
    "a path": ("../../etc/passwd", "../../etc/passwd"),
    "quotes": ('"; DROP TABLE heldout_rows; --', '"; DROP TABLE heldout_rows; --'),
    "single quotes": ("'p'", "'p'"),
    "empty": ("", ""),
    "spaces": ("  ", "  "),
    "very long": ("p" * 5000, "p" * 5000),
    "newline": ("a\nb", "a\nb"),
    "our own": ("evaluated", "evaluated"),
    "of the label": ("label", "label"),
    "keyword": ("select", "select"),
    "rowid": ("rowid", "rowid"),
    "braces": ("{score}", "{score}"),
    "percent": ("%s", "%s"),
}


class Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(0)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., None]]:
    """Run something in a directory of its own and look everywhere for canaries afterwards."""
    place = tmp_path / "temporary"
    place.mkdir()
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(place))
    monkeypatch.chdir(tmp_path)
    heard = Heard()
    logging.getLogger().addHandler(heard)
    before = logging.getLogger().level
    logging.getLogger().setLevel(0)

    def run(action: Callable[[], Any], *, own: tuple[Path, ...] = ()) -> Any:
        answer, said = None, ""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                answer = action()
            except ho.errors.HeldoutError as error:
                said = str(error)
                assert "\n" not in said
                assert said.endswith(".")
                context = error.__context__
                while context is not None:
                    said += f"{context!r}"
                    context = context.__context__
        shown = capfd.readouterr()
        said += shown.out + shown.err + " ".join(heard.lines)
        said += " ".join(str(each.message) for each in warned)
        assert "Traceback" not in said
        for canary in CANARIES:
            assert canary not in said
            for path in tmp_path.rglob("*"):
                if path.is_file() and path not in own:
                    assert canary.encode() not in path.read_bytes(), path.name
        return answer

    yield run
    logging.getLogger().removeHandler(heard)
    logging.getLogger().setLevel(before)


def ask(dataset: ho.Dataset, ledger: Path | None = None, *, few: bool = False) -> None:
    """Every question, or the first; each answer must be a number and plain JSON."""
    session = ho.Session(dataset, budget=ho.Budget(epsilon=100), ledger=ledger)
    answers = (
        [session.confusion(threshold=0.5, epsilon="1")]
        if few
        else [
            session.confusion(threshold=0.5, epsilon="1"),
            session.brier(epsilon="1"),
            session.mean_absolute_error(epsilon="1"),
            session.auc(epsilon="1"),
            session.average_precision(epsilon="1"),
        ]
    )
    for answer in answers:
        assert math.isfinite(float(answer))
        text = json.dumps(answer.as_dict(), allow_nan=False) + str(answer) + answer._repr_html_()
        for canary in CANARIES:
            assert canary not in text


@pytest.mark.parametrize("name", FRAMES)
def test_an_awkward_frame_is_answered_or_refused_in_one_line(name: str, silence, tmp_path) -> None:
    def whole() -> None:
        ask(ho.Dataset(FRAMES[name], label="y", score="p"), tmp_path / "ledger.sqlite")

    silence(whole)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", ["frame", "a.csv", "a.parquet"])
def test_an_awkward_name_is_a_name(name: str, file: str, silence, tmp_path) -> None:
    held, asked = NAMES[name]
    rows = pa.table({"y": [1, 0, 1, 0], held: [0.5, 0.25, 1.0, 0.0], "who": ["Canaria"] * 4})
    path = tmp_path / file
    try:
        if file == "a.csv":
            rows.to_pandas().to_csv(path, index=False)
        elif file == "a.parquet":
            pq.write_table(rows, path)
    except (OSError, ValueError, UnicodeError):
        pytest.skip("this cannot be written")
    source = rows if file == "frame" else path
    found = silence(
        lambda: ask(
            ho.Dataset(source, label="y", score=asked), tmp_path / "l.sqlite", few=file != "a.csv"
        ),
        own=(path,),
    )
    assert found is None


def test_a_missing_column_is_one_line_whatever_the_others_are_called() -> None:
    with pytest.raises(ho.errors.MissingColumn) as caught:
        ho.Dataset({"a\nb": [1], "\x1b[31m": [0.5]}, label="y", score="p")
    assert str(caught.value).isprintable()


def test_names_that_differ_in_their_unicode_form_are_two_names() -> None:
    rows = pa.table({"y": [1, 0], NFC: [0.5, 0.25]})
    with pytest.raises(ho.errors.MissingColumn):
        ho.Dataset(rows, label="y", score=NFD)


@pytest.mark.parametrize("copies", [("p", "P"), (NFC, NFC), ("y", "Y")])
def test_copies_of_a_name_are_refused(copies: tuple[str, str], silence) -> None:
    columns = [pa.array([1, 0]), pa.array([0.5, 0.1]), pa.array([0.1, 0.2])]
    rows = pa.table(columns, names=["label", *copies])
    silence(lambda: ho.Dataset(rows, label="label", score=copies[0]))
    with pytest.raises(ho.errors.HeldoutError):
        ho.Dataset(rows, label="label", score=copies[0])


MILLION = 1_000_000


def wide(columns: int) -> pa.Table:
    same = pa.array([7, 7])
    names = ["y", "p", *(f"c{i}" for i in range(columns - 2))]
    return pa.Table.from_arrays([pa.array([1, 0]), pa.array([0.5, 0.2]), *[same] * (columns - 2)], names)  # fmt: skip # noqa: E501


@pytest.mark.parametrize("kind", ["dict", "pandas"])
def test_a_million_columns_of_a_frame_are_counted_before_they_are_converted(kind: str) -> None:
    same = [7, 7]
    columns = MILLION if kind == "dict" else 100_000  # of pandas: what is slow is to make it
    names = [f"c{i}" for i in range(columns)]
    rows: Any = dict.fromkeys(names, same)
    if kind == "pandas":
        rows = pd.DataFrame(np.ones((2, columns), dtype=np.int8), columns=names)
    begun = time.process_time()
    with pytest.raises(ho.errors.UnreadableTable, match=f"got {columns:,}"):
        ho.Dataset(rows, label="y", score="p")
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("kind", ["a.csv", "frame", "a.parquet"])
def test_a_million_columns_are_refused_at_once_in_one_line(
    kind: str, tmp_path: Path, silence
) -> None:
    path = tmp_path / kind
    # What is slow is to make the other two, not to refuse them.
    columns = {"a.csv": MILLION, "frame": 100_000, "a.parquet": 10_000}[kind]
    if kind == "a.csv":
        path.write_text(
            "y,p," + ",".join(f"c{i}" for i in range(MILLION - 2)) + "\n1,0.5,Canaria\n"
        )
    elif kind == "a.parquet":
        pq.write_table(wide(columns), path)
    source = wide(columns) if kind == "frame" else path
    begun = time.process_time()
    with pytest.raises(ho.errors.UnreadableTable, match="must be at most 4,096") as caught:
        ho.Dataset(source, label="y", score="p")
    assert time.process_time() - begun < 20
    assert f"{columns:,}" in str(caught.value)
    silence(lambda: ho.Dataset(source, label="y", score="p"), own=(path,))


def test_hundreds_of_columns_more_than_an_expression_is_deep_are_answered() -> None:
    ask(ho.Dataset(wide(1200), label="y", score="p"), few=True)


def test_minus_zero_is_zero_and_a_subnormal_is_above_it() -> None:
    for score, inside in ((-0.0, True), (SUBNORMAL, True), (-SUBNORMAL, False)):
        rows = {"y": [1, 0], "p": [score, 0.5]}
        if inside:
            ho.Dataset(rows, label="y", score="p")
        else:
            with pytest.raises(ho.errors.ScoreOutOfRange):
                ho.Dataset(rows, label="y", score="p")


def parquet(path: Path) -> bytes:
    rows = pa.table({"y": [1, 0] * 200, "p": [0.5, 0.25] * 200, "who": ["Canaria"] * 400})
    pq.write_table(rows, path, compression="none")
    return path.read_bytes()


@pytest.mark.parametrize("keep", [0, 4, 8, 0.25, 0.9, -8, -1])
def test_a_truncated_parquet_file_is_refused(keep: float, silence, tmp_path) -> None:
    path = tmp_path / "a.parquet"
    content = parquet(path)
    size = int(keep * len(content)) if 0 < keep < 1 else int(keep) % len(content)
    path.write_bytes(content[:size])
    silence(lambda: ask(ho.Dataset(path, label="y", score="p")), own=(path,))
    with pytest.raises(ho.errors.HeldoutError):
        ho.Dataset(path, label="y", score="p")


@pytest.mark.parametrize("seed", range(12))
def test_a_parquet_file_that_lies_is_answered_or_refused(seed: int, silence, tmp_path) -> None:
    """Bytes of the footer (row counts, offsets, types) or of the pages are changed at random."""
    path = tmp_path / "a.parquet"
    content = bytearray(parquet(path))
    random = np.random.default_rng(seed)
    footer = int.from_bytes(content[-8:-4], "little") + 8
    begin = len(content) - footer if seed % 2 else 4
    for place in random.integers(begin, len(content) - 8, 3):
        content[place] = int(random.integers(256))
    path.write_bytes(bytes(content))
    silence(lambda: ask(ho.Dataset(path, label="y", score="p")), own=(path,))


CSV = {
    "byte order mark": b"\xef\xbb\xbfy,p\n1,0.5\n0,0.1\n",
    "wide characters": "y,p\n1,0.5\n0,0.1\n".encode("utf-16"),
    "returns alone": b"y,p\r1,0.5\r0,0.1\r",
    "mixed ends": b"y,p\r\n1,0.5\n0,0.1\r\n",
    "NUL": b"y,p\n1,0.5\n0,\x00\n",
    "quotes": b'y,p\n1,"0.5"\n0,"0""1"\n',
    "lines in a cell": b'y,p,who\n1,0.5,"Canaria\nCanaria"\n0,0.1,x\n',
    "trailing commas": b"y,p,\n1,0.5,\n0,0.1,\n",
    "blank lines": b"\n\ny,p\n1,0.5\n\n0,0.1\n",
    "comment": b"# Canaria\ny,p\n1,0.5\n0,0.1\n",
    "comma for a point": b'y,p\n1,"0,5"\n0,"0,1"\n',
    "spaces": b"y, p\n1, 0.5\n0, 0.1\n",
    "very long cell": b"y,p,who\n1,0.5," + b"x" * 3_000_000 + b"\n0,0.1,x\n",
    "only a header of canaries": f"Canaria,{NUMBER}\n".encode(),
    "binary": bytes(range(256)) * 20,
    "many columns": ("y,p," + ",".join(f"c{i}" for i in range(60)) + "\n"
                     + ("1,0.5," + ",".join("7" * 60) + "\n") * 2).encode(),
    "formula": b"y,p,who\n1,0.5,=1+1\n0,0.1,@Canaria\n",
}  # fmt: skip


@pytest.mark.parametrize("name", CSV)
def test_an_awkward_csv_file_is_answered_or_refused(name: str, silence, tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(CSV[name])
    silence(lambda: ask(ho.Dataset(path, label="y", score="p"), tmp_path / "l.sqlite"), own=(path,))


@pytest.mark.parametrize("name", sorted(CSV))
def test_the_command_line_says_one_line_for_the_same_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if name in ("very long cell", "many columns"):
        pytest.skip("slow, and the same as above")
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_bytes(CSV[name])
    for words in (
        "evaluate a.csv --label y --score p --epsilon 1 --json",
        "attack auc a.csv --label y --score p",
    ):
        code = main(words.split())
        shown = capfd.readouterr()
        assert code in (0, 2)
        assert "internal error" not in shown.err
        for canary in CANARIES:
            assert canary not in shown.out + shown.err
        if code:
            assert shown.err.startswith("heldout: ")
            assert len(shown.err.splitlines()) <= 2


ODD = [None, True, NAN, INF, -1, 0, "", "Canaria", "1/0", "1e999999", b"1", [], {}, 1j, object()]


def _names(value: object) -> str:
    """A repr may hold an address, which differs from process to process."""
    return repr(value) if type(value) is not object else "an object"


@pytest.mark.parametrize("value", ODD, ids=_names)
def test_an_odd_argument_is_refused_and_nothing_is_charged(value: Any) -> None:
    dataset = ho.Dataset(frame([0.5, 0.25, 1.0, 0.0]), label="y", score="p")
    session = ho.Session(dataset, budget=ho.Budget(epsilon=3))
    before = session.remaining
    if value is not True:  # True is the whole number one to Python
        for question in (
            session.confusion,
            session.brier,
            session.auc,
            session.average_precision,
            session.report,
        ):
            with pytest.raises(ho.errors.HeldoutError) as caught:
                question(epsilon=value)
            assert "\n" not in str(caught.value)
    if value not in (0, True, b"1"):  # Python reads b"1" as a number, and so it may
        with pytest.raises(ho.errors.HeldoutError):
            session.confusion(threshold=value, epsilon="1/10")
    for words in ({"method": value}, {"smaller_class": value}, {"scores": value}):
        if value is None and "method" not in words:
            continue
        with pytest.raises(ho.errors.HeldoutError):
            session.auc(epsilon="1/10", **words)
    with pytest.raises(ho.errors.HeldoutError):
        session.compare(score=value, epsilon="1/10")
    with pytest.raises(ho.errors.HeldoutError):
        ho.Budget(epsilon=value) if value not in (0, True) else ho.Budget(epsilon=-1)
    assert session.remaining == before


@pytest.mark.parametrize(
    "value", [*ODD, [1, 0], np.zeros((2, 2)), [NAN, INF], ["a", "b"]], ids=_names
)
def test_odd_arrays_are_refused(value: Any) -> None:
    for function in (
        ho.roc_auc_score,
        ho.average_precision_score,
        ho.confusion_matrix,
        ho.brier_score_loss,
    ):
        with pytest.raises(ho.errors.HeldoutError) as caught:
            function([1, 0, 1], value, epsilon="1")
        assert "Canaria" not in str(caught.value)
