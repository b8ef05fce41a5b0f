"""Every setting of the server: its meaning, its usual value, and where its value comes from.

A value comes from the command line, else from the environment, else from a file, else it is the
usual one. `tools/settings_table.py` writes the table of `docs/server.md` from here.
"""

import os
import tomllib
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from heldout.arguments import shown
from heldout.errors import ArgumentError

ROLES: Final = ("custodian", "analyst", "auditor", "administrator")
PREFIX: Final = "HELDOUT_SERVER_"
FROM_FILE: Final = "_FILE"
"""Ends the name of a variable that names a file with a secret, rather than the secret."""
USUAL_FILE: Final = "server.toml"
FOLDER, PARENT, FILE = (f"{PREFIX}{name}" for name in ("FOLDER", "PARENT", "SETTINGS"))
"""Variables that are no settings: what `heldout serve` tells its processes, and the file."""
NOTHING: Final[tuple[object, ...]] = (None, (), {})
SWITCH: Final = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


def setting(usual: Any, meaning: str, *, secret: bool = False, inner: bool = False) -> Any:
    """Return a field of the settings; an inner one is worked out, and nobody sets it."""
    about = {"meaning": meaning, "secret": secret, "inner": inner, "usual": usual}
    if isinstance(usual, dict):
        return field(default_factory=usual.copy, metadata=about)
    return field(default=usual, metadata=about)


@dataclass(frozen=True)
class Settings:
    """Where the server keeps things, and its limits. All of it is public but secrets."""

    folder: Path
    host: str = setting("127.0.0.1", "Address to listen at; 0.0.0.0 is reached from other machines")
    port: int = setting(8000, "Port to listen at")
    workers: int = setting(2, "Workers to start beside the web; 0 if they run elsewhere")
    processes: int = setting(1, "Web processes that share the port")
    database: str | None = setting(
        None,
        "PostgreSQL database of the server's tables and the ledger; without one, SQLite files in "
        "the folder",
        secret=True,
    )
    rows: Path | None = setting(  # noqa: RUF009
        None, "The one folder from which custodians may register files; without one, any file"
    )
    address: str = setting(
        "http://127.0.0.1:8000",
        "What people type to reach the server, with the sub-path if a proxy gives it one",
    )
    secure: bool = setting(False, "Whether browsers come by https", inner=True)
    hosts: tuple[str, ...] = setting(
        (), "Further names that people type to reach the server, beside those of `address`"
    )
    proxies: tuple[str, ...] = setting(
        ("127.0.0.1",), "Addresses of proxies that are believed when they say who asks"
    )
    most_upload: int = setting(256 * 2**20, "Bytes of one file")
    most_body: int = setting(2**20, "Bytes of any other request")
    upload_seconds: float = setting(
        900.0, "Seconds for a file to arrive; until then it takes room and a place among the jobs"
    )
    body_seconds: float = setting(60.0, "Seconds for any other request to arrive")
    most_prediction_rows: int = setting(20_000_000, "Rows of a file of predictions")
    most_kept: int = setting(
        4 * 2**30, "Bytes of one analyst's files, of copies made of them, and of their scores"
    )
    most_waiting: int = setting(
        50, "Jobs of one person that may wait: uploads, evaluations and submissions together"
    )
    most_running: int = setting(
        1, "Jobs of one person that run at once: with two workers nobody waits for one other person"
    )
    processor_seconds_per_hour: float = setting(
        14_400.0,
        "Processor seconds of one person's jobs within an hour; a job counts for as long as it may "
        "take",
    )
    free_seconds_per_minute: float = setting(
        10.0, "Processor seconds of one person's quotes and pages per minute and web process"
    )
    most_hashing: int = setting(
        2, "Passwords that one web process checks at once, with 64 MB of memory each"
    )
    requests_per_minute: int = setting(
        6000, "Requests of one person per minute and web process; ten times as many of one address"
    )
    sign_ins_per_minute: int = setting(
        60, "Tries to sign in from one address per minute and web process"
    )
    tick: float = setting(
        0.2,
        "Seconds: prices are booked, and answers appear, at multiples of it; for every 100,000 "
        "rows",
    )
    scoring_tick: float = setting(
        1.0, "Seconds: the same for the scoring of a model; for every 20,000 rows"
    )
    seconds_per_row: float = setting(
        0.002, "Seconds per row that the scoring of a model may take beyond its start"
    )
    lease: float = setting(
        30.0, "Seconds after which a job of a silent worker is taken up by another"
    )
    quote_seconds: int = setting(3600, "Seconds for which a quote is valid")
    access_log: bool = setting(True, "Print a line of JSON for every request (on or off)")
    metrics_token: str | None = setting(
        None, "Token for `/metrics`; without one there is no such page", secret=True
    )

    rows_key: str | None = setting(
        None,
        "Key under which workers encrypt their copies of rows and scores, as `heldout server key` "
        "prints it; of several the first encrypts",
        secret=True,
    )
    keep_models: float | None = setting(
        None, "Days without a question after which a model is deleted"
    )
    keep_scores: float | None = setting(
        None, "Days without a question after which scores are deleted; they are made again"
    )
    keep_answers: float | None = setting(
        None, "Days after which an answer is deleted; its booking and receipt stay"
    )
    keep_rows: float | None = setting(
        None, "Days after which the copy of the rows of a closed data set is deleted"
    )
    second_factor: tuple[str, ...] = setting(
        (), "Roles that must set up a second factor before anything else, such as administrator"
    )
    oidc_issuer: str | None = setting(
        None, "Address of the institution's OpenID Connect provider; without one, passwords alone"
    )
    oidc_client: str | None = setting(None, "This server's client id at the provider")
    oidc_secret: str | None = setting(
        None, "Its secret there; a public client has none", secret=True
    )
    oidc_title: str = setting("your institution", "What the button calls the provider")
    oidc_scopes: tuple[str, ...] = setting(
        ("openid", "profile"), "Scopes that the provider is asked for"
    )
    oidc_name: str = setting(
        "preferred_username", "Claim that names a new person; one that users cannot change"
    )
    oidc_role: str = setting(
        "groups", "Claim that decides the role; with dots for one inside another"
    )
    oidc_roles: dict[str, str] = setting(  # noqa: RUF009
        {},
        "Values of that claim, and the role of each; without any, people are added by hand",
    )

    @classmethod
    def at(cls, folder: str | os.PathLike[str], **more: object) -> "Settings":
        """Return settings of a folder, which is made if need be."""
        try:
            place = Path(folder).resolve()
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in ("artifacts", "private"):
                (place / name).mkdir(mode=0o700, exist_ok=True)
        except (OSError, ValueError, RuntimeError):
            raise ArgumentError(
                f"The folder {shown(os.fspath(folder))} cannot be made. Choose another."
            ) from None
        return cls(folder=place, **more)  # type: ignore[arg-type]

    @classmethod
    def read(cls, folder: Path, **given: object) -> "Settings":
        """Return the settings of a server: as given, else from the environment, else the file."""
        return cls.at(folder, **chosen(folder, **given))

    def environment(self) -> dict[str, str]:
        """Return the variables by which another process reads these very settings."""
        values = {one.variable: getattr(self, one.name) for one in offered()}
        named = {name: _text(value) for name, value in values.items() if value not in NOTHING}
        return named | {FOLDER: str(self.folder)}

    @property
    def root(self) -> str:
        """Return the sub-path under which people reach the server; empty if there is none."""
        return urlsplit(self.address).path.rstrip("/")

    @property
    def known_name(self) -> str:
        """Return what an authenticator app calls the server."""
        return f"heldout at {urlsplit(self.address).hostname or 'this machine'}"

    @property
    def reached(self) -> str:
        """Return the address of links; without one, this machine's at the port in use."""
        if self.address != Settings.address:
            return self.address
        return f"http://{'localhost' if self.host == '127.0.0.1' else self.host}:{self.port}"

    @property
    def known_hosts(self) -> frozenset[str]:
        """Return every name that a request may be addressed to."""
        own = urlsplit(self.address).hostname or ""
        names = {"localhost", "127.0.0.1", "::1", own, *map(str.lower, self.hosts)}
        return frozenset(names - {""})  # what a missing or a garbled header is read as

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    @property
    def private(self) -> Path:
        """Return where rows and scores are, which only workers may read."""
        return self.folder / "private"


