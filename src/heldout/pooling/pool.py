"""`ho.pool`: the same question, answered by several custodians, becomes one answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from heldout.arguments import as_whole, shown, visible
from heldout.errors import ArgumentError
from heldout.intervals.confusion import noisy_counts
from heldout.kernel import Receipt
from heldout.kernel.door import Request, release
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.additive import NoiseShare
from heldout.pooling.answer import Pooled, PooledReport, SummedConfusion, summed
from heldout.pooling.site import Site, checked_sites
from heldout.questions import Question
from heldout.questions.counts import Confusion
from heldout.questions.quote import booked_together
from heldout.questions.registry import kind_of, registered, section_name
from heldout.questions.session import PrivateSession


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


# --- noise once for all sites: a secure sum -------------------------------------------------------
#
# heldout has no cryptography of its own. A `SecureSum` is somebody's that has: it must add integer
# vectors of all sites, exactly, and show nobody anything but the sum.


class SecureSum(Protocol):
    """A site's end of a secure aggregation."""

    def submit(self, vector: Sequence[int]) -> None:
        """Take part with these integers, modulo a public number that no sum comes near."""


def hand_in(
    session: PrivateSession, question: Confusion, *, honest: int, into: SecureSum
) -> Receipt:
    """Book a question at this site and hand its counts, with a share of the noise, to `into`.

    Nothing is returned but the receipt. `honest` is how many sites at least will add their share
    and keep it to themselves: the number of sites minus those that may drop out, lie or collude.
    The price is the whole question's, for people who are in this site alone.
    """
    if not isinstance(question, Confusion) or question.weighted:
        raise ArgumentError(
            "Only a confusion matrix that is neither weighted nor by group can be handed in."
        )
    if session._about.protection.only_labels:
        raise ArgumentError(
            "Shares of noise are for neighbours that protect rows. Under 'label' pool releases."
        )
    count = as_whole(honest)
    if count is None or not 1 <= count <= 10_000:
        raise ArgumentError(f"honest must be a whole number of sites, got {shown(honest)}.")
    asked = booked_together((question,), session._about)
    assert isinstance(asked, Request)
    mechanism = asked.mechanism
    assert isinstance(mechanism, DiscreteLaplace)
    shared = NoiseShare(
        scale=mechanism.scale,
        l1_sensitivity=mechanism.l1_sensitivity,
        dimension=mechanism.dimension,
        honest=count,
        hand_in=into.submit,
    )
    words = {"release": "share of a confusion matrix", "questions": [question.booked()]}
    drawn = release(
        _renamed(asked, shared, count),
        rows=session._table,
        about=session._about,
        ledger=session._ledger,
        account=session._account,
        words=words,
    )
    assert drawn.receipt is not None
    return drawn.receipt


def _renamed(asked: Request, shared: NoiseShare, honest: int) -> Request:
    parameters = {**asked.parameters, "honest": honest}
    return replace(
        asked, name="share of a confusion matrix", mechanism=shared, parameters=parameters
    )


def open_sum(
    total: Sequence[int], question: Confusion, *, sensitivity: int, honest: int, handed_in: int
) -> "SharedConfusion":
    """Return the confusion matrix of all sites, from the sum; everything read off it is free.

    `sensitivity` is a count's at one site (2 for replace-one neighbours, 1 for add-remove, times
    the rows a unit may keep), and `handed_in` how many sites took part. Fewer than `honest` are
    refused: the noise would be too little for the price that each of them paid.
    """
    if handed_in < honest:
        raise ArgumentError(
            f"{handed_in} sites handed in, but at least {honest} must. Do not open the sum."
        )
    mechanism = DiscreteLaplace.for_epsilon(
        question.price, l1_sensitivity=sensitivity, dimension=len(total)
    )
    return SharedConfusion(
        total, mechanism, draws=-(-handed_in // honest), terms=f"{handed_in} sites, noise once"
    )


class SharedConfusion(SummedConfusion):
    """The confusion matrix of all sites, with the noise of one release."""

    def __init__(
        self, total: Sequence[int], mechanism: DiscreteLaplace, *, draws: int, terms: str
    ) -> None:
        super().__init__(total, mechanism, rows=None, terms=terms)
        # More shares than must be honest are more noise, but less than so many whole draws.
        nothing = noisy_counts(np.zeros(4), mechanism, rows=None)
        self._counts = summed((self._counts, *[nothing] * (draws - 1)))
