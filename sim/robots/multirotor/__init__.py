"""Cards of multirotors: figures of body, rotors and motors."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from robo_rl.contract import ContractError, Robot
from robo_rl.contract.gravity import GRAVITY
from robo_rl.controllers.multirotor.facts import KIND, Multirotor, Rotor
from robo_rl.sim.robots.figures import CardError, figure, is_number, require

if TYPE_CHECKING:
    import numpy as np

INDEPENDENT = 0.02
"""Of the rotors' effects on thrust, roll, pitch and yaw, in parts of the greatest: the least singular value."""
SPARE = 0.05
"""Of the mean thrust in a hover."""

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class CardRotor:
    """Name, place (m, body frame) and direction of one rotor, seen from above."""

    name: str
    position: Triple
    spin: Literal["ccw", "cw"]


@dataclass(frozen=True)
class MultirotorCard:
    """Figures of a multirotor in SI units. Rotors are alike; their order is the order of commands."""

    kind: ClassVar[str] = KIND

    name: str
    title: str
    mass: float
    inertia: Triple
    thrust: Triple
    torque_ratio: float
    rotor_speed_max: float
    rise_time: float
    fall_time: float
    rotor_inertia: float
    rotor_drag: tuple[float, float]
    body_drag: float
    gyroscope_range: float
    body_size: Triple
    propeller_radius: float
    rotors: tuple[CardRotor, ...]
    sources: dict[str, str]
    rate_gain: Triple | None = None
    """1/s: how fast its autopilot's loop lets body rates follow, about x, y and z; None: not known."""

    @property
    def rotor_names(self) -> tuple[str, ...]:
        return tuple(rotor.name for rotor in self.rotors)

    @property
    def hover_speed(self) -> float:
        """Rotor speed (rad/s) at which the rotors carry the weight."""
        return self.speed_for_thrust(self.mass * GRAVITY / len(self.rotors))

    @property
    def thrust_to_weight(self) -> float:
        c0, c1, c2 = self.thrust
        top = self.rotor_speed_max
        return len(self.rotors) * (c0 + c1 * top + c2 * top * top) / (self.mass * GRAVITY)

    @property
    def arm(self) -> float:
        """Greatest horizontal distance of a rotor from the centre of mass, m."""
        return max(math.hypot(*rotor.position[:2]) for rotor in self.rotors)

    def speed_for_thrust(self, thrust: float) -> float:
        """The rotor speed (rad/s) that gives ``thrust`` (N) per rotor."""
        c0, c1, c2 = self.thrust
        if c2 == 0:
            return (thrust - c0) / c1
        return (-c1 + math.sqrt(c1 * c1 + 4 * c2 * (thrust - c0))) / (2 * c2)

    def facts(self) -> Robot:
        """What a contract tells about this robot."""
        return self.airframe.robot(self.name)

    @property
    def airframe(self) -> Multirotor:
        """What its classical controller knows of it."""
        rotors = tuple(
            Rotor(
                name=rotor.name,
                position=rotor.position,
                spin=rotor.spin,
                thrust=self.thrust,
                torque_ratio=self.torque_ratio,
                rise=self.rise_time,
                fall=self.fall_time,
                speed_min=0.0,
                speed_max=self.rotor_speed_max,
            )
            for rotor in self.rotors
        )
        return Multirotor(mass=self.mass, inertia=self.inertia, rotors=rotors)

    def drawing(self) -> tuple[Any, Any]:
        """How it looks at rest: a MuJoCo model, and poses (bodies, 7) as ``Plant.poses`` gives them."""
        from robo_rl.sim.plants.multirotor.drawing import at_rest

        return at_rest(self)

    def urdf(self) -> str:
        """base_link, which has all mass and inertia, and a massless link per rotor."""
        from robo_rl.sim.robots.multirotor.urdf import multirotor_urdf

        return multirotor_urdf(self)

    def figures(self) -> dict[str, Any]:
        """What is worth knowing at a glance."""
        return {
            "mass_kg": self.mass,
            "thrust_to_weight": self.thrust_to_weight,
            "hover_speed_rad_s": self.hover_speed,
        }

    def files(self) -> tuple[Path, ...]:
        """Files beside the card that belong to it."""
        return ()

    @classmethod
    def read(cls, card: dict[str, Any], name: str, path: Path) -> MultirotorCard:
        """The card in the parsed TOML ``card`` of the file ``path``."""
        return _read(card, name, str(path))


