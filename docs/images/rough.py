"""Make docs/images/rough.png: the Go2 put on patches of rough ground. Stairs of 10 cm, a slope of 20°, blocks, gaps.

python docs/images/rough.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from sim.pictures.walking import Stage
from sim.tasks.legged.rough import RoughWalk

KINDS = (("stairs up", "slope up"), ("blocks", "gaps"))
ROW, AWAY = 4, 1.8  # of difficulty, and m from the middle of the patch
UNDER = 0.2  # m, from the base's middle to its feet
SIZE = (450, 340)


def standing(task: RoughWalk, kind: str) -> dict[str, np.ndarray]:
    """A recording of one moment: the robot level, above the highest ground under it."""
    x, y = task.ground.starts[ROW, task.ground.kinds.index(kind)] + [AWAY, 0.0]
    under = torch.tensor([-UNDER, 0.0, UNDER])
    z = float(task.ground.height(x + under, torch.full((3,), y)).max()) + 0.27
    moment = {
        "position": np.array([x, y, z]),
        "orientation": np.array([0.0, 0.0, 0.0, 1.0]),
        "joint_position": np.array([joint.stand for joint in task.card.joints]),
        "linear_velocity": np.zeros(3),
        "linear_velocity_command": np.zeros(2),
    }
    return {name: value[None, None] for name, value in moment.items()}


def main() -> None:
    """Draw all kinds."""
    task, rows = RoughWalk(), []
    for kinds in KINDS:
        row = []
        for kind in kinds:
            moment = standing(task, kind)
            with Stage(task.card, SIZE, moment["position"][0], task.ground) as stage:
                stage.place(moment, 0, 0)
                stage.look(stage.middle, 3.0, 60.0, -20.0)
                stage.begin()
                row.append(stage.finish())
        rows.append(np.concatenate(row, 1))
    picture = Image.fromarray(np.concatenate(rows)).quantize(256)
    picture.save(Path(__file__).with_name("rough.png"), optimize=True)


if __name__ == "__main__":
    main()
