"""The audit trail is append-only by the database's own word, whoever asks."""

from django.db import migrations

POSTGRESQL = (
    """
    CREATE FUNCTION apikeys_auditevent_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE TRIGGER auditevent_append_only BEFORE UPDATE OR DELETE ON apikeys_auditevent
    FOR EACH ROW EXECUTE FUNCTION apikeys_auditevent_refuse()
    """,
    """
    CREATE TRIGGER auditevent_no_truncate BEFORE TRUNCATE ON apikeys_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION apikeys_auditevent_refuse()
    """,
)
POSTGRESQL_BACK = (
    "DROP TRIGGER auditevent_no_truncate ON apikeys_auditevent",
    "DROP TRIGGER auditevent_append_only ON apikeys_auditevent",
    "DROP FUNCTION apikeys_auditevent_refuse()",
)
SQLITE = tuple(
    f"""
    CREATE TRIGGER auditevent_no_{verb.lower()} BEFORE {verb} ON apikeys_auditevent
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END
    """
    for verb in ("UPDATE", "DELETE")
)
SQLITE_BACK = ("DROP TRIGGER auditevent_no_update", "DROP TRIGGER auditevent_no_delete")


def _execute(schema_editor, statements):
    for statement in statements:
        schema_editor.execute(statement)


def forwards(apps, schema_editor):
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    _execute(schema_editor, POSTGRESQL if is_postgresql else SQLITE)


def backwards(apps, schema_editor):
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    _execute(schema_editor, POSTGRESQL_BACK if is_postgresql else SQLITE_BACK)


class Migration(migrations.Migration):
    dependencies = [("apikeys", "0001_initial")]

    operations = [migrations.RunPython(forwards, backwards)]
