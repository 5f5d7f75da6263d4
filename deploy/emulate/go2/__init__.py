"""A Go2 as its topics tell it: the card's robot in MuJoCo behind twelve motors, an IMU, a motion switcher and a remote.

It begins on its belly in the mode "normal", in which its own controller holds the legs. What it is commanded it does
until it is commanded something else: what the real one does in silence is not known.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import torch

from robo_rl.contract.gravity import GRAVITY
from robo_rl.deploy.robot.drivers.unitree.family import GO, Family
from robo_rl.deploy.robot.drivers.unitree.keeping import DAMPING
from robo_rl.deploy.robot.drivers.unitree.messages import MOTORS, LowCommand, LowState
from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.legged import LeggedCard, load_legged

TICK = 0.002
"""s: states come 500 times a second."""
FOLDED = (0.0, 1.25, -2.6)
"""rad: hip, thigh and calf of a robot that lies."""
NOISE = {"quaternion": 0.001, "gyroscope": 0.02, "q": 0.001, "dq": 0.1, "tau": 0.5}
"""Standard deviations, estimates: below what policies are trained with."""
TORQUE_GAIN = 0.9
"""What the motors tell of their torque is estimated from currents; this robot's are wrong by as much."""
NORMAL = "normal"
MODES = (NORMAL, "ai", "advanced")
STOP_KEYS = bytes([0, 0, 0x20, 0x02]) + bytes(36)
"""L2 and B."""
BELLY = 0.1  # m, height of the base of a robot that lies


@dataclass
class Broken:
    """What is wrong with the robot itself; faults of the wire are in ``robo_rl.deploy.emulate.go2.wire``."""

    charge: int = 80
    """% of the battery."""
    rate: float = 1.0
    """s of its clock in one s."""
    clock: bool = False
    imu: bool = False
    lost_motor: int | None = None
    hot_motor: int | None = None
    error: int | None = None
    """The motor that tells an error, where the family's states tell such."""
    keys: bytes = field(default_factory=lambda: bytes(40))


