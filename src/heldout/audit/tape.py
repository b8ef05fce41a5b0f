"""Every place where noise is drawn, watched: for audits on made-up rows, and for nothing else.

A `Tape` records each draw in order: its kind, its public parameters, the exact numbers that the
noise hides, and what came out. A second tape that is given the first one forces the same outputs,
so that whatever is chosen in the light of earlier answers is chosen alike. `heldout.audit.replay`
compares the two. Nothing in production makes a tape; a test says so.

A draw is watched where its *output* is public. A sparse vector or a noisy maximum draws more noise
inside, which nobody sees: that is part of the one draw. While outputs are forced no random number
is drawn at all, and whoever asks for one draws noise that nobody watches: that is an error too.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from heldout.kernel.curves.heldout import CountsWithArea
from heldout.kernel.curves.labels import LabelCurves
from heldout.kernel.curves.thresholds import SmoothMedian
from heldout.kernel.noise import selection, source
from heldout.kernel.noise.additive import DiscreteGaussian, DiscreteLaplace, NoiseShare
from heldout.kernel.noise.dawa import Dawa, scaled_costs
from heldout.kernel.noise.disjoint import EachGroup, SummedParts
from heldout.kernel.noise.fits import ObjectivePerturbation, WishartDifference
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.selection import AboveBar, NoisyTopK, PermuteAndFlip, SparseVector
from heldout.kernel.ranking import mechanism as ranking
from heldout.kernel.ranking.ladder import PiecewiseLaplace, ScaledNoise
from heldout.kernel.statistic import Sealed


class PathsPart(BaseException):
    """The second run drew something else than the first. No mechanism may catch it."""


class _Nothing:
    """The source of a forced run: there is nothing to draw."""

    def random_bytes(self, count: int) -> bytes:
        raise PathsPart("a draw that no tape watches: add it to heldout.audit.tape")

    def plus_discrete_laplace(self, exact: list[int], scale: float) -> list[int]:
        raise PathsPart("a draw that no tape watches: add it to heldout.audit.tape")

    def plus_discrete_gaussian(self, exact: list[int], sigma: float) -> list[int]:
        raise PathsPart("a draw that no tape watches: add it to heldout.audit.tape")


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw: `kind` and `public` must not depend on rows; `exact` is what the noise hides."""

    kind: str
    public: str
    """Scale, dimension and whatever else decides the law, as text."""
    exact: Any
    output: Any
    mechanism: Any = None
    whole: Any = None
    """Of what is drawn inside a mechanism that claims for several draws together: its use."""

    @property
    def claims(self) -> Any:
        """Return the mechanism whose claim covers this draw."""
        return self.mechanism if self.whole is None else self.whole.mechanism


@dataclass(frozen=True, eq=False)
class Whole:
    """One use of a mechanism that claims for several draws together."""

    mechanism: Any


@dataclass
class Tape:
    """Records all draws while it is `running`; with `forced`, their outputs are the other's.

    >>> from fractions import Fraction
    >>> from heldout.kernel.statistic import Sealed
    >>> noise = DiscreteLaplace(scale=Fraction(1), l1_sensitivity=1, dimension=1)
    >>> first = Tape()
    >>> with first.running():
    ...     one = noise.sample(Sealed([5]))
    >>> second = Tape(forced=first)
    >>> with second.running():
    ...     other = noise.sample(Sealed([6]))
    >>> one.tolist() == other.tolist(), first.draws[0].exact.tolist()
    (True, [5])
    """

    forced: "Tape | None" = None
    draws: list[Draw] = field(default_factory=list)
    _depth: int = 0
    _whole: Whole | None = None

    def draw(
        self,
        kind: str,
        public: str,
        exact: object,
        sample: Callable[[], object],
        mechanism: object = None,
    ) -> object:
        """Return the output of one draw: new, or that of the other tape."""
        if self._depth:
            return sample()
        if self.forced is None:
            self._depth += 1
            try:
                output = sample()
            finally:
                self._depth -= 1
        else:
            output = self._other(kind, public)
        self.draws.append(Draw(kind, public, exact, copy.deepcopy(output), mechanism, self._whole))
        return output

    @contextmanager
    def inside(self, mechanism: object) -> Iterator[None]:
        """Take what is drawn now for parts of this mechanism, or of the one that it is within."""
        outer, self._whole = self._whole, self._whole or Whole(mechanism)
        try:
            yield
        finally:
            self._whole = outer

    def _other(self, kind: str, public: str) -> object:
        assert self.forced is not None
        place = len(self.draws)
        if place >= len(self.forced.draws):
            raise PathsPart(f"the neighbour draws once more: {kind}, {public}")
        other = self.forced.draws[place]
        if (other.kind, other.public) != (kind, public):
            raise PathsPart(
                f"draw {place + 1} is {other.kind}, {other.public}; the neighbour's is {kind}, "
                f"{public}"
            )
        return copy.deepcopy(other.output)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch every draw of this process."""
        with ExitStack() as stack:
            if self.forced is not None:
                stack.enter_context(source.using(_Nothing()))
            for watched in _WATCHED:
                stack.enter_context(patch.object(watched.owner, watched.name, watched.on(self)))
            yield
        if self.forced is not None and len(self.draws) < len(self.forced.draws):
            missing = self.forced.draws[len(self.draws)]
            raise PathsPart(f"the neighbour does not draw: {missing.kind}, {missing.public}")


Seen = tuple[str, object, object] | None
"""Public parameters, exact numbers and the mechanism; None where nothing is drawn."""


@dataclass(frozen=True)
class _Watched:
    """A function that draws: `look` sees what it is called with."""

    owner: object
    name: str
    kind: str
    look: Callable[..., Seen]

    def on(self, tape: Tape) -> Callable[..., object]:
        """Return what takes the function's place while a tape runs."""
        original = getattr(self.owner, self.name)

        def draw(*words: Any, **named: Any) -> object:
            seen = self.look(*words, **named)
            if seen is None:
                return original(*words, **named)
            public, exact, mechanism = seen
            return tape.draw(self.kind, public, exact, lambda: original(*words, **named), mechanism)

        return draw


