"""Images for emulated Cortex-M: what they compute, what they hold, what they cost.

Need the Arm compiler and QEMU: apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from robo_rl.deploy.build.c.generate import Options, generate
from robo_rl.deploy.build.c.host import compile_host, host_flags
from robo_rl.deploy.build.firmware.build import COMPILER, EMULATOR, INSTALL, ToolMissing, build, require
from robo_rl.deploy.build.firmware.emulate import digest_of, measure
from robo_rl.deploy.build.firmware.targets import TARGETS
from robo_rl.deploy.robot.bundle import Bundle

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from firmware_networks import write_network

missing = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
on_target = [
    pytest.mark.firmware,
    pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not found, so nothing ran on a target; {INSTALL}"),
]


def test_a_missing_tool_is_told_with_how_to_install_it() -> None:
    with pytest.raises(ToolMissing, match="no-such-gcc not found; install with:  apt-get install gcc-arm-none-eabi"):
        require("no-such-gcc")


class TestOnTarget:
    pytestmark = on_target

    @pytest.mark.parametrize("target", sorted(name for name, target in TARGETS.items() if not target.riscv))
    def test_self_test_passes_on_every_cortex_m(self, bundle_file: Path, target: str, tmp_path: Path) -> None:
        made = generate(Bundle.read(bundle_file), tmp_path)
        found = measure(build(made, TARGETS[target]).measure, TARGETS[target])
        assert found.passed
        assert found.self_test_error <= made.tolerance
        assert 0 < found.stack_bytes < 1024

    @pytest.mark.parametrize("precision", ["float32", "int16", "int8"])
    def test_every_kernel_gives_the_bits_of_the_host(self, bundle_file: Path, precision: str, tmp_path: Path) -> None:
        if not host_flags():
            pytest.skip("needs a processor with fused multiply-add (x86-64-v3, arm64): others round sums otherwise")
        bundle, target = Bundle.read(bundle_file), TARGETS["cortex-m4"]
        made = generate(bundle, tmp_path, Options(precision=precision, tolerance=0.1))  # type: ignore[arg-type]
        host = digest_of(compile_host(made).replay(bundle.golden).tobytes())
        assert measure(build(made, target).measure, target).commands_digest == host
        assert measure(build(made, target, ["-DPOLICY_PORTABLE"]).measure, target).commands_digest == host

    def test_image_holds_neither_heap_nor_double_arithmetic(self, bundle_file: Path, tmp_path: Path) -> None:
        images = build(generate(Bundle.read(bundle_file), tmp_path), TARGETS["cortex-m4"])
        listing = subprocess.run(["arm-none-eabi-nm", str(images.step)], capture_output=True, text=True, check=True)
        symbols = {line.split()[-1] for line in listing.stdout.splitlines()}
        heap = {"malloc", "free", "calloc", "realloc", "_sbrk", "_malloc_r", "_free_r"}
        double = {
            name for name in symbols if name.startswith(("__aeabi_d", "__adddf", "__muldf", "__divdf", "__extend"))
        }
        assert not symbols & heap
        assert not double

    @pytest.mark.parametrize(
        ("network", "precision", "portable", "bar"),
        [
            ("A", "float32", True, 36_000), ("A", "float32", False, 20_500), ("A", "int16", False, 14_500),
            ("B", "float32", True, 98_500), ("B", "float32", False, 53_400), ("B", "int16", False, 37_000),
        ],
    )  # fmt: skip
    def test_instructions_per_step_stay_below_their_bar(
        self, network: str, precision: str, portable: bool, bar: int, tmp_path: Path
    ) -> None:
        bundle, target = write_network(network, tmp_path / "network.onnx"), TARGETS["cortex-m4"]
        made = generate(bundle, tmp_path / "c", Options(precision=precision, tolerance=1e-3))  # type: ignore[arg-type]
        found = measure(build(made, target, ["-DPOLICY_PORTABLE"] if portable else []).measure, target)
        assert found.passed
        assert max(found.instructions) <= bar

    def test_count_is_that_of_a_loop_of_known_length(self, bundle_file: Path, tmp_path: Path) -> None:
        """Two portable builds that differ by 100 known instructions per step must differ by 100."""
        made, target = generate(Bundle.read(bundle_file), tmp_path), TARGETS["cortex-m4"]
        before = measure(build(made, target).measure, target).instructions
        source = made.sources[0]
        text, start = source.read_text(), "policy_arena *arena)\n{\n"
        source.write_text(text.replace(start, start + '    __asm__ volatile(".rept 100\\n nop\\n .endr");\n'))
        after = measure(build(made, target).measure, target).instructions
        assert [b - a for a, b in zip(before, after, strict=True)] == [100] * len(before)

    def test_command_tells_all_its_figures(
        self, bundle_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture
    ) -> None:
        from robo_rl.commands.exporting.firmware import main

        assert main(bundle_file, "cortex-m4", run=True, out=tmp_path, json=True) == 0
        figures = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert figures["passed"]
        keys = ("flash_bytes", "ram_bytes", "stack_bytes", "instructions_max", "self_test_error")
        assert all(figures[key] > 0 for key in keys)
