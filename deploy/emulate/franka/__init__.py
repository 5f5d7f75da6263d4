"""An emulated Franka arm (an FR3) with its hand: franky-sim, its authors' own robot side of libfranka's protocol, and
what that lacks here: errors, the user stop, brakes when commands don't come, and a robot that waits for its commander.

franky-sim has the bytes, the states, the model that the client asks for, and the physics (MuJoCo). What this file adds
is checked by libfranka's client alone: it knows the bits of errors, and what each status of a motion means.
"""

from __future__ import annotations

import dataclasses
import select
import socket
import time
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import numpy as np

from robo_rl.files.ports import opening

try:
    from franky_sim import LocalHostnames
    from franky_sim.franka_gripper_server import FrankaGripperServer
    from franky_sim.franka_robot_protocol import (
        AutomaticErrorRecoveryCommand,
        AutomaticErrorRecoveryStatus,
        MoveStatus,
        RobotMode,
    )
    from franky_sim.franka_robot_server import BaseCommand, ControlMode, FrankaRobotServer, RobotCommand
    from franky_sim.mujoco_simulator import MujocoSimulator
except ImportError:  # pragma: no cover
    raise ValueError("the library franky_sim is missing: pip install 'robo-rl[franka-sim]'") from None

TICK, PORT = 0.001, 1337  # s; that of FCI
START = (0.0, 0.1289, 0.0, -2.3953, 0.0, 2.5243, 0.7853981634)
"""rad: the tool points down, at 0.5, 0, 0.16 m, within the space of the tasks."""
MISSED = 20
"""Commands in a row that a robot does without (Franka's documentation of FCI)."""
NOISE = (1e-6, 1e-4)
"""rad and rad/s of the joints, and as many m of the tool: encoders never repeat bit for bit."""
BITS = 41
ERRORS = {
    "joint_position_limits_violation": 0, "cartesian_position_limits_violation": 1,
    "self_collision_avoidance_violation": 2, "joint_velocity_violation": 3, "joint_reflex": 6, "cartesian_reflex": 7,
    "communication_constraints_violation": 25, "power_limit_violation": 26, "controller_torque_discontinuity": 32,
}  # fmt: skip
"""Bit of each error; libfranka's client names them so."""
CUBE, CUBE_MASS = 0.04, 0.05
"""m and kg, as in the task arm-place."""


class Recovery(AutomaticErrorRecoveryCommand):
    """The command that a robot recovers by, from a reflex."""

    def handle(self, server: Any) -> None:
        """It does, unless it has to be done by hand."""
        if server.mode not in (None, RobotMode.kReflex):
            self.reply(AutomaticErrorRecoveryStatus.kManualErrorRecoveryRequiredRejected)
            return
        server.error, server.mode = "", None
        self.reply(AutomaticErrorRecoveryStatus.kSuccess)


class RobotServer(FrankaRobotServer):
    """An arm's server that can report errors, and stops without commands."""

    def __init__(self, robot: Any, hosts: Iterable[str]) -> None:
        super().__init__(robot, hosts)
        self._FrankaServer__command_class_map[RobotCommand.kAutomaticErrorRecovery] = Recovery
        self.error, self.mode = "", None
        self.tool: Any = None
        """F_T_EE, where it is another."""
        self.shifted = 0.0
        """m, by which the tool is elsewhere than its kinematics say."""
        self.deaf = False
        """No command arrives."""
        self.missed, self.commands = 0, 0
        self.heard = False
        """Whether the motion's first command has come: libfranka looks at some states before it."""
        self.random = np.random.default_rng(0)

    @property
    def moving(self) -> bool:
        """Whether it does what it is commanded, by torques."""
        return bool(self._FrankaRobotServer__control_mode == ControlMode.TORQUE)

    def _bind_children(self, hostname: str) -> None:
        self.hand = HandServer(self.robot, hostname)
        self.hand.init()
        self._FrankaRobotServer__gripper_server = self.hand

    def start_motion(self, *given: Any) -> None:
        """As asked, unless it has an error."""
        if self.error or self.mode is not None:
            raise RuntimeError(f"an error stands: {self.error or self.mode}")
        self.missed, self.heard = 0, False
        super().start_motion(*given)

    def trip(self, error: str, mode: Any = RobotMode.kReflex, status: Any = MoveStatus.kReflexAborted) -> None:
        """Stop, brake, and say why."""
        self.error, self.mode = error, mode
        number = self.current_motion_id
        self.stop_motion(send_preemption_signal=False)
        if number and self.tcp_connected:
            BaseCommand.send_response(self._tcp_socket, RobotCommand.kMove, number, status)
        self.reset_current_motion_id()

    @property
    def torques(self) -> tuple[float, ...]:
        """(7,) N m, as commanded last."""
        return tuple(self._FrankaRobotServer__current_control_command.tau_J_d)

    @property
    def number(self) -> int:
        """ms of its clock: of the newest state."""
        return int(self._FrankaServer__message_id) - 1

    def skip_state(self) -> None:
        """One is lost on the line: its number is missing."""
        self._FrankaServer__message_id += 1

    def await_command(self, patience: float) -> None:
        """Until a command for the newest state has come, or something by TCP."""
        if not self.moving or self.deaf:
            return
        if not self.heard:
            time.sleep(TICK)
            return
        lines = [line for line in (self._FrankaServer__udp_socket, self._tcp_socket) if line is not None]
        if not select.select(lines, [], [], patience)[0]:
            self.trip("communication_constraints_violation")

    def _handle_udp_command(self, data: bytes) -> None:
        if not self.deaf:
            self.missed, self.commands, self.heard = -1, self.commands + 1, True
            super()._handle_udp_command(data)

    def _post_process_commands(self) -> None:
        self.missed = self.missed + 1 if self.moving and self.heard else 0
        if self.missed > MISSED:
            self.trip("communication_constraints_violation")
        super()._post_process_commands()

    @property
    def robot_state(self) -> Any:
        """As it is sent."""
        state = super().robot_state
        angles, rates = (self.random.normal(0.0, size, 7) for size in NOISE)
        pose = np.array(state.O_T_EE)
        pose[12:15] += self.random.normal(self.shifted, NOISE[0], 3)
        found = {"q": tuple(state.q + angles), "dq": tuple(state.dq + rates), "O_T_EE": tuple(pose)}
        if self.tool is not None:
            found["F_T_EE"] = self.tool
        if self.error:
            found["errors"] = tuple(bit == ERRORS[self.error] for bit in range(BITS))
        if self.mode is not None:
            found["robot_mode"] = self.mode
        return state.replace(**found)


