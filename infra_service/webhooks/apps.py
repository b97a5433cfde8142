from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "infra_service.webhooks"
    label = "webhooks"
    verbose_name = "Webhooks"
