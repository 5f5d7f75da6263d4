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

import mujoco
import numpy as np

from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.model_reader import GUESSED, SLIDE_SPEED, SPEED, ModelReader, rounded
from robo_rl.sim.robots.motors import HINGE, SLIDE

CROUCH = 0.8
"""Of a leg's length, from its second joint to its end, at which a robot stands."""
FREQUENCY = {"legged": 4.0, "arm": 6.0}
"""Hz, of a joint that swings on its position control with the inertia that it has."""
SLACK = {"legged": 0.4, "arm": 0.02}
"""rad, by which a joint yields at most: of a leg under its whole effort, of an arm under its weight."""
SLIDE_SLACK = 0.01
"""m, likewise of an arm's slide."""
PARALLEL = 0.99
"""Cosine of the angle between slides that are stages of one telescope."""
ITERATIONS, STARTS = 200, 16
"""Of inverse kinematics."""
EXACT = 5e-3
"""m, by which it may miss."""
EASY = 0.2
"""m per rad, from which on a pose of an arm with slides is as good as any."""
LEAST_BOX = 0.05
"""Of an arm's reach, half an edge of the workspace that is proposed at least."""
STRONG = 10.0
"""Times what carries a robot at the length of its legs: a motor of more is none."""
TURNS = 4.0 * math.pi
"""rad, of a stop: joints of arms turn twice each way at most, as a UR's wrist on some."""
BOX = "a box around the tool at home"
WEIGHT = f"weightless = false  # {GUESSED}whether its own controller carries its links"


@dataclass(frozen=True)
class Proposal:
    """A card's text, what kind of robot it takes the model for, and what is doubtful about it."""

    kind: str
    taken_for: str
    text: str
    doubts: tuple[str, ...]


def propose(path: Path, title: str) -> Proposal:
    """A card for the model in a file, which will be beside it. CardError for models that no kind of robo-rl fits."""
    robot = ModelReader(path)
    robot.require_kind()
    legs = robot.legs()
    if len(legs) in (2, 4, 6, 8):
        return _legged(robot, legs, title)
    chain = robot.longest()
    pair = _two_chains(robot, chain)
    if pair:
        return _two_arms(robot, pair, title)
    if len(chain) >= 3:
        return _arm(robot, chain, title)
    raise CardError(
        f"{path}: it has {robot.model.njnt} joints, {len(legs)} legs and a longest chain of {len(chain)}; expected "
        "legs, an even number with two joints or more each, or an arm of three joints or more. Multirotors, cars and "
        "bases on wheels have cards without a model (robo-rl new NAME --like crazyflie); docs/own-task.md tells of "
        "other kinds"
    )


def _legged(robot: ModelReader, legs: list[tuple[int, list[int]]], title: str) -> Proposal:
    stands = _stand(robot, legs)
    moved = {joint for _, joints in legs for joint in joints}
    others = [joint for joint in robot.hinges(slides=True) if joint not in moved]
    order = [joint for joint in robot.hinges() if joint in moved]
    doubts = [f"the stand: {stands} (m, that feet miss their places by)"] if stands > 0.02 else []
    strong = [robot.name(joint) for joint in order if robot.effort(joint)[0] > STRONG * robot.carrying()]
    if strong:
        doubts.append(f"effort: {strong} could carry {STRONG:g} times the robot; is that the motors' own figure?")
    if any(len(joints) == 2 for _, joints in legs):
        doubts.append("legs of two joints: g1-stand and g1-walk (ahead and back, no step aside) are for them (--robot)")
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
    return Proposal("legged", "a robot with legs", "\n".join(lines) + "\n", tuple(doubts))