class HandServer(FrankaGripperServer):
    """A hand's server that can be silent, or refuse."""

    silent = refuses = False
    every = 1
    """Ticks from a state to the next."""
    _ticks = 0

    def send_state(self) -> None:
        """Unless it is silent."""
        self._ticks += 1
        if not self.silent and self._ticks % self.every == 0:
            super().send_state()

    def start_grasp(self, width: float, *rest: Any) -> None:
        """Where it refuses, it never succeeds: no width is close enough."""
        if self.refuses:
            speed, force, _, _, number, line = rest
            rest = (speed, force, -1.0, -1.0, number, line)
        super().start_grasp(width, *rest)


@dataclasses.dataclass
class Station:
    """An arm, its hand and a cube on the ground, on an address of this computer."""

    host: str = ""
    """"": a free one of 127.0.0.0/8."""
    cube: tuple[float, float] | None = None
    """m, x and y of its middle."""
    start: tuple[float, ...] = START

    def __post_init__(self) -> None:
        if self.host:  # else franky-sim says that it "could not find available hostname"
            with opening(PORT, "give the emulated robot another address: --address 127.0.0.2"):
                socket.create_server((self.host, PORT)).close()
        self.simulator = MujocoSimulator()
        self.robot = self.simulator.add_robot(initial_q=self.start, initial_hand_width=2 * CUBE)
        if self.cube is not None:
            _add_cube(self.simulator.worldbody, self.cube)
        self.simulator.init()
        hosts = [self.host] if self.host else LocalHostnames()
        self.server = RobotServer(self.robot, hosts)
        self.server.init()
        self.host = self.server.hostname
        self.simulator.start()
        self.server.process_commands()
        self.step()  # there is no state before the first one

    def receive(self, patience: float) -> None:
        """Commands for the newest state, waited for."""
        self.server.await_command(patience)
        self.server.process_commands()

    def step(self) -> None:
        """Physics, for a tick."""
        self.simulator.step()

    def send(self) -> None:
        """The state to whom it may concern."""
        self.server.send_state()

    @property
    def tool(self) -> np.ndarray:
        """(3,) m, as it is."""
        return np.array(self.robot.state.O_T_EE[12:15])

    @property
    def angles(self) -> np.ndarray:
        """(7,) rad, of the joints, as they are."""
        return np.array(self.robot.state.q)

    @property
    def cube_position(self) -> np.ndarray:
        """(3,) m."""
        return np.array(self.simulator.data.body("cube").xpos)

    def close(self) -> None:
        """Leave the address."""
        self.server.reset_state()
        self.server.cleanup()
        self.simulator.cleanup()


def _add_cube(world: ElementTree.Element, place: tuple[float, float]) -> None:
    half = CUBE / 2
    body = ElementTree.SubElement(world, "body", name="cube", pos=f"{place[0]} {place[1]} {half}")
    ElementTree.SubElement(body, "freejoint", name="cube")
    box = {"type": "box", "size": f"{half} {half} {half}", "mass": str(CUBE_MASS)}
    ElementTree.SubElement(body, "geom", {**box, "condim": "4", "friction": "1 0.005 0.0001"})
