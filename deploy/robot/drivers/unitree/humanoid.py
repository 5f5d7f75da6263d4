"""A Unitree humanoid of the hg family as a driver: a ``Dog`` whose waist and arms are held, and that hangs at first.

It can't lie down by itself. So a mode of its own is not released here: legs that let go drop 35 kg.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from robo_rl.contract import Contract
from robo_rl.controllers.gate.codes import Source
from robo_rl.deploy.robot.drivers.driver import DriverError, Identity, Mode
from robo_rl.deploy.robot.drivers.unitree.dog import Dog
from robo_rl.deploy.robot.drivers.unitree.family import HG
from robo_rl.deploy.robot.drivers.unitree.mapping import Held, JointLimits
from robo_rl.deploy.robot.drivers.unitree.messages import LowState


class Humanoid(Dog):
    """See the module's text."""

    family = HG
    stiffest = 400.0
    """N m/rad: choice; with 350 at the hips it stands (``Held`` and the card's hold_stiffness)."""
    absent = "It hangs, and L2 and R2 were pressed on its remote (debug mode)?"
    modes: ClassVar = {Source.START: Mode.HOLD}
    """It is moved to its start pose with the gains that hold it."""

    def __init__(
        self, name: str, connect: Any, contract: Contract, joints: Sequence[JointLimits], held: Mapping[str, Held],
        machine: int, **clock: Any,
    ) -> None:  # fmt: skip
        """``held``: motors that the contract does not command; ``machine``: the hardware that it was trained for."""
        self.held, self.machine = held, machine
        super().__init__(name, connect, contract, joints, **clock)

    def connect(self) -> Identity:
        """As ``Dog.connect``; another hardware is refused."""
        found = super().connect()
        assert self._state is not None
        return Identity(found.robot, {**found.details, "mode_machine": str(self._state.machine)})

    def _take_over(self, state: LowState) -> None:
        if state.machine != self.machine:
            raise DriverError(
                f"the robot tells mode_machine {state.machine}; the policy was trained for {self.machine}: gears and "
                "limits of another hardware are others"
            )
        if self._mode:
            raise DriverError(
                f"the robot's mode '{self._mode}' commands it; hang it up, press L2 and R2 on its remote (debug mode), "
                "then L2 and A, and start again"
            )

    def _wrong(self) -> list[str]:
        found = super()._wrong()
        if self._state is not None and self._state.machine != self.machine:
            found.append(f"the robot tells mode_machine {self._state.machine} now; it was {self.machine}: start anew")
        return found
