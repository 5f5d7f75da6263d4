"""Kinematics of a chain of hinges and slides from a base to a tool: pose, Jacobian, and inverse kinematics.

Everything is written out in components, so that one robot (numbers), a batch (arrays of numpy or torch) and symbols of
``robo_rl.sim.accelerate.fuse`` use the same lines, and an exported policy can hold them. Frames are those of the
base; SI units.

    chain = Chain.from_facts(contract.robot.facts)
    pose = chain.pose([q1, q2, …])            # pose.position, pose.z: where the tool is, and where its z axis points
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robo_rl.contract import ContractError, Robot
from robo_rl.contract.checks import require
from robo_rl.controllers.rotation import Matrix, Quaternion, Vector, add, cross, dot, matrix, multiply

EPSILON = 1e-12
"""Entries of a rotation matrix that are rounding, of offsets by multiples of a right angle."""


class Link(NamedTuple):
    """From one joint to the next: an offset and a turn; the joint turns about the z axis of what results, or slides
    along it."""

    position: tuple[float, float, float]
    """m, in the frame before it."""
    orientation: tuple[float, float, float, float]
    """Quaternion x, y, z, w."""
    slides: bool = False


class Pose(NamedTuple):
    """Of a tool, and the axes that it turns about or slides along."""

    position: Vector
    """m."""
    x: Vector
    """The tool's axes, of length 1."""
    y: Vector
    z: Vector
    origins: tuple[Vector, ...]
    """m, a point on the axis of each joint."""
    axes: tuple[Vector, ...]
    """Each joint's axis, of length 1."""
    slides: tuple[bool, ...]
    """Of each joint, whether it slides along its axis."""

    def jacobian(self) -> tuple[tuple[Vector, ...], tuple[Vector, ...]]:
        """For each joint, the tool's velocity (m/s) and angular velocity (rad/s) per rad/s, of a slide per m/s."""
        arms = [tuple(p - o for p, o in zip(self.position, origin, strict=True)) for origin in self.origins]
        joints = list(zip(self.axes, arms, self.slides, strict=True))
        linear = tuple(axis if slides else cross(axis, arm) for axis, arm, slides in joints)
        return linear, tuple((0.0, 0.0, 0.0) if slides else axis for axis, _, slides in joints)


@dataclass(frozen=True)
class Chain:
    """Hinges and slides in a row, and the tool behind the last one."""

    links: tuple[Link, ...]
    tool: Link

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Chain:
        """That of a contract's robot of the kind arm: ``facts["chain"]`` and ``facts["tool"]``."""
        links = [
            Link(tuple(link["position"]), tuple(link["orientation"]), link.get("slides", False))
            for link in (*facts["chain"], facts["tool"])
        ]
        for link in links:
            require(isinstance(link.slides, bool), "robot: facts: chain: slides", link.slides, "true or false")
        return cls(tuple(links[:-1]), links[-1])

    def to_facts(self) -> dict[str, Any]:
        """Plain data for a contract."""
        parts: list[dict[str, Any]] = [
            {"position": list(link.position), "orientation": list(link.orientation)} for link in self.links
        ]
        for part, link in zip(parts, self.links, strict=True):
            if link.slides:
                part["slides"] = True
        tool = {"position": list(self.tool.position), "orientation": list(self.tool.orientation)}
        return {"chain": parts, "tool": tool}

    def pose(self, angles: Sequence[Any]) -> Pose:
        """The tool's at joint positions (rad, of slides m), one number or array (n,) per joint."""
        position: Vector = (0.0, 0.0, 0.0)
        frame: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))  # its axes, one after the other
        origins, axes = [], []
        for link, angle in zip(self.links, angles, strict=True):
            position, frame = _moved(position, frame, link)
            origins.append(position)
            axes.append(frame[2])
            x, y, z = frame
            if link.slides:
                position = add(position, _combined(((angle, z),)))
                continue
            sine, cosine = _sine(angle), _cosine(angle)
            turned = _combined(((cosine, x), (sine, y))), _combined(((cosine, y), (-sine, x)))
            frame = (*turned, z)
        position, frame = _moved(position, frame, self.tool)
        return Pose(position, *frame, tuple(origins), tuple(axes), tuple(link.slides for link in self.links))


def orientation_at_home(robot: Robot) -> Quaternion:
    """How an arm's tool is turned at home (x, y, z, w, base frame); not at all, for other kinds of robots.

    ContractError where the robot's facts are not those of an arm.
    """
    turned: Quaternion = (0.0, 0.0, 0.0, 1.0)
    if robot.kind != "arm":
        return turned
    try:
        chain = Chain.from_facts(robot.facts)
        for link, angle in zip(chain.links, robot.facts["home"], strict=True):
            half = 0.0 if link.slides else 0.5 * float(angle)
            turned = multiply(multiply(turned, link.orientation), (0.0, 0.0, math.sin(half), math.cos(half)))
        turned = tuple(float(x) for x in multiply(turned, chain.tool.orientation))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ContractError(f"robot: facts: {error!r}; expected the chain, tool and home of an arm") from None
    if not abs(math.hypot(*turned) - 1.0) < 1e-3:
        raise ContractError(f"robot: facts: its tool is turned by {turned} at home; expected quaternions of length 1")
    return turned


