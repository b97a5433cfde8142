"""The way out of the audit trail: into files whose digests the database keeps.

An archive is one file: gzip'd JSON lines, the oldest events of the trail in the order of their ids.
Every line has a digest over itself and the line before it, and the first over the last of the
archive before, so a line or a file that was changed, removed or moved is found.
"""

from apikeys.archiving.checking import check_archives
from apikeys.archiving.errors import ArchiveError
from apikeys.archiving.leaving import FILE_EVENTS, archive_next
from apikeys.archiving.privileges import missing_privilege

__all__ = ["FILE_EVENTS", "ArchiveError", "archive_next", "check_archives", "missing_privilege"]
