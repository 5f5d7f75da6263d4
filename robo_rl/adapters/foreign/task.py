"""Walking as another trainer has it: a task made from a description.

    class Policy(AdoptedWalk):
        description = "policy.toml"
        files = ("policy.toml",)

in a file of the user's is such a task; ``robo-rl adopt`` writes one. A term "own.NAME" of the description is what its
method ``own_NAME(self, view)`` gives, (n, size), for a ``terms.View``.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from robo_rl.adapters.foreign import description as described
from robo_rl.adapters.foreign import motion as motions
from robo_rl.adapters.foreign.description import AdoptionError, Description
from robo_rl.adapters.foreign.terms import TERMS, Term, View, advance
from robo_rl.contract import Safety, Signal, StateBlock
from robo_rl.sim.plants.indices import standing_height
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.legged import LeggedCard, load_legged
from robo_rl.sim.tasks import Spec, Tensors
from robo_rl.sim.tasks.legged.commanded import Commanded
from robo_rl.sim.tasks.legged.limbs import standing
from robo_rl.sim.tasks.legged.ranges import (
    XYZ,
    goal_ranges,
    initial_ranges,
    physical_ranges,
    position_target,
    signals,
)

NOMINAL = {
    "base_mass": 1.0, "payload": 0.0, "center_of_mass": 0.0, "joint_friction": 1.0, "armature": 1.0, "stiffness": 1.0,
    "damping": 1.0, "strength": 1.0, "command_delay": 0.0, "bias/joint_position": 0.0, "bias/angular_velocity": 0.0,
    "push/x": 0.0, "push/y": 0.0,
}  # fmt: skip
"""What is not varied: nobody knows which robots a policy of another trainer was trained with."""
NETWORK = "network"
"""The block of memory of a recurrent network."""
FASTEST = 5.0
"""m/s, of an estimated velocity of the base."""
GO2 = 0.3  # m, of the base above the ground as it stands
FALLEN = 0.55  # part of the standing height of the base, below which a robot has fallen
TILT = {True: 1.2, False: 1.0}
"""rad, at which the gate stops a robot, on at least four legs or on fewer."""
NEAR = Range.fixed(-0.05, 0.05, unit="rad")
SLOW = {"initial/linear_velocity": Range.fixed(-0.1, 0.1, count=3, unit="m/s"),
        "initial/angular_velocity": Range.fixed(-0.1, 0.1, count=3, unit="rad/s")}  # fmt: skip
"""How robots on fewer than four legs begin: nearly at rest, as a tall robot that is pushed at once falls."""


class AdoptedWalk(Commanded):
    """Walk at commanded velocities, observing and acting as a description says."""

    name = "adopted-walk"
    summary = "walk as a policy of another trainer does"
    description: ClassVar[str] = ""
    """The file, beside the class's own."""

    def __init__(self, card: LeggedCard | None = None, told: Description | None = None) -> None:
        folder = Path(inspect.getfile(type(self))).parent
        if told is None:
            told = described.read(folder / self.description)
        self.base_card = card or load_legged(told.robot)
        self.card = with_gains(self.base_card, told)
        self.action_size = len(self.card.joints)
        model, _, indices = standing(self.card)
        self.mass = float(model.body_subtreemass[indices.base])
        height = standing_height(model, self.card.mechanism)
        self.size, self.lowest, self.foot_radius = height / GO2, FALLEN * height, 0.07 * height
        self.stand, self.lower, self.upper = (
            torch.tensor([[getattr(joint, name) for joint in self.card.joints]]) for name in ("stand", "lower", "upper")
        )
        self.told = told
        self.sign = torch.tensor([[-1.0 if joint in told.flipped else 1.0 for joint in told.joints]])
        names = self.card.joint_names
        self.pick = [names.index(joint) for joint in told.joints]
        self.put = [told.joints.index(joint) for joint in names]
        self.default = torch.tensor([told.default])
        action, n = told.action, len(told.joints)
        self.scale = torch.tensor([told.per_joint(action.scale)])
        self.offset = self.default if action.offset == "default" else torch.tensor([action.offset])
        self.bounds = None if action.target_clip is None else torch.tensor(action.target_clip).T[:, None]
        self.terms = told.observations
        self.motion = motions.read(folder / told.motion, len(told.joints)) if told.motion else None
        tracking = [term.name for term in self.terms if term.name.startswith("motion_")]
        if tracking and self.motion is None:
            raise AdoptionError(f"motion is blank; expected the clip that the terms {tracking} need")
        self.widths = [self._size(term, n) for term in self.terms]
        self.observation_size = sum(w * t.history for w, t in zip(self.widths, self.terms, strict=True))
        self.spec = self._specified()

    def _size(self, term: Term, joints: int) -> int:
        if not term.name.startswith("own."):
            return TERMS[term.name].size(joints, term.settings)
        if not hasattr(self, term.name.replace(".", "_")):
            method = term.name.replace(".", "_")
            raise AdoptionError(f"term '{term.name}' needs a method {method}(self, view) of {type(self).__name__}")
        return term.settings["size"]

    def _value(self, term: Term, view: View) -> Tensor:
        if term.name.startswith("own."):
            return getattr(self, term.name.replace(".", "_"))(view)
        return TERMS[term.name].value(view, term.settings)

    def _specified(self) -> Spec:
        told, card, joints = self.told, self.card, self.action_size
        needed = {name for term in self.terms if term.name in TERMS
                  for name in TERMS[term.name].signals}  # fmt: skip
        sure = len(card.feet) >= 4
        begin = initial_ranges(joints)
        if not sure:
            begin |= {"initial/joint_position": dataclasses.replace(NEAR, count=joints), **SLOW}
        ranges = {
            name: _fixed(value, NOMINAL[name]) if name in NOMINAL else value
            for name, value in {**begin, **physical_ranges(joints, self.mass), **goal_ranges(self.mass)}.items()
        }
        ranges["ground_friction"] = Range.fixed(0.6, 1.0)
        ranges["noise"] = Range.fixed(0.0, 0.0, unit="×")
        ranges["delay"] = Range.fixed(0.0, 0.0, unit="s")
        for axis, (low, high) in told.commands.items():
            given = ranges[f"command/{axis}"]
            ranges[f"command/{axis}"] = dataclasses.replace(given, **_ends(given, low, high))
        return Spec(
            name=self.name,
            summary=self.summary,
            robot=card,
            control_period=1.0 / told.rate,
            episode_length=20.0,
            signals=(*signals(card), *(s for s in _further() if s.name in needed)),
            commands=(position_target(card),),
            memory=tuple(self._memory(joints)),
            safety=Safety(signal_timeout=0.04, tilt_limit=TILT[sure], operator_timeout=0.5),
            reward={"linear_velocity": 1.0, "yaw_rate": 1.0},
            ranges=ranges,
            facts=self.facts(),
        )

    def _memory(self, n: int) -> list[StateBlock]:
        blocks = [StateBlock("last_action", (n,), (0.0,) * n)]
        if self.told.memory:
            blocks.append(StateBlock(NETWORK, (self.told.memory,), (0.0,) * self.told.memory))
        names = [term.name for term in self.terms]
        if "gait_phase" in names:
            first = 2 * math.pi * self.terms[names.index("gait_phase")].settings.get("first", 0.0)
            blocks.append(StateBlock("phase", (2,), (math.cos(first), math.sin(first))))
        if self.motion is not None:
            blocks += [StateBlock(motions.STEP, (1,), (0.0,)), StateBlock(motions.START, (3,), (0.0, 0.0, 0.0))]
        past = []
        for i, (term, width) in enumerate(zip(self.terms, self.widths, strict=True)):
            if term.history > 1:
                steps = term.history - 1
                past.append(StateBlock(f"past_{i}", (steps, width), (0.0,) * (steps * width)))
        if past and self.told.history.start == "first":
            blocks.append(StateBlock("started", (1,), (0.0,)))
        return [*blocks, *past]

    def simulate(self, engine: Any, n: int, **settings: Any) -> Any:
        """As on flat ground, at the policy's own rate."""
        return engine(self.card.mechanism, n, self.spec.control_period, **settings)

    # --- how well it walks ------------------------------------------------------------------------------------

    def reward(self, truth: Tensors, commands: Tensors, previous: Tensors) -> dict[str, Any]:
        """Of following the commanded velocity, after Rudin et al. 2022."""
        error = self.tracking_errors(truth)
        return {
            "linear_velocity": torch.exp(-error["linear_velocity_error"].square() / 0.25),
            "yaw_rate": torch.exp(-error["yaw_rate_error"].square() / 0.25),
        }

    def privileged(self, truth: Tensors, parameters: Any) -> Any:
        """(n, 3) m/s: nothing is trained."""
        return truth["linear_velocity"]

    # --- what is traced into the policy -----------------------------------------------------------------------

    def view(self, signals: Tensors, memory: Tensors) -> View:
        """What terms see."""
        return View(
            signals, memory, self._picked(signals["joint_position"]), self._picked(signals["joint_velocity"]),
            self.default, self.spec.control_period, self.motion,
        )  # fmt: skip

    def _picked(self, joints: Any) -> Any:
        """(n, joints) in the policy's order, counted as it does."""
        picked = joints[:, self.pick]
        return self.sign * picked if self.told.flipped else picked

    def values(self, signals: Tensors, memory: Tensors) -> list[Tensor]:
        """The terms now, (n, k) each, clipped and scaled."""
        view = self.view(signals, memory)
        return [term.shaped(self._value(term, view)) for term in self.terms]

    def observe(self, signals: Tensors, memory: Tensors) -> Any:
        now, newest_last = self.values(signals, memory), self.told.history.order == "oldest first"
        stacks = []
        for i, value in enumerate(now):
            rows = value[:, None]
            if f"past_{i}" in memory:
                past = self._past(i, value, memory)  # oldest first
                rows = torch.cat([past, rows], 1)
            stacks.append(rows if newest_last else torch.flip(rows, [1]))
        if self.told.history.by == "term":
            return torch.cat([rows.flatten(1) for rows in stacks], 1)
        return torch.cat(stacks, 2).flatten(1)

    def _past(self, i: int, value: Tensor, memory: Tensors) -> Tensor:
        """(n, steps, k) the past of a term, oldest first."""
        past = memory[f"past_{i}"]
        if "started" not in memory:
            return past
        started = memory["started"][:, :, None]
        return started * past + (1.0 - started) * value[:, None].expand(-1, past.shape[1], -1)

    def command(self, action: Any, memory: Tensors) -> dict[str, Any]:
        if self.told.action.clip is not None:
            action = torch.clamp(action, *self.told.action.clip)
        target = self.offset + self.scale * action
        if self.bounds is not None:
            target = torch.minimum(torch.maximum(target, self.bounds[0]), self.bounds[1])
        if self.told.flipped:
            target = self.sign * target
        return {"joint_position_target": torch.clamp(target[:, self.put], self.lower, self.upper)}

    def keep(self, memory: Tensors, signals: Tensors, action: Any) -> dict[str, Any]:
        """The memory for the next step, after the network gave ``action``; without the network's own."""
        told, kept = self.told.action, {}
        clipped = action if told.clip is None or told.remember == "raw" else torch.clamp(action, *told.clip)
        kept["last_action"] = clipped
        if "phase" in memory:
            period = next(t.settings["period"] for t in self.terms if t.name == "gait_phase")
            kept["phase"] = advance(memory["phase"], 2 * math.pi * self.spec.control_period / period)
        if self.motion is not None:
            kept |= self.motion.remembered(signals["orientation"], memory)
        if "started" in memory:
            kept["started"] = torch.ones_like(memory["started"])
        for i, value in enumerate(self.values(signals, memory)):
            if f"past_{i}" in memory:
                kept[f"past_{i}"] = torch.cat([self._past(i, value, memory)[:, 1:], value[:, None]], 1)
        return kept

    def remember(self, memory: Tensors, signals: Tensors, commands: Tensors) -> dict[str, Any]:
        """As ``keep``, for the action that gives these commands. What a network remembers stays as it is."""
        target = self._picked(commands["joint_position_target"])
        kept = self.keep(memory, signals, (target - self.offset) / self.scale)
        return kept | ({NETWORK: memory[NETWORK]} if NETWORK in memory else {})


