"""Build and run the libFuzzer targets of deploy/build/c/fuzz: link, gate, policy and device, with sanitizers.

    target = build("device", bundle, folder)
    print(run(target, seconds=15))

Each target checks what the documents promise; docs/firmware.md has the list. Needs clang with its sanitizers
(``apt-get install clang libclang-rt-dev``).
"""

from __future__ import annotations

import re
import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from robo_rl.deploy.build.c.device import write_device
from robo_rl.deploy.build.c.generate import HERE, Options, generate
from robo_rl.deploy.robot.bundle import Bundle

POLICY = ("policy.c", "policy_self_test.c")
LINK = ("link.c", "link_message.c")
SOURCES = {
    "link": LINK,
    "gate": ("gate.c",),
    "policy": POLICY,
    "device": (*POLICY, *LINK, "gate.c", "held.c", "device.c"),
}
"""What each target is linked with."""
SANITIZERS = ("-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")


class Fuzzed(NamedTuple):
    """What came of a run."""

    inputs: int
    cpu_seconds: float


class Finding(AssertionError):
    """A sanitizer or a check stopped the target. The message is the end of what it said."""


def build(what: str, bundle: Bundle, folder: Path, options: Options | None = None) -> Path:
    """Compile a target for the C that ``bundle`` becomes. Returns the program."""
    made = generate(bundle, folder, options)
    write_device(made)
    program = folder / f"fuzz_{what}"
    sources = [HERE / "fuzz" / f"fuzz_{what}.c", *(folder / name for name in SOURCES[what])]
    command = [
        "clang",
        "-g",
        "-O1",
        "-std=c99",
        *SANITIZERS,
        f"-I{folder}",
        *map(str, sources),
        "-lm",
        "-o",
        str(program),
    ]
    subprocess.run(command, check=True)
    return program


def run(program: Path, seconds: int) -> Fuzzed:
    """Feed the target for ``seconds`` of wall clock. Its corpus stays beside it. Raises Finding."""
    corpus = program.parent / f"{program.name}.corpus"
    # a child's peak begins at that of its parent
    return feed([str(program), "-rss_limit_mb=0", "-malloc_limit_mb=2048"], corpus, seconds)


def feed(target: Sequence[str], corpus: Path, seconds: int) -> Fuzzed:
    """Run a libFuzzer target with a folder of inputs, which it adds to. Findings go beside it. Raises Finding."""
    corpus.mkdir(exist_ok=True)
    options = [f"-max_total_time={seconds}", "-print_final_stats=1", f"-artifact_prefix={corpus.parent}/"]
    before = _children()
    done = subprocess.run([*target, str(corpus), *options], capture_output=True, text=True, check=False)
    counted = re.search(r"number_of_executed_units:\s+(\d+)", done.stderr)
    if done.returncode or counted is None:
        raise Finding(done.stderr[-3000:])
    return Fuzzed(int(counted[1]), _children() - before)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
