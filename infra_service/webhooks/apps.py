from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "infra_service.webhooks"
    label = "webhooks"
    verbose_name = "Webhooks"

    def ready(self) -> None:
        # Imported here because these modules import models.
        from apikeys.actions.owned import OWNED, OwnedKind  # noqa: PLC0415
        from infra_service.change_history.recording import changes_recorded  # noqa: PLC0415
        from infra_service.webhooks import actions, models, resource_changes  # noqa: PLC0415

        changes_recorded.connect(resource_changes.receive)
        enabled = models.WebhookEndpoint.objects.enabled_without_key
        OWNED.append(
            OwnedKind(
                "webhook",
                "webhooks",
                enabled,
                lambda endpoint, actor: actions.disable_endpoint(
                    endpoint_id=endpoint.pk, reason=models.BY_OPERATOR, actor=actor
                ),
            )
        )