def with_gains(card: LeggedCard, told: Description) -> LeggedCard:
    """The robot with the policy's gains, and its default pose as the stand. AdoptionError where joints don't fit."""
    names = set(card.joint_names)
    if names != set(told.joints):
        lacking, other = sorted(names - set(told.joints)), sorted(set(told.joints) - names)
        raise AdoptionError(
            f"joints: the policy lacks {lacking} and has {other} besides those of robot '{card.name}'; expected the "
            f"joints {list(card.joint_names)} in the policy's order"
        )
    stiffness, damping = told.per_joint(told.gains.stiffness), told.per_joint(told.gains.damping)
    joints = []
    for joint in card.joints:
        i = told.joints.index(joint.name)
        stand = -told.default[i] if joint.name in told.flipped else told.default[i]
        if not joint.lower <= stand <= joint.upper:
            raise AdoptionError(
                f"default: joint '{joint.name}' is at {stand:g} rad; its range is {joint.lower:g} to "
                f"{joint.upper:g} rad"
            )
        joints.append(dataclasses.replace(joint, stand=stand, stiffness=stiffness[i], damping=damping[i]))
    return dataclasses.replace(card, joints=tuple(joints))


def _fixed(given: Range, value: float) -> Range:
    return dataclasses.replace(given, **_ends(given, value, value))


def _ends(given: Range, low: float, high: float) -> Mapping[str, Any]:
    return {"start": (low, high), "end": (low, high)}


def _further() -> tuple[Signal, ...]:
    """Signals that some policies need and few robots measure."""
    return (
        Signal(
            "linear_velocity",
            XYZ,
            "m/s",
            "world",
            (-FASTEST,) * 3,
            (FASTEST,) * 3,
            noise=(0.05,) * 3,
            delay=(0.0, 0.01),
        ),
    )
