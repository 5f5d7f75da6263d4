"""A card for a model that a maker publishes: what can be read is read, the rest is guessed, and every guess is marked.

What a robot's computer, its motors and its tasks want to know is not in a model: which joints have motors and in which
order, where it stands, what the motors can do. ``propose`` writes a card with all of it that loads, simulates and
stands, for its owner to correct.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np

from robo_rl.sim.models import read_model
from robo_rl.sim.robots.figures import CardError

GUESSED = "guessed, check: "
LEG_JOINTS = (3, 7)
"""Of a leg, at least and at most."""
LOW = 0.25
"""Part of a robot's height, from its lowest point, in which the ends of its legs are."""
CROUCH = 0.8
"""Of a leg's length, from its second joint to its end, at which a robot stands."""
FREQUENCY = {"legged": 4.0, "arm": 6.0}
"""Hz, of a joint that swings on its position control with the inertia that it has."""
SLACK = {"legged": 0.4, "arm": 0.02}
"""rad, by which a joint yields at most: of a leg under its whole effort, of an arm under its weight."""
GEAR = 0.2
"""Of the smallest inertia that a joint has, which its rotor and gears have, where the model says nothing."""
SPEED, EFFORT = 10.0, 20.0
"""rad/s and N m where nothing is known."""
ITERATIONS, STARTS = 200, 16
"""Of inverse kinematics."""
EXACT = 5e-3
"""m, by which it may miss."""


@dataclass(frozen=True)
class Proposal:
    """A card's text, what kind of robot it takes the model for, and what is doubtful about it."""

    kind: str
    text: str
    doubts: tuple[str, ...]


def propose(path: Path, title: str) -> Proposal:
    """A card for the model in a file, which will be beside it. CardError for models that no kind of robot-rl fits."""
    robot = _Model(path)
    legs = robot.legs()
    if len(legs) in (2, 4, 6, 8):
        return _legged(robot, legs, title)
    chain = robot.longest()
    if len(chain) >= 3:
        return _arm(robot, chain, title)
    raise CardError(
        f"{path}: it has {robot.model.njnt} joints, {len(legs)} legs and a longest chain of {len(chain)}; expected "
        "legs, an even number with three joints or more each, or an arm of three joints or more. Multirotors, cars and "
        "bases on wheels have cards without a model (robo-rl new NAME --like crazyflie); docs/own-task.md tells of "
        "other kinds"
    )


