"""Why the server does not do what somebody asks for."""

from heldout.errors import ArgumentError, HeldoutError

__all__ = ["Busy", "Conflict", "Forbidden", "Missing", "TooLarge", "TooMany", "TooSlow"]


class Missing(HeldoutError):
    """There is no such thing, or this person may not know of it."""


class Forbidden(HeldoutError):
    """This person may not do this."""


class Conflict(HeldoutError):
    """It cannot be done in the state that things are in."""


class TooMany(HeldoutError):
    """Too many requests; `seconds` says when to come back."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class Busy(TooMany):
    """The server has too much to do right now; it is nobody's fault."""


class TooLarge(ArgumentError):
    """More bytes than the server takes."""


class TooSlow(HeldoutError):
    """The request did not arrive in the time that it has."""
