import logging.config

from django.apps import AppConfig, apps
from django.conf import settings


class _WithoutModels(AppConfig):
    """An app that provides only management commands."""

    def import_models(self) -> None:
        """Skip the models, which an agent does not use, to save memory."""
        self.models = apps.all_models[self.label]


class LogConfig(_WithoutModels):
    name = "infra_service"

    def ready(self) -> None:
        """Configure the log format of the service."""
        from infra_service import logs  # noqa: PLC0415 - after all apps are loaded, as in the service

        logging.config.dictConfig(settings.LOGGING)
        logs.configure(settings.LOG_LEVEL)


class WorkloadsConfig(_WithoutModels):
    name = "workloads"
