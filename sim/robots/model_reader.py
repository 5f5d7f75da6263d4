"""What a maker's model tells of legs and arms: chains of joints, their ends, stops, efforts, weights and inertias."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from robo_rl.contract.checks import LABEL
from robo_rl.contract.gravity import GRAVITY
from robo_rl.sim.models import read_model, what_to_do
from robo_rl.sim.robots.figures import CardError

LEG_JOINTS = (2, 7)
"""Of a leg, at least and at most."""
FLAT = 0.99
"""Cosine between the axes of hinges that swing in one plane."""
LOW = 0.25
"""Part of a robot's height, from its lowest point, in which the ends of its legs are."""
GEAR = 0.2
"""Of the smallest inertia that a joint has, which its rotor and gears have, where the model says nothing."""
SLIDE_SPEED, SLIDE_EFFORT, SLIDE_STOPS = 0.5, 200.0, (-0.5, 0.5)
"""m/s, N and m where nothing is known of a slide."""
SPEED, EFFORT = 10.0, 20.0
"""rad/s and N m where nothing is known of a hinge."""
ENDLESS = 1e4
"""rad or m, from which on stops are those of a joint without."""
FINGER = 0.05
"""m, the way of a slide up to which it is a finger's, not an arm's."""
GUESSED = "guessed, check: "


