"""The bundle that follows plans: of a task without a network (``robo_rl.sim.tasks.planned``), so nothing is trained."""

from __future__ import annotations

import hashlib
from pathlib import Path

from robo_rl.contract import Provenance
from robo_rl.deploy.build.export import write_bundle
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout_signals
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks import Task

EPISODES = 32
"""In which the range of the signals is seen: plans that come from outside have their own."""


def export_follower(task: Task, out: Path) -> Bundle:
    """Write the bundle for the robot of a task NAME-plans."""
    policy = PolicyGraph(task, (), "elu").eval()
    digest = hashlib.sha256(f"{task.name} {task.spec.robot.name}".encode()).hexdigest()
    provenance = Provenance(
        algorithm="none", seed=0, environment_steps=0, configuration_digest=digest, source="", source_digest="",
        versions={},
    )  # fmt: skip
    seen = rollout_signals(task, GraphPolicy(policy), Conditions(episodes=EPISODES, seed=7))
    return write_bundle(policy, provenance, seen, out)
