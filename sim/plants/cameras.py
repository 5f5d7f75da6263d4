"""Depth cameras of robots in MuJoCo's batch: images of all that is drawn of the robot, its ground and its objects."""

from __future__ import annotations

import numpy as np
from mujoco.batch import Batch
from torch import Tensor

from robo_rl.sim.cameras import View
from robo_rl.sim.plants.drawing import draw
from robo_rl.sim.plants.indices import ModelIndices
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import Mechanism
from robo_rl.sim.scenes.terrain import Ground


def require_no_camera(mechanism: Mechanism, engine: str) -> None:
    """CardError for a robot with cameras, in an engine that draws no images."""
    if mechanism.cameras:
        name = mechanism.cameras[0].name
        raise CardError(f"{engine} has no cameras; expected MuJoCo on the CPU for '{mechanism.name}' with '{name}'")


class Cameras:
    """The images of n robots, from where their newest state has them."""

    def __init__(
        self, batch: Batch, mechanism: Mechanism, indices: ModelIndices, n: int, ground: Ground | None
    ) -> None:
        self._place, self._turn = batch.bind("xpos"), batch.bind("xmat")
        seen = draw(mechanism, ground)
        bodies = [[model.body(i).name for i in range(model.nbody)] for model in (batch.model, seen)]
        assert bodies[0] == bodies[1]
        plain = zip(indices.objects.tolist(), mechanism.objects, strict=True)
        own = {body: k for k, (body, thing) in enumerate(plain) if thing.mjcf is None}
        self.views = [View(camera, seen, own, n) for camera in mechanism.cameras]

    @property
    def images(self) -> dict[str, Tensor]:
        """(n, rows, columns) m by name, live."""
        return {view.camera.name: view.image for view in self.views}

    def render(self, sizes: Tensor | None, mounts: Tensor | None, ids: Tensor | None = None) -> None:
        """Draw the images of the robots ``ids``, or of all; see ``ArticulatedParameters`` for the two others.

        They are None where no robot differs from its card.
        """
        for k, view in enumerate(self.views):
            mount = None if mounts is None else mounts[:, k].contiguous()
            view.render(np.ascontiguousarray(self._place), np.ascontiguousarray(self._turn), sizes, mount, ids)
