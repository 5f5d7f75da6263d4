"""Walking: a robot on four legs follows commanded velocities on flat ground.

The policy sees what the robot measures: attitude (gravity's direction in the base frame), body rates, joint angles
and speeds; no velocity of the base. Memory holds the last joint angles and targets, from which that velocity can be
inferred, and a gait: a clock and the commanded velocity. They make a rough trot, which lifts diagonal feet in turn
and sweeps those on the ground backwards; the network adds to its joint targets what balance and exact tracking need
(after Iscen et al. 2018, Policies Modulating Trajectory Generators). The reward wants the feet as high as the clock
says (after Siekmann et al. 2021, Sim-to-Real Learning of All Common Bipedal Gaits via Periodic Reward Composition).
Rewards for tracking and for calm are those of Rudin et al. 2022, Learning to Walk in Minutes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from controllers.rotation import body_z, heading, turn_back
from robo_rl.contract import Command, Safety, Signal, StateBlock
from sim.ranges import Range
from sim.robots import LeggedCard, load_legged
from sim.tasks import Measure, Spec, Task, Tensors

XYZ = ("x", "y", "z")
PERIOD = 0.02  # s
DELAY = (0.0, 0.01)  # s, of the sensors
HISTORY = 3  # past joint angles and targets in memory
SCALE = 0.4  # rad, of the network's output
PACE = 2.0  # Hz, steps of each leg
LIFT = 0.07  # m, height of a foot in mid-swing
LEG = 0.27  # m, from hip to foot
SWEEP = 0.7  # of the way that a foot on the ground makes; the network adds the rest
PLACE = (0.19, 0.14)  # m, of the feet in front of or behind and beside the base's middle
FOLD = 0.22  # rad, of the thigh in mid-swing, and twice that of the calf: about LIFT for legs of two 0.213 m links
SEGMENT = 5.0  # s between changes of the commanded velocity
SEGMENTS = 5  # in an episode of 20 s that begins anywhere in the first
STILL = 0.1  # m/s and rad/s together, below which the robot stands
PUSHES = 2
PUSH_TIME = 0.1  # s
FOOT_RADIUS = 0.022  # m
RATE = 34.9  # rad/s, range of usual gyroscopes (2000 deg/s)


class FlatWalk(Task):
    """Walk on flat ground at commanded velocities up to ±1 m/s, ±0.6 m/s, ±1 rad/s, and stand when they are zero."""

    name = "go2-flat"
    summary = "walk on flat ground at commanded velocities"
    robot_kind = LeggedCard
    measures = (Measure("yaw_rate_error", "rad/s", "mean"), Measure("linear_velocity_error", "m/s", "mean"))
    perturbed = ("payload", "ground_friction", "strength", "stiffness", "command_delay", "delay", "noise")
    course_size = 3 * SEGMENTS + 1 + 3 * PUSHES

    weights = {
        "linear_velocity": 1.5,
        "yaw_rate": 0.75,
        "alive": 0.5,
        "vertical_velocity": -1.0,
        "roll_and_pitch_rate": -0.03,
        "tilt": -2.0,
        "torque": -1e-4,
        "target_change": -0.15,
        "foot_lift": -30.0,
        "foot_slip": -0.05,
        "hips": -0.3,
        "stillness": -0.3,
    }
    """Per second."""

    def __init__(self, card: LeggedCard | None = None) -> None:
        card = card or load_legged("go2")
        count = len(card.joints)
        if len(card.feet) != 4:
            raise ValueError(f"task '{self.name}' is for four feet; robot '{card.name}' has {len(card.feet)}")
        legs = [f"{foot[:2]}_{part}_joint" for foot in card.feet for part in ("hip", "thigh", "calf")]
        if list(card.joint_names) != legs:
            raise ValueError(f"task '{self.name}' needs the joints {legs}; robot '{card.name}' has {card.joint_names}")
        self.card, self.action_size = card, count
        self.observation_size = 11 + 2 * count + 2 * HISTORY * count
        self.stand = torch.tensor([[joint.stand for joint in card.joints]])
        self.lower = torch.tensor([[joint.lower for joint in card.joints]])
        self.upper = torch.tensor([[joint.upper for joint in card.joints]])
        self.diagonal = torch.tensor([[1.0 if foot[:2] in ("FL", "RR") else -1.0 for foot in card.feet]])
        self.forward = torch.tensor([[PLACE[0] if foot[0] == "F" else -PLACE[0] for foot in card.feet]])
        self.left = torch.tensor([[PLACE[1] if foot[1] == "L" else -PLACE[1] for foot in card.feet]])
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=20.0,
            signals=signals(card),
            commands=(position_target(card),),
            memory=(
                StateBlock("joint_history", (HISTORY, count), tuple(self.stand[0].tolist()) * HISTORY),
                StateBlock("target_history", (HISTORY, count), (0.0,) * (HISTORY * count)),
                StateBlock("gait", (5,), (1.0, 0.0, 0.0, 0.0, 0.0)),
            ),
            safety=Safety(signal_timeout=0.04, tilt_limit=1.2, on_fault="damp", operator_timeout=0.5),
            reward={name: PERIOD * weight for name, weight in self.weights.items()},
            ranges={**initial_ranges(count), **physical_ranges(count), **course_ranges()},
        )

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> Any:
        from sim.plants.mujoco_cpu import MujocoPlant

        return MujocoPlant(self.card, n, PERIOD)

    def reference(self, time: Any, course: Any) -> dict[str, Any]:
        *commands, offset = course[:, : 3 * SEGMENTS + 1].unbind(-1)
        progress = time + offset
        wanted = commands[:3]
        for k in range(1, SEGMENTS):
            later = progress >= SEGMENT * k
            wanted = [torch.where(later, commands[3 * k + i], wanted[i]) for i in range(3)]
        angle = (2 * math.pi * PACE) * time
        return {
            "linear_velocity_command": torch.stack(wanted[:2], -1),
            "yaw_rate_command": torch.stack(wanted[2:], -1),
            "clock": torch.stack([torch.cos(angle), torch.sin(angle)], -1),
        }

    def disturb(self, time: Any, course: Any) -> dict[str, Any]:
        start = 3 * SEGMENTS + 1
        force = torch.zeros(len(course), 3, device=course.device)
        for k in range(PUSHES):
            begun, x, y = course[:, start + 3 * k : start + 3 * k + 3].unbind(-1)
            pushing = (time >= begun) & (time < begun + PUSH_TIME)
            force[:, 0] += torch.where(pushing, x, 0.0)
            force[:, 1] += torch.where(pushing, y, 0.0)
        return {"force": force}

    def begin(self, plant: Any, ids: Tensor, drawn: Mapping[str, Tensor]) -> Tensor:
        nominal = plant.nominal
        mass = plant.param("mass")
        mass[ids] = nominal.mass.repeat(len(ids), 1)
        base = plant.places.base - 1  # the world has no mass
        mass[ids, base] = nominal.mass[:, base] * drawn["base_mass"] + drawn["payload"]
        centers = nominal.center_of_mass.repeat(len(ids), 1, 1)
        centers[:, base] += drawn["center_of_mass"]
        plant.param("center_of_mass")[ids] = centers
        plant.param("ground_friction")[ids] = drawn["ground_friction"].double()
        for name in ("joint_friction", "armature", "stiffness", "damping"):
            plant.param(name)[ids] = getattr(nominal, name) * drawn[name].double()[:, None]
        plant.param("resistance")[ids] = nominal.resistance / drawn["strength"].double()[:, None]
        plant.param("command_delay")[ids] = drawn["command_delay"].double()[:, None]
        self._place(plant, ids, drawn)
        return self.course(drawn)

    def _place(self, plant: Any, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
        yaw, zero = 0.5 * drawn["initial/yaw"], torch.zeros(len(ids))
        joints = torch.clamp(self.stand + drawn["initial/joint_position"], self.lower, self.upper)
        plant.place(
            ids,
            position=torch.stack([zero, zero, plant.height + 0.02 + zero], -1),
            orientation=torch.stack([zero, zero, torch.sin(yaw), torch.cos(yaw)], -1),
            linear_velocity=drawn["initial/linear_velocity"],
            angular_velocity=drawn["initial/angular_velocity"],
            joint_position=joints,
            joint_velocity=torch.zeros_like(joints),
        )

    def course(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, course_size): commanded velocities of each segment, s into the first; of pushes s, N, N."""
        moving = (drawn["command/stand"] >= 0.1).float()  # every tenth command is to stand
        wanted = torch.stack([drawn[f"command/{name}"] * moving for name in ("x", "y", "yaw")], -1)
        pushes = torch.stack([drawn["push/time"], drawn["push/x"], drawn["push/y"]], -1)
        return torch.cat([wanted.flatten(1), drawn["command/offset"][:, None], pushes.flatten(1)], -1)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        x, y, z, w = signals["orientation"].unbind(-1)
        down = torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1)
        angles = signals["joint_position"] - self.stand
        changes = memory["joint_history"] - signals["joint_position"][:, None]
        return torch.cat(
            [
                down,
                0.25 * signals["angular_velocity"],
                2.0 * signals["linear_velocity_command"],
                signals["yaw_rate_command"],
                memory["gait"][:, :2],
                angles,
                0.05 * signals["joint_velocity"],
                4.0 * changes.flatten(1),
                memory["target_history"].flatten(1),
            ],
            -1,
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        target = self.stand + self.trot(memory["gait"]) + SCALE * action
        return {"joint_position_target": torch.clamp(target, self.lower, self.upper)}

    def trot(self, gait: Any) -> Any:
        """(n, 12) rad, what a rough trot adds to the stand: hip, thigh and calf of each foot in turn.

        ``gait`` (n, 5): cosine and sine of the clock, commanded velocity x, y (m/s) and yaw (rad/s). A foot is in the
        air for half a turn of the clock and swings forward; for the other half it goes back as the ground does.
        """
        cosine, sine, x, y, yaw = (gait[:, i : i + 1] for i in range(5))
        walking = torch.where(x * x + y * y + yaw * yaw > STILL**2, 1.0, 0.0)
        lift = torch.clamp(self.diagonal * sine, min=0.0) * walking
        sweep = self.diagonal * cosine * (SWEEP * walking / (4 * PACE * LEG))  # rad per m/s
        hip = -sweep * (y + yaw * self.forward)
        thigh = sweep * (x - yaw * self.left) + FOLD * lift
        return torch.stack([hip, thigh, -2 * FOLD * lift], -1).flatten(1)

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        newest = (commands["joint_position_target"] - self.stand) / SCALE
        cosine, sine = memory["gait"][:, 0], memory["gait"][:, 1]
        c, s = math.cos(2 * math.pi * PACE * PERIOD), math.sin(2 * math.pi * PACE * PERIOD)
        turned = torch.stack([c * cosine - s * sine, s * cosine + c * sine], -1)
        length = torch.linalg.vector_norm(turned, dim=-1, keepdim=True)
        return {
            "joint_history": torch.cat([signals["joint_position"][:, None], memory["joint_history"][:, :-1]], 1),
            "target_history": torch.cat([newest[:, None], memory["target_history"][:, :-1]], 1),
            "gait": torch.cat([turned / length, signals["linear_velocity_command"], signals["yaw_rate_command"]], -1),
        }

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the velocities are from the commanded ones, (n,) each: m/s and rad/s."""
        x, y, yaw = self._velocities(truth)
        wanted = truth["linear_velocity_command"]
        error = (x - wanted[:, 0]) ** 2 + (y - wanted[:, 1]) ** 2
        return {
            "linear_velocity_error": torch.sqrt(error),
            "yaw_rate_error": abs(yaw - truth["yaw_rate_command"][:, 0]),
        }

    def _velocities(self, truth: Tensors) -> tuple[Any, Any, Any]:
        """Forward and leftward velocity (m/s) in the heading frame, and rate of turn about the base's z axis."""
        cosine, sine = heading(truth["orientation"].unbind(-1))
        x, y, _ = turn_back(truth["linear_velocity"].unbind(-1), cosine, sine)
        return x, y, truth["angular_velocity"][:, 2]

    def _moving(self, given: Tensors) -> Any:
        """(n,) 1 where a velocity is commanded, 0 where the robot should stand."""
        size = given["linear_velocity_command"].square().sum(-1) + given["yaw_rate_command"].square().sum(-1)
        return torch.where(size > STILL**2, 1.0, 0.0)

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        error, rates = self.errors(truth), truth["angular_velocity"]
        up = body_z(truth["orientation"].unbind(-1))
        change = commands["joint_position_target"] - previous["joint_position_target"]
        moving = self._moving(truth)
        swing = torch.clamp(self.diagonal * truth["clock"][:, 1:], min=0.0) * moving[:, None]
        heights = truth["foot_position"][:, 2::3]
        slip = truth["foot_velocity"][:, 0::3].square() + truth["foot_velocity"][:, 1::3].square()
        pose = truth["joint_position"] - self.stand
        return {
            "linear_velocity": torch.exp(-error["linear_velocity_error"].square() / 0.2),
            "yaw_rate": torch.exp(-error["yaw_rate_error"].square() / 0.2),
            "alive": torch.ones_like(moving),
            "vertical_velocity": truth["linear_velocity"][:, 2].square(),
            "roll_and_pitch_rate": rates[:, 0].square() + rates[:, 1].square(),
            "tilt": up[0].square() + up[1].square(),
            "torque": truth["joint_torque"].square().sum(-1),
            "target_change": change.square().sum(-1),
            "foot_lift": (heights - FOOT_RADIUS - LIFT * swing).square().sum(-1),
            "foot_slip": torch.where(truth["foot_force"] > 1.0, slip, 0.0).sum(-1),
            "hips": pose[:, 0::3].square().sum(-1),
            "stillness": (1.0 - moving) * pose.square().sum(-1),
        }

    def failed(self, truth: Tensors) -> Any:
        up = body_z(truth["orientation"].unbind(-1))
        return (up[2] < 0.5) | (truth["position"][:, 2] < 0.15)

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        x, y, _ = self._velocities(truth)
        up = body_z(truth["orientation"].unbind(-1))
        return torch.cat(
            [
                torch.stack([x, y, truth["linear_velocity"][:, 2], *up, truth["position"][:, 2]], -1),
                0.25 * truth["angular_velocity"],
                truth["joint_position"] - self.stand,
                0.05 * truth["joint_velocity"],
                0.1 * truth["joint_torque"],
                10.0 * truth["foot_position"][:, 2::3],
                0.02 * truth["foot_force"],
                2.0 * truth["linear_velocity_command"],
                truth["yaw_rate_command"],
                truth["clock"],
                parameters.ground_friction[:, None].float(),
                0.01 * parameters.force.float(),
                50.0 * parameters.command_delay[:, :1].float(),
            ],
            -1,
        )


def signals(card: LeggedCard) -> tuple[Signal, ...]:
    """What the robot's computer gives; noise as in Rudin et al. 2022, as standard deviations of its uniform ranges."""
    names, count = card.joint_names, len(card.joints)
    margin = 0.5  # rad beyond the stops that an encoder may report
    speed = tuple(2 * joint.velocity for joint in card.joints)
    return (
        Signal(
            "orientation", (*XYZ, "w"), "1", "base to world", (-1.01,) * 4, (1.01,) * 4,
            kind="quaternion", noise=(0.01,) * 4, delay=DELAY,
        ),
        Signal("angular_velocity", XYZ, "rad/s", "base", (-RATE,) * 3, (RATE,) * 3, noise=(0.1,) * 3, delay=DELAY),
        Signal(
            "joint_position", names, "rad", "joint", tuple(joint.lower - margin for joint in card.joints),
            tuple(joint.upper + margin for joint in card.joints), noise=(0.006,) * count, delay=DELAY,
        ),
        Signal(
            "joint_velocity", names, "rad/s", "joint", tuple(-x for x in speed), speed,
            noise=(0.5,) * count, delay=DELAY,
        ),
        Signal("linear_velocity_command", ("x", "y"), "m/s", "heading", (-3.0,) * 2, (3.0,) * 2, source="operator"),
        Signal("yaw_rate_command", ("z",), "rad/s", "base", (-3.0,), (3.0,), source="operator"),
    )  # fmt: skip


def position_target(card: LeggedCard) -> Command:
    """Targets of the position control at the motors."""
    stand = tuple(joint.stand for joint in card.joints)
    lower, upper = (tuple(getattr(joint, end) for joint in card.joints) for end in ("lower", "upper"))
    return Command("joint_position_target", card.joint_names, "rad", "joint", lower, upper, safe=stand, start=stand)


def initial_ranges(joints: int) -> dict[str, Range]:
    """How episodes begin."""
    return {
        "initial/yaw": Range.fixed(-math.pi, math.pi),
        "initial/joint_position": Range.fixed(-0.15, 0.15, count=joints),  # rad
        "initial/linear_velocity": Range.fixed(-0.5, 0.5, count=3),  # m/s
        "initial/angular_velocity": Range.fixed(-0.5, 0.5, count=3),  # rad/s
    }


def physical_ranges(joints: int) -> dict[str, Range]:
    """What differs between robots and days. Those without a unit are factors on the card's figures."""
    return {
        "base_mass": Range.fixed(0.95, 1.05),
        "payload": Range.fixed(0.0, 2.0),  # kg
        "center_of_mass": Range.fixed(-0.03, 0.03, count=3),  # m
        "ground_friction": Range.fixed(0.4, 1.25),
        "joint_friction": Range.fixed(0.5, 1.5),
        "armature": Range.fixed(0.8, 1.2),
        "stiffness": Range.fixed(0.9, 1.1),
        "damping": Range.fixed(0.8, 1.2),
        "strength": Range.fixed(0.85, 1.0),
        "command_delay": Range.fixed(0.0, 0.02),  # s
        "delay": Range.fixed(*DELAY),  # s
        "noise": Range.fixed(1.0, 1.0),
        "bias/joint_position": Range.fixed(-0.02, 0.02, count=joints),  # rad
        "bias/angular_velocity": Range.fixed(-0.03, 0.03, count=3),  # rad/s
    }


def course_ranges() -> dict[str, Range]:
    """What an episode asks of the robot, and who pushes it."""
    force = 15.0 * 0.5 / PUSH_TIME  # N: changes the speed of 15 kg by 0.5 m/s
    return {
        "command/x": Range.fixed(-1.0, 1.0, count=SEGMENTS),  # m/s
        "command/y": Range.fixed(-0.6, 0.6, count=SEGMENTS),  # m/s
        "command/yaw": Range.fixed(-1.0, 1.0, count=SEGMENTS),  # rad/s
        "command/stand": Range.fixed(0.0, 1.0, count=SEGMENTS),
        "command/offset": Range.fixed(0.0, SEGMENT),  # s
        "push/time": Range.fixed(0.0, 20.0, count=PUSHES),  # s
        "push/x": Range.fixed(-force, force, count=PUSHES),  # N
        "push/y": Range.fixed(-force, force, count=PUSHES),  # N
    }
