"""A G1 as its topics tell it: the card's legs in MuJoCo, waist and arms as motors of their own, and a rope.

It begins hung up, in debug mode, its motors off: so a G1 is begun with. When its legs have held the pose in which they
stand for a while it is let down on them. Waist and arms move as free inertias: they don't move the trunk.
"""

from __future__ import annotations

import numpy as np
import torch

from robo_rl.deploy.emulate.go2 import TICK, Go2
from robo_rl.deploy.robot.drivers.g1 import MACHINE
from robo_rl.deploy.robot.drivers.unitree.family import HG
from robo_rl.deploy.robot.drivers.unitree.humanoid_messages import MOTORS
from robo_rl.deploy.robot.drivers.unitree.keeping import DAMPING
from robo_rl.deploy.robot.drivers.unitree.messages import LowCommand, LowState
from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.tasks.legged.limbs import find_limbs

HANGING = 0.25  # m, of the soles above the ground
HELD, NEAR = 1.0, 0.1
"""s for which the legs have held the pose in which they stand, within so many rad, when the robot is let down."""
INERTIA = 0.05  # kg m², of each joint above the legs
LIMP = 0.3
"""rad, of arms that hang in a frame: where the joints above the legs begin."""
LOST = 0x8
"""The error of a motor that does not answer: which code the real one tells is not known."""


class G1(Go2):
    """The robot."""

    name = "g1"
    family = HG
    motors = MOTORS
    machine = MACHINE
    torque = 140.0  # N m, above which states tell nothing

    def __init__(self, card: LeggedCard | None = None, seed: int = 0) -> None:
        self.hung, self.rope, self._held = True, False, 0.0
        """Whether it hangs, and whether it does so for good."""
        above = MOTORS - 12
        self._above = np.full(above, LIMP), np.zeros(above)
        card = card or load_legged(self.name)
        self.standing = tuple(joint.stand for joint in card.joints)
        self._height = find_limbs(card).height
        super().__init__(card, seed)
        self.mode = ""

    def receive(self, data: bytes) -> bool:
        """See ``Go2``; also dropped is what does not give mode_machine back."""
        before = self.command
        if not super().receive(data):
            return False
        if self.command.machine != self.machine:
            self.command, self._fresh = before, False
            self.refused += 1
            return False
        return True

    def restart(self) -> None:
        """See ``Go2``: debug mode is over."""
        super().restart()
        self.mode = "ai"

    def _lie(self) -> None:
        self._place(self._height + HANGING, np.zeros(12), np.zeros(12))

    def _place(self, height: float, q: np.ndarray, dq: np.ndarray) -> None:
        base = [[0.0, 0.0, height], [0.0, 0.0, 0.0, 1.0], [0.0] * 3, [0.0] * 3]
        at = (torch.tensor([part], dtype=torch.float32) for part in (*base, q.tolist(), dq.tolist()))
        self.plant.place(torch.tensor([0]), *at)

    def _own(self) -> LowCommand:
        """Nothing but damping."""
        nothing = np.zeros(MOTORS)
        return LowCommand(nothing == 0, nothing, nothing, nothing, nothing, nothing + DAMPING, self.machine)

    def _drive(self, command: LowCommand) -> None:
        super()._drive(command)
        on = command.on & (np.arange(MOTORS) != (-1 if self.broken.lost_motor is None else self.broken.lost_motor))
        (q, dq), top = self._above, slice(12, MOTORS)
        pulled = command.kp[top] * (command.q[top] - q) + command.tau[top] + command.kd[top] * (command.dq[top] - dq)
        dq = dq + TICK / INERTIA * on[top] * pulled
        self._above = q + TICK * dq, dq
        if self.hung:
            self._hang(command)

    def _hang(self, command: LowCommand) -> None:
        truth = self.truth
        q, dq = truth["joint_position"], truth["joint_velocity"]
        near = bool((command.kp[:12] > 0).all() and (np.abs(q - self.standing) < NEAR).all())
        self._held = self._held + TICK if near else 0.0
        self.hung = self.rope or self._held < HELD
        self._place(self._height + (HANGING if self.hung else 0.0), q, dq)

    def _joints(self) -> tuple[np.ndarray, np.ndarray]:
        legs, above = super()._joints(), self._above
        return np.concatenate([legs[0], above[0]]), np.concatenate([legs[1], above[1]])

    def _state(self) -> LowState:
        told = super()._state()
        codes = [LOST if i in (self.broken.lost_motor, self.broken.error) else 0 for i in range(MOTORS)]
        return LowState(**{**vars(told), "charge": None, "machine": self.machine, "motor_errors": tuple(codes)})
