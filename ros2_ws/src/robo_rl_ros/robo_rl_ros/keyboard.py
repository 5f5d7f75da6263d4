"""Keys of a terminal, as they are pressed."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from types import TracebackType

KEYS = {
    "w": (1, 0, 0, 0), "up": (1, 0, 0, 0), "s": (-1, 0, 0, 0), "down": (-1, 0, 0, 0),
    "q": (0, 1, 0, 0), "e": (0, -1, 0, 0), "r": (0, 0, 1, 0), "f": (0, 0, -1, 0),
    "a": (0, 0, 0, 1), "left": (0, 0, 0, 1), "d": (0, 0, 0, -1), "right": (0, 0, 0, -1),
}  # fmt: skip
"""What each key wishes: forward, left, up, turn, as parts of the most."""
ARROWS = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left"}


class Keyboard:
    """The terminal on standard input, without waiting for the end of a line. Use it in a ``with`` statement."""

    def __init__(self) -> None:
        self._file = sys.stdin.fileno()
        if not os.isatty(self._file):
            raise ValueError("standard input is no terminal; expected one, or another source than the keyboard")

    def __enter__(self) -> Keyboard:
        self._before = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)

    def pressed(self) -> list[str]:
        """The keys since the last call; arrows by their names."""
        text = ""
        while select.select([self._file], [], [], 0)[0]:
            got = os.read(self._file, 1024)
            if not got:
                break
            text += got.decode(errors="replace")
        keys = []
        while text:
            arrow = next((code for code in ARROWS if text.startswith(code)), "")
            keys.append(ARROWS[arrow] if arrow else text[0])
            text = text[len(arrow) or 1 :]
        return keys
