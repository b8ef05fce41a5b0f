"""Requests for a larger allowance."""

from heldout.server.storage import create, drop

revision = "7"
down_revision = "6"


def upgrade() -> None:
    create("requests", "dataset analyst budget why created:time", key="dataset analyst")


def downgrade() -> None:
    drop("requests")
