"""The generated C on this computer: compiled with the system's compiler, called from Python, run as a policy."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from robo_rl.deploy.build.c.generate import HERE, Generated
from robo_rl.deploy.robot.bundle import Golden

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
STRICT = ("-std=c99", *WARNINGS)


class CompilerMissing(ValueError):
    """There is no C compiler. The message says how to get one."""


def host_flags() -> list[str]:
    """Flags with which this computer multiplies and adds like a Cortex-M: rounding once."""
    return ["-mfma"] if platform.machine() in ("x86_64", "AMD64") and _has_fma() else []


def _has_fma() -> bool:
    info = Path("/proc/cpuinfo")
    return info.exists() and " fma " in info.read_text()


def compile_host(made: Generated, flags: Sequence[str] = (), compiler: str = "cc") -> HostPolicy:
    """Compile into a shared library in the folder of the sources, and load it."""
    if shutil.which(compiler) is None:
        raise CompilerMissing(f"the C compiler '{compiler}' was not found; install one (apt-get install gcc)")
    driver = made.folder / "host.c"
    text = Template((HERE / "templates" / "host.c").read_text())
    driver.write_text(text.substitute(name=made.name, guard=made.name.upper()))
    library = made.folder / f"lib{made.name}.so"
    command = [
        compiler, *STRICT, "-O3", *host_flags(), *flags, "-shared", "-fPIC",
        *map(str, made.sources), str(driver), "-lm", "-o", str(library),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{compiler} refuses the generated sources:\n{done.stderr}")
    return HostPolicy(made, library)


class HostPolicy:
    """A compiled policy. Also a policy for robo_rl.evaluate.evaluation."""

    def __init__(self, made: Generated, library: Path) -> None:
        self.made, self.contract = made, made.contract
        self.library = functions = ctypes.CDLL(str(library))
        self._step = getattr(functions, f"{made.name}_step_many")
        self._self_test = getattr(functions, f"{made.name}_self_test")
        self._self_test.restype = ctypes.c_float

    def self_test(self) -> float:
        """What the generated self-test returns here."""
        state = np.zeros(max(self.contract.state_size, 1), np.float32)
        arena = np.zeros(self.made.arena_bytes, np.uint8)
        return float(self._self_test(state.ctypes, arena.ctypes))

    def replay(self, golden: Golden) -> np.ndarray:
        """All commands (steps, elements) of a recorded episode, from the initial state."""
        state, rows = self.contract.initial_state[None], []
        for k in range(len(golden)):
            commands, state = self.run({name: value[k : k + 1] for name, value in golden.signals.items()}, state)
            rows.append(np.concatenate([commands[c.name][0] for c in self.contract.commands]))
        return np.stack(rows)

    def run(self, signals: Mapping[str, np.ndarray], state: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """One step of a batch, like ``Bundle.run``: signals (n, *dimensions) by name and state (n, S).

        Commands are NaN, and the state stays, where the C refuses the step.
        """
        flat = [signals[s.name].reshape(len(state), s.size) for s in self.contract.signals]
        packed = np.concatenate(flat, axis=1, dtype=np.float32)
        packed, following = np.ascontiguousarray(packed), np.array(state, np.float32, order="C")
        sizes = [command.size for command in self.contract.commands]
        commands = np.empty((len(packed), sum(sizes)), np.float32)
        room = following if following.size else np.zeros(len(packed), np.float32)
        self._step(ctypes.c_uint32(len(packed)), packed.ctypes, room.ctypes, commands.ctypes)
        parts = np.split(commands, np.cumsum(sizes)[:-1], axis=1)
        return {c.name: part for c, part in zip(self.contract.commands, parts, strict=True)}, following

    def initial_state(self, n: int) -> Any:
        """The state of n policies before their first step, as a torch tensor."""
        import torch

        return torch.from_numpy(np.tile(self.contract.initial_state, (n, 1)))

    def __call__(self, signals: Mapping[str, Any], state: Any) -> tuple[dict[str, Any], Any]:
        import torch

        commands, following = self.run({name: value.numpy() for name, value in signals.items()}, state.numpy())
        return {name: torch.from_numpy(value.copy()) for name, value in commands.items()}, torch.from_numpy(following)
