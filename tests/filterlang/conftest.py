import pytest
from django.db import connection

from tests.filterlang.rows import Row


@pytest.fixture(scope="session")
def _rows_table(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        with connection.schema_editor() as editor:
            editor.create_model(Row)
        yield
        with connection.schema_editor() as editor:
            editor.delete_model(Row)


@pytest.fixture
def rows(_rows_table, db):
    """The table of rows, empty."""
    return Row.objects
