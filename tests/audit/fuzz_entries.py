# ruff: noqa: E501 - tables of inputs, read as tables
"""Every public entry, what each of its arguments is, and arguments with which it answers.

An entry says which public names it covers; `test_public.py` fails where one is covered by none. The
corpus puts each awkward value in the place of each argument, the fuzzers what they make up.
"""

import contextlib
import importlib
import io
import json
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import heldout as ho
from heldout import audit, client, examples, features, models, questions, regression
from heldout import precision_recall as pr
from heldout.errors import HeldoutError, MissingDependency
from heldout.kernel import Event, Ledger, price
from heldout.server.signing import Signer

inputs: Any = importlib.import_module("fuzz_inputs")
PLACE = Path(tempfile.mkdtemp(prefix="heldout-fuzz-"))

Argument = tuple[str, Any]  # its kind, and a value with which the entry answers
"""Kinds: number, name, column, matrix, texts, table."""


@dataclass(frozen=True)
class Entry:
    name: str
    covers: tuple[str, ...]
    call: Callable[..., Any]
    arguments: Mapping[str, Argument]
    public: bool = False
    """Whether its rows are public, so that a message may quote them."""

    def good(self) -> dict[str, Any]:
        return {
            name: value() if callable(value) else value
            for name, (_, value) in self.arguments.items()
        }


ENTRIES: dict[str, Entry] = {}


def entry(*covers: str, public: bool = False, **arguments: Argument) -> Callable[..., Any]:
    def kept(call: Callable[..., Any]) -> Callable[..., Any]:
        name = call.__name__.strip("_")
        assert name not in ENTRIES
        ENTRIES[name] = Entry(name, covers, call, arguments, public)
        return call

    return kept


def refusal(found: Entry, arguments: Mapping[str, Any]) -> str | None:
    """What it says to these arguments, or None if it answers; all else that is raised is a bug.

    Nothing private is in an answer, a message, a warning, or on the screen.
    """
    out, said, answer = io.StringIO(), None, None
    hidden = ""
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        warnings.simplefilter("always")
        try:
            answer = found.call(**arguments)
        except HeldoutError as error:
            said = str(error)
            hidden = _contexts(error)
    if said is not None:
        assert "\n" not in said, said
        assert said.isprintable() or found.public, ascii(said)
    shown = f"{said}{hidden}{out.getvalue()}{[str(each.message) for each in warned]}"
    if said is None:
        shown += told(answer)
    if not found.public:
        for canary in inputs.CANARIES:
            assert canary not in shown, shown
    return said


def _contexts(error: BaseException) -> str:
    found, each = "", error.__context__
    while each is not None:
        found += f"{each!r}"
        each = each.__context__
    return found


def told(answer: Any) -> str:
    """All that an answer shows; it must be plain JSON."""
    if isinstance(answer, tuple | list) and not hasattr(answer, "_fields"):
        return "".join(told(each) for each in answer)
    text = f"{answer} {answer!r}"
    if hasattr(answer, "as_dict"):
        text += json.dumps(answer.as_dict(), allow_nan=False)
    if hasattr(answer, "_repr_html_"):
        text += answer._repr_html_() or ""
    return text


# --- what arguments there are --------------------------------------------------------------------

TABLE: Argument = ("table", inputs.good_table)
ONE: Argument = ("number", "1")
NAMED = {name: ("name", name) for name in ("y", "p", "q", "u", "k", "t", "a")}
NONE: Argument = ("number", None)
NO_NAME: Argument = ("name", None)
REPLACE: Argument = ("name", "replace-one")
CUSTODY: dict[str, Argument] = {
    "unit": NO_NAME,
    "rows_per_unit": ("number", 1),
    "row_key": NO_NAME,
    "neighbours": REPLACE,
    "schema": NO_NAME,
    "name": NO_NAME,
}
LABELS: Argument = ("column", [1, 0, 1, 0])
SCORES: Argument = ("column", [0.75, 0.25, 0.5, 0.25])
MATRIX: Argument = ("matrix", lambda: np.array([[1, 0], [0, 1], [1, 1], [0, 0]]))


def budget(epsilon: Any = 1000) -> ho.Budget:
    return ho.Budget(epsilon=epsilon)


def session() -> ho.Session:
    dataset = ho.Dataset(inputs.good_table(), label="y", score="p", rivals=["q"])
    return ho.Session(dataset, budget=budget())


def unpaid(holder: Any, ask: Callable[[], Any]) -> Any:
    """The answer; a refusal costs nothing."""
    before = holder.remaining
    try:
        return ask()
    except HeldoutError:
        assert holder.remaining == before, "a refusal was charged"
        raise


# --- rows with a label and a score ---------------------------------------------------------------


@entry("heldout.Dataset", table=TABLE, label=NAMED["y"], score=NAMED["p"], positive=("number", 1),
       negative=("number", 0), score_range=("number", (0, 1)), score_map=NONE,
       out_of_range=("name", "refuse"), query=NO_NAME, table_name=NO_NAME, **CUSTODY)  # fmt: skip
def dataset(*, table: Any, table_name: Any, **words: Any) -> Any:
    found = ho.Dataset(table, **words, table=table_name)
    asked = ho.Session(found, budget=budget())
    return found, asked.confusion(epsilon="1"), asked.auc(epsilon="1")


