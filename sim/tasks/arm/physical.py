"""What differs between arms of one type, and where their tools may be: alike for all tasks of arms."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from robo_rl.contract import Envelope
from robo_rl.controllers.skills.placing import Sizes
from robo_rl.sim.plants import Articulated
from robo_rl.sim.plants.physics import GRASP, Physics
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots.arm import ArmCard
from robo_rl.sim.tasks.arm.workspace import Workspace

LATENESS = 0.005  # s, of targets: whole steps of the usual physics
AROUND = 0.1  # m around the workspace and where the tool is at home, beyond which a tool is at fault


def arm_ranges() -> dict[str, Range]:
    """Factors on gains and on the strength of motors, and latencies.

    Friction is the card's, and nothing is bolted to the hand, unless a log of an arm tells otherwise
    (``robo_rl.identification``).
    """
    return {
        "stiffness": Range.fixed(0.8, 1.2, unit="×"),
        "damping": Range.fixed(0.8, 1.25, unit="×"),
        "strength": Range.fixed(0.7, 1.1, unit="×"),
        "armature": Range.fixed(0.8, 1.25, unit="×"),
        "command_delay": Range.fixed(0.0, 0.015, unit="s"),
        "noise": Range.fixed(0.5, 1.5, unit="×"),
        "joint_friction": Range.fixed(1.0, 1.0, unit="×"),
        "payload": Range.fixed(0.0, 0.0, unit="kg"),
    }


def wide_ranges(card: ArmCard) -> dict[str, Range]:
    """What a card tells to differ between arms of its type by far more than that: servos' stiffness, and pads.

    A fingertip that is thicker by some m is one whose gripper is that much more open on the same object.
    """
    found = {}
    if card.servo_stiffness is not None:
        nominal = card.joints[0].stiffness
        low, high = (math.log(value / nominal) for value in card.servo_stiffness)
        found["log_stiffness"] = Range.fixed(low, high, unit="log ×")
    if card.grasp.tips is not None:
        found["bias/gripper_position"] = Range.fixed(*card.grasp.tips, count=1, unit=card.gripper.unit)
    return found


def wide_facts(card: ArmCard, sizes: Sizes, cube: dict[str, Any]) -> dict[str, Any]:
    """Between which objects, pads and servos a policy was trained, and by what it counts an object as held."""
    edges = [round(card.grasp.size * part, 9) for part in card.grasp.edges]
    grasped = {
        "told_to_close_further_by": sizes.press, "moves_per_step_less_than": sizes.still, "unit": card.gripper.unit,
        "and": "the cube is seen at the tool", "gripper_position_differs": list(card.grasp.tips or (0.0, 0.0)),
    }  # fmt: skip
    servos = {"stiffness": list(card.servo_stiffness or ()), "damping": "grows with the root of the stiffness"}
    return {
        "object": {**cube, "edges": edges},
        "grasped": grasped,
        **({"servos": servos} if card.servo_stiffness else {}),
    }


def hand_body(card: ArmCard, plant: Articulated) -> int:
    """Which of a plant's bodies carries the tool, and so a payload."""
    return int(plant.model.site(card.tool).bodyid[0]) - plant.indices.bodies.start