class _Model:
    """A model as its file has it, free or not, with its hinges at zero or as near as their stops let them."""

    def __init__(self, path: Path) -> None:
        self.path, self.spec = path, read_model(path)
        self.spec.compiler.fusestatic = False
        try:
            self.model = model = self.spec.compile()
        except ValueError as error:
            raise CardError(f"{path}: MuJoCo can't compile it ({' '.join(str(error).split())})") from None
        self.data = mujoco.MjData(model)
        roots = [body for body in range(1, model.nbody) if model.body_parentid[body] == 0]
        if not roots:
            raise CardError(f"{path}: it has no bodies; expected a robot's model")
        self.root = max(roots, key=lambda body: sum(model.body_rootid == body))
        self.speeds = _speeds(path)
        ties = [k for k in range(model.neq) if mujoco.mjtEq(model.eq_type[k]) == mujoco.mjtEq.mjEQ_JOINT]
        self.followers = {int(model.eq_obj1id[k]): (int(model.eq_obj2id[k]), *model.eq_data[k, :2]) for k in ties}
        """Joint that each follows, and the line by which it does."""
        self.qpos = model.qpos0.copy()
        for joint in self.hinges():
            low, high = self.stops(joint)
            self.qpos[model.jnt_qposadr[joint]] = min(max(0.0, low), high)
        self.place()

    def place(self) -> None:
        self.data.qpos[:] = self.qpos
        mujoco.mj_fwdPosition(self.model, self.data)

    def hinges(self, slides: bool = False) -> list[int]:
        """Joints with a motor, by all that a model tells: hinges, and slides too, that follow no others."""
        kinds = (mujoco.mjtJoint.mjJNT_HINGE, *((mujoco.mjtJoint.mjJNT_SLIDE,) if slides else ()))
        found = [k for k in range(self.model.njnt) if mujoco.mjtJoint(self.model.jnt_type[k]) in kinds]
        return [joint for joint in found if joint not in self.followers]

    def stops(self, joint: int) -> tuple[float, float]:
        limited = bool(self.model.jnt_limited[joint]) and float(np.ptp(self.model.jnt_range[joint])) > 0
        low, high = self.model.jnt_range[joint] if limited else (-math.pi, math.pi)
        return float(low), float(high)

    def name(self, joint: int) -> str:
        return self.model.joint(joint).name

    def chain(self, body: int) -> list[int]:
        """Hinges between the root and a body, in order."""
        found: list[int] = []
        while body not in (0, self.root):
            first, count = self.model.body_jntadr[body], self.model.body_jntnum[body]
            found = [*range(first, first + count), *found]
            body = int(self.model.body_parentid[body])
        motors = set(self.hinges())
        return [int(joint) for joint in found if int(joint) in motors]

    def ends(self) -> list[int]:
        """Bodies that no other hangs on."""
        parents = set(self.model.body_parentid.tolist())
        return [k for k in range(1, self.model.nbody) if k not in parents and self.model.body_rootid[k] == self.root]

    def legs(self) -> list[tuple[int, list[int]]]:
        """The lowest end of each chain of three to seven hinges that ends near the ground, with its joints."""
        heights = self.data.xpos[1:, 2]
        low, high = float(heights.min()), float(heights.max())
        found: dict[int, tuple[int, list[int]]] = {}
        for end in self.ends():
            joints = self.chain(end)
            low_enough = self.data.xpos[end, 2] <= low + LOW * (high - low)
            if LEG_JOINTS[0] <= len(joints) <= LEG_JOINTS[1] and low_enough and self._touches(end):
                first = joints[0]
                if first not in found or len(joints) > len(found[first][1]):
                    found[first] = (end, joints)
        return list(found.values())

    def _touches(self, end: int) -> bool:
        shapes = self.model.geom_bodyid == end
        return bool((self.model.geom_contype[shapes] | self.model.geom_conaffinity[shapes]).any())

    def longest(self) -> list[int]:
        """The longest chain of hinges."""
        return max((self.chain(end) for end in self.ends()), key=len, default=[])

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
        """kg m², that a joint moves as the robot is now."""
        full = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, full)
        return float(full[self.model.jnt_dofadr[joint], self.model.jnt_dofadr[joint]])

    def effort(self, joint: int) -> tuple[float, str]:
        if self.model.jnt_actfrclimited[joint] and self.model.jnt_actfrcrange[joint, 1] > 0:
            return float(self.model.jnt_actfrcrange[joint, 1]), f"{self.path.name}: effort"
        for actuator in range(self.model.nu):
            if self.model.actuator_trnid[actuator, 0] == joint and self.model.actuator_forcelimited[actuator]:
                return float(self.model.actuator_forcerange[actuator, 1]), f"{self.path.name}: force range"
        return EFFORT, f"{GUESSED}no figure in {self.path.name}"

    def armature(self, joint: int) -> tuple[float, str]:
        told = float(self.model.dof_armature[self.model.jnt_dofadr[joint]])
        if told:
            return told, f"{self.path.name}: armature"
        return _round(GEAR * self.inertia(joint)), f"{GUESSED}{GEAR:g} of the inertia that the joint moves"

    def weight(self, joint: int) -> float:
        """N m, of what hangs on a joint as the robot is now."""
        self.data.qvel[:] = 0.0
        mujoco.mj_fwdVelocity(self.model, self.data)
        return abs(float(self.data.qfrc_bias[self.model.jnt_dofadr[joint]]))


