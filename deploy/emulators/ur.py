"""An emulated UR5e: the card's arm in MuJoCo behind RTDE's bytes. It holds where it is; nothing can command it yet."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import socket
import struct
import time

import numpy as np
import torch

from deploy.drivers.rtde import messages as m
from sim.plants.mujoco_cpu import MujocoPlant
from sim.plants.physics import GRASP
from sim.robots.arm import ArmCard, load_arm

TICK = 0.002  # s: a controller of the e-Series runs at 500 Hz
RUNNING, NORMAL = 7, 1
"""robot_mode and safety_mode of a robot that may be commanded."""
RELEASE = (5, 12, 0, 0)
"""Of URControl."""
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


class Arm:
    """The arm, and what its controller tells of it."""

    def __init__(self, card: ArmCard | None = None) -> None:
        self.card = card or load_arm("ur5e")
        physics = dataclasses.replace(GRASP, contacts="model", timestep=TICK)
        self.plant = MujocoPlant(self.card.mechanism, 1, TICK, physics=physics, threads=1)
        self.target = np.array(self.card.home)
        self.plant.place(torch.tensor([0]), joint_position=torch.tensor([self.card.home]))
        self.seconds, self.robot_mode, self.safety_mode = 0.0, RUNNING, NORMAL

    def advance(self) -> None:
        """One tick."""
        self.plant.step({"joint_position_target": torch.tensor(self.target[None], dtype=torch.float32)})
        self.seconds += TICK

    def values(self) -> m.Values:
        """Every output field; those that are not simulated are 0."""
        truth = self.plant.truth()
        q, qd = (tuple(map(float, truth[name][0])) for name in ("joint_position", "joint_velocity"))
        pose = self.card.chain.pose(list(q))
        place = (*map(float, pose.position), *rotation_vector(np.array([pose.x, pose.y, pose.z]).T))
        known: m.Values = {
            "timestamp": (self.seconds,), "robot_mode": (self.robot_mode,), "safety_mode": (self.safety_mode,),
            "runtime_state": (1,), "speed_scaling": (1.0,), "target_speed_fraction": (1.0,), "robot_status_bits": (1,),
            "safety_status_bits": (1,), "target_q": tuple(map(float, self.target)), "actual_q": q, "actual_qd": qd,
            "actual_TCP_pose": place, "joint_mode": (253,) * 6,
        }  # fmt: skip
        return {name: known.get(name, (0,) * ZEROS[kind]) for name, kind in FIELDS.items()}


ZEROS = {kind: int(text[:-1] or 1) for kind, text in m.FORMATS.items()}


def rotation_vector(turn: np.ndarray) -> tuple[float, float, float]:
    """rad, the axis times the angle, as UR writes poses."""
    from scipy.spatial.transform import Rotation

    x, y, z = Rotation.from_matrix(turn).as_rotvec()
    return float(x), float(y), float(z)


class Controller:
    """One program's connection to the arm's RTDE."""

    def __init__(self, arm: Arm) -> None:
        self.arm, self.started, self.every = arm, False, 1
        self._packages, self._ticks = m.Packages(), 0
        self.recipe: m.Recipe | None = None

    def receive(self, data: bytes) -> bytes:
        """What is answered. ValueError for bytes that are not RTDE."""
        return b"".join(self._answer(kind, payload) for kind, payload in self._packages.feed(data))

    def tell(self) -> bytes:
        """What is sent in this tick."""
        self._ticks += 1
        if not self.started or self.recipe is None or self._ticks % self.every:
            return b""
        return m.package(m.DATA, self.recipe.encode(self.arm.values()))

    def _answer(self, kind: bytes, payload: bytes) -> bytes:
        if kind == m.PROTOCOL:
            return m.package(kind, bytes([payload == struct.pack(">H", m.VERSION)]))
        if kind == m.CONTROLLER:
            return m.package(kind, struct.pack(">4I", *RELEASE))
        if kind == m.OUTPUTS:
            (rate,) = struct.unpack_from(">d", payload)
            names = payload[8:].decode("ascii").rstrip(",").split(",")  # ur-rtde ends its list with a comma
            types = [FIELDS.get(name, m.MISSING) for name in names]
            if not math.isfinite(rate) or not 1.0 <= rate <= 1 / TICK or m.MISSING in types:
                self.recipe = None
                return m.package(kind, b"\0" + ",".join(types).encode())
            self.recipe, self.every = m.Recipe(1, names, types), round(1 / TICK / rate)
            return m.package(kind, b"\1" + ",".join(types).encode())
        if kind in (m.START, m.PAUSE):
            self.started = kind == m.START and self.recipe is not None
            return m.package(kind, bytes([self.started or kind == m.PAUSE]))
        return b""


def serve(arm: Arm, host: str = "127.0.0.1", seconds: float = float("inf")) -> None:
    """In real time, one program at a time."""
    with socket.create_server((host, m.PORT)) as listening:
        listening.setblocking(False)
        line: socket.socket | None = None
        controller, begun = Controller(arm), time.monotonic()
        while (now := time.monotonic()) - begun < seconds:
            with contextlib.suppress(BlockingIOError):
                came, _ = listening.accept()
                if line is not None:
                    line.close()
                line, controller = came, Controller(arm)
                line.setblocking(False)
                line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            arm.advance()
            if line is not None:
                try:
                    data = b""
                    with contextlib.suppress(BlockingIOError):
                        data = line.recv(4096)
                        if not data:
                            raise ConnectionResetError
                    line.sendall(controller.receive(data) + controller.tell())
                except (OSError, ValueError):
                    line.close()
                    line = None
            time.sleep(max(0.0, now + TICK - time.monotonic()))