def _stand(robot: ModelReader, legs: list[tuple[int, list[int]]]) -> float:
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
            axis = data.xaxis[joints[0]]
            planar = bool((np.abs(data.xaxis[joints] @ axis) > PARALLEL).all())
            aside = (
                axis * (axis @ (robot.tip(end) - data.xanchor[middle[0]])) * planar
            )  # where it stays, however it bends
            goal = data.xanchor[middle[0]] + aside - np.array([0.0, 0.0, CROUCH * length])
            missed = _reach(robot, end, joints, goal)
            ahead = float(np.mean(data.xanchor[middle[1:], 0]) - goal[0]) if len(middle) > 1 else 0.0
            bent = ahead if len(legs) > 2 else -ahead  # knees of a biped are in front, those of others behind
            found.append((missed if missed > EXACT else 0.0, bent, robot.qpos.copy()))
        missed, _, robot.qpos[:] = min(found, key=lambda one: one[:2])
        for joint in joints:  # as near to 0 as the same pose can be
            place = model.jnt_qposadr[joint]
            near, (low, high) = math.remainder(robot.qpos[place], math.tau), robot.stops(joint)
            robot.qpos[place] = near if low <= near <= high else robot.qpos[place]
        robot.place()
        worst = max(worst, missed)
    return round(worst, 3)


def _reach(robot: ModelReader, end: int, joints: list[int], goal: np.ndarray) -> float:
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


def _arm(robot: ModelReader, joints: list[int], title: str) -> Proposal:
    others = [joint for joint in robot.hinges(slides=True) if joint not in joints]
    lines, doubts = _arm_lines(robot, joints, "")
    doubts += [
        f"another arm, {[robot.name(joint) for joint in chain]}: both at once are a robot of the kind two_arms "
        "(docs/own-robot.md)"
        for chain in robot.others_as_long(joints)
    ]
    doubts += [
        f"{robot.model.body(root).name!r} stands beside it, with joints of its own: of two arms that are one robot put "
        "both under one body in the model"
        for root in sorted({int(robot.model.body_rootid[robot.model.jnt_bodyid[joint]]) for joint in others})
        if root != robot.root
    ]
    if others:
        doubts.append(f"[held]: {[robot.name(joint) for joint in others]} don't move; a gripper's belong to [gripper]")
    told, motors = lines.index(""), [line for joint in joints for line in _motor(robot, joint, "arm")]
    place = lines.index("[workspace]")
    text = [
        *_head("arm", title, robot),
        *lines[:told],
        WEIGHT,
        *lines[told:place],
        *motors,
        *lines[place:],
        *_held(robot, others),
    ]
    return Proposal("arm", "an arm", "\n".join(text) + "\n", tuple(doubts))


def _two_chains(robot: ModelReader, chain: list[int]) -> list[list[int]]:
    """Of a robot with two arms their chains, without what carries both, the left one first; [] of others."""
    others = robot.others_as_long(chain)
    if len(others) != 1:
        return []
    shared = {*chain} & {*others[0]}
    found = [[joint for joint in one if joint not in shared] for one in (chain, others[0])]
    found.sort(key=lambda joints: -float(robot.data.xanchor[joints[0], 1]))
    return found if min(map(len, found)) >= 3 else []


def _two_arms(robot: ModelReader, chains: list[list[int]], title: str) -> Proposal:
    """A card of both, each with its workspace on its own side."""
    moved = [joint for joints in chains for joint in joints]
    others = [joint for joint in robot.hinges(slides=True) if joint not in moved]
    shoulders = [float(robot.data.xanchor[joints[0], 1] - robot.data.xpos[robot.root, 1]) for joints in chains]
    tables, doubts = [], ['arms: both are one robot; one arm alone is a card with kind = "arm" and the other in [held]']
    for name, joints, y in zip(("left", "right"), chains, shoulders, strict=True):
        lines, found = _arm_lines(robot, joints, f"arms.{name}.", y)
        tables += [f"[arms.{name}]", *lines]
        doubts += [f"{name}: {doubt}" for doubt in found]
    if others:
        doubts.append(f"[held]: {[robot.name(joint) for joint in others]} don't move; grippers' belong to their arms")
    motors = [line for joint in moved for line in _motor(robot, joint, "arm")]
    text = [*_head("two_arms", title, robot), WEIGHT, "", *motors, *tables, *_held(robot, others)]
    return Proposal("two_arms", "a robot with two arms", "\n".join(text) + "\n", tuple(doubts))


