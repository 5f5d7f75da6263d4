"""Cards of arms: a model file for bodies and shapes, the motors in every joint, and a gripper with pads that hold.

A card may lack ``[gripper]`` and ``[grasp]``, both: its tool is then a bare flange, and nothing is grasped. A card may
have a ``[camera]``, a depth camera beside the gripper that looks at what is between the pads.

Motors that are alike are one table ``[[motors]]`` with the joints they drive; ``joints`` is the order of the robot's
computer, from the base to the tool, and of signals and commands. Those with ``slides = true`` drive joints that slide;
such joints have signals and commands of their own, in metres. An arm that takes poses of its tool has an
``[impedance]``; one without takes positions of its joints. The base is at the world's origin, z up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from robo_rl.contract import Actuator, ContractError, ImpedanceLaw, PositionLaw, Robot
from robo_rl.controllers.arm.chain import Chain
from robo_rl.sim.robots.figures import CardError, figure, label, model_beside, names, require
from robo_rl.sim.robots.gripper import FINGER, Gripper, read_gripper
from robo_rl.sim.robots.mechanism import (
    ContactPoints,
    Coupling,
    DrivenJoint,
    Frame,
    Impedance,
    JointGroup,
    Law,
    Mechanism,
)
from robo_rl.sim.robots.motors import HINGE, driven_joint, read_held, read_motors

KIND = "arm"
ONE_ARM = (
    'A card of the kind "arm" has one arm: of a robot with two name both in a card with kind = "two_arms", or write a '
    "card for each, with the other's joints in [held] (docs/own-robot.md)"
)
STRAIGHT = 1e-6
"""Singular values below which a Jacobian's are rounding."""

IMPEDANCE = {
    "stiffness": "N/m",
    "damping": "N*s/m",
    "clip": "m",
    "turn_stiffness": "N*m/rad",
    "turn_damping": "N*m*s/rad",
    "turn_clip": "rad",
}
CAMERA = {"position": "m", "tilt": "rad", "fov": "rad", "range": "m", "noise": "1/m", "period": "s"}
GRASP = {"size": "m", "mass": "kg", "creep": "m/s", "twist": "rad/s", "swing": "m"}
FIELDS = {
    "kind",
    "title",
    "model",
    "base",
    "tool",
    "weightless",
    "joints",
    "home",
    "motors",
    "workspace",
}
OPTIONAL = {"gripper", "grasp", "impedance", "camera", "held", "servos"}
SERVOS = {"stiffness": "N*m/rad"}


@dataclass(frozen=True)
class GraspCheck:
    """What a cube that is held may do at most."""

    size: float
    """m, of the cube's edge."""
    mass: float
    """kg."""
    creep: float
    """m/s, sliding out of a hand at rest."""
    twist: float
    """rad/s, turning in a hand at rest."""
    swing: float
    """m, over 4 s of swinging."""
    edges: tuple[float, float] = (0.85, 1.1)
    """The least and the greatest edge of cubes that are placed, over ``size``."""
    tips: tuple[float, float] | None = None
    """m or rad, by which the gripper's position on an object may differ from the model's: thinner and thicker pads."""


@dataclass(frozen=True)
class WristCamera:
    """A depth camera on the hand. Its images have their upper edge where the tool's x axis points."""

    position: tuple[float, float, float]
    """m, of its optical centre in the tool's frame."""
    tilt: float
    """rad, by which it looks from the tool's z axis against its x axis."""
    fov: float
    """rad, horizontal."""
    range: tuple[float, float]
    """m, the least and the greatest depth that it tells."""
    noise: float
    """1/m: the standard deviation of a depth over its square."""
    period: float
    """s, between images."""

    @property
    def orientation(self) -> tuple[float, float, float, float]:
        """Quaternion x, y, z, w from the optical frame to the tool's: x is the tool's y, y against its x."""
        c, s = np.cos(0.5 * self.tilt) * np.sqrt(0.5), np.sin(0.5 * self.tilt) * np.sqrt(0.5)
        return float(-s), float(-s), float(c), float(c)