def _speeds(path: Path) -> dict[str, float]:
    """rad/s by joint, of a URDF."""
    root = ElementTree.parse(path).getroot()
    found = {}
    for joint in root.iter("joint") if root.tag == "robot" else ():
        limit = joint.find("limit")
        if limit is not None and float(limit.get("velocity", 0) or 0) > 0:
            found[joint.get("name", "").replace("/", ".")] = float(limit.get("velocity", 0))
    return found


def _round(number: float) -> float:
    return float(f"{number:.3g}")


def _legged(robot: _Model, legs: list[tuple[int, list[int]]], title: str) -> Proposal:
    stands = _stand(robot, legs)
    moved = {joint for _, joints in legs for joint in joints}
    others = [joint for joint in robot.hinges(slides=True) if joint not in moved]
    order = [joint for joint in robot.hinges() if joint in moved]
    doubts = [f"the stand: {stands} (m, that feet miss their places by)"] if stands > 0.02 else []
    if others:
        doubts.append(
            f"[held]: {[robot.name(joint) for joint in others]} don't move; those with motors belong to joints"
        )
    lines = _head("legged", title, robot)
    lines += [
        f"feet = {_list([robot.foot(end) for end, _ in legs])}  # {GUESSED}the ends of the legs",
        f"joints = {_list([robot.name(joint) for joint in order])}  # {GUESSED}the order of the model",
        "",
    ]
    for joint in order:
        lines += _motor(robot, joint, "legged")
    lines += _held(robot, others)
    return Proposal("legged", "\n".join(lines) + "\n", tuple(doubts))


def _stand(robot: _Model, legs: list[tuple[int, list[int]]]) -> float:
    """Bend the legs of a robot, so that every foot is below its second joint; m, by which one misses its place."""
    model, data = robot.model, robot.data
    worst = 0.0
    for end, joints in legs:
        middle = joints[1:] if len(joints) > 2 else joints
        anchors = [data.xanchor[joint].copy() for joint in middle] + [robot.tip(end)]
        length = sum(float(np.linalg.norm(b - a)) for a, b in pairwise(anchors))
        found = []
        for way in (0.0, 0.15, -0.15):
            for joint in joints:
                low, high = robot.stops(joint)
                near = min(max(0.0, low), high) if joint != joints[-1] or len(joints) > 3 else 0.5 * (low + high)
                changed = near + way * (high - low) * (joint == middle[0])
                robot.qpos[model.jnt_qposadr[joint]] = min(max(changed, low), high)
            robot.place()
            goal = data.xanchor[middle[0]] - np.array([0.0, 0.0, CROUCH * length])
            missed = _reach(robot, end, joints, goal)
            ahead = float(np.mean(data.xanchor[middle[1:], 0]) - goal[0]) if len(middle) > 1 else 0.0
            bent = ahead if len(legs) > 2 else -ahead  # knees of a biped are in front, those of others behind
            found.append((missed if missed > EXACT else 0.0, bent, robot.qpos.copy()))
        missed, _, robot.qpos[:] = min(found, key=lambda one: one[:2])
        robot.place()
        worst = max(worst, missed)
    return round(worst, 3)


def _reach(robot: _Model, end: int, joints: list[int], goal: np.ndarray) -> float:
    """Damped least squares, within the stops, of a body's place. m that are left."""
    model, data = robot.model, robot.data
    dofs, places = model.jnt_dofadr[joints], model.jnt_qposadr[joints]
    jacobian = np.zeros((3, model.nv))
    for _ in range(ITERATIONS):
        robot.place()
        tip = robot.tip(end)
        mujoco.mj_jac(model, data, jacobian, None, tip, end)
        error, columns = goal - tip, jacobian[:, dofs]
        step = columns.T @ np.linalg.solve(columns @ columns.T + 1e-3 * np.eye(3), error)
        for place, joint, change in zip(places, joints, step, strict=True):
            low, high = robot.stops(joint)
            robot.qpos[place] = min(max(robot.qpos[place] + float(np.clip(change, -0.1, 0.1)), low), high)
    robot.place()
    return float(np.linalg.norm(goal - robot.tip(end)))


