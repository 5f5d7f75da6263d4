"""franky, where it is installed; and its exceptions as sentences."""

from __future__ import annotations

import re
from typing import Any

from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.realtime import preemptible

try:
    import franky
except ImportError:  # pragma: no cover
    raise DriverError("the library franky is missing: pip install 'robo-rl[franka]'") from None

library: Any = franky


def sentence(error: BaseException) -> str:
    """What libfranka says, in one line."""
    return re.sub(r"\s+", " ", str(error) or type(error).__name__)[:300]


def open_robot(address: str) -> Any:
    """franky's robot. DriverError where there is none, or another program has it."""
    config = library.RealtimeConfig
    try:
        return library.Robot(address, realtime_config=config.Enforce if preemptible() else config.Ignore)
    except library.IncompatibleVersionException as error:
        raise DriverError(
            f"{address}: {sentence(error)}; franky's wheels are made for one version of the robot's server: install "
            "the one for this robot (a Panda needs another than an FR3)"
        ) from None
    except Exception as error:
        raise DriverError(
            f"{address}: {sentence(error)}; is FCI active in Desk, are the joints unlocked, and does no other program "
            "have the robot?"
        ) from None


def open_hand(address: str) -> Any:
    """franky's gripper. DriverError where there is none."""
    try:
        return library.Gripper(address)
    except Exception as error:
        raise DriverError(
            f"{address}: no Franka hand answers ({sentence(error)}); mount it, and choose it as end effector in Desk"
        ) from None