@entry("heldout.Dataset", "heldout.Session", table=TABLE, label=NAMED["y"], classes=("number", [0, 1]),
       scores=("name", ["p", "q"]), prediction=NO_NAME, weight=("name", "p"), largest_weight=ONE,
       groups=("name", {"y": [1]}), epsilon=ONE, weighted=("number", True), clip=("number", 0.01),
       which=("name", "1"), k=("number", 1), **CUSTODY)  # fmt: skip
def classes(
    *, epsilon: Any, weighted: Any, clip: Any, which: Any, k: Any, table: Any, **words: Any
) -> Any:
    found = ho.Dataset(table, **words)
    asked = ho.Session(found, budget=budget())
    cells = unpaid(asked, lambda: asked.confusion(epsilon=epsilon, weighted=weighted, by="y"))
    top = unpaid(asked, lambda: asked.top_k(epsilon=epsilon))
    loss = unpaid(asked, lambda: asked.log_loss(epsilon=epsilon, clip=clip))
    return found, cells, cells.groups["1"].count("0", which), top.top(k), loss, asked.versus(which)


@entry(
    "heldout.Session", k=("number", 2), epsilon=ONE, unit=NAMED["u"], rows_per_unit=("number", 2)
)
def lists(*, k: Any, epsilon: Any, **words: Any) -> Any:
    found = ho.Dataset(inputs.good_table(), label="y", score="p", **words)
    asked = ho.Session(found, budget=budget())
    ask = asked.ndcg, asked.precision_at_k
    return [unpaid(asked, lambda one=one: one(epsilon=epsilon, k=k)) for one in ask]


@entry("models.load", "models.Model", source=("name", {"coefficients": {"p": 1.0}}), output=NO_NAME,
       isolation=("name", "sandbox"))  # fmt: skip
def load_model(*, source: Any, **words: Any) -> Any:
    return models.load(source, **words).as_dict()


@entry("models.load", weight=("number", 0.5), intercept=("number", 0), link=("name", "logit"),
       levels=("name", {"who": ["a"]}))  # fmt: skip
def load_linear(*, weight: Any, **words: Any) -> Any:
    return models.load({"coefficients": {"p": weight}, **words}).as_dict()


@cache
def sent_file() -> str:
    (PLACE / "sent").write_text("key,score\n1,0.5\n")
    return str(PLACE / "sent")


@entry("models.read_predictions", "models.Predictions", path=("name", sent_file),
       most_rows=("number", 10), isolation=("name", "none"))  # fmt: skip
def read_predictions(*, path: Any, **words: Any) -> Any:
    with tempfile.TemporaryDirectory(dir=PLACE) as folder:
        found = models.read_predictions(path, out=f"{folder}/kept.parquet", **words)
        return json.dumps(found.as_dict())


@cache
def sent_predictions() -> str:
    import pyarrow.parquet

    table = pyarrow.table({"key": ["1", "2"], "score": [0.25, 0.5]})
    pyarrow.parquet.write_table(table, PLACE / "sent.parquet")
    return str(PLACE / "sent.parquet")


@entry("models.join_predictions", path=("name", sent_predictions), rows=TABLE,
       row_key=NAMED["k"], lowest=("number", 0.0), score_range=("matrix", (0.0, 1.0)), into=("name", "score"), tick=NONE)  # fmt: skip
def join_predictions(*, path: Any, rows: Any, tick: Any, **words: Any) -> Any:
    return repr(models.join_predictions(path, rows, **words,
                                        tick=None if inputs.waits(tick) else tick))  # fmt: skip


@entry("models.score", "models.ScoredRows", rows=TABLE, features=("name", None), row_key=NO_NAME,
       default=("number", 0.0), into=("name", "score"), column=NONE, seconds_per_row=("number", 1.0),
       memory=("number", 2**30), tick=NONE, isolation=("name", "sandbox"))  # fmt: skip
def score_rows(*, rows: Any, tick: Any, **words: Any) -> Any:
    found = models.score(models.load({"coefficients": {"p": 1.0}}), rows, **words,
                         tick=None if inputs.waits(tick) else tick)  # fmt: skip
    return repr(found)


@entry("heldout.Session", "heldout.Release", threshold=("number", 0.5), epsilon=ONE,
       level=("number", 0.95))  # fmt: skip
def confusion(*, threshold: Any, epsilon: Any, level: Any) -> Any:
    asked = session()
    found = unpaid(asked, lambda: asked.confusion(threshold=threshold, epsilon=epsilon))
    return found, found.interval(level), found.noise_interval(level), found.as_dict(level)


@entry("heldout.Session", question=("name", "auc"), epsilon=ONE,
       method=("name", "piecewise-laplace"), smaller_class=NONE, delta=NONE, scores=NO_NAME,
       level=("number", 0.95))  # fmt: skip
def ranking(*, question: Any, level: Any, **words: Any) -> Any:
    asked = session()
    ask = asked.average_precision if question == "average_precision" else asked.auc
    found = unpaid(asked, lambda: ask(**words))
    return found, found.interval(level)


@entry("heldout.Session", epsilon=ONE)
def means(*, epsilon: Any) -> Any:
    asked = session()
    return [
        unpaid(asked, lambda ask=ask: ask(epsilon=epsilon))
        for ask in (
            asked.brier,
            asked.mean_absolute_error,
            asked.mean_squared_error,
            asked.grid_ties,
        )
    ]


