"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "server_artifacts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("features", sa.JSON(), nullable=True),
        sa.Column("found", sa.JSON(), nullable=True),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_artifacts")),
    )
    op.create_index(op.f("ix_server_artifacts_owner"), "server_artifacts", ["owner"], unique=False)
    op.create_table(
        "server_datasets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("source", sa.JSON(), nullable=False),
        sa.Column("declaration", sa.JSON(), nullable=False),
        sa.Column("budget", sa.JSON(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("about", sa.JSON(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_server_datasets")),
    )
    op.create_index(op.f("ix_server_datasets_owner"), "server_datasets", ["owner"], unique=False)
    op.create_table(
        "server_evaluations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("artifact", sa.Text(), nullable=False),
        sa.Column("rival", sa.Text(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("questions", sa.JSON(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("price", sa.JSON(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("statement", sa.JSON(), nullable=True),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("visible", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_evaluations")),
        sa.UniqueConstraint("owner", "key", name=op.f("uq_server_evaluations_owner")),
    )
    op.create_index(
        op.f("ix_server_evaluations_dataset"), "server_evaluations", ["dataset"], unique=False
    )
    op.create_index(
        op.f("ix_server_evaluations_owner"), "server_evaluations", ["owner"], unique=False
    )
    op.create_table(
        "server_grants",
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("analyst", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("expires", sa.Float(precision=53), nullable=True),
        sa.Column("revoked", sa.Float(precision=53), nullable=True),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("dataset", "analyst", name=op.f("pk_server_grants")),
    )
    op.create_table(
        "server_jobs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("after", sa.Integer(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("lease", sa.Float(precision=53), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_jobs")),
        sa.UniqueConstraint("kind", "subject", name=op.f("uq_server_jobs_kind")),
    )
    op.create_index(op.f("ix_server_jobs_state"), "server_jobs", ["state"], unique=False)
    op.create_table(
        "server_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("person", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_log")),
    )
    op.create_index(op.f("ix_server_log_time"), "server_log", ["time"], unique=False)
    op.create_table(
        "server_people",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("password", sa.Text(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("retry", sa.Float(precision=53), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("disabled", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_server_people")),
    )
    op.create_table(
        "server_scorings",
        sa.Column("artifact", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("visible", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("artifact", "dataset", "revision", name=op.f("pk_server_scorings")),
    )
    op.create_table(
        "server_tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("expires", sa.Float(precision=53), nullable=False),
        sa.Column("revoked", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_server_tokens_digest")),
    )
    op.create_index(op.f("ix_server_tokens_person"), "server_tokens", ["person"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_server_tokens_person"), table_name="server_tokens")
    op.drop_table("server_tokens")
    op.drop_table("server_scorings")
    op.drop_table("server_people")
    op.drop_index(op.f("ix_server_log_time"), table_name="server_log")
    op.drop_table("server_log")
    op.drop_index(op.f("ix_server_jobs_state"), table_name="server_jobs")
    op.drop_table("server_jobs")
    op.drop_table("server_grants")
    op.drop_index(op.f("ix_server_evaluations_owner"), table_name="server_evaluations")
    op.drop_index(op.f("ix_server_evaluations_dataset"), table_name="server_evaluations")
    op.drop_table("server_evaluations")
    op.drop_index(op.f("ix_server_datasets_owner"), table_name="server_datasets")
    op.drop_table("server_datasets")
    op.drop_index(op.f("ix_server_artifacts_owner"), table_name="server_artifacts")
    op.drop_table("server_artifacts")
