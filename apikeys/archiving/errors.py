class ArchiveError(Exception):
    """A failed archive operation. The message describes the fault; the audit log is unchanged."""
