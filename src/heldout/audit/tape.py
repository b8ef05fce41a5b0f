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

from heldout.kernel.noise import source
from heldout.kernel.noise.discrete_laplace import DiscreteLaplace, NoiseShare
from heldout.kernel.noise.mechanism import unseal
from heldout.kernel.noise.objective import ObjectivePerturbation
from heldout.kernel.noise.sparse_vector import AboveBar, SparseVector
from heldout.kernel.noise.tables.dawa import Dawa, scaled_costs
from heldout.kernel.noise.top_k import NoisyTopK, PermuteAndFlip
from heldout.kernel.ranking import mechanism as ranking
from heldout.kernel.ranking.ladder import PiecewiseLaplace
from heldout.kernel.ranking.laws import ScaledNoise
from heldout.questions.curves.methods import cuts
from heldout.questions.curves.methods.median import SmoothMedian
from heldout.questions.regression import bounds

__all__ = ["Draw", "PathsPart", "Tape"]


class PathsPart(BaseException):
    """The second run drew something else than the first. No mechanism may catch it."""


class _Nothing:
    """The source of a forced run: there is nothing to draw."""

    def random_bytes(self, count: int) -> bytes:
        raise PathsPart("a draw that no tape watches: add it to heldout.audit.tape")

    def plus_discrete_laplace(self, exact: list[int], scale: float) -> list[int]:
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


@dataclass
class Tape:
    """Records all draws while it is `running`; with `forced`, their outputs are the other's.

    >>> from fractions import Fraction
    >>> from heldout.kernel.sealed import Sealed
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

    def draw(
        self,
        kind: str,
        public: str,
        exact: Any,
        sample: Callable[[], Any],
        mechanism: Any = None,
    ) -> Any:
        """The output of one draw: new, or that of the other tape."""
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
        self.draws.append(Draw(kind, public, exact, copy.deepcopy(output), mechanism))
        return output

    def _other(self, kind: str, public: str) -> Any:
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
            for owner, name, watcher in _WATCHED:
                watched = watcher(self, getattr(owner, name))
                stack.enter_context(patch.object(owner, name, watched))
            yield
        if self.forced is not None and len(self.draws) < len(self.forced.draws):
            missing = self.forced.draws[len(self.draws)]
            raise PathsPart(f"the neighbour does not draw: {missing.kind}, {missing.public}")


def _vector(tape: Tape, original: Any) -> Any:
    def sample(self: Any, sealed: Any) -> Any:
        exact = np.asarray(unseal(sealed), dtype=np.int64)
        public = f"{self!r} of {exact.shape}"
        return tape.draw("discrete Laplace", public, exact, lambda: original(self, sealed), self)

    return sample


def _looks(tape: Tape, original: Any) -> Any:
    def noisy(look: Any, statistic: Any, randomness: Any) -> Any:
        if look is None:
            return ()
        exact = np.array([statistic.positives, statistic.negatives][: look.dimension])
        return tape.draw(
            "class counts",
            repr(look),
            exact,
            lambda: original(look, statistic, randomness),
            look,
        )

    return noisy


def _law(tape: Tape, original: Any) -> Any:
    def sample(self: Any, value: Any, *, rung: int, **words: Any) -> Any:
        return tape.draw(
            "smooth noise",
            repr(self),
            (value, rung),
            lambda: original(self, value, rung=rung, **words),
            self,
        )

    return sample


def _median(tape: Tape, original: Any) -> Any:
    def sample(self: Any, rows: Any, **words: Any) -> Any:
        place = int(rows.order_statistic((rows.count + 1) // 2))
        public = f"{self!r} from {rows.left} to {rows.right}"
        exact = (place, self.candidates(rows))
        return tape.draw("median", public, exact, lambda: original(self, rows, **words), self)

    return sample


def _choice(tape: Tape, original: Any) -> Any:
    def choose(weights: Any, penalties: Any, rate: Any, **words: Any) -> Any:
        known = np.asarray(weights, dtype=np.int64)
        public = f"rate {rate}, {len(known)} weights {hash(known.tobytes())}"
        exact = (known, np.asarray(penalties, dtype=np.int64), rate)
        return tape.draw(
            "choice", public, exact, lambda: original(weights, penalties, rate, **words)
        )

    return choose


def _answers(tape: Tape, original: Any) -> Any:
    def answer(self: Any, queries: Any, threshold: int) -> Any:
        exact = [int(query) for query in np.asarray(queries, dtype=object).ravel()]
        public = f"{self!r} of {len(exact)} queries at {threshold}"
        return tape.draw(
            "sparse vector",
            public,
            (exact, threshold),
            lambda: original(self, queries, threshold),
            self,
        )

    return answer


def _best(tape: Tape, original: Any) -> Any:
    def chosen(self: Any, scores: list[int]) -> Any:
        public = f"{self!r} of {len(scores)}"
        return tape.draw("top k", public, list(scores), lambda: original(self, scores), self)

    return chosen


def _bar(tape: Tape, original: Any) -> Any:
    def sample(self: Any, sealed: Any) -> Any:
        exact = int(unseal(sealed)[0])
        public = f"{self!r}, {self.test!r}"
        return tape.draw("bar", public, exact, lambda: original(self, sealed), self)

    return sample


def _share(tape: Tape, original: Any) -> Any:
    def sample(self: Any, sealed: Any) -> Any:
        exact = np.asarray(unseal(sealed), dtype=np.int64)
        public = f"{self.whole!r}, {self.honest} honest"

        def once() -> list[int]:
            sent: list[list[int]] = []
            original(_handing(self, sent), sealed)
            return sent[0]

        self.hand_in(tape.draw("share of noise", public, exact, once, self.whole))
        return self.dimension

    return sample


def _minimum(tape: Tape, original: Any) -> Any:
    def sample(self: Any, sealed: Any) -> Any:
        return tape.draw(
            "objective", repr(self), unseal(sealed), lambda: original(self, sealed), self
        )

    return sample


def _partition(tape: Tape, original: Any) -> Any:
    def edges(self: Any, exact: Any) -> Any:
        costs = scaled_costs(exact, multiple=self.multiple)
        public = f"{self!r} of {len(exact)} bins"
        return tape.draw("partition", public, costs, lambda: original(self, exact), self)

    return edges


def _handing(share: NoiseShare, sent: list[list[int]]) -> NoiseShare:
    """The same share of noise, handed to us."""
    return replace(share, hand_in=lambda numbers: sent.append(list(numbers)))


_WATCHED: Final[list[tuple[Any, str, Callable[[Tape, Any], Any]]]] = [
    (DiscreteLaplace, "sample", _vector),
    (ranking, "_noisy", _looks),
    (PiecewiseLaplace, "sample", _law),
    (ScaledNoise, "sample", _law),
    (SmoothMedian, "sample", _median),
    (cuts, "choose_exactly", _choice),
    (bounds, "choose_exactly", _choice),
    (SparseVector, "answers", _answers),
    (NoisyTopK, "chosen", _best),
    (PermuteAndFlip, "chosen", _best),
    (AboveBar, "sample", _bar),
    (NoiseShare, "sample", _share),
    (ObjectivePerturbation, "sample", _minimum),
    (Dawa, "_partition", _partition),
]
"""Owner, name, and what takes the original's place."""
