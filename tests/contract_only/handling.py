"""An arm in MuJoCo, from the model that its maker has and the contract: its law, the gripper, a cube, its camera.

Episodes begin at home, as a robot does, and count from when the tool is in the workspace.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from tests.contract_only.interface import Arrays, Draws, Policy, Sensors

STEP = 0.001
FINGERS = 2
"""Of a hand whose one drive moves both: the second's joint comes behind the first's in the model, if there is one."""
OF_OBJECTS = ("cube_size", "cube_mass", "cube_friction", "peg_mass", "peg_friction", "clearance")
SOLID: dict[str, Any] = {
    "type": mujoco.mjtGeom.mjGEOM_BOX, "contype": 1, "conaffinity": 1, "condim": 4, "priority": 1,
    "solref": [0.01, 1.0], "solimp": [0.95, 0.99, 0.001, 0.5, 2.0],
}  # fmt: skip
"""Hard: MuJoCo's own contacts let a cube of 15 g slip out of jaws that are not parallel."""


class Arm:
    """One, with what was drawn for it."""

    aim, heavy = "tool_position_target", 0.3
    """The command of the arm; kg, the inertia of a finger's drive."""

    def __init__(self, policy: Policy, draw: Draws, i: int, file: Path) -> None:
        spec, facts = mujoco.MjSpec.from_file(str(file)), policy.facts
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[2, 2, 0.1], contype=1, conaffinity=1)
        spec.option.timestep, spec.option.cone, spec.option.impratio = STEP, mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0
        self.commands = {c["name"]: c for c in policy.contract["commands"]}
        self.law, self.grip = (self.commands[name]["law"] for name in (self.aim, "gripper_position_target"))
        jaw = self.commands["gripper_position_target"]["elements"][0]
        joints = [joint.name for joint in spec.joints]
        fingers = joints[joints.index(jaw) : joints.index(jaw) + FINGERS]
        for joint in spec.joints:
            of_finger = joint.name in fingers and len(fingers) == FINGERS
            joint.armature = self.heavy if of_finger else facts["joints"]["armature"][0]
        for stop in policy.robot["actuators"]:
            if stop["name"] in joints:
                spec.joint(stop["name"]).range = [stop["lower"], stop["upper"]]
                spec.joint(stop["name"]).limited = mujoco.mjtLimited.mjLIMITED_TRUE
        for other in fingers[1:]:
            together = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, name1=other, name2=fingers[0])
            together.objtype = mujoco.mjtObj.mjOBJ_JOINT
            together.data[:2] = [0.0, 1.0]
        self.factor = {name: float(draw(name, otherwise=1.0)[i]) for name in ("stiffness", "damping", "strength")}
        self.half = 0.0
        self.add_objects(spec, facts, {name: float(draw(name, otherwise=1.0)[i]) for name in OF_OBJECTS})
        self.model = model = spec.compile()
        self.data = mujoco.MjData(model)
        self.tool, home = model.site(facts["tool"]["frame"]).id, policy.robot["facts"]["home"]
        self.arm = [model.joint(name).dofadr[0] for name in facts["joints"]["names"]]
        self.fingers = [model.joint(name).dofadr[0] for name in fingers]
        self.places = [model.joint(name).qposadr[0] for name in fingers]
        self.lowest, self.highest = (np.array(facts["workspace"][end]) for end in ("lower", "upper"))
        self.joints = [model.joint(name).qposadr[0] for name in facts["joints"]["names"]]
        self.data.qpos[self.joints] = home
        actuator = next(a for a in policy.robot["actuators"] if a["name"] == jaw)
        self.data.qpos[self.places], self.most = actuator["upper"], actuator["effort"]
        turn = facts["tool"]["turn"].get("orientation", [0.0, 0.0, 0.0, 1.0])
        self.turn = np.array([turn[3], *turn[:3]])  # w first, as MuJoCo has them
        mujoco.mj_forward(model, self.data)

    def add_objects(self, spec: mujoco.MjSpec, facts: dict[str, Any], drawn: dict[str, float]) -> None:
        """A cube, where the contract has one."""
        if "object" in facts:
            cube = facts["object"]
            self.half = 0.5 * cube["size"][0] * drawn["cube_size"]
            body = spec.worldbody.add_body(name="cube", pos=[0.5, 0.0, self.half])
            body.add_freejoint()
            mass, friction = cube["mass"] * drawn["cube_mass"], [drawn["cube_friction"], 0.005, 1e-4]
            body.add_geom(name="cube", size=[self.half] * 3, mass=mass, friction=friction, **SOLID)

    def truth(self) -> Arrays:
        """(k,) each."""
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_SITE, self.tool, velocity, 0)
        found = {
            "tool_position": self.data.site_xpos[self.tool].copy(), "tool_linear_velocity": velocity[3:],
            "gripper_position": self.data.qpos[self.places[:1]].copy(),
        }  # fmt: skip
        if self.half:
            found["cube_position"] = self.data.body("cube").xpos.copy()
        return found

    def step(self, told: Arrays) -> None:
        """1 ms."""
        model, data, law, target = self.model, self.data, self.law, told[self.aim]
        mujoco.mj_step1(model, data)
        linear, angular, turned = np.zeros((3, model.nv)), np.zeros((3, model.nv)), np.zeros(4)
        mujoco.mj_jacSite(model, data, linear, angular, self.tool)
        mujoco.mju_mat2Quat(turned, data.site_xmat[self.tool])
        away, turn, back = target - data.site_xpos[self.tool], np.zeros(3), np.zeros(4)
        mujoco.mju_negQuat(back, turned)
        off = np.zeros(4)
        mujoco.mju_mulQuat(off, self.turn, back)
        mujoco.mju_quat2Vel(turn, off, 1.0)
        stiffness = self.factor["stiffness"] * np.array(law["stiffness"])
        damping, clip = self.factor["damping"] * np.array(law["damping"]), law["clip"]
        error = np.concatenate([_cut(away, clip[0]), _cut(turn, clip[3])])
        moving = np.concatenate([linear @ data.qvel, angular @ data.qvel])
        wrench = stiffness * error - damping * moving
        data.qfrc_applied[:] = 0.0
        torque = np.concatenate([linear, angular]).T @ wrench
        data.qfrc_applied[self.arm] = (torque + data.qfrc_bias)[self.arm]
        self.pull(told)
        mujoco.mj_step2(model, data)

    def pull(self, told: Arrays) -> None:
        """The gripper's drive."""
        data, opened = self.data, float(told["gripper_position_target"][0])
        place, speed = float(np.mean(data.qpos[self.places])), float(np.mean(data.qvel[self.fingers]))
        pull = self.grip["stiffness"][0] * (opened - place) - self.grip["damping"][0] * speed
        pull = float(np.clip(pull, -self.most, self.most)) * min(1.0, self.factor["strength"])
        data.qfrc_applied[self.fingers] = pull / len(self.fingers) + data.qfrc_bias[self.fingers]

    def begin(self) -> Arrays:
        """What it is told before anything is."""
        opened = self.data.qpos[self.places[:1]].copy()
        return {self.aim: self.data.site_xpos[self.tool].copy(), "gripper_position_target": opened}

    @property
    def inside(self) -> bool:
        """Whether the tool is in the workspace, or below it."""
        return bool((self.data.site_xpos[self.tool] < self.highest).all())

    def scatter(self, draw: Draws, i: int, placing: bool) -> np.ndarray:
        """(3,) m: the goal, in the workspace; and a cube elsewhere in it."""
        if not placing:
            return self.lowest + (self.highest - self.lowest) * draw.random.uniform(0.05, 0.95, 3)
        cube = place = np.zeros(2)
        while np.linalg.norm(cube - place) < 0.1:
            cube, place = draw.random.uniform(self.lowest[:2], self.highest[:2], (2, 2))
        self.put_cube(cube, self.heading(cube) + float(draw("initial.yaw")[i]))
        return np.array([*place, self.half])

    def heading(self, place: np.ndarray) -> float:
        """rad: how the tool is turned about z there."""
        return 0.0

    def put_cube(self, place: np.ndarray, yaw: float) -> None:
        """On the ground at ``place`` (2,) m, turned by ``yaw`` (rad)."""
        at = self.model.jnt_qposadr[self.model.body("cube").jntadr[0]]
        self.data.qpos[at : at + 7] = [*place, self.half + 1e-4, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
        mujoco.mj_forward(self.model, self.data)

    def touched(self) -> bool:
        """Whether the hand touches the cube."""
        cube = self.model.geom("cube").id
        pairs = self.data.contact.geom[: self.data.ncon]
        return any(cube in pair and self.model.geom_bodyid[pair].min() > 0 for pair in pairs)


def _cut(vector: np.ndarray, most: float) -> np.ndarray:
    return vector * min(1.0, most / max(float(np.linalg.norm(vector)), 1e-12))


def success(file: Path, model: Path, n: int, seed: int = 0, kind: type[Arm] = Arm) -> float:
    """The part of n episodes that succeed: of reaching, or of placing a cube."""
    policy = Policy(file, n)
    draw = Draws(policy, seed)
    arms, sensors = [kind(policy, draw, i, model) for i in range(n)], Sensors(policy, draw, policy.period)
    placing, limits = "object" in policy.facts, policy.facts["success"]
    goal = np.stack([arm.scatter(draw, i, placing) for i, arm in enumerate(arms)])
    good, held, lifted = np.zeros(n, bool), np.zeros(n), np.zeros(n, bool)
    per, late = round(policy.period / STEP), np.rint(draw("command_delay") / STEP).astype(int)
    before = [arm.begin() for arm in arms]
    seen, age = np.stack([arm.truth().get("cube_position", np.zeros(3)) for arm in arms]), np.zeros(n)
    lost = draw("dropout.cube_position")
    left = np.full(n, policy.facts["episode"])
    for _ in range(2 * round(policy.facts["episode"] / policy.period)):
        truth = [arm.truth() for arm in arms]
        for name in sensors.signals:
            sensors.note(name, np.stack([one[name] for one in truth]))
        told = sensors.read()
        if placing:
            fresh = draw.random.uniform(size=n) >= lost
            seen[fresh], delay = told["cube_position"][fresh], sensors.late["cube_position"] * policy.period
            age = np.where(fresh, delay, np.minimum(age + policy.period, 0.5))
            told |= {"cube_position": seen, "cube_age": age[:, None], "cube_position_setpoint": goal}
        commands = policy({**told, "tool_position_setpoint": goal})
        for i in np.flatnonzero(~good & (left > 0)):
            left[i] -= policy.period if arms[i].inside else 0.0
            now = {name: value[i] for name, value in commands.items()}
            for k in range(per):
                arms[i].step(now if k >= late[i] else before[i])
            before[i] = now
            if placing:
                cube = arms[i].data.body("cube")
                lifted[i] |= cube.xpos[2] > arms[i].half + limits["lifted_m"]
                away = cube.xpos - goal[i]
                there = lifted[i] and np.linalg.norm(away[:2]) < limits["cube_within_m"] and not arms[i].touched()
                there = there and abs(away[2]) < limits["height_within_m"]
                there = there and np.linalg.norm(cube.cvel[3:]) < limits["slower_than_m_s"]
            else:
                there = np.linalg.norm(arms[i].truth()["tool_position"] - goal[i]) < limits["tool_within_m"]
            held[i] = held[i] + policy.period if there else 0.0
            good[i] = held[i] >= limits["for_s"] - 1e-9
        if (good | (left <= 0)).all():
            break
    return float((good & ~policy.refused).mean())
