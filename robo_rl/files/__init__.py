"""Files that are whole or not there, and runs that one process at a time works on."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""No space on the device, over the quota, over the limit of a file's size."""
NO_FILE = (errno.ELOOP, errno.ENXIO, errno.EISDIR)
"""What opening a link (O_NOFOLLOW), a pipe that nobody reads, or a folder comes to."""
LOCK = "lock"
MOST_HOLES = 1 << 28
"""Bytes of a file that may be missing on the disk, as after a loss of power."""


class WriteError(OSError):
    """A file can't be written. The message names it and says why, and what to do."""


class HeldError(ValueError):
    """Another process works on a run. The message says which."""


def require_file(path: Path, most: int) -> None:
    """ValueError unless that is a file, not a pipe or a device, of at most so many bytes, most of which are there.

    Files with holes, in which nothing is stored, take no room on a disk, and read as any number of zeros.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path}: a folder, pipe or device; expected a file")
    if found.st_size > most:
        raise ValueError(f"{path}: {found.st_size} bytes; expected at most {most}")
    stored = 512 * getattr(found, "st_blocks", found.st_size)
    if found.st_size - stored > MOST_HOLES:
        raise ValueError(f"{path}: {found.st_size} bytes, of which {stored} are stored; expected a file without holes")


def read_bytes(path: Path, most: int) -> bytes:
    """What is in a file of at most so many bytes; ValueError as ``require_file``."""
    require_file(path, most)
    return path.read_bytes()


def open_own(path: Path, mode: str) -> IO[Any]:
    """Open a regular or new file of a run's folder as ``open`` does; ``mode`` is "a", "ab", "a+" or "rb".

    ValueError for a symbolic link, a folder, a pipe or a device. A link is not followed, and a pipe does not block.
    """
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    flags |= os.O_RDONLY if mode == "rb" else os.O_CREAT | os.O_APPEND | (os.O_RDWR if "+" in mode else os.O_WRONLY)
    try:
        number = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno not in NO_FILE:
            raise
        raise ValueError(f"{path}: a link, folder, pipe or device; expected a file") from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise ValueError(f"{path}: a folder, pipe or device; expected a file")
    return os.fdopen(number, mode, buffering=0 if mode == "ab" else -1)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside ``path``, that takes its name at the end of the block, when it is whole and on disk.

    Whoever reads ``path`` finds the old file or the new one, also after a crash or a kill in between. Where the block
    fails, the old one stays and nothing else is left; WriteError if there is no room.
    """
    partial = path.with_name(path.name + ".partial")
    with contextlib.suppress(IsADirectoryError):  # opening it says so
        partial.unlink(missing_ok=True)  # a pipe would hold the writer up, and a link be followed
    try:
        with room_for(path, "nothing was changed"):
            yield partial
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write(path: Path, data: bytes | str) -> None:
    """Replace the file at ``path``, as ``replacing`` does."""
    with replacing(path) as partial:
        partial.write_bytes(data.encode() if isinstance(data, str) else data)


@contextlib.contextmanager
def room_for(path: Path, consequence: str) -> Iterator[None]:
    """Says what it means, in a WriteError, when there is no room for ``path`` on the disk."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        if error.errno not in FULL:
            raise
        reason = f"{path} can't be written: {os.strerror(error.errno or 0)}; {consequence}; make room and try again"
        raise WriteError(error.errno, reason) from None


def is_held(folder: Path) -> bool:
    """Whether a process holds a run's folder now (``held``)."""
    import fcntl

    try:
        with open_own(folder / LOCK, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, ValueError):  # what is no file is nobody's lock: ``held`` refuses it
        return False
    except BlockingIOError:
        return True
    return False


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a run's folder; HeldError if another process does. The system lets go of it when this process ends.

    ValueError where a link, pipe or device is in the lock's place.
    """
    import fcntl

    with open_own(folder / LOCK, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(200).strip() or "another process"
            raise HeldError(f"{folder} is being trained by {holder}; wait until it has ended, or end it") from None
        file.truncate(0)
        with contextlib.suppress(OSError):  # who holds it is a comfort; that it is held does not need a disk
            file.write(f"process {os.getpid()} on {socket.gethostname()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}")
            file.flush()
        yield
