"""Processors that we build for, each with the board of QEMU that stands in for it."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Target:
    """A processor, the compiler's flags for it, and an emulated board's memory (bytes).

    Addresses are those of QEMU's documentation of the Arm MPS2 and MPS3 boards (system/arm/mps2).
    """

    name: str
    title: str
    flags: tuple[str, ...]
    machine: str
    flash: tuple[int, int] = (0x0000_0000, 4 * MIB)
    """First address and size."""
    ram: tuple[int, int] = (0x2000_0000, 4 * MIB)
    ports: tuple[int, int] = (0x4000_4000, 0x4000_5000)
    """Addresses of two serial ports."""
    timer: int = 0x4000_0000
    timer_hz: int = 25_000_000


def _hard_float(cpu: str, fpu: str) -> tuple[str, ...]:
    return ("-mthumb", f"-mcpu={cpu}", "-mfloat-abi=hard", f"-mfpu={fpu}")


TARGETS = {
    target.name: target
    for target in (
        Target("cortex-m3", "Cortex-M3, no FPU", ("-mthumb", "-mcpu=cortex-m3", "-mfloat-abi=soft"), "mps2-an385"),
        Target("cortex-m4", "Cortex-M4F", _hard_float("cortex-m4", "fpv4-sp-d16"), "mps2-an386"),
        Target("cortex-m7", "Cortex-M7F", _hard_float("cortex-m7", "fpv5-sp-d16"), "mps2-an500"),
        Target(
            "cortex-m33", "Cortex-M33F", _hard_float("cortex-m33", "fpv5-sp-d16"), "mps2-an505",
            flash=(0x1000_0000, 4 * MIB), ram=(0x3800_0000, 2 * MIB), ports=(0x5020_0000, 0x5020_1000),
            timer=0x5000_0000, timer_hz=20_000_000,
        ),
        Target(
            "cortex-m55", "Cortex-M55", _hard_float("cortex-m55", "auto"), "mps3-an547",
            flash=(0x1000_0000, MIB // 2), ram=(0x3000_0000, MIB // 2), ports=(0x5930_3000, 0x5930_4000),
            timer=0x5800_0000, timer_hz=32_000_000,
        ),
    )
}  # fmt: skip
