"""The copies of rows and scores that workers keep: encrypted at rest, if there is a key.

The files are Parquet with its own encryption (AES-GCM, written by Arrow): every file has a key of
its own, which lies in the file, wrapped under the key that whoever runs the workers gives them. Of
several keys the first one wraps, and all of them open, so a key can be changed.
"""

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heldout.errors import ArgumentError, UnreadableTable
from heldout.server.settings import Settings

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

SEALED: Final = b"PARE"
"""A Parquet file that begins so has an encrypted footer, and nothing in the clear."""
NAME: Final = "rows"
LOCKED: Final = (
    "The copy of the rows is encrypted under another key than the one in rows_key. Give the "
    "workers the old key as well, or refresh the data set."
)


class Vault:
    """Writes and reads what only workers may read."""

    def __init__(self, settings: Settings) -> None:
        self._fernet = _fernet(settings.rows_key)

    @property
    def seals(self) -> bool:
        """Return whether there is a key."""
        return self._fernet is not None

    def write(self, path: Path, batches: Iterable[Any]) -> None:
        """Write a file that appears whole or not at all, and that nobody else may read."""
        import pyarrow.parquet

        partial = path.with_suffix(f".{secrets.token_hex(6)}.partial")
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        writer, how = None, self._properties()
        try:
            for batch in batches:
                writer = writer or pyarrow.parquet.ParquetWriter(
                    partial, batch.schema, encryption_properties=how
                )
                writer.write_batch(batch)
            if writer is None:
                raise UnreadableTable("The table has no row.")
            writer.close()
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    def read(self, path: Path, *, columns: Sequence[str] | None = None) -> Any:
        """Return a file as an Arrow table."""
        import pyarrow.parquet

        if not is_sealed(path):
            return pyarrow.parquet.read_table(path, columns=columns)
        if self._fernet is None:
            raise UnreadableTable(LOCKED)
        factory, config = self._factory()
        try:
            keys = factory.file_decryption_properties(config)
            table = pyarrow.parquet.ParquetFile(path, decryption_properties=keys)
            return table.read(columns=None if columns is None else list(columns))
        except Exception:  # whatever a wrong key or a changed file raises
            raise UnreadableTable(LOCKED) from None

    def source(self, path: Path) -> Any:
        """Return what the library opens: the file itself, or the rows of an encrypted one."""
        return self.read(path) if is_sealed(path) else path

    def seal(self, files: Iterable[Path]) -> int:
        """Encrypt files that were written before there was a key; returns how many."""
        count = 0
        for path in files if self.seals else ():
            with contextlib.suppress(FileNotFoundError):
                if not is_sealed(path):
                    self.write(path, self.read(path).to_batches())
                    count += 1
        return count

    def _properties(self) -> Any:
        if self._fernet is None:
            return None
        from pyarrow.parquet.encryption import EncryptionConfiguration

        factory, config = self._factory()
        how = EncryptionConfiguration(
            footer_key=NAME,
            uniform_encryption=True,
            encryption_algorithm="AES_GCM_V1",
            data_key_length_bits=256,
        )
        return factory.file_encryption_properties(config, how)

    def _factory(self) -> tuple[Any, Any]:
        from pyarrow.parquet.encryption import CryptoFactory, KmsClient, KmsConnectionConfig

        assert self._fernet is not None
        fernet: MultiFernet = self._fernet

        class Keys(KmsClient):  # type: ignore[misc]
            """Wraps the keys of files under ours."""

            def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
                return fernet.encrypt(key_bytes).decode()

            def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
                return fernet.decrypt(wrapped_key)

        return CryptoFactory(lambda _: Keys()), KmsConnectionConfig()


def is_sealed(path: Path) -> bool:
    """Return whether a Parquet file is encrypted."""
    with path.open("rb") as file:
        return file.read(len(SEALED)) == SEALED


def private_copies(settings: Settings) -> Iterator[Path]:
    """Yield every copy of rows and scores."""
    for pattern in ("rows-*.parquet", "scores-*.parquet"):
        for path in settings.private.glob(pattern):
            if not path.name.endswith(".scored.parquet"):
                yield path


def _fernet(text: str | None) -> "MultiFernet | None":
    from cryptography.fernet import Fernet, MultiFernet

    if not text:
        return None
    try:
        return MultiFernet([Fernet(key) for key in text.split()])
    except ValueError:
        raise ArgumentError(
            "rows_key must be one or more keys that `heldout server key` printed."
        ) from None
