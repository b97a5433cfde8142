class ArchiveError(Exception):
    """A failed archive operation, which left the audit log unchanged."""
