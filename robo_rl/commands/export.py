"""robo-rl export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say


def main(run: Annotated[Path, tyro.conf.Positional], out: Path | None = None, json: bool = False) -> int:
    """Write a run's policy as one .onnx file with its contract and golden vectors.

    With --json: file, bytes, digest, contract_digest, task, robot.

    Args:
        run: The run's folder.
        out: The file to write; by default policy.onnx in the run's folder.
        json: Print one JSON object on the last line of stdout.
    """
    say("exporting (torch takes some seconds to load its exporter)", json)
    from deploy.export import export
    from robo_rl.runs import Run

    policy, provenance = Run.open(run).policy()
    bundle = export(policy, provenance, out or run / "policy.onnx")
    size = bundle.path.stat().st_size
    say(f"{bundle.path}: {size:,} bytes, digest {bundle.digest[:16]}…", json)
    say(f"Next:  robo-rl verify {bundle.path}      robo-rl inspect {bundle.path}", json)
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