def _arm_lines(robot: ModelReader, joints: list[int], table: str, aside: float = 0.0) -> tuple[list[str], list[str]]:
    """Tool, joints, home and workspace of an arm in a card's table ("", or "arms.left."), and what is doubtful.

    The arm is brought home; ``aside``: m along y, from the root, where its workspace is.
    """
    model, tool = robot.model, robot.below(joints[-1])
    anchors = robot.data.xanchor[joints]
    reach = sum(float(np.linalg.norm(b - a)) for a, b in pairwise(anchors))
    reach += sum(float(np.ptp(robot.stops(joint))) for joint in joints if robot.slides(joint))
    base = robot.data.xanchor[joints[0]] - robot.data.xpos[robot.root]
    goal = robot.data.xpos[robot.root] + np.array([0.5 * reach, aside, max(0.0, float(base[2]) - 0.3 * reach)])
    missed, leaning = _home(robot, tool, joints, goal)
    doubts = [
        f"joints: {[robot.name(joint) for joint in pair]} slide the same way; of a telescope that one motor moves, one "
        "is in joints with the whole way, the others in [held]"
        for pair in pairwise(joints)
        if all(robot.slides(joint) for joint in pair)
        and abs(float(robot.data.xaxis[pair[0]] @ robot.data.xaxis[pair[1]])) > PARALLEL
    ][:1]
    if missed > 0.01 or leaning > 0.05:
        doubts.append(f"home: the tool is {missed:.3f} m from where it was to be, {leaning:.2f} rad from pointing down")
    doubts.append(f"the tool '{model.body(tool).name}': its z axis has to point where the gripper does")
    far = [
        robot.name(joint) for joint in joints if not robot.slides(joint) and max(map(abs, robot.stops(joint))) > TURNS
    ]
    if far:
        doubts.append(f"range: {far} turn by more than {TURNS:.3g} rad; are the model's limits in degrees?")
    home = ", ".join(str(robot.position(joint)) for joint in joints)
    units = ["m" if robot.slides(joint) else "rad" for joint in joints]
    place = robot.data.xpos[tool] - robot.data.xpos[robot.root]
    half = LEAST_BOX * reach
    corners = [[rounded(float(x) + side * half) for x in place] for side in (-1.0, 1.0)]
    lines = [
        f'tool = "{model.body(tool).name}"  # {GUESSED}the last link',
        f"joints = {_list([robot.name(joint) for joint in joints])}  # {GUESSED}the longest chain",
        "",
        f"[{table}home]",
        f"value = [{home}]",
        f"unit = {_list(units) if 'm' in units else _quoted('rad')}",
        f'source = "{GUESSED}by inverse kinematics, the tool pointing down"',
        "",
        f"[{table}workspace]",
        *(
            f'{name} = {{ value = {corner}, unit = "m", source = "{GUESSED}{BOX}" }}'
            for name, corner in zip(("lower", "upper"), corners, strict=True)
        ),
        "",
    ]
    return lines, doubts


def _home(robot: ModelReader, tool: int, joints: list[int], goal: np.ndarray) -> tuple[float, float]:
    """The best of several ways to hold a tool at a place, z down: m and rad that are left.

    The first joint of an arm with slides may be anywhere. So its tool may be wherever it is at joints drawn around the
    middle, if it points down there, and the best is where the joints move it most easily.
    """
    stops, random = np.array([robot.stops(joint) for joint in joints]), np.random.default_rng(0)
    places, found = robot.model.jnt_qposadr[joints], []
    anywhere = any(robot.slides(joint) for joint in joints)
    for k in range(STARTS):
        part = 0.5 if k == 0 else random.uniform(0.3, 0.7, len(joints))
        robot.qpos[places] = stops[:, 0] + part * (stops[:, 1] - stops[:, 0])
        robot.place()
        goals = [goal, robot.data.xpos[tool].copy()] if anywhere else [goal]
        for wanted in goals:
            missed, leaning = _point_down(robot, tool, joints, wanted)
            easy = robot.ease(tool, joints) if anywhere else 0.0
            found.append((missed + 0.2 * leaning - min(easy, EASY), missed, leaning, robot.qpos.copy()))
        if not anywhere and found[-1][0] < EXACT:
            break
    _, missed, leaning, best = min(found, key=lambda one: one[0])
    robot.qpos[:] = best
    robot.place()
    return missed, leaning


