"""Workers that are alive."""

from heldout.server.storage import create, drop

revision = "4"
down_revision = "3"


def upgrade() -> None:
    create("workers", "name version begun:time seen:time job?", key="name")


def downgrade() -> None:
    drop("workers")
