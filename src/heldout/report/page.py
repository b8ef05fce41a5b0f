"""The report as one HTML page that needs nothing from anywhere else.

No script, and no font, style or picture from another place. Every text that somebody chose (the
name of the data, of a column) is escaped.
"""

import importlib.metadata
import platform
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

import heldout
from heldout.privacy import Loss
from heldout.report.pictures import interval_plot
from heldout.report.report import Report
from heldout.report.sections import Figure, section
from heldout.report.words import amount, belief, decimal, protection_in_words, spread

ENGINES = ("duckdb", "opendp")

NOT_PROTECTED = (
    "What the rows say about people in general. That is what an evaluation is for; only what is "
    "particular to one protected row or unit is hidden.",
    "What was learnt elsewhere: from the model itself, from its training data, or from another "
    "budget on the same people.",
    "The machine that holds the rows. Whoever can read its disk or memory, or time its answers "
    "closely, does not need this report.",
    "The words on this page: the names of the data and of its columns, the threshold, the range "
    "of the scores and the prices are public.",
)


def page(report: Report, *, level: float = 0.95) -> str:
    """The whole document."""
    subject = report.subject
    title = f"{subject.score} on {subject.data}"
    style = files("heldout.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta name="generator" content="heldout {escape(heldout.__version__)}">\n'
        f"<title>{escape(title)}: private evaluation</title>\n<style>\n{style}</style>\n"
        f"</head>\n<body>\n{_header(report)}\n<main>\n{_findings(report, level)}\n"
        f"{_tables(report, level)}\n{_reading(report, level)}\n{_price(report)}\n"
        f"{_not_protected()}\n</main>\n{_foot(report)}\n</body>\n</html>\n"
    )


def _header(report: Report) -> str:
    subject = report.subject
    when = f"{report.time.day} {report.time:%B %Y, %H:%M} UTC"
    rows = "" if subject.rows is None else f" ({subject.rows:,} rows)"
    facts = [
        ("Data", escape(subject.data) + rows),
        ("Model", f"score <code>{escape(subject.score)}</code>, "
                  f"{escape(subject.scores_in_words())}"),
        ("Outcome", f"<code>{escape(subject.label)}</code>"),
        ("Date", f'<time datetime="{report.time.isoformat()}">{when}</time>'),
        ("Price", f"epsilon {decimal(report.epsilon)}; {amount(report.remaining)} left of "
                  f"{amount(report.budget)}"),
        ("Protection", escape(protection_in_words(subject.protection, subject.rows))),
    ]  # fmt: skip
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts)
    return (
        '<header>\n<p class="eyebrow">Private model evaluation</p>\n'
        f"<h1>How good is {escape(subject.score)} on {escape(subject.data)}?</h1>\n"
        f'<p class="lead">{escape(_sentence(report))}</p>\n'
        f'<dl class="facts">{listed}</dl>\n</header>'
    )


def _sentence(report: Report) -> str:
    headline = report.headline
    value, interval, noise = spread(headline, 0.95)
    return (
        f"The {headline.name} is {value}. In the population that these rows come from it lies, "
        f"with 95% confidence, between {interval.replace(' to ', ' and ')}; the noise that "
        f"protects people accounts for {noise} of that."
    )


def _findings(report: Report, level: float) -> str:
    cards, figures = [], [interval_plot(report.plotted(), level=level)]
    for name, release in report.releases.items():
        about = section(name)
        for measure in [release.measures[each] for each in about.cards] or [release.headline]:
            value, interval, _ = spread(measure, level)
            better = '<span class="note">lower is better</span>' if about.lower_is_better else ""
            cards.append(
                f'<li><span class="name">{escape(measure.name)}</span><span class="value">{value}'
                f'</span><span class="range">{interval}</span>{better}</li>'
            )
        figures += about.figures(release)
    return (
        '<section aria-labelledby="findings">\n<h2 id="findings">What was found</h2>\n'
        f'<ul class="cards">{"".join(cards)}</ul>\n'
        f'<p class="note">Under each value: its {level * 100:g}% interval, which holds the chance '
        "of the sample and the privacy noise both.</p>\n"
        f'<div class="figures">{"".join(_figure(each) for each in figures)}</div>\n</section>'
    )


def _figure(figure: Figure) -> str:
    return f"<figure>{figure.svg}<figcaption>{escape(figure.caption)}</figcaption></figure>"


