"""The progress of a command: a bar on a terminal, and a count if the command is interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from django.core.management.base import OutputWrapper

_BAR: Final = (
    "{desc} {percentage:3.0f}% |{bar}| {n_fmt} of {total_fmt}, {rate_noinv_fmt}, {remaining} left"
)
_WITHOUT_TOTAL: Final = "{desc} {n_fmt}, {rate_noinv_fmt}"
#: Seconds between updates of a bar.
_SECONDS: Final = 0.1


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, such as ``1 state`` or ``2 states``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Progress:
    """A progress counter, shown as a bar on a terminal."""

    def __init__(self, unit: str, total: int | None, terminal: OutputWrapper | None) -> None:
        self._unit, self._total, self._done = unit, total, 0
        self._bar = None if terminal is None else _bar(unit, total, terminal)

    def __str__(self) -> str:
        total = "" if self._total is None else f" of {self._total}"
        return f"{self._done}{total} {self._unit}"

    def advance(self, count: int = 1) -> None:
        self._done += count
        if self._total is not None:
            # Concurrent processes may add rows.
            self._total = max(self._total, self._done)
        self.show(self._unit, self._done, self._total)

    def advance_to(self, done: int) -> None:
        self.advance(done - self._done)

    def show(self, label: str, done: int, total: int | None) -> None:
        """Show the progress with a label. A new label restarts the bar."""
        if self._bar is None:
            return
        if self._bar.desc != label:
            self._bar.set_description_str(label, refresh=False)
            self._bar.reset()
        self._bar.total, self._bar.bar_format = total, _layout(total)
        self._bar.update(done - self._bar.n)

    def clear_bar(self) -> None:
        """Remove the bar until the next update, so that a line can be written."""
        if self._bar is not None:
            self._bar.clear()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _layout(total: int | None) -> str:
    return _WITHOUT_TOTAL if total is None else _BAR


class _Plain:
    """A wrapper of a command's terminal for tqdm, without colours and added line ends."""

    def __init__(self, terminal: OutputWrapper) -> None:
        self._terminal = terminal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._terminal, name)

    def write(self, text: str) -> None:
        self._terminal.write(text, style_func=str, ending="")


def _bar(unit: str, total: int | None, terminal: OutputWrapper) -> Any:
    from tqdm import tqdm  # noqa: PLC0415 - takes a tenth of a second, and only terminals need it

    tqdm.monitor_interval = 0  # only bars with large steps need its thread
    return tqdm(
        desc=unit,
        total=total,
        bar_format=_layout(total),
        unit="",
        file=_Plain(terminal),
        miniters=1,
        mininterval=_SECONDS,
        dynamic_ncols=True,
        leave=False,
    )
