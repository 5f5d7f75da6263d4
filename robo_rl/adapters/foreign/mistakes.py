"""Whether an adopted policy walks in simulation, and under which single change of its description it would.

The usual mistakes are tried one after the other: each is a change of one field, such as another order of joints. The
one under which the robot follows its commanded velocity best is named.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from robo_rl.adapters.foreign.description import AdoptionError, Description
from robo_rl.adapters.foreign.graph import AdoptedGraph
from robo_rl.adapters.foreign.task import AdoptedWalk
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks.legged.legs import find_legs
from robo_rl.sim.tasks.legged.limbs import leg_joints

SECONDS = 4.0
"""Of a try: long enough to fall, and to walk."""
SETTLED = 1.0
"""s, after which velocities count."""
ROBOTS = 8
FALLS, ERROR = 0.1, 0.35
"""A policy walks that falls in at most this part of the tries, with at most this error (m/s and rad/s together)."""
COMMANDS = ((0.6, 0.0, 0.0), (-0.4, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.6))
"""m/s, m/s, rad/s; each for a quarter of the robots, as far as the policy was trained with it."""


@dataclass(frozen=True)
class Tried:
    """How a policy did."""

    success: float
    """Part of the robots that did not fall."""
    error: float
    """Mean distance from the commanded velocity (m/s, m/s, rad/s) of those that stood; ``still`` where all fell."""
    still: float
    """The same of a robot that stands still."""

    @property
    def stands(self) -> bool:
        """Whether it does not fall."""
        return self.success >= 1.0 - FALLS

    @property
    def walks(self) -> bool:
        """Whether it follows its commands."""
        return self.stands and self.error <= ERROR and self.error < 0.75 * self.still

    def __str__(self) -> str:
        what = "walks" if self.walks else "stands but doesn't follow its commands" if self.stands else "falls"
        error = f"velocity error {self.error:.2f} (standing still {self.still:.2f}; m/s and rad/s)"
        return f"{what}: {1 - self.success:.0%} fall, {error}"


def tried(
    task: AdoptedWalk, network: nn.Module, robots: int = ROBOTS, seconds: float = SECONDS, hasty: bool = False
) -> Tried:
    """Run the policy on robots as their card says, on flat ground, without noise.

    ``hasty``: no longer than it takes to see that it doesn't walk.
    """
    env = VecEnv(task, robots, seed=3, evaluation=True)
    policy = AdoptedGraph(task, network).eval()
    wanted = torch.tensor([_within(task.told, COMMANDS[i % len(COMMANDS)]) for i in range(robots)])
    state, fallen, errors = policy.initial_state(robots), torch.zeros(robots, dtype=torch.bool), []
    still = float(torch.linalg.vector_norm(wanted, dim=1).mean())
    signals = env.reset()
    steps = round(seconds / task.spec.control_period)
    settled = round(SETTLED / task.spec.control_period)
    with torch.inference_mode():
        for k in range(steps):
            given = {**signals, "linear_velocity_command": wanted[:, :2], "yaw_rate_command": wanted[:, 2:]}
            commands, state = policy(given, state)
            step = env.step({name: torch.nan_to_num(value) for name, value in commands.items()})
            signals = step.signals
            fallen |= step.failed
            if k >= settled:
                errors.append(_error(task, env, wanted))
            if bool(fallen.all()) or (hasty and float(fallen.float().mean()) > FALLS):
                return Tried(float((~fallen).float().mean()), still, still)
    standing = ~fallen
    if not errors or not bool(standing.any()):
        return Tried(float(standing.float().mean()), still, still)
    return Tried(float(standing.float().mean()), float(torch.stack(errors).mean(0)[standing].mean()), still)


def _within(told: Description, command: tuple[float, ...]) -> list[float]:
    ranges = [told.commands.get(axis, (-np.inf, np.inf)) for axis in ("x", "y", "yaw")]
    return [float(np.clip(value, *ends)) for value, ends in zip(command, ranges, strict=True)]


def _error(task: AdoptedWalk, env: VecEnv, wanted: torch.Tensor) -> torch.Tensor:
    """(n,) of the velocities of all robots now."""
    x, y, yaw = task._velocities(env.true())
    return torch.linalg.vector_norm(torch.stack([x, y, yaw], 1) - wanted, dim=1)


# --- changes ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """One field of a description, otherwise."""

    name: str
    """The kind of mistake, such as "joint order"."""
    text: str
    """The change, for people."""
    told: Description


@dataclass(frozen=True)
class Better:
    """A change under which a policy walks."""

    change: Change
    result: Tried

    def __str__(self) -> str:
        return f"{self.change.name}: it {self.result} with {self.change.text}"


def search(task: AdoptedWalk, network: nn.Module, say: Callable[[str], None] | None = None) -> Better | None:
    """The change under which the policy walks best; None where it does under none."""
    found: list[Better] = []
    for change in changes(task):
        try:
            other = type(task)(task.base_card, change.told)
            result = tried(other, network, hasty=True)
        except (AdoptionError, ValueError):
            continue
        if say is not None:
            say(f"{change.name}, {change.text}: {result}")
        if result.walks:
            found.append(Better(change, result))
    return min(found, key=lambda better: better.result.error, default=None)


def changes(task: AdoptedWalk) -> Iterator[Change]:
    """Single changes, the likelier first."""
    told = task.told
    yield from _orders(task)
    yield from _scales(told)
    yield from _poses(task)
    yield from _terms(told)
    yield from _histories(told)
    yield from _gains(task)
    yield from _rates(told)
    yield from _signs(task)


def _with(told: Description, **values: Any) -> Description:
    return dataclasses.replace(told, **values)


def _orders(task: AdoptedWalk) -> Iterator[Change]:
    """Joints in the orders that trainers have: leg by leg, or level by level through the legs."""
    told = task.told
    for text, joints in (_of_four_legs if len(task.card.feet) == 4 else _of_any_legs)(task.card):
        if joints != told.joints:
            yield Change("joint order", f"the joints {text}", reordered(told, joints))


def _of_four_legs(card: LeggedCard) -> Iterator[tuple[str, tuple[str, ...]]]:
    legs = find_legs(card)
    parts = {(legs.sides[i // 3], i % 3): card.joint_names[joint] for i, joint in enumerate(legs.order)}
    for text in ("FL FR RL RR", "FR FL RR RL", "RL RR FL FR", "RR RL FR FL", "FL RL FR RR"):
        sides = text.split()
        yield f"{', '.join(sides)}, each hip, thigh, calf", tuple(parts[side, k] for side in sides for k in range(3))
        yield (
            f"hips, thighs, calves, each {', '.join(sides)}",
            tuple(parts[side, k] for k in range(3) for side in sides),
        )


def _of_any_legs(card: LeggedCard) -> Iterator[tuple[str, tuple[str, ...]]]:
    """With joints that move no foot (waist, arms) after the legs, or before them."""
    names, given = card.joint_names, leg_joints(card)
    moved = {joint for leg in given for joint in leg}
    others = [joint for joint in range(len(names)) if joint not in moved]
    for legs in (given, given[::-1]):
        first = names[legs[0][0]]
        by_leg = list(dict.fromkeys(joint for leg in legs for joint in leg))
        levels = itertools.zip_longest(*legs)
        by_level = list(dict.fromkeys(joint for level in levels for joint in level if joint is not None))
        for text, order in (("leg by leg", by_leg), ("level by level", by_level)):
            yield f"{text}, '{first}' first", tuple(names[joint] for joint in [*order, *others])
            if others:
                whole = tuple(names[joint] for joint in [*others, *order])
                yield f"{text}, '{first}' first, after those of no leg", whole


def reordered(told: Description, joints: tuple[str, ...]) -> Description:
    """The same policy with its numbers taken for other joints; the pose stays with the joints' names."""
    pose = dict(zip(told.joints, told.default, strict=True))
    return _with(told, joints=joints, default=tuple(pose[name] for name in joints))


