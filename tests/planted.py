"""What somebody puts in a file's place who means harm: pipes, devices, holes of gigabytes, archives that unpack."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

Make = Callable[[Path], Path]
GIGABYTES = 1 << 37


def written(name: str, data: str | bytes) -> Make:
    def make(folder: Path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return make


def pipe(name: str) -> Make:
    def make(folder: Path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
        return path

    return make


def hole(name: str, head: bytes = b"") -> Make:
    """A file of 128 GB, of which the beginning is on the disk."""

    def make(folder: Path) -> Path:
        path = written(name, head)(folder)
        with path.open("ab") as file:
            file.truncate(GIGABYTES)
        return path

    return make


def device(name: str) -> Make:
    def make(folder: Path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to("/dev/zero")
        return path

    return make


def packed(name: str, members: dict[str, bytes]) -> Make:
    def make(folder: Path) -> Path:
        path = folder / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for member, data in members.items():
                file.writestr(member, data)
        return path

    return make


CODE = b"\x80\x04cos\nsystem\n(S'touch ESCAPED'\ntR."
"""A pickle that runs a program."""