def _tables(report: Report, level: float) -> str:
    percent = f"{level * 100:g}%"
    parts = []
    for name, release in report.releases.items():
        about = section(name)
        rows = [
            [escape(each), *spread(measure, level)] for each, measure in release.measures.items()
        ]
        table = _table(
            f"{about.title}: released values with {percent} intervals",
            ("Measure", "Value", f"{percent} interval", "Noise alone"),
            rows,
        )
        parts.append(f"<h3>{escape(about.title)}</h3>\n<p>{escape(about.meaning)}</p>\n{table}")
    ties = report.tie_bound(level)
    if ties is not None:
        parts.append(f'<p class="note">{escape(ties.sentence())}</p>')
    for name, reason in report.left_out.items():
        title = escape(section(name).title)
        parts.append(f'<p class="note">{title} is left out: {escape(reason)}.</p>')
    body = "\n".join(parts)
    return (
        '<section aria-labelledby="numbers">\n<h2 id="numbers">All numbers</h2>\n'
        f"{body}\n</section>"
    )


def _reading(report: Report, level: float) -> str:
    percent = f"{level * 100:g}%"
    return (
        '<section aria-labelledby="reading">\n<h2 id="reading">How to read the intervals</h2>\n'
        f"<p><strong>Interval</strong>: had other people of the same population been in the test "
        f"set, and other noise been drawn, such an interval would hold the population’s value "
        f"in at least {percent} of cases. Use it to judge the model.</p>\n"
        f"<p><strong>Noise alone</strong>: how far privacy may have moved the number from the "
        f"exact one on these rows, with {percent} confidence. If it is small against the "
        "interval, paying more would buy little.</p>\n"
        '<p class="note">Numbers of rows speak of these rows alone, so both intervals are the '
        "same. Each interval holds for its own number; all of them together hold a little less "
        "often.</p>\n</section>"
    )


def _price(report: Report) -> str:
    rows = [
        [
            escape(section(name).title),
            f"epsilon {decimal(report.shares[name])}",
            escape(str(release.mechanism.get("name", ""))),
            f"{release.receipt.sequence}",
            f"<code>{escape(release.receipt.hash)}</code>",
        ]
        for name, release in report.releases.items()
    ]
    table = _table(
        "What was released, at which price, and the receipt in the ledger",
        ("Release", "Price", "Mechanism", "Entry", "Receipt"),
        rows,
        last="hash",
    )
    bet = belief(Loss.pure(report.epsilon), report.subject.protection)
    so_far = ""
    if report.spent != Loss.pure(report.epsilon):
        total = belief(report.spent, report.subject.protection)
        so_far = f"<p>Everything that was ever asked of these rows cost {amount(report.spent)}. "
        so_far += f"{escape(total)}</p>\n"
    return (
        '<section aria-labelledby="price">\n<h2 id="price">What was paid</h2>\n'
        f"<p>This report cost epsilon {decimal(report.epsilon)}, booked before any noise was "
        f"drawn. {escape(bet)}</p>\n{so_far}{table}\n"
        '<p class="note">Keep the receipts: <code>heldout ledger verify LEDGER --receipt '
        "RECEIPT</code> finds each booking again, or tells that the ledger was changed.</p>\n"
        "</section>"
    )


def _not_protected() -> str:
    items = "".join(f"<li>{escape(each)}</li>" for each in NOT_PROTECTED)
    return (
        '<section aria-labelledby="limits">\n<h2 id="limits">What is not protected</h2>\n'
        f'<ul class="plain">{items}</ul>\n</section>'
    )


def _foot(report: Report) -> str:
    engines = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ENGINES)
    return (
        f'<footer>\n<p class="note">heldout {escape(heldout.__version__)}, Python '
        f"{platform.python_version()}, {escape(engines)}. {escape(report.terms)}.</p>\n</footer>"
    )


def _table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, last: str = ""
) -> str:
    """A table whose cells are HTML already; the first cell of a row is its header."""
    marked = f' class="{last}"' if last else ""
    final = len(head) - 1
    top = "".join(
        f'<th scope="col"{marked if i == final else ""}>{escape(each)}</th>'
        for i, each in enumerate(head)
    )
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(
            f"<td{marked if i == final else ''}>{cell}</td>" for i, cell in enumerate(row) if i
        )
        + "</tr>"
        for row in rows
    )
    said = escape(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{said}">'
        f"<table><caption>{said}</caption>"
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
