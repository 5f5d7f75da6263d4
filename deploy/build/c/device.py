"""Write the rest of a device's sources beside a policy's: link, gate, held samples, and the device that joins them.

    made = generate(bundle, "firmware")
    sources = made.sources + write_device(made)

What the board has to add is a clock, a port and the actuators; ``device.h`` says how. ``HostDevice`` is the same C
compiled for this computer, to be compared with what a microcontroller answers.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np

from robo_rl.deploy.build.c.gate_header import gate_header
from robo_rl.deploy.build.c.generate import HERE, Generated
from robo_rl.deploy.build.c.held_header import held_header
from robo_rl.deploy.build.c.hooks import hooks
from robo_rl.deploy.build.c.host import STRICT, CompilerMissing, host_flags

COPIED = ("gate.h", "gate.c", "held.h", "held.c", "link.h", "link.c", "link_message.h", "link_message.c")
WRITTEN = ("device.h", "device.c", "exchange.h", "exchange.c")
MOST_SAID = 4096
"""Bytes that a device may say in one exchange; the rest is cut off. As in image/rig.c."""


class Request(NamedTuple):
    """Bytes that arrive at a device, all at one moment."""

    device: int
    """Its index."""
    data: bytes
    time: int
    """µs, on the device's clock."""


class Answer(NamedTuple):
    """What a device does then."""

    said: bytes
    """On the wire."""
    motors: np.ndarray
    """(M,) float32: what the actuators get from then on, in SI units."""
    enabled: bool
    """False: they are disabled, as before the first arming."""


def write_gate(made: Generated) -> Path:
    """Write the gate alone, with its configuration, into the folder of a policy; the file to compile."""
    for name in ("gate.h", "gate.c"):
        shutil.copyfile(HERE / name, made.folder / name)
    (made.folder / "gate_config.h").write_text(gate_header(made.contract))
    return made.folder / "gate.c"


def write_device(made: Generated) -> list[Path]:
    """Write link, gate, held samples and device into the folder of a policy; the files to compile beside its own.

    LinkError for signals that no frame can hold.
    """
    held = held_header(made.contract)
    for name in COPIED:
        shutil.copyfile(HERE / name, made.folder / name)
    (made.folder / "gate_config.h").write_text(gate_header(made.contract))
    (made.folder / "held_config.h").write_text(held)
    for name in WRITTEN:
        text = Template((HERE / "templates" / name).read_text())
        texts = {"name": made.name, "guard": made.name.upper(), **hooks(made.name, made.learns)}
        (made.folder / name).write_text(text.substitute(texts))
    return [made.folder / name for name in (*COPIED, *WRITTEN) if name.endswith(".c")]


class HostDevice:
    """Devices compiled for this computer, from power-up. Times in µs."""

    def __init__(self, made: Generated, count: int = 1, compiler: str = "cc") -> None:
        if shutil.which(compiler) is None:
            raise CompilerMissing(f"the C compiler '{compiler}' was not found; install one (apt-get install gcc)")
        library = made.folder / "libdevice.so"
        sources = [*made.sources, *write_device(made)]
        command = [
            compiler, *STRICT, "-O3", *host_flags(), "-shared", "-fPIC", *map(str, sources), "-lm", "-o", str(library),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{compiler} refuses the sources:\n{done.stderr}")
        self._functions = ctypes.CDLL(str(library))
        self._functions.exchange_size.restype = ctypes.c_size_t
        self._functions.exchange.restype = ctypes.c_size_t
        self._functions.exchange_enabled.restype = ctypes.c_bool
        self._size = self._functions.exchange_size()
        self._memory = np.zeros(count * self._size, np.uint8)
        self._said = np.zeros(MOST_SAID, np.uint8)
        self._command_size = sum(command.size for command in made.contract.commands)
        self.restart()

    def _device(self, index: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._memory.ctypes.data + index * self._size)

    def restart(self) -> None:
        """Power off and on, at time 0."""
        for index in range(len(self._memory) // self._size):
            self._functions.exchange_start(self._device(index), ctypes.c_int64(0))

    def exchange(self, requests: Sequence[Request]) -> list[Answer]:
        """What devices answer, one after the other."""
        return [self._exchange(request) for request in requests]

    def _exchange(self, request: Request) -> Answer:
        motors = np.zeros(self._command_size, np.float32)
        size = self._functions.exchange(
            self._device(request.device), request.data, ctypes.c_size_t(len(request.data)),
            ctypes.c_int64(request.time), self._said.ctypes, ctypes.c_size_t(MOST_SAID), motors.ctypes,
        )  # fmt: skip
        enabled = self._functions.exchange_enabled(self._device(request.device))
        return Answer(self._said[:size].tobytes(), motors, enabled)