def _scales(told: Description) -> Iterator[Change]:
    scale = told.action.scale
    shown = scale if isinstance(scale, float) else max(scale)
    for factor in (0.25, 0.5, 2.0, 4.0, 0.125, 8.0):
        other = scale * factor if isinstance(scale, float) else tuple(x * factor for x in scale)
        action = dataclasses.replace(told.action, scale=other)
        yield Change("action scale", f"scale {shown * factor:g} in place of {shown:g}", _with(told, action=action))


def _poses(task: AdoptedWalk) -> Iterator[Change]:
    told = task.told
    stand = {joint.name: joint.stand for joint in task.base_card.joints}
    pose = tuple(stand[name] for name in told.joints)
    if max(abs(a - b) for a, b in zip(pose, told.default, strict=True)) > 1e-3:
        yield Change("default pose", "the stand of the robot's card", _with(told, default=pose))
    if told.action.offset != "default":
        action = dataclasses.replace(told.action, offset="default")
        yield Change("action offset", "the default pose as the offset of actions", _with(told, action=action))


USUAL = {
    "base_ang_vel": (1.0, 0.25, 0.2), "joint_vel_rel": (1.0, 0.05), "joint_pos_rel": (1.0,),
    "velocity_commands": (1.0, 2.0, (2.0, 2.0, 0.25)), "last_action": (1.0,), "base_lin_vel": (1.0, 2.0),
    "projected_gravity": (1.0,),
}  # fmt: skip
"""Scales that trainers use: legged_gym, Isaac Lab, unitree_rl_lab, mjlab."""


