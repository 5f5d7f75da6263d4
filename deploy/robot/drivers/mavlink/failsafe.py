"""PX4's parameters of what it does when no set-points come (PX4-Autopilot, commander_params, failsafe.cpp).

As they come, PX4 waits for a second, during which it goes on with the last rates, and then takes up its position
mode, which a pilot flies; without a remote control it returns (1.14 to 1.17: failsafe.cpp, checkModeFallback). From
1.14 on it holds its place for COM_FAIL_ACT_T, 5 s, first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.mavlink.link import mavlink

LOSS, ACTION, GROUND, HOVER = "COM_OF_LOSS_T", "COM_OBL_RC_ACT", "NAV_DLL_ACT", "MPC_THR_HOVER"
PARAMETERS = {HOVER: True, LOSS: True, ACTION: True, GROUND: False}
"""Those that are asked for, and whether the driver can't do without."""
LOSS_MAX, LOSS_SET = 0.3, 0.2
"""s of COM_OF_LOSS_T at most, and as ``repair`` sets it. In PX4 1.17's own simulator a program that was killed left a
vehicle that tilted by 10 degrees and moved by 0.4 m with 0.2 s, and by up to 57 degrees and 6 m with 1 s."""
LAND = 4
ACTIONS = {
    0: "flies by hand in position mode, or returns without a remote control",
    1: "flies by hand in altitude mode, or returns without a remote control",
    3: "returns", LAND: "lands", 5: "holds its place",
}  # fmt: skip
"""Of COM_OBL_RC_ACT, those that leave nobody with a falling vehicle. 2 is manual flight, 6 and 7 stop the motors."""


@dataclass(frozen=True)
class Failsafe:
    """See the module's text."""

    loss: float
    """s"""
    action: int
    ground_station_needed: bool
    """Whether PX4 acts when it hears no ground station any more: then nobody may be taken for one."""

    @classmethod
    def of(cls, parameters: Mapping[str, float]) -> Failsafe:
        """From parameters by name."""
        return cls(parameters[LOSS], round(parameters[ACTION]), round(parameters.get(GROUND, 1.0)) != 0)

    @property
    def text(self) -> str:
        """What PX4 does without set-points."""
        return f"after {self.loss:g} s it {ACTIONS.get(self.action, f'does {self.action} of {ACTION}')}"

    @property
    def wrong(self) -> dict[str, float]:
        """What has to be set, by name."""
        loss = {} if 0.0 < self.loss <= LOSS_MAX else {LOSS: LOSS_SET}
        return loss if self.action in ACTIONS else {**loss, ACTION: float(LAND)}

    def check(self) -> None:
        """DriverError where a program that ends would leave a vehicle that nobody flies."""
        how = "; 'robo-rl doctor BUNDLE --driver px4 --repair' sets it"
        if LOSS in self.wrong:
            raise DriverError(
                f"{LOSS} is {self.loss:g} s; expected at most {LOSS_MAX:g}: so long PX4 goes on with the last rates "
                f"when nothing is sent, and tilts{how}"
            )
        if ACTION in self.wrong:
            raise DriverError(
                f"{ACTION} is {self.action}: without set-points it would fly by hand or switch off its motors; "
                f"expected 4 (land), 3 (return), 5 (hold), or 0 (position mode, its default){how}"
            )


def number(message: Any) -> float:
    """A PARAM_VALUE's; PX4 sends the bits of an INT32 as those of a float."""
    if message.param_type == mavlink.MAV_PARAM_TYPE_INT32:
        return float(np.float32(message.param_value).view(np.int32))
    return float(message.param_value)


def encoded(name: str, value: float) -> tuple[int, float]:
    """Type and value of a PARAM_SET."""
    if name == LOSS:
        return mavlink.MAV_PARAM_TYPE_REAL32, value
    return mavlink.MAV_PARAM_TYPE_INT32, float(np.int32(round(value)).view(np.float32))
