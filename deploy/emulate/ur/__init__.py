"""An emulated UR5e: the card's arm in MuJoCo, and of its controller the modes, the registers and one program.

It runs the program of ``robo_rl.deploy.robot.drivers.rtde.program`` alone, which it knows by its text. servoj is the
card's law: UR
does not tell its own. The protective stop is simpler than the robot's, which has more reasons for one.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from robo_rl.deploy.emulate.ur.program import Program, recognised
from robo_rl.deploy.robot.drivers.rtde import messages as m
from robo_rl.deploy.robot.drivers.rtde.program import Following
from robo_rl.deploy.robot.drivers.rtde.states import NORMAL, PAUSED, PLAYING, RUNNING, STOPPED, TEACH
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import GRASP
from robo_rl.sim.robots.arm import ArmCard, load_arm

TICK = 0.002  # s: a controller of the e-Series runs at 500 Hz
POWER_OFF, PROTECTIVE, EMERGENCY = 3, 3, 7
"""robot_mode, and two of safety_mode."""
NOISE = (1e-5, 1e-3)
"""rad and rad/s: encoders never repeat bit for bit."""
FASTEST, TOOL_FASTEST = 191 / 180, 1.5
"""Part of the joints' greatest speeds, and m/s of the tool: the UR5e's safety limits as it comes."""
HARD = 15.0
"""rad/s^2 of a protective or emergency stop: an estimate."""
D, V3, V6 = "DOUBLE", "VECTOR3D", "VECTOR6D"
FIELDS = {
    "timestamp": D, "robot_mode": "INT32", "safety_mode": "INT32", "runtime_state": "UINT32", "speed_scaling": D,
    "target_speed_fraction": D, "actual_execution_time": D, "actual_momentum": D, "actual_main_voltage": D,
    "actual_robot_voltage": D, "actual_robot_current": D, "joint_mode": "VECTOR6INT32", "robot_status_bits": "UINT32",
    "safety_status_bits": "UINT32", "actual_digital_input_bits": "UINT64", "actual_digital_output_bits": "UINT64",
    "actual_tool_accelerometer": V3, "payload": D, "payload_cog": V3, "payload_inertia": V6, "ft_raw_wrench": V6,
    **dict.fromkeys((f"standard_analog_{way}{i}" for way in ("input", "output") for i in (0, 1)), D),
    **dict.fromkeys(
        (
            "target_q", "target_qd", "target_qdd", "target_current", "target_moment", "actual_q", "actual_qd",
            "actual_current", "joint_control_output", "actual_TCP_pose", "actual_TCP_speed", "actual_TCP_force",
            "target_TCP_pose", "target_TCP_speed", "joint_temperatures", "actual_joint_voltage",
        ),
        V6,
    ),
    **{f"output_int_register_{i}": "INT32" for i in range(48)},
    **{f"output_double_register_{i}": D for i in range(48)},
}  # fmt: skip
"""Output fields and their types (RTDE Guide, "Robot controller outputs")."""


ZEROS = {kind: int(text[:-1] or 1) for kind, text in m.FORMATS.items()}
INPUTS = {
    **{f"input_double_register_{i}": D for i in range(48)},
    **{f"input_int_register_{i}": "INT32" for i in range(48)},
}
"""Input fields and their types (RTDE Guide, "Robot controller inputs"); those that set outputs are left out."""


@dataclasses.dataclass
class Broken:
    """What of it does not work."""

    clock: bool = False
    """Its time stamps stand still."""
    encoders: float = 0.0
    """rad by which the first joint seems to be elsewhere."""


class Arm:
    """The arm, and its controller."""

    def __init__(
        self, card: ArmCard | None = None, pose: tuple[float, ...] | None = None, starting: float = 0.0
    ) -> None:
        """``pose``: rad; by default the card's home. ``starting``: s from the arrival of a program until it runs; a
        controller compiles it first, which takes up to seconds.
        """
        self.card = card or load_arm("ur5e")
        physics = dataclasses.replace(GRASP, contacts="model", timestep=TICK)
        self.plant = MujocoPlant(self.card.mechanism, 1, TICK, physics=physics, threads=1)
        self.target = np.array(pose or self.card.home)
        self.plant.place(torch.tensor([0]), joint_position=torch.tensor([self.target.tolist()]))
        self.seconds, self.told = 1000.0, 1000.0
        self.robot_mode, self.safety_mode, self.runtime = RUNNING, NORMAL, STOPPED
        self.speed, self.taught, self.remote = 1.0, False, True
        self.inputs: dict[str, tuple[float, ...]] = dict.fromkeys(INPUTS, (0,))
        self.owners: dict[str, object] = {}
        """By input field, the connection that writes it."""
        self.outputs: dict[str, tuple[float, ...]] = {}
        self.program: Program | None = None
        self.starting = starting
        self._starts: tuple[Following, float] | None = None
        """A program that is being compiled, and when it runs (s)."""
        self.tcp = np.zeros(3)
        """m by which the active tool centre point is elsewhere than the card's tool, along its axes."""
        self.broken, self.random = Broken(), np.random.default_rng(0)
        joints = self.card.joints
        self._lag = np.array([joint.damping / joint.stiffness for joint in joints])
        self._fastest = FASTEST * np.array([joint.velocity for joint in joints])
        self._stop: tuple[np.ndarray, np.ndarray, float, float] | None = None
        """rad, rad/s, s until rest, and s since then."""
        self._see()

    # --- what moves it ----------------------------------------------------------------------------------------------

    def run(self, text: str) -> str:
        """A program came; why it is not run, or ""."""
        if not self.remote:
            return "a program came in local control; it is not run"
        if (told := recognised(text)) is None:
            return f"this emulator runs no program but the one of this project's driver; one of {len(text)} bytes came"
        if self.robot_mode != RUNNING or self.safety_mode != NORMAL:
            return "a program came while the robot may not move; it is not run"
        self._stop = None
        self._starts = told, self.seconds + self.starting
        self._begin()
        return ""

    def _begin(self) -> None:
        """Run what is compiled by now, where the arm may still move."""
        if self._starts is None or self.seconds < self._starts[1]:
            return
        if self.robot_mode == RUNNING and self.safety_mode == NORMAL:
            self.program, self.runtime = Program(self._starts[0], self), PLAYING
        self._starts = None

    def advance(self) -> None:
        """One tick."""
        self._begin()
        if self.program is not None and self.runtime == PLAYING and self._stop is None:
            self.program.tick(self)
        if self._stop is not None:
            self._slow_down()
        self.plant.step({"joint_position_target": torch.tensor(self.target[None], dtype=torch.float32)})
        self.seconds += TICK
        before = self.tool
        self._see()
        too_fast = (
            np.any(np.abs(self.rates) > self._fastest) or np.linalg.norm(self.tool - before) > TOOL_FASTEST * TICK
        )
        if too_fast and self.safety_mode == NORMAL:
            self.stop_protectively()

    def _see(self) -> None:
        truth = self.plant.truth()
        self.joints, self.rates, self.tool = (
            truth[name][0].numpy().astype(float) for name in ("joint_position", "joint_velocity", "tool_position")
        )

    def stop(self, deceleration: float) -> None:
        """To rest, by rad/s^2 of the fastest joint."""
        rates = self.rates.copy()
        self._stop = self.joints.copy(), rates, max(float(np.abs(rates).max()) / deceleration, TICK), 0.0

    def _slow_down(self) -> None:
        assert self._stop is not None
        begin, rates, until, since = self._stop
        since = min(since + TICK, until)
        self._stop = begin, rates, until, since
        left = 1.0 - since / until
        self.target = begin + rates * (since - 0.5 * since**2 / until) + self._lag * rates * left
        if since >= until:
            self._stop = None
            if self.runtime == PLAYING:
                self.program, self.runtime = None, STOPPED

    def stop_protectively(self) -> None:
        """As after a collision; it waits for a person."""
        self.safety_mode = PROTECTIVE
        self.pause(HARD)

    def pause(self, deceleration: float = HARD) -> None:
        """Its program is paused."""
        self.runtime = PAUSED if self.program is not None else STOPPED
        self.stop(deceleration)

    def end(self, deceleration: float = HARD) -> None:
        """Its program is ended from outside."""
        self.program, self.runtime = None, STOPPED
        self.stop(deceleration)

    def stop_in_emergency(self) -> None:
        """Its power is taken away, its brakes fall in."""
        self.robot_mode, self.safety_mode = POWER_OFF, EMERGENCY
        self.end(HARD)

    # --- what it tells ----------------------------------------------------------------------------------------------

    def values(self) -> m.Values:
        """Every output field; those that are not simulated are 0."""
        q = self.joints + self.random.normal(0.0, NOISE[0], 6)
        q[0] += self.broken.encoders
        pose = self.card.chain.pose(self.joints.tolist())
        turn = np.array([pose.x, pose.y, pose.z]).T
        place = (*map(float, np.array(pose.position) + turn @ self.tcp), *rotation_vector(turn))
        if not self.broken.clock:
            self.told = self.seconds
        known: m.Values = {
            "timestamp": (self.told,), "robot_mode": (self.robot_mode,), "safety_mode": (self.safety_mode,),
            "runtime_state": (self.runtime,), "speed_scaling": (1.0,), "target_speed_fraction": (self.speed,),
            "robot_status_bits": (1 | (self.program is not None) << 1 | TEACH * self.taught,),
            "safety_status_bits": (1 << max(0, self.safety_mode - 1),), "target_q": tuple(map(float, self.target)),
            "actual_q": tuple(map(float, q)),
            "actual_qd": tuple(map(float, self.rates + self.random.normal(0.0, NOISE[1], 6))),
            "actual_TCP_pose": place, "joint_mode": (253,) * 6, **self.outputs,
        }  # fmt: skip
        return {name: known.get(name, (0,) * ZEROS[kind]) for name, kind in FIELDS.items()}


def rotation_vector(turn: np.ndarray) -> tuple[float, float, float]:
    """rad, the axis times the angle, as UR writes poses."""
    from scipy.spatial.transform import Rotation

    x, y, z = Rotation.from_matrix(turn).as_rotvec()
    return float(x), float(y), float(z)
