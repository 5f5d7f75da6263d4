"""One Franka arm through franky: its newest state, and an impedance that follows the newest reference.

The impedance is franky's own (CartesianImpedanceTrackingMotion): it runs at 1 kHz in a thread of C++ and sends torques.
A thread here looks at the state every 2 ms; asking for it outside of a motion waits for the robot, up to a second where
it is silent, and nobody may wait for that in the loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from robo_rl.contract.laws import ImpedanceLaw
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.fci.library import library, sentence
from robo_rl.deploy.robot.drivers.fci.states import ArmState

POLL = 0.002  # s
SILENT = 0.25
"""s without a reference, after which the arm is stopped: the program hangs."""
FIRST_GAINS, GAINS_TIME = 0.1, 0.3
"""Part of the stiffness at first, and s in which it comes nearer to all of it by 1 - 1/e."""
STOPPING = 3.0
"""s that a stop may take; franky's own ends after 2 s at the latest."""


class ArmMotion:
    """See the module's text."""

    def __init__(self, robot: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self.robot, self._now = robot, clock
        self.newest: ArmState | None = None
        self.failure = ""
        """What ended the motion or the connection, a sentence."""
        self.moving = False
        self._motion: Any = None
        self._wanted: Callable[[], Any] = list
        self._stopped = self._lost = False
        self._referred = 0.0
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._thread = threading.Thread(target=self._listen, name="franka arm", daemon=True)
        self._thread.start()

    def begin(self, law: ImpedanceLaw, position: np.ndarray, orientation: np.ndarray, posture: float) -> None:
        """Hold the pose by the law; its gains rise. DriverError where the robot does not take it."""
        stiffness = np.array(law.stiffness)
        task = library.PostureTask(np.array(self._state().q), posture) if posture else None
        motion = library.CartesianImpedanceTrackingMotion(
            translational_stiffness=FIRST_GAINS * stiffness[0], rotational_stiffness=FIRST_GAINS * stiffness[3],
            translational_error_clip=np.array(law.clip[:3]), rotational_error_clip=np.array(law.clip[3:]),
            gains_time_constant=GAINS_TIME, **({"posture_task": task} if task else {}),
        )  # fmt: skip
        motion.set_gains(library.CartesianImpedanceGains.diagonal(stiffness, np.array(law.damping)))
        with self._lock:
            self._motion, self._stopped, self.failure = motion, False, ""
            self.refer(position, orientation)
            try:
                self.robot.move(motion, asynchronous=True)
            except Exception as error:
                raise DriverError(f"the arm does not take a motion: {sentence(error)}") from None
            self.moving = True

    def refer(self, position: np.ndarray, orientation: np.ndarray) -> None:
        """The newest reference, m and x, y, z, w in the base frame."""
        self._referred = self._now()
        pose = library.Affine(np.asarray(position, float), np.asarray(orientation, float))
        self._motion.set_reference(library.CartesianReference(target=pose))

    def stop(self) -> None:
        """End the motion: joints are damped until they rest, then the robot's own controller holds them."""
        with self._lock:
            if not self.moving or self._stopped:
                return
            self._stopped = True
            try:
                self.robot.move(library.TorqueStopMotion(), asynchronous=True)
            except Exception as error:
                self.failure = self.failure or sentence(error)

    def wait(self, sleep: Callable[[float], None]) -> bool:
        """Until it does not move; False where that takes too long."""
        end = self._now() + STOPPING
        while self.moving and self._now() < end:
            sleep(POLL)
        return not self.moving

    def recover(self) -> None:
        """From a reflex. DriverError where the robot says no."""
        try:
            done = self.robot.recover_from_errors()
        except Exception as error:
            raise DriverError(f"the robot does not recover: {sentence(error)}") from None
        if not done:
            raise DriverError("the robot does not recover from its error; see Desk")
        self.failure = ""

    def protect(self, torque: float, force: float) -> None:
        """Set what counts as a collision: N m of joints, N (and N m) of the tool."""
        try:
            self.robot.set_collision_behavior(torque, force)
        except Exception as error:
            raise DriverError(f"the robot does not take its collision thresholds: {sentence(error)}") from None

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join(timeout=STOPPING)

    # ----------------------------------------------------------------------------------------------------------------

    def _state(self) -> ArmState:
        if self.newest is None:
            raise DriverError("the robot has sent no state")
        return self.newest

    def _listen(self) -> None:
        while not self._lost and not self._ended.wait(POLL):
            with self._lock:
                self._watch()
            try:
                state = arm_state(self.robot.state, self._now())
            except Exception as error:
                self.failure = self.failure or f"the robot is silent ({sentence(error)})"
                self._lost, self.moving = True, False
                return
            if self.newest is None or state.tick != self.newest.tick:
                self.newest = state

    def _watch(self) -> None:
        """Whether the motion goes on, and whether the program still gives references."""
        if not self.moving:
            return
        self.moving = bool(self.robot.is_in_control)
        try:
            self.robot.poll_motion()  # raises what ended it
            ended = "" if self._stopped else "the motion has ended by itself"
        except Exception as error:
            self.moving, ended = False, sentence(error)
        if not self.moving:
            self.failure = self.failure or ended
        elif not self._stopped and self._now() - self._referred > SILENT:
            self.failure = f"the program gave no reference for {SILENT} s; the arm was stopped"
            self.stop()


def arm_state(found: Any, came: float) -> ArmState:
    """franky's robot state as a plain value."""
    pose, tool = found.O_T_EE, found.F_T_EE
    errors = found.current_errors
    return ArmState(
        found.time.to_msec(), came, np.array(found.q), np.array(found.dq), np.array(pose.translation),
        np.array(pose.quaternion), np.array(tool.translation), np.array(tool.quaternion), found.robot_mode.name,
        tuple(name for name in ERRORS if getattr(errors, name)), float(found.control_command_success_rate),
    )  # fmt: skip


ERRORS = tuple(name for name in dir(library.Errors) if not name.startswith("_"))
"""libfranka's names."""
