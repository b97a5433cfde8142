"""Which transaction has written an event, for who reads the trail without leaving one out.

On PostgreSQL only: SQLite's row ids say as much. The column is none of the model's: the database
writes it, also for the release before. Events of before have none, and nobody is told of them.
Safe while the service runs: a column without a value takes a lock of a moment, and the index is
built concurrently.
"""

from django.db import migrations, transaction

from infra_service.database.postgresql.schema import limit_wait

COLUMN = "ALTER TABLE apikeys_auditevent ADD COLUMN IF NOT EXISTS transaction_id xid8"
DEFAULT = (
    "ALTER TABLE apikeys_auditevent ALTER COLUMN transaction_id SET DEFAULT pg_current_xact_id()"
)
BACK = "ALTER TABLE apikeys_auditevent DROP COLUMN IF EXISTS transaction_id"
DROP_INDEX = "DROP INDEX CONCURRENTLY IF EXISTS auditevent_by_transaction"
INDEX = """
    CREATE INDEX CONCURRENTLY auditevent_by_transaction
    ON apikeys_auditevent (transaction_id, id) WHERE transaction_id IS NOT NULL
"""


def _in_a_moment(schema_editor, *statements):
    with transaction.atomic(schema_editor.connection.alias):
        limit_wait(schema_editor)
        for statement in statements:
            schema_editor.execute(statement)


def forwards(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        _in_a_moment(schema_editor, COLUMN, DEFAULT)
        schema_editor.execute(DROP_INDEX)
        schema_editor.execute(INDEX)


def backwards(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP_INDEX)
        _in_a_moment(schema_editor, BACK)


class Migration(migrations.Migration):
    safe_while_running = (
        "What it runs is the adding of a column without a value, and of its index concurrently."
    )
    atomic = False

    dependencies = [("apikeys", "0015_tokens_of_policies")]

    operations = [migrations.RunPython(forwards, backwards)]
