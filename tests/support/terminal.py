"""The output of a command on a terminal."""

import io


class Terminal(io.StringIO):
    """A terminal that keeps all output, even if it was overwritten."""

    def isatty(self) -> bool:
        return True

    @property
    def drawn(self) -> list[str]:
        return [text.strip() for text in self.getvalue().split("\r") if text.strip()]
