"""export_states to a bucket, and import_states from there: against moto's server."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from tests.conftest import ApiClient
from tests.states.moving.test_s3 import Store, client, environment, forgetful, port
from tests.states.test_export_states import ADDRESSES, export, promised, push_three_of_each, wipe
from tests.states.test_import_states import Run, run

__all__ = ["client", "environment", "forgetful", "port"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def caller(client_with: Any) -> ApiClient:
    made: ApiClient = client_with("state:read", "state:write")
    push_three_of_each(made)
    return made


@pytest.fixture
def folder(forgetful: Store, environment: Any) -> str:
    """A new folder of a bucket of the test's own."""
    return f"s3://{forgetful.name}/left"


def names(store: Store) -> set[str]:
    listed = store.client.list_objects_v2(Bucket=store.name)
    return {entry["Key"] for entry in listed.get("Contents", ())}


def test_export_is_imported_into_a_new_service(
    caller: ApiClient, folder: str, forgetful: Store
) -> None:
    before = promised(of_source=False)
    done = export(folder, "--history")
    wipe()

    again = run(folder, "--history", "all")

    assert (done["states"], done["versions"]) == (3, 9)
    assert names(forgetful) == {
        "left/manifest.jsonl",
        *(f"left/{place}.tfstate" for place in ADDRESSES),
        *(f"left/{place}.history/{number}.tfstate" for place in ADDRESSES for number in (1, 2)),
    }
    assert again.error == ""
    assert promised(of_source=True) == before


def test_non_empty_target_is_rejected(caller: ApiClient, folder: str, forgetful: Store) -> None:
    forgetful.put("left/other.tfstate", "{}")

    with pytest.raises(CommandError, match=r"is not empty\. Choose a new directory"):
        export(folder)


def test_interrupted_export_is_restarted(caller: ApiClient, folder: str, forgetful: Store) -> None:
    forgetful.put("left/manifest.jsonl.partial", "")
    forgetful.put("left/network/prod.tfstate", "{")

    assert "is incomplete" in Run("--from", folder).error
    assert export(folder)["states"] == 3
    assert "left/manifest.jsonl.partial" not in names(forgetful)
    wipe()
    assert run(folder).error == ""


def test_a_full_temporary_directory_is_reported(
    caller: ApiClient, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(folder)
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(Path.open, Path("/dev/full"), "r+b"))

    assert "No space left on device" in Run("--from", folder).error


def test_missing_file_is_reported(caller: ApiClient, folder: str, forgetful: Store) -> None:
    export(folder)
    wipe()
    forgetful.delete("left/network/prod.tfstate")

    done = run(folder)

    assert done.reasons == {"network/prod.tfstate": "The object no longer exists."}
    assert done.json["imported"] == 2
