"""Coverage-guided fuzzing of the public entries with atheris: a typed line or a valid answer.

    python -m venv --system-site-packages /tmp/fuzz   # or any environment that has heldout
    /tmp/fuzz/bin/pip install atheris
    /tmp/fuzz/bin/python tools/fuzz.py -max_total_time=300 -len_control=0 -max_len=512

libFuzzer's options follow; a crash is written to a file, which as an argument runs it again. The
hypothesis tests in tests/audit/test_fuzz.py look for the same without guidance, in `make test`.
"""

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["heldout"]):
    import heldout as ho
    import heldout.cli
    import heldout.features.selector
    import heldout.regression.session
    from heldout.errors import HeldoutError
    from heldout.privacy.events import Event, price

CANARY = "Canaria"
PLACE = Path(tempfile.mkdtemp(prefix="heldout-fuzz-"))
SPECIAL = (None, True, 0, 1, -1, 0.5, -0.0, 5e-324, 1e308, float("nan"), float("inf"), "", "1/3")


def any_value(data: Any) -> Any:
    """A cell or an argument of any kind."""
    kind = data.ConsumeIntInRange(0, 5)
    if kind == 0:
        return data.PickValueInList(list(SPECIAL))
    if kind == 1:
        return data.ConsumeInt(16)
    if kind == 2:
        return data.ConsumeFloat()
    if kind == 3:
        return data.ConsumeUnicode(8)
    if kind == 4:
        return data.ConsumeBytes(6)
    return [any_value(data) for _ in range(data.ConsumeIntInRange(0, 3))]


def asked(dataset: ho.Dataset) -> None:
    session = ho.Session(dataset, budget=ho.Budget(epsilon=100))
    for answer in (session.confusion(epsilon="1"), session.auc(epsilon="1")):
        json.dumps(answer.as_dict(), allow_nan=False)


def files(data: Any) -> None:
    suffix = data.PickValueInList([".csv", ".tsv", ".parquet"])
    path = PLACE / f"a{suffix}"
    head = b"" if suffix == ".parquet" or data.ConsumeBool() else b"y,p\n"
    path.write_bytes(head + data.ConsumeBytes(400))
    asked(ho.Dataset(path, label="y", score="p"))


def frames(data: Any) -> None:
    rows = data.ConsumeIntInRange(0, 4)
    names = [data.PickValueInList(["y", "p", "P", "", "u"]) for _ in range(3)]
    names.append(data.ConsumeUnicode(6))
    table = {name: [any_value(data) for _ in range(rows)] for name in names}
    asked(ho.Dataset(table, label="y", score="p"))


def declarations(data: Any) -> None:
    rows = {"y": [1, 0, 1], "p": [0.5, 0.25, 1.0], "u": [1, 2, 3], "who": [CANARY] * 3}
    words = ("positive", "negative", "score_range", "rows_per_unit", "neighbours", "unit", "name")
    word = data.PickValueInList(list(words))
    asked(ho.Dataset(rows, label="y", score="p", **{word: any_value(data)}))


def questions(data: Any) -> None:
    dataset = ho.Dataset({"y": [1, 0, 1, 0], "p": [0.9, 0.2, 0.5, 0.4]}, label="y", score="p")
    session = ho.Session(dataset, budget=ho.Budget(epsilon=1000))
    name = data.PickValueInList(["confusion", "brier", "auc", "average_precision", "curves"])
    words = {"epsilon": any_value(data)}
    more = {"confusion": "threshold", "auc": "method", "curves": "method"}.get(name)
    if more is not None and data.ConsumeBool():
        words[more] = any_value(data)
    before = session.remaining
    try:
        float(getattr(session, name)(**words))
    except HeldoutError:
        assert session.remaining == before, "a refusal costs nothing"
        raise


def numbers(data: Any) -> None:
    ho.Budget(epsilon=any_value(data), delta=any_value(data))
    ho.plan(rows=any_value(data), positives=any_value(data), auc=any_value(data), epsilon="1")


def events(data: Any) -> None:
    price(Event.decode(data.ConsumeUnicode(200)))


def ledgers(data: Any) -> None:
    path = PLACE / "ledger.sqlite"
    for each in PLACE.glob("ledger.sqlite*"):
        each.unlink()
    path.write_bytes(data.ConsumeBytes(300))
    ho.Ledger.open(path).close()


def residuals(data: Any) -> None:
    rows = {"y": [1.0, 2.0, any_value(data)], "f": [1.5, 1.5, any_value(data)]}
    bounds = {"residual": any_value(data)} if data.ConsumeBool() else None
    epsilon = "1" if data.ConsumeBool() else any_value(data)
    ho.regression.residual_plot(rows, observed="y", predicted="f", epsilon=epsilon, bounds=bounds)


def selections(data: Any) -> None:
    X = [[any_value(data), 1], [0, any_value(data)], [1, 0]]
    words = {"k": any_value(data), "features_per_row": any_value(data)}
    ho.features.select(X, [1, 0, any_value(data)], epsilon="1", **words)


def commands(data: Any) -> None:
    known = (
        "evaluate plan pr ledger compare select residuals --label --score --epsilon --json a.csv"
    )
    words = [
        data.PickValueInList(known.split()) if data.ConsumeBool() else data.ConsumeUnicode(6)
        for _ in range(data.ConsumeIntInRange(0, 7))
    ]
    (PLACE / "a.csv").write_text(f"y,p,who\n1,0.5,{CANARY}\n0,0.2,{CANARY}\n")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(PLACE), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = heldout.cli.main(words)
    assert code in (0, 1, 2)
    assert "internal error" not in err.getvalue(), words
    assert CANARY not in out.getvalue() + err.getvalue(), words


ENTRIES: tuple[Callable[[Any], None], ...] = (
    files,
    frames,
    declarations,
    questions,
    numbers,
    events,
    ledgers,
    residuals,
    selections,
    commands,
)


def one(content: bytes) -> None:
    """Refused in one line without a canary, or answered; all else is a crash."""
    data = atheris.FuzzedDataProvider(content)
    entry = data.PickValueInList(list(ENTRIES))
    said = ""
    try:
        entry(data)
    except HeldoutError as error:
        said = f"{error}"
        hidden = f"{error.__context__!r}"
        said += hidden if CANARY in hidden else ""
    assert "\n" not in said, entry.__name__
    assert CANARY not in said, entry.__name__


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
