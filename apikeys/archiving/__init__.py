"""Archives of the audit log: files with digests in the database.

An archive is a gzipped file of JSON lines, with the oldest events of the log in the order of their
ids. The digest of each line covers the line and the previous digest. The first line continues the
chain of the previous archive, so verification detects every changed, removed or moved line or file.
"""

from apikeys.archiving.archive import FILE_EVENTS, archive_next, missing_privilege
from apikeys.archiving.checking import check_archives
from apikeys.archiving.files import ArchiveError

__all__ = ["FILE_EVENTS", "ArchiveError", "archive_next", "check_archives", "missing_privilege"]
