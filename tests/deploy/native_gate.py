"""The gate in C, compiled for this computer, as tests call it."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from ctypes import POINTER, c_bool, c_float, c_int16, c_int64, c_uint8, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.contract import Contract
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.safety import Gate, Inputs, Output
from robo_rl.deploy.build.c.gate_header import gate_header

SOURCES = Path(__file__).parents[2] / "deploy" / "build" / "c"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wdouble-promotion", "-Werror"]
DRIVER = """#include "gate_config.h"
const gate_config *test_config(void);
const gate_config *test_config(void) { return &GATE_CONFIG; }
"""


class Problem(ctypes.Structure):
    _fields_ = [("reason", c_uint8), ("channel", c_int16), ("element", c_int16)]


class Arrays(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("command", "reference", "values", "stamps", "changed")]


class Memory(ctypes.Structure):
    _fields_ = [
        ("at", Arrays), ("time", c_int64), ("late", c_int64), ("limited_since", c_int64), ("problem", Problem),
        ("state", c_uint8), ("reaction", c_uint8),
    ]  # fmt: skip


class Input(ctypes.Structure):
    _fields_ = [
        ("time", c_int64), ("signals", c_void_p), ("stamps", c_void_p), ("command", c_void_p),
        ("command_stamp", c_int64), ("fallback", c_void_p), ("operator_stamp", c_int64), ("bundle_intact", c_bool),
        ("requests", c_uint8),
    ]  # fmt: skip


class Answer(ctypes.Structure):
    _fields_ = [
        ("command", POINTER(c_float)), ("problem", Problem), ("state", c_uint8), ("source", c_uint8),
        ("events", c_uint8),
    ]  # fmt: skip


class NativeGate:
    """The C gate of one contract, from power-up."""

    def __init__(self, library: ctypes.CDLL, config: GateConfig) -> None:
        self.library, self.memory = library, Memory()
        library.test_config.restype = c_void_p
        library.gate_step.restype, library.gate_step.argtypes = Answer, [c_void_p] * 3
        library.gate_start.restype, library.gate_start.argtypes = None, [c_void_p] * 3
        self.config = library.test_config()
        self.command, self.reference = np.full_like(config.safe, 7), np.full_like(config.safe, 7)
        self.values = np.full_like(config.signal_lower, 7)
        self.stamps, self.changed = np.full(len(config.signals), 7, np.int64), np.full(len(config.signals), 7, np.int64)
        places = (self.command, self.reference, self.values, self.stamps, self.changed)
        arrays = Arrays(*(place.ctypes.data for place in places))
        library.gate_start(self.config, ctypes.byref(self.memory), ctypes.byref(arrays))

    def step(self, inputs: Inputs) -> tuple[Any, ...]:
        """The answer: command's bytes, source, state, problem, events."""
        stamps = np.array(inputs.stamps, np.int64)
        command, fallback = inputs.command, inputs.fallback
        raw = Input(
            inputs.time, inputs.signals.ctypes.data, stamps.ctypes.data,
            None if command is None else command.ctypes.data, inputs.command_stamp,
            None if fallback is None else fallback.ctypes.data, inputs.operator_stamp, inputs.bundle_intact,
            int(inputs.requests),
        )  # fmt: skip
        out = self.library.gate_step(self.config, ctypes.byref(self.memory), ctypes.byref(raw))
        sent = np.ctypeslib.as_array(out.command, self.command.shape)
        problem = (out.problem.reason, out.problem.channel, out.problem.element)
        return sent.tobytes(), out.source, out.state, problem, out.events

    def remembered(self) -> tuple[Any, ...]:
        """All that it keeps between steps."""
        m = self.memory
        floats = (self.command.tobytes(), self.reference.tobytes(), self.values.tobytes())
        arrays = (*floats, tuple(self.stamps), tuple(self.changed))
        return *arrays, m.state, m.problem.reason, m.reaction, m.time, m.late, m.limited_since


def build_gate(contract: Contract, folder: Path, compiler: str = "gcc", flags: Sequence[str] = ("-O2",)) -> ctypes.CDLL:
    """Compile the gate of a contract."""
    (folder / "gate_config.h").write_text(gate_header(contract))
    (folder / "driver.c").write_text(DRIVER)
    sources = [str(SOURCES / "gate.c"), str(folder / "driver.c")]
    includes = ["-I", str(SOURCES), "-I", str(folder)]
    library = folder / "libgate.so"
    subprocess.run([compiler, *STRICT, *flags, "-fPIC", "-shared", *includes, *sources, "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def answered(output: Output) -> tuple[Any, ...]:
    problem = (output.problem.reason, output.problem.channel, output.problem.element)
    return output.command.tobytes(), output.source, output.state, problem, output.events


def remembered(gate: Gate) -> tuple[Any, ...]:
    floats = (gate.command.tobytes(), gate.reference.tobytes(), gate.values.tobytes())
    arrays = (*floats, gate.stamps, gate.changed)
    return *arrays, gate.state, gate.problem.reason, gate.reaction, gate.time, gate.late, gate.limited_since
