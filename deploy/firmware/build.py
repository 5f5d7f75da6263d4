"""Compile generated sources into images for a target, and weigh them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from deploy.c.generate import Generated
from deploy.c.host import STRICT
from deploy.firmware.targets import Target

IMAGE = Path(__file__).parent / "image"
INSTALL = "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
COMPILER, SIZE, EMULATOR = "arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm"


class ToolMissing(ValueError):
    """A tool isn't installed. The message says how to install it."""


class BuildError(RuntimeError):
    """The compiler refuses the sources, which is our mistake."""


def require(*tools: str) -> None:
    """Refuse to go on without these programs."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise ToolMissing(f"{', '.join(missing)} not found; install with:  {INSTALL}")


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
    require(COMPILER, SIZE)
    folder = made.folder / target.name
    folder.mkdir(exist_ok=True)
    names = {"name": made.name, "guard": made.name.upper()}
    memory = {
        "flash_origin": f"{target.flash[0]:#010x}",
        "flash_size": f"{target.flash[1]:#x}",
        "ram_origin": f"{target.ram[0]:#010x}",
        "ram_size": f"{target.ram[1]:#x}",
    }
    for file in sorted(IMAGE.iterdir()):
        (folder / file.name).write_text(Template(file.read_text()).substitute(names | memory))
    images = {main: _link(made, target, folder, main, flags) for main in ("empty", "step", "measure")}
    empty, step = weigh(images["empty"]), weigh(images["step"])
    return Images(images["measure"], images["step"], Weight(step.flash - empty.flash, step.ram - empty.ram))


def _link(made: Generated, target: Target, folder: Path, main: str, flags: Sequence[str]) -> Path:
    image = folder / f"{main}.elf"
    own = [] if main == "empty" else made.sources
    command = [
        COMPILER, *STRICT, "-O3", *target.flags, *flags, "-ffunction-sections", "-fdata-sections",
        f"-I{made.folder}", str(folder / "startup.c"), str(folder / f"{main}.c"), *map(str, own),
        "-nostartfiles", "-Wl,--gc-sections", "-T", str(folder / "image.ld"), "-lm", "-lc", "-lgcc", "-o", str(image),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{COMPILER} can't build {image.name} for {target.name}:\n{done.stderr}")
    return image


def weigh(image: Path) -> Weight:
    """Flash (code, constants, initial data) and RAM (data, zeroed data) of an image."""
    done = subprocess.run([SIZE, str(image)], capture_output=True, text=True, check=True)
    code, data, zeroed = (int(word) for word in done.stdout.splitlines()[1].split()[:3])
    return Weight(code + data, data + zeroed)
