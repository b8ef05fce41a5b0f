"""A leaderboard of a server, from an analyst's program."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heldout.errors import PrivacyError

if TYPE_CHECKING:
    from heldout.client.server import Server

__all__ = ["RemoteBoard"]

PAUSE = 0.2


class RemoteBoard:
    """What a board has shown, and a way to submit to it."""

    def __init__(self, server: "Server", name: str) -> None:
        self._server, self.name = server, name

    @property
    def facts(self) -> dict[str, Any]:
        """Its terms, what it has shown, its certificate, and what is left."""
        found: dict[str, Any] = self._server._transport.get(f"/boards/{self.name}")
        return found

    @property
    def best(self) -> float:
        return float(self.facts["best"])

    def submissions(self) -> list[dict[str, Any]]:
        """Your own, newest first."""
        found: list[dict[str, Any]] = self._server._transport.get(
            f"/boards/{self.name}/submissions"
        )
        return found

    def submit(
        self,
        model: str | os.PathLike[str],
        *,
        title: str | None = None,
        key: str | None = None,
        seconds: float = 600,
    ) -> dict[str, Any]:
        """Submit a model (a file, or the id of one that was sent) and wait for what it learns."""
        import secrets

        file = Path(model)
        artifact = self._server.upload(file) if file.suffix else str(model)
        body = {"artifact": artifact, "title": title or file.name}
        made = self._server._transport.post(
            f"/boards/{self.name}/submissions", body, key=key or secrets.token_urlsafe(16)
        )
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = {each["id"]: each for each in self.submissions()}[made["id"]]
            if found["state"] == "judged":
                return found
            if found["state"] == "refused":
                raise PrivacyError(str(found["words"]))
            time.sleep(PAUSE)
        raise PrivacyError("The submission still waits. Look at submissions() later.")

    def __repr__(self) -> str:
        return f"RemoteBoard({self.name!r})"