def _terms(told: Description) -> Iterator[Change]:
    def other(i: int, **values: Any) -> Description:
        terms = [*told.observations]
        terms[i] = dataclasses.replace(terms[i], **values)
        return _with(told, observations=tuple(terms))

    for i, term in enumerate(told.observations):
        if term.name == "orientation":
            order = "xyzw" if term.settings["order"] == "wxyz" else "wxyz"
            changed = other(i, settings={**term.settings, "order": order})
            yield Change("quaternion order", f"the quaternion as {order}", changed)
        if term.name == "projected_gravity":
            up = "down" if term.settings.get("direction") == "up" else "up"
            changed = other(i, settings={**term.settings, "direction": up})
            yield Change("gravity sign", f"gravity's vector pointing {up} when upright", changed)
        if term.name == "gait_phase":
            order = "sin cos" if term.settings.get("order") == "cos sin" else "cos sin"
            yield Change("phase order", f"the phase as {order}", other(i, settings={**term.settings, "order": order}))
            for factor in (0.5, 2.0):
                period = term.settings["period"] * factor
                changed = other(i, settings={**term.settings, "period": period})
                yield Change("phase period", f"a period of the phase of {period:g} s", changed)
        if term.name == "joint_pos":
            yield Change(
                "joint positions", "joint positions relative to the default pose", other(i, name="joint_pos_rel")
            )
        if term.name == "joint_pos_rel":
            yield Change("joint positions", "joint positions as they are", other(i, name="joint_pos"))
        for scale in USUAL.get(term.name, ()):
            if scale != term.scale:
                yield Change(f"scale of {term.name}", f"{term.name} times {scale}", other(i, scale=scale))
        if term.clip is not None and term.scale != 1.0:
            changed = other(i, clip_first=not term.clip_first)
            yield Change(
                "clip and scale",
                f"{term.name} clipped {'after' if term.clip_first else 'before'} it is scaled",
                changed,
            )
    yield from _swaps(told)


def _swaps(told: Description) -> Iterator[Change]:
    """Neighbouring terms of the same size in the other order."""
    alike = (
        {"base_ang_vel", "projected_gravity", "velocity_commands", "base_lin_vel"},
        {"joint_pos_rel", "joint_vel_rel", "last_action"},
    )
    terms = told.observations
    for i, j in itertools.combinations(range(len(terms)), 2):
        if any({terms[i].name, terms[j].name} <= group for group in alike) and terms[i].history == terms[j].history:
            swapped = [*terms]
            swapped[i], swapped[j] = swapped[j], swapped[i]
            text = f"{terms[i].name} and {terms[j].name} exchanged"
            yield Change("order of terms", text, _with(told, observations=tuple(swapped)))


def _histories(told: Description) -> Iterator[Change]:
    if all(term.history == 1 for term in told.observations):
        return
    past = told.history
    order = "newest first" if past.order == "oldest first" else "oldest first"
    yield Change(
        "order of history", f"the history {order}", _with(told, history=dataclasses.replace(past, order=order))
    )
    lengths = {term.history for term in told.observations}
    if len(lengths) == 1:
        by = "frame" if past.by == "term" else "term"
        for turned in (past.order, order):
            text = f"the history by {by}, {turned}"
            yield Change("history by", text, _with(told, history=dataclasses.replace(past, by=by, order=turned)))


def _gains(task: AdoptedWalk) -> Iterator[Change]:
    told = task.told
    card = {joint.name: joint for joint in task.base_card.joints}
    theirs = dataclasses.replace(
        told.gains,
        stiffness=tuple(card[name].stiffness for name in told.joints),
        damping=tuple(card[name].damping for name in told.joints),
    )
    yield Change("gains", "the gains of the robot's card", _with(told, gains=theirs))
    for factor in (0.5, 2.0, 4.0, 0.25):
        scaled = {name: tuple(factor * x for x in told.per_joint(getattr(told.gains, name))) for name in ("stiffness",)}
        text = f"{factor:g} times the stiffness"
        yield Change("gains", text, _with(told, gains=dataclasses.replace(told.gains, **scaled)))


def _rates(told: Description) -> Iterator[Change]:
    for rate in (told.rate * factor for factor in (0.5, 2.0, 0.25, 4.0)):
        yield Change("rate", f"{rate:g} Hz in place of {told.rate:g} Hz", _with(told, rate=rate))


def _signs(task: AdoptedWalk) -> Iterator[Change]:
    """Joints that count the other way round: their positions, velocities and targets are negated."""
    told, names = task.told, task.card.joint_names
    for text, joints in (_sides_of_four if len(task.card.feet) == 4 else _sides_of_any)(task.card):
        flips = tuple(sorted({names[joint] for joint in joints} ^ set(told.flipped)))
        yield Change("joint sign", f"the {text} counting the other way", _with(told, flipped=flips))


def _sides_of_four(card: LeggedCard) -> Iterator[tuple[str, list[int]]]:
    legs = find_legs(card)
    for part, text in enumerate(("hips", "thighs", "calves")):
        yield text, [joint for i, joint in enumerate(legs.order) if i % 3 == part]
    for side, text in (("L", "left"), ("R", "right")):
        yield f"{text} hips", [legs.order[3 * i] for i, name in enumerate(legs.sides) if name[1] == side]


def _sides_of_any(card: LeggedCard) -> Iterator[tuple[str, list[int]]]:
    """A level of all legs, or of one."""
    for level in itertools.zip_longest(*leg_joints(card)):
        joints = [joint for joint in level if joint is not None]
        for some in (joints, *([joint] for joint in joints)):
            yield f"joints {', '.join(card.joint_names[joint] for joint in some)}", some
