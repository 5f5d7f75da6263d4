"""Following a speed at 1 kHz with a motor whose drive keeps a current: a synchronous machine, or a geared DC motor.

Set-points step twice in an episode, and a load comes at a moment that differs. Inertia, torque per current, friction,
supply and the current loop differ between episodes. The policy corrects what PI control by the symmetric optimum would
do, in the graph, by up to half of the current; an untrained one is that controller. With six-step commutation the
command is a duty: ``six_step``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from robo_rl.contract import Command, CurrentLaw, Envelope, Safety, Signal, StateBlock
from robo_rl.controllers.motor.speed import SpeedPI, SymmetricOptimum
from robo_rl.sim.drawing import Marker
from robo_rl.sim.plants.motor.drive import CurrentDrive, DriveParameters
from robo_rl.sim.plants.motor.six_step import SixStepDrive
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.motor import DcCard, PmsmCard
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors, any_of
from robo_rl.sim.tasks.motor.dials import dial

PERIOD = 1e-3  # s
CURRENT_TIME = 5e-4
"""s, of the current loop: five of its periods at 10 kHz."""
LENGTH, SECOND = 0.5, 0.25
"""s of an episode, and until its second set-point."""
REACH = 0.3
"""Of the top speed: the greatest set-point."""
CORRECTION = 0.5
"""Of the current's limit: by how much the policy may correct PI control."""
RUNAWAY = 1.5
"""Of the top speed: a failure."""
FINE = 0.02
"""Of the top speed, on which small errors are seen."""
FACTORS = ("torque_factor", "inertia", "friction", "dry_friction", "current_time", "supply_voltage")
D = TypeVar("D", bound=CurrentDrive | SixStepDrive)
"""The plant."""


