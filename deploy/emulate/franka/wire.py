"""What goes wrong with a Franka arm, its hand and the line to them: faults, each with its name, for tests and for
``robo-rl emulate franka``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from franky_sim.franka_robot_protocol import MoveStatus, RobotMode

from robo_rl.deploy.emulate.damage import require_fault
from robo_rl.deploy.emulate.franka import Station

OTHER_TOOL = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.15, 1.0)
"""F_T_EE of another end effector, by columns."""
PAUSE = 15
"""Ticks for which the line is paused, over and over."""


@dataclass
class FrankaWire:
    """A station, and what is wrong with it."""

    station: Station
    fault: str = ""
    random: random.Random = field(default_factory=lambda: random.Random(0))
    ticks: int = 0
    sent: int = 1
    """States of the last tick."""

    def begin(self, fault: str) -> None:
        """From now on this is wrong. ValueError unless it is the name of a fault."""
        require_fault(fault, FAULTS)
        self.fault = fault
        FAULTS[fault].at_once(self)

    def advance(self, patience: float) -> None:
        """A tick: commands, physics, states; ``patience`` s for a command."""
        self.ticks += 1
        copies = FAULTS[self.fault].copies(self)
        if self.sent:
            self.station.receive(patience)
        else:
            self.station.server.process_commands()
        self.station.step()
        self.sent = copies
        for _ in range(copies):
            self.station.send()
        if not copies:
            self.station.server.skip_state()
            self.station.server.hand.send_state()


def _once(wire: FrankaWire) -> int:
    return 1


def _never(wire: FrankaWire) -> int:
    return 0


def _nothing(wire: FrankaWire) -> None:
    """Not at once."""


def _error(name: str) -> Callable[[FrankaWire], None]:
    return lambda wire: wire.station.server.trip(name)


def _mode(mode: RobotMode, status: MoveStatus) -> Callable[[FrankaWire], None]:
    return lambda wire: wire.station.server.trip("", mode, status)


def _set(name: str, value: object, of_hand: bool = False) -> Callable[[FrankaWire], None]:
    def change(wire: FrankaWire) -> None:
        setattr(wire.station.server.hand if of_hand else wire.station.server, name, value)

    return change


def _cut(wire: FrankaWire) -> None:
    wire.station.server.reset_state()
    wire.station.server.hand.reset_state()


@dataclass(frozen=True)
class Fault:
    """What it is, whether a session goes on with it, what it does at once, and the states sent in a tick."""

    text: str
    borne: bool
    at_once: Callable[[FrankaWire], None] = _nothing
    copies: Callable[[FrankaWire], int] = _once


FAULTS: dict[str, Fault] = {
    "": Fault("nothing", True),
    "states lost": Fault("one state in ten is lost", True, copies=lambda w: int(w.random.random() > 0.1)),
    "states doubled": Fault("one state in ten comes twice", True, copies=lambda w: 1 + (w.random.random() < 0.1)),
    "pauses": Fault(
        f"for {PAUSE} ms in every 100 no state comes", True, copies=lambda w: int(w.ticks % 100 >= PAUSE)
    ),
    "hand refuses": Fault("the hand says that it grasped nothing", True, _set("refuses", True, of_hand=True)),
    **{
        name.replace("_", " "): Fault(f"the robot stops with {name}", False, _error(name))
        for name in (
            "cartesian_reflex", "joint_reflex", "joint_velocity_violation", "joint_position_limits_violation",
            "cartesian_position_limits_violation", "self_collision_avoidance_violation",
            "controller_torque_discontinuity", "power_limit_violation",
        )
    },
    "user stop": Fault(
        "the user stop is pressed", False,
        _mode(RobotMode.kUserStopped, MoveStatus.kPreemptedDueToActivatedSafetyFunctions),
    ),
    "emergency": Fault("the robot has an emergency", False, _mode(RobotMode.kOther, MoveStatus.kEmergencyAborted)),
    "guiding": Fault("somebody guides the arm by hand", False, _mode(RobotMode.kGuiding, MoveStatus.kAborted)),
    "preempted": Fault("somebody ends the motion in Desk", False, _mode(RobotMode.kIdle, MoveStatus.kPreempted)),
    "commands lost": Fault("no command arrives", False, _set("deaf", True)),
    "silent": Fault("the arm sends nothing any more", False, copies=_never),
    "hand silent": Fault("the hand sends nothing any more", False, _set("silent", True, of_hand=True)),
    "cut": Fault("the connection is closed by the robot", False, _cut),
    "tool": Fault("the end effector is another one", False, _set("tool", OTHER_TOOL)),
}  # fmt: skip