@entry("heldout.Session", score=NAMED["q"], epsilon=ONE, method=("name", "piecewise-laplace"),
       smaller_class=NONE)  # fmt: skip
def compare(**words: Any) -> Any:
    asked = session()
    return unpaid(asked, lambda: asked.compare(**words))


@entry("heldout.Session", epsilon=ONE, method=("name", "heldout"), thresholds=NONE,
       level=("number", 0.95))  # fmt: skip
def curves(*, level: Any, **words: Any) -> Any:
    asked = session()
    found = unpaid(asked, lambda: asked.curves(**words))
    return found, found.as_dict(level)


@entry("heldout.Session", epsilon=ONE, threshold=NONE, curves=("number", False),
       sections=("name", None), scores=NO_NAME)  # fmt: skip
def report(**words: Any) -> Any:
    asked = session()
    return unpaid(asked, lambda: asked.report(**words))


@entry("heldout.Session", "heldout.Ledger", dataset=("number", None), budget=("number", "3"),
       ledger=("name", None))  # fmt: skip
def sessions(*, dataset: Any, budget: Any, ledger: Any) -> Any:
    rows = ho.Dataset(inputs.good_table(), label="y", score="p") if dataset is None else dataset
    given = ho.Budget(epsilon="3") if isinstance(budget, str) and budget == "3" else budget
    return ho.Session(rows, budget=given, ledger=_in_place(ledger)).remaining


def _in_place(where: Any) -> Any:
    """A ledger's name, kept within the directory of this run."""
    if isinstance(where, str) and "://" not in where and where != "/dev/null":
        return PLACE / "ledgers" / where.strip("/.")[:4900] if where else where
    return where


@entry("heldout.confusion_matrix", y_true=LABELS, y_pred=LABELS, epsilon=ONE, neighbours=REPLACE,
       labels=NONE, sample_weight=("column", None), largest_weight=NONE)  # fmt: skip
def matrices(*, y_true: Any, y_pred: Any, **words: Any) -> Any:
    return ho.confusion_matrix(y_true, y_pred, **words)


@entry("heldout.roc_auc_score", "heldout.average_precision_score",
       "heldout.brier_score_loss", "heldout.roc_curve", "heldout.precision_recall_curve",
       "heldout.calibration_curve", which=("number", 0), y_true=LABELS, y_score=SCORES, epsilon=ONE,
       neighbours=REPLACE, pos_label=("number", 1))  # fmt: skip
def scores(*, which: Any, y_true: Any, y_score: Any, pos_label: Any, **words: Any) -> Any:
    functions = (
        ho.roc_auc_score,
        ho.average_precision_score,
        ho.brier_score_loss,
        ho.roc_curve,
        ho.precision_recall_curve,
        ho.calibration_curve,
    )
    named = {} if isinstance(pos_label, int) and pos_label == 1 else {"positive": pos_label}
    if isinstance(which, int) and not isinstance(which, bool) and 0 <= which < len(functions):
        return functions[which](y_true, y_score, **words, **named)
    return [each(y_true, y_score, **words, **named) for each in functions[:4]]


@entry("heldout.evaluate", "heldout.Search", which=("number", 0), X=("column", [[0.0], [1.0]] * 40),
       y=("column", [0, 1] * 40), epsilon=ONE, candidates=("number", 2), folds=("number", 2),
       trained=("column", [0, 1, 2, 3]), metric=("name", "roc_auc"))  # fmt: skip
def estimators(*, which: Any, X: Any, y: Any, epsilon: Any, trained: Any, **words: Any) -> Any:
    model = _separating()
    if isinstance(which, int) and which == 0:
        search = ho.Search(epsilon=epsilon, public=trained, **words)
        return [search(model, *rows) for rows in _tested(search, X, y)]
    return ho.evaluate(model, X, y, epsilon=epsilon).measures()


@cache
def _separating() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit([[0.0], [1.0]], [0, 1])


def _tested(search: Any, X: Any, y: Any) -> list[Any]:
    """The rows of each test fold."""
    return [tuple([each[place] for place in test] for each in (X, y))
            for _, test in search.split(X, y)]  # fmt: skip


# --- money ---------------------------------------------------------------------------------------


@entry("heldout.Budget", "heldout.Loss", public=True, epsilon=ONE, rho=NONE, delta=("number", 0))
def budgets(*, epsilon: Any, rho: Any, delta: Any) -> Any:
    found = ho.Budget(epsilon=epsilon, rho=rho, delta=delta)
    assert ho.Budget.from_dict(found.as_dict()) == found
    return found


@entry("heldout.Loss", public=True, epsilon=ONE, rho=ONE, delta=("number", "1/10"))
def losses(*, epsilon: Any, rho: Any, delta: Any) -> Any:
    found = [ho.Loss.pure(epsilon), ho.Loss.approximate(epsilon, delta), ho.Loss.zcdp(rho, delta)]
    assert all(ho.Loss.from_dict(each.as_dict()) == each for each in found)
    return found, found[0].float_epsilon(), found[1].float_epsilon()


@entry("heldout.Budget", "heldout.Loss", public=True, content=("number", None),
       epsilon=("number", "1"), delta=("number", "0"))  # fmt: skip
def stored_losses(*, content: Any, epsilon: Any, delta: Any) -> Any:
    given = {"epsilon": epsilon, "delta": delta} if content is None else content
    return ho.Budget.from_dict(given), ho.Loss.from_dict(given)