@dataclass(frozen=True)
class ArmCard:
    """Figures of an arm in SI units."""

    kind: ClassVar[str] = KIND
    name: str
    title: str
    model: Path
    """MJCF or URDF with bodies, inertias, joint axes and collision shapes."""
    base: str
    """The body that stands on the ground."""
    tool: str
    """Site between the pads: its z axis points where the gripper does, its y axis from pad to pad."""
    joints: tuple[DrivenJoint, ...]
    """From base to tool."""
    fingers: Gripper | None
    """``gripper``, if it has one."""
    impedance: Impedance | None
    """How it holds its tool, if it takes poses."""
    weightless: bool
    """Whether its own controller carries the weight of its links."""
    workspace: tuple[tuple[float, float, float], tuple[float, float, float]]
    """m, lower and upper corners of the box in which its tasks are, in the base frame."""
    grasp_check: GraspCheck | None
    """``grasp``, if it has a gripper."""
    held: tuple[tuple[str, float], ...]
    """Joints of the model that don't move, and where they stay (rad or m)."""
    camera: WristCamera | None
    """On the hand, if there is one."""
    servo_stiffness: tuple[float, float] | None
    """N m/rad: the least and the greatest of all joints, where it is known no better than that."""
    sources: dict[str, str]
    carriers: tuple[str, ...] = ()
    """Joints below its base that move the whole arm: those of a base that drives."""

    @property
    def gripper(self) -> Gripper:
        """CardError where it has none."""
        if self.fingers is None:
            raise CardError(f"robot '{self.name}' has no gripper; expected an arm whose card has [gripper] and [grasp]")
        return self.fingers

    @property
    def grasp(self) -> GraspCheck:
        """CardError where it has no gripper."""
        if self.grasp_check is None:
            raise CardError(f"robot '{self.name}' has no gripper; expected an arm whose card has [gripper] and [grasp]")
        return self.grasp_check

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @property
    def home(self) -> tuple[float, ...]:
        """rad, of slides m."""
        return tuple(joint.home for joint in self.joints)

    @property
    def hinges(self) -> tuple[DrivenJoint, ...]:
        """Joints that turn, from base to tool."""
        return tuple(joint for joint in self.joints if not joint.slides)

    @property
    def slides(self) -> tuple[DrivenJoint, ...]:
        """Joints that slide, from base to tool."""
        return tuple(joint for joint in self.joints if joint.slides)

    @property
    def tool_law(self) -> ImpedanceLaw:
        """What its low level does with poses of its tool. CardError where it takes none."""
        if self.impedance is None:
            raise CardError(f"robot '{self.name}' takes no poses of its tool; expected an arm with [impedance]")
        (k, turn_k), (d, turn_d), (clip, turn_clip) = (
            getattr(self.impedance, name) for name in ("stiffness", "damping", "clip")
        )
        return ImpedanceLaw(
            (k,) * 3 + (turn_k,) * 3, (d,) * 3 + (turn_d,) * 3, (clip,) * 3 + (turn_clip,) * 3, self.tool
        )

    @property
    def gripper_law(self) -> PositionLaw:
        """Of the gripper."""
        return PositionLaw((self.gripper.joint.stiffness,), (self.gripper.joint.damping,))

    @cached_property
    def turned(self) -> tuple[float, float, float, float] | None:
        """Its tool's orientation in all tasks, that at home; None of arms with too few joints to keep one."""
        from scipy.spatial.transform import Rotation

        if not (self._keeps_turn if self.slides else len(self.joints) > 5):
            return None
        pose = self.chain.pose([float(angle) for angle in self.home])
        x, y, z, w = Rotation.from_matrix(np.array([pose.x, pose.y, pose.z]).T).as_quat()
        return float(x), float(y), float(z), float(w)

    @property
    def _keeps_turn(self) -> bool:
        """Whether an arm with slides, such as a gantry, moves its tool all ways at home and needs not turn it."""
        linear, angular = (np.array(rows, float).T for rows in self.chain.pose(list(map(float, self.home))).jacobian())
        _, sizes, ways = np.linalg.svd(angular)
        still = ways[int((sizes > STRAIGHT).sum()) :]
        return np.linalg.matrix_rank(linear @ still.T, STRAIGHT) == 3

    @cached_property
    def one_jaw(self) -> bool:
        """Whether one of its pads stays where it is in the hand, and the other moves."""
        if self.fingers is None or self.impedance is not None or self.fingers.followers:
            return False
        from robo_rl.sim.plants.assembly import assemble
        from robo_rl.sim.plants.physics import Physics

        model = assemble(self.mechanism, Physics())
        hand = int(model.body_weldid[model.site(self.tool).bodyid[0]])
        pads = [int(model.body_weldid[model.geom(pad).bodyid[0]]) for pad in self.fingers.pads]
        return pads.count(hand) == 1

    def facts(self) -> Robot:
        """What a contract tells about this robot: its actuators, and the chain of its joints."""
        arm = [
            Actuator(j.name, "position", j.unit, j.lower, j.upper, "hold", effort=j.effort, speed=j.velocity)
            for j in self.joints
        ]
        facts = {"home": list(self.home), **self.chain.to_facts()}
        if self.fingers is None:
            return Robot(self.name, KIND, tuple(arm), facts)
        jaw = self.gripper.joint
        hand = Actuator(
            jaw.name, "position", self.gripper.unit, jaw.lower, jaw.upper, "hold", effort=jaw.effort, speed=jaw.velocity
        )
        return Robot(self.name, KIND, (*arm, hand), facts)

    def figures(self) -> dict[str, Any]:
        """What is worth knowing at a glance, and why the tasks of arms can't use it, if so."""
        import mujoco

        from robo_rl.sim.plants.assembly import assemble
        from robo_rl.sim.plants.physics import Physics
        from robo_rl.sim.tasks.arm.room import reasons_against

        pose = self.chain.pose([float(angle) for angle in self.home])
        found = {
            "mass_kg": float(mujoco.mj_getTotalmass(assemble(self.mechanism, Physics(contacts="model")))),
            "joints": len(self.joints),
            "tool_at_home_m": [round(float(x), 4) for x in pose.position],
            **reasons_against(self),
        }
        if self.fingers is None:
            return found
        jaw = self.gripper.joint
        return {
            **found,
            f"gripper_{self.gripper.unit}": jaw.upper - jaw.lower,
            "grip_n" if self.gripper.slides else "grip_n_m": jaw.effort,
        }

    def files(self) -> tuple[Path, ...]:
        """Files beside the card that belong to it: the model, and what it names."""
        from robo_rl.sim.models import named_files

        return (self.model, *named_files(self.model))

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> ArmCard:
        """The card in the parsed TOML ``card`` of the file ``path``."""
        return read_arm(card, name, path)

    def drawing(self) -> tuple[Any, Any]:
        """How it looks at home: a MuJoCo model, and poses (bodies, 7) as ``Plant.poses`` gives them."""
        from robo_rl.sim.plants.drawing import at_rest

        return at_rest(self.mechanism)

    def urdf(self) -> str:
        """One link per body of the model file, and one more for the tool and each pad."""
        from robo_rl.sim.plants.urdf import ros_urdf

        return ros_urdf(self.mechanism)

    @cached_property
    def mechanism(self) -> Mechanism:
        """Bodies and joints for the plants: a fixed base, a tool, a gripper whose pads feel what they touch."""
        moved_by_tool = self.impedance is not None
        servos = not moved_by_tool  # motors with gears, whose torque falls with their speed
        hand = self.fingers
        grippers: tuple[JointGroup, ...] = ()
        couplings: tuple[Coupling, ...] = ()
        if hand is not None:
            grippers = (JointGroup("gripper", (hand.joint,), slides=hand.slides, dc_motor=servos),)
        if hand is not None and hand.followers:
            couplings = (hand.coupling(self.model),)
        law: Law = "none" if moved_by_tool else "position"
        sorts = (("joint", self.hinges), ("slide", self.slides))
        arm = [JointGroup(k, js, law, slides=k == "slide", dc_motor=servos) for k, js in sorts if js]
        return Mechanism(
            name=self.name,
            model=self.model,
            base=self.base,
            fixed=True,
            groups=(
                *arm,
                *grippers,
            ),
            couplings=couplings,
            impedances=(self.impedance,) if self.impedance else (),
            contacts=(ContactPoints("pad", hand.pads),) if hand is not None else (),
            frames=() if moved_by_tool else (Frame("tool", self.tool, self.base),),
            weightless=self.weightless,
            held=self.held,
        )

    @cached_property
    def chain(self) -> Chain:
        """From base to tool; CardError if the joints are not that chain."""
        from robo_rl.sim.robots.arm.chain import read_chain

        return read_chain(self)