def _arm(robot: _Model, joints: list[int], title: str) -> Proposal:
    model, tool = robot.model, robot.below(joints[-1])
    others = [joint for joint in robot.hinges(slides=True) if joint not in joints]
    anchors = robot.data.xanchor[joints]
    reach = sum(float(np.linalg.norm(b - a)) for a, b in pairwise(anchors))
    base = robot.data.xanchor[joints[0]] - robot.data.xpos[robot.root]
    goal = robot.data.xpos[robot.root] + np.array([0.5 * reach, 0.0, max(0.0, float(base[2]) - 0.3 * reach)])
    missed, leaning = _home(robot, tool, joints, goal)
    doubts = []
    if missed > 0.01 or leaning > 0.05:
        doubts.append(f"home: the tool is {missed:.3f} m from where it was to be, {leaning:.2f} rad from pointing down")
    if others:
        doubts.append(f"[held]: {[robot.name(joint) for joint in others]} don't move; a gripper's belong to [gripper]")
    doubts.append(f"the tool '{model.body(tool).name}': its z axis has to point where the gripper does")
    home = ", ".join(str(robot.position(joint)) for joint in joints)
    place = robot.data.xpos[tool] - robot.data.xpos[robot.root]
    half = 0.05 * reach
    corners = [[_round(float(x) + side * half) for x in place] for side in (-1.0, 1.0)]
    lines = _head("arm", title, robot)
    lines += [
        f'tool = "{model.body(tool).name}"  # {GUESSED}the last link',
        f"weightless = false  # {GUESSED}whether its own controller carries its links",
        f"joints = {_list([robot.name(joint) for joint in joints])}  # {GUESSED}the longest chain",
        "",
        "[home]",
        f"value = [{home}]",
        'unit = "rad"',
        f'source = "{GUESSED}by inverse kinematics, the tool pointing down"',
        "",
    ]
    for joint in joints:
        lines += _motor(robot, joint, "arm")
    lines += [
        "[workspace]",
        *(
            f'{name} = {{ value = {corner}, unit = "m", source = "{GUESSED}a box around the tool at home" }}'
            for name, corner in zip(("lower", "upper"), corners, strict=True)
        ),
        "",
        *_held(robot, others),
    ]
    return Proposal("arm", "\n".join(lines) + "\n", tuple(doubts))


def _home(robot: _Model, tool: int, joints: list[int], goal: np.ndarray) -> tuple[float, float]:
    """The best of several ways to hold a tool at a place, z down: m and rad that are left."""
    stops, random = np.array([robot.stops(joint) for joint in joints]), np.random.default_rng(0)
    places, found = robot.model.jnt_qposadr[joints], []
    for k in range(STARTS):
        part = 0.5 if k == 0 else random.uniform(0.3, 0.7, len(joints))
        robot.qpos[places] = stops[:, 0] + part * (stops[:, 1] - stops[:, 0])
        missed, leaning = _point_down(robot, tool, joints, goal)
        found.append((missed + 0.2 * leaning, missed, leaning, robot.qpos.copy()))
        if missed + 0.2 * leaning < EXACT:
            break
    _, missed, leaning, best = min(found, key=lambda one: one[0])
    robot.qpos[:] = best
    robot.place()
    return missed, leaning


def _point_down(robot: _Model, tool: int, joints: list[int], goal: np.ndarray) -> tuple[float, float]:
    """Bring a tool to a place with its z axis down: m and rad that are left."""
    model, data = robot.model, robot.data
    dofs, places = model.jnt_dofadr[joints], model.jnt_qposadr[joints]
    move, turn = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    down = np.array([0.0, 0.0, -1.0])
    for _ in range(ITERATIONS):
        robot.place()
        mujoco.mj_jacBody(model, data, move, turn, tool)
        axis = data.xmat[tool].reshape(3, 3)[:, 2]
        away = np.cross(axis, down) if axis @ down > -0.99 else np.array([0.3, 0.0, 0.0])
        error = np.concatenate([goal - data.xpos[tool], 0.2 * away])
        columns = np.vstack([move[:, dofs], 0.2 * turn[:, dofs]])
        step = columns.T @ np.linalg.solve(columns @ columns.T + 1e-4 * np.eye(6), error)
        for place, joint, change in zip(places, joints, step, strict=True):
            low, high = robot.stops(joint)
            robot.qpos[place] = min(max(robot.qpos[place] + float(np.clip(change, -0.1, 0.1)), low), high)
    robot.place()
    axis = data.xmat[tool].reshape(3, 3)[:, 2]
    return float(np.linalg.norm(goal - data.xpos[tool])), float(math.acos(np.clip(axis @ down, -1.0, 1.0)))