@entry("heldout.Ledger", public=True, where=("name", None), witness=("name", None),
       receipt=("name", None), fingerprint=("number", b"x" * 32), budget=("number", "3"))  # fmt: skip
def ledgers(*, where: Any, witness: Any, receipt: Any, fingerprint: Any, budget: Any) -> Any:
    words = {} if witness is None else {"witness": _in_place(witness)}
    with Ledger.open(_in_place(where), **words) as found:
        given = ho.Budget(epsilon="3") if isinstance(budget, str) and budget == "3" else budget
        account = found.account(fingerprint, budget=given)
        return found.remaining(account), found.verify(receipt=receipt), found.history(account)


@cache
def signed_answer() -> dict[str, Any]:
    """A server's signed statement."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    rows = ho.Dataset({"y": [0, 1] * 50, "p": [0.2, 0.7] * 50}, label="y", score="p")
    answer = ho.Session(rows, budget=ho.Budget(epsilon=1)).answer(questions.Brier(epsilon=1))
    content = {"evaluation": "e", "ledger": "l", "answer": answer.as_dict()}
    return Signer(Ed25519PrivateKey.generate()).sign(content)


@entry(*(f"client.{name}" for name in client.__all__), public=True, url=("name", "https://localhost"),
       token=("name", "t"), key=("name", None), heads=("name", None), dataset=("name", "d"),
       part=("name", "evaluation"), value=("number", "e"))  # fmt: skip
def servers(
    *, url: Any, token: Any, key: Any, heads: Any, dataset: Any, part: Any, value: Any
) -> Any:
    """A server of any address, and one that answers anything at all. Nothing is sent."""
    place = None if heads is None else _in_place(heads)
    server = client.Server(url, token, key=key, heads=place)
    name = part if isinstance(part, str) else "evaluation"
    signed = signed_answer()
    for wrong in (
        signed | {name: value},
        signed | {"statement": signed["statement"] | {name: value}},
        signed | {"statement": signed["statement"] | {"answer": value}},
    ):
        with contextlib.suppress(HeldoutError):
            server._accepted(wrong)
    return repr(server), repr(client.RemoteDataset(server, dataset))


@entry(*(f"questions.{name}" for name in questions.__all__), public=True, kind=("name", "auc"),
       epsilon=ONE, field=("name", "epsilon"), value=("number", "1"))  # fmt: skip
def questions_as_data(*, kind: Any, epsilon: Any, field: Any, value: Any) -> Any:
    """One field of a question of each kind is anything at all."""
    name = field if isinstance(field, str) else "epsilon"
    content = {"question": kind, "epsilon": epsilon, name: value}
    for other in questions.kinds():
        with contextlib.suppress(HeldoutError):
            found = questions.from_dict({**content, "question": other})
            assert questions.from_dict(json.loads(json.dumps(found.as_dict()))) == found
    with contextlib.suppress(HeldoutError):
        questions.Guess(rows=value, positives=value, auc=value, cells=value)
    return questions.from_dict(content)


EVENT = '{"kind":"exponential","parameters":{"epsilon":"1/4"},"version":1}'


@entry("heldout.Ledger", public=True, content=("name", EVENT))
def events(*, content: Any) -> Any:
    with contextlib.suppress(HeldoutError):
        Event.from_dict(content)
    return price(Event.decode(content))


@entry("heldout.plan", public=True, rows=("number", 1000), positives=("number", 100), metric=NO_NAME,
       value=NONE, auc=("number", 0.8), alarms=NONE, target=NONE, epsilon=ONE,
       level=("number", 0.95), neighbours=REPLACE, unit=("number", False),
       rows_per_unit=("number", 1))  # fmt: skip
def plan(**words: Any) -> Any:
    return ho.plan(**words)


@entry("heldout.ScoreMap", public=True, centre=("number", 0.0), scale=("number", 1.0),
       score=("number", 0.5), image=("number", 0.5), given=("number", (0, 1)))  # fmt: skip
def score_maps(*, centre: Any, scale: Any, score: Any, image: Any, given: Any) -> Any:
    found = ho.ScoreMap(centre, scale)
    return found, found.image(score), found.score(image), ho.ScoreMap.parse(given)


@entry("heldout.PostgresTable", address=("name", "postgresql://me:secret@127.0.0.1:1/db"),
       table=("name", "rows"), query=NO_NAME, timeout=("number", 1))  # fmt: skip
def postgres(*, address: Any, **words: Any) -> Any:
    found = ho.PostgresTable(address, **words)
    assert "secret" not in repr(found)
    if "@127.0.0.1:1/" in str(address):
        with contextlib.suppress(HeldoutError):
            found.open()
    return found


@entry("heldout.SparkTable", frame=("table", inputs.good_table), timeout=("number", 1))
def spark(*, frame: Any, timeout: Any) -> Any:
    found = ho.SparkTable(frame, timeout=timeout)
    with contextlib.suppress(HeldoutError):
        found.open()
    return found


# --- regression ----------------------------------------------------------------------------------

REGRESSION: dict[str, Argument] = {
    "frame": TABLE,
    "observed": NAMED["y"],
    "predicted": ("column", "p"),
    "coefficients": NONE,
    **CUSTODY,
}


@entry("regression.RegressionTable", "regression.RegressionSession", **REGRESSION)
def regression_table(*, frame: Any, **words: Any) -> Any:
    table = regression.RegressionTable(frame, **words)
    asked = regression.RegressionSession(table, budget=budget())
    return table, asked.metrics(epsilon="1")


@entry("regression.RegressionTable", frame=TABLE, intercept=("number", 1.0), weight=("number", 0.5),
       column=("name", "q"))  # fmt: skip
def linear_model(*, frame: Any, intercept: Any, weight: Any, column: Any) -> Any:
    given: Any = weight
    with contextlib.suppress(Exception):
        given = {"intercept": intercept, column: weight}
    return regression.RegressionTable(frame, observed="y", coefficients=given)


@entry("regression.residual_plot", "regression.ResidualPlot", frame=TABLE, epsilon=ONE,
       scale=("number", 1.0), method=("name", "heldout"), predicted_bounds=("number", (0, 1)),
       residual_bounds=("number", 1), grid=("number", 4), expected_rows=NONE,
       level=("number", 0.95), kind=("name", "density"), limit=("number", 10))  # fmt: skip
def residual_plot(
    *, predicted_bounds: Any, residual_bounds: Any, level: Any, kind: Any, limit: Any, **words: Any
) -> Any:
    bounds = {"predicted": predicted_bounds, "residual": residual_bounds}
    found = regression.residual_plot(observed="y", predicted="p", bounds=bounds, **words)
    return found, found.points(limit), found.as_dict(level), found.chart(kind, level=level)


@entry("regression.residual_plot", bounds=NONE, edges=("column", [0.0, 0.5, 1.0]),
       weights=("matrix", 1.0), other=NONE)  # fmt: skip
def residual_readings(*, bounds: Any, edges: Any, weights: Any, other: Any) -> Any:
    found = regression.residual_plot(
        inputs.good_table(), observed="y", predicted="p", epsilon="1", bounds=bounds, grid=2
    )
    other = found if other is None else other
    return found.resampled(edges, edges), found.noise_variance(weights), found.similarity(other)


@entry("regression.metrics", "regression.RegressionMetrics", frame=TABLE, epsilon=ONE,
       scale=("number", 1.0), observed_bounds=("number", (0, 1)), residual_bounds=("number", 1),
       r_squared=("number", True), expected_rows=NONE, level=("number", 0.95),
       q=("number", 0.5))  # fmt: skip
def regression_metrics(
    *, observed_bounds: Any, residual_bounds: Any, level: Any, q: Any, **words: Any
) -> Any:
    bounds = {"observed": observed_bounds, "residual": residual_bounds}
    found = regression.metrics(observed="y", predicted="p", bounds=bounds, **words)
    return found, found.quantile(q), found.as_dict(level)


@entry("regression.logistic_diagnostics", "regression.LogisticDiagnostics",
       "regression.binned_residuals", frame=TABLE, observed=NAMED["y"], predicted=NAMED["p"],
       epsilon=ONE, method=("name", "heldout"), positive=("number", 1), negative=("number", 0),
       options=NONE, level=("number", 0.95), curves=NONE)  # fmt: skip
def logistic_diagnostics(*, frame: Any, level: Any, curves: Any, **words: Any) -> Any:
    if curves is not None:
        return regression.binned_residuals(curves)
    found = regression.logistic_diagnostics(frame, **words)
    return found, found.as_dict(level)


@entry("regression.fit", "regression.LinearFit", frame=TABLE, outcome=("name", "y"),
       low=("number", 0), high=("number", 1), feature=("number", (0, 1)), epsilon=ONE,
       level=("number", 0.95))  # fmt: skip
def linear_fit(*, low: Any, high: Any, feature: Any, level: Any, **words: Any) -> Any:
    found = regression.fit(features={"p": feature}, bounds=(low, high), **words)
    return found, found.as_dict(level)


SURVIVAL: dict[str, Argument] = {
    "rows": TABLE,
    "time": NAMED["q"],
    "event": NAMED["y"],
    "epsilon": ONE,
}


@entry("survival.kaplan_meier", **SURVIVAL, grid=("column", [0.25, 0.75]))
def survival_curve(*, rows: Any, **words: Any) -> Any:
    return ho.survival.kaplan_meier(rows, **words)


@entry("survival.log_rank", **SURVIVAL, groups=("number", {"u": ["a", "b"]}),
       between=("name", "u"), grid=("column", [0.25, 0.75]))  # fmt: skip
def log_rank(*, rows: Any, **words: Any) -> Any:
    return ho.survival.log_rank(rows, **words)


@entry("survival.concordance", **SURVIVAL, score=NAMED["p"])
def concordance(*, rows: Any, **words: Any) -> Any:
    return ho.survival.concordance(rows, **words)


@entry("survival.calibration", "survival.brier_score", **SURVIVAL, risk=NAMED["p"],
       horizon=("number", 0.5))  # fmt: skip
def risks_at_a_horizon(*, rows: Any, **words: Any) -> Any:
    return ho.survival.calibration(rows, **words), ho.survival.brier_score(rows, **words)


@entry("integrations.registry_entry", "integrations.log_to_mlflow", public=True,
       name=("name", "a model"), curator=("name", "us"), published=("number", date(2026, 11, 18)),
       sector=NO_NAME)  # fmt: skip
def registry_entries(**words: Any) -> Any:
    answer = session().confusion(epsilon="1")
    with contextlib.suppress(MissingDependency):
        ho.integrations.log_to_mlflow(answer, prefix=words["name"])
    return ho.integrations.registry_entry(answer, use="a use", region="here", author="us", **words)


@entry("features.Bins", public=True, low=("number", 0), high=("number", 1), bins=("number", 8),
       X=("matrix", lambda: [[0.25], [0.75]]))  # fmt: skip
def bins(*, low: Any, high: Any, bins: Any, X: Any) -> Any:
    return features.Bins(bounds=[(low, high)], bins=bins).fit_transform(X)


@entry("regression.ResidualTable", public=True, predicted_edges=("column", [0.0, 1.0, 2.0]),
       residual_edges=("column", [-1.0, 0.0, 1.0]), noisy=("matrix", lambda: [[40, 9], [38, -1]]),
       outside=("number", 4.0), rows=("number", 90), scale=("number", Fraction(2)),
       limit=("number", 10))  # fmt: skip
def residual_table(*, limit: Any, **words: Any) -> Any:
    found = regression.ResidualTable(**words)
    return found.counts, found.points(limit), found.bounds, found.cell_deviation


# --- features ------------------------------------------------------------------------------------

PEOPLE: dict[str, Argument] = {
    "unit": ("column", None),
    "rows_per_unit": ("number", 1),
    "row_keys": ("column", None),
    "neighbours": REPLACE,
}
ROWS: dict[str, Argument] = {"X": MATRIX, "y": LABELS, "features_per_row": ("number", 2)}


@entry("features.FeatureMatrix", **ROWS, **PEOPLE, positive=("number", 1), negative=("number", 0),
       feature_names=("name", None), most_rows=("number", 10), name=NO_NAME,
       restricted=("column", [0]))  # fmt: skip
def feature_matrix(*, restricted: Any, **words: Any) -> Any:
    found = features.FeatureMatrix(**words)
    return found, features.select(found, epsilon="1", k=1), found.restricted(restricted)


@entry("features.FeatureMatrix", table=TABLE, label=NAMED["y"], text=NO_NAME, space=NONE,
       features=("name", ["a", "b"]), features_per_row=("number", 2), positive=("number", 1),
       negative=("number", 0), most_rows=("number", 10), **CUSTODY)  # fmt: skip
def feature_table(*, table: Any, features: Any, **words: Any) -> Any:
    found = ho.features.FeatureMatrix.from_table(table, features=features, **words)
    return found, ho.features.select(found, epsilon="1", k=1)


@entry("features.FeatureMatrix", "features.HashedText", table=TABLE, size=("number", 64),
       longest=("number", 1), stop_words=("number", False), text=NAMED["t"])  # fmt: skip
def text_table(*, table: Any, size: Any, longest: Any, stop_words: Any, text: Any) -> Any:
    space = features.HashedText(size=size, longest=longest, stop_words=stop_words)
    found = features.FeatureMatrix.from_table(
        table, label="y", text=text, space=space, features_per_row=2
    )
    return found, features.select(found, epsilon="1", k=1)


@entry("features.HashedText", "features.Vocabulary", public=True, texts=("texts", ["cash now"]),
       words=("texts", ("cash", "prize")))  # fmt: skip
def spaces(*, texts: Any, words: Any) -> Any:
    hashed = features.HashedText(size=64)
    vocabulary = features.Vocabulary(words)
    return hashed.matrix(texts), hashed.places(words), vocabulary.matrix(texts)


@entry("features.select", "features.Selection", **ROWS, **PEOPLE, epsilon=ONE,
       method=("name", "noisy-counts"), score=("name", "total-count"), k=("number", 1),
       threshold=NONE, positive=("number", 1), negative=("number", 0), feature_names=NO_NAME,
       most_rows=("number", 10), not_private=("number", False), level=("number", 0.95),
       rows=MATRIX)  # fmt: skip
def select(*, level: Any, rows: Any, **words: Any) -> Any:
    found = features.select(**words)
    return found, found.score_interval(level), found.transform(rows)


LEARNERS = ("PrivateNaiveBayes", "PrivateLogisticRegression", "PrivatePipeline")
TRAINING: dict[str, Argument] = {
    "X": MATRIX,
    "y": LABELS,
    "unit": ("column", None),
    "row_keys": ("column", None),
    "epsilon": ONE,
    "classes": ("number", (0, 1)),
    "binarize": ("number", 0.0),
    "features_per_row": ("number", 2),
    "expected_rows": NONE,
    "neighbours": REPLACE,
    "rows_per_unit": ("number", 1),
    "budget": NONE,
    "rows": MATRIX,
}


def _trained(learner: Any, *, X: Any, y: Any, unit: Any, row_keys: Any, rows: Any) -> Any:
    found = learner.fit(X, y, unit=unit, row_keys=row_keys)
    return found.predict(rows), found.predict_proba(rows), found.predict_log_proba(rows)


def _split(words: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    at_fit = {name: words.pop(name) for name in ("X", "y", "unit", "row_keys", "rows")}
    return words, at_fit


@entry("features.PrivateNaiveBayes", **TRAINING, weight=("number", 5))
def naive_bayes(**words: Any) -> Any:
    settings, at_fit = _split(words)
    return _trained(features.PrivateNaiveBayes(**settings), **at_fit)


@entry("features.PrivateLogisticRegression", **TRAINING, weight=("number", 5), ridge=NONE,
       bounds=NONE)  # fmt: skip
def logistic_regression(**words: Any) -> Any:
    settings, at_fit = _split(words)
    return _trained(features.PrivateLogisticRegression(**settings), **at_fit)


@entry("features.PrivatePipeline", **TRAINING, select=("name", "joint"),
       classifier=("name", "naive-bayes"), split=NONE, selection_score=("name", "total-count"),
       k=("number", 1), threshold=NONE)  # fmt: skip
def pipeline(**words: Any) -> Any:
    settings, at_fit = _split(words)
    return _trained(features.PrivatePipeline(**settings), **at_fit)


# --- separability --------------------------------------------------------------------------------


def _both() -> dict[str, Any]:
    return {name: inputs.good_table()[name] * 3 for name in ("p", "q", "u")}


@entry("heldout.separability", truth=("table", _both), privatized=("table", _both),
       classifier=("name", "logistic"), shuffles=("number", 2), groups=NO_NAME, ignore=NO_NAME,
       categorical=NO_NAME, random_state=("number", 1))  # fmt: skip
def separability(*, truth: Any, privatized: Any, **words: Any) -> Any:
    found = ho.separability(truth, privatized, **words, progress=False)
    return found.value, found.interval()


@entry("heldout.private_separability", truth=("table", _both), privatized=("table", _both),
       epsilon=ONE, ignore=NO_NAME, categorical=NO_NAME, budget=NONE, **CUSTODY)  # fmt: skip
def private_separability(*, truth: Any, privatized: Any, **words: Any) -> Any:
    return ho.private_separability(truth, privatized, **words)


# --- precision-recall space ----------------------------------------------------------------------

LABELLED: dict[str, Argument] = {"y_true": LABELS, "y_score": SCORES, "positive": ("number", 1)}
AREA: dict[str, Argument] = {"prevalence": NONE, "recall": ("number", (0.0, 1.0))}


@entry("precision_recall.auc", "precision_recall.estimates", "precision_recall.normalised_auc",
       "precision_recall.ESTIMATORS", public=True, **LABELLED, **AREA,
       estimator=("name", "lower-trapezoid"), sample_weight=("column", None))  # fmt: skip
def areas(*, estimator: Any, **words: Any) -> Any:
    assert pr.auc(**words, estimator="binormal") is not None
    found = pr.auc(**words, estimator=estimator), pr.estimates(**words)
    return found, pr.normalised_auc(**words, estimator=estimator)


@entry("precision_recall.curve", "precision_recall.Curve", public=True, **LABELLED,
       estimator=("name", "lower-trapezoid"), at=("column", 0.5), confidence=("number", 0.95),
       method=("name", "effective"), random_state=("number", 1))  # fmt: skip
def pr_curve(*, at: Any, confidence: Any, method: Any, random_state: Any, **words: Any) -> Any:
    found = pr.curve(**words)
    found.precision_at(at)
    found.band(at, confidence=confidence)
    return found.interval(confidence, method=method, random_state=random_state)


@entry("precision_recall.summary_curve", "precision_recall.SummaryCurve", public=True, **LABELLED,
       prevalence=("number", 0.3), weights=("column", [1.0, 2.0]))  # fmt: skip
def summaries(*, prevalence: Any, weights: Any, **words: Any) -> Any:
    one = pr.curve(**words)
    return pr.summary_curve([one, one], prevalence=prevalence, weights=weights).auc


@entry("judged.count_right", public=True,
       table=("table", lambda: {"doc_id": ["1", "1", "2"], "exact": ["1", "0", "1"]}),
       by=("name", "doc_id"), column=("name", "exact"))  # fmt: skip
def right_answers(*, table: Any, **words: Any) -> Any:
    return ho.judged.count_right(table, **words)


@entry("judged.read_inspect", "judged.read_lm_eval", public=True,
       text=("name", '{"doc_id": 1, "exact_match": 1.0}'))  # fmt: skip
def logs(*, text: Any) -> Any:
    place = PLACE / "log.jsonl"
    place.write_text(str(text), encoding="utf-8", errors="replace")
    table = ho.judged.read_lm_eval(place)
    with contextlib.suppress(HeldoutError):
        ho.judged.read_inspect(place)
    return table


@entry("precision_recall.interval", "precision_recall.Interval", "precision_recall.METHODS",
       public=True, **LABELLED, value=NONE, positives=NONE, method=("name", None),
       confidence=("number", 0.95), estimator=("name", "lower-trapezoid"), prevalence=NONE,
       replicates=("number", 10), folds=("number", 2), random_state=("number", 1))  # fmt: skip
def intervals(**words: Any) -> Any:
    return pr.interval(**words)


@entry("precision_recall.auc_from_counts", public=True,
       true_positives=("column", [0, 1, 2]), false_positives=("column", [0, 1, 1]), **AREA,
       estimator=("name", "lower-trapezoid"))  # fmt: skip
def counts(**words: Any) -> Any:
    return pr.auc_from_counts(**words)


@entry("precision_recall.f_score", "precision_recall.f_score_contour",
       "precision_recall.normalised_f_score", "precision_recall.is_achievable",
       "precision_recall.minimum_precision", "precision_recall.minimum_auc",
       "precision_recall.minimum_average_precision", "precision_recall.precision_at_prevalence",
       public=True, which=("number", 0), recall=("number", 0.5), precision=("number", 0.5),
       beta=("number", 1.0), prevalence=("number", 0.25), value=("number", 0.5),
       new_prevalence=("number", 0.5), positives=("number", 3), negatives=("number", 4),
       between=("number", (0.0, 1.0)), many=("column", [0.5]))  # fmt: skip
def formulas(
    *, which: Any, recall: Any, precision: Any, beta: Any, prevalence: Any, value: Any,
    new_prevalence: Any, positives: Any, negatives: Any, between: Any, many: Any,
) -> Any:  # fmt: skip
    at = {"recall": recall, "precision": precision}
    each: list[Callable[[], Any]] = [
        lambda: pr.f_score(**at, beta=beta),
        lambda: pr.normalised_f_score(**at, prevalence=prevalence, beta=beta),
        lambda: pr.is_achievable(**at, prevalence=prevalence),
        lambda: pr.f_score_contour(many, value=value, beta=beta),
        lambda: pr.minimum_precision(recall=many, prevalence=prevalence),
        lambda: pr.minimum_auc(prevalence=prevalence, recall=between),
        lambda: pr.minimum_average_precision(positives=positives, negatives=negatives),
        lambda: pr.precision_at_prevalence(
            many, prevalence=prevalence, new_prevalence=new_prevalence
        ),
    ]
    if isinstance(which, int) and 0 < which < len(each):
        return each[which]()
    answers, refused = [], None
    for formula in each:  # one that refuses must not hide the others
        try:
            answers.append(formula())
        except HeldoutError as error:
            refused = error
    if refused is not None:
        raise refused
    return answers


@entry("precision_recall.interpolate", "precision_recall.interpolated_area", public=True,
       recall=("column", [0.3]), start=("number", (0.25, 0.5)), stop=("number", (0.5, 0.5)))  # fmt: skip
def interpolations(*, recall: Any, start: Any, stop: Any) -> Any:
    return pr.interpolate(recall, start=start, stop=stop), pr.interpolated_area(
        start=start, stop=stop
    )


@entry("precision_recall.aggregate", "precision_recall.Aggregate",
       "precision_recall.PrevalenceWarning", public=True, aucs=("column", [0.5, 0.6]),
       prevalences=("column", [0.25, 0.5]), weights=("column", None))  # fmt: skip
def aggregates(*, aucs: Any, **words: Any) -> Any:
    return pr.aggregate(aucs, **words)


# --- attacks, audits, examples -------------------------------------------------------------------


@entry("audit.exposure", "audit.Exposure", labels=LABELS, scores=SCORES, metric=("name", "auc"),
       decimals=NONE, most=("number", 10))  # fmt: skip
def exposures(*, labels: Any, scores: Any, **words: Any) -> Any:
    return audit.exposure(labels, scores, **words)


@entry("audit.label_from_auc", "audit.label_from_average_precision", "audit.label_from_roc",
       positives=("column", [0.75, 0.5]), negatives=("column", [0.25, 0.25]),
       published=("number", 0.5), roc=("column", None), decimals=NONE)  # fmt: skip
def attacks(*, positives: Any, negatives: Any, published: Any, roc: Any, decimals: Any) -> Any:
    given = (positives, negatives)
    found = [audit.label_from_auc(*given, published, decimals=decimals)]
    found.append(audit.label_from_average_precision(*given, published, decimals=decimals))
    if roc is not None:
        audit.label_from_roc(*given, roc, decimals=decimals)
    return found


@entry("audit.audit", "audit.AuditResult", "audit.Finding", "audit.Pair", "audit.Subject",
       "audit.audit_all", "audit.registered", public=True, subject=("name", "half-the-scale"),
       epsilon=ONE, samples=("number", 400), pairs=("name", None), confidence=("number", 0.999),
       door=("name", "public"), workers=("number", 1), kinds=("name", None))  # fmt: skip
def audits(*, kinds: Any, subject: Any, **words: Any) -> Any:
    if kinds is not None:
        audit.registered(kinds)
        return None
    return audit.audit(subject, **words)


@cache
def site(name: str) -> dict[str, Any]:
    """What one of two hospitals answered."""
    rows = {"y": [0, 1] * 200, "p": [0.2, 0.7] * 200}
    session = ho.Session(
        ho.Dataset(rows, label="y", score="p", name=name), budget=ho.Budget(epsilon=1)
    )
    return session.confusion(epsilon=1).as_dict()


@entry("heldout.pool", public=True, field=("name", "value"), value=("number", None), names=NONE)
def pooled(*, field: Any, value: Any, names: Any) -> Any:
    """One field of one site's answer is anything at all."""
    second = site("south")
    if value is not None and isinstance(field, str):
        second = {**second, field: value}
        for each in second:
            with contextlib.suppress(HeldoutError):
                ho.pool([site("north"), {**site("south"), each: value}])
    return ho.pool([site("north"), second], names=names)


@entry("examples.breast_cancer", "examples.messages", "examples.parole", "examples.readmission", "examples.salaries",
       public=True, rows=("number", 20))  # fmt: skip
def bundled(*, rows: Any) -> Any:
    for each in (examples.messages, examples.parole, examples.readmission, examples.salaries):
        each(rows)
    return examples.breast_cancer()
