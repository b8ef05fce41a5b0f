"""Leaderboards and their submissions."""

from heldout.server.storage import create, drop

revision = "2"
down_revision = "1"


def upgrade() -> None:
    create(
        "boards",
        "name dataset owner revision:int plan:json facts each:int ends:time? state words "
        "created:time",
        key="name",
        index="dataset",
    )
    create(
        "submissions",
        "id board owner artifact title key state words improved:flag? score:number? created:time "
        "visible:time?",
        key="id",
        index="board owner",
        unique="owner key",
    )


def downgrade() -> None:
    drop("submissions", "boards")
