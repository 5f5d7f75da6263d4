"""A serial port by the system's own calls: raw bytes, one owner, no library needed; and how any port is drained."""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import select
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from robo_rl.deploy.robot.drivers.driver import DriverError

AT_ONCE = 4096
"""Bytes that are read in one call."""
MOST, LONGEST = 64, 0.004
"""Pieces that are read from a port in one control step, and s: a peer that floods it does not hold the step up."""


class Port(Protocol):
    """What moves bytes. OSError when the other end is gone."""

    def write(self, data: bytes) -> None:
        """Send; waits for nothing."""

    def read(self, timeout: float) -> bytes:
        """What has come; waits ``timeout`` s for the first of it. b"" if nothing came."""

    def close(self) -> None:
        """Give it back."""


def drain(port: Port, timeout: float = 0.0) -> Iterator[bytes]:
    """What has come, piece by piece: waits ``timeout`` s for the first, takes ``MOST`` at most, and begins none after
    ``LONGEST`` s. What is left comes with the next call. OSError when the other end is gone.
    """
    data, end = port.read(timeout), time.monotonic() + LONGEST
    for _ in range(MOST):
        if not data:
            return
        yield data
        if time.monotonic() > end:
            return
        data = port.read(0.0)


class SerialPort:
    """A serial device, or a pseudo-terminal."""

    def __init__(self, path: str, baud: int) -> None:
        """DriverError if there is none, it may not be used, or another process uses it."""
        speed = getattr(termios, f"B{baud}", None)
        if speed is None:
            raise DriverError(f"{path}: {baud} baud is no rate of this system")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            raise DriverError(_opening(path, error)) from None
        self.path = path
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            attributes = termios.tcgetattr(self._file)
            attributes[0] = attributes[1] = attributes[3] = 0
            attributes[2] = termios.CS8 | termios.CREAD | termios.CLOCAL
            attributes[4] = attributes[5] = speed
            attributes[6][termios.VMIN] = attributes[6][termios.VTIME] = 0
            termios.tcsetattr(self._file, termios.TCSANOW, attributes)
            termios.tcflush(self._file, termios.TCIOFLUSH)
        except BlockingIOError:
            os.close(self._file)
            raise DriverError(f"{path}: another process uses it; end that first (fuser {path})") from None
        except (termios.error, OSError) as error:
            os.close(self._file)
            raise DriverError(f"{path}: it is no serial port ({error})") from None
        with contextlib.suppress(OSError):  # only one process may open it from now on; pseudo-terminals may refuse
            fcntl.ioctl(self._file, termios.TIOCEXCL)
        with contextlib.suppress(OSError):
            _low_latency(self._file)

    def write(self, data: bytes) -> None:
        """Send all, or raise OSError: a port that takes none of it in 50 ms is dead."""
        while data:
            _, ready, _ = select.select([], [self._file], [], 0.05)
            if not ready:
                raise OSError(errno.EIO, f"{self.path}: it takes no bytes")
            data = data[os.write(self._file, data) :]

    def read(self, timeout: float) -> bytes:
        """What has come, waiting at most ``timeout`` s."""
        ready, _, _ = select.select([self._file], [], [], max(0.0, timeout))
        if not ready:
            return b""
        try:
            data = os.read(self._file, AT_ONCE)
        except BlockingIOError:
            return b""
        if not data:
            raise OSError(errno.EIO, f"{self.path}: it was unplugged")
        return data

    @property
    def number(self) -> int:
        """The file descriptor: for a process that is to write on, when this one is dead."""
        return self._file

    def close(self) -> None:
        """Give it back."""
        with contextlib.suppress(OSError):
            os.close(self._file)


def _low_latency(file: int) -> None:
    """Let an FTDI adapter hand on what it has within 1 ms instead of 16 (ASYNC_LOW_LATENCY of struct serial_struct)."""
    get, put, low_latency = 0x541E, 0x541F, 1 << 13
    settings = array.array("i", [0] * 32)
    fcntl.ioctl(file, get, settings)
    settings[4] |= low_latency
    fcntl.ioctl(file, put, settings)


def _opening(path: str, error: OSError) -> str:
    if error.errno == errno.ENOENT:
        found = sorted(str(one) for pattern in ("ttyACM*", "ttyUSB*") for one in Path("/dev").glob(pattern))
        return f"{path}: there is no such port; plugged in are {', '.join(found) or 'none'}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{path}: you may not use it; join the group that owns it (sudo usermod -aG dialout $USER, log in again)"
    if error.errno == errno.EBUSY:
        return f"{path}: another process uses it; end that first (fuser {path})"
    return f"{path}: {error.strerror}"
