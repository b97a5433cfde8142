"""A database with the owner's role and the service's, made by docs/how-to/create-roles.sql."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path
from typing import Final

import psycopg

from tests.support import postgres
from tests.support.installation import ROOT
from tests.support.server import LiveServer

#: Statements that PostgreSQL must refuse to the service's role.
FORBIDDEN: Final = [
    "UPDATE apikeys_auditevent SET actor_name = 'bob'",
    "DELETE FROM apikeys_auditevent",
    "TRUNCATE apikeys_auditevent",
    "ALTER TABLE apikeys_auditevent DISABLE TRIGGER ALL",
    "DROP TRIGGER auditevent_append_only ON apikeys_auditevent",
    "DROP TABLE apikeys_auditevent",
    # A partition, also directly.
    "SELECT 1 FROM apikeys_auditevent_first",
    "INSERT INTO apikeys_auditevent_default SELECT * FROM apikeys_auditevent",
    "DELETE FROM apikeys_auditevent_first",
    "DROP TABLE apikeys_auditevent_first",
    "ALTER TABLE apikeys_auditevent DETACH PARTITION apikeys_auditevent_first",
    (
        "CREATE TABLE mine PARTITION OF apikeys_auditevent FOR VALUES FROM"
        " ('ffffffff-0000-0000-0000-000000000000') TO (MAXVALUE)"
    ),
    (
        "CREATE TRIGGER mine BEFORE INSERT ON apikeys_auditevent"
        " FOR EACH ROW EXECUTE FUNCTION apikeys_auditevent_refuse()"
    ),
    (
        "CREATE OR REPLACE FUNCTION apikeys_auditevent_refuse() RETURNS trigger"
        " LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'"
    ),
    (
        "INSERT INTO apikeys_auditarchive"
        " SELECT 1, '', 1, gen_random_uuid(), gen_random_uuid(), now()"
    ),
    "SET session_replication_role = replica",
    "CREATE TABLE mine (id int)",
    "CREATE TEMP TABLE apikeys_auditarchive (first_id uuid, last_id uuid)",
    "INSERT INTO django_migrations (app, name, applied) VALUES ('x', 'x', now())",
    "SET ROLE postgres",
]


class Roles:
    """A database with both roles, migrated by the owner and used by the service's role."""

    def __init__(self, scratch: Path) -> None:
        self.suffix = secrets.token_hex(4)
        self.owner, self.service = f"owner_{self.suffix}", f"service_{self.suffix}"
        server, _, _ = os.environ["DATABASE_URL"].rpartition("/")
        self.host = server.rpartition("@")[2]
        self.admin_url = f"{server}/roles_{self.suffix}"
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE roles_{self.suffix}")
        names = ("-v", f"owner={self.owner}", "-v", f"service={self.service}")
        file = ROOT / "docs" / "how-to" / "create-roles.sql"
        subprocess.run(
            [postgres.binaries(scratch) / "psql", "-q", self.admin_url, *names, "--file", file],
            check=True,
            env={**os.environ, "OWNER_PASSWORD": "it's", "SERVICE_PASSWORD": "s p"},
        )
        (scratch / "owner").mkdir()
        (scratch / "service").mkdir()
        self.migrating = LiveServer(scratch / "owner", DATABASE_URL=self.url(self.owner, "it's"))
        keys = ("SECRET_KEY", "STATE_ENCRYPTION_KEYS")
        same = {name: self.migrating.environment[name] for name in keys}
        url = self.url(self.service, "s%20p")
        self.serving = LiveServer(scratch / "service", DATABASE_URL=url, **same)

    def url(self, role: str, password: str) -> str:
        return f"postgres://{role}:{password}@{self.host}/roles_{self.suffix}"

    def close(self) -> None:
        self.serving.close()
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f"DROP DATABASE roles_{self.suffix} WITH (FORCE)")
            for role in (self.owner, self.service):
                connection.execute(f"DROP ROLE {role}")