class ModelReader:
    """A model as its file has it, free or not, with its hinges at zero or as near as their stops let them."""

    def __init__(self, path: Path) -> None:
        self.path, self.spec = path, read_model(path)
        self.spec.compiler.fusestatic = False
        try:
            self.model = model = self.spec.compile()
        except ValueError as error:
            said = " ".join(str(error).split())
            raise CardError(f"{path}: MuJoCo can't compile it ({said}){what_to_do(said, path)}") from None
        self.data = mujoco.MjData(model)
        roots = [body for body in range(1, model.nbody) if model.body_parentid[body] == 0]
        if not roots:
            raise CardError(f"{path}: it has no bodies; expected a robot's model")
        self.root = max(roots, key=lambda body: sum(model.body_rootid == body))
        self.speeds = _speeds(path)
        joints = mujoco.mjtEq.mjEQ_JOINT
        ties = [k for k in range(model.neq) if mujoco.mjtEq(model.eq_type[k]) == joints and model.eq_active0[k]]
        self.followers = {int(model.eq_obj1id[k]): (int(model.eq_obj2id[k]), *model.eq_data[k, :2]) for k in ties}
        """Joint that each follows, and the line by which it does."""
        self.qpos = model.qpos0.copy()
        for joint in self.hinges():
            low, high = self.stops(joint)
            self.qpos[model.jnt_qposadr[joint]] = min(max(0.0, low), high)
        self.place()

    def require_kind(self) -> None:
        """CardError where joints have names that no signal can have, or where the trunk moves in a plane alone."""
        model = self.model
        for joint in self.hinges(slides=True):
            if not LABEL.fullmatch(self.name(joint)):
                raise CardError(
                    f"{self.path}: a joint of the body '{model.body(model.jnt_bodyid[joint]).name}' has the name "
                    f"'{self.name(joint)}'; expected 1 to 64 letters (a to z), digits, and _ . : - after the first: "
                    "name it so in the model"
                )
        first, count = int(model.body_jntadr[self.root]), int(model.body_jntnum[self.root])
        own = [joint for joint in range(first, first + count) if joint in set(self.hinges(slides=True))]
        level = [j for j in own if not self.slides(j) and abs(self.data.xaxis[j][2]) < 1.0 - FLAT]
        if level and any(map(self.slides, own)):
            raise CardError(
                f"{self.path}: its trunk '{model.body(self.root).name}' moves in a plane, by the joints "
                f"{[self.name(joint) for joint in own]}, as Gymnasium's hopper, walker and cheetah do; "
                "expected a robot that stands or moves freely: docs/own-task.md tells of other kinds"
            )

    def place(self) -> None:
        self.data.qpos[:] = self.qpos
        mujoco.mj_fwdPosition(self.model, self.data)

    def hinges(self, slides: bool = False) -> list[int]:
        """Joints with a motor, by all that a model tells: hinges, and slides too, that follow no others."""
        kinds = (mujoco.mjtJoint.mjJNT_HINGE, *((mujoco.mjtJoint.mjJNT_SLIDE,) if slides else ()))
        found = [k for k in range(self.model.njnt) if mujoco.mjtJoint(self.model.jnt_type[k]) in kinds]
        return [joint for joint in found if joint not in self.followers]

    def limited(self, joint: int) -> bool:
        """Whether the file tells stops, and not none by numbers such as 1e16."""
        low, high = self.model.jnt_range[joint]
        return bool(self.model.jnt_limited[joint] and low < high and max(-low, high) < ENDLESS)

    def stops(self, joint: int) -> tuple[float, float]:
        free = SLIDE_STOPS if self.slides(joint) else (-math.pi, math.pi)
        low, high = self.model.jnt_range[joint] if self.limited(joint) else free
        return float(low), float(high)

    def slides(self, joint: int) -> bool:
        return mujoco.mjtJoint(self.model.jnt_type[joint]) == mujoco.mjtJoint.mjJNT_SLIDE

    def name(self, joint: int) -> str:
        return self.model.joint(joint).name

    def chain(self, body: int, slides: bool = False) -> list[int]:
        """Hinges between the root and a body, in order, and slides that are no fingers."""
        found: list[int] = []
        while body not in (0, self.root):
            first, count = self.model.body_jntadr[body], self.model.body_jntnum[body]
            found = [*range(first, first + count), *found]
            body = int(self.model.body_parentid[body])
        motors = set(self.hinges(slides))
        return [int(joint) for joint in found if int(joint) in motors and not self._of_a_finger(int(joint))]

    def _of_a_finger(self, joint: int) -> bool:
        """Whether a slide has a short way, or is beside another joint's on one body, as jaws are."""
        if not self.slides(joint):
            return False
        model, body = self.model, self.model.jnt_bodyid[joint]
        beside = [k for k in range(1, model.nbody) if model.body_parentid[k] == model.body_parentid[body] and k != body]
        low, high = self.stops(joint)
        jaws = [k for k in beside if model.body_jntnum[k] and self.slides(int(model.body_jntadr[k]))]
        return high - low <= FINGER or bool(jaws)

    def ends(self) -> list[int]:
        """Bodies that no other hangs on."""
        parents = set(self.model.body_parentid.tolist())
        return [k for k in range(1, self.model.nbody) if k not in parents and self.model.body_rootid[k] == self.root]

    def legs(self) -> list[tuple[int, list[int]]]:
        """The lowest end of each chain of two to seven hinges that ends near the ground, with its joints."""
        heights = self.data.xpos[1:, 2]
        low, high = float(heights.min()), float(heights.max())
        found: dict[int, tuple[int, list[int]]] = {}
        for end in self.ends():
            joints = self.chain(end)
            low_enough = self.data.xpos[end, 2] <= low + LOW * (high - low)
            if self._is_leg(joints) and low_enough and self._touches(end):
                first = joints[0]
                if first not in found or len(joints) > len(found[first][1]):
                    found[first] = (end, joints)
        return list(found.values())

    def _is_leg(self, joints: list[int]) -> bool:
        """By the number of hinges; two of them swing in one upright plane, unlike those of a caster."""
        if len(joints) != 2:
            return LEG_JOINTS[0] < len(joints) <= LEG_JOINTS[1]
        first, second = self.data.xaxis[joints]
        return bool(abs(first @ second) > FLAT and abs(first[2]) < 1.0 - FLAT)

    def _touches(self, end: int) -> bool:
        shapes = self.model.geom_bodyid == end
        return bool((self.model.geom_contype[shapes] | self.model.geom_conaffinity[shapes]).any())

    def longest(self) -> list[int]:
        """The longest chain of hinges and slides."""
        return max((self.chain(end, slides=True) for end in self.ends()), key=len, default=[])

    def others_as_long(self, chain: list[int]) -> list[list[int]]:
        """Chains as long as ``chain`` that share less than half of its joints: another arm's."""
        found: list[list[int]] = []
        for other in sorted((self.chain(end, slides=True) for end in self.ends()), key=len, reverse=True):
            apart = all(2 * len(set(other) & set(one)) < len(one) for one in [chain, *found])
            if len(other) == len(chain) and apart:
                found.append(other)
        return found

    def below(self, joint: int) -> int:
        """The last body that hangs on a joint without another: an arm's flange, or its tool."""
        body = int(self.model.jnt_bodyid[joint])
        while True:
            children = [k for k in range(1, self.model.nbody) if self.model.body_parentid[k] == body]
            still = [k for k in children if not self.model.body_jntnum[k]]
            if len(still) != 1:
                return body
            body = still[0]

    def position(self, joint: int) -> float:
        """rad or m, to four digits, within its stops."""
        low, high = self.stops(joint)
        return min(max(round(float(self.qpos[self.model.jnt_qposadr[joint]]), 4), low), high)

    def _ball(self, body: int) -> int | None:
        """The lowest sphere of a leg's last link that touches and has a name."""
        model, ball = self.model, mujoco.mjtGeom.mjGEOM_SPHERE
        touches = model.geom_contype | model.geom_conaffinity
        own = [k for k in range(model.ngeom) if model.geom_bodyid[k] == body and touches[k] and model.geom(k).name]
        balls = [k for k in own if mujoco.mjtGeom(model.geom_type[k]) == ball]
        return min(balls, key=lambda k: float(self.data.geom_xpos[k, 2]), default=None)

    def foot(self, body: int) -> str:
        """The name of what stands on the ground: a shape of a leg's last link, or the link."""
        ball = self._ball(body)
        return self.model.body(body).name if ball is None else self.model.geom(ball).name

    def tip(self, body: int) -> np.ndarray:
        """(3,) m, where a leg ends."""
        ball = self._ball(body)
        return (self.data.xpos[body] if ball is None else self.data.geom_xpos[ball]).copy()

    def inertia(self, joint: int) -> float:
        """kg m², of a slide kg, that a joint moves as the robot is now."""
        full = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, full)
        return float(full[self.model.jnt_dofadr[joint], self.model.jnt_dofadr[joint]])

    def effort(self, joint: int) -> tuple[float, str]:
        if self.model.jnt_actfrclimited[joint] and self.model.jnt_actfrcrange[joint, 1] > 0:
            return float(self.model.jnt_actfrcrange[joint, 1]), f"{self.path.name}: effort"
        for actuator in range(self.model.nu):
            if self.model.actuator_trnid[actuator, 0] == joint and self.model.actuator_forcelimited[actuator]:
                return float(self.model.actuator_forcerange[actuator, 1]), f"{self.path.name}: force range"
        return SLIDE_EFFORT if self.slides(joint) else EFFORT, f"{GUESSED}no figure in {self.path.name}"

    def armature(self, joint: int) -> tuple[float, str]:
        told = float(self.model.dof_armature[self.model.jnt_dofadr[joint]])
        if told:
            return told, f"{self.path.name}: armature"
        return rounded(GEAR * self.inertia(joint)), f"{GUESSED}{GEAR:g} of the inertia that the joint moves"

    def ease(self, body: int, joints: list[int]) -> float:
        """m per rad or m: the least that a unit of the joints' motion moves a body's origin, of all directions."""
        move = np.zeros((3, self.model.nv))
        mujoco.mj_jacBody(self.model, self.data, move, None, body)
        return float(np.linalg.svd(move[:, self.model.jnt_dofadr[joints]], compute_uv=False)[2])

    def carrying(self) -> float:
        """N m, of the robot's weight at the length of its height: what a leg's motor may have to give."""
        return float(self.model.body_subtreemass[self.root]) * GRAVITY * float(np.ptp(self.data.xpos[1:, 2]))

    def weight(self, joint: int) -> float:
        """N m, of a slide N, of what hangs on a joint as the robot is now."""
        self.data.qvel[:] = 0.0
        mujoco.mj_fwdVelocity(self.model, self.data)
        return abs(float(self.data.qfrc_bias[self.model.jnt_dofadr[joint]]))


def _speeds(path: Path) -> dict[str, float]:
    """rad/s, of slides m/s, by joint, of a URDF."""
    root = ElementTree.parse(path).getroot()
    found = {}
    for joint in root.iter("joint") if root.tag == "robot" else ():
        limit = joint.find("limit")
        if limit is not None and float(limit.get("velocity", 0) or 0) > 0:
            found[joint.get("name", "").replace("/", ".")] = float(limit.get("velocity", 0))
    return found


def rounded(number: float) -> float:
    """To three digits."""
    return float(f"{number:.3g}")
