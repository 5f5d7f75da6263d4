"""Simulated robots for ROS 2: one for any task, with additions for the kinds of robots that have a folder here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robo_rl.contract.kinds import of_kind
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.ros.twins.twin import Twin
from robo_rl.sim.tasks.loading import load_task

USUAL = "quadrotor-hover"
DEFAULTS = {"height": 1.0, "hung": False}
"""Of the settings that some kinds alone have."""


def make_twin(
    task: str, robot: str | None = None, seed: int = 0, delay: float = 0.01, noise: float = 1.0,
    miswired: Sequence[str] = (), bundle: str = "", **settings: Any,
) -> Twin:  # fmt: skip
    """The simulated robot of a task, or of that of the policy's file ``bundle``; or another of its kind.

    ``task`` "" is quadrotor-hover, or the policy's own; "inside" runs the task's source that the file brings.
    ``settings`` are for some kinds alone (``Twin.settings``); one that is asked for where there is none is refused.
    """
    if bundle:
        from robo_rl.deploy.build.verify import named_task

        loaded = named_task(Bundle.read(bundle), task or None, robot)
    else:
        loaded = load_task(task or USUAL, robot)
    if loaded.spec.team > 1:
        raise ValueError(
            f"task '{loaded.name}' is of a team of {loaded.spec.team}; a twin is one robot: see robo-rl play"
        )
    kind = loaded.spec.robot.kind
    twin: type[Twin] = getattr(of_kind(__name__, kind), "TWIN", Twin)
    for name, value in settings.items():
        if value != DEFAULTS.get(name) and name not in twin.settings:
            known = f"{list(twin.settings)}" if twin.settings else "none"
            raise ValueError(f"parameter '{name}' is {value}, but a robot of the kind '{kind}' has {known} of its own")
    own = {name: value for name, value in settings.items() if name in twin.settings}
    return twin(loaded, seed, delay, noise, miswired, **own)
