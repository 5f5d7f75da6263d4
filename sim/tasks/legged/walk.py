"""Walking: a robot on four legs follows commanded velocities on flat ground.

The policy sees what the robot measures: attitude (gravity's direction in the base frame), body rates, joint angles
and speeds; no velocity of the base. Memory holds the last joint angles and targets, from which that velocity can be
inferred, and a gait: a clock and the commanded velocity, which it takes up without a jump. They make a rough trot
(``gait``); the network adds to its joint targets what balance and exact tracking need (after Iscen et al.
2018, Policies Modulating Trajectory Generators). The reward wants the feet as high as the clock says (after Siekmann
et al. 2021, Sim-to-Real Learning of All Common Bipedal Gaits via Periodic Reward Composition). Rewards for tracking
and for calm are those of Rudin et al. 2022, Learning to Walk in Minutes. Signals and ranges are in
``ranges``.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import torch

from robo_rl.contract import Safety, StateBlock
from robo_rl.controllers.rotation import body_z, heading, turn_back
from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.scenes.terrain import Ground
from robo_rl.sim.tasks import Spec, Tensors
from robo_rl.sim.tasks.legged.commanded import Commanded
from robo_rl.sim.tasks.legged.gait import FOLD, JOINTS, LEG, LIFT, PACE, STILL, Trot, axial, polar
from robo_rl.sim.tasks.legged.on_legs import PERIOD
from robo_rl.sim.tasks.legged.ranges import (
    MASS,
    goal_ranges,
    initial_ranges,
    physical_ranges,
    position_target,
    signals,
)

HISTORY = 3  # past joint angles and targets in memory
SCALE = 0.4  # rad, of the network's output
SLEW_RATE = (3.0, 3.0, 5.0)  # m/s², m/s², rad/s²: how fast the policy takes up another commanded velocity


class FlatWalk(Commanded):
    """Walk on flat ground at commanded velocities up to ±1 m/s, ±0.6 m/s, ±1 rad/s, and stand when they are zero.

    For any robot on four legs of three joints; lengths, loads and pushes go with its size and mass.
    """

    name = "go2-flat"
    summary = "walk on flat ground at commanded velocities"
    settings = MappingProxyType(
        {
            "ppo": {
                "updates": 480,
                "environments": 512,
                "horizon": 24,
                "epochs": 3,
                "desired_kl": 0.015,
                "hidden": (128, 128),
                "activation": "elu",
            }
        }
    )

    lift = LIFT
    fold = FOLD
    ground: Ground | None = None  # a plane
    lowest = 0.15  # m, of the base above the ground: below it has fallen

    weights = {
        "linear_velocity": 2.0,
        "yaw_rate": 1.0,
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
        from robo_rl.sim.tasks.legged.legs import find_legs

        card = card or load_legged("go2")
        count = len(card.joints)
        self.card, self.legs, self.action_size = card, find_legs(card), count
        self.size, self.foot_radius = self.legs.length / LEG, self.legs.radius
        self.lift, self.lowest = self.lift * self.size, self.lowest * self.size
        self.observation_size = 17 + 2 * count + 2 * HISTORY * count
        self.gait = Trot(self.legs, self.fold)
        self.slew = PERIOD * torch.tensor([SLEW_RATE])
        self.stand = torch.tensor([[joint.stand for joint in card.joints]])
        self.lower = torch.tensor([[joint.lower for joint in card.joints]])
        self.upper = torch.tensor([[joint.upper for joint in card.joints]])
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=20.0,
            signals=signals(card),
            commands=(position_target(card),),
            memory=(
                StateBlock("joint_history", (HISTORY, count), tuple(joint.stand for joint in card.joints) * HISTORY),
                StateBlock("target_history", (HISTORY, count), (0.0,) * (HISTORY * count)),
                StateBlock("gait", (5,), (1.0, 0.0, 0.0, 0.0, 0.0)),
            ),
            safety=Safety(signal_timeout=0.04, tilt_limit=1.2, operator_timeout=0.5),
            reward=self.weighed(),
            ranges={
                **initial_ranges(count),
                **physical_ranges(count, self.legs.mass),
                **goal_ranges(self.legs.mass),
            },
            facts=self.facts(),
        )

    def weighed(self) -> dict[str, float]:
        """Weights per step; that of torques is for those that a robot of this mass needs."""
        weights = {**self.weights, "torque": self.weights["torque"] * (MASS / self.legs.mass) ** 2}
        return {name: PERIOD * weight for name, weight in weights.items()}

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {**super().reference(time, goal), "clock": self.clock(time)}

    def clock(self, time: Any) -> Any:
        """(n, 2) cosine and sine of the gait's clock at ``time`` (n,) s of an episode."""
        angle = (2 * math.pi * PACE) * time
        return torch.stack([torch.cos(angle), torch.sin(angle)], -1)

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        clock = memory["gait"][:, :2]
        side = self.gait.side(clock)
        wanted = self._wanted(self._slewed(signals, memory["gait"]), side)
        changes = memory["joint_history"] - signals["joint_position"][:, None]
        joints = [signals["joint_position"] - self.stand, 0.05 * signals["joint_velocity"], 4.0 * changes.flatten(1)]
        legs = self.gait.legwise(torch.cat([*joints, memory["target_history"].flatten(1)], -1))
        return torch.cat(
            [
                polar(self._down(signals["orientation"]), side),
                axial(0.25 * signals["angular_velocity"], side),
                side * clock,
                wanted,
                side * clock[:, :1] * wanted,  # of these the trot is made; so its gains are soon found
                side * clock[:, 1:] * wanted,
                self.gait.mirrored(legs, side, JOINTS),
            ],
            -1,
        )

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        gait = memory["gait"]
        action = self.gait.mirrored(action, self.gait.side(gait[:, :2]), JOINTS)
        trot, action = self.gait.jointwise(self.gait.targets(gait)), self.gait.jointwise(action)
        target = self.stand + trot + SCALE * action
        return {"joint_position_target": torch.clamp(target, self.lower, self.upper)}

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        newest = (commands["joint_position_target"] - self.stand) / SCALE
        clock = self.gait.advance(memory["gait"][:, :2], PERIOD)
        return {
            "joint_history": torch.cat([signals["joint_position"][:, None], memory["joint_history"][:, :-1]], 1),
            "target_history": torch.cat([newest[:, None], memory["target_history"][:, :-1]], 1),
            "gait": torch.cat([clock, self._slewed(signals, memory["gait"])], -1),
        }

    def _slewed(self, signals: Tensors, gait: Any) -> Any:
        """(n, 3) m/s, m/s, rad/s: the velocity to be walked now, on its way from the last one to the commanded one.

        Most falls came within a second after the command had jumped.
        """
        return gait[:, 2:] + torch.clamp(self.commanded(signals) - gait[:, 2:], -self.slew, self.slew)

    @staticmethod
    def _wanted(velocity: Any, side: Any) -> Any:
        """(n, 3) commanded velocities (m/s, m/s, rad/s) as the mirror shows them, twice those in m/s."""
        x, y, yaw = velocity[:, :1], velocity[:, 1:2], velocity[:, 2:]
        return torch.cat([2.0 * x, 2.0 * side * y, side * yaw], -1)

    def _moving(self, given: Tensors) -> Any:
        """(n,) 1 where a velocity is commanded, 0 where the robot should stand."""
        size = given["linear_velocity_command"].square().sum(-1) + given["yaw_rate_command"].square().sum(-1)
        return torch.where(size > STILL**2, 1.0, 0.0)

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        error, rates = self.tracking_errors(truth), truth["angular_velocity"]
        up = body_z(truth["orientation"].unbind(-1))
        change = commands["joint_position_target"] - previous["joint_position_target"]
        moving = self._moving(truth)
        swing = self.gait.swing(truth["clock"][:, 1:]) * moving[:, None]
        slip = truth["foot_velocity"][:, 0::3].square() + truth["foot_velocity"][:, 1::3].square()
        pose = truth["joint_position"] - self.stand
        return {
            "linear_velocity": torch.exp(-error["linear_velocity_error"].square() / 0.15),
            "yaw_rate": torch.exp(-error["yaw_rate_error"].square() / 0.15),
            "alive": torch.ones_like(moving),
            "vertical_velocity": truth["linear_velocity"][:, 2].square(),
            "roll_and_pitch_rate": rates[:, 0].square() + rates[:, 1].square(),
            "tilt": up[0].square() + up[1].square(),
            "torque": truth["joint_torque"].square().sum(-1),
            "target_change": change.square().sum(-1),
            "foot_lift": self.lift_error(truth, swing).square().sum(-1),
            "foot_slip": torch.where(truth["foot_force"] > 1.0, slip, 0.0).sum(-1),
            "hips": self.gait.legwise(pose)[:, 0::3].square().sum(-1),
            "stillness": (1.0 - moving) * pose.square().sum(-1),
        }

    def lift_error(self, truth: Tensors, swing: Any) -> Any:
        """(n, 4) m, how far each foot is from where ``swing`` (n, 4), 0 to 1, wants it above the ground."""
        return self.foot_height(truth) - self.legs.radius - self.lift * swing

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        side = self.gait.side(truth["clock"])
        cosine, sine = heading(truth["orientation"].unbind(-1))
        velocity = torch.stack(turn_back(truth["linear_velocity"].unbind(-1), cosine, sine), -1)
        push = torch.stack(turn_back(parameters.force.unbind(-1), cosine, sine), -1)
        joints = [truth["joint_position"] - self.stand, 0.05 * truth["joint_velocity"], 0.1 * truth["joint_torque"]]
        feet = torch.cat([10.0 * self.foot_height(truth), 0.02 * truth["foot_force"]], -1)
        return torch.cat(
            [
                polar(velocity, side),
                polar(self._down(truth["orientation"]), side),
                polar(0.01 * push, side),
                axial(0.25 * truth["angular_velocity"], side),
                self.base_height(truth),
                self.gait.mirrored(self.gait.legwise(torch.cat(joints, -1)), side, JOINTS),
                self.gait.mirrored(feet, side),
                self._wanted(torch.cat([truth["linear_velocity_command"], truth["yaw_rate_command"]], -1), side),
                side * truth["clock"],
                parameters.ground_friction[:, None],
                50.0 * parameters.command_delay[:, :1],
            ],
            -1,
        )
