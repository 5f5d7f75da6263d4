"""A robot as bodies and joints: all that the plants of ``robo_rl.sim.plants`` need to know of it, as data, whatever
its kind.

The model file has bodies, inertias, joint axes and shapes. A ``Mechanism`` says what of it is driven and how, what is
sensed, and what lies around. Names in it are names in the model file; the groups, points, frames, objects and rays
have names of their own, from which the plant makes the names of quantities and commands:

    group "joint"     joint_position, joint_velocity and joint_torque (of slides joint_force); by its law the command
                      joint_position_target, joint_velocity_target or joint_torque_target (of slides joint_force_target)
    free base         position, orientation, linear_velocity, angular_velocity
    points "foot"     foot_position, foot_velocity, foot_force
    frame "tool"      tool_position, tool_orientation, tool_linear_velocity, tool_angular_velocity
    impedance "tool"  the same four; commands tool_position_target, tool_orientation_target
    object "cube"     cube_position, cube_orientation, cube_linear_velocity, cube_angular_velocity
    rays "scan"       scan
    camera "depth"    depth

What belongs to a task (objects, rays, cameras) is added to a robot's mechanism by ``dataclasses.replace``.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from robo_rl.sim.robots.figures import CardError

Law = Literal["position", "velocity", "torque", "none"]
"""What a drive is told: a target of its position, of its velocity, its torque (or force); or there is no drive."""

Triple = tuple[float, float, float]
Quadruple = tuple[float, float, float, float]
UNTURNED: Quadruple = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class DrivenJoint:
    """A hinge or slide with its drive. Units are of a hinge; of a slide, m stands for rad and N for N m."""

    name: str
    home: float = 0.0
    """rad, where it is unless a task says otherwise."""
    lower: float = -math.inf
    """rad, of its stop; infinite for none."""
    upper: float = math.inf
    """rad."""
    effort: float = math.inf
    """N m, the greatest torque of the drive."""
    velocity: float = math.inf
    """rad/s; of a DC motor the speed at which no torque is left."""
    stiffness: float = 0.0
    """N m/rad, gain of the position control."""
    damping: float = 0.0
    """N m s/rad, gain of the position or velocity control."""
    armature: float = 0.0
    """kg m², inertia of rotor and gears as seen by the joint."""
    friction: float = 0.0
    """N m, dry friction."""
    slides: bool = False

    @property
    def unit(self) -> str:
        return "m" if self.slides else "rad"


@dataclass(frozen=True)
class JointGroup:
    """Hinges, or slides, of one law, in the order in which signals and commands have them."""

    name: str
    joints: tuple[DrivenJoint, ...]
    law: Law = "position"
    slides: bool = False
    dc_motor: bool = False
    """Whether the torque is limited to the straight line from ``effort`` at standstill to nothing at ``velocity``."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @property
    def effort(self) -> str:
        """The quantity that the drives give, by name."""
        return f"{self.name}_{'force' if self.slides else 'torque'}"

    @property
    def command(self) -> str:
        """The command that the drives take, by name."""
        return f"{self.effort if self.law == 'torque' else f'{self.name}_{self.law}'}_target"


@dataclass(frozen=True)
class Coupling:
    """Joints that one drive moves together: each follower is where its ratio times the leader's position is.

    The leader is in a group; its position counts for all, its drive's torque is shared among them, as by the fingers of
    a gripper.
    """

    leader: str
    followers: tuple[tuple[str, float], ...]
    """Joint and ratio of each."""
    inertia: float = 0.0
    """kg m², or kg of slides, that each of the joints has of its own besides its bodies': what its gear makes of it."""


@dataclass(frozen=True)
class Impedance:
    """A Cartesian spring and damper at a tool, computed at every physics step: F = K clip(x_d − x) − D v.

    The difference to the target is cut to a length before it is multiplied, so that the static force is at most
    stiffness · clip, whatever the target. Rotation likewise, by the rotation vector from tool to target.
    """

    name: str
    at: str
    """Site of the tool."""
    stiffness: tuple[float, float]
    """N/m and N m/rad."""
    damping: tuple[float, float]
    """N s/m and N m s/rad."""
    clip: tuple[float, float] = (math.inf, math.inf)
    """m and rad."""
    relative_to: str | None = None
    """Body in whose frame targets, pose and velocities are; the base by default."""


@dataclass(frozen=True)
class ContactPoints:
    """Places that touch things: their position and velocity (m, m/s, world), and the normal force (N) on them."""

    name: str
    at: tuple[str, ...]
    """Shapes (MuJoCo's geoms), or sites, which feel the contacts of their body that are within them."""


@dataclass(frozen=True)
class Frame:
    """A place whose pose and velocity is a quantity: of a tool, a camera, a load."""

    name: str
    at: str
    """A site, body or shape."""
    relative_to: str | None = None
    """Body in whose frame pose and velocities are; the world by default."""


@dataclass(frozen=True)
class FreeObject:
    """A rigid body that nothing holds, of one shape or as MJCF."""

    name: str
    shape: Literal["box", "sphere", "cylinder", "capsule"] = "box"
    size: tuple[float, ...] = ()
    """m: half lengths of a box; radius; radius and half length along z."""
    mass: float = 0.0
    """kg."""
    friction: Triple = (1.0, 0.005, 0.0001)
    """Coefficients of sliding, turning (m) and rolling (m), whatever it touches."""
    position: Triple = (0.0, 0.0, 0.0)
    """m, world, unless a task says otherwise."""
    orientation: Quadruple = UNTURNED
    """Quaternion x, y, z, w."""
    mjcf: str | Path | None = None
    """A <mujoco> document with one body, or its file, instead of shape, size and mass. Meshes are beside the file."""


