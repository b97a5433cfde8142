from __future__ import annotations

from rest_framework.exceptions import APIException


class InvalidFile(APIException):
    meaning = (
        "A file that was sent with the facts does not have Terraform's format. The message "
        "contains the position."
    )
    status_code = 400
    default_code = "INVALID_FILE"

    def __init__(self, name: str, because: str, line: int | None = None) -> None:
        at = "" if line is None else f", line {line}"
        super().__init__(f"{name}{at}: {because}")
        self.metadata = {"file": name, **({} if line is None else {"line": str(line)})}
