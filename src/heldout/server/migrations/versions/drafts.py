"""Registrations that a custodian is filling in."""

from heldout.server.storage import create, drop

revision = "5"
down_revision = "4"


def upgrade() -> None:
    columns = "id owner state words offered:json? source:json? columns:json? picks:json"
    create("drafts", f"{columns} created:time", key="id", index="owner")


def downgrade() -> None:
    drop("drafts")