CARD = ArmCard


def load_arm(name: str) -> ArmCard:
    """As ``robo_rl.sim.robots.load_robot``, for an arm."""
    from robo_rl.sim.robots import load_robot

    return load_robot(name, CARD)


def read_arm(card: dict[str, Any], name: str, path: Path, carriers: tuple[str, ...] = ()) -> ArmCard:
    """The card in the parsed TOML ``card`` of the file ``path``; ``carriers``: as ``ArmCard``'s."""
    where = str(path)
    for key in card:
        expected = f"one of {sorted(FIELDS | OPTIONAL)}"
        require(key in FIELDS | OPTIONAL, where, key, "an unknown field", expected)
    both = ("gripper" in card) == ("grasp" in card)
    require(both, where, "gripper", "one without the other", "gripper and grasp, or neither")
    require(not isinstance(card.get("tool"), list), where, "tool", card.get("tool"), f"one tool. {ONE_ARM}")
    for key in ("title", "model", "base", "tool"):
        require(isinstance(card.get(key), str), where, key, card.get(key), "a text")
    require(isinstance(card.get("weightless"), bool), where, "weightless", card.get("weightless"), "true or false")
    moved = names(card.get("joints"), "joints", where)
    model = model_beside(card, path)
    driven = read_motors(card.get("motors"), where)
    require(set(driven) == set(moved), where, "joints", list(moved), f"the motors' joints, {sorted(driven)}")
    sliding = [joint for joint in moved if driven[joint].slides]
    take = "an arm without: one with joints that slide takes positions of its joints"
    require(not (sliding and "impedance" in card), where, "impedance", f"that of an arm with {sliding}", take)
    units = ["m" if joint in sliding else "rad" for joint in moved]
    home = figure(card.get("home"), "home", units if sliding else "rad", len(moved), where)
    joints = tuple(driven_joint(joint, driven[joint], angle, where) for joint, angle in zip(moved, home, strict=True))
    try:
        result = ArmCard(
            name=name,
            title=card["title"],
            model=model,
            base=label(card["base"]),
            tool=label(card["tool"]),
            joints=joints,
            fingers=read_gripper(card["gripper"], where) if "gripper" in card else None,
            impedance=_impedance(card["impedance"], label(card["tool"]), where) if "impedance" in card else None,
            weightless=card["weightless"],
            workspace=_workspace(card.get("workspace"), where),
            grasp_check=_grasp(card, where) if "grasp" in card else None,
            held=read_held(card.get("held", {}), where),
            camera=_camera(card["camera"], where) if "camera" in card else None,
            servo_stiffness=_servos(card["servos"], joints, where) if "servos" in card else None,
            sources=_sources(card),
            carriers=carriers,
        )
        require(result.impedance is None or result.weightless, where, "weightless", False, "true with an impedance")
        result.facts()
    except ContractError as error:
        raise CardError(f"{where}: {error}") from None
    return result


