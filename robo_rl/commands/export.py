"""robo-rl export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from robo_rl.commands.sources import inside
from robo_rl.console import give, say
from robo_rl.escaping import shell_word
from robo_rl.zoo import located

if TYPE_CHECKING:
    from deploy.bundle import Bundle


def main(
    run: Annotated[Path, tyro.conf.Positional], out: Path | None = None, task: str | None = None,
    robot: str | None = None, json: bool = False,
) -> int:  # fmt: skip
    """Write a run's policy as one .onnx file with its contract and golden vectors.

    Given such a file instead of a run, write the same graph, weights and golden vectors with the current contract of
    its task, which has the newest version. With --json: file, bytes, digest, contract_digest, task, robot.

    Args:
        run: The run's folder, or a .onnx file.
        out: The file to write; by default policy.onnx in the run's folder.
        task: For a .onnx file whose task is defined in your own file: FILE.py:CLASS; 'inside': the one it brings.
        robot: For a .onnx file whose robot isn't included in robo-rl, nor in the file: its card.
        json: Print one JSON object on the last line of stdout.
    """
    bundle = _renewed(run, out, task, robot) if located(run).suffix == ".onnx" else _exported(run, out, json)
    size = bundle.path.stat().st_size
    say(f"{bundle.path}: {size:,} bytes, digest {bundle.digest[:16]}…", json)
    word, task_words = shell_word(bundle.path), inside(bundle)
    if bundle.attached.files:
        say(f"  brings {', '.join(bundle.attached.files)}", json)
    say(f"Next:  robo-rl verify {word}{task_words}      robo-rl inspect {word}", json)
    give(
        {
            "file": str(bundle.path),
            "bytes": size,
            "digest": bundle.digest,
            "contract_digest": bundle.contract.digest,
            "task": bundle.contract.task,
            "robot": bundle.contract.robot_name,
        },
        json,
    )
    return 0


def _exported(run: Path, out: Path | None, json: bool) -> Bundle:
    say("exporting (torch takes some seconds to load its exporter)", json)
    from deploy.export import export
    from robo_rl.runs import Run

    policy, provenance = Run.open(run).policy()
    return export(policy, provenance, out or run / "policy.onnx")


def _renewed(file: Path, out: Path | None, task: str | None, robot: str | None) -> Bundle:
    from deploy.attachment import attached_of
    from deploy.bundle import Bundle
    from deploy.pack import repack
    from deploy.verify import renewed, task_of

    if out is None:
        raise ValueError(f"{file} is exported already; say with --out where to write it with its task's contract")
    bundle = Bundle.read(file)
    known = task_of(bundle, robot, task)
    return repack(file, renewed(bundle.contract, known), out, attached_of(known))