# --- where values come from ----------------------------------------------------------------------


@dataclass(frozen=True)
class Offered:
    """A setting that whoever runs the server may choose."""

    name: str
    type: Any
    usual: object
    meaning: str
    secret: bool

    @property
    def variable(self) -> str:
        return f"{PREFIX}{self.name.upper()}"


def offered() -> Iterator[Offered]:
    """Yield every setting that can be chosen, in the order of the table."""
    hints = get_type_hints(Settings)
    for one in fields(Settings):
        about = one.metadata
        if about and not about["inner"]:
            kind = hints[one.name]
            yield Offered(one.name, kind, about["usual"], about["meaning"], about["secret"])


def chosen(folder: Path, **given: object) -> dict[str, object]:
    """Return what somebody chose for a server, checked; nothing is made."""
    values = _from_file(folder, os.environ) | dict(_from_environment(os.environ))
    values |= {name: value for name, value in given.items() if value not in NOTHING}
    checked = {name: _checked(name, value) for name, value in values.items()}
    if str(checked.get("address", "")).startswith("https://"):
        checked["secure"] = True
    return checked


def _from_file(folder: Path, environment: Mapping[str, str]) -> dict[str, object]:
    """Return what a file in TOML says: the one that a variable names, or the folder's own."""
    named = environment.get(FILE)
    path = Path(named) if named else folder / USUAL_FILE
    if not named and not path.exists():
        return {}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):
        raise ArgumentError(
            f"The settings in {shown(path.name)} cannot be read. Write TOML: port = 8080."
        ) from None
    for name in content:
        _known(name, f"in {path.name}")
    return content


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    """Yield what the environment says, with secrets from the files that it names."""
    secrets = {one.variable + FROM_FILE: one.name for one in offered() if one.secret}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable in (FOLDER, PARENT, FILE) or not text:
            continue
        if variable in secrets:
            try:
                yield secrets[variable], Path(text).read_text(encoding="utf-8").strip()
            except (OSError, ValueError):
                raise ArgumentError(f"The file that {variable} names cannot be read.") from None
        else:
            yield _known(variable.removeprefix(PREFIX).lower(), "in the environment"), text


