"""Make docs/images/rough.png: the Go2 put on patches of rough ground. Stairs of 10 cm, a slope of 20°, blocks, gaps.

python docs/images/rough.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from robo_rl.sim.pictures.stage import Stage
from robo_rl.sim.tasks.legged.rough import RoughWalk

KINDS = (("stairs up", "slope up"), ("blocks", "gaps"))
ROW, AWAY = 4, 1.8  # of difficulty, and m from the middle of the patch
UNDER = 0.2  # m, from the base's middle to its feet
SIZE = (450, 340)


def main() -> None:
    """Draw the robot level on patches of all kinds, above the highest ground under it."""
    task = RoughWalk()
    plant = task.make_plant(1, "cpu")
    standing, rows = plant.poses(torch.arange(1)), []
    standing[..., 2] -= plant.height
    with Stage(plant.drawing(), 1, SIZE, 1.0) as stage:
        for kinds in KINDS:
            row = []
            for kind in kinds:
                x, y = task.ground.starts[ROW, task.ground.kinds.index(kind)] + [AWAY, 0.0]
                under = torch.tensor([-UNDER, 0.0, UNDER])
                z = float(task.ground.height(x + under, torch.full((3,), y)).max())
                stage.place(standing + np.array([x, y, z + plant.height, 0.0, 0.0, 0.0, 0.0]))
                stage.look(np.array([x, y, z + 0.22]), 3.0, 60.0, -20.0)
                row.append(stage.marked((), ()))
            rows.append(np.concatenate(row, 1))
    picture = Image.fromarray(np.concatenate(rows)).quantize(256)
    picture.save(Path(__file__).with_name("rough.png"), optimize=True)


if __name__ == "__main__":
    main()
