"""What differs between two cars with a VESC: a file of the user's, its numbers those of the car's vesc.yaml.

speed_to_erpm_gain = 4614.0              # electrical turns per minute, for a m/s
speed_to_erpm_offset = 0.0
speed_max = 23250.0                      # electrical turns per minute, the most
steering_angle_to_servo_gain = -1.2135   # of the servo's range, for a rad
steering_angle_to_servo_offset = 0.5304
servo_min = 0.15
servo_max = 0.85
brake_current = 40.0                     # A, of the motor, with which the car stops
imu_sign = 1                             # -1: the VESC is mounted upside down
voltage_min = 9.9                        # V, below which the battery is empty
lidar = "192.168.0.10:10940"             # "": scans come in another way
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from robo_rl.deploy.robot.drivers.figures_file import parse_figures, read_figures, require_figures, write_figures


@dataclass(frozen=True)
class CarFile:
    """See the module's text. By default as f1tenth_system's vesc.yaml has it."""

    speed_to_erpm_gain: float = 4614.0
    speed_to_erpm_offset: float = 0.0
    speed_max: float = 23250.0
    steering_angle_to_servo_gain: float = -1.2135
    steering_angle_to_servo_offset: float = 0.5304
    servo_min: float = 0.15
    servo_max: float = 0.85
    brake_current: float = 40.0
    """A: two thirds of a VESC 6's greatest; more, and a car that corners spins."""
    imu_sign: int = 1
    voltage_min: float = 9.9
    """V: 3.3 V for each of three lithium cells."""
    lidar: str = "192.168.0.10:10940"

    def __post_init__(self) -> None:
        require_figures(self, BOUNDS)
        if abs(self.steering_angle_to_servo_gain) < 0.1:
            raise ValueError("steering_angle_to_servo_gain is 0; expected how far the servo goes for a rad")
        if self.servo_min >= self.servo_max:
            raise ValueError(f"servo_min is {self.servo_min:g}; expected less than servo_max, {self.servo_max:g}")
        if type(self.imu_sign) is not int or self.imu_sign not in (1, -1):
            raise ValueError(f"imu_sign is {str(self.imu_sign)[:40]}; expected 1 or -1")
        if not isinstance(self.lidar, str) or len(self.lidar) > 100:
            raise ValueError(f'lidar is {str(self.lidar)[:40]}; expected an address, or ""')

    @property
    def steering(self) -> tuple[float, float]:
        """rad to which the servo reaches: to the right, to the left."""
        gain, offset = self.steering_angle_to_servo_gain, self.steering_angle_to_servo_offset
        ends = sorted((place - offset) / gain for place in (self.servo_min, self.servo_max))
        return ends[0], ends[1]

    @property
    def fastest(self) -> float:
        """m/s"""
        return (self.speed_max - self.speed_to_erpm_offset) / self.speed_to_erpm_gain

    def servo(self, angle: float) -> float:
        """The servo's place for an angle (rad), within its range."""
        place = self.steering_angle_to_servo_gain * angle + self.steering_angle_to_servo_offset
        return min(max(place, self.servo_min), self.servo_max)

    def erpm(self, speed: float) -> float:
        """For a speed (m/s), no more than the greatest."""
        wanted = self.speed_to_erpm_gain * speed + self.speed_to_erpm_offset
        return min(max(wanted, -self.speed_max), self.speed_max)

    def speed(self, erpm: float) -> float:
        """m/s"""
        return (erpm - self.speed_to_erpm_offset) / self.speed_to_erpm_gain


BOUNDS = (
    ("speed_to_erpm_gain", 100.0, 1e5), ("speed_to_erpm_offset", -5e3, 5e3), ("speed_max", 1e3, 1.5e5),
    ("steering_angle_to_servo_gain", -10.0, 10.0), ("steering_angle_to_servo_offset", 0.0, 1.0),
    ("servo_min", 0.0, 1.0), ("servo_max", 0.0, 1.0), ("brake_current", 1.0, 100.0), ("voltage_min", 5.0, 60.0),
)  # fmt: skip


def read_robot_file(path: str) -> CarFile:
    """A robot file; "": the car as it comes. DriverError for anything else than one."""
    return read_figures(path, CarFile)


def parse(data: bytes) -> CarFile:
    """A robot file's content. ValueError for anything else."""
    return parse_figures(data, CarFile)


def write_robot_file(path: Path, car: CarFile) -> None:
    """For a car that is emulated."""
    write_figures(path, car)