def randomize_arm(card: ArmCard, plant: Articulated, ids: Tensor, drawn: Mapping[str, Tensor]) -> None:
    """Write what was drawn from ``arm_ranges`` (m,) into the robots ``ids`` (m,) of a plant."""
    nominal = plant.nominal
    names = ("stiffness", "damping", "strength", "armature")
    factors = {name: drawn[name].to(nominal.armature)[:, None] for name in names}
    if "log_stiffness" in drawn:  # damped alike
        stiffer = drawn["log_stiffness"].to(nominal.armature)[:, None].exp()
        factors["stiffness"], factors["damping"] = factors["stiffness"] * stiffer, factors["damping"] * stiffer.sqrt()
    late = (LATENESS * (drawn["command_delay"] / LATENESS).round()).to(nominal.armature)[:, None]
    if card.impedance:
        for name in ("stiffness", "damping"):
            value = getattr(nominal, f"impedance_{name}") * factors[name][:, :, None]
            plant.param(f"impedance_{name}")[ids] = value
        plant.param("impedance_delay")[ids] = late
    else:
        for name in ("stiffness", "damping"):
            plant.param(name)[ids] = getattr(nominal, name) * factors[name]
    plant.param("armature")[ids] = nominal.armature * factors["armature"]
    plant.param("resistance")[ids] = nominal.resistance / factors["strength"]
    friction, mass, hand = plant.param("joint_friction"), plant.param("mass"), hand_body(card, plant)
    friction[ids] = nominal.joint_friction * drawn["joint_friction"].to(friction)[:, None]
    mass[ids, hand] = nominal.mass[:, hand] + drawn["payload"].to(mass)
    plant.param("command_delay")[ids] = late


def arm_facts(card: ArmCard, space: Workspace) -> dict[str, Any]:
    """What a contract tells of any task of an arm: where it works, and how its tool has to be turned there."""
    low, high = list(space.lower), list(space.upper)
    turn: dict[str, Any] = {"points": "down, z of the tool against z of the base"}
    if card.turned is not None:
        turn["orientation"] = [round(x, 9) + 0.0 for x in card.turned]
    null_space = {"stiffness": 0.0, "damping": "the joints' own", "posture": list(card.home)}
    return {
        "workspace": {"lower": low, "upper": high, "frame": "base"},
        "tool": {"frame": card.tool, "turn": turn, "x_y_z": "z points where the gripper does, y from pad to pad"},
        "base": {"frame": card.base, "ground": 0.0},
        **({"null_space": null_space} if card.impedance and len(card.joints) > 6 else {}),
        "joints": {
            "names": list(card.joint_names),
            "armature": [joint.armature for joint in card.joints],
            "friction": [joint.friction for joint in card.joints],
            "held": dict(card.held),
        },
        "weightless": card.weightless,
    }


def cube_facts(card: ArmCard, friction: Range) -> dict[str, Any]:
    """Of the cube that is grasped."""
    return {
        "shape": "box",
        "size": [card.grasp.size] * 3,
        "mass": card.grasp.mass,
        "friction": list(friction.end),
        "position": "its centre",
    }


def arm_envelope(card: ArmCard, space: Workspace) -> tuple[Envelope, ...]:
    """A box around the workspace and home, from which an arm is brought to work, where the robot itself tells where its
    tool is."""
    if card.impedance is None:
        return ()
    home = [round(float(x), 6) for x in card.chain.pose([float(angle) for angle in card.home]).position]
    low = tuple(min(x, at) - AROUND for x, at in zip(space.lower, home, strict=True))
    high = tuple(max(x, at) + AROUND for x, at in zip(space.upper, home, strict=True))
    return (Envelope("tool_position", low, high),)


class Simulated(Protocol):
    """A task of an arm in an engine."""

    plant: str | None
    solving: Mapping[str, float]
    """What it changes of ``GRASP``."""

    def require_device(self, device: str | torch.device) -> None: ...

    def simulate(self, engine: Callable[..., Articulated], n: int, **settings: Any) -> Articulated: ...


def physics_of(task: Simulated) -> Physics:
    """Of the task's own engine: ``GRASP``, as the task changes it."""
    return dataclasses.replace(GRASP, contacts="model", **task.solving)  # type: ignore[arg-type]


def simulated(task: Simulated, n: int, device: str | torch.device) -> Articulated:
    """A plant of n robots of a task, in the engine that is asked for."""
    task.require_device(device)
    if task.plant == "warp":
        from robo_rl.sim.plants.warp import WarpPlant

        return task.simulate(WarpPlant, n, device=device, physics=physics_of(task))
    from robo_rl.sim.plants.mujoco_cpu import MujocoPlant

    return task.simulate(MujocoPlant, n, physics=physics_of(task))