def _figures(table: Any, label: str, units: dict[str, str], where: str) -> dict[str, float]:
    """Positive figures of a table, one number each."""
    require(isinstance(table, dict) and set(table) == set(units), where, label, table, f"the fields {sorted(units)}")
    values = {key: figure(table[key], f"{label}.{key}", unit, 1, where)[0] for key, unit in units.items()}
    for key, value in values.items():
        require(value > 0, where, f"{label}.{key}.value", value, "a positive number")
    return values


def _grasp(card: dict[str, Any], where: str) -> GraspCheck:
    """With ``edges`` (m) and ``tips`` or without."""
    table = card["grasp"]
    given = isinstance(table, dict)
    wide = {key: table[key] for key in ("edges", "tips") if given and key in table}
    found = _figures({key: table[key] for key in table if key not in wide} if given else table, "grasp", GRASP, where)
    unit = "m" if isinstance(card["gripper"], dict) and card["gripper"].get("slides") else "rad"
    pairs: dict[str, Any] = {key: _pair(told, f"grasp.{key}", {"edges": "m", "tips": unit}[key], where)
                             for key, told in wide.items()}  # fmt: skip
    if "edges" in pairs:
        low, high = pairs["edges"]
        require(0 < low <= found["size"] <= high, where, "grasp.edges.value", [low, high], "positive ones around size")
        pairs["edges"] = (low / found["size"], high / found["size"])
    figures: dict[str, Any] = {**found, **pairs}
    return GraspCheck(**figures)


