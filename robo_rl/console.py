"""What commands print: progress and text for people, one JSON object for machines."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from robo_rl.files.escaping import terminal

STARTED = time.monotonic()
"""When this process began to run robo-rl."""

LINES = 10
"""Of progress, at most, where there is no terminal."""
PART = 0.6
"""Of the lines that a command has left, at most for one bar, since others may follow."""
QUIET_SECONDS = 2.0  # at least between two of them
LONG_SECONDS = 10.0
"""After which a person wonders whether anything goes on."""


class Lines:
    """Lines of progress that a command has left, for all of its bars; without a command each bar has its own."""

    left: int | None = None


@contextmanager
def few_lines() -> Iterator[None]:
    """Meanwhile all bars together write at most ``LINES`` lines."""
    before, Lines.left = Lines.left, LINES
    try:
        yield
    finally:
        Lines.left = before


class Progress:
    """A progress bar on a terminal, otherwise at most ten lines, both with an estimate of the time that is left.

    Writes to standard error.

    with Progress("training", total=150) as progress:
        progress.update(done, "reward 0.83")
    """

    def __init__(self, title: str | None, total: int, begun: int = 0) -> None:
        """Without a title nothing is shown. ``begun`` of the total was done before, such as before a break."""
        self.quiet, self.title, self.total, self.begun = title is None, terminal(title or ""), total, begun
        self._bar: Any = None
        self._start = self._last = time.monotonic()
        self._most = LINES if Lines.left is None else math.ceil(PART * Lines.left)
        self._parts = 0

    def __enter__(self) -> Progress:
        if sys.stderr.isatty() and not self.quiet:
            from rich.console import Console
            from rich.live import Live
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.completed}/{task.total} {task.fields[note]}", markup=False),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, console=Console(stderr=True), auto_refresh=False)
            self._live = Live(self._bar, console=self._bar.console, auto_refresh=False)
            self._live.start()
            self._task = self._bar.add_task(self.title, total=self.total, completed=self.begun, note="")
        return self

    def update(self, done: int, note: str = "") -> None:
        """``done`` of the total is done. Cheap: shows at most ten times a second."""
        now = time.monotonic()
        if self._bar is not None:
            if now - self._last > 0.1 or done == self.total:
                self._bar.update(self._task, completed=done, note=terminal(note))
                self._live.refresh()
                self._last = now
            return
        part = self._most * (done - self.begun) // max(self.total - self.begun, 1)
        if part > self._parts and now - self._last > QUIET_SECONDS and not self.quiet and Lines.left != 0:
            left = (now - self._start) * (self.total - done) / max(done - self.begun, 1)
            text = f"{self.title}: {done}/{self.total} {note}".strip()
            print(terminal(f"{text}, about {left:.0f} s left"), file=sys.stderr, flush=True)
            self._last, self._parts = now, part
            if Lines.left is not None:
                Lines.left -= 1

    def show(self, metrics: Mapping[str, float]) -> None:
        """On a terminal, a table of metrics above the bar, until the next one."""
        if self._bar is not None:
            from rich.console import Group

            from robo_rl.metrics_table import table

            self._live.update(Group(table(metrics), self._bar), refresh=True)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._live.stop()


def say(text: str, as_json: bool = False) -> None:
    """Text for people: on standard output, or on standard error where that is for machines."""
    print(terminal(text), file=sys.stderr if as_json else sys.stdout, flush=True)


@contextmanager
def told_if_long(text: str, as_json: bool = False, seconds: float = LONG_SECONDS) -> Iterator[None]:
    """Says ``text`` once if what is done meanwhile takes longer than ``seconds``."""
    timer = threading.Timer(seconds, say, (text, as_json))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def say_next(commands: Sequence[str], as_json: bool = False) -> None:
    """Commands to go on with, one per line, so that none is broken in a terminal of 80 columns."""
    say("Next:  " + "\n       ".join(commands), as_json)


def give(result: Mapping[str, Any], as_json: bool) -> None:
    """The result for machines: one JSON object on the last line of standard output. A NaN becomes null."""
    if as_json:
        print(json.dumps(finite(result), allow_nan=False), flush=True)


def require_port(port: int) -> None:
    """ValueError unless a page can have this port."""
    if not 0 <= port <= 65535:
        raise ValueError(f"--port is {port}; expected 1 to 65535, or 0 for any free one")


def require_place(path: Path | None, option: str, *endings: str) -> None:
    """ValueError unless a file can be at ``path``: a name that ends as one of ``endings``, in a folder that exists."""
    if path is None:
        return
    if endings and path.suffix not in endings:
        raise ValueError(f"{option} is '{path}'; expected a name that ends in {' or '.join(endings)}")
    if not path.parent.is_dir():
        raise ValueError(f"{option} is '{path}'; the folder '{path.parent}' does not exist: make it first")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{option} is '{path}'; nothing can be written to the folder '{path.parent}'")
    if path.is_dir():
        raise ValueError(f"{option} is '{path}', a folder; expected the name of a file")


def finite(value: Any) -> Any:
    """``value`` with None for numbers that JSON doesn't have."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
