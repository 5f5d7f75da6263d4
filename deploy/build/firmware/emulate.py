"""Run an image on an emulated board, and count the instructions of a step exactly.

With ``-icount`` QEMU's clock advances by a fixed time per instruction, so that the processor's own timer counts
instructions; ``sleep=off`` keeps the host's clock out of it.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robo_rl.deploy.build.firmware.build import require
from robo_rl.deploy.build.firmware.targets import Target

TIMEOUT = 300.0  # s
EXACT = ("-icount", "shift=10,align=off,sleep=off")  # 1024 ns per instruction, some 25 ticks
NO_BIOS = ((), ("-bios", "none"))
QUICK = ("-icount", "shift=3,align=off,sleep=off")  # 8 ns per instruction: 125 million a second, in virtual time


class EmulationError(ValueError):
    """The image didn't run to its end."""


@dataclass(frozen=True)
class Measured:
    """What an image found out about itself."""

    self_test_error: float
    passed: bool
    stack_bytes: int
    instructions: list[int]
    """Of every recorded step, the call included."""
    gate_instructions: list[int]
    """Of the gate at each of them."""
    gate_state: int
    """``gate_codes.State`` after them: active, where what was recorded leads there."""
    commands_digest: int
    """FNV-1a of the bytes of all commands, which the same C on another machine must give."""


def measure(image: Path, target: Target) -> Measured:
    """Run a measuring image on the target's board."""
    found, code = _numbers(image, target, EXACT, last="done")
    (error,) = struct.unpack("<f", struct.pack("<I", found["self_test_bits"][0]))
    steps, gate = _instructions(found)
    return Measured(error, code == 0, found["stack_bytes"][0], steps, gate, found["gate_state"][0], found["digest"][0])


def overrun(image: Path, target: Target) -> dict[str, list[int]]:
    """What came of a policy that misbehaves: ``after`` is the time (µs) until the robot was stopped, -1 if never."""
    return _numbers(image, target, QUICK, last="motor_in_1000")[0]


def power(image: Path, target: Target) -> dict[str, int]:
    """What came back after ``trials`` resets: weights of the ``newest`` slot, of the ``older`` one, the ``exported``
    ones, or ``wrong`` ones; ``writes_cut``: resets while a slot was being written."""
    return {name: numbers[0] for name, numbers in _numbers(image, target, QUICK, last="done")[0].items()}


def _numbers(image: Path, target: Target, clock: tuple[str, ...], last: str) -> tuple[dict[str, list[int]], int]:
    """Run an image that reports lines "what number": the numbers by what, and the exit code."""
    require(target.emulator)
    command = [
        target.emulator, "-M", target.machine, *NO_BIOS[target.riscv],
        "-display", "none", "-serial", "none", "-monitor", "none", *clock,
        "-chardev", "stdio,id=text", "-semihosting-config", "enable=on,target=native,chardev=text",
        "-kernel", str(image),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise EmulationError(f"{image} on {target.machine} did not end within {TIMEOUT:g} s") from None
    found: dict[str, list[int]] = defaultdict(list)
    for line in done.stdout.splitlines():
        what, number = line.split()
        found[what].append(int(number))
    if last not in found:
        said = (done.stdout[-500:] + done.stderr[-500:]).strip()
        raise EmulationError(
            f"{image} on {target.machine} stopped before its end (exit code {done.returncode}): {said}"
        )
    return found, done.returncode


def replay(image: Path, target: Target, signals: np.ndarray, command_size: int, timeout: float = TIMEOUT) -> np.ndarray:
    """Commands (flights, steps, M) that a replaying image gives for signals (flights, steps, N); a memory for each.

    It may take ``timeout`` s.
    """
    require(target.emulator)
    flights, steps, _ = signals.shape
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "signals").write_bytes(struct.pack("<I", steps) + signals.astype("<f4").tobytes())
        command = [
            target.emulator, "-M", target.machine, *NO_BIOS[target.riscv],
            "-display", "none", "-serial", "none", "-monitor", "none",
            "-semihosting-config", "enable=on,target=native", "-kernel", str(image.resolve()),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, check=False, timeout=timeout, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            raise EmulationError(f"{image} on {target.machine} did not end within {timeout:g} s") from None
        commands = np.fromfile(folder / "commands", "<f4")
    if done.returncode or commands.size != flights * steps * command_size:
        raise EmulationError(f"{image} on {target.machine} gave {commands.size} numbers (exit code {done.returncode})")
    return commands.reshape(flights, steps, command_size)


def digest_of(commands: bytes) -> int:
    """FNV-1a (32 bits), as the image computes it."""
    digest = 0x811C9DC5
    for byte in commands:
        digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
    return digest


def _instructions(found: dict[str, list[int]]) -> tuple[list[int], list[int]]:
    """Ticks of policy and gate as instructions, by the calibrating loops of two instructions per turn."""
    short, middle, long = (found[f"turns_{turns}"][0] for turns in (1000, 101000, 2001000))
    per_instruction = (middle - short) / 200_000
    first_overflows, *overflows = found["overflows"]  # none of a counter of 64 bits
    extra = ((long - short) / per_instruction - 4_000_000) / max(first_overflows, 1)
    nothing = found["nothing"][0]
    steps = len(found["step"])
    counted = [
        round((ticks - nothing) / per_instruction - extra * count)
        for ticks, count in zip([*found["step"], *found["gate"]], overflows, strict=True)
    ]
    return counted[:steps], counted[steps:]
