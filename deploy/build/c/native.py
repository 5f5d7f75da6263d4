"""A bundle's generated C as a shared library for a robot's computer: this one, or another processor's by Debian's
cross-compiler.

    compile_native(bundle, Path("policy.so"))                           for this computer alone
    compile_native(bundle, Path("policy.so"), machine="aarch64")        a Raspberry Pi or a Jetson

``robo_rl.deploy.build.native`` loads and judges it; what else is in it, for the C++ core, is in ``robot.h``. What was
compiled for another processor is tried under QEMU, where that is installed: ``self_test``.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from robo_rl.contract import ContractError
from robo_rl.deploy.build.c.generate import HERE, Generated, generate
from robo_rl.deploy.build.c.robot import write_robot
from robo_rl.deploy.robot.bundle import Bundle, BundleError

COMPILE_SECONDS = 600.0
"""Long enough for the largest included policy on a computer that is busy."""
SELF_TEST = """#include <stdio.h>
#include "{name}.h"
int main(void)
{{
    static {name}_state state;
    static {name}_arena arena;
    printf("%.9g\\n", (double){name}_self_test(&state, &arena));
    return 0;
}}
"""


class CompileError(BundleError):
    """No library could be made. The message says why, and what to do."""


@dataclass(frozen=True)
class Machine:
    """A processor that libraries are compiled for."""

    name: str
    """As ``platform.machine`` tells it."""
    compiler: str
    """The cross-compiler's name, as Debian's packages have it."""
    package: str
    """That has it."""
    debian: str
    """Debian's name of the architecture."""
    flags: tuple[str, ...]
    needs: tuple[str, ...] = ()
    """Instructions, as /proc/cpuinfo calls them."""


MACHINES = {
    "x86_64": Machine(
        "x86_64", "x86_64-linux-gnu-gcc", "gcc-x86-64-linux-gnu", "amd64", ("-march=x86-64-v3",), ("avx2", "fma")
    ),
    "aarch64": Machine("aarch64", "aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", "arm64", ()),
}
"""x86-64-v3: processors since 2013 (Haswell). aarch64 has fused multiplication and four lanes in every processor."""
FAST = ("-O3", "-ffp-contract=fast", "-fno-math-errno")
"""Fused multiplication rounds once instead of twice; the golden vectors judge it. Infinities and NaN stay what they
are."""


def target(machine: str) -> Machine | None:
    """The processor of that name; None: this computer alone, "". CompileError for an unknown one."""
    if machine and machine not in MACHINES:
        raise CompileError(f"no processor is called {machine[:40]!r}; expected one of {', '.join(MACHINES)}")
    return MACHINES.get(machine)


def compile_native(bundle: Bundle, library: Path, machine: str = "", compiler: str = "") -> Path:
    """Write the shared library of a bundle. CompileError where that can't be done.

    ``machine``: which of ``MACHINES`` it is for; "": this computer alone, with all that its processor has.
    """
    of = target(machine)
    with tempfile.TemporaryDirectory(prefix="robo-rl-native-") as folder:
        made = generate(bundle, folder)
        text = Template((HERE / "templates" / "native.c").read_text())
        entry = made.folder / "native.c"
        needs = " ".join(of.needs) if of else ""
        entry.write_text(text.substitute(name=made.name, guard=made.name.upper(), needs=needs))
        built = made.folder / "native.so"
        _compile([*made.sources, *_robot(made), entry], built, of, ("-shared", "-fPIC"), compiler)
        library.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built, library)
    return library


def _robot(made: Generated) -> list[Path]:
    """The sources for the C++ core; none where the gate's C can't count so many floats: Python uses such a library."""
    try:
        return write_robot(made)
    except ContractError:
        return []


def self_test(bundle: Bundle, machine: str) -> float | None:
    """What the generated self-test gives on another processor, emulated by QEMU: the greatest deviation of a command in
    units of its range. None where ``qemu-MACHINE`` is not installed.
    """
    of, emulator = target(machine), shutil.which(f"qemu-{machine}")
    if emulator is None:
        return None
    with tempfile.TemporaryDirectory(prefix="robo-rl-native-") as folder:
        made = generate(bundle, folder)
        program, text = made.folder / "self_test", made.folder / "main.c"
        text.write_text(SELF_TEST.format(name=made.name))
        _compile([*made.sources, text], program, of, ("-static",))
        done = subprocess.run([emulator, str(program)], capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            raise CompileError(f"the self-test ended with {done.returncode} under {emulator}: {done.stderr[:500]}")
        return float(done.stdout)


def _compile(sources: Sequence[Path], out: Path, of: Machine | None, flags: Sequence[str], compiler: str = "") -> None:
    here = of is None or of.name == platform.machine()
    compiler = compiler or ("cc" if here or of is None else of.compiler)
    if shutil.which(compiler) is None:
        package = "gcc" if here or of is None else f"{of.package} libc6-dev-{of.debian}-cross"
        raise CompileError(f"the C compiler '{compiler}' was not found; install one (apt-get install {package})")
    tuned = of.flags if of else ("-march=native",) if platform.machine() in MACHINES else ()
    command = [compiler, "-std=c99", *FAST, *tuned, *flags, *map(str, sources), "-lm", "-o", str(out)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        _, said = process.communicate(timeout=COMPILE_SECONDS)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise CompileError(f"{compiler} did not finish in {COMPILE_SECONDS:g} s; use onnxruntime") from None
        raise
    if process.returncode:
        raise CompileError(f"{compiler} refuses the generated sources:\n{said[:2000]}")
