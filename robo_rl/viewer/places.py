"""Connections that a server has at once: so many, and the newest always finds a place.

Whoever floods a page with connections on which nothing comes holds nobody up: the oldest of them is closed for the
next one. A request that a person makes, STOP above all, arrives at once, and is answered long before it is the oldest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable


class Places:
    """Of connections, from any thread."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock, self._held = threading.Lock(), dict[Hashable, Callable[[], object]]()

    def enter(self, connection: Hashable, close: Callable[[], object]) -> None:
        """A new one, that ``close`` would end. Where there is no room, the oldest is ended."""
        with self._lock:
            oldest = self._held.pop(next(iter(self._held))) if len(self._held) >= self.most else None
            self._held[connection] = close
        if oldest is not None:
            oldest()

    def enter_if_free(self, connection: Hashable) -> bool:
        """Whether there is room for a new one; then it has it."""
        with self._lock:
            free = len(self._held) < self.most
            if free:
                self._held[connection] = lambda: None
            return free

    def leave(self, connection: Hashable) -> None:
        """It is gone, or needs no place any more."""
        with self._lock:
            self._held.pop(connection, None)

    def __len__(self) -> int:
        return len(self._held)
