"""robo-rl compress."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.commands.sources import derived
from robo_rl.console import give, say
from robo_rl.files.escaping import shell_word


def main(
    file: Annotated[Path, tyro.conf.Positional],
    flash: str = "16k",
    layers: int = 2,
    updates: int = 3000,
    seed: int = 0,
    out: Path | None = None,
    episodes: int = 1000,
    task: str | None = None,
    robot: str | None = None,
    json: bool = False,
) -> int:
    """Distill a policy into a smaller one whose C code fits into a microcontroller's flash.

    The student is trained in simulation to imitate the teacher's commands. It is a policy file like any other. With
    --json: file, hidden, flash_estimate_bytes, environment_steps, and what 'evaluate' gives.

    Args:
        file: The teacher: a bundle (*.onnx).
        flash: Bytes for code and constants, as 'robo-rl firmware --small' builds them; 8k is 8 KiB.
        layers: Hidden layers of the student.
        updates: Number of updates, each with 512 environments.
        seed: Random seed.
        out: The file to write; by default the teacher's name with _small.
        episodes: Number of held-out episodes of the student.
        task: The task, if it is defined in your own file: FILE.py:CLASS; 'inside': the one that the file brings.
        robot: The card, for a robot that is neither included in robo-rl nor in the file.
        json: Print one JSON object on the last line of stdout.
    """
    for name, value in (("layers", layers), ("updates", updates), ("episodes", episodes)):
        if value < 1:
            raise ValueError(f"--{name} is {value}; expected at least 1")
    import dataclasses

    import torch

    from robo_rl.deploy.build.export import export
    from robo_rl.deploy.build.verify import BundlePolicy, task_of, torch_policy
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.evaluate.evaluation import Conditions, outcome, rollout
    from robo_rl.learn.config import DistillConfig
    from robo_rl.learn.distill import CODE_BYTES, distill, largest_width
    from robo_rl.policy import PolicyGraph

    budget, teacher = _bytes(flash), Bundle.read(file)
    known = task_of(teacher, robot, task)
    made, network = teacher.contract.provenance, teacher.contract.network
    hidden = (largest_width(known, layers, budget),) * layers
    say(f"{' × '.join(map(str, network.hidden))} becomes {' × '.join(map(str, hidden))}", json)
    torch.manual_seed(seed)
    student = PolicyGraph(known, hidden, network.activation)
    config = DistillConfig(hidden, network.activation, updates=updates, environments=512, mixed=4, learning_rate=3e-3)
    distilled = distill(torch_policy(teacher, known), student, config, seed)
    steps = made.environment_steps + distilled.environment_steps
    provenance = dataclasses.replace(made, algorithm="distilled", environment_steps=steps)
    bundle = export(student, provenance, out or derived(file, "_small.onnx"))
    flights = rollout(known, BundlePolicy(bundle), Conditions(episodes=episodes)).summary()
    weights = sum(parameter.numel() for parameter in student.network.parameters())
    say(
        f"{bundle.path}: {outcome(known, flights, seed=0, held_out=True)}\n"
        f"Next:  robo-rl firmware {shell_word(bundle.path)} --small --run",
        json,
    )
    give(
        {
            "file": str(bundle.path),
            "hidden": list(hidden),
            "flash_estimate_bytes": 4 * weights + CODE_BYTES,
            "environment_steps": distilled.environment_steps,
            **flights,
        },
        json,
    )
    return 0


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)(k?)", text.strip().lower())
    if match is None:
        raise ValueError(f"flash is '{text}'; expected bytes, like 8192 or 8k")
    return int(match[1]) * (1024 if match[2] else 1)
