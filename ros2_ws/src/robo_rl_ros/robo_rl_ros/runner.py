"""The engine of ``robo_rl.deploy.robot.session`` under the names of this package."""

from __future__ import annotations

from robo_rl.deploy.robot.session import MODES, Decision, Proposal, Samples
from robo_rl.deploy.robot.session import Session as PolicyRunner

__all__ = ["MODES", "Decision", "PolicyRunner", "Proposal", "Samples"]