def _known(name: str, where: str) -> str:
    names = [one.name for one in offered()]
    if name in names:
        return name
    near = get_close_matches(name, names, n=1)
    meant = f" Did you mean {near[0]}?" if near else " The table in docs/server.md lists all."
    raise ArgumentError(f"No setting {shown(name)}, which is {where}.{meant}")


NEVER_ZERO: Final = (
    "processes",
    "most_upload",
    "most_body",
    "most_waiting",
    "most_running",
    "most_hashing",
    "requests_per_minute",
    "sign_ins_per_minute",
)
"""Limits that refuse everything, or leave it waiting, at 0."""


def _checked(name: str, value: object) -> object:
    """Return a value of the type that its setting has; a text is read as the environment's."""
    kind = {one.name: one.type for one in offered()}[name]
    if isinstance(kind, types.UnionType):
        (kind,) = (one for one in get_args(kind) if one is not types.NoneType)
    try:
        right = _read(kind, value)
    except (ValueError, TypeError, KeyError, OSError, RuntimeError):
        raise ArgumentError(
            f"{name} must be {_in_words(kind)}, got {_shown(name, value)}."
        ) from None
    if isinstance(right, int | float) and (right < 0 or not right < float("inf")):
        raise ArgumentError(f"{name} must be a number of at least 0, got {shown(value)}.")
    if right == 0 and name in NEVER_ZERO:
        raise ArgumentError(f"{name} must be more than 0: with 0 the server would do nothing.")
    if right == 0 and name.startswith("keep_"):
        raise ArgumentError(
            f"{name} must be more than 0 days, or everything would be deleted at once. Leave it "
            "out to delete nothing."
        )
    if name in ("second_factor", "oidc_roles"):
        named = right.values() if isinstance(right, dict) else right
        for role in named:  # type: ignore[attr-defined]
            if role not in ROLES:
                raise ArgumentError(
                    f"{name} must name some of {', '.join(ROLES)}, got {shown(role)}."
                )
    if name == "address":
        if not str(right).startswith(("http://", "https://")):
            raise ArgumentError(f"address must begin with http:// or https://, got {shown(value)}.")
        return str(right).rstrip("/")
    return right


def _shown(name: str, value: object) -> str:
    """Return a value as an error shows it; a secret is not shown."""
    is_secret = any(one.secret for one in offered() if one.name == name)
    return "something else" if is_secret else shown(value)


def _read(kind: Any, value: object) -> object:
    if kind is bool:
        return value if isinstance(value, bool) else SWITCH[str(value).lower()]
    if isinstance(value, bool):
        raise TypeError
    if kind is Path:
        return Path(str(value)).resolve()
    if get_origin(kind) is tuple:
        return tuple(value.split() if isinstance(value, str) else map(str, value))  # type: ignore[call-overload]
    if get_origin(kind) is dict:
        pairs = value.items() if isinstance(value, Mapping) else _pairs(str(value))
        return {str(key): str(one) for key, one in pairs}
    if not isinstance(value, (str, kind) if kind is not float else (str, int, float)):
        raise TypeError
    return kind(value)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split():
        key, is_pair, value = part.partition("=")
        if not is_pair:
            raise ValueError
        yield key, value


def _text(value: object) -> str:
    """Return a value as the environment has it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(value)
    if isinstance(value, Mapping):
        return " ".join(f"{key}={one}" for key, one in value.items())
    return str(value)


def _in_words(kind: Any) -> str:
    words = {bool: "on or off", int: "a whole number", float: "a number", Path: "a path"}
    if get_origin(kind) is tuple:
        return "names with spaces between them, or a list"
    if get_origin(kind) is dict:
        return "pairs such as NAME=VALUE, or a table"
    return words.get(kind, "a text")


def table() -> str:
    """Return the settings as a table in Markdown."""
    lines = ["| setting | variable | usual value | meaning |", "|---|---|---|---|"]
    for one in offered():
        usual = "none" if one.usual in NOTHING else f"`{_text(one.usual)}`"
        variable = f"`{one.variable}`" + (f" or `…{FROM_FILE}`" if one.secret else "")
        lines.append(f"| `{one.name}` | {variable} | {usual} | {one.meaning} |")
    return "\n".join(lines) + "\n"
