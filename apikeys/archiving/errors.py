class ArchiveError(Exception):
    """The trail stays as it is; the message says what is wrong."""
