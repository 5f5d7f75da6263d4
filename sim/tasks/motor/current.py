"""Following a current in d and q with a synchronous machine, at 10 kHz, without ever passing the current's limit.

The set-points are steps every 15 ms, or waves; the machine turns with any speed, and the supply, the inverter's dead
time, the magnets, resistance, inductances and their saturation differ between episodes. Set-points that the voltage
can't hold at that speed are shortened, so that the error tells of the control alone; the policy shortens what it is
given likewise, by the measured speed and bus voltage.

The policy corrects what deadbeat control with a disturbance observer would do, in the graph, by up to a quarter of the
voltage; an untrained one is that controller. After it comes a guard: where the current two periods on, predicted with
inductances at the least that was drawn, would come near the limit, the voltage is changed so that it does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command, Envelope, Safety, Signal, StateBlock
from robo_rl.controllers.motor.current import FILTERED, Deadbeat, FieldOriented, observed
from robo_rl.controllers.motor.model import Pair, PmsmModel
from robo_rl.sim.drawing import Marker
from robo_rl.sim.plants.motor.pmsm import TINY, PmsmOnBench, PmsmParameters, begin, within_circle
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.motor import PmsmCard
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors
from robo_rl.sim.tasks.motor.dials import plane

PERIOD = 1e-4  # s
STEPS, BETWEEN = 4, 0.015
"""Set-points of an episode, and s from one to the next."""
FASTEST = 50.0
"""Hz, of waves."""
FARTHEST = 1.25
"""Of the nominal current: the length of the longest set-point."""
SHOWN = 0.6
"""Of the nominal current: what a pointer shows as long as its disc is wide; most set-points are shorter."""
FEASIBLE = 0.65
"""Of the voltage: what a set-point may take in a steady state with the card's figures; the rest is for drawn ones."""
HELD = 0.7
"""Of the measured voltage: what the policy lets a set-point take in a steady state."""
CORRECTION = 0.25
"""Of the voltage that the nominal supply can give: by how much the policy may correct deadbeat control."""
LEAST_INDUCTANCE = 0.7
"""Of the card's: the least that is drawn."""
STRETCH = 2.5
"""How many times as far as predicted a current may go in two periods, where inductance is least and saturated."""
GUARDED = 0.88
"""Of the current's limit, to which the guard keeps the predicted current; the rest is for noise and wrong models."""
KEPT = 0.75
"""Of the measured voltage: what the guard lets the predicted current take in a steady state, to be able to return."""
MOST_DISTURBANCE = 0.5
"""Of the voltage: what the observer holds at most."""
DQ = ("d", "q")
FINE = 0.04
"""Of the nominal current, on which small errors are seen."""


