"""A page that shows gymnasium's environments as they move, for ``render_mode="human"``."""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor

from robo_rl.sim.drawing import mapped, require_drawing
from robo_rl.sim.env import VecEnv
from robo_rl.viewer import guard
from robo_rl.viewer.access import Access
from robo_rl.viewer.live import FRAMES_PER_SECOND, Counters, Frame, Moment
from robo_rl.viewer.scene import Scene

MOST = 16
"""Robots that are shown; the first ones of more."""
LATE = 0.2  # s behind real time beyond which it is not caught up


class Window:
    """The page, for this computer alone. Steps are kept to real time, as far as the computer is fast enough."""

    def __init__(self, env: VecEnv) -> None:
        require_drawing(env.plant)
        self.env, self._model = env, env.plant.drawing()
        self._ids = torch.arange(min(env.n, MOST))
        self._begun = np.ones(len(self._ids), int)
        self.period = env.task.spec.control_period
        self.every = max(1, round(1 / (FRAMES_PER_SECOND * self.period)))
        """Control steps per frame."""
        self.steps, self._due = 0, time.monotonic()
        access = Access()
        self.server = guard.start(access, 0, "robo-rl")
        self.url = access.url(self.server.get_port())
        print(f"robots are shown at {self.url}")
        self.scene = Scene(self.server, self._model, self._frame())

    def _frame(self) -> Frame:
        truth = self.env.truth(self._ids)
        markers = [mapped(marker, np.array) for marker in self.env.task.markers(truth)]
        moment = Moment(self.steps * self.period, {name: value.numpy() for name, value in truth.items()}, {}, {})
        counters = Counters(self._begun.copy(), np.zeros_like(self._begun))
        number = 1 + self.steps // self.every
        return Frame(number, moment, self.env.plant.poses(self._ids), markers, counters, "", False, 1.0)

    def began(self, ids: Tensor) -> None:
        """The episodes of these robots have begun again."""
        shown = ids[ids < len(self._begun)].numpy()
        self._begun[shown] += 1

    def show(self) -> None:
        """One control step was made."""
        self.steps += 1
        if self.steps % self.every == 0:
            self.scene.update(self._frame())
        self._due += self.period
        ahead = self._due - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        elif ahead < -LATE:
            self._due = time.monotonic()

    def close(self) -> None:
        """Stop the server."""
        self.server.stop()
