"""Pictures of gymnasium's environments, for ``render_mode="rgb_array"``."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from robo_rl.sim.drawing import Motion, record, require_drawing
from robo_rl.sim.env import VecEnv
from robo_rl.sim.pictures.camera import BESIDE, arrange, distance_of, middles_of
from robo_rl.sim.pictures.film import picture
from robo_rl.sim.pictures.stage import Stage

SIZE = (480, 480)
"""Width and height in pixels."""
ROOM = 2.0
"""Times as far away as the camera that just sees the whole robot: set-points are seen too."""


class Camera:
    """A camera that goes along with one of the robots of ``env``, each of which it shows alone."""

    def __init__(self, env: VecEnv) -> None:
        require_drawing(env.plant)
        self.env, self._model = env, env.plant.drawing()
        self._stage: Stage | None = None

    def picture(self, robot: int) -> NDArray[np.uint8]:
        """(height, width, 3): the robot now, with what its task shows of set-points and goals."""
        ids = torch.tensor([robot])
        truth = {name: value.numpy()[None] for name, value in self.env.truth(ids).items()}
        motion: Motion = record(self.env.task, self._model, np.asarray(self.env.plant.poses(ids))[None], truth)
        scene = arrange(motion)
        distance = (1.0 if scene.surrounded else ROOM) * distance_of(motion, SIZE)
        stage = self._stage
        if stage is None:
            stage = self._stage = Stage(motion.model, 1, SIZE, distance / 3, floor=scene.floor)
            stage.__enter__()
        stage.look(middles_of(motion)[0, 0], distance, scene.heading[0] + BESIDE, scene.elevation)
        return picture(stage, motion, 0, scene.size)

    def close(self) -> None:
        """Let go of the renderer."""
        if self._stage is not None:
            self._stage.__exit__(None, None, None)
            self._stage = None
