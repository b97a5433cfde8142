"""Damaged documents and missing permissions, with the real binary."""

from __future__ import annotations

import json

import pytest

from tests.e2e.backend import Backend, document
from tests.e2e.conftest import MakeTerraform
from tests.e2e.database import versions_of

pytestmark = pytest.mark.terraform

ONE = 'resource "terraform_data" "a" { input = "first" }'
DIGITS = "0.1234567890123456789012345"
WHOLE = "1234567890123456789012345"


def test_numbers_with_25_digits_are_preserved(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(f'resource "terraform_data" "a" {{ input = [{DIGITS}, {WHOLE}] }}')
    tf.apply()
    stored = backend.get().body
    assert f"{DIGITS},\n".encode() in stored
    assert f"{WHOLE}\n".encode() in stored
    assert tf.pulled() == stored
    tf.run("plan", "-detailed-exitcode", code=0)


def test_handwritten_state_is_byte_identical(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(ONE)
    value = f'{{ "value": {DIGITS}, "type": "number" }}'.encode()
    odd = document(5).replace(b'"outputs": {}', b'"outputs": {  "precise" :\t' + value + b"}")
    assert backend.push(odd).status == 200
    assert backend.get().body == odd
    assert tf.raw("output", "-raw", "precise") == DIGITS.encode()

    # Terraform pushes its own form, and gets it back.
    (tf.directory / "copy.json").write_bytes(tf.pulled())
    tf.run("state", "push", "-force", "copy.json")
    assert DIGITS.encode() in backend.get().body
    assert tf.pulled() == (tf.directory / "copy.json").read_bytes()


def test_pulled_state_is_pushed_back_unchanged(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(f'resource "terraform_data" "a" {{ input = {DIGITS} }}')
    tf.apply()
    before = backend.get().body
    (tf.directory / "copy.json").write_bytes(before)
    tf.run("state", "push", "copy.json")
    assert backend.get().body == before
    versions = versions_of(backend)
    assert len(versions) == 1  # the same serial and the same bytes


def test_document_of_20_megabytes_is_stored(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform("""
        locals {
          kilobyte = join("", [for i in range(32) : sha256(tostring(i))]) # 2 KiB
          megabyte = join("", [for i in range(512) : local.kilobyte])
        }
        resource "terraform_data" "large" {
          count = 10
          input = "${count.index}${local.megabyte}"
        }
    """)
    tf.apply()
    stored = backend.get()
    assert len(stored.body) > 20 * 1024 * 1024
    assert tf.pulled() == stored.body
    tf.run("plan", "-detailed-exitcode", code=0)


def test_wrong_password_is_rejected(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(ONE)
    tf.environment["TF_HTTP_PASSWORD"] = "wrong"
    (tf.directory / ".terraform" / "terraform.tfstate").unlink()
    assert "HTTP remote state endpoint requires auth" in tf.run("init", code=1).out
    assert backend.holder() is None
    assert versions_of(backend) == []


def test_malformed_or_revoked_token_is_rejected(terraform: MakeTerraform, backend: Backend) -> None:
    """A token with a typing error is refused like an unknown token."""
    tf = terraform(ONE)
    tf.environment["TF_HTTP_PASSWORD"] = backend.token[:-1] + "~"
    assert "HTTP remote state endpoint requires auth" in tf.apply(code=1).out
    assert backend.get().status == 404


def test_read_only_token_can_plan_but_not_apply(
    terraform: MakeTerraform, backend: Backend, reader_token: str
) -> None:
    terraform(ONE).apply()
    before = backend.get().body
    tf = terraform(ONE, password=reader_token)
    tf.run("plan", "-lock=false", "-detailed-exitcode", code=0)
    tf.write(ONE.replace("first", "changed"))
    tf.run("plan", "-lock=false", "-detailed-exitcode", code=2)

    assert "Error acquiring the state lock" in tf.apply(code=1).out
    # Without a lock it reaches the push, which is refused too.
    assert "HTTP error: 403" in tf.apply("-lock=false", code=1).out

    assert backend.get().body == before
    assert backend.holder() is None
    left = json.loads((tf.directory / "errored.tfstate").read_text())
    assert left["resources"][0]["instances"][0]["attributes"]["input"]["value"] == "changed"


def test_no_user_name_means_no_credentials(terraform: MakeTerraform, backend: Backend) -> None:
    tf = terraform(ONE)
    del tf.environment["TF_HTTP_USERNAME"]
    assert "HTTP remote state endpoint requires auth" in tf.apply(code=1).out
