"""An arm of Dynamixel servos as a driver: every cycle is two reads and one write of goals.

One read has goal, clock and measurements of every servo; the other has TORQUE_ENABLE in one cycle and BUS_WATCHDOG in
the next, so that a servo that was restarted or whose watchdog tripped is seen within two cycles. Answers that are late
show by the servos' own clocks.

With a bus watchdog a servo that hears nothing stops where it is and holds, and takes no goals until it is enabled again
(e-manual, Bus Watchdog). Older firmware does not: in extended position mode with a homing offset, which is how LeRobot
leaves a Koch, a tripped watchdog makes the servo move on and on (ROBOTIS-GIT/DynamixelSDK, issue 584). So it is used
where that can't be, or where the robot file says so; else the servos go to their last goal and hold it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from robo_rl.contract import Contract
from robo_rl.deploy.robot.drivers.bus_servos.arm import FIRST_TORQUE, ServoArm, named
from robo_rl.deploy.robot.drivers.bus_servos.bus import Answer
from robo_rl.deploy.robot.drivers.bus_servos.calibration import TURN, JointCalibration
from robo_rl.deploy.robot.drivers.bus_servos.joints import Joint, joints_of
from robo_rl.deploy.robot.drivers.bus_servos.robot_file import JointMounting, RobotFile
from robo_rl.deploy.robot.drivers.driver import DriverError, Identity, Silence
from robo_rl.deploy.robot.drivers.dynamixel import registers as r
from robo_rl.deploy.robot.drivers.dynamixel.bus import Bus
from robo_rl.deploy.robot.drivers.dynamixel.clock import ServoClock
from robo_rl.deploy.robot.drivers.dynamixel.mapping import calibrated, gains, patience, setup, strong_enough, within_bus
from robo_rl.deploy.robot.drivers.dynamixel.models import MODELS, Model
from robo_rl.deploy.robot.drivers.dynamixel.packets import ALERT

VELOCITY = 0.229 * 6.283185307179586 / 60  # rad/s for a unit of PRESENT_VELOCITY
NEEDED = 4 | 32
"""Bits of SHUTDOWN that have to be there: a servo must protect itself from heat and overload."""
FULL_TURNS = ("shoulder_pan", "wrist_roll")
"""Joints of which LeRobot writes a full turn (koch_follower.py)."""
TORQUE_BY_GOAL = 8
"""Bit of DRIVE_MODE: a goal switches torque on."""
POSITION_OFFSET = 1024
"""Steps: in POSITION, a greater homing offset is ignored."""


def joints_for(contract: Contract, calibration: Mapping[str, JointCalibration], file: RobotFile) -> tuple[Joint, ...]:
    """The arm's joints, in the contract's order. DriverError where they can't be those of the contract."""
    names = [element for command in contract.commands for element in command.elements]
    joints = joints_of(contract, calibration, file, names, reversed_here=False, full_turns=FULL_TURNS)
    within_bus(contract, joints)
    return joints