class _WatchedWhole(_Watched):
    """A mechanism whose draws have no claims of their own."""

    def on(self, tape: Tape) -> Callable[..., object]:
        original = getattr(self.owner, self.name)

        def sample(mechanism: object, *words: Any, **named: Any) -> object:
            with tape.inside(mechanism):
                return original(mechanism, *words, **named)

        return sample


class _WatchedShare(_Watched):
    """A share of noise returns nothing that shows: what it hands in is its output."""

    def on(self, tape: Tape) -> Callable[..., object]:
        original = getattr(self.owner, self.name)

        def draw(share: NoiseShare, sealed: Sealed[Any]) -> object:
            def once() -> list[int]:
                sent: list[list[int]] = []
                to_us = replace(share, hand_in=lambda numbers: sent.append(list(numbers)))
                original(to_us, sealed)
                return sent[0]

            public = f"{share.whole!r}, {share.honest} honest"
            numbers: Any = tape.draw(self.kind, public, _integers(sealed), once, share.whole)
            share.hand_in(numbers)
            return share.dimension

        return draw


def _integers(sealed: Sealed[Any]) -> npt.NDArray[np.int64]:
    return np.asarray(unseal(sealed), dtype=np.int64)


def _see_vector(noise: DiscreteLaplace | DiscreteGaussian, sealed: Sealed[Any]) -> Seen:
    exact = _integers(sealed)
    return f"{noise!r} of {exact.shape}", exact, noise


def _see_matrix(noise: WishartDifference, sealed: Sealed[Any]) -> Seen:
    return repr(noise), _integers(sealed), noise


def _see_parts(noise: SummedParts, sealed: Sealed[Any]) -> Seen:
    return repr(noise), unseal(sealed), noise


def _see_class_counts(look: Any, statistic: Any, randomness: object) -> Seen:
    if look is None:
        return None
    counts = np.array([statistic.positives, statistic.negatives][: look.dimension])
    return repr(look), counts, look


def _see_law(law: object, value: object, *, rung: int, **_: object) -> Seen:
    return repr(law), (value, rung), law


def _see_median(median: SmoothMedian, rows: Any, **_: object) -> Seen:
    place = int(rows.order_statistic((rows.count + 1) // 2))
    public = f"{median!r} from {rows.left} to {rows.right}"
    return public, (place, median.candidates(rows)), median


def _see_choice(weights: Any, penalties: Any, rate: object, **_: object) -> Seen:
    known = np.asarray(weights, dtype=np.int64)
    public = f"rate {rate}, {len(known)} weights {hash(known.tobytes())}"
    return public, (known, np.asarray(penalties, dtype=np.int64), rate), None


def _see_queries(test: SparseVector, queries: Any, threshold: int) -> Seen:
    exact = [int(query) for query in np.asarray(queries, dtype=object).ravel()]
    return f"{test!r} of {len(exact)} queries at {threshold}", (exact, threshold), test


def _see_scores(mechanism: object, scores: list[int]) -> Seen:
    return f"{mechanism!r} of {len(scores)}", list(scores), mechanism


def _see_bar(bar: AboveBar, sealed: Sealed[Any]) -> Seen:
    return f"{bar!r}, {bar.test!r}", int(unseal(sealed)[0]), bar


def _see_objective(mechanism: ObjectivePerturbation, sealed: Sealed[Any]) -> Seen:
    return repr(mechanism), unseal(sealed), mechanism


def _see_partition(dawa: Dawa, exact: Any) -> Seen:
    costs = scaled_costs(exact, multiple=dawa.multiple)
    return f"{dawa!r} of {len(exact)} bins", costs, dawa


_WATCHED: Final = (
    _Watched(DiscreteLaplace, "sample", "discrete Laplace", _see_vector),
    _Watched(DiscreteGaussian, "sample", "discrete Gaussian", _see_vector),
    _Watched(SummedParts, "sample", "parts", _see_parts),
    _Watched(WishartDifference, "sample", "Wishart", _see_matrix),
    _Watched(ranking, "_noisy", "class counts", _see_class_counts),
    _Watched(PiecewiseLaplace, "sample", "smooth noise", _see_law),
    _Watched(ScaledNoise, "sample", "smooth noise", _see_law),
    _Watched(SmoothMedian, "sample", "median", _see_median),
    _Watched(selection, "choose_exactly", "choice", _see_choice),
    _Watched(SparseVector, "answers", "sparse vector", _see_queries),
    _Watched(NoisyTopK, "chosen", "top k", _see_scores),
    _Watched(PermuteAndFlip, "chosen", "top k", _see_scores),
    _Watched(AboveBar, "sample", "bar", _see_bar),
    _WatchedShare(NoiseShare, "sample", "share of noise", lambda *_: None),
    _Watched(ObjectivePerturbation, "sample", "objective", _see_objective),
    _Watched(Dawa, "_partition", "partition", _see_partition),
    _WatchedWhole(EachGroup, "sample", "", lambda *_: None),
    _WatchedWhole(CountsWithArea, "draw", "", lambda *_: None),
    _WatchedWhole(LabelCurves, "sample", "", lambda *_: None),
)
