"""A verification server in the place of rows of one's own."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heldout.client import RemoteDataset, Server


def opened(address: str, token_file: Path, **more: Any) -> "Server":
    """The server, with the token that a file holds.

    Where its ledger ended is remembered beside that file, if its folder can be written.
    """
    from heldout.arguments import shown
    from heldout.client import Server
    from heldout.errors import ArgumentError

    try:
        token = token_file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        raise ArgumentError(
            f"--token-file must be a file that holds a token, got {shown(token_file.name)}."
        ) from None
    heads = token_file.with_name(token_file.name + ".heads")
    can_write = os.access(heads if heads.exists() else heads.parent, os.W_OK)
    return Server(address, token, heads=heads if can_write else None, **more)


@dataclass(frozen=True, kw_only=True)
class Remote:
    """Rows that a verification server holds, instead of a table.

    Parameters
    ----------
    server
        Its address: the model of --model is sent to it, and its answers are printed.
    token_file
        A file that holds your token for it.
    dataset
        Which of its data sets.
    server_key
        The server's public key, or a file that holds it, to check the answer's signature.
    """

    server: str | None = None
    token_file: Path | None = None
    dataset: str | None = None
    server_key: str | None = None

    @property
    def given(self) -> bool:
        """Whether a server has the rows."""
        from heldout.errors import ArgumentError

        if self.server is None and (self.token_file or self.dataset or self.server_key):
            raise ArgumentError("--token-file, --dataset and --server-key go with --server.")
        return self.server is not None

    def rows(self) -> "RemoteDataset":
        """The data set, once the server says that it may be asked about."""
        from heldout.errors import ArgumentError

        if self.server is None or self.token_file is None or self.dataset is None:
            raise ArgumentError("--server must go with --token-file and --dataset.")
        key = None
        if self.server_key is not None:
            from heldout.server.signing import key_of

            key = key_of(self.server_key)
        return opened(self.server, self.token_file, key=key).dataset(self.dataset)
