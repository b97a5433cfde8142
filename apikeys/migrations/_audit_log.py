"""Statements that make the audit log append-only, whoever asks the database.

An event leaves the log only after an archive has it. On SQLite a trigger before INSERT refuses what
REPLACE would overwrite without the trigger of DELETE; a row can be named by its rowid as well. On
PostgreSQL the triggers also fire where session_replication_role is replica.
"""

_TABLES = {"apikeys_auditevent": "auditevent", "apikeys_auditarchive": "auditarchive"}
# Partitions of the audit log have names of their own.
_REFUSAL = """
CREATE OR REPLACE FUNCTION apikeys_auditevent_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    archived boolean;
BEGIN
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME <> 'apikeys_auditarchive' THEN
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
"""
_POSTGRESQL = (
    _REFUSAL,
    *(
        f"""
        CREATE TRIGGER {name}_append_only BEFORE UPDATE OR DELETE ON {table}
        FOR EACH ROW EXECUTE FUNCTION apikeys_auditevent_refuse();
        CREATE TRIGGER {name}_no_truncate BEFORE TRUNCATE ON {table}
        FOR EACH STATEMENT EXECUTE FUNCTION apikeys_auditevent_refuse();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}_append_only;
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}_no_truncate
        """
        for table, name in _TABLES.items()
    ),
    # The transaction of an event, so that readers find events in the order of their commits. SQLite
    # has row ids for that. The model does not have the column: the database fills it.
    """
    ALTER TABLE apikeys_auditevent ADD COLUMN transaction_id xid8 DEFAULT pg_current_xact_id()
    """,
    """
    CREATE INDEX auditevent_by_transaction
    ON apikeys_auditevent (transaction_id, id) WHERE transaction_id IS NOT NULL
    """,
)
_REFUSE = "BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END"
_NOT_ARCHIVED = """WHEN NOT EXISTS (
    SELECT 1 FROM apikeys_auditarchive WHERE OLD.id BETWEEN first_id AND last_id
)"""
_SQLITE = (
    *(
        f"CREATE TRIGGER {name}_no_update BEFORE UPDATE ON {table} {_REFUSE}"
        for table, name in _TABLES.items()
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


def make_append_only(_apps, schema_editor):
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    for statement in _POSTGRESQL if is_postgresql else _SQLITE:
        # Without parameters: a % is a % then.
        schema_editor.execute(statement, None)


def permit_partitions(schema_editor):
    """Let archived events leave also from partitions of the audit log."""
    schema_editor.execute(_REFUSAL, None)
