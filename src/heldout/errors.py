"""Every error that heldout raises on purpose.

A message reads `<name> must <rule>, got <value>. <What to do.>` and never holds a private value.
`DataError` and its kinds are raised while a custodian builds a `Dataset`; no later step looks at
rows and raises.
"""


class HeldoutError(Exception):
    """Base of all errors of this package; the command line prints it as one line."""


class ArgumentError(HeldoutError, ValueError):
    """A public argument breaks its rule. Nothing was charged."""


class UndeclaredRival(ArgumentError):
    """A comparison names a column that the custodian did not declare. Nothing was charged."""


class MissingDependency(HeldoutError, ImportError):
    """An optional library is needed; the message names the extra to install."""


# --- data, on the custodian's side ---------------------------------------------------------------


class DataError(HeldoutError, ValueError):
    """The custodian's table breaks what was declared about it."""


class MissingColumn(DataError):
    """A declared column is not in the table."""


class EmptyTable(DataError):
    """The table has no row."""


class MissingLabel(DataError):
    """A label is NULL."""


class UnknownLabel(DataError):
    """A label is neither of the two declared values."""


class MissingScore(DataError):
    """A score is NULL or NaN."""


class InfiniteScore(DataError):
    """A score is infinite."""


class ScoreOutOfRange(DataError):
    """A score lies outside the declared range."""


class MissingUnit(DataError):
    """A unit or row key is NULL."""


class DuplicateRowKey(DataError):
    """Two rows have the same row key."""


class WrongType(DataError, TypeError):
    """Rows of a kind that an estimator does not take."""


class UnreadableTable(DataError):
    """The table cannot be opened or read with the declared schema."""


# --- privacy ------------------------------------------------------------------------------------


class PrivacyError(HeldoutError):
    """A request that the privacy rules refuse. Nothing was charged."""


class BudgetExceeded(PrivacyError):
    """The request costs more than what is left."""

    cost: str = ""
    left: str = ""


class AnswerLost(HeldoutError):
    """Something failed after the booking: the price stays booked, and there is no answer."""

    def __init__(self, sequence: int, receipt: str, why: str = "") -> None:
        super().__init__(
            f"The answer was lost after it was booked as entry {sequence} (receipt {receipt}). "
            f"The price stays booked. {why}".strip()
        )
        self.sequence, self.receipt = sequence, receipt


class AlreadyBooked(PrivacyError):
    """A booking with this reference is in the ledger; it is not made again."""

    def __init__(self, sequence: int, receipt: str) -> None:
        super().__init__(
            f"This request was booked before, as entry {sequence} (receipt {receipt}). It is not "
            "booked again."
        )
        self.sequence, self.receipt = sequence, receipt


class UnknownEvent(PrivacyError):
    """An event of a kind or version that this accountant cannot price."""


class BudgetMismatch(PrivacyError):
    """The data already has a budget, and it is another one."""


class SealedError(PrivacyError, TypeError):
    """Somebody tried to look at an un-noised statistic."""


class NotPrivate(PrivacyError):
    """A published algorithm that is not private was called without `not_private=True`."""


class LedgerError(PrivacyError):
    """The ledger cannot be opened, read or trusted."""


class LedgerTampered(LedgerError):
    """The ledger's chain of hashes is broken, or an entry that was seen before is gone."""

    sequence: int | None = None
    """The entry at fault, where there is one."""


class LedgerKeyError(LedgerError):
    """The key under which a ledger remembers rows is missing, unreadable or another ledger's."""


class AccountClosed(PrivacyError):
    """The account, or the analyst's share of it, was closed. Nothing was charged."""


# --- models from outside ------------------------------------------------------------------------


class UnusableModel(HeldoutError, ValueError):
    """A model that cannot be read, loaded or allowed. No row was looked at."""


class ScoringFailed(HeldoutError):
    """Scoring did not end in the time that was declared; all scores are discarded."""


class NoSandbox(HeldoutError):
    """This machine cannot shut an untrusted model off, and the custodian did not insist."""


# --- servers --------------------------------------------------------------------------------------


class ServerError(HeldoutError):
    """A verification server refused a request, or cannot be reached."""

    def __init__(self, words: str, *, status: int | None = None, retry_after: float = 0) -> None:
        super().__init__(words)
        self.status, self.retry_after = status, retry_after


class NotGenuine(PrivacyError):
    """A page or a statement is not what the owner of the key signed."""
