"""From a person's wish to a robot's set-points, by its contract alone. Nothing of ROS here.

A wish is a velocity: forward, left, up (m/s) and turn (rad/s). Where the contract asks for velocities it becomes
them; where it asks for a place, the place moves with it, at the end of a leash that the robot holds. No wish means
velocity zero, and a place that stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from robo_rl.contract import Contract, Signal
from robo_rl.deploy.robot.actor import INTERVENTION

AXES = ("forward", "left", "up", "turn")
DEAD_MAN = 0.5
"""s without a key, a joystick's message or a Twist, after which nothing is wished."""
LEASH = 0.5
"""m: how far a place may run ahead of the robot: about as far as hovering is trained to come back from."""
_BY_NAME = {"vx": 0, "vy": 1, "vz": 2, "wz": 3}
_ALONG = {"x": 0, "y": 1, "z": 2}


class TeleoperationError(ValueError):
    """This robot can't be steered like this. The message names the signal."""


class Teleoperation:
    """The set-points of one robot."""

    def __init__(self, contract: Contract, names: tuple[str, ...], speed: float, turn: float) -> None:
        """``names``: the operator signals to give; ``speed`` (m/s) and ``turn`` (rad/s): the most that is wished.

        Where training met less, that is the most.
        """
        self.signals = [contract.signal(name) for name in names]
        if not self.signals:
            raise TeleoperationError("the policy takes no set-points from an operator: teleop is not needed")
        self.limits = np.array([speed, speed, speed, turn])
        self.needs = {name for name in ("position", "orientation") if any(_needs(s) == name for s in self.signals)}
        for name in self.needs:
            if name not in [s.name for s in contract.signals if s.source == "sensor"]:
                raise TeleoperationError(f"the set-point begins at the measured '{name}', which is not in the contract")
        for signal in self.signals:
            for axis, element in _axes(signal).items():
                met = _met(signal, element)
                if 0 < met < math.inf:
                    self.limits[axis] = min(self.limits[axis], met)
        self.place: np.ndarray | None = None
        self.yaw: float | None = None

    def setpoints(
        self, wish: np.ndarray | None, passed: float, measured: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Values (k,) by signal, ``passed`` s after the last; {} while the robot's own place is not known.

        ``wish``: (4,) as ``AXES``, limited here; None: nothing. ``measured``: "position" and "orientation", where
        ``needs`` has them.
        """
        if not self.needs <= set(measured):
            return {}
        wish = np.zeros(4) if wish is None else wish
        wish = np.clip(np.where(np.isfinite(wish), wish, 0.0), -self.limits, self.limits)
        self._go(wish, passed, measured)
        return {signal.name: self._value(signal, wish) for signal in self.signals}

    def _go(self, wish: np.ndarray, passed: float, measured: Mapping[str, np.ndarray]) -> None:
        """Move place and yaw; they begin where the robot is."""
        if "position" in self.needs:
            here = np.asarray(measured["position"], float)
            place = (here if self.place is None else self.place) + wish[:3] * passed
            ahead = place - here
            moved = bool(wish[:3].any())
            self.place = here + ahead * min(1.0, LEASH / max(1e-9, float(np.linalg.norm(ahead)))) if moved else place
        if "orientation" in self.needs:
            x, y, z, w = measured["orientation"]
            heading = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
            self.yaw = (heading if self.yaw is None else self.yaw) + float(wish[3]) * passed

    def _value(self, signal: Signal, wish: np.ndarray) -> np.ndarray:
        if _needs(signal) == "position":
            assert self.place is not None
            value = self.place[[_ALONG[element] for element in signal.elements]]
        elif _needs(signal) == "orientation":
            assert self.yaw is not None
            value = np.array([0.0, 0.0, math.sin(self.yaw / 2), math.cos(self.yaw / 2)])
        else:
            value = np.zeros(signal.size)
            for axis, element in _axes(signal).items():
                met = _met(signal, element)
                value[element] = np.clip(wish[axis], -met, met)
        return np.clip(value, *signal.bounds)


class Takeover:
    """Taking over from a policy (``robo_rl.online.interventions``): while a hand is there, the action is what it
    wishes.

    An action's numbers follow the axes of a wish by their names, x, y, z and gripper, or else in order.
    """

    needs: frozenset[str] = frozenset()
    NAMES = ("x", "y", "z", "gripper")

    def __init__(self, contract: Contract, most: float) -> None:
        """``most``: the action, of 1, that a full deflection is."""
        self.signal = contract.signal(INTERVENTION)
        self.limits = np.full(4, min(1.0, most))
        actions = self.signal.elements[1:]
        named = set(actions) <= set(self.NAMES)
        self._axes = [self.NAMES.index(name) if named else i for i, name in enumerate(actions)]

    def setpoints(
        self, wish: np.ndarray | None, passed: float, measured: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The operator's signal (1 + k,). ``wish``: (4,) as ``AXES``; None: the policy has the robot."""
        value = np.zeros(self.signal.size)
        if wish is not None:
            wish = np.clip(np.where(np.isfinite(wish), wish, 0.0), -self.limits, self.limits)
            value[0] = 1.0
            value[1:] = [wish[axis] if axis < len(AXES) else 0.0 for axis in self._axes]
        return {INTERVENTION: value}


def _needs(signal: Signal) -> str:
    """What a set-point begins at; "" for a velocity."""
    if signal.shape is not None:
        return ""
    if signal.kind == "quaternion":
        return "orientation"
    return "position" if signal.unit == "m" and set(signal.elements) <= set(_ALONG) else ""


def _axes(signal: Signal) -> dict[int, int]:
    """Which axis of a wish goes to which element of a velocity set-point; the others stay zero."""
    if signal.shape is not None:
        shape = " x ".join(map(str, signal.shape))
        raise TeleoperationError(
            f"'{signal.name}' ({shape} numbers) is neither a velocity nor a position; publish it yourself"
        )
    if _needs(signal):
        return {}
    found = {_BY_NAME[e]: i for i, e in enumerate(signal.elements) if e in _BY_NAME}
    if signal.unit == "m/s":
        found |= {_ALONG[e]: i for i, e in enumerate(signal.elements) if e in _ALONG}
    if signal.unit == "rad/s" and "z" in signal.elements:
        found[3] = signal.elements.index("z")
    if not found:
        raise TeleoperationError(
            f"'{signal.name}' ({', '.join(signal.elements)}, {signal.unit}) is neither a velocity nor a position; set "
            "it by the parameter 'setpoints' of the policy's node"
        )
    return found


def _met(signal: Signal, element: int) -> float:
    """The greatest size of an element seen in training, or allowed by the contract where that is not known."""
    low = signal.lower if signal.seen_low is None else signal.seen_low
    high = signal.upper if signal.seen_high is None else signal.seen_high
    return float(min(abs(signal.spread(low)[element]), abs(signal.spread(high)[element])))