class MotorSpeed(Task[D]):
    """What speed tasks of motors have in common; see the module's text."""

    robot: ClassVar[str]
    period: ClassVar[float] = PERIOD
    reach: ClassVar[float] = REACH
    correction: ClassVar[float] = CORRECTION
    commanded: ClassVar[str] = "current_target"
    """The command."""
    true_speed: ClassVar[str] = "rotor_speed"
    """Of the plant's quantities."""
    factors: ClassVar[tuple[str, ...]] = FACTORS
    """Parameters of the plant that are drawn as factors of the card's."""
    card: Any
    limit: float
    """Of the command."""
    optimum: SymmetricOptimum
    algorithms = ("apg", "ppo")
    measures = (Measure("speed_error", "rad/s", "mean", seconds=0.0),)
    perturbed: tuple[str, ...] = ("inertia", "torque_factor", "load", "current_time", "noise")
    observation_size = 9
    action_size = 1
    goal_size = 2
    expected = 0.99
    update_scale = 4.0
    settings = {
        "apg": {"environments": 256, "horizon": 40, "learning_rate": 0.008, "hidden": (32, 32)},
        "ppo": {"environments": 512, "horizon": 64, "hidden": (32, 32), "gamma": 0.97},
        "stream": {"gamma": 0.95, "lam": 0.8, "deviation": 0.3, "bound": 0.5, "block": 30_000, "warm_up": 5_000},
    }
    weights = {"error": -1.0, "change": -0.02}

    def specified(
        self, signals: tuple[Signal, ...], command: Command, ranges: Mapping[str, Range],
        envelope: tuple[Envelope, ...] = (), facts: Mapping[str, Any] | None = None,
    ) -> Spec:  # fmt: skip
        """The task as data, with what is its own: ``signals`` between the speed and its set-point, the command, and
        ``ranges`` of the plant's parameters."""
        card, one, fast = self.card, ("shaft",), 2.0 * self.card.speed_max
        speeds = ((-fast,), (fast,))
        return Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=self.period,
            episode_length=LENGTH,
            signals=(
                Signal("rotor_speed", one, "rad/s", "stator", *speeds, noise=(max(card.speed_noise, 1e-6),)),
                *signals,
                Signal("rotor_speed_setpoint", one, "rad/s", "stator", *speeds, source="operator"),
            ),
            commands=(command,),
            memory=tuple(
                StateBlock(name, (1,), (0.0,)) for name in ("integral", "filtered", "last_target", "last_speed")
            ),
            safety=Safety(signal_timeout=5 * self.period, on_fault="stop", envelope=envelope),
            reward=dict(self.weights),
            ranges={
                "reference/first": Range.fixed(-1.0, 1.0, unit="×"),
                "reference/second": Range.fixed(-1.0, 1.0, unit="×"),
                "load": Range.fixed(-0.25, 0.25, unit="×"),
                "load_time": Range.fixed(0.05, LENGTH, unit="s"),
                "torque_factor": Range.fixed(0.9, 1.1, unit="×"),
                "inertia": Range.fixed(0.7, 1.5, unit="×"),
                "friction": Range.fixed(0.5, 2.0, unit="×"),
                "dry_friction": Range.fixed(0.5, 1.5, unit="×"),
                **ranges,
                "supply_voltage": Range.fixed(0.85, 1.1, unit="×"),
                "noise": Range.fixed(0.5, 1.5),
            },
            facts=facts or {},
        )

    def controller(self) -> SpeedPI:
        return SpeedPI(self.optimum)

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        return torch.stack([drawn["reference/first"], drawn["reference/second"]], -1)

    def randomize(self, plant: D, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        for name in self.factors:
            plant.param(name)[ids] = getattr(plant.nominal, name) * drawn[name]
        plant.param("load")[ids] = (self.card.torque_factor * self.card.current_nominal) * drawn["load"]
        plant.param("load_time")[ids] = drawn["load_time"]

    def place(self, plant: D, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        for part in plant.current:
            part[ids] = 0.0 * drawn["load"][:, None]

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        first, second = goal.unbind(-1)
        now = torch.where(time >= SECOND - 0.5 * self.period, second, first)
        return {"rotor_speed_setpoint": (self.reach * self.card.speed_max) * now[:, None]}

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        top, speed = self.card.speed_max, signals["rotor_speed"]
        error = (signals["rotor_speed_setpoint"] - speed) * (1.0 / top)
        moved = speed * (1.0 / top) - memory["last_speed"]
        filtered = self.optimum.filtered(memory["filtered"], signals["rotor_speed_setpoint"] * (1.0 / top))
        behind = filtered - speed * (1.0 / top)
        parts = [
            error,
            error / (FINE + torch.abs(error)),
            behind / (FINE + torch.abs(behind)),
            20.0 * moved,
            moved / (0.2 * FINE + torch.abs(moved)),
            memory["integral"],
            memory["last_target"],
            signals["current"] * (1.0 / self.card.current_nominal),
            speed * (1.0 / top),
        ]
        return torch.cat(parts, -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        """The correction alone; ``act`` adds it to PI control's command."""
        return {self.commanded: (self.correction * self.limit) * torch.tanh(action)}

    def limited(self, wanted: Any, signals: Tensors) -> Any:
        """(n, 1) what may be commanded."""
        return torch.clamp(wanted, -self.limit, self.limit)

    def act(
        self, action: Any, signals: Tensors, memory: Tensors, limit: Callable[[str, Any], Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        filtered, proposed = self._proposed(signals, memory)
        wanted = proposed + self.command(action, memory)[self.commanded]
        commands = {self.commanded: self.limited(wanted, signals)}
        if limit is not None:
            commands = {name: limit(name, value) for name, value in commands.items()}
        return commands, self._kept(signals, memory, commands, filtered, proposed)

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        return self._kept(signals, memory, commands, *self._proposed(signals, memory))

    def _proposed(self, signals: Tensors, memory: Tensors) -> tuple[Any, Any]:
        """The filtered set-point, rad/s, and what PI control would command without limit."""
        filtered = self.optimum.filtered(self.card.speed_max * memory["filtered"], signals["rotor_speed_setpoint"])
        return filtered, self.optimum.proposed(filtered, signals["rotor_speed"], self.limit * memory["integral"])

    def _kept(
        self, signals: Tensors, memory: Tensors, commands: Tensors, filtered: Any, proposed: Any
    ) -> dict[str, Any]:
        """The memory, in parts of the command's limit and of the top speed."""
        speed, per = signals["rotor_speed"], 1.0 / self.limit
        given = self.limited(proposed, signals)
        integral = self.optimum.integrated(self.limit * memory["integral"], filtered, speed, proposed, given)
        return {
            "integral": torch.clamp(integral * per, -1.5, 1.5), "filtered": filtered * (1.0 / self.card.speed_max),
            "last_target": commands[self.commanded] * per, "last_speed": speed * (1.0 / self.card.speed_max),
        }  # fmt: skip

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        error = self._error(truth) * (10.0 / self.card.speed_max)
        change = (commands[self.commanded] - previous[self.commanded]) * (1.0 / self.limit)
        return {"error": torch.sqrt(error.square() + 1e-6)[:, 0], "change": change.square()[:, 0]}

    def measured_reward(self, signals: Tensors, memory: Tensors) -> Any:
        error = signals["rotor_speed"] - signals["rotor_speed_setpoint"]
        return -torch.abs(error[:, 0] * (10.0 / self.card.speed_max))

    def _error(self, truth: Tensors) -> Any:
        return truth[self.true_speed] - truth["rotor_speed_setpoint"]

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the shaft's speed is from its set-point (rad/s)."""
        return {"speed_error": self._error(truth).abs()[:, 0]}

    def failed(self, truth: Tensors) -> Any:
        return any_of(self.failures(truth))

    def failures(self, truth: Tensors) -> dict[str, Any]:
        runaway = truth[self.true_speed].abs()[:, 0] > RUNAWAY * self.card.speed_max
        return {f"over {RUNAWAY:g} times the highest speed": runaway}

    def markers(self, truth: Tensors) -> list[Marker]:
        """The speed and its set-point."""
        return dial("speed", truth[self.true_speed], truth["rotor_speed_setpoint"], self.card.speed_max)


class CurrentSpeed(MotorSpeed[CurrentDrive]):
    """By a current that the drive keeps."""

    card_type: type[PmsmCard] | type[DcCard]
    element: ClassVar[str]
    """What the command's number is called: the winding whose current it is."""

    def __init__(self, card: PmsmCard | DcCard | None = None) -> None:
        mine: Any = card or load_robot(self.robot, self.card_type)
        self.card = mine
        self.limit, most, one = mine.current_nominal, 1.6 * mine.current_limit, (self.element,)
        self.optimum = SymmetricOptimum.of(mine.facts(), PERIOD, CURRENT_TIME, self.limit)
        self.spec = self.specified(
            (Signal("current", one, "A", "rotor", (-most,), (most,), noise=(mine.current_noise,)),),
            Command(
                "current_target", one, "A", "rotor", (-self.limit,), (self.limit,), safe=(0.0,),
                law=CurrentLaw(1.0 / (2 * 3.141592653589793 * CURRENT_TIME)),
            ),
            {"current_time": Range.fixed(0.7, 2.0, unit="×")},
        )  # fmt: skip

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> CurrentDrive:
        self.require_device(device)
        return CurrentDrive(self.card, n, PERIOD, CURRENT_TIME, device)

    def privileged(self, truth: Tensors, parameters: DriveParameters) -> Any:
        nominal = self.card
        factors = [
            parameters.inertia / nominal.inertia - 1.0,
            parameters.torque_factor / nominal.torque_factor - 1.0,
            parameters.current_time / CURRENT_TIME - 1.0,
            parameters.load / (nominal.torque_factor * self.limit),
        ]
        seen = [truth["rotor_speed"] / nominal.speed_max, truth["rotor_speed_setpoint"] / nominal.speed_max]
        seen += [truth["current"] / self.limit, truth["pending_current"] / self.limit, truth["elapsed"]]
        return torch.cat([*seen, torch.stack(factors, -1)], -1)


class PmsmSpeed(CurrentSpeed):
    """Of a synchronous machine, by its current in q."""

    name = "pmsm-speed"
    summary = "follow a speed with a synchronous machine whose drive keeps a current, at 1 kHz"
    card_type = PmsmCard
    robot = "traction_pmsm"
    element = "q"


class DcSpeed(CurrentSpeed):
    """Of a geared DC motor, at the motor's shaft."""

    name = "dc-speed"
    summary = "follow a speed with a geared DC motor whose drive keeps a current, at 1 kHz"
    card_type = DcCard
    robot = "gearmotor_37d"
    element = "armature"
