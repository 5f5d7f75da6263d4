"""Walking as data: the signals of a legged robot, and the ranges of randomization."""

from __future__ import annotations

import math
from typing import Any

from robo_rl.contract import Command, Signal
from robo_rl.sim.ranges import NOT_NEGATIVE, Range
from robo_rl.sim.robots.legged import LeggedCard

XYZ = ("x", "y", "z")
DELAY = (0.0, 0.01)  # s, of the sensors
RATE = 34.9  # rad/s, range of usual gyroscopes (2000 deg/s)
SEGMENT = 5.0  # s between changes of the commanded velocity
SEGMENTS = 5  # in an episode of 20 s that begins anywhere in the first
PUSHES = 2
MASS = 15.0  # kg, of the Go2
PUSH_TIME = 0.1  # s


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


def joints_facts(card: LeggedCard) -> dict[str, Any]:
    """What a contract tells of the joints, besides the robot's facts: rotors and friction, which the law moves too."""
    return {
        "names": list(card.joint_names),
        "armature": [motor.armature for motor in card.motors],
        "friction": [motor.friction for motor in card.motors],
        "torque": "at most the effort at rest, down a straight line to none at the joint's greatest speed",
        "held": dict(card.held),
    }


def position_target(card: LeggedCard) -> Command:
    """Targets of the position control at the motors.

    Stopped, they follow the joints, which leaves damping alone: the robot sinks to the ground and pushes nobody, as
    robots of this kind do on an emergency stop. docs/safety.md has what that does to one that walks.
    """
    stand = tuple(joint.stand for joint in card.joints)
    lower, upper = (tuple(getattr(joint, end) for joint in card.joints) for end in ("lower", "upper"))
    return Command(
        "joint_position_target", card.joint_names, "rad", "joint", lower, upper, safe="hold", start=stand, stop="damp",
        law=card.law, feedback="joint_position",
    )  # fmt: skip


def initial_ranges(joints: int) -> dict[str, Range]:
    """How episodes begin."""
    return {
        "initial/yaw": Range.fixed(-math.pi, math.pi, unit="rad"),
        "initial/joint_position": Range.fixed(-0.15, 0.15, count=joints, unit="rad"),
        "initial/linear_velocity": Range.fixed(-0.5, 0.5, count=3, unit="m/s"),
        "initial/angular_velocity": Range.fixed(-0.5, 0.5, count=3, unit="rad/s"),
    }


def physical_ranges(joints: int, mass: float) -> dict[str, Range]:
    """What differs between robots of a ``mass`` (kg), and days; × is a factor on the card's figure."""
    return {
        "base_mass": Range.fixed(0.95, 1.05, unit="×"),
        "payload": Range.fixed(0.0, 2.0 * mass / MASS, unit="kg"),
        "center_of_mass": Range.fixed(-0.03, 0.03, count=3, unit="m"),
        "ground_friction": Range.fixed(0.4, 1.25, limits=NOT_NEGATIVE),
        "joint_friction": Range.fixed(0.5, 1.5, unit="×"),
        "armature": Range.fixed(0.8, 1.2, unit="×"),
        "stiffness": Range.fixed(0.9, 1.1, unit="×"),
        "damping": Range.fixed(0.8, 1.2, unit="×"),
        "strength": Range.fixed(0.85, 1.0, unit="×"),
        "command_delay": Range.fixed(0.0, 0.02, unit="s"),
        "delay": Range.fixed(*DELAY, unit="s"),
        "noise": Range.fixed(1.0, 1.0, unit="×"),
        "bias/joint_position": Range.fixed(-0.02, 0.02, count=joints, unit="rad"),
        "bias/angular_velocity": Range.fixed(-0.03, 0.03, count=3, unit="rad/s"),
    }


def goal_ranges(mass: float) -> dict[str, Range]:
    """Commands and pushes of an episode, for a robot of a ``mass`` (kg)."""
    force = mass * 0.5 / PUSH_TIME  # N: changes its speed by 0.5 m/s
    return {
        "command/x": Range.fixed(-1.0, 1.0, count=SEGMENTS, unit="m/s"),
        "command/y": Range.fixed(-0.6, 0.6, count=SEGMENTS, unit="m/s"),
        "command/yaw": Range.fixed(-1.0, 1.0, count=SEGMENTS, unit="rad/s"),
        "command/stand": Range.fixed(0.0, 1.0, count=SEGMENTS),
        "command/offset": Range.fixed(0.0, SEGMENT, unit="s"),
        "push/time": Range.fixed(0.0, 20.0, count=PUSHES, unit="s"),
        "push/x": Range.fixed(-force, force, count=PUSHES, unit="N"),
        "push/y": Range.fixed(-force, force, count=PUSHES, unit="N"),
    }
