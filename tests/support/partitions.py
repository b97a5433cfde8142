"""Months in the past, as an installation of years has them."""

from __future__ import annotations

import datetime as dt

from django.db import connection, transaction

from apikeys.models import AuditEvent
from infra_service.lib.database.months import first_id, month_of
from infra_service.lib.database.postgresql import partitions
from infra_service.lib.database.postgresql.partitions import Partition, partitions_of

TABLE = AuditEvent._meta.db_table


def with_months(since: dt.datetime, number: int) -> list[Partition]:
    """Replace the empty first partition by one before ``since``, months, and one for the rest."""
    first, lower = partitions_of(TABLE)[0], first_id(since)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {first.name}")
        partitions.create(cursor, first._replace(upper=lower))
        for later in range(1, number + 1):
            upper = first_id(month_of(since, later=later))
            partitions.create(cursor, partitions.name_month(TABLE, lower, upper))
            lower = upper
        if lower < first.upper:
            partitions.create(cursor, partitions.name_month(TABLE, lower, first.upper))
    return partitions_of(TABLE)[1 : number + 1]
