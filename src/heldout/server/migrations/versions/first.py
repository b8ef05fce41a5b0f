"""The first tables."""

from heldout.server.storage import create, drop

revision = "1"
down_revision = None


def upgrade() -> None:
    create(
        "artifacts",
        "id owner name kind size:big sha256 state words features:json? found:json? created:time",
        key="id",
        index="owner",
    )
    create(
        "datasets",
        "name owner source:json declaration:json budget:json facts state words about:json? "
        "revision:int created:time",
        key="name",
        index="owner",
    )
    create(
        "evaluations",
        "id owner dataset artifact rival? revision:int questions:json key digest price:json state "
        "words statement:json? created:time visible:time?",
        key="id",
        index="dataset owner",
        unique="owner key",
    )
    create(
        "grants",
        "dataset analyst account expires:time? revoked:time? created:time",
        key="dataset analyst",
    )
    create(
        "jobs",
        "id:int kind subject after:int? state worker? lease:time attempts:int created:time",
        key="id",
        index="state",
        unique="kind subject",
    )
    create("log", "id:int time:time person? action subject status:int", key="id", index="time")
    create(
        "people",
        "name role password? failures:int retry:time created:time disabled:time?",
        key="name",
    )
    create(
        "scorings",
        "artifact dataset revision:int state words visible:time",
        key="artifact dataset revision",
    )
    create(
        "tokens",
        "id person kind digest label scopes:json created:time expires:time revoked:time?",
        key="id",
        index="person",
        unique="digest",
    )


def downgrade() -> None:
    drop("tokens", "scorings", "people", "log", "jobs", "grants", "evaluations", "datasets")
    drop("artifacts")