class Go2:
    """The robot."""

    name = "go2"
    family: Family = GO
    motors = MOTORS
    machine = 0
    torque = 45.0  # N m, above which states tell nothing
    standing: tuple[float, ...] = (0.0, 0.67, -1.3) * 4
    """rad: as the maker's example stands (unitree_sdk2, go2_stand_example.cpp)."""

    def __init__(self, card: LeggedCard | None = None, seed: int = 0) -> None:
        self.card = card or load_legged(self.name)
        self.plant = MujocoPlant(
            self.card.mechanism, 1, TICK, physics=Physics(timestep=TICK, contacts="all"), threads=1
        )
        self.random = np.random.default_rng(seed)
        self.mode, self.broken, self.ticks, self.refused = NORMAL, Broken(), 0, 0
        self._left, self._fresh = 0.0, False
        self._gains: tuple[bytes, ...] = ()
        self._lost = np.zeros(self.motors, np.int64)
        self._imu: tuple[np.ndarray, np.ndarray] | None = None
        self._stiffness, self._damping = self.plant.param("stiffness"), self.plant.param("damping")
        self._lie()
        self.command = self._own()
        self._run(400)

    def _lie(self) -> None:
        folded = torch.tensor([FOLDED * 4], dtype=torch.float32)
        base = [[0.0, 0.0, BELLY], [0.0, 0.0, 0.0, 1.0], [0.0] * 3, [0.0] * 3]
        at = (torch.tensor([part], dtype=torch.float32) for part in base)
        self.plant.place(torch.tensor([0]), *at, folded, 0.0 * folded)

    def _own(self) -> LowCommand:
        """What the robot's own controller sends its motors while it lies."""
        nothing = np.zeros(self.motors)
        return LowCommand(
            nothing == 0, np.array(FOLDED * 4), nothing, nothing, nothing + 20.0, nothing + DAMPING
        )  # fmt: skip

    # --- what comes and goes ----------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> bool:
        """A LowCmd_; False for one that the robot drops."""
        try:
            self.command = self._read(data)
        except ValueError:
            self.refused += 1
            return False
        self._fresh = True
        return True

    def _read(self, data: bytes) -> LowCommand:
        """ValueError for what the robot drops."""
        return self.family.decode_command(data, self.motors)

    def request(self, code: int, parameter: str) -> tuple[int, str]:
        """The motion switcher: status and data of its answer."""
        if code == 1001:
            return 0, json.dumps({"form": "0", "name": self.mode})
        if code == 1002:
            try:
                name = json.loads(parameter)["name"]
            except (ValueError, TypeError, KeyError, RecursionError):
                return 3204, ""
            if name not in MODES:
                return 7004, ""
            self.mode = name
            return 0, ""
        if code == 1003:
            self.mode = ""
            nothing = np.zeros(self.motors)
            self.command = LowCommand(nothing == 0, nothing, nothing, nothing, nothing, nothing + DAMPING)
            return 0, ""
        return 3203, ""  # not implemented

    def restart(self) -> None:
        """Its power failed for a moment."""
        nothing = np.zeros(self.motors)
        self.command = LowCommand(nothing > 0, nothing, nothing, nothing, nothing, nothing)
        self.mode, self.ticks = NORMAL, 0
        self._lost[:] = 0

    def advance(self, seconds: float) -> list[bytes]:
        """Move on by whole ticks, and tell the state after each, as LowState_."""
        self._left += seconds
        count = int(self._left / TICK + 1e-9)
        self._left -= count * TICK
        return [self._tick() for _ in range(count)]

    # --- what it is -------------------------------------------------------------------------------------------------

    @property
    def truth(self) -> dict[str, np.ndarray]:
        """True quantities by name."""
        return {name: value[0].numpy() for name, value in self.plant.truth().items()}

    @property
    def stiff(self) -> bool:
        """Whether any motor holds a position."""
        return bool((self.command.on & (self.command.kp > 0)).any())

    # ----------------------------------------------------------------------------------------------------------------

    def _tick(self) -> bytes:
        command = self.command if self._fresh or not self.mode else self._own()
        self._fresh = False
        self._drive(command)
        if not self.broken.clock:
            self.ticks += 1
        if self.broken.lost_motor is not None:
            self._lost[self.broken.lost_motor] += 1
        return self.family.encode_state(self._state())

    def _run(self, count: int) -> None:
        for _ in range(count):
            self._drive(self._own())

    def _drive(self, command: LowCommand) -> None:
        """One step; speeds and torques to be reached are taken as a shift of the position, where there is stiffness."""
        on = command.on.copy()
        if self.broken.lost_motor is not None:
            on[self.broken.lost_motor] = False
        kp, kd = np.where(on, command.kp, 0.0), np.where(on, command.kd, 0.0)
        driven = self._stiffness.shape[1]
        if (gains := (kp.tobytes(), kd.tobytes())) != self._gains:
            self._gains = gains
            self._stiffness[0, :] = torch.from_numpy(kp[:driven])
            self._damping[0, :] = torch.from_numpy(kd[:driven])
        shift = (command.tau + kd * command.dq) / np.where(kp > 0, kp, np.inf)
        target = np.where(kp > 0, command.q + shift, 0.0)
        self.plant.step({"joint_position_target": torch.tensor(target[None, :driven], dtype=torch.float32)})

    def _joints(self) -> tuple[np.ndarray, np.ndarray]:
        """Angles and speeds of all motors: rad, rad/s."""
        truth = self.truth
        return truth["joint_position"], truth["joint_velocity"]

    def _state(self) -> LowState:
        truth = self.truth
        x, y, z, w = truth["orientation"]
        turned, rates = np.array([w, x, y, z]), truth["angular_velocity"]
        quaternion = turned + self._noise("quaternion", 4)
        imu = (quaternion / np.linalg.norm(quaternion), rates + self._noise("gyroscope", 3))
        if self.broken.imu:
            imu = self._imu or imu
        self._imu = imu
        up = np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])
        temperature = np.full(self.motors, 35)
        if self.broken.hot_motor is not None:
            temperature[self.broken.hot_motor] = 95
        q, dq = self._joints()
        pulled = self.command.kp * (self.command.q - q) + self.command.kd * (self.command.dq - dq) + self.command.tau
        tau = np.clip(
            TORQUE_GAIN * self.command.on * pulled + self._noise("tau", self.motors), -self.torque, self.torque
        )
        return LowState(
            round(self.broken.rate * self.ticks * 1000 * TICK), *imu, GRAVITY * up, q + self._noise("q", self.motors),
            dq + self._noise("dq", self.motors), tau, temperature, self._lost, self.broken.charge, 29.6,
            np.full(4, 30), self.broken.keys,
        )  # fmt: skip

    def _noise(self, name: str, count: int) -> np.ndarray:
        return NOISE[name] * self.random.standard_normal(count)
