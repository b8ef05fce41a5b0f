"""The board itself: each submission learns whether it improved; improvements are shown."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from heldout.arguments import shown
from heldout.arrays import Ints
from heldout.data import Dataset
from heldout.errors import AlreadyBooked, AnswerLost, ArgumentError, LedgerError, PrivacyError
from heldout.kernel import Account, Budget, Event, Ledger
from heldout.kernel.door import Request, release
from heldout.kernel.ledger.records import checked_name
from heldout.kernel.noise import Mechanism
from heldout.kernel.noise.selection import AboveBar, Prepaid, secret_of
from heldout.questions.boards.plan import Certificate, Plan

Noisy = TypeVar("Noisy")


@dataclass
class State:
    """The bar, and every submission in order."""

    secret: int
    paid: int
    submissions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"State(paid={self.paid}, submissions={len(self.submissions)})"

    @property
    def improvements(self) -> int:
        return sum(submission["above"] for submission in self.submissions.values())

    @property
    def shown(self) -> list[float]:
        return [
            submission["score"]
            for submission in self.submissions.values()
            if submission["score"] is not None
        ]


class StateFile:
    """One board's file; `held` keeps others out while a submission is judged."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def read(self) -> State | None:
        """The state, or None if there is none yet."""
        try:
            content = json.loads(self.path.read_text(encoding="ascii"))
            return State(int(content["secret"]), int(content["paid"]), content["submissions"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise LedgerError("The board's state cannot be read. Restore it from a copy.") from None

    def write(self, state: State) -> None:
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        handle = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump(vars(state), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class BoardEnded(PrivacyError):
    """The board takes no more submissions."""


@dataclass(frozen=True)
class Outcome:
    """Tells a submission whether it improved, and if so its score as it is shown."""

    improved: bool
    score: float | None
    best: float
    certificate: Certificate | None

    def __str__(self) -> str:
        if not self.improved:
            return f"Not an improvement; the best is {self.best:.4g}."
        if self.score is None:
            return "An improvement, whose score was lost after it was paid for."
        return f"An improvement: {self.score:.4g}, {self.certificate}."

    def as_dict(self) -> dict[str, Any]:
        certificate = None if self.certificate is None else self.certificate.as_dict()
        return vars(self) | {"certificate": certificate}


class Board:
    """A leaderboard over a registered account.

    Claim:       everything that a board ever says, however many submissions there are and however
                 they were chosen, is `price`-private.                           [claim: board]
    Neighbours:  replace-one, the number of rows public.
    Sensitivity: the merit's.
    Numerics:    exact.
    Refuses:     an account that cannot pay the whole price when the board opens; rows of another
                 number than planned, or under another relation; a submission after the last one
                 or after the last improvement; a bar that was paid for and lost; a state that is
                 another board's, or older than what the ledger booked.
    Reference:   Blum and Hardt 2015; Lyu, Su and Li 2017; proofs/board.md.
    Cost:        one scan and one ledger entry a submission.
    """

    def __init__(
        self,
        name: str,
        *,
        plan: Plan,
        ledger: Ledger,
        account: str,
        state: str | os.PathLike[str],
    ) -> None:
        """Open the board, or take it up again where it was left."""
        self.name, self.plan = checked_name("name", name), plan
        if "/" in name:
            raise ArgumentError(f"name must be a text without a slash, got {shown(name)}.")
        self._ledger, self._data = ledger, account
        self._file = StateFile(state)
        self._share = self._granted()
        with self._file.locked():
            known = self._file.read()
            self._draw_bar() if known is None else self._check_bar(known)
            self._scores_paid = self._pay_scores()

    @property
    def _whose(self) -> str:
        return f"board {self.name}"

    @property
    def _bar_reference(self) -> str:
        return f"board/{self.name}/bar"

    @property
    def _terms(self) -> dict[str, str]:
        """The plan as the ledger keeps it with the bar."""
        return {name: str(value) for name, value in self.plan.as_dict().items()}

    def _granted(self) -> Account:
        """The board's own share of the account, of exactly its price."""
        budget = Budget(epsilon=self.plan.price)
        known = self._ledger.share(self._data, self._whose)
        if known is None:
            return self._ledger.grant(self._data, analyst=self._whose, budget=budget)
        if known.budget != budget:
            raise LedgerError(f"The board {shown(self.name)} was opened with another price.")
        return known

    def _draw_bar(self) -> None:
        """Pay for the bar and every score that may be shown, then draw the bar, once for all.

        From here on no answer can fail because somebody else spent the account.
        """
        try:
            receipt = self._ledger.book(
                self._share,
                self.plan.event(),
                request={
                    "release": "board bar",
                    "reference": self._bar_reference,
                    "plan": self._terms,
                },
            )
        except AlreadyBooked as error:
            raise LedgerError(
                f"The bar of board {shown(self.name)} was drawn before (entry {error.sequence}), "
                "and its state is gone. Restore it; another bar would be another board."
            ) from None
        self._file.write(State(secret_of(self.plan.test), receipt.sequence))

    def _check_bar(self, state: State) -> None:
        """Refuse a bar that was not paid for on these terms, and a count of answers that fell."""
        paid = self._ledger.booked(self._bar_reference)
        if (
            paid is None
            or (paid.sequence, paid.account) != (state.paid, self._share.id)
            or paid.request["plan"] != self._terms
        ):
            raise LedgerError(
                f"This is the state of another board, or {shown(self.name)} was opened with "
                "another plan or account. Nothing was charged."
            )
        if state.improvements < self._scores_booked():
            raise LedgerError(
                "The board's state is older than what the ledger booked: improvements that were "
                "shown are missing in it, and others would take their place. Restore the newest."
            )

    def _scores_booked(self) -> int:
        """Count the scores that were shown, or lost on the way, by the ledger."""
        start = f"board/{self.name}/score/"
        entries = self._ledger.entries(self._share)
        return sum(str(entry.request.get("reference", "")).startswith(start) for entry in entries)

    def _pay_scores(self) -> int:
        """Return the entry that paid for the scores.

        It is the bar's. Older versions paid for the bar alone when a board opened, and for each
        score when it was shown: what is left of such a board's price is paid when it is taken up.
        """
        bar = self._ledger.booked(self._bar_reference)
        assert bar is not None
        if bar.event == self.plan.event():
            return bar.sequence
        reference = f"board/{self.name}/scores"
        paid = self._ledger.booked(reference)
        if paid is not None:
            return paid.sequence
        left = self.plan.improvements - self._scores_booked()
        if left == 0:
            return bar.sequence  # the board has ended
        request = {"release": "board scores", "reference": reference}
        event = Event("adaptive", {"epsilon": left * self.plan.shown_price})
        return self._ledger.book(self._share, event, request=request).sequence

    # --- what everybody may know -----------------------------------------------------------------

    @property
    def best(self) -> float:
        """The best score that was shown, or the start."""
        return self._best(self._state())

    @property
    def left(self) -> tuple[int, int]:
        """Submissions and improvements that are left."""
        state = self._state()
        return (
            self.plan.submissions - len(state.submissions),
            self.plan.improvements - state.improvements,
        )

    def entries(self) -> list[tuple[str, float]]:
        """The improvements that were shown, in order: submission and score."""
        submissions = self._state().submissions.items()
        return [
            (name, outcome["score"])
            for name, outcome in submissions
            if outcome["score"] is not None
        ]

    def _best(self, state: State) -> float:
        return max([self.plan.start, *state.shown])

    def _state(self) -> State:
        state = self._file.read()
        if state is None:
            raise LedgerError("The board's state is gone. Restore it from a copy.")
        return state

    # --- a submission ----------------------------------------------------------------------------

    def submit(self, rows: Dataset, *, submission: str) -> Outcome:
        """Judge a model by the rows with its scores; the same submission is judged once."""
        self._check(rows)
        checked_name("submission", submission)
        with self._file.locked():
            state = self._state()
            self._check_bar(state)
            if submission not in state.submissions:
                self._judge(rows, submission, state)
            outcome = state.submissions[submission]
            if outcome["above"] and outcome["score"] is None and not outcome["lost"]:
                self._show(rows, submission, state)
            return self._outcome(state.submissions[submission], state)

    def _check(self, rows: Dataset) -> None:
        about = rows.description
        if not about.protection.row_count_is_public or about.rows != self.plan.rows:
            raise ArgumentError(
                f"A board of {self.plan.rows:,} rows needs as many, under replace-one neighbours "
                "without a unit: its certificate counts independent rows."
            )
        if about.score_map is not None or about.score_range != (0.0, 1.0):
            raise ArgumentError("A board needs scores from 0 to 1: score_range=(0, 1).")

    def _judge(self, rows: Dataset, submission: str, state: State) -> None:
        if len(state.submissions) >= self.plan.submissions:
            raise BoardEnded("The board has had its last submission. Nothing was charged.")
        if state.improvements >= self.plan.improvements:
            raise BoardEnded("The board has shown its last improvement. Nothing was charged.")
        reached = self.plan.reached(self._bar(state))
        mechanism = AboveBar(self.plan.test, reached, state.paid, state.secret)
        # Written down before anything else happens, so that what follows cannot choose the answer.
        try:
            above = self._draw(rows, mechanism, f"submission/{submission}", state)
            outcome = {"above": above, "score": None, "lost": False}
        except (AlreadyBooked, AnswerLost):  # booked by a process that was lost: it counts
            outcome = {"above": False, "score": None, "lost": True}
        state.submissions[submission] = outcome
        self._file.write(state)

    def _show(self, rows: Dataset, submission: str, state: State) -> None:
        """Show an improvement's score; one that was lost is not drawn again."""
        outcome = state.submissions[submission]
        noise = Prepaid(self.plan.noise, self._scores_paid)
        try:
            noisy = self._draw(rows, noise, f"score/{submission}", state)
            numbers = [int(number) for number in noisy]
            outcome["score"] = self.plan.shown_score(numbers, self._bar(state))
        except (AlreadyBooked, AnswerLost):
            outcome["lost"] = True
        self._file.write(state)

    def _bar(self, state: State) -> float:
        """Return what a submission has to reach now."""
        assert self.plan.step is not None
        return self._best(state) + self.plan.step

    def _draw(
        self, rows: Dataset, mechanism: Mechanism[Ints, Noisy], what: str, state: State
    ) -> Noisy:
        merit = self.plan.merit(self._bar(state))
        request = Request("board", merit, mechanism, {"board": self.name})
        words = {"release": "board", "reference": f"board/{self.name}/{what}"}
        about, digests = rows.bind_ledger(self._ledger.id, by_content=False)
        account = self._ledger.resolve(
            fingerprints=digests,
            protection=rows.protection,
            rows=rows.public_rows,
            name=rows.name,
            account=self._data,
            analyst=self._whose,
        )
        answer: Noisy = release(
            request,
            rows=rows,
            about=about,
            ledger=self._ledger,
            account=account,
            words=words,
        ).values
        return answer

    def _outcome(self, outcome: dict[str, Any], state: State) -> Outcome:
        if outcome["lost"] and not outcome["above"]:
            raise LedgerError("This submission was lost before it was judged. Submit it anew.")
        certificate = None if outcome["score"] is None else self.certificate()
        return Outcome(outcome["above"], outcome["score"], self._best(state), certificate)

    def certificate(self, level: float = 0.95) -> Certificate:
        """Return what holds of every score that is shown."""
        return certificate_of(self.plan, level)


def certificate_of(plan: Plan, level: float = 0.95) -> Certificate:
    """Certify every score that a board shows: over-fitting, noise and rounding together.

    A fifth of the failures is left to noise, for all scores that may be shown.
    """
    failing = 1 - level
    certificate = plan.certificate(1 - failing * 0.8)
    noise = plan.noise_half_width(1 - failing * 0.2 / plan.improvements)
    return replace(certificate, bound=min(certificate.bound + noise, 1.0), level=level)
