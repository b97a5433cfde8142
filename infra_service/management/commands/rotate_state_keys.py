"""Re-encrypt everything that the encryption keys protect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from infra_service import key_canary, key_rotation
from infra_service.lib.commandline.base import ServiceCommand
from infra_service.lib.commandline.progress import counted
from states.errors import StorageUnavailable
from states.keeping import reencryption

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from infra_service.key_rotation import Kind


class Command(ServiceCommand):
    """Re-encrypt every value that an older key encrypts."""

    help = (
        "Encrypt all protected data with the first of STATE_ENCRYPTION_KEYS: documents, webhook "
        "secrets, stored responses to requests with an Idempotency-Key, secrets of one-time "
        "codes, and the digests in the resource index. The service can keep running. The next "
        "run continues an interrupted run."
    )
    examples = ("rotate_state_keys", "rotate_state_keys --all --json")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--all",
            action="store_true",
            help="also re-encrypt documents that already use the first key, which binds documents "
            "of older releases to their version numbers",
        )
        parser.add_argument(
            "--accept-lost-key",
            action="store_true",
            help="let the service start without a lost key; values that require the key stay "
            "unreadable",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Re-encrypt the values, and print a line for each failure.

        Raises:
            CommandError: a value was not re-encrypted (for example because it is damaged), or the
                    object store does not respond.
        """
        lost = key_canary.reencrypt(accept_lost_key=options["accept_lost_key"])
        if lost:
            raise CommandError(
                f"the database is encrypted with the key {lost}, which is not configured: add it "
                "to STATE_ENCRYPTION_KEYS, or accept its loss with --accept-lost-key"
            )
        counts = {"documents": {"reencrypted": 0, "failed": 0}}
        try:
            self._reencrypt_documents(counts["documents"], everything=options["all"])
            stopped = ""
        except StorageUnavailable as error:
            done = counts["documents"]["reencrypted"]
            stopped = f"stopped after {counted(done, 'document')}: {error.detail}"
        for kind in key_rotation.KINDS:
            try:
                counts[kind.name] = self._reencrypt(kind)
            except StorageUnavailable as error:
                stopped = stopped or f"stopped at {kind.label}: {error.detail}"
        if skipped := key_rotation.skipped_second_factors():
            self.problem(
                f"skipped: {skipped} second factors, because sign-on and ADMIN_SECOND_FACTOR are "
                "off. Keep the old key, or turn one of them on and run the command again"
            )
        labels = {"documents": "documents", **{k.name: k.label for k in key_rotation.KINDS}}
        self.report(
            # The member of release 1.0.0, which counted only documents.
            {"reencrypted": counts["documents"]["reencrypted"], **counts},
            *(f"{count['reencrypted']} {labels[name]} re-encrypted"
              for name, count in counts.items()),
        )  # fmt: skip
        if stopped:
            raise CommandError(stopped)
        if failed := sum(count["failed"] for count in counts.values()):
            raise CommandError(
                f"{counted(failed, 'value')} not re-encrypted: keep the old keys as long as you "
                "need the values"
            )

    def _reencrypt_documents(self, counts: dict[str, int], *, everything: bool) -> None:
        total = reencryption.due(everything=everything).count
        with self.progress("documents", total) as bar:
            for version, problem in reencryption.rotate_keys(everything=everything):
                counts["failed" if problem else "reencrypted"] += 1
                if problem:
                    self.problem(
                        f"failed: state {version.state_id} version {version.number}: {problem}"
                    )
                bar.advance()

    def _reencrypt(self, kind: Kind) -> dict[str, int]:
        """Re-encrypt the values of a kind. A value that still needs an older key has failed."""
        counts = {"reencrypted": kind.reencrypt(), "failed": 0}
        for value in kind.older():
            counts["failed"] += 1
            self.problem(f"failed: {value.item}: {value.problem}")
        return counts