class DynamixelArm(ServoArm):
    """See the module's text, and ``robo_rl.deploy.robot.drivers.driver.Driver``."""

    silence = Silence.HOLDS
    cycle = (r.GOAL_POSITION.address, r.PRESENT_TEMPERATURE.address + 1 - r.GOAL_POSITION.address)

    def __init__(
        self, bus: Bus, contract: Contract, calibration: Mapping[str, JointCalibration], file: RobotFile,
        now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """DriverError where the contract is beyond the hardware, as far as that is known without it."""
        super().__init__(bus, contract, joints_for(contract, calibration, file), file.torque_limit, now)
        self._file, self._actuators = file, {a.name: a for a in contract.robot.actuators}
        self._patience = patience(contract)
        self.watchdog = 0
        """What the servos' is set to by ``enable``; 0: none."""
        self._models: dict[int, Model] = {}
        self._modes: dict[int, int] = {}
        self._pwm: dict[int, int] = {}
        self._turns = dict.fromkeys(self._ids, 0)
        """Steps, whole turns, by which a servo's own position is beyond its calibrated range."""
        self._states: dict[r.Register, list[str]] = {}
        """What was wrong when each was asked last."""
        self._clocks = {id: ServoClock(contract.control_period) for id in self._ids}

    # --- before it moves ------------------------------------------------------------------------------------------

    def identify(self) -> Identity:
        """Find all servos, compare what they are and have in their memory, and set what they forget."""
        firmware, wanted = [], {}
        for joint in self.joints:
            where, found = f"servo {joint.id} ({joint.name})", self.bus.ping(joint.id)
            if found is None:
                raise DriverError(f"{where} does not answer; check its cable, the power supply, its ID, and 1 Mbit/s")
            if errors := self.bus.read(joint.id, r.HARDWARE_ERROR):
                raise DriverError(f"{where} reports {named(errors, r.ERRORS)}; remove the cause, switch it off and on")
            if found.model not in MODELS:
                known = ", ".join(model.name for model in MODELS.values())
                raise DriverError(f"{where} is model {found.model}; expected one of {known}")
            self._models[joint.id] = MODELS[found.model]
            firmware.append(str(found.firmware))
            self._compare(joint, where)
            self._modes[joint.id] = self._position_mode(joint, where)
            wanted[joint.id] = self._wanted(joint)
        for id, rows in wanted.items():
            for register, value in rows:
                if self.bus.read(id, register) != value:
                    self.bus.write(id, register, value)
        self._count_turns()
        self.watchdog, why = self._watchdog()
        self.silence = Silence.STAYS if self.watchdog else Silence.HOLDS
        details = {
            "servos": " ".join(f"{id}:{model.name}" for id, model in self._models.items()),
            "firmware": " ".join(firmware),
            "bus watchdog": why,
        }
        return Identity("dynamixel", details)

    def _compare(self, joint: Joint, where: str) -> None:
        """DriverError unless the servo's memory is what the calibration says, and safe."""
        for name, (register, wanted) in calibrated(joint).items():
            if (here := self.bus.read(joint.id, register)) != wanted:
                raise DriverError(
                    f"{where} has the {name} {here}, the calibration file says {wanted}: the file is another arm's, "
                    "or older; run lerobot-calibrate"
                )
        mode = self.bus.read(joint.id, r.DRIVE_MODE)
        if mode & r.REVERSED != joint.calibration.drive_mode or mode & TORQUE_BY_GOAL:
            raise DriverError(
                f"{where} has the drive mode {mode}; expected {joint.calibration.drive_mode} as in the calibration file"
            )
        if (shadow := self.bus.read(joint.id, r.SHADOW_ID)) in self._ids:
            raise DriverError(f"{where} is the shadow of servo {shadow}, which is a joint of its own")
        shutdown = self.bus.read(joint.id, r.SHUTDOWN)
        if shutdown & NEEDED != NEEDED:
            missing = named(NEEDED & ~shutdown, r.ERRORS)
            raise DriverError(
                f"{where} does not let go at {missing}; write {shutdown | NEEDED} to its register {r.SHUTDOWN.address}"
            )

    def _position_mode(self, joint: Joint, where: str) -> int:
        """The operating mode, one that takes positions by PWM; a gripper as LeRobot leaves it will be set to one."""
        mode, torque = self.bus.read(joint.id, r.OPERATING_MODE), self.bus.read(joint.id, r.TORQUE_ENABLE)
        if mode == r.CURRENT_POSITION and not torque:
            mode = r.EXTENDED_POSITION
        if mode not in (r.POSITION, r.EXTENDED_POSITION):
            raise DriverError(
                f"{where} is in the operating mode {mode} ({r.MODES.get(mode, 'unknown')}); expected position (3) or "
                f"extended position (4): with its torque off, write that to its register {r.OPERATING_MODE.address}"
            )
        if mode == r.POSITION and abs(joint.calibration.homing_offset) > POSITION_OFFSET:
            raise DriverError(
                f"{where} ignores its homing offset of {joint.calibration.homing_offset} in the operating mode 3; "
                "expected extended position (4)"
            )
        return mode

    def _wanted(self, joint: Joint) -> list[tuple[r.Register, int]]:
        """What registers must be. DriverError where the servo can't be what the contract wants."""
        model, id = self._models[joint.id], joint.id
        voltage = 0.1 * self.bus.read(id, r.PRESENT_VOLTAGE)
        strong_enough(joint, self._actuators.get(joint.name), model, voltage)
        found = gains(joint, model, voltage, self._file.joints.get(joint.name, JointMounting()))
        self._pwm[id] = self.bus.read(id, r.PWM_LIMIT)
        if self.bus.read(id, r.TORQUE_ENABLE):
            return setup(joint, found)
        return [(r.OPERATING_MODE, self._modes[id]), (r.RETURN_DELAY, 0), *setup(joint, found)]

    def _watchdog(self) -> tuple[int, str]:
        """What the bus watchdog is set to, and a word on it."""
        wanted, seconds = self._file.bus_watchdog, self._patience * r.WATCHDOG_UNIT
        doubtful = any(self._modes[j.id] == r.EXTENDED_POSITION and j.calibration.homing_offset for j in self.joints)
        if wanted or (wanted is None and not doubtful):
            return self._patience, f"{seconds:.2f} s"
        return 0, "off by the robot file" if wanted is False else (
            "off: with a homing offset older firmware moves when it trips; update it, then bus_watchdog = true"
        )

    def enable(self) -> None:
        """Torque on, at the pose that the arm is in, with little torque at first; then the watchdog watches."""
        if not self.holding:
            self._count_turns()
            self._states.clear()
            for clock in self._clocks.values():
                clock.reset()
        super().enable()
        self._guard(self.watchdog)

    def _count_turns(self) -> None:
        """Which turn every servo is in: in EXTENDED_POSITION it counts from the one in which it was switched on."""
        self._turns = dict.fromkeys(self._ids, 0)
        for id, own in self.present().items():
            if self._modes[id] == r.EXTENDED_POSITION:
                self._turns[id] = TURN * round((self.of(id).calibration.middle - own) / TURN)

    def before_torque(self) -> None:
        """A watchdog that tripped takes no goals: what follows at once are goals where the arm is."""
        self._guard(0)

    def torque(self, on: bool) -> None:
        """Of all servos at once. DriverError if one does not take it."""
        at = r.TORQUE_ENABLE
        if not on:
            self._guard(0)
        self.bus.sync_write({id: at.encode(int(on)) for id in self._ids}, at.address)
        if on:
            self.send(self._goals, self._limit * FIRST_TORQUE)  # a servo sets its goal anew when its torque comes on
            without = [self.of(id).name for id, answer in self._asked(at).items() if at.decode(answer.parameters) != 1]
            if without:
                raise DriverError(f"{without} take no torque; look for their hardware errors, and start them anew")

    def _guard(self, value: int) -> None:
        """Set the bus watchdogs. Whether they took it is seen in the next cycles."""
        at = r.BUS_WATCHDOG
        self.bus.sync_write({id: at.encode(value) for id in self._ids}, at.address)

    # --- every cycle ------------------------------------------------------------------------------------------------

    def send(self, goals: Mapping[int, int], part: float) -> None:
        """A part of the greatest voltage, and goals, of all servos at once."""
        pwm = {id: r.GOAL_PWM.encode(int(part * self._pwm[id])) for id in goals}
        self.bus.sync_write(pwm, r.GOAL_PWM.address)
        own = {id: r.GOAL_POSITION.encode(goal - self._turns[id]) for id, goal in goals.items()}
        self.bus.sync_write(own, r.GOAL_POSITION.address)

    def steps_of(self, joint: Joint, data: bytes) -> int:
        """The position in what was read, steps, in the turn of the calibration."""
        return self._taken(data, r.PRESENT_POSITION) + self._turns[joint.id]

    def measure(self, joint: Joint, data: bytes) -> tuple[float, float]:
        """The position and speed in what was read, rad and rad/s of the model."""
        position = joint.angle(self.dithered(self.steps_of(joint, data)))
        return position, joint.sign * VELOCITY * self.dithered(self._taken(data, r.PRESENT_VELOCITY))

    def wrong(self, joint: Joint, answer: Answer) -> list[str]:
        """Errors, and goals that are not ours."""
        where, data = f"servo {joint.id} ({joint.name})", answer.parameters
        model, load = self._models[joint.id], self._taken(data, r.PRESENT_CURRENT)
        self._figures[f"voltage/{joint.name} V"] = 0.1 * self._taken(data, r.PRESENT_VOLTAGE)
        self._figures[f"temperature/{joint.name} degC"] = float(self._taken(data, r.PRESENT_TEMPERATURE))
        if model.current is None:
            self._figures[f"load/{joint.name} %"] = 0.1 * load
        else:
            self._figures[f"current/{joint.name} A"] = model.current * load
        found = []
        if number := answer.code & ~ALERT:
            found.append(f"{where} answers with the error {number}")
        if self._enabled_at is not None:
            found += self.foreign_goal(joint, self._taken(data, r.GOAL_POSITION) + self._turns[joint.id])
        return found

    def more_wrong(self, found: Mapping[int, Answer]) -> list[str]:
        """Clocks that tell of late answers; what an alert means; torque and watchdogs, in turn."""
        problems, enabled = [], self._enabled_at is not None
        for id, answer in found.items():
            if not self._clocks[id].agrees(self.bus.when[id], self._taken(answer.parameters, r.TICK), enabled):
                problems.append(
                    f"servo {id} ({self.of(id).name}): its clock does not go with ours; its answers are late, or it "
                    "was restarted"
                )
        alerted = [id for id, answer in found.items() if answer.code & ALERT]
        for id, answer in (self.bus.sync_read(alerted, *r.HARDWARE_ERROR[:2]) if alerted else {}).items():
            errors = r.HARDWARE_ERROR.decode(answer.parameters)
            problems.append(f"servo {id} ({self.of(id).name}) reports {named(errors, r.ERRORS)}")
        if alerted and not problems:
            problems.append(f"servo {alerted[0]} ({self.of(alerted[0]).name}) reports a hardware error")
        if enabled:
            asked = r.BUS_WATCHDOG if self._cycles % 2 else r.TORQUE_ENABLE
            self._states[asked] = self._state(asked)
        return [*problems, *(sentence for sentences in self._states.values() for sentence in sentences)]

    def _state(self, asked: r.Register) -> list[str]:
        """What is wrong with TORQUE_ENABLE or BUS_WATCHDOG of the servos, in sentences."""
        problems, answers = [], self.gather(*asked[:2])
        if missing := [self.of(id).name for id in self._ids if id not in answers]:
            return [f"no answer from {', '.join(missing)}"]
        for id, answer in answers.items():
            value, where = asked.decode(answer.parameters), f"servo {id} ({self.of(id).name})"
            if asked is r.TORQUE_ENABLE and value != 1:
                problems.append(f"{where} lost its torque: its power failed, it shut down, or it was switched off")
            elif asked is r.BUS_WATCHDOG and value == r.TRIPPED:
                problems.append(f"{where}: its bus watchdog tripped, it heard nothing for too long; arm anew")
            elif asked is r.BUS_WATCHDOG and value != self.watchdog:
                problems.append(f"{where} has the bus watchdog {value}; it was set to {self.watchdog}")
        return problems

    def _asked(self, register: r.Register) -> dict[int, Answer]:
        found = self.gather(*register[:2])
        if missing := [self.of(id).name for id in self._ids if id not in found]:
            raise DriverError(f"no answer from {missing}")
        return found

    def _taken(self, data: bytes, register: r.Register) -> int:
        return register.decode(data, self.cycle[0])