def _point_down(robot: ModelReader, tool: int, joints: list[int], goal: np.ndarray) -> tuple[float, float]:
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


def _head(kind: str, title: str, robot: ModelReader) -> list[str]:
    return [
        f"# {title}, from {robot.path.name}. What is read there names it as the source; what is guessed says so:",
        "# replace each guess, with its source (docs/own-robot.md).",
        "",
        f'kind = "{kind}"  # {GUESSED}by its joints',
        f'title = "{title}"',
        f'model = "{robot.path.name}"',
        f'base = "{robot.model.body(robot.root).name}"',
    ]


def _motor(robot: ModelReader, joint: int, kind: str) -> list[str]:
    """The table of the motor in a joint."""
    name, (low, high) = robot.name(joint), robot.stops(joint)
    effort, of_effort = robot.effort(joint)
    armature, of_armature = robot.armature(joint)
    slides = robot.slides(joint)
    velocity = robot.speeds.get(name, SLIDE_SPEED if slides else SPEED)
    of_velocity = f"{robot.path.name}: velocity"
    if name not in robot.speeds:
        of_velocity = f"{GUESSED}no figure in {robot.path.name}"
    inertia = robot.inertia(joint) + (0.0 if "armature" in of_armature else armature)
    slack = SLIDE_SLACK if slides else SLACK[kind]
    needed = (min(effort, robot.carrying()) if kind == "legged" else robot.weight(joint)) / slack
    stiffness = max(inertia * (2 * math.pi * FREQUENCY[kind]) ** 2, needed, 1e-3)
    damping = 2.0 * math.sqrt(stiffness * inertia)
    unit = SLIDE if slides else HINGE
    moved = f"{inertia:.3g} {unit['armature']}"
    of_gain = f"{GUESSED}{FREQUENCY[kind]:g} Hz with an inertia of {moved}, or what its load wants"
    of_range = f"{robot.path.name}: limits" if robot.limited(joint) else f"{GUESSED}none in {robot.path.name}"
    figures: list[tuple[str, Any, str, str]] = [
        ("range", [low, high], unit["range"], of_range),
        ("effort", rounded(effort), unit["effort"], of_effort),
        ("velocity", rounded(velocity), unit["velocity"], of_velocity),
        ("stiffness", rounded(stiffness), unit["stiffness"], of_gain),
        ("damping", rounded(damping), unit["damping"], f"{GUESSED}of the same inertia"),
        ("armature", armature, unit["armature"], of_armature),
        ("friction", 0.0, unit["friction"], f"{GUESSED}none"),
    ]
    if kind == "legged":
        figures.insert(0, ("stand", robot.position(joint), "rad", f"{GUESSED}by inverse kinematics"))
    told = [
        f'{key} = {{ value = {value}, unit = "{unit}", source = "{source}" }}' for key, value, unit, source in figures
    ]
    table = ["[[motors]]", f'name = "{name}"', f'joints = ["{name}"]', *(["slides = true"] if slides else [])]
    return [*table, *told, ""]


def _held(robot: ModelReader, joints: list[int]) -> list[str]:
    """Joints that stay where they are, and those that follow them."""
    lines = []
    for joint in joints:
        low, high = robot.stops(joint)
        unit = "m" if robot.slides(joint) else "rad"
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
    return "[" + ", ".join(map(_quoted, names)) + "]"


def _quoted(name: str) -> str:
    return f'"{name}"'