UNITS = {
    "mass": "kg",
    "inertia": "kg*m^2",
    "thrust": "N, N*s, N*s^2",
    "torque_ratio": "m",
    "rotor_speed_max": "rad/s",
    "rise_time": "s",
    "fall_time": "s",
    "rotor_inertia": "kg*m^2",
    "rotor_drag": "N*s^2/(rad*m)",
    "body_drag": "N*s^2/m^2",
    "gyroscope_range": "rad/s",
    "body_size": "m",
    "propeller_radius": "m",
    "rate_gain": "1/s",
}
"""The figures of a card and the one unit that each may have."""

OPTIONAL = ("rate_gain",)

ROUNDED = 0.25
"""By which part of the others' sum a published moment of inertia may be above it."""
ARMS = 0.2, 10.0
"""Length of the longest arm over the radius of gyration, at least and at most: 1 to 2 of multirotors as they are."""
MAY_BE_ZERO = ("thrust", "rotor_inertia", "rotor_drag", "body_drag")


def _read(card: dict[str, Any], name: str, where: str) -> MultirotorCard:
    expected = {"kind", "title", "rotors", *UNITS}
    for key in card:
        require(key in expected, where, key, "an unknown field", f"one of {sorted(expected)}")
    given = [key for key in UNITS if key in card or key not in OPTIONAL]
    figures = {key: _figure(card, key, where) for key in given}
    title = card.get("title")
    require(isinstance(title, str), where, "title", title, "a text")
    rotors = card.get("rotors")
    require(isinstance(rotors, list) and len(rotors) >= 3, where, "rotors", rotors, "at least three [[rotors]]")
    made = tuple(_rotor(rotor, f"rotors[{i}]", where) for i, rotor in enumerate(rotors))  # type: ignore[arg-type]
    sources = {key: str(card[key]["source"]) for key in given}
    result = MultirotorCard(name=name, title=str(title), rotors=made, sources=sources, **figures)
    try:
        result.facts()
    except ContractError as error:
        raise CardError(f"{where}: {error}") from None
    c0, c1, c2 = result.thrust
    rises = c0 < result.mass * GRAVITY / len(made) and c1 + 2 * c2 * result.rotor_speed_max > 0
    curve = "a curve that rises, from less than the hover thrust, up to the top speed"
    require(rises, where, "thrust.value", result.thrust, curve)
    weight = f"{result.thrust_to_weight:.2f}"
    require(result.thrust_to_weight > 1.1, where, "thrust", weight, "a thrust-to-weight ratio above 1.1: it can't fly")
    _require_size(result, where)
    _require_control(result, where)
    return result


def _require_size(card: MultirotorCard, where: str) -> None:
    """CardError where arms, mass and inertia are not in m, kg and kg m^2, or are those of no body."""
    least, middle, most = sorted(card.inertia)
    expected = f"none above the sum of the others: {least + middle:g} here"
    require(most <= (1.0 + ROUNDED) * (least + middle), where, "inertia.value", card.inertia, expected)
    radius = math.sqrt(most / card.mass)
    require(
        ARMS[0] <= card.arm / radius <= ARMS[1], where, "rotors",
        f"{card.arm:.3g} m from the centre, and the radius of gyration, by inertia and mass, {radius:.3g} m",
        f"arms of {ARMS[0]:g} to {ARMS[1]:g} times that: is one of them in another unit?",
    )  # fmt: skip


