"""A large answer that is put together once for all who ask for it meanwhile, however many they are.

Who asks while an answer is being put together waits for the next one, with all others, since that one may be older than
the question. Between two there is a pause: a hundred browsers that ask for megabytes leave the processor, and Python's
lock, to a request to stop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PAUSE = 0.1
"""s from the end of one answer to the beginning of the next."""


class Once:
    """Of ``make``, which may be called from any thread, by one at a time."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._asking, self._making = threading.Lock(), threading.Lock()
        self._begun, self._done, self._answer = 0, 0, b""
        """The number of the last answer that was begun, and of the last one that is there."""
        self._free = 0.0
        """s, when the next one may be begun."""

    def __call__(self) -> bytes:
        """An answer that was begun after this call."""
        with self._asking:
            wanted = self._begun + 1
        with self._making:
            if self._done < wanted:
                time.sleep(max(0.0, self._free - time.monotonic()))
                with self._asking:
                    self._begun += 1
                    number = self._begun
                self._answer, self._done = self._make(), number
                self._free = time.monotonic() + PAUSE
            return self._answer
