"""Following a speed at 2 kHz with a brushless motor by the duty of its six-step commutation, with Hall sensors alone.

Set-points, loads and what the policy corrects are those of the other speed tasks (``speed``). The measured speed is
that between edges of the Hall sensors: at low speed it is late, and it is 0 until the second edge in one direction.
There is no loop of the current. In its place a window keeps the duty, by the measured speed and bus voltage, where at
most twice the nominal current would flow; an episode fails when a phase's current passes the inverter's limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command, Envelope, Signal
from robo_rl.controllers.motor.speed import DutyPI, DutyWindow, SymmetricOptimum
from robo_rl.sim.plants.motor.six_step import HALLS, PULSE, SIX_STEPS, SixStepDrive, SixStepParameters
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.motor import BldcCard
from robo_rl.sim.tasks import Tensors
from robo_rl.sim.tasks.motor.speed import MotorSpeed

PERIOD = 5e-4  # s
OVERLOAD = 2.0
"""Of the nominal current: what the window allows for a short time."""
HALL_DELAY = 2e-4
"""s, of the speed by Hall sensors at half of the top speed of a motor with 8 pole pairs: half of the time between
edges; the classical controller counts it as a delay."""


class BldcSpeed(MotorSpeed[SixStepDrive]):
    """See the module's text."""

    name = "bldc-speed"
    summary = "follow a speed with a brushless motor in six-step commutation, by its duty and Hall sensors, at 2 kHz"
    card_type = BldcCard
    robot = "ec45_flat"
    period = PERIOD
    reach = 0.6
    correction = 0.25
    commanded = "duty"
    true_speed = "shaft_speed"
    factors = ("torque_factor", "inertia", "friction", "dry_friction", "resistance", "inductance", "supply_voltage")
    perturbed = ("inertia", "torque_factor", "load", "resistance", "supply_voltage", "noise")
    observation_size = 10

    def __init__(self, card: BldcCard | None = None) -> None:
        self.card = mine = card or load_robot(self.robot, BldcCard)
        self.limit, most, high = 1.0, 1.6 * mine.current_limit, 1.5 * mine.supply_voltage
        current_time = mine.inductance / mine.resistance + HALL_DELAY
        self.optimum = SymmetricOptimum.of(mine.facts(), PERIOD, current_time, self.limit)
        self.window = DutyWindow.of(mine.facts(), OVERLOAD * mine.current_nominal)
        self.spec = self.specified(
            (
                Signal("current", ("bridge",), "A", "stator", (-most,), (most,), noise=(mine.current_noise,)),
                Signal("bus_voltage", ("dc_link",), "V", "inverter", (0.0,), (high,), noise=(2e-3 * high,)),
            ),
            Command("duty", ("bridge",), "1", "stator", (-1.0,), (1.0,), safe=(0.0,)),
            {
                "resistance": Range.fixed(0.9, 1.3, unit="×"),
                "inductance": Range.fixed(0.8, 1.2, unit="×"),
                "dead_time": Range.fixed(0.0, 1.0, unit="×"),
                "hall_offset": Range.fixed(-0.01, 0.01, unit="turn"),
                "angle": Range.fixed(0.0, 0.999, unit="turn"),
            },
            envelope=(Envelope("current", norm=mine.current_limit + 5.0 * mine.current_noise),),
            facts={
                "duty": {
                    "meaning": "mean voltage between the two conducting phases over the bus voltage; both half bridges "
                    "switch, complementary and in opposite directions; acts in the next control period",
                    "stop": "all half bridges off; a duty of 0 in their place shorts two windings",
                    "pwm_period": PULSE,
                },
                "commutation": {"halls": list(HALLS), "phases": [list(step) for step in SIX_STEPS]},
                "current": {"meaning": "of the two conducting phases, in the direction in which the duty drives"},
            },
        )

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> SixStepDrive:
        self.require_device(device)
        return SixStepDrive(self.card, n, PERIOD, device)

    def controller(self) -> DutyPI:
        return DutyPI(self.optimum, self.window)

    def randomize(self, plant: SixStepDrive, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        super().randomize(plant, ids, drawn)
        plant.param("dead_time")[ids] = self.card.dead_time * drawn["dead_time"]
        plant.param("hall_offset")[ids] = drawn["hall_offset"]

    def place(self, plant: SixStepDrive, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        super().place(plant, ids, drawn, goal)
        plant.current.turn[ids] = drawn["angle"][:, None]
        plant.current.bus_voltage[ids] = (self.card.supply_voltage * drawn["supply_voltage"])[:, None]

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        bus = signals["bus_voltage"] * (1.0 / self.card.supply_voltage) - 1.0
        return torch.cat([super().observe(signals, memory), bus], -1)

    def limited(self, wanted: Any, signals: Tensors) -> Any:
        return self.window.within(wanted, signals["rotor_speed"], signals["bus_voltage"], torch)

    def failures(self, truth: Tensors) -> dict[str, Any]:
        over = truth["phase_current"].abs().amax(-1) > self.card.current_limit
        return {**super().failures(truth), "over_limit": over}

    def privileged(self, truth: Tensors, parameters: SixStepParameters) -> Any:
        card = self.card
        factors = [
            parameters.inertia / card.inertia - 1.0,
            parameters.torque_factor / card.torque_factor - 1.0,
            parameters.resistance / card.resistance - 1.0,
            parameters.load / (card.torque_factor * card.current_nominal),
        ]
        seen = [truth[name] / card.speed_max for name in ("shaft_speed", "rotor_speed", "rotor_speed_setpoint")]
        seen += [truth["current"] / card.current_nominal, truth["pending_duty"], truth["elapsed"]]
        seen += [truth["bus_voltage"] / card.supply_voltage - 1.0]
        return torch.cat([*seen, torch.stack(factors, -1)], -1)
