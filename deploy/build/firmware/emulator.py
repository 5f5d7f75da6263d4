"""An emulated board that is on, with our end of its wire: a serial port, or two pipes that the image opens.

with Emulator(image, target, serial=True) as board:
    board.wire.write(b"…")
    data = board.wire.take(10)
"""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from pathlib import Path

from robo_rl.deploy.build.firmware.build import EMULATOR, require
from robo_rl.deploy.build.firmware.emulate import EmulationError
from robo_rl.deploy.build.firmware.targets import Target

PATIENCE = 300.0  # s
LOOK = 1.0  # s, between two looks whether the emulator still runs
READ_BYTES = 65_536
BUFFERED = "mux=on"
"""A multiplexer holds 32 bytes for a port that has room for one, so that the emulator's threads wait less."""
NO_ESCAPE = ("-echr", "256")
"""No byte is the multiplexer's escape character."""


class Wire:
    """Our end: a pair of named pipes, as the emulator wants them of a serial port."""

    def __init__(self, path: Path, board: Emulator) -> None:
        self._board, self._read_ahead = board, b""
        for end in (".in", ".out"):
            os.mkfifo(f"{path}{end}")
        # for reading and writing, so that opening does not wait for the emulator
        self._to, self._from = (os.open(f"{path}{end}", os.O_RDWR | os.O_NONBLOCK) for end in (".in", ".out"))

    def close(self) -> None:
        os.close(self._to)
        os.close(self._from)

    def read(self) -> bytes:
        """What has arrived, perhaps nothing."""
        data, self._read_ahead = self._read_ahead, b""
        try:
            return data + os.read(self._from, READ_BYTES)
        except BlockingIOError:
            return data

    def wait(self) -> None:
        """Until something has arrived."""
        if not self._read_ahead:
            self._board.wait(reading=self._from)

    def take(self, size: int) -> bytes:
        """So many bytes, as soon as they have arrived."""
        data = self.read()
        while len(data) < size:
            self._board.wait(reading=self._from)
            data += self.read()
        self._read_ahead = data[size:]
        return data[:size]

    def write(self, data: bytes) -> None:
        """Send all of it."""
        while data:
            self._board.wait(writing=self._to)
            data = data[os.write(self._to, data) :]


class Emulator:
    """A board that runs an image, from power-up until the context ends."""

    def __init__(self, image: Path, target: Target, serial: bool) -> None:
        """``serial``: the wire is the board's serial port; else the image opens "wire.in" and "wire.out" itself."""
        require(EMULATOR)
        self._title = f"{image.name} on {target.machine}"
        self._folder = tempfile.TemporaryDirectory(prefix="board")
        path = Path(self._folder.name) / "wire"
        self.wire = Wire(path, self)
        command = [EMULATOR, "-M", target.machine, "-display", "none", "-monitor", "none", *NO_ESCAPE]
        if serial:
            command += ["-chardev", f"pipe,id=wire,path={path},{BUFFERED}", "-serial", "chardev:wire"]
        else:
            command += ["-serial", "none"]
        command += ["-semihosting-config", "enable=on,target=native", "-kernel", str(image.resolve())]
        # a session of its own, so that Ctrl-C reaches only us
        self._process = subprocess.Popen(
            command, cwd=self._folder.name, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> Emulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Power off."""
        self._process.kill()
        self._process.communicate()
        self.wire.close()
        self._folder.cleanup()

    def wait(self, reading: int | None = None, writing: int | None = None) -> None:
        """Until the wire can be read from or written to. EmulationError if the board is off, or does nothing."""
        left = PATIENCE
        inward, outward = ([x] if x is not None else [] for x in (reading, writing))
        while not any(select.select(inward, outward, [], LOOK)):
            if self._process.poll() is not None:
                said = self._process.stderr.read() if self._process.stderr else ""
                code = self._process.returncode
                raise EmulationError(f"{self._title} has ended, with exit code {code}: {said[-500:].strip()}")
            left -= LOOK
            if left <= 0:
                raise EmulationError(f"{self._title} gave no output for {PATIENCE:g} s")