def damped_step(rows: Sequence[Vector], errors: Sequence[Any], damping: float) -> Vector:
    """(joints) rad, of slides m, that bring a robot nearer to a target: damped least squares (Wampler 1986).

    ``rows`` are those of the Jacobian, weighted, and ``errors`` what is left on each: the step minimises
    |J dq − e|² + damping² |dq|², also where J is singular.
    """
    count = len(rows[0])
    normal = [[sum(row[i] * row[j] for row in rows) for j in range(i + 1)] for i in range(count)]
    for i in range(count):
        normal[i][i] = normal[i][i] + damping * damping
    right = [sum(row[i] * error for row, error in zip(rows, errors, strict=True)) for i in range(count)]
    return tuple(_solved(normal, right))


def pointing_rows(pose: Pose, weight: float) -> list[Vector]:
    """(5) rows of a Jacobian: the tool's position, and the two turns about level axes, weighted (m/rad).

    The turn about the vertical is left free, for arms with five joints.
    """
    linear, angular = pose.jacobian()
    rows = [tuple(column[k] for column in linear) for k in range(3)]
    return rows + [tuple(weight * column[k] for column in angular) for k in range(2)]


def downwards(pose: Pose) -> tuple[Any, Any]:
    """The sine of the turn about x and y that lets the tool's z axis point down."""
    return -pose.z[1], pose.z[0]


def pose_rows(pose: Pose, weight: float) -> list[Vector]:
    """(6) rows of a Jacobian: the tool's position, and its turns, weighted (m/rad)."""
    linear, angular = pose.jacobian()
    rows = [tuple(column[k] for column in linear) for k in range(3)]
    return rows + [tuple(weight * column[k] for column in angular) for k in range(3)]


def turn_between(pose: Pose, axes: Matrix) -> Vector:
    """About the turn (rad) that brings the tool's axes to ``axes``: half of the sum of their cross products."""
    parts = [cross(own, wanted) for own, wanted in zip((pose.x, pose.y, pose.z), axes, strict=True)]
    return tuple(0.5 * (a + b + c) for a, b, c in zip(*parts, strict=True))


def _moved(position: Vector, frame: Matrix, link: Link) -> tuple[Vector, Matrix]:
    """By a fixed offset and turn; factors that are 0 or 1 make no arithmetic."""
    offset = _combined(tuple(zip(link.position, frame, strict=True)))
    columns = tuple(zip(*matrix(link.orientation), strict=True))
    turned = tuple(_combined(tuple(zip(column, frame, strict=True))) for column in columns)
    return add(position, offset), turned  # type: ignore[return-value]


def _combined(parts: Sequence[tuple[Any, Vector]]) -> Vector:
    """The sum of vectors times factors."""
    result: list[Any] = [0.0, 0.0, 0.0]
    for factor, vector in parts:
        if isinstance(factor, float) and abs(factor) < EPSILON:
            continue
        exact = isinstance(factor, float) and abs(abs(factor) - 1.0) < EPSILON
        for k, x in enumerate(vector):
            if isinstance(x, float) and x == 0.0:
                continue
            term = (x if factor > 0 else -x) if exact else factor * x
            result[k] = term if isinstance(result[k], float) and result[k] == 0.0 else result[k] + term
    return tuple(result)


def _solved(lower: list[list[Any]], right: list[Any]) -> list[Any]:
    """The solution of a symmetric positive system, of which ``lower`` is the lower triangle: L D Lᵀ."""
    count = len(right)
    factor: list[list[Any]] = [[None] * count for _ in range(count)]
    diagonal: list[Any] = []
    for i in range(count):
        for j in range(i):
            rest = lower[i][j] - sum((factor[i][k] * factor[j][k] * diagonal[k] for k in range(j)), 0.0)
            factor[i][j] = rest / diagonal[j]
        diagonal.append(lower[i][i] - sum((factor[i][k] * factor[i][k] * diagonal[k] for k in range(i)), 0.0))
    half: list[Any] = []
    for i in range(count):
        half.append(right[i] - sum((factor[i][k] * half[k] for k in range(i)), 0.0))
    found = [half[i] / diagonal[i] for i in range(count)]
    for i in reversed(range(count)):
        found[i] = found[i] - sum((factor[k][i] * found[k] for k in range(i + 1, count)), 0.0)
    return found


def _sine(angle: Any) -> Any:
    return np.sin(angle) if isinstance(angle, float | np.ndarray) else angle.sin()


def _cosine(angle: Any) -> Any:
    return np.cos(angle) if isinstance(angle, float | np.ndarray) else angle.cos()


def as_axes(orientation: Quaternion) -> Matrix:
    """The axes of a frame, one after the other, of its quaternion x, y, z, w."""
    return tuple(zip(*matrix(orientation), strict=True))  # type: ignore[return-value]


def length(vector: Vector) -> Any:
    """Of a vector in components."""
    return dot(vector, vector) ** 0.5
