"""The policies of one robot (``robo_rl.deploy.robot.switcher``) under the names of this package."""

from __future__ import annotations

from robo_rl.deploy.robot.switcher import BETWEEN, HAND_OVER, WARM_UP, PolicySwitcher, require_compatible

__all__ = ["BETWEEN", "HAND_OVER", "WARM_UP", "PolicySwitcher", "require_compatible"]