@dataclass(frozen=True)
class Rays:
    """Distances (m) along rays from a place of the robot to whatever is not the body that it is on."""

    name: str
    at: str
    """A site or body."""
    directions: tuple[Triple, ...]
    """In the frame of that place, of any length but zero."""
    origins: tuple[Triple, ...] = ((0.0, 0.0, 0.0),)
    """m, in the same frame; one for all rays, or one each."""
    longest: float = math.inf
    """m."""
    miss: float = math.inf
    """m, what a ray tells that meets nothing within the longest distance."""


@dataclass(frozen=True)
class DepthCamera:
    """A depth image (m, along the optical axis) of whatever a camera on the robot sees, itself included."""

    name: str
    at: str
    """A site or body."""
    shape: tuple[int, int]
    """Rows and columns."""
    fov: float
    """rad, horizontal; pixels are square."""
    position: Triple = (0.0, 0.0, 0.0)
    """m, of the optical centre, in the frame of ``at``."""
    orientation: Quadruple = UNTURNED
    """Quaternion x, y, z, w from the optical frame (z ahead, x right, y down) to that of ``at``."""
    nearest: float = 0.0
    """m: what is nearer has the depth 0, which stands for one that is not known."""
    longest: float = 10.0
    """m: what is farther has this depth."""


@dataclass(frozen=True)
class Mechanism:
    """A robot as bodies and joints."""

    name: str
    model: Path
    """MJCF or URDF with bodies, inertias, joint axes and collision shapes."""
    base: str
    """The body that carries all others."""
    fixed: bool
    """Whether the base is where the model file has it, for good; otherwise it moves freely."""
    groups: tuple[JointGroup, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    impedances: tuple[Impedance, ...] = ()
    contacts: tuple[ContactPoints, ...] = ()
    frames: tuple[Frame, ...] = ()
    objects: tuple[FreeObject, ...] = ()
    rays: tuple[Rays, ...] = ()
    cameras: tuple[DepthCamera, ...] = ()
    weightless: bool = False
    """Whether the robot's own controller carries the weight of its links (not of what it holds), as many arms' does."""
    held: tuple[tuple[str, float], ...] = ()
    """Joints of the model that don't move, and where they stay (rad or m)."""
    complete: bool = False
    """Whether a joint of the model that nothing here names, and no linkage moves, is refused: it would hang limp."""
    floor: bool = True
    """Whether there is level ground at height 0 where a task has no ground of its own."""

    def __post_init__(self) -> None:
        for what, names in (
            ("joint", [joint.name for joint in self.joints]),
            ("quantity", [part.name for parts in self._named() for part in parts]),
        ):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise CardError(f"mechanism '{self.name}': {what} {twice[0]!r} is there twice; expected other names")
        for group in self.groups:
            self._require_law(group)
        for thing in self.objects:
            sizes = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2}[thing.shape]
            good = len(thing.size) == sizes and min(thing.size, default=0) > 0 and thing.mass > 0
            if thing.mjcf is None and not good:
                raise CardError(
                    f"object '{thing.name}' is a {thing.shape} of size {thing.size} and {thing.mass} kg; "
                    f"expected {sizes} positive lengths and a positive mass"
                )
        for rays in self.rays:
            if len(rays.origins) not in (1, len(rays.directions)) or not all(map(any, rays.directions)):
                raise CardError(
                    f"rays '{rays.name}': {len(rays.directions)} directions, {len(rays.origins)} origins; "
                    "expected directions that are not zero, and one origin for all or one each"
                )

    def _named(self) -> tuple[tuple, ...]:
        """All whose names become names of quantities."""
        return self.groups, self.impedances, self.contacts, self.frames, self.objects, self.rays, self.cameras

    def _require_law(self, group: JointGroup) -> None:
        for joint in group.joints:
            where = f"mechanism '{self.name}', joint '{joint.name}'"
            if group.law not in ("position", "velocity", "torque", "none"):
                raise CardError(f"{where}: law is {group.law!r}; expected position, velocity, torque or none")
            if not joint.lower <= joint.home <= joint.upper:
                raise CardError(f"{where}: home is {joint.home}; expected from {joint.lower} to {joint.upper}")
            if group.dc_motor and not (0 < joint.effort < math.inf and 0 < joint.velocity < math.inf):
                raise CardError(
                    f"{where}: a DC motor of effort {joint.effort} and velocity {joint.velocity}; expected positive"
                )

    @property
    def joints(self) -> tuple[DrivenJoint, ...]:
        """Of all groups, in order."""
        return tuple(joint for group in self.groups for joint in group.joints)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @property
    def driven(self) -> tuple[DrivenJoint, ...]:
        """The joints that have a drive, in order."""
        return tuple(joint for group in self.groups if group.law != "none" for joint in group.joints)

    @property
    def points(self) -> tuple[str, ...]:
        """Shapes and sites of all contact points, in order."""
        return tuple(name for contact in self.contacts for name in contact.at)
