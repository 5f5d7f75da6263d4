"""The simulated omnidirectional base: as a mobile base, with a velocity to the side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robo_rl.ros.twins.mobile_base import MobileBaseTwin


class OmniBaseTwin(MobileBaseTwin):
    """One omnidirectional base at a task."""

    moving = ("speed", "turn_rate", "velocity")

    def _velocity(self, truth: Mapping[str, np.ndarray]) -> tuple[float, float]:
        return float(truth["velocity"][0]), float(truth["velocity"][1])


TWIN = OmniBaseTwin