def _require_control(card: MultirotorCard, where: str) -> None:
    """CardError unless the rotors control thrust and all three torques, and hold a hover that leaves them room."""
    import numpy as np

    places, count = np.array([rotor.position for rotor in card.rotors]), len(card.rotors)
    ways = np.array([1.0 if rotor.spin == "cw" else -1.0 for rotor in card.rotors])
    scale = max(card.arm, 1e-9)
    effects = np.array([np.ones(count), places[:, 1] / scale, -places[:, 0] / scale, ways * (card.torque_ratio > 0)])
    rank = int(np.linalg.matrix_rank(effects, tol=INDEPENDENT))
    expected = (
        "a rank of 4, so that thrust, roll, pitch and yaw can be controlled: four rotors or more, some of each "
        "direction, not in a line (a tricopter's servo is not simulated)"
    )
    require(rank == 4, where, "rotors", f"a matrix of thrusts' effects with rank {rank}", expected)
    c0, c1, c2 = card.thrust
    top, each = c0 + c1 * card.rotor_speed_max + c2 * card.rotor_speed_max**2, card.mass * GRAVITY / count
    highest, lowest = top / each, max(c0, 0.0) / each
    if np.allclose(effects.sum(1), [count, 0.0, 0.0, 0.0], rtol=0, atol=1e-9):  # an even hover, which leaves most room
        spare = min(highest - 1.0, 1.0 - lowest)
    else:
        spare = _most_room(effects, lowest, highest)
    hover = f"a hover with {100 * spare:.1f} % of thrust to spare" if spare >= 0 else "no hover within their limits"
    expected = (
        f"a hover that leaves each rotor {100 * SPARE:g} % up and down: positions (m) are from the centre of mass, "
        f"which is well between the rotors; their middle is {places.mean(0).round(3).tolist()}"
    )
    require(spare >= SPARE, where, "rotors", hover, expected)


def _most_room(effects: np.ndarray, lowest: float, highest: float) -> float:
    """The room above and below all thrusts of a hover, as large as it can be; -1 if there is no hover.

    Thrusts are parts of an even hover; their ``effects`` (4, rotors) are thrust and torques.
    """
    import numpy as np
    from scipy.optimize import linprog  # takes a while to load

    count = effects.shape[1]
    balance = np.column_stack([effects, np.zeros(4)])
    room = np.vstack([np.column_stack([side * np.eye(count), np.ones(count)]) for side in (1.0, -1.0)])
    limits = np.concatenate([np.full(count, highest), np.full(count, -lowest)])
    goal = np.append(np.zeros(count), -1.0)
    found = linprog(goal, room, limits, balance, [count, 0.0, 0.0, 0.0], bounds=[(None, None)] * (count + 1))
    return float(found.x[-1]) if found.status == 0 else -1.0


def _figure(card: dict[str, Any], key: str, where: str) -> Any:
    annotation = {field.name: field.type for field in fields(MultirotorCard)}[key]
    count = {"float": 1, "Triple": 3, "Triple | None": 3, "tuple[float, float]": 2}[str(annotation)]
    numbers = figure(card.get(key), key, UNITS[key], count, where)
    floor = min(numbers) >= 0 if key in MAY_BE_ZERO else min(numbers) > 0
    require(floor or key == "thrust", where, f"{key}.value", card[key]["value"], "positive numbers")
    return tuple(numbers) if count > 1 else numbers[0]


def _rotor(rotor: Any, label: str, where: str) -> CardRotor:
    keys = {"name", "position", "spin"}
    require(isinstance(rotor, dict) and set(rotor) == keys, where, label, rotor, f"the fields {sorted(keys)}")
    place = rotor["position"]
    good = isinstance(place, list) and len(place) == 3 and all(is_number(x) for x in place)
    require(good, where, f"{label}.position", place, "three numbers, in m")
    require(rotor["spin"] in ("ccw", "cw"), where, f"{label}.spin", rotor["spin"], "'ccw' or 'cw', from above")
    return CardRotor(str(rotor["name"]), tuple(map(float, place)), rotor["spin"])  # type: ignore[arg-type]


CARD = MultirotorCard


def load_multirotor(name: str) -> MultirotorCard:
    """As ``robo_rl.sim.robots.load_robot``, for a multirotor."""
    from robo_rl.sim.robots import load_robot

    return load_robot(name, CARD)
