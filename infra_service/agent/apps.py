import logging.config

from django.apps import AppConfig, apps
from django.conf import settings


class _WithoutModels(AppConfig):
    """An app of which only the commands are found."""

    def import_models(self) -> None:
        """Load no models, which takes memory that an agent has no use for."""
        self.models = apps.all_models[self.label]


class LogConfig(_WithoutModels):
    name = "infra_service"

    def ready(self) -> None:
        """Set up our log lines."""
        from infra_service import logs  # noqa: PLC0415 - as in the service, when all is loaded

        logging.config.dictConfig(settings.LOGGING)
        logs.configure(settings.LOG_LEVEL)


class WorkloadsConfig(_WithoutModels):
    name = "workloads"
