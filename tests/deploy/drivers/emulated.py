"""The plain loop with a driver on an emulated robot in virtual time, which has a fault once the policy is active."""

from __future__ import annotations

from typing import Any

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.robot.drivers.driver import ForLoop
from robo_rl.deploy.robot.loop import Loop, Step

PATIENCE = 60.0  # s of real time for a period of virtual time: the computer may be busy
RUN_IN = 10  # steps


class EmulatedSession:
    """A run of the loop. ``watch`` is called in every step."""

    world: Any
    driver: Any
    policy: Any
    told: Any
    """What the operator says, by signal."""
    longest: float
    """s"""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.problems: list[str] = []

    def watch(self) -> None:
        raise NotImplementedError

    def ready(self) -> bool:
        """Whether the policy may take over, as far as the robot is concerned."""
        return True

    def run(self, fault: str, at: float, seconds: float, action: Any = None) -> int:
        """With ``fault`` from ``at`` s after the policy took over on; ``seconds`` after it, all ends."""
        self.driver.connect()
        period = self.policy.contract.control_period
        self.at, since = 10**9, 0

        def note(step: Step) -> None:
            nonlocal since
            self.steps.append(step)
            self.watch()
            self.problems += [p for p in self.driver.health().problems if p not in self.problems]
            if step.number == RUN_IN:
                loop.request(Request.ARM)
            elif step.output.state == State.READY and loop.reserve.arrived and self.ready():
                loop.request(Request.ACTIVATE)
            since += step.output.state == State.ACTIVE
            if self.at == 10**9 and since >= at / period:
                self.at = step.number
                self.world.wire.begin(fault)
                if action:
                    action(self)
            if step.number >= self.at + round(seconds / period):
                loop.end()  # a walker's loop goes on until it lies, unless it is asked again

        loop = Loop(self.policy, ForLoop(self.driver, self.policy.contract, self.told), note, self.world, PATIENCE)
        return loop.run(self.longest)