def _pair(told: Any, label: str, unit: str, where: str) -> tuple[float, float]:
    low, high = figure(told, label, unit, 2, where)
    require(low <= high, where, f"{label}.value", [low, high], "two numbers, the lower one first")
    return low, high


def _servos(table: Any, joints: tuple[DrivenJoint, ...], where: str) -> tuple[float, float]:
    good = isinstance(table, dict) and set(table) == set(SERVOS)
    require(good, where, "servos", table, f"the fields {sorted(SERVOS)}")
    low, high = _pair(table["stiffness"], "servos.stiffness", SERVOS["stiffness"], where)
    known = {joint.stiffness for joint in joints}
    require(len(known) == 1, where, "servos", sorted(known), "joints of one stiffness, which is within that of servos")
    require(0 < low <= known.pop() <= high, where, "servos.stiffness.value", [low, high], "numbers around the motors'")
    return low, high


def _impedance(table: Any, tool: str, where: str) -> Impedance:
    k = _figures(table, "impedance", IMPEDANCE, where)
    stiffness, damping, clip = ((k[name], k[f"turn_{name}"]) for name in ("stiffness", "damping", "clip"))
    return Impedance("tool", tool, stiffness, damping, clip)


def _workspace(table: Any, where: str) -> Any:
    require(isinstance(table, dict) and set(table) == {"lower", "upper"}, where, "workspace", table, "lower and upper")
    corners = tuple(tuple(figure(table[k], f"workspace.{k}", "m", 3, where)) for k in ("lower", "upper"))
    good = all(a < b for a, b in zip(*corners, strict=True))
    require(good, where, "workspace", corners, "numbers of lower that are less than those of upper")
    return corners


def _camera(table: Any, where: str) -> WristCamera:
    good = isinstance(table, dict) and set(table) == set(CAMERA)
    require(good, where, "camera", table, f"the fields {sorted(CAMERA)}")
    counts = {"position": 3, "range": 2}
    values = {key: figure(table[key], f"camera.{key}", unit, counts.get(key, 1), where) for key, unit in CAMERA.items()}
    near, far = values["range"]
    require(0 < near < far, where, "camera.range.value", values["range"], "two positive numbers, the lower one first")
    for key, most in (("fov", np.pi), ("period", np.inf)):
        (value,) = values[key]
        require(0 < value < most, where, f"camera.{key}.value", value, f"a number above 0 and below {most}")
    require(values["noise"][0] >= 0, where, "camera.noise.value", values["noise"][0], "a number of 0 or more")
    single = {key: values[key][0] for key in ("tilt", "fov", "noise", "period")}
    x, y, z = values["position"]
    return WristCamera(position=(x, y, z), range=(near, far), **single)


def _sources(card: dict[str, Any]) -> dict[str, str]:
    tables = {motor["name"]: (motor, HINGE) for motor in card["motors"]}
    if "gripper" in card:
        told = {key: "" for key in (*HINGE, FINGER) if key in card["gripper"]}
        grasp = {key: "" for key in (*GRASP, "edges", "tips") if key in card["grasp"]}
        tables |= {"gripper": (card["gripper"], told), "grasp": (card["grasp"], grasp)}
    tables["workspace"] = (card["workspace"], {"lower": "m", "upper": "m"})
    if "impedance" in card:
        tables["impedance"] = (card["impedance"], IMPEDANCE)
    if "camera" in card:
        tables["camera"] = (card["camera"], CAMERA)
    tables["servos"] = (card.get("servos", {}), card.get("servos", {}))
    tables["held"] = (card.get("held", {}), card.get("held", {}))
    found = {f"{name}.{key}": str(table[key]["source"]) for name, (table, keys) in tables.items() for key in keys}
    return {"home": str(card["home"]["source"]), **found}
