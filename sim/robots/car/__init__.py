"""Cards of cars with steered front wheels: figures of body, tyres, motor, steering and lidar."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from robo_rl.contract import Actuator, Robot
from robo_rl.sim.robots.figures import flat_card, require

UNITS = {
    "mass": "kg",
    "inertia": "kg*m^2",
    "front_axle": "m",
    "rear_axle": "m",
    "height": "m",
    "friction": "1",
    "front_stiffness": "1/rad",
    "rear_stiffness": "1/rad",
    "tyre_shape": "1",
    "drag": "N*s^2/m^2",
    "rolling": "1",
    "steering_limit": "rad",
    "steering_rate": "rad/s",
    "steering_time": "s",
    "acceleration": "m/s^2",
    "power_speed": "m/s",
    "speed_max": "m/s",
    "speed_gain": "1/s",
    "motor_time": "s",
    "front_drive": "1",
    "body": "m",
    "wheel_radius": "m",
    "gyroscope_range": "rad/s",
    "lidar_position": "m",
    "lidar_angle": "rad",
    "lidar_range": "m",
    "lidar_noise": "m",
}
"""The figures of a card and the one unit that each may have."""

COUNTS = {"body": 3, "lidar_position": 2, "lidar_range": 2}
"""Of those that are several numbers."""
TURN = 6.2832
"""rad, a full turn as cards have it: rounded."""
NOTHING = "the greatest range, range_max; noise may be on top. Nothing nearer than range_min"
"""What a beam of a lidar tells that meets nothing."""
MAY_BE_ZERO = ("drag", "rolling", "front_drive", "lidar_noise", "height")


@dataclass(frozen=True)
class CarCard:
    """Figures of a car, in SI units; x forward, y left, from the centre of mass."""

    kind: ClassVar[str] = "car"

    name: str
    title: str
    mass: float
    inertia: float
    """About the vertical axis."""
    front_axle: float
    """Distance of the front axle from the centre of mass."""
    rear_axle: float
    height: float
    """Of the centre of mass above the ground."""
    friction: float
    """Greatest tyre force over load."""
    front_stiffness: float
    """B of the magic formula; B times the tyre's shape is the cornering stiffness over friction and load."""
    rear_stiffness: float
    tyre_shape: float
    """C of the magic formula."""
    drag: float
    """Force over squared speed."""
    rolling: float
    """Rolling resistance over weight."""
    steering_limit: float
    steering_rate: float
    steering_time: float
    """Time constant of the steering servo."""
    acceleration: float
    """Greatest of the motor, in either direction."""
    power_speed: float
    """Above it acceleration is limited by the motor's power."""
    speed_max: float
    speed_gain: float
    """Acceleration demanded per error in speed."""
    motor_time: float
    """Time constant of the motor."""
    front_drive: float
    """Part of the motor's and the brakes' force that acts on the front axle."""
    body: tuple[float, float, float]
    """Length, width and height; its middle lies above the middle between the axles."""
    wheel_radius: float
    gyroscope_range: float
    lidar_position: tuple[float, float]
    """Forward of the centre of mass, and above the ground."""
    lidar_angle: float
    """From the first beam to the last, symmetric about straight ahead."""
    lidar_range: tuple[float, float]
    """Least and greatest distance that it measures."""
    lidar_noise: float
    """Standard deviation."""
    sources: dict[str, str]

    @property
    def wheelbase(self) -> float:
        """m."""
        return self.front_axle + self.rear_axle

    def facts(self) -> Robot:
        """What a contract tells about this robot."""
        limit, top = self.steering_limit, self.speed_max
        actuators = (
            Actuator("steering", "position", "rad", -limit, limit, safe=0.0, rate=self.steering_rate),
            Actuator("drive", "velocity", "m/s", -top, top, safe=0.0),
        )
        told = ("mass", "front_axle", "rear_axle", "friction", "acceleration", "steering_limit", "steering_rate")
        own: dict[str, Any] = {name: getattr(self, name) for name in told}
        return Robot(self.name, self.kind, actuators, {**own, "body": list(self.body)})

    def task_facts(self, lidar: bool = True) -> dict[str, Any]:
        """What contracts tell of the car that its robot's facts don't, for any task."""
        forward, height = self.lidar_position
        names = ("height", "inertia", "front_stiffness", "rear_stiffness", "tyre_shape", "drag", "rolling",
                 "power_speed", "speed_gain", "motor_time", "steering_time", "front_drive")  # fmt: skip
        scan = {
            "mounting": {"scan": {"position": [forward, 0.0, height], "yaw": 0.0, "from": "the centre of mass"}},
            "nothing_seen": {"scan": NOTHING},
        }
        return {
            **(scan if lidar else {}),
            "references": {
                "body": "x ahead, y left, from the centre of mass",
                "wheel_speed": "along x of the body",
                "steering_angle": "of the front wheels, to the left positive",
            },
            "car": {name: getattr(self, name) for name in names},
            "middle_of_body": [0.5 * (self.front_axle - self.rear_axle), 0.0],
        }

    def figures(self) -> dict[str, Any]:
        """What is worth knowing at a glance."""
        return {"mass_kg": self.mass, "wheelbase_m": self.wheelbase, "speed_max_m_s": self.speed_max}

    def files(self) -> tuple[Path, ...]:
        """Files beside the card that belong to it: none."""
        return ()

    def drawing(self) -> tuple[Any, Any]:
        """How it looks at rest: a MuJoCo model, and poses (bodies, 7) as ``Plant.poses`` gives them."""
        from robo_rl.sim.plants.car.drawing import at_rest

        return at_rest(self)

    def urdf(self) -> str:
        """base_link under the middle of the rear axle (REP-103), body, wheels and the lidar's frame."""
        from robo_rl.sim.robots.car.urdf import car_urdf

        return car_urdf(self)

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> CarCard:
        """The card in the parsed TOML ``card`` of the file ``path``."""
        where = str(path)
        made, sources = flat_card(card, UNITS, COUNTS, MAY_BE_ZERO, ("lidar_position",), where)
        _check(made, where)
        return cls(name=name, sources=sources, **made)


def _check(made: dict[str, Any], where: str) -> None:
    """What figures must be together."""
    wheelbase = made["front_axle"] + made["rear_axle"]
    low, high = made["lidar_range"]
    checks = (
        ("steering_limit", made["steering_limit"] < 1.5, "an angle below 1.5"),
        ("front_drive", made["front_drive"] <= 1, "a part, 0 to 1"),
        ("tyre_shape", 1 <= made["tyre_shape"] < 2, "1 to below 2: a force that saturates and keeps its sign"),
        ("body", made["body"][0] > wheelbase, f"a length above the wheelbase, {wheelbase:g}"),
        ("height", made["height"] < min(made["front_axle"], made["rear_axle"]) * 2, "less: the car would tip over"),
        ("lidar_range", low < high, "least < greatest"),
        ("lidar_angle", made["lidar_angle"] <= TURN, "a turn, 6.2832, or less"),
        ("lidar_position", made["lidar_position"][1] > 0, "a height above the ground"),
    )
    for key, good, expected in checks:
        require(good, where, f"{key}.value", made[key], expected)
    assert {f.name for f in fields(CarCard)} == {"name", "title", "sources", *UNITS}


CARD = CarCard
