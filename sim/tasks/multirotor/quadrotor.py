"""Quadrotor tasks: hover at a point, and follow a moving one, with single rotor speeds as commands.

After Eschmann et al. 2024, Learning to Fly in Seconds: the policy reads position, attitude and velocities and
commands the speed of every rotor; its memory holds its own last commands, which stand in for the rotor speeds
that it can't measure. Two things are added. Vectors are observed in the vehicle's heading frame, so that it
flies alike whichever way it points; and memory holds an integral of the position error, so that a wrong mass
or a steady push does not leave it beside its set-point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command, Safety, Signal, StateBlock
from robo_rl.controllers.multirotor import GeometricController
from robo_rl.controllers.rotation import body_z, heading, turn_back
from robo_rl.sim.drawing import GREEN, Marker, Sphere, Trail
from robo_rl.sim.engines import Engine
from robo_rl.sim.plants.multirotor import MultirotorParameters, MultirotorPlant
from robo_rl.sim.ranges import Range, Rule
from robo_rl.sim.robots.multirotor import GRAVITY, MultirotorCard, load_multirotor
from robo_rl.sim.tasks import Measure, Spec, Task, Tensors, any_of

XYZ = ("x", "y", "z")
PERIOD = 0.01  # s
DELAY = (0.0, 0.02)  # s, of the state estimate
HISTORY = 8  # past commands in memory
INTEGRAL_GAIN = 10.0  # 1/(m s): the integral saturates after 0.1 m s
INTEGRATED = 0.05  # m: a larger error counts as this much in the integral, which is not for the way there
FAR = 1.0  # m, from the set-point, beyond which a flight has failed
AT = 0.05  # m: within this distance the last centimetres count

FIGURE_EIGHT = {
    "goal/size": 1.0,
    "goal/width": 0.5,
    "goal/height": 0.0,
    "goal/period": 5.5,
    "goal/step": 0.0,
    "initial/tilt": 0.0,
    "initial/yaw": 0.0,
    "initial/position": 0.0,
    "initial/linear_velocity": 0.0,
    "initial/angular_velocity": 0.0,
}
"""Ranges of quadrotor-track fixed to the figure-eight of Eschmann et al. 2024: 2 m by 1 m in 5.5 s."""


def signals(card: MultirotorCard) -> tuple[Signal, ...]:
    """Ranges are what estimators and sensors can report; noise is that of a good state estimator."""
    rate = card.gyroscope_range
    return (
        Signal("position", XYZ, "m", "world", (-100.0,) * 3, (100.0,) * 3, noise=(0.002,) * 3, delay=DELAY),
        Signal(
            "orientation", (*XYZ, "w"), "1", "body to world", (-1.01,) * 4, (1.01,) * 4,
            kind="quaternion", noise=(0.002,) * 4, delay=DELAY,
        ),
        Signal("linear_velocity", XYZ, "m/s", "world", (-50.0,) * 3, (50.0,) * 3, noise=(0.01,) * 3, delay=DELAY),
        Signal("angular_velocity", XYZ, "rad/s", "body", (-rate,) * 3, (rate,) * 3, noise=(0.02,) * 3, delay=DELAY),
        Signal("position_setpoint", XYZ, "m", "world", (-100.0,) * 3, (100.0,) * 3, source="operator"),
        Signal("linear_velocity_setpoint", XYZ, "m/s", "world", (-50.0,) * 3, (50.0,) * 3, source="operator"),
    )  # fmt: skip


def physical_ranges(card: MultirotorCard) -> dict[str, Range]:
    """Randomization of the vehicle. The first eight ranges are factors on the card's figures."""
    weight = card.mass * GRAVITY
    return {
        "mass": Range.fixed(0.9, 1.1, unit="×"),
        "inertia": Range.fixed(0.4, 1.8, unit="×"),  # published for the Crazyflie: 3.85e-6 to 1.66e-5 kg m²
        "thrust": Range.fixed(0.9, 1.1, unit="×"),
        "thrust_of_one_rotor": Range.fixed(0.95, 1.05, count=len(card.rotors), unit="×"),
        "torque_ratio": Range.fixed(0.7, 1.2, unit="×"),
        "rise_time": Range.fixed(0.37, 1.1, unit="×"),  # published for the Crazyflie: 0.0555 to 0.15 s
        "fall_time": Range.fixed(0.7, 1.7, unit="×"),  # published for the Crazyflie: 0.15 to 0.25 s
        "rotor_inertia": Range.fixed(0.0, 1.5, unit="×"),
        "force": Range.fixed(-weight / 20, weight / 20, count=3, unit="N"),  # Learning to Fly: standard deviation mg/20
        "torque": Range.fixed(-weight / 10000, weight / 10000, count=3, unit="N*m"),  # Learning to Fly: mg/10000
        "wind": Range.fixed(-1.0, 1.0, count=3, unit="m/s"),
        "delay": Range.fixed(*DELAY, unit="s"),
        "noise": Range.fixed(1.0, 1.0, unit="×"),
    }


