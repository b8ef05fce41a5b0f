"""Noise once for all sites: each hands in its counts under a secure sum, and the sum is read here.

heldout has no cryptography of its own. A `SecureSum` is somebody's that has: it must add integer
vectors of all sites, exactly, and show nobody anything but the sum.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from heldout.arguments import as_whole, shown
from heldout.errors import ArgumentError
from heldout.intervals.confusion import noisy_counts
from heldout.kernel import Receipt
from heldout.kernel.door import Request, release
from heldout.kernel.noise import DiscreteLaplace
from heldout.kernel.noise.discrete_laplace import NoiseShare
from heldout.pooling.answer import SummedConfusion, summed
from heldout.questions.counts import Confusion
from heldout.questions.quote import booked_together
from heldout.questions.session import PrivateSession


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
