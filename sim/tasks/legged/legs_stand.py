"""Standing: a robot on any number of legs keeps its stance while it is pushed.

A humanoid falls in little more than a second with the gains of its gait, however exactly its joints hold: the ankles
are softer than gravity (``docs/legs.md``). So where a card has gains that hold the stance, a policy has those. It sees
what the robot measures (gravity's direction in the base frame, body rates, joint angles and speeds), what changed of
angles and direction in the last 0.1 s, and its last targets, and moves the targets around the stance.

A push of 0.5 m/s takes the capture point (Pratt et al. 2006: where a pendulum that moves so would come to rest), v / ω,
by 0.13 m: beyond heels, which are 0.05 m behind the ankles. So a robot has to step, and is rewarded for feet around it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from robo_rl.contract import Command, Safety, Signal, StateBlock
from robo_rl.controllers.rotation import body_z, heading, turn_back
from robo_rl.sim.plants import Articulated
from robo_rl.sim.ranges import NOT_NEGATIVE, Range, Rule
from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.tasks import Measure, Spec, Tensors
from robo_rl.sim.tasks.legged.limbs import find_limbs
from robo_rl.sim.tasks.legged.on_legs import PERIOD, OnLegs
from robo_rl.sim.tasks.legged.ranges import MASS, PUSH_TIME, physical_ranges, position_target, signals

SCALE = 0.25  # rad, of the network's output, with the gains of a gait
SHARE = 0.2  # per step, by which slow averages come nearer to what is measured: within 0.1 s
PUSHED = 0.5  # m/s, by which a push changes the robot's velocity
TILT = 1.0  # rad, from which no robot on two legs comes back
GRAVITY = 9.81  # m/s²
LEG = 0.78  # m, from the base of a G1 to the ground as it stands
LOW = 0.65  # part of the standing height of the base, below which a robot has fallen

ON_LEGS = MappingProxyType(
    {
        "environments": 512,
        "horizon": 24,
        "epochs": 4,
        "desired_kl": 0.015,
        "initial_deviation": 0.35,
        "hidden": (128, 128),
        "activation": "elu",
    }
)
"""Of PPO, for any task of legs."""


class LegsStand(OnLegs):
    """Keep standing for 20 s while being pushed by 0.5 m/s four times, anywhere and in any direction."""

    name = "g1-stand"
    summary = "keep standing while being pushed"
    plants: tuple[str, ...] = ("mujoco",)
    devices: tuple[str, ...] = ("cpu",)
    measures: tuple[Measure, ...] = (Measure("tilt_error", "rad", "mean"), Measure("base_height_error", "m", "mean"))
    pushes = 4
    part = 0.5
    """Of each motor's torque at rest, that the network's output moves the target by."""
    first_pushes = (0.0, 0.6)
    """m/s, range of pushes in training."""
    pushed = 0
    goal_size = 3 * pushes
    settings = MappingProxyType(
        {"ppo": {**ON_LEGS, "updates": 600, "anneal": 0.25, "entropy": 0.004, "initial_deviation": 0.25}}
    )
    weights: Mapping[str, float] = {
        "alive": 1.0,
        "upright": 2.0,
        "height": 1.0,
        "pose": 1.0,
        "capture": 2.0,
        "velocity": -0.5,
        "rates": -0.05,
        "torque": -1e-5,
        "target_change": -0.1,
    }
    """Per second; of torques for a G1's mass."""

    def __init__(self, card: LeggedCard | None = None) -> None:
        card = self.driven(card or load_legged("g1"))
        limbs, count = find_limbs(card), len(card.joints)
        self.card, self.limbs = card, limbs
        self.action_size, self.observation_size = count, 9 + 4 * count
        self.scale = self.part * torch.tensor([[joint.effort / joint.stiffness for joint in card.joints]])
        """(1, J) rad, of the network's output."""
        self.length = -sum(foot[2] for foot in limbs.feet) / len(limbs.feet)
        """m, from the base down to the feet."""
        self.size, self.foot_radius, self.lowest = self.length / LEG, 0.02 * self.length, LOW * self.length
        self.foot_rest = limbs.height - self.length
        """m, of the feet's middles above the ground when they stand: 0 of sites at the soles, radii of spheres."""
        self.height = limbs.height
        """m, of the base above the ground, as the task wants it."""
        self.middle = torch.tensor(limbs.feet)[:, :2].mean(0)
        """(2,) m, of the feet from the base as the robot stands."""
        self.stand = torch.tensor([[joint.stand for joint in card.joints]])
        self.lower = torch.tensor([[joint.lower for joint in card.joints]])
        self.upper = torch.tensor([[joint.upper for joint in card.joints]])
        self.spec = Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=PERIOD,
            episode_length=20.0,
            signals=self.signals(),
            commands=self.commands(),
            memory=self.memory(),
            safety=self.safety(),
            reward=self.weighed(),
            ranges={**self.initial_ranges(), **self.physical_ranges(), **self.goal_ranges()},
            rules=self.rules(),
            facts=self.facts(),
        )

    @staticmethod
    def driven(card: LeggedCard) -> LeggedCard:
        """The robot with the gains that its policy has."""
        return with_hold_gains(card)

    # --- the task as data -----------------------------------------------------------------------------------------

    def signals(self) -> tuple[Signal, ...]:
        """What the robot measures; there is nothing to be commanded."""
        return tuple(signal for signal in signals(self.card) if signal.source == "sensor")

    def commands(self) -> tuple[Command, ...]:
        """Targets of the position control at the motors."""
        return (position_target(self.card),)

    def memory(self) -> tuple[StateBlock, ...]:
        """What the policy remembers: its last action, and slow averages of the joints' angles and of gravity."""
        stand = tuple(joint.stand for joint in self.card.joints)
        return (
            StateBlock("last_action", (len(stand),), (0.0,) * len(stand)),
            StateBlock("recent", (len(stand) + 3,), (*stand, 0.0, 0.0, 1.0)),
        )

    def safety(self) -> Safety:
        """A fall is seen early: a tall robot that tilts so far is not caught any more."""
        return Safety(signal_timeout=0.04, tilt_limit=TILT)

    def weighed(self) -> dict[str, float]:
        """Weights per step; that of torques is for those that a robot of this mass needs."""
        weights = {**self.weights, "torque": self.weights["torque"] * (33.3 / self.limbs.mass) ** 2}
        return {name: PERIOD * weight for name, weight in weights.items()}

    def initial_ranges(self) -> dict[str, Range]:
        """How episodes begin."""
        return {
            "initial/yaw": Range.fixed(-math.pi, math.pi, unit="rad"),
            "initial/joint_position": Range.fixed(-0.05, 0.05, count=len(self.card.joints), unit="rad"),
            "initial/linear_velocity": Range.fixed(-0.1, 0.1, count=3, unit="m/s"),
            "initial/angular_velocity": Range.fixed(-0.1, 0.1, count=3, unit="rad/s"),
        }

    def physical_ranges(self) -> dict[str, Range]:
        """Those of all robots on legs, with less load high above the feet, and no ground on which a G1 slips."""
        own = {
            "payload": Range.fixed(0.0, 1.0 * self.limbs.mass / MASS, unit="kg"),
            "center_of_mass": Range.fixed(-0.02, 0.02, count=3, unit="m"),
            "ground_friction": Range.fixed(0.5, 1.25, limits=NOT_NEGATIVE),
            "command_delay": Range.fixed(0.0, 0.01, unit="s"),
        }
        return physical_ranges(len(self.card.joints), self.limbs.mass) | own

    def goal_ranges(self) -> dict[str, Range]:
        """Pushes: when, how much they change the robot's velocity, and where to (of the world)."""
        return {
            "push/time": Range.fixed(0.5, 19.0, count=self.pushes, unit="s"),
            "push/speed": Range(self.first_pushes, (PUSHED, PUSHED), count=self.pushes, unit="m/s"),
            "push/direction": Range.fixed(-math.pi, math.pi, count=self.pushes, unit="rad"),
        }

    def rules(self) -> tuple[Rule, ...]:
        """Training goes on to draw pushes from the whole range, evaluations have the task's."""
        return (Rule("push/speed", "survived", up=2.0, down=2.0, step=0.1),)

    def make_plant(self, n: int, device: str | torch.device = "cpu") -> Articulated:
        self.require_device(device)
        return super().make_plant(n, device)

    # --- episodes -------------------------------------------------------------------------------------------------

    def reference(self, time: Any, goal: Any) -> dict[str, Any]:
        return {}

    def goal(self, drawn: Mapping[str, Tensor]) -> Tensor:
        """(m, 12): of each push s, N, N."""
        force = drawn["push/speed"] * (self.limbs.mass / PUSH_TIME)
        angle = drawn["push/direction"]
        return torch.stack([drawn["push/time"], force * torch.cos(angle), force * torch.sin(angle)], -1).flatten(1)

    def place(self, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor], goal: Tensor) -> None:
        half = 0.5 * drawn["initial/yaw"]
        zero = torch.zeros_like(half)
        joints = torch.clamp(self.stand + drawn["initial/joint_position"], self.lower, self.upper)
        plant.place(
            ids,
            position=torch.stack([zero, zero, zero + plant.height], -1),
            orientation=torch.stack([zero, zero, torch.sin(half), torch.cos(half)], -1),
            linear_velocity=drawn["initial/linear_velocity"],
            angular_velocity=drawn["initial/angular_velocity"],
            joint_position=joints,
            joint_velocity=torch.zeros_like(joints),
        )

    # --- what is exported -----------------------------------------------------------------------------------------

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        return torch.cat(
            [
                self._down(signals["orientation"]),
                0.25 * signals["angular_velocity"],
                signals["joint_position"] - self.stand,
                0.05 * signals["joint_velocity"],
                memory["last_action"],
                5.0 * (self._measured(signals) - memory["recent"]),
            ],
            -1,
        )

    def _measured(self, signals: Tensors) -> Any:
        """(n, J + 3) the joints' angles and gravity's direction: less noisy than the speeds that their changes tell."""
        return torch.cat([signals["joint_position"], self._down(signals["orientation"])], -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        return {"joint_position_target": torch.clamp(self.stand + self.scale * action, self.lower, self.upper)}

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        return {
            "last_action": (commands["joint_position_target"] - self.stand) / self.scale,
            "recent": memory["recent"] + SHARE * (self._measured(signals) - memory["recent"]),
        }

    # --- how well it is done --------------------------------------------------------------------------------------

    def errors(self, truth: Tensors) -> dict[str, Any]:
        """How far the base is from being upright (rad) and from its height (m), (n,) each."""
        up = body_z(truth["orientation"].unbind(-1))
        return {
            "tilt_error": torch.sqrt(up[0].square() + up[1].square()),
            "base_height_error": abs(self.base_height(truth)[:, 0] - self.height),
        }

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        up, rates = body_z(truth["orientation"].unbind(-1)), truth["angular_velocity"]
        pose = truth["joint_position"] - self.stand
        change = (commands["joint_position_target"] - previous["joint_position_target"]) / self.scale
        low = (self.base_height(truth)[:, 0] - self.height) / self.size
        return {
            "alive": torch.ones_like(low),
            "upright": torch.exp(-(up[0].square() + up[1].square()) / 0.02),
            "height": torch.exp(-low.square() / 0.002),
            "pose": torch.exp(-2.0 * pose.square().sum(-1)),
            "capture": torch.exp(-self.uncaptured(truth).square().sum(-1) / (0.02 * self.size)),
            "velocity": truth["linear_velocity"].square().sum(-1) / self.size,
            "rates": rates.square().sum(-1),
            "torque": truth["joint_torque"].square().sum(-1),
            "target_change": change.square().sum(-1),
        }

    def uncaptured(self, truth: Tensors) -> Any:
        """(n, 2) m, in the heading frame: how far the capture point, of a base that moves, is from where the middle of
        the feet has it at rest."""
        lead = math.sqrt(self.height / GRAVITY)
        x, y = (
            truth["position"][:, k] + lead * truth["linear_velocity"][:, k] - truth["foot_position"][:, k::3].mean(-1)
            for k in (0, 1)
        )
        cosine, sine = heading(truth["orientation"].unbind(-1))
        x, y, _ = turn_back((x, y, 0.0 * x), cosine, sine)
        return torch.stack([x, y], -1) + self.middle

    def failures(self, truth: Tensors) -> dict[str, Any]:
        up = body_z(truth["orientation"].unbind(-1))
        return {"tilts over 60 degrees": up[2] < 0.5, "base too low": self.base_height(truth)[:, 0] < self.lowest}

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        return torch.cat(
            [
                truth["linear_velocity"],
                self._down(truth["orientation"]),
                0.25 * truth["angular_velocity"],
                self.base_height(truth),
                truth["joint_position"] - self.stand,
                0.05 * truth["joint_velocity"],
                0.02 * truth["joint_torque"],
                10.0 * self.foot_height(truth),
                0.01 * truth["foot_force"],
                0.01 * parameters.force,
                parameters.ground_friction[:, None],
                50.0 * parameters.command_delay[:, :1],
            ],
            -1,
        )


def with_hold_gains(card: LeggedCard) -> LeggedCard:
    """The robot with the gains that hold its stance, which a card has where those of its gait don't stand."""

    def gains(joint: Any) -> dict[str, Any]:
        named = {"stiffness": joint.hold_stiffness, "damping": joint.hold_damping}
        return {name: value for name, value in named.items() if value is not None}

    return dataclasses.replace(card, joints=tuple(dataclasses.replace(joint, **gains(joint)) for joint in card.joints))
