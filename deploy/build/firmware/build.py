"""Compile generated sources into images for a target, and weigh them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from robo_rl.deploy.build.c.device import write_device, write_gate
from robo_rl.deploy.build.c.generate import Generated
from robo_rl.deploy.build.c.host import STRICT
from robo_rl.deploy.build.firmware.targets import Target

IMAGE = Path(__file__).parent / "image"
INSTALL = "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
INSTALL_RISCV = "apt-get install gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc"
COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"
"""Of most targets."""


class ToolMissing(ValueError):
    """A tool isn't installed. The message says how to install it."""


class BuildError(ValueError):
    """The compiler refuses the sources, which is our mistake."""


def require(*tools: str) -> None:
    """Refuse to go on without these programs."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        install = INSTALL_RISCV if "riscv" in missing[0] else INSTALL
        raise ToolMissing(f"{', '.join(missing)} not found; install with:  {install}")


@dataclass(frozen=True)
class Weight:
    """Bytes of an image."""

    flash: int
    ram: int
    """Without the stack."""


@dataclass(frozen=True)
class Images:
    """``measure`` runs the self-test and counts; ``step`` holds only the policy. ``policy``: its own weight."""

    measure: Path
    step: Path
    policy: Weight


def build(made: Generated, target: Target, flags: Sequence[str] = ()) -> Images:
    """Images in the folder ``made.folder / target.name``."""
    folder = _lay_out(made, target, {"devices": "1"})
    empty = _link(made, target, folder / "empty.c", [], flags)
    step = _link(made, target, folder / "step.c", made.sources, flags)
    measure = _link(made, target, folder / "measure.c", [*made.sources, write_gate(made)], flags)
    bare, full = weigh(empty, target), weigh(step, target)
    return Images(measure, step, Weight(full.flash - bare.flash, full.ram - bare.ram))


def build_device(made: Generated, target: Target, main: str, devices: int = 1, flags: Sequence[str] = ()) -> Path:
    """An image with link, gate and policy: ``main`` is "serial", or "rig" for that many devices on a test rig."""
    folder = _lay_out(made, target, {"devices": str(devices)})
    return _link(made, target, folder / f"{main}.c", [*made.sources, *write_device(made)], flags)


def build_overrun(made: Generated, target: Target, misbehaviour: str, flags: Sequence[str] = ()) -> Path:
    """An image of a device whose policy fails while it is active: "hang", "crash", "slow" or "numbers"."""
    wrong = [f"-DMISBEHAVIOUR={misbehaviour.upper()}", f"-Wl,--wrap={made.name}_step"]
    return build_device(made, target, "overrun", flags=[*wrong, *flags])


def build_power(made: Generated, target: Target, trials: int) -> Path:
    """An image of a learner that is reset at any moment, so many times, for ``emulate.power``."""
    main = _lay_out(made, target, {"devices": "1"}) / "power.c"
    return _link(made, target, main, made.sources, [f"-DTRIALS={trials}u"])


def build_replay(made: Generated, target: Target, flags: Sequence[str] = ()) -> Path:
    """An image that answers recorded signals with commands, for ``emulate.replay``."""
    return _link(made, target, _lay_out(made, target, {"devices": "1"}) / "replay.c", made.sources, flags)


def _lay_out(made: Generated, target: Target, extra: Mapping[str, str]) -> Path:
    """Write what images are made of, with the target's addresses."""
    require(f"{target.compiler}gcc", f"{target.compiler}size")
    folder = made.folder / target.name
    folder.mkdir(exist_ok=True)
    texts = {
        "name": made.name,
        "guard": made.name.upper(),
        "entry": "start" if target.riscv else "reset_handler",
        "flash_origin": f"{target.flash[0]:#010x}",
        "flash_size": f"{target.flash[1]:#x}",
        "ram_origin": f"{target.ram[0]:#010x}",
        "ram_size": f"{target.ram[1]:#x}",
        "wire": f"{target.port:#010x}u",
        "timer": f"{target.timer:#010x}u",
        "ticks_per_us": f"{target.timer_hz // 1_000_000}u",
    }
    for file in sorted(IMAGE.iterdir()):
        (folder / file.name).write_text(Template(file.read_text()).substitute(texts | dict(extra)))
    return folder


def _link(made: Generated, target: Target, main: Path, sources: Sequence[Path], flags: Sequence[str]) -> Path:
    image, folder, compiler = main.with_suffix(".elf"), main.parent, f"{target.compiler}gcc"
    command = [
        compiler, *STRICT, "-O3", *target.flags, *flags, "-ffunction-sections", "-fdata-sections",
        f"-I{made.folder}", str(folder / "startup.c"), str(main), *map(str, sources),
        "-nostartfiles", "-Wl,--gc-sections", "-T", str(folder / "image.ld"), "-lm", "-lc", "-lgcc", "-o", str(image),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{compiler} can't build {image.name} for {target.name}:\n{done.stderr}")
    return image


def weigh(image: Path, target: Target) -> Weight:
    """Flash (code, constants, initial data) and RAM (data, zeroed data) of an image."""
    done = subprocess.run([f"{target.compiler}size", str(image)], capture_output=True, text=True, check=True)
    code, data, zeroed = (int(word) for word in done.stdout.splitlines()[1].split()[:3])
    return Weight(code + data, data + zeroed)
