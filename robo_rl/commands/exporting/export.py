"""robo-rl export."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from robo_rl.commands.sources import inside
from robo_rl.console import give, say, say_next
from robo_rl.files.escaping import shell_word
from robo_rl.zoo import located

EXPORTING = "exporting (torch takes some seconds to load its exporter)"
SUFFIX = "-plans"
"""As ``robo_rl.sim.tasks.planned`` has it, which takes a while to import."""

if TYPE_CHECKING:
    from robo_rl.deploy.robot.bundle import Bundle


def main(
    run: Annotated[Path, tyro.conf.Positional], out: Path | None = None, task: str | None = None,
    robot: str | None = None, native: bool = False, machine: Literal["", "x86_64", "aarch64"] = "",
    collision: tuple[float, float, float] | None = None, json: bool = False,
) -> int:  # fmt: skip
    """Write a run's policy as one .onnx file with its contract and golden vectors.

    Given such a file instead of a run, write the same graph, weights and golden vectors with the current contract of
    its task, which has the newest version. Given TASK-plans, such as arm-place-plans, write the policy that follows the
    plans of a server (docs/plans.md). With --json: file, bytes, digest, contract_digest, task, robot.

    With --native, also (or, given a .onnx file and no --out or FILE.so, only) compile it to a shared library for a
    robot's computer, beside the file: policy.x86_64.so. With --json also: library, machine, self_test_error.

    Args:
        run: The run's folder, a .onnx file, or TASK-plans.
        out: The .onnx file to write; by default policy.onnx in the run's folder. With --native, for a .onnx file, also
            the library alone: FILE.so.
        task: For a .onnx file whose task is defined in your own file: FILE.py:CLASS; 'inside': the one it brings.
        robot: For TASK-plans: the robot, by default the task's. For a .onnx file whose robot isn't included in robo-rl,
            nor in the file: its card.
        native: Compile a shared library, which runs a step several times faster than onnxruntime.
        machine: The processor it is for; by default one like this computer's. Another one needs a cross-compiler; its
            code is tried here if QEMU is installed.
        collision: For a robot with a lidar: TIME HALF_WIDTH FRONT. The gate stops it where what is in its way, so far
            (m) to either side, is nearer than TIME (s) at its speed; its front is so far (m) ahead of the lidar.
        json: Print one JSON object on the last line of stdout.
    """
    if machine and not native:
        raise ValueError("--machine is for --native; give both, or none")
    if native and located(run).suffix == ".onnx" and (out is None or out.suffix == ".so"):
        from robo_rl.deploy.robot.bundle import Bundle

        give(_library(Bundle.read(run), machine, json, out), json)
        return 0
    if out is not None and out.suffix != ".onnx":
        beside = "; the library of --native is put beside it" if native else ""
        raise ValueError(f"--out {out}: expected the name of the bundle to write, which ends with .onnx{beside}")
    if str(run).endswith(SUFFIX) and not run.exists():
        bundle = _following(str(run), out, robot, json)
    else:
        bundle = _renewed(run, out, task, robot) if located(run).suffix == ".onnx" else _exported(run, out, json)
    if collision is not None:
        bundle = _watching(bundle, *collision)
    size = bundle.path.stat().st_size
    say(f"{bundle.path}: {size:,} bytes, digest {bundle.digest[:16]}…", json)
    word, task_words = shell_word(bundle.path), inside(bundle)
    if bundle.attached.files:
        say(f"  brings {', '.join(bundle.attached.files)}", json)
    say_next([f"robo-rl verify {word}{task_words}", f"robo-rl inspect {word}"], json)
    give(
        {
            "file": str(bundle.path),
            "bytes": size,
            "digest": bundle.digest,
            "contract_digest": bundle.contract.digest,
            "task": bundle.contract.task,
            "robot": bundle.contract.robot_name,
            **(_library(bundle, machine, json) if native else {}),
        },
        json,
    )
    return 0


def _library(bundle: Bundle, machine: str, json: bool, out: Path | None = None) -> dict[str, Any]:
    """Compile the library of a bundle, by default beside it. Returns what the command prints of it."""
    import platform

    from robo_rl.deploy.build.c.native import MACHINES, compile_native, self_test
    from robo_rl.deploy.build.native import NativeGraph

    machine = machine or platform.machine()
    if machine not in MACHINES:
        raise ValueError(f"this computer is a {machine}; say with --machine which it is for: {', '.join(MACHINES)}")
    folder = Path() if bundle.shipped else bundle.path.parent
    path = compile_native(bundle, out or folder / f"{bundle.path.stem}.{machine}.so", machine)
    if machine == platform.machine():
        error: float | None = NativeGraph(bundle, path).golden_error
        told = f"reproduces the golden vectors within {error:.1g}"
    else:
        error = self_test(bundle, machine)
        told = "not tried here: QEMU is not installed (apt-get install qemu-user)"
        told = told if error is None else f"reproduces the golden vectors within {error:.1g} under QEMU"
    say(f"{path}: {path.stat().st_size:,} bytes for {machine}, {told}", json)
    file = f"zoo:{bundle.path.stem}" if bundle.shipped else bundle.path.name
    say(f"On the robot's computer:  Policy.load({file!r}, rate, native={path.name!r})", json)
    return {"library": str(path), "machine": machine, "self_test_error": error}


def _exported(run: Path, out: Path | None, json: bool) -> Bundle:
    say(EXPORTING, json)
    from robo_rl.deploy.build.export import export
    from robo_rl.learn.runs.folder import Run

    policy, provenance = Run.open(run).policy()
    return export(policy, provenance, out or run / "policy.onnx")


def _following(name: str, out: Path | None, robot: str | None, json: bool) -> Bundle:
    say(EXPORTING, json)
    from robo_rl.deploy.build.plans import export_follower
    from robo_rl.sim.tasks.loading import load_task

    return export_follower(load_task(name, robot), out or Path(f"{name}.onnx"))


def _watching(bundle: Bundle, time: float, half_width: float, front: float) -> Bundle:
    """The same file with a contract by which the gate watches the time to a collision."""
    from robo_rl.contract import Collision, ContractError, Scan
    from robo_rl.deploy.build.pack import repack

    contract = bundle.contract
    sensed = [signal for signal in contract.signals if signal.source == "sensor"]
    scans = [signal.name for signal in sensed if isinstance(signal.layout, Scan)]
    speeds, rates = ([s.name for s in sensed if s.size == 1 and s.unit == unit] for unit in ("m/s", "rad/s"))
    if not scans or not speeds:
        names = [signal.name for signal in contract.signals]
        raise ContractError(
            f"--collision: the policy's signals are {names}; expected a scan, and a speed of one number"
        )
    watched = Collision(scans[0], speeds[0], time, half_width, front, rates[0] if rates else None)
    safety = dataclasses.replace(contract.safety, collision=watched)
    return repack(bundle.path, dataclasses.replace(contract, safety=safety), bundle.path)


def _renewed(file: Path, out: Path | None, task: str | None, robot: str | None) -> Bundle:
    from robo_rl.deploy.build.pack import repack
    from robo_rl.deploy.build.verify import renewed, task_of
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.sim.tasks.attached import attached_of

    if out is None:
        raise ValueError(f"{file} is exported already; say with --out where to write it with its task's contract")
    bundle = Bundle.read(file)
    known = task_of(bundle, robot, task)
    return repack(file, renewed(bundle.contract, known), out, attached_of(known))
