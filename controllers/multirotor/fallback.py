"""The classical controller that takes over from the policy, and lands after a fault.

It follows along while the policy flies, so that its estimate of the motors is right when it takes over.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robo_rl.contract import Contract
from robo_rl.controllers.multirotor.facts import KIND, Multirotor
from robo_rl.controllers.multirotor.geometric import GeometricController
from robo_rl.controllers.multirotor.rates import RatesController

DESCENT = 0.5
"""m/s: the speed of a landing. A choice; a Crazyflie's own landing is about as fast."""
TOUCHDOWN = 0.05
"""m above the height at which the robot was armed, where the motors stop."""
LONGEST = 30.0
"""s: a landing that takes longer ends with the safe command."""
NEEDED = ("position", "orientation", "linear_velocity", "angular_velocity")
BY_SPEED, BY_RATES = ("rotor_speed",), ("body_rate", "thrust")
"""Commands that there is a controller for."""


class Landing:
    """``controllers.Fallback`` of a multirotor: it holds the place, and after a fault it descends and switches off."""

    needed = NEEDED

    def __init__(self, contract: Contract) -> None:
        self.contract, self.robot = contract, Multirotor.of(contract.robot)
        robot = self.robot
        self.controller, self._motors = _controller(robot, contract)
        self._rises = np.exp(-contract.control_period / np.array([rotor.rise for rotor in robot.rotors], np.float32))
        self._falls = np.exp(-contract.control_period / np.array([rotor.fall for rotor in robot.rotors], np.float32))
        """Part of the way to a commanded speed that is left after a period."""
        self._targets: dict[str, np.ndarray] = {}
        self.ground: float | None = None
        self.rest()
        self._warm_up()

    def _warm_up(self) -> None:
        """Warm up: the first command takes 10 MB and far longer than all later ones."""
        still = {name: np.zeros(3, np.float32) for name in (*NEEDED, "position_setpoint", "linear_velocity_setpoint")}
        self._command(still | {"orientation": np.array([0, 0, 0, 1], np.float32)})
        del self._next

    @staticmethod
    def suits(contract: Contract) -> bool:
        """Whether there is a controller for this robot and these signals and commands."""
        names = {signal.name for signal in contract.signals}
        commands = tuple(command.name for command in contract.commands)
        return contract.robot.kind == KIND and names >= set(NEEDED) and commands in (BY_SPEED, BY_RATES)

    def rest(self) -> None:
        """Motors stand still, and no landing is under way."""
        self.state = self.controller.first_state(1)
        self.state[:, : self._motors] = 0.0
        self.landing_since: float | None = None

    def arm(self, signals: Mapping[str, np.ndarray]) -> None:
        """Note where the ground is."""
        self.ground = float(signals["position"][2])

    def propose(self, signals: Mapping[str, np.ndarray]) -> np.ndarray:
        """The command that follows the operator's set-points, or holds the place where none are given."""
        held = {
            "position_setpoint": signals.get("position_setpoint", signals["position"]),
            "linear_velocity_setpoint": signals.get("linear_velocity_setpoint", np.zeros(3, np.float32)),
        }
        return self._command({**signals, **held})

    def land(self, signals: Mapping[str, np.ndarray], time: float) -> np.ndarray | None:
        """The command that descends where the fault found the robot; None once it is down. ``time`` in s."""
        if self.landing_since is None:
            self.landing_since, self._from = time, np.array(signals["position"])
        passed = time - self.landing_since
        ground = self.ground if self.ground is not None else -np.inf
        if not passed <= LONGEST or signals["position"][2] <= ground + TOUCHDOWN:
            return None
        target = self._from - np.array([0, 0, DESCENT * passed], np.float32)
        down = np.array([0, 0, -DESCENT], np.float32)
        return self._command({**signals, "position_setpoint": target, "linear_velocity_setpoint": down})

    def _command(self, signals: Mapping[str, np.ndarray]) -> np.ndarray:
        with np.errstate(all="ignore"):  # what comes of bad signals is not finite, and the gate refuses it
            batch = {name: value[None] for name, value in signals.items()}
            commands, self._next = self.controller(batch, self.state.astype(np.float32))
        return np.concatenate([commands[one.name][0] for one in self.contract.commands]).astype(np.float32)

    def follow(self, sent: np.ndarray) -> None:
        """Note what was sent (M,), after ``propose`` or ``land``: the motors move to that, whoever chose it."""
        state = getattr(self, "_next", self.state).copy()
        if count := self._motors:
            motors = self.state[0, :count]
            left = np.where(sent > motors, self._rises, self._falls)
            state[0, :count] = sent + (motors - sent) * left
        if np.isfinite(state).all():
            self.state = state.astype(np.float32)


def _controller(robot: Multirotor, contract: Contract) -> tuple[GeometricController, int]:
    """That of the contract's commands, and how many numbers of its state are the rotors' speeds."""
    if len(contract.commands) == len(BY_SPEED):
        return GeometricController(robot, contract.control_period), len(robot.rotors)
    rates, thrust = contract.commands
    most = (*rates.upper, *thrust.upper)
    return RatesController(robot, contract.control_period, most), 0  # type: ignore[arg-type]
