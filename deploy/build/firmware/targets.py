"""Processors that we build for, each with the board of QEMU that stands in for it."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
PICOLIBC = "/usr/lib/picolibc/riscv64-unknown-elf/picolibc.specs"
"""Of Debian's picolibc-riscv64-unknown-elf, where its compiler doesn't look by itself."""


@dataclass(frozen=True)
class Target:
    """A processor, the compiler's flags for it, and an emulated board's memory (bytes).

    Addresses are those of QEMU's documentation of the Arm MPS2 and MPS3 boards (system/arm/mps2), and of its RISC-V
    board "virt", whose RAM stands in for flash as well.
    """

    name: str
    title: str
    flags: tuple[str, ...]
    machine: str
    flash: tuple[int, int] = (0x0000_0000, 4 * MIB)
    """First address and size."""
    ram: tuple[int, int] = (0x2000_0000, 4 * MIB)
    port: int = 0x4000_4000
    """Address of a serial port."""
    timer: int = 0x4000_0000
    timer_hz: int = 25_000_000
    compiler: str = "arm-none-eabi-"
    """What the names of the compiler's programs begin with."""
    emulator: str = "qemu-system-arm"

    @property
    def riscv(self) -> bool:
        """Whether it is a RISC-V, and no Cortex-M."""
        return self.emulator == "qemu-system-riscv32"


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
            flash=(0x1000_0000, 4 * MIB), ram=(0x3800_0000, 2 * MIB), port=0x5020_0000,
            timer=0x5000_0000, timer_hz=20_000_000,
        ),
        Target(
            "cortex-m55", "Cortex-M55", _hard_float("cortex-m55", "auto"), "mps3-an547",
            flash=(0x1000_0000, MIB // 2), ram=(0x3000_0000, MIB // 2), port=0x5930_3000,
            timer=0x5800_0000, timer_hz=32_000_000,
        ),
        Target(
            "riscv32", "RISC-V RV32IMC, no FPU",
            ("-march=rv32imc", "-mabi=ilp32", "-mcmodel=medany", f"--specs={PICOLIBC}", "-nostartfiles"),
            "virt", flash=(0x8000_0000, 4 * MIB), ram=(0x8040_0000, 4 * MIB),
            compiler="riscv64-unknown-elf-", emulator="qemu-system-riscv32",
        ),
    )
}  # fmt: skip

BOARDS = {
    "stm32f4": "cortex-m4", "stm32g4": "cortex-m4", "stm32l4": "cortex-m4", "nano33ble": "cortex-m4",
    "crazyflie": "cortex-m4", "stm32f7": "cortex-m7", "stm32h7": "cortex-m7", "teensy4": "cortex-m7",
    "stm32u5": "cortex-m33", "stm32h5": "cortex-m33", "rp2350": "cortex-m33", "esp32c3": "riscv32",
}  # fmt: skip
"""The target of a microcontroller or board: that of its processor, as its maker's data sheet names it (STM32F405, G431,
L476, nRF52840, i.MX RT1062, STM32H743, STM32U575, STM32H563, RP2350, ESP32-C3)."""
