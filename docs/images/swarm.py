"""Make swarm.png: eight ways from above, by both baselines in the same episode, with one command:

python docs/images/swarm.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.patches import Circle
from PIL import Image

from robo_rl.evaluate.evaluation import Conditions, ControllerPolicy, rollout
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.multirotor.room import COLUMN, ROOM, TEAM

SEED = 3


def main() -> None:
    """Write the picture beside this file."""
    task = load_task("swarm-swap")
    conditions = Conditions(episodes=1, seed=SEED, recorded=1, fixed={"goal/swap": 0.0})
    figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    for axis, controller in zip(axes, (task.controller(), *task.controllers()), strict=True):
        draw(axis, rollout(task, ControllerPolicy(task, controller), conditions, None).recording)
        axis.set_title(controller.name)
    out = Path(__file__).with_name("swarm.png")
    figure.savefig(out, dpi=110, facecolor="white")
    Image.open(out).convert("RGB").quantize(64).save(out, optimize=True)


def draw(axis: Any, flown: Any) -> None:
    """The ways of a team, columns, and what each has hit."""
    for column in flown["columns"][0, 0]:
        axis.add_patch(Circle(column, COLUMN, color="0.75"))
    for robot in range(TEAM):
        place, goal = flown["position"][:, robot], flown["position_setpoint"][0, robot]
        color = f"C{robot}"
        axis.plot(place[:, 0], place[:, 1], color=color, lw=1.2)
        axis.plot(*place[0, :2], "o", color=color, ms=4)
        axis.plot(*goal[:2], "x", color=color, ms=7)
        touched = flown["clearance"][:, robot].min(-1) < 0
        axis.plot(*place[touched, :2].T, ".", color="black", ms=9)
    axis.set(xlim=(-ROOM[0] / 2, ROOM[0] / 2), ylim=(-ROOM[1] / 2, ROOM[1] / 2), aspect="equal", xlabel="x, m")


if __name__ == "__main__":
    main()