class PmsmCurrent(Task[PmsmOnBench]):
    """See the module's text."""

    name = "pmsm-current"
    summary = "follow a current in d and q with a synchronous machine, within its limit, at 10 kHz"
    card_type = PmsmCard
    robot = "traction_pmsm"
    algorithms = ("apg", "ppo")
    measures = (Measure("current_error", "A", "mean", seconds=0.0),)
    perturbed = ("inductance_d", "inductance_q", "saturation", "dead_time", "supply_voltage", "speed", "noise")
    observation_size = 16
    action_size = 2
    goal_size = 2 * STEPS + 8 + 4
    expected = 0.999
    update_scale = 6.0
    settings = {
        "apg": {"environments": 256, "horizon": 40, "learning_rate": 0.008, "hidden": (32, 32)},
        "ppo": {"environments": 512, "horizon": 64, "hidden": (32, 32), "gamma": 0.9},
    }
    weights = {"error": -1.0, "beyond": -20.0}

    def __init__(self, card: PmsmCard | None = None) -> None:
        self.card = card = card or load_robot(self.robot, PmsmCard)
        self.model = PmsmModel.of(card.facts(), PERIOD)
        most = 1.3 * card.voltage_max
        one, both = ("shaft",), (1.6 * card.current_limit,) * 2
        fast, high = 1.5 * card.speed_max, 1.5 * card.supply_voltage
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=STEPS * BETWEEN,
            signals=(
                Signal("current", DQ, "A", "rotor", tuple(-x for x in both), both, noise=(card.current_noise,) * 2),
                Signal("rotor_speed", one, "rad/s", "stator", (-fast,), (fast,), noise=(card.speed_noise,)),
                Signal("bus_voltage", ("dc_link",), "V", "inverter", (0.0,), (high,), noise=(2e-3 * high,)),
                Signal("current_setpoint", DQ, "A", "rotor", tuple(-x for x in both), both, source="operator"),
            ),
            commands=(Command("voltage", DQ, "V", "rotor", (-most,) * 2, (most,) * 2, safe=(0.0, 0.0)),),
            memory=(
                StateBlock("applied", (2,), (0.0, 0.0)),
                StateBlock("predicted", (2,), (0.0, 0.0)),
                StateBlock("disturbance", (2,), (0.0, 0.0)),
                StateBlock("setpoint", (2,), (0.0, 0.0)),
            ),
            safety=Safety(
                signal_timeout=3 * PERIOD,
                on_fault="stop",
                envelope=(Envelope("current", norm=card.current_limit + 5.0 * card.current_noise),),
            ),
            reward=dict(self.weights),
            ranges={
                "reference/kind": Range.fixed(0.0, 1.0),
                "reference/steps": Range.fixed(-1.0, 1.0, count=2 * STEPS, unit="×"),
                "reference/waves": Range.fixed(0.0, 1.0, count=8),
                "speed": Range.fixed(-1.0, 1.0, unit="×"),
                "acceleration": Range.fixed(-500.0, 500.0, unit="rad/s^2"),
                "angle": Range.fixed(-math.pi, math.pi, unit="rad"),
                "resistance": Range.fixed(0.9, 1.5, unit="×"),
                "inductance_d": Range.fixed(LEAST_INDUCTANCE, 1.3, unit="×"),
                "inductance_q": Range.fixed(LEAST_INDUCTANCE, 1.3, unit="×"),
                "flux": Range.fixed(0.9, 1.1, unit="×"),
                "saturation": Range.fixed(0.0, 0.4),
                "dead_time": Range.fixed(0.0, 1.0, unit="×"),
                "supply_voltage": Range.fixed(0.85, 1.15, unit="×"),
                "current_offset": Range.fixed(-0.005, 0.005, count=2, unit="×"),
                "noise": Range.fixed(0.5, 1.5),
            },
            facts={
                "voltage": {
                    "meaning": "of the period after the next sampling, the angle advanced by 1.5 periods",
                    "stop": "all half bridges off; 0 V in their place is a zero vector, which shorts the windings",
                },
                "current": {"meaning": "amplitude-invariant, sampled where a period begins"},
            },
        )

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> PmsmOnBench:
        self.require_device(device)
        return PmsmOnBench(self.card, n, PERIOD, device)

    def controller(self) -> Deadbeat:
        return Deadbeat(self.card.facts(), PERIOD)

    def controllers(self) -> tuple[Any, ...]:
        facts = self.card.facts()
        return FieldOriented(facts, PERIOD), Deadbeat(facts, PERIOD, *FILTERED)

    # --- an episode ---------------------------------------------------------------------------------------------

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        kind, speed = drawn["reference/kind"], self.card.speed_max * drawn["speed"]
        rest = torch.stack([kind, speed, drawn["acceleration"], drawn["supply_voltage"]], -1)
        return torch.cat([drawn["reference/steps"], drawn["reference/waves"], rest], -1)

    def randomize(self, plant: PmsmOnBench, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        for name in ("resistance", "inductance_d", "inductance_q", "flux", "supply_voltage"):
            plant.param(name)[ids] = getattr(plant.nominal, name) * drawn[name]
        plant.param("saturation")[ids] = drawn["saturation"]
        plant.param("dead_time")[ids] = self.card.dead_time * drawn["dead_time"]
        plant.param("acceleration")[ids] = drawn["acceleration"]
        plant.param("current_offset")[ids] = self.card.current_nominal * drawn["current_offset"]

    def place(self, plant: PmsmOnBench, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        speed, bus = self.card.speed_max * drawn["speed"], self.card.supply_voltage * drawn["supply_voltage"]
        begin(plant.current, ids, speed, drawn["angle"], bus)

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        speed, change, supply = goal[:, -3], goal[:, -2], goal[:, -1]
        by_steps = [goal[:, k] for k in (0, 1)]
        for place in range(1, STEPS):
            later = time >= place * BETWEEN - 0.5 * PERIOD
            by_steps = [torch.where(later, goal[:, 2 * place + k], by_steps[k]) for k in (0, 1)]
        waves = goal[:, 2 * STEPS : 2 * STEPS + 8]
        by_waves = [
            0.5 * sum(
                torch.sin((2 * math.pi) * (FASTEST * waves[:, i] * time + waves[:, i + 1])) for i in (4 * k, 4 * k + 2)
            )
            for k in (0, 1)
        ]  # fmt: skip
        steps = goal[:, -4] < 0.5
        nominal = self.card.current_nominal
        wanted = tuple(nominal * torch.where(steps, a, b) for a, b in zip(by_steps, by_waves, strict=True))
        omega = self.model.pole_pairs * (speed + change * time)
        wanted = within_circle(wanted, FARTHEST * nominal)  # type: ignore[arg-type]
        held = self.feasible(wanted, omega, (FEASIBLE * self.card.voltage_max) * supply)
        return {"current_setpoint": torch.stack(held, -1)}

    def feasible(self, current: Pair, omega: Any, voltage: Any) -> Pair:
        """(n,) A each: a current, shortened to what a ``voltage`` (n,) holds at a speed."""
        m = self.model
        (x, y), back = m.drop(current, omega), omega * m.flux
        y = y - back
        a, b = x * x + y * y + TINY, y * back
        rest = torch.clamp(voltage * voltage - back * back, min=TINY)
        share = torch.clamp((torch.sqrt(b * b + a * rest) - b) / a, 0.0, 1.0)
        return current[0] * share, current[1] * share

    # --- on the robot ---------------------------------------------------------------------------------------------

    def seen(self, signals: Tensors, memory: Tensors) -> tuple[Pair, Pair, Any, Pair, Pair]:
        """Measured current, set-point, electrical speed, the current a period on, and the disturbance."""
        current, goal = (tuple(signals[name].unbind(-1)) for name in ("current", "current_setpoint"))
        omega = self.model.pole_pairs * signals["rotor_speed"][:, 0]
        most = (HELD / math.sqrt(3.0)) * signals["bus_voltage"][:, 0]
        goal = self.feasible(within_circle(goal, FARTHEST * self.card.current_nominal), omega, most)
        state = tuple(x * scale for name, scale in self.scales.items() for x in memory[name].unbind(-1))
        ahead, disturbance = observed(self.model, current, omega, state[:6])
        most = MOST_DISTURBANCE * self.card.voltage_max
        bounded = tuple(torch.clamp(x, -most, most) for x in disturbance)
        return current, goal, omega, ahead, bounded  # type: ignore[return-value]

    @property
    def scales(self) -> dict[str, float]:
        """By block of memory: the V or A that its 1 stands for."""
        volt, ampere = self.card.voltage_max, self.card.current_nominal
        return {"applied": volt, "predicted": ampere, "disturbance": volt, "setpoint": ampere}

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        current, goal, omega, ahead, disturbance = self.seen(signals, memory)
        card = self.card
        fine, volt = FINE * card.current_nominal, 1.0 / card.voltage_max
        predicted = (card.current_nominal * memory["predicted"]).unbind(-1)
        last = (card.current_nominal * memory["setpoint"]).unbind(-1)
        error = [g - x for g, x in zip(goal, ahead, strict=True)]
        off = [(i - x) * (0.5 / fine) for i, x in zip(current, predicted, strict=True)]
        parts = [
            *[e * (2.0 / card.current_nominal) for e in error],
            *[e / (fine + torch.abs(e)) for e in error],
            *[x / (1.0 + torch.abs(x)) for x in off],
            *[x * (1.0 / card.current_nominal) for x in ahead],
            *[x * (10.0 * volt) for x in disturbance],
            *memory["applied"].unbind(-1),
            *[(new - old) / (fine + torch.abs(new - old)) for new, old in zip(goal, last, strict=True)],
            omega * (1.0 / (card.pole_pairs * card.speed_max)),
            signals["bus_voltage"][:, 0] * (1.0 / card.supply_voltage) - 1.0,
        ]
        return torch.stack(parts, -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        """The correction alone; ``act`` adds it to deadbeat control's voltage."""
        return {"voltage": (CORRECTION * self.card.voltage_max) * torch.tanh(action)}

    def act(
        self, action: Any, signals: Tensors, memory: Tensors, limit: Callable[[str, Any], Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        current, goal, omega, ahead, disturbance = self.seen(signals, memory)
        base = self.model.deadbeat(ahead, goal, omega)
        added = self.command(action, memory)["voltage"].unbind(-1)
        wanted = tuple(b - d + a for b, d, a in zip(base, disturbance, added, strict=True))
        most = signals["bus_voltage"][:, 0] * (1.0 / math.sqrt(3.0))
        wanted = within_circle(wanted, most)
        voltage = within_circle(self.guarded(wanted, current, ahead, disturbance, omega, most), most)
        commands = {"voltage": torch.stack(voltage, -1)}
        if limit is not None:
            commands = {name: limit(name, value) for name, value in commands.items()}
        return commands, self.kept(commands, signals, ahead, disturbance)

    def guarded(self, voltage: Pair, current: Pair, ahead: Pair, disturbance: Pair, omega: Any, most: Any) -> Pair:
        """V: the voltage, changed where the current two periods on would come too near the limit, or be more than
        ``most`` (n,) V can hold there.

        The way from the measured current to the predicted one counts as ``STRETCH`` times as long.
        """
        acting = (voltage[0] + disturbance[0], voltage[1] + disturbance[1])
        after = self.model.predict(ahead, acting, omega)
        worst = tuple(i + STRETCH * (x - i) for i, x in zip(current, after, strict=True))
        kept = within_circle(worst, GUARDED * self.card.current_limit)
        kept = self.feasible(kept, omega, KEPT * most)
        change = tuple((k - w) * (1.0 / STRETCH) for k, w in zip(kept, worst, strict=True))
        added = self.model.needed(change, omega)
        return voltage[0] + added[0], voltage[1] + added[1]

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        _, _, _, ahead, disturbance = self.seen(signals, memory)
        return self.kept(commands, signals, ahead, disturbance)

    def kept(self, commands: Tensors, signals: Tensors, ahead: Pair, disturbance: Pair) -> dict[str, Any]:
        """The memory."""
        now = {
            "applied": commands["voltage"], "predicted": torch.stack(ahead, -1),
            "disturbance": torch.stack(disturbance, -1), "setpoint": signals["current_setpoint"],
        }  # fmt: skip
        return {name: value * (1.0 / self.scales[name]) for name, value in now.items()}

    # --- what is learnt ---------------------------------------------------------------------------------------------

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        nominal = self.card.current_nominal
        error = (truth["stator_current"] - truth["current_setpoint"]) * (1.0 / nominal)
        length = torch.sqrt(truth["stator_current"].square().sum(-1) + 1e-6)
        beyond = torch.clamp(length * (1.0 / self.card.current_limit) - GUARDED, min=0.0)
        return {"error": torch.sqrt(error.square() + 1e-6).mean(-1) * 10.0, "beyond": beyond}

    def measured_reward(self, signals: Tensors, memory: Tensors) -> Any:
        error = (signals["current"] - signals["current_setpoint"]) * (10.0 / self.card.current_nominal)
        return -torch.abs(error).mean(-1)

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the true current is from its set-point, the mean of d and q (A)."""
        return {"current_error": (truth["stator_current"] - truth["current_setpoint"]).abs().mean(-1)}

    def failed(self, truth: Tensors) -> Any:
        return truth["stator_current"].square().sum(-1) > self.card.current_limit**2

    def failures(self, truth: Tensors) -> dict[str, Any]:
        return {"over_limit": self.failed(truth)}

    def markers(self, truth: Tensors) -> list[Marker]:
        """The current and its set-point in the rotor's frame."""
        most = SHOWN * self.card.current_nominal
        return plane("current", truth["stator_current"], truth["current_setpoint"], most)

    def privileged(self, truth: Tensors, parameters: PmsmParameters) -> Any:
        card, nominal = self.card, self.model
        factors = [
            parameters.resistance / nominal.resistance - 1.0,
            parameters.inductance_d / nominal.inductance_d - 1.0,
            parameters.inductance_q / nominal.inductance_q - 1.0,
            parameters.flux / nominal.flux - 1.0,
            parameters.saturation,
            parameters.dead_time / max(card.dead_time, 1e-9),
        ]
        seen = [
            truth["stator_current"] / card.current_nominal,
            truth["current_setpoint"] / card.current_nominal,
            truth["pending_voltage"] / card.voltage_max,
            truth["rotor_speed"] / card.speed_max,
            truth["bus_voltage"] / card.supply_voltage - 1.0,
            truth["rotor"],
        ]
        return torch.cat([*seen, torch.stack(factors, -1)], -1)
