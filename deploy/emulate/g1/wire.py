"""What goes wrong between a computer and a G1, and in a G1: a Go2's faults, and its own."""

from __future__ import annotations

from robo_rl.deploy.emulate.damage import broken
from robo_rl.deploy.emulate.go2 import Go2
from robo_rl.deploy.emulate.go2.wire import FAULTS as GO2_FAULTS
from robo_rl.deploy.emulate.go2.wire import Fault, Go2Wire

LOCKED = 6
"""mode_machine of a G1 of 29 joints whose waist the app has locked (unitree_ros, g1_description)."""


class G1Wire(Go2Wire):
    """The topics between a computer and an emulated G1."""

    @property
    def faults(self) -> dict[str, Fault]:
        """See ``Go2Wire``."""
        return FAULTS


def _lock(robot: Go2) -> None:
    robot.machine = LOCKED


FAULTS = GO2_FAULTS | {
    "motor lost": Fault("the right ankle's motor answers its robot no more", at_once=broken(lost_motor=11)),
    "motor hot": Fault("the left hip's motor has 95 °C", at_once=broken(hot_motor=1)),
    "motor error": Fault("the motor of the left elbow tells an error", at_once=broken(error=18)),
    "waist locked": Fault("the app locks the waist: the robot tells another mode_machine", at_once=_lock),
}
"""By name."""
