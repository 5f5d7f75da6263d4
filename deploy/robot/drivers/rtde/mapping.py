"""What of a contract an arm of Universal Robots does, and what it is refused for."""

from __future__ import annotations

import numpy as np

from robo_rl.contract import Contract
from robo_rl.contract.laws import PositionLaw
from robo_rl.controllers.arm.chain import Chain
from robo_rl.deploy.robot.drivers.driver import DriverError
from robo_rl.deploy.robot.drivers.rtde.program import LOOKAHEAD, Following
from robo_rl.deploy.robot.drivers.rtde.robot_file import UrFile
from robo_rl.deploy.robot.drivers.rtde.states import JOINTS, State

ORDER = (
    "shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint",
)  # fmt: skip
"""As in every list of joints of the controller, by the names of ur_description."""
TARGET = "joint_position_target"
FURTHEST_TURN = 6.2831853072
"""rad: joints of the e-Series turn by a turn to either side (data sheets)."""
FASTEST_TURN = 6.2831853072
"""rad/s: the fastest joint of the e-Series, a wrist of the UR3e (data sheet)."""
FASTEST = 125.0
"""Hz of commands: the robot's states come as often, and its program takes at most 500 a second."""
SAME = 0.05
"""Part by which the lags of joints may differ: servoj has one for all."""
NEAR = 0.01
"""m: a calibrated arm differs by some mm from its nominal kinematics."""
SLACK = 0.2
"""rad beyond what the driver sends, before the robot's own program takes a target for wrong."""


class Names:
    """A contract's names and limits, as far as the arm has them."""

    def __init__(self, contract: Contract, file: UrFile) -> None:
        """DriverError where the contract is another robot's, or beyond the hardware."""
        commands = [(c.name, c.unit) for c in contract.commands]
        if contract.robot.kind != "arm" or commands != [(TARGET, "rad")]:
            told = [f"{name} in {unit}" for name, unit in commands]
            raise DriverError(f"the policy commands {told}; an arm of Universal Robots takes {TARGET} in rad alone")
        command = contract.commands[0]
        if tuple(command.elements) != ORDER:
            raise DriverError(f"the policy's joints are {list(command.elements)}; expected {list(ORDER)}")
        if min(command.lower) < -FURTHEST_TURN - 1e-6 or max(command.upper) > FURTHEST_TURN + 1e-6:
            raise DriverError(
                f"'{TARGET}' is {list(command.lower)} to {list(command.upper)} rad; a joint turns by "
                f"{FURTHEST_TURN:.4f} rad to either side"
            )
        rate = 1 / contract.control_period
        if rate > FASTEST + 1e-6:
            raise DriverError(f"the policy runs at {rate:g} Hz; this driver commands at up to {FASTEST:g} Hz")
        if contract.control_period > 0.03:
            raise DriverError(f"the policy runs at {rate:g} Hz; the arm would stop between two commands below 33 Hz")
        speeds = np.array([a.speed for a in contract.robot.actuators], float)
        if not np.all((speeds > 0.0) & (speeds <= FASTEST_TURN + 1e-6)):
            raise DriverError(
                f"the robot's speeds are {speeds.tolist()} rad/s; expected one above 0 and up to {FASTEST_TURN:.4f} "
                "for each joint"
            )
        lag = lag_of(command.law)
        self.reach = file.speed * speeds * lag
        """(6,) rad from a joint to its target, at which it moves at its greatest speed."""
        self.speeds = speeds
        self.following = Following(
            tuple(command.lower), tuple(command.upper), tuple(self.reach + SLACK), lag, file.gain, file.deceleration
        )
        self.chain = Chain.from_facts(contract.robot.facts)
        self.measured = tuple(
            signal.name
            for signal in contract.signals
            if signal.source == "sensor"
            and signal.name in ("joint_position", "joint_velocity")
            and tuple(signal.elements) == ORDER
        )

    def limited(self, wanted: np.ndarray, here: np.ndarray) -> np.ndarray:
        """(6,) rad: a target at which no joint is asked for more than its speed."""
        near = np.clip(wanted, here - self.reach, here + self.reach)
        return np.clip(near, self.following.lowest, self.following.highest)

    def same_robot(self, state: State) -> None:
        """DriverError unless the robot has its tool where the policy's kinematics have theirs."""
        pose = self.chain.pose(state.q.tolist())
        off = float(np.linalg.norm(state.tool - np.array(pose.position)))
        if off > NEAR:
            raise DriverError(
                f"the robot says that its tool is at {rounded(state.tool)} m, {off:.3f} m from where the policy's "
                f"robot has it with these joint angles, {rounded(pose.position)} m: it is another robot, or its active "
                "TCP is not the policy's tool (set it in the installation)"
            )


def lag_of(law: object) -> float:
    """s by which the law follows its target: servoj's lookahead_time. DriverError where servoj can't."""
    if not isinstance(law, PositionLaw):
        raise DriverError(f"'{TARGET}' has no law of position; expected one, whose lag servoj takes over")
    lags = np.array(law.damping) / np.array(law.stiffness)
    lag = float(lags.mean())
    if np.abs(lags / lag - 1).max() > SAME:
        raise DriverError(f"the joints follow by {rounded(lags)} s; servoj has one lookahead_time for all")
    if not LOOKAHEAD[0] <= lag <= LOOKAHEAD[1]:
        raise DriverError(
            f"the joints follow by {lag:.3f} s; servoj's lookahead_time is {LOOKAHEAD[0]} to {LOOKAHEAD[1]} s"
        )
    return lag


def rounded(values: object) -> list[float]:
    """To three decimals, for sentences."""
    return [round(float(value), 3) + 0.0 for value in np.asarray(values).tolist()]


assert len(ORDER) == JOINTS