def initial_ranges() -> dict[str, Range]:
    """Initial states, relative to the set-point."""
    return {
        "initial/tilt": Range((0.0, math.pi / 3), (0.0, math.pi / 2), unit="rad"),
        "initial/direction": Range.fixed(-math.pi, math.pi, unit="rad"),
        "initial/yaw": Range.fixed(-math.pi, math.pi, unit="rad"),
        "initial/position": Range.fixed(-0.2, 0.2, count=3, unit="m"),
        "initial/linear_velocity": Range.fixed(-1.0, 1.0, count=3, unit="m/s"),
        "initial/angular_velocity": Range.fixed(-1.0, 1.0, count=3, unit="rad/s"),
        "initial/rotor_speed": Range.fixed(0.75, 1.2, unit="× hover speed"),
    }


class QuadrotorHover(Task[MultirotorPlant]):
    """Fly to a fixed point from any attitude up to 90 degrees of tilt, and stay there, nose along world x."""

    name = "quadrotor-hover"
    summary = "hover at a point, from any tilt up to 90 degrees"
    card_type = MultirotorCard
    algorithms = ("apg", "ppo")
    devices: tuple[str, ...] = ("cpu", "cuda")
    goal_size = 3
    measures: tuple[Measure, ...] = (Measure("position_error", "m", "end"), Measure("tracking_error", "m", "rms"))
    perturbed: tuple[str, ...] = ("mass", "thrust", "inertia", "rise_time", "delay", "wind", "noise")
    near = 0.2
    """Distance (m) within which the reward becomes steep."""
    period = PERIOD
    weights = {
        "alive": 1.0,
        "near": -0.3,
        "at": -0.1,
        "far": -4.0,
        "tilt": -0.4,
        "heading": -0.08,
        "linear_velocity": -0.1,
        "angular_velocity": -0.008,
        "command_change": -0.3,
    }

    def __init__(self, card: MultirotorCard | None = None) -> None:
        card = card or load_multirotor("crazyflie")
        rotors = card.rotor_names
        count = len(rotors)
        self.card, self.action_size = card, count
        self.observation_size = 17 + HISTORY * count
        self.top = card.rotor_speed_max
        # tanh maps actions to 0 … top speed; the offset makes a zero action hover
        self.hover = 2 * card.hover_speed / self.top - 1
        self.offset = math.atanh(self.hover)
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=self.period,
            episode_length=5.0,
            signals=signals(card),
            commands=(
                Command("rotor_speed", rotors, "rad/s", "rotor", (0.0,) * count, (self.top,) * count, (0.0,) * count),
            ),
            memory=self.memory_blocks(count),
            safety=Safety(signal_timeout=0.02, on_fault="controller"),
            reward=dict(self.weights),
            ranges={**initial_ranges(), **physical_ranges(card), **self.goal_ranges()},
            rules=(Rule("initial/tilt", metric="survived", up=0.5, down=0.5, step=0.25),),
            facts=self.facts(),
        )

    def facts(self) -> dict[str, Any]:
        """What the contract tells of the task."""
        card = self.card
        return {
            "references": {
                "position": "of the centre of mass; world z is up, and the nose is to point along world x",
                "position_setpoint": "where the centre of mass is to be",
                "linear_velocity_setpoint": "how fast the set-point moves",
            },
            "rotor_speed_at_hover": card.hover_speed,
            "rotor_inertia": card.rotor_inertia,
            "drag": {"in_plane": card.rotor_drag[0], "axial": card.rotor_drag[1], "body": card.body_drag},
            "success": {"within_m": FAR, "turning_slower_than_rad_s": card.gyroscope_range, "when": "all the time"},
        }

    def memory_blocks(self, rotors: int) -> tuple[StateBlock, ...]:
        """What a policy remembers."""
        return (
            StateBlock("command_history", (HISTORY, rotors), (0.0,) * (HISTORY * rotors)),
            StateBlock("position_error_integral", (3,), (0.0,) * 3),
        )

    def goal_ranges(self) -> dict[str, Range]:
        """Ranges of the goal: here none, the set-point is the origin."""
        return {}

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """The goal (m, goal_size) of episodes, from draws: here a fixed point, (x, y, z) in m."""
        return torch.zeros(len(drawn["mass"]), 3, device=drawn["mass"].device)

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {"position_setpoint": goal, "linear_velocity_setpoint": goal * 0.0}

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> MultirotorPlant:
        return MultirotorPlant(self.card, n, self.spec.control_period, device)

    def engines(self) -> list[Engine]:
        from robo_rl.sim.plants.multirotor.mujoco import FlyingMujoco

        period = self.spec.control_period
        return [Engine("mujoco", "MuJoCo at 1 ms", lambda n: FlyingMujoco(self.card, n, period))]

    def controller(self) -> GeometricController:
        return GeometricController(self.card.airframe, self.spec.control_period)

    def randomize(self, plant: MultirotorPlant, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        nominal = plant.nominal
        parameters = {
            "mass": nominal.mass * drawn["mass"],
            "inertia": nominal.inertia * drawn["inertia"][:, None],
            "thrust_scale": drawn["thrust"][:, None] * drawn["thrust_of_one_rotor"],
            "torque_ratio": nominal.torque_ratio * drawn["torque_ratio"][:, None],
            "rise_time": nominal.rise_time * drawn["rise_time"],
            "fall_time": nominal.fall_time * drawn["fall_time"],
            "rotor_inertia": nominal.rotor_inertia * drawn["rotor_inertia"],
            "force": drawn["force"],
            "torque": drawn["torque"],
            "wind": drawn["wind"],
        }
        for name, value in parameters.items():
            plant.param(name)[ids] = value

    def place(self, plant: MultirotorPlant, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        start = self.reference(torch.zeros_like(drawn["mass"]), goal)
        state = plant.current
        state.position[ids] = start["position_setpoint"] + drawn["initial/position"]
        state.linear_velocity[ids] = start["linear_velocity_setpoint"] + drawn["initial/linear_velocity"]
        state.angular_velocity[ids] = drawn["initial/angular_velocity"]
        state.rotor_speed[ids] = self.card.hover_speed * drawn["initial/rotor_speed"][:, None]
        state.orientation[ids] = attitude(drawn["initial/tilt"], drawn["initial/direction"], drawn["initial/yaw"])

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        q = signals["orientation"].split(1, -1)
        cosine, sine = heading(q)
        error = torch.clamp(signals["position"] - signals["position_setpoint"], -1.0, 1.0)
        velocity = torch.clamp(signals["linear_velocity"] - signals["linear_velocity_setpoint"], -3.0, 3.0)
        world = torch.cat([2.0 * error, 0.5 * velocity, memory["position_error_integral"], *body_z(q)], -1)
        x, y, z = world.reshape(-1, 4, 3).split(1, -1)
        turned = torch.cat(turn_back((x, y, z), cosine[:, None], sine[:, None]), -1).flatten(1)
        history = memory["command_history"].flatten(1)
        return torch.cat([turned, cosine, sine, 0.1 * signals["angular_velocity"], history], -1)

    def command(self, action: Any, memory: Tensors | None = None) -> dict[str, Any]:
        speed = (0.5 * self.top) * (1 + torch.tanh(action + self.offset))
        return {"rotor_speed": torch.clamp(speed, 0.0, self.top)}

    def scaled(self, commands: Tensors) -> Any:
        """(n, k) commands, of about unit size, and zero at hover."""
        return commands["rotor_speed"] * (2 / self.top) - (1 + self.hover)

    def command_change(self, commands: Tensors, previous: Tensors) -> Any:
        """(n, k) as parts of the ranges of the commands."""
        return (commands["rotor_speed"] - previous["rotor_speed"]) / self.top

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        newest = self.scaled(commands)
        history = torch.cat([newest[:, None], memory["command_history"][:, :-1]], 1)
        error = torch.clamp(signals["position"] - signals["position_setpoint"], -INTEGRATED, INTEGRATED)
        integral = memory["position_error_integral"] + (INTEGRAL_GAIN * self.period) * error
        return {"command_history": history, "position_error_integral": torch.clamp(integral, -1.0, 1.0)}

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        error = (truth["position"] - truth["position_setpoint"]).square().sum(-1)
        velocity = truth["linear_velocity"] - truth["linear_velocity_setpoint"]
        x, y, z, w = truth["orientation"].unbind(-1)
        change = self.command_change(commands, previous)
        return {
            "alive": torch.ones_like(error),
            "near": torch.log(1 + error / self.near**2),  # steep near the set-point, flat far away
            "at": error / (error + AT**2),  # steep at the set-point, where "near" is flat, and constant elsewhere
            "far": error**3,  # steep towards the metre at which a flight has failed
            "tilt": x * x + y * y,  # sin² of half the tilt
            "heading": z * z / (z * z + w * w + 1e-4),  # sin² of half the yaw
            "linear_velocity": velocity.square().sum(-1),
            "angular_velocity": truth["angular_velocity"].square().sum(-1),
            "command_change": change.square().sum(-1),
        }

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """Distance from the set-point, m, as position and as tracking error."""
        distance = (truth["position"] - truth["position_setpoint"]).norm(dim=-1)
        return {"position_error": distance, "tracking_error": distance}

    def markers(self, truth: Tensors) -> list[Marker]:
        """The set-point and its path, and the vehicle's."""
        target, size = truth["position_setpoint"], self.card.arm
        return [
            Sphere("set-point", target, 0.3 * size),
            Trail("path of the set-point", target, None, (*GREEN[:3], 0.45)),
            Trail("path of the vehicle", truth["position"]),
        ]

    def failed(self, truth: Tensors) -> Any:
        return any_of(self.failures(truth))

    def failures(self, truth: Tensors) -> dict[str, Any]:
        error = (truth["position"] - truth["position_setpoint"]).square().sum(-1)
        return {
            "over 1 m from the set-point": error > FAR**2,
            "faster than the gyroscope": truth["angular_velocity"].abs().amax(-1) > self.card.gyroscope_range,
        }

    def privileged(self, truth: Tensors, parameters: MultirotorParameters) -> Any:
        error = truth["position"] - truth["position_setpoint"]
        velocity = truth["linear_velocity"] - truth["linear_velocity_setpoint"]
        weight = self.card.mass * GRAVITY
        return torch.cat(
            [
                2.0 * error,
                0.5 * velocity,
                truth["orientation"],
                0.1 * truth["angular_velocity"],
                truth["rotor_speed"] / self.top,
                parameters.thrust_scale - 1,
                parameters.force * (20 / weight),
                parameters.torque * (10000 / weight),
                parameters.wind,
                torch.stack(
                    [
                        parameters.mass / self.card.mass - 1,
                        parameters.inertia[:, 0] / self.card.inertia[0] - 1,
                        parameters.rise_time / self.card.rise_time - 1,
                        parameters.fall_time / self.card.fall_time - 1,
                    ],
                    -1,
                ),
            ],
            -1,
        )


class QuadrotorTrack(QuadrotorHover):
    """Follow a moving set-point: figure-eights of many sizes and speeds, with steps in between.

    The figure-eight is x = a sin φ, y = b sin 2φ, z = c sin φ with φ growing steadily (Eschmann et al. 2024 fly it
    with a = 1 m, b = 0.5 m in 5.5 s). A step moves all of it at once, at some time of the flight. Memory also holds
    the last velocity set-point, whose change is the acceleration that the robot is about to need.
    """

    name = "quadrotor-track"
    summary = "follow a moving set-point: figure-eights and steps"
    goal_size = 9
    update_scale = 6.0
    near = 0.1
    figure_eight = FIGURE_EIGHT
    weights = {**QuadrotorHover.weights, "near": -0.4, "tilt": -0.02, "angular_velocity": -0.004}

    def __init__(self, card: MultirotorCard | None = None) -> None:
        super().__init__(card)
        self.observation_size += 3

    def memory_blocks(self, rotors: int) -> tuple[StateBlock, ...]:
        return (*super().memory_blocks(rotors), StateBlock("last_velocity_setpoint", (3,), (0.0,) * 3))

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        cosine, sine = heading(signals["orientation"].split(1, -1))
        change = signals["linear_velocity_setpoint"] - memory["last_velocity_setpoint"]
        acceleration = torch.clamp(change / self.period, -10.0, 10.0)  # m/s²
        ahead = turn_back((0.2 * acceleration).split(1, -1), cosine, sine)
        return torch.cat([super().observe(signals, memory), *ahead], -1)

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        kept = {"last_velocity_setpoint": signals["linear_velocity_setpoint"] * 1.0}
        return {**super().remember(memory, signals, commands), **kept}

    def goal_ranges(self) -> dict[str, Range]:
        return {
            "goal/size": Range((0.0, 0.5), (0.0, 1.2), unit="m"),  # a
            "goal/width": Range.fixed(0.3, 0.7, unit="× size"),  # b / a
            "goal/height": Range.fixed(0.0, 0.3, unit="× size"),  # c / a
            "goal/period": Range((6.0, 9.0), (4.5, 9.0), unit="s"),
            "goal/phase": Range.fixed(0.0, 2 * math.pi, unit="rad"),
            "goal/step": Range.fixed(-0.3, 0.3, count=3, unit="m"),
            "goal/step_time": Range.fixed(1.0, 10.0, unit="s"),  # after the end means no step
        }

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 9): a, b, c in m, rate of φ in rad/s, φ at the start, step (x, y, z) in m, and its time in s."""
        size = drawn["goal/size"]
        shape = [size, size * drawn["goal/width"], size * drawn["goal/height"]]
        rate = 2 * math.pi / drawn["goal/period"]
        head = torch.stack([*shape, rate, drawn["goal/phase"]], -1)
        return torch.cat([head, drawn["goal/step"], drawn["goal/step_time"][:, None]], -1)

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        a, b, c, rate, phase, *step, step_time = goal.unbind(-1)
        angle = phase + rate * time
        stepped = torch.where(time > step_time, 1.0, 0.0)
        sine, cosine = torch.sin(angle), torch.cos(angle)
        position = [a * sine, 2 * b * sine * cosine, c * sine]
        velocity = [a * rate * cosine, 2 * b * rate * (2 * cosine * cosine - 1), c * rate * cosine]
        return {
            "position_setpoint": torch.stack([p + stepped * s for p, s in zip(position, step, strict=True)], -1),
            "linear_velocity_setpoint": torch.stack(velocity, -1),
        }


def attitude(tilt: Tensor, direction: Tensor, yaw: Tensor) -> Tensor:
    """Quaternions (n, 4) of a turn by ``yaw`` about world z, followed by a tilt by ``tilt``; all (n,) in rad.

    The tilt's axis is horizontal, at the angle ``direction`` + ``yaw`` / 2 from world x.
    """
    side, up = torch.sin(0.5 * tilt), torch.cos(0.5 * tilt)
    columns = [
        side * torch.cos(direction),
        side * torch.sin(direction),
        up * torch.sin(0.5 * yaw),
        up * torch.cos(0.5 * yaw),
    ]
    return torch.stack(columns, -1)
