from infra_service.lib.database.postgresql.schema import limit_wait

__all__ = ["limit_wait"]
