"""What a command draws on a terminal."""

import io


class Terminal(io.StringIO):
    """A terminal, and all that was drawn on it, also what was drawn over."""

    def isatty(self) -> bool:
        return True

    @property
    def drawn(self) -> list[str]:
        return [text.strip() for text in self.getvalue().split("\r") if text.strip()]
