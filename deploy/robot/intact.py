"""Whether the file of a bundle that is at work is still the one that was verified."""

from __future__ import annotations

import os
from pathlib import Path

from robo_rl.deploy.robot.bundle import Bundle, file_digest


class Watch:
    """Whether the file of a bundle is still the one that was verified."""

    def __init__(self, bundle: Bundle) -> None:
        self._path, self._digest, self._seen = bundle.path, bundle.digest, fingerprint(bundle.path)
        self.complaint = ""
        """What is wrong with the file; "" while it is intact."""

    def look(self) -> bool:
        """Read the file again if it was touched; whether it is intact."""
        seen = fingerprint(self._path)
        if seen != self._seen:
            self._seen, self.complaint = seen, ""
            try:
                if file_digest(self._path) != self._digest:
                    self.complaint = f"{self._path}: it is another bundle than the one that was verified"
            except (ValueError, OSError) as error:
                self.complaint = str(error)
        return not self.complaint


def fingerprint(path: str | Path) -> tuple[int, int, int] | None:
    """What changes when a file does; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
