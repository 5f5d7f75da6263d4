"""Omnidirectional bases in rooms of their own, with a lidar: ``robo_rl.sim.plants.omni_wheels`` and
``robo_rl.sim.scenes.rooms`` together."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, cast

from torch import Tensor

from robo_rl.contract import Scan
from robo_rl.sim.plants.mobile_base import STEP
from robo_rl.sim.plants.mobile_base.in_room import OWN, BaseInRoom
from robo_rl.sim.plants.omni_wheels import OmniParameters, OmniState, contacts, fused_advance, nominal_parameters
from robo_rl.sim.plants.physics import substeps
from robo_rl.sim.robots.omni_base import OmniBaseCard

Parameters = cast(Any, namedtuple("Parameters", (*OmniParameters._fields, *OWN)))
OmniInRoomState = cast(Any, namedtuple("OmniInRoomState", (*OmniState._fields, "left")))
"""The base's, and how far (m) it had to go, (n, k) each."""


class OmniInRoom(BaseInRoom):
    """n omnidirectional bases, each in a room of its own."""

    parameters_type = Parameters
    state_type = room_state = OmniInRoomState
    base_state = OmniState
    base_parameters = OmniParameters
    commanded = ("forward_speed", "lateral_speed", "turn_rate")

    def __init__(self, card: OmniBaseCard, n: int, period: float, scan: Scan, beams: int) -> None:
        """See ``BaseInRoom``; ``period`` is a multiple of 10 ms."""
        self.times = substeps(period, STEP)
        super().__init__(card, n, period, scan, beams)

    def _nominal(self) -> OmniParameters:
        return nominal_parameters(self.card)

    def _shapes(self) -> list[tuple[int, ...]]:
        return [(2,), (1,), (2,), (1,), (3,), (3,)]

    def _bound(self, parameters: Any) -> Callable[[], None]:
        fused = fused_advance(contacts(self.card))
        return fused.bind(self.current, self._commands, parameters, out=self.current)

    def truth(self) -> dict[str, Tensor]:
        """See ``BaseInRoom``. ``wheel_speed`` is what the wheels make of it, ``velocity`` and ``yaw_rate`` are true."""
        velocity = self.current.velocity
        return {**super().truth(), "yaw_rate": velocity[:, 2:], "velocity": velocity}
