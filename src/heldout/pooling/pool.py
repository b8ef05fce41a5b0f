"""`ho.pool`: the same question, answered by several custodians, becomes one answer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from heldout.arguments import shown, visible
from heldout.errors import ArgumentError
from heldout.pooling.answer import Pooled, PooledReport
from heldout.pooling.site import Site, checked_sites
from heldout.questions import Question
from heldout.questions.registry import kind_of, registered, section_name


def pool(answers: Iterable[Any], *, names: Sequence[str] | None = None) -> Pooled | PooledReport:
    """Releases of several sites as one answer; reports as one answer per question.

    Each of `answers` is a release or a report, or its `as_dict()` (what `--json` writes); `names`
    are the sites'. Confusion matrices and means are added up, with the law of all noises
    together; areas and their differences are combined by meta-analysis, and curves at common
    thresholds. No row is read and nothing is paid: the price is what each site booked, and holds as
    it stands for people who are in one site alone.
    """
    if isinstance(answers, str | bytes | Mapping) or not isinstance(answers, Iterable):
        raise ArgumentError(f"Pass a list of answers, one per site, got {shown(answers)}.")
    contents = [_as_mapping(answer) for answer in answers]
    if len(contents) < 2:
        raise ArgumentError(f"pool() needs the answers of two sites or more, got {len(contents)}.")
    called = _called(names, len(contents))
    reports: list[Any] = [content.get("releases") for content in contents]
    if all(report is None for report in reports):
        return _pooled(contents, called)
    for name, content, report in zip(called, contents, reports, strict=True):
        if not isinstance(report, Mapping):
            kind = "a release and no" if "release" in content else "neither a release nor a"
            raise ArgumentError(
                f"{visible(name)} is {kind} report. Pass either releases or reports, not both."
            )
    _check_subjects(contents)
    reports = [{section_name(name): report[name] for name in report} for report in reports]
    common = [name for name in reports[0] if all(name in report for report in reports)]
    answers_by_name = {
        name: _pooled([report[name] for report in reports], called)
        for name in common
        if any(_can_be_pooled(report[name]) for report in reports)
        and len({_rule_of_ties(report[name]) for report in reports}) == 1
    }
    if not answers_by_name:
        raise ArgumentError("The reports have no question in common that can be pooled.")
    asked = dict.fromkeys(name for report in reports for name in report)
    return PooledReport(
        answers_by_name, left_out=tuple(name for name in asked if name not in answers_by_name)
    )


def _called(names: Any, sites: int) -> list[str]:
    if names is None:
        return [f"site {k + 1}" for k in range(sites)]
    listed = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if not listed or len(names) != sites or len(set(names)) != sites:
        raise ArgumentError("names must be a list of texts, one per site, all different.")
    return list(names)


def _can_be_pooled(content: Any) -> bool:
    question = kind_of(content)
    by_group = isinstance(content, Mapping) and "groups" in content
    return question is not None and question.pools() and not by_group


def _rule_of_ties(content: Any) -> object:
    """Return how ties count; older reports have another rule, which their sites did not choose."""
    named = content.get("parameters") if isinstance(content, Mapping) else None
    return named.get("ties") if isinstance(named, Mapping) else None


def _pooled(contents: Sequence[Any], names: Sequence[str]) -> Pooled:
    questions = [_question(content) for content in contents]
    sites = [
        Site(str(name), content, _range(question, content), question.kind)
        for name, content, question in zip(names, contents, questions, strict=True)
    ]
    checked_sites(sites)
    try:
        return questions[0].pool(sites)
    except ArgumentError:
        raise
    except (ArithmeticError, KeyError, TypeError, ValueError):
        raise ArgumentError(
            "The noisy counts or curves of a release cannot be read. Pass what its as_dict() gives."
        ) from None


def _question(content: Any) -> type[Question[Any]]:
    """Return the kind of question that a release answers; refuse what cannot be pooled."""
    question = kind_of(content)
    if question is not None and question.pools():
        return question
    why = "" if question is None else f": {question.cannot_pool}"
    called = content.get("release") if isinstance(content, Mapping) else content
    known = ", ".join(kind.kind for kind in registered() if kind.pools())
    raise ArgumentError(f"A release of {shown(called)} cannot be pooled{why}. These can: {known}.")


def _range(question: type[Question[Any]], content: Mapping[str, Any]) -> tuple[float, float]:
    try:
        return question.headline_range(content["parameters"])
    except (ArgumentError, KeyError, TypeError, ValueError):
        return (0.0, 1.0)  # checked_sites says what is wrong


def _as_mapping(answer: Any) -> Mapping[str, Any]:
    content = answer.as_dict() if hasattr(answer, "as_dict") else answer
    if not isinstance(content, Mapping):
        raise ArgumentError(
            f"An answer must be a release, a report or its as_dict(), got {shown(answer)}."
        )
    return content


def _check_subjects(contents: Sequence[Mapping[str, Any]]) -> None:
    """Reports also say what the rows are: the same model judged on the same scale."""
    subjects = [content.get("subject") for content in contents]
    for name, words in (("score_range", "score ranges"), ("score_map", "score maps")):
        values = [
            subject.get(name) if isinstance(subject, Mapping) else None for subject in subjects
        ]
        if any(value != values[0] for value in values):
            raise ArgumentError(
                f"The reports have different {words}. Ask every site with the same."
            )
