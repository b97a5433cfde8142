"""Events leave the trail by an archive, and by nothing else.

On SQLite a trigger before INSERT refuses what REPLACE would overwrite without asking the trigger of
DELETE; a row can be named by its rowid as well. On PostgreSQL the triggers also fire where
session_replication_role is replica.
"""

import django.utils.timezone
from django.db import migrations, models

TABLES = {"apikeys_auditevent": "auditevent", "apikeys_auditarchive": "auditarchive"}
POSTGRESQL = (
    """
    CREATE OR REPLACE FUNCTION apikeys_auditevent_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        archived boolean;
    BEGIN
        IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'apikeys_auditevent' THEN
            EXECUTE format(
                'SELECT EXISTS (SELECT 1 FROM %I.apikeys_auditarchive '
                'WHERE $1 BETWEEN first_id AND last_id)', TG_TABLE_SCHEMA
            ) INTO archived USING OLD.id;
            IF archived THEN
                RETURN OLD;
            END IF;
        END IF;
        RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE TRIGGER auditarchive_append_only BEFORE UPDATE OR DELETE ON apikeys_auditarchive
    FOR EACH ROW EXECUTE FUNCTION apikeys_auditevent_refuse()
    """,
    """
    CREATE TRIGGER auditarchive_no_truncate BEFORE TRUNCATE ON apikeys_auditarchive
    FOR EACH STATEMENT EXECUTE FUNCTION apikeys_auditevent_refuse()
    """,
    *(
        f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}_{what}"
        for table, name in TABLES.items()
        for what in ("append_only", "no_truncate")
    ),
)
POSTGRESQL_BACK = (
    "DROP TRIGGER auditarchive_no_truncate ON apikeys_auditarchive",
    "DROP TRIGGER auditarchive_append_only ON apikeys_auditarchive",
    *(
        f"ALTER TABLE apikeys_auditevent ENABLE TRIGGER auditevent_{what}"
        for what in ("append_only", "no_truncate")
    ),
    """
    CREATE OR REPLACE FUNCTION apikeys_auditevent_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'restrict_violation';
    END $$
    """,
)
_REFUSE = "BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END"
_NOT_ARCHIVED = """WHEN NOT EXISTS (
    SELECT 1 FROM apikeys_auditarchive WHERE OLD.id BETWEEN first_id AND last_id
)"""
SQLITE_BACK = (
    # Adding a column makes a new table, with which the triggers of the old one go.
    "DROP TRIGGER IF EXISTS auditevent_no_update",
    "DROP TRIGGER IF EXISTS auditevent_no_delete",
    *(
        f"DROP TRIGGER IF EXISTS {name}_{what}"
        for name in TABLES.values()
        for what in ("no_update", "no_delete", "no_replace")
    ),
)
SQLITE_BEFORE = tuple(
    f"CREATE TRIGGER auditevent_no_{verb.lower()} BEFORE {verb} ON apikeys_auditevent {_REFUSE}"
    for verb in ("UPDATE", "DELETE")
)
SQLITE = (
    *SQLITE_BACK,
    *(
        f"CREATE TRIGGER {name}_no_update BEFORE UPDATE ON {table} {_REFUSE}"
        for table, name in TABLES.items()
    ),
    f"""CREATE TRIGGER auditevent_no_delete BEFORE DELETE ON apikeys_auditevent
    {_NOT_ARCHIVED} {_REFUSE}""",
    f"CREATE TRIGGER auditarchive_no_delete BEFORE DELETE ON apikeys_auditarchive {_REFUSE}",
    *(
        f"""CREATE TRIGGER {name}_no_replace BEFORE INSERT ON {table}
        WHEN EXISTS (SELECT 1 FROM {table} WHERE {key} = NEW.{key} OR rowid = NEW.rowid)
        {_REFUSE}"""  # noqa: S608 - our own names
        for table, name, key in (
            ("apikeys_auditevent", "auditevent", "id"),
            ("apikeys_auditarchive", "auditarchive", "number"),
        )
    ),
)


def _execute(schema_editor, statements):
    for statement in statements:
        # Without parameters: a % is a % then.
        schema_editor.execute(statement, None)


def forwards(apps, schema_editor):
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    _execute(schema_editor, POSTGRESQL if is_postgresql else SQLITE)


def backwards(apps, schema_editor):
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    _execute(schema_editor, POSTGRESQL_BACK if is_postgresql else SQLITE_BACK)


def guarded_before(apps, schema_editor):
    """Put back what SQLite lost with the table that the column was removed from."""
    if schema_editor.connection.vendor == "sqlite":
        _execute(schema_editor, SQLITE_BEFORE)


class Migration(migrations.Migration):
    safe_while_running = (
        "triggers change in a moment; the release before deletes no event, and adds them as before"
    )

    dependencies = [("apikeys", "0006_sessions_end")]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, guarded_before),
        migrations.AddField(
            model_name="auditevent",
            name="client_request_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.CreateModel(
            name="AuditArchive",
            fields=[
                ("number", models.PositiveIntegerField(primary_key=True, serialize=False)),
                ("digest", models.CharField(max_length=64)),
                ("events", models.PositiveIntegerField()),
                ("first_id", models.UUIDField()),
                ("last_id", models.UUIDField()),
                ("archived_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.RunPython(forwards, backwards),
    ]
