"""Microcontrollers and boards by name, and the RISC-V core of an ESP32-C3 on an emulated board."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import get_args

import pytest

from robo_rl.commands.exporting import firmware
from robo_rl.deploy.build.c.generate import Options, generate
from robo_rl.deploy.build.firmware.build import build
from robo_rl.deploy.build.firmware.emulate import measure
from robo_rl.deploy.build.firmware.targets import BOARDS, TARGETS
from robo_rl.deploy.robot.bundle import Bundle

RISCV, M3 = TARGETS["riscv32"], TARGETS["cortex-m3"]
TOOLS = {f"{target.compiler}gcc" for target in (RISCV, M3)} | {RISCV.emulator, M3.emulator}


def test_every_name_is_that_of_a_processor_or_of_a_board_with_one() -> None:
    assert set(get_args(firmware.TargetName)) == {"host", *TARGETS, *BOARDS}
    assert set(BOARDS.values()) <= set(TARGETS)
    assert not set(BOARDS) & set(TARGETS)


def test_a_board_is_built_as_its_processor(
    bundle_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert firmware.main(bundle_file, target="stm32g4", out=tmp_path / "f", json=True) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["target"] == "cortex-m4"
    with pytest.raises(ValueError, match="--target is esp32c3; expected a Cortex-M with --fly"):
        firmware.main(bundle_file, target="esp32c3", out=tmp_path / "g", fly=1)


@pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in TOOLS), reason="needs gcc-riscv64-unknown-elf, picolibc, QEMU"
)
@pytest.mark.parametrize("precision", ["float32", "int16"])
def test_a_risc_v_gives_the_commands_of_a_cortex_m_without_fpu(
    bundle_file: Path, tmp_path: Path, precision: str
) -> None:
    """Neither fuses multiply and add, and their compilers and libraries for floats are different ones."""
    options = Options(precision=precision, golden_steps=8, tolerance=0.02)  # type: ignore[arg-type]
    made = generate(Bundle.read(bundle_file), tmp_path, options)
    found = [measure(build(made, target).measure, target) for target in (RISCV, M3)]
    assert all(one.passed for one in found)
    assert found[0].commands_digest == found[1].commands_digest
    assert found[0].gate_state == found[1].gate_state
    assert 1000 < max(found[0].instructions) < 5 * max(found[1].instructions)
