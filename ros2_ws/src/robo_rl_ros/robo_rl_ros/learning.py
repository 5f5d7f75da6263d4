"""A node's side of learning while the robot runs: steps to the learner, its policies to the runner. Nothing of ROS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.robot.actor import Actor
from robo_rl.deploy.robot.logs.step_log import Flag
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import Decision, Session
from robo_rl.ros.control import Control
from robo_rl.ros.loading import Watch

Verdict = tuple[bool, str]


class Learning:
    """Of one runner, from now on."""

    def __init__(
        self, folder: Path, runner: Session, control: Control, say: Callable[[str], None], trusted_keys: str,
        native: bool,
    ) -> None:  # fmt: skip
        """``say`` gets a sentence for each new policy. ValueError where the policy can't be taken over from."""
        policies = runner.policies
        if len(policies.policies) > 1:
            raise ValueError(
                "parameters 'learn' and 'others' are both given; expected one: a learner replaces a policy"
            )
        trusted = Path(trusted_keys) if trusted_keys else None
        self._actor = Actor(folder, policies.policy, runner.config, say, control.halt, trusted, native)
        self._runner, self._control = runner, control
        self.watch: Watch | None = None
        """Of the file that is at work, once it is another than the first."""
        runner.successor = self._successor
        self._actor.start()

    def _successor(self) -> Policy | None:
        found = self._actor.successor()
        if found is not None:
            self.watch = Watch(found.bundle)
        return found

    def note(self, decision: Decision) -> None:
        """A step. What a policy does beside a controller, or only would do, is not learnt from."""
        alone = decision.send is not None and self._runner.mode == "live"
        self._actor.note(decision.inputs, decision.output, decision.state, alone)
        if noise := self._actor.exploration():
            self._control.constants.update(noise)

    def end_episode(self, outcome: Flag, ask: Callable[[Request, State], Verdict]) -> Verdict:
        """The operator has seen how the episode ended: the learner hears it, and the robot is stopped."""
        self._actor.outcome = outcome
        return ask(Request.DISARM, State.IDLE)

    def close(self) -> None:
        """End it."""
        self._actor.close()