def _head(kind: str, title: str, robot: _Model) -> list[str]:
    return [
        f"# {title}, from {robot.path.name}. What is read there names it as the source; what is guessed says so:",
        "# replace each guess, with its source (docs/own-robot.md).",
        "",
        f'kind = "{kind}"  # {GUESSED}by its joints',
        f'title = "{title}"',
        f'model = "{robot.path.name}"',
        f'base = "{robot.model.body(robot.root).name}"',
    ]


def _motor(robot: _Model, joint: int, kind: str) -> list[str]:
    """The table of the motor in a joint."""
    name, (low, high) = robot.name(joint), robot.stops(joint)
    effort, of_effort = robot.effort(joint)
    armature, of_armature = robot.armature(joint)
    velocity, of_velocity = robot.speeds.get(name, SPEED), f"{robot.path.name}: velocity"
    if name not in robot.speeds:
        of_velocity = f"{GUESSED}no figure in {robot.path.name}"
    inertia = robot.inertia(joint) + (0.0 if "armature" in of_armature else armature)
    needed = effort / SLACK[kind] if kind == "legged" else robot.weight(joint) / SLACK[kind]
    stiffness = max(inertia * (2 * math.pi * FREQUENCY[kind]) ** 2, needed, 1e-3)
    damping = 2.0 * math.sqrt(stiffness * inertia)
    of_gain = f"{GUESSED}{FREQUENCY[kind]:g} Hz with an inertia of {inertia:.3g} kg*m^2, or what its load wants"
    of_range = f"{robot.path.name}: limits" if robot.model.jnt_limited[joint] else f"{GUESSED}none in {robot.path.name}"
    figures: list[tuple[str, Any, str, str]] = [
        ("range", [low, high], "rad", of_range),
        ("effort", _round(effort), "N*m", of_effort),
        ("velocity", _round(velocity), "rad/s", of_velocity),
        ("stiffness", _round(stiffness), "N*m/rad", of_gain),
        ("damping", _round(damping), "N*m*s/rad", f"{GUESSED}of the same inertia"),
        ("armature", armature, "kg*m^2", of_armature),
        ("friction", 0.0, "N*m", f"{GUESSED}none"),
    ]
    if kind == "legged":
        figures.insert(0, ("stand", robot.position(joint), "rad", f"{GUESSED}by inverse kinematics"))
    told = [
        f'{key} = {{ value = {value}, unit = "{unit}", source = "{source}" }}' for key, value, unit, source in figures
    ]
    return ["[[motors]]", f'name = "{name}"', f'joints = ["{name}"]', *told, ""]


def _held(robot: _Model, joints: list[int]) -> list[str]:
    """Joints that stay where they are, and those that follow them."""
    lines = []
    for joint in joints:
        low, high = robot.stops(joint)
        unit = "m" if robot.model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE else "rad"
        value = min(max(0.0, low), high) if robot.model.jnt_limited[joint] else 0.0
        stays = {joint: value}
        for follower, (leader, offset, ratio) in robot.followers.items():
            if leader in stays:
                stays[follower] = float(offset + ratio * stays[leader])
        for one, place in stays.items():
            figures = [f"value = {place}", f'unit = "{unit}"', f'source = "{GUESSED}not moved"']
            lines += [f'[held."{robot.name(one)}"]', *figures, ""]
    return lines


def _list(names: list[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"
