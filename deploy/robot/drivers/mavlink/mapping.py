"""What of a contract a vehicle with PX4 does, and what it is refused for."""

from __future__ import annotations

from robo_rl.contract import Contract
from robo_rl.contract.gravity import GRAVITY
from robo_rl.deploy.robot.drivers.driver import DriverError

COMMANDS = (("body_rate", ("x", "y", "z"), "rad/s"), ("thrust", ("z",), "m/s^2"))
FASTEST = 100.0
"""Hz of set-points and of the estimate: what a link of 921,600 baud and EKF2 give."""
SHORT_OF = 1.3
"""The greatest thrust of a contract, in parts of what the vehicle has: quadrotor-rates trains with thrusts of 0.8 times
the card's, and benchmarks/px4_wire.py flew with up to 1.25."""


def within_hardware(contract: Contract) -> None:
    """DriverError where a contract is not one of rates and thrust, or asks for what PX4 does not give."""
    commands = tuple((c.name, c.elements, c.unit) for c in contract.commands)
    if commands != COMMANDS:
        names = [f"{c.name} in {c.unit}" for c in contract.commands]
        raise DriverError(
            f"the policy commands {names}; PX4 takes body_rate in rad/s and thrust in m/s^2 (quadrotor-rates)"
        )
    if not (rate := 1 / contract.control_period) <= FASTEST + 1e-6:
        raise DriverError(f"the policy runs at {rate:g} Hz; PX4 takes set-points at up to {FASTEST:g} Hz")


def enough_thrust(contract: Contract, hover: float) -> None:
    """DriverError where a vehicle that hovers at this part of full thrust is too weak for a contract."""
    wanted = next(c.upper[0] for c in contract.commands if c.name == "thrust")
    if wanted * hover / GRAVITY > SHORT_OF:
        raise DriverError(
            f"the policy commands up to {wanted:.1f} m/s^2; a vehicle that hovers at {hover:.2f} of its thrust gives "
            f"{GRAVITY / hover:.1f} m/s^2: train with its card, or give hover_thrust in the robot file"
        )
