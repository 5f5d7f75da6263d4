"""A story of the gate: a made-up robot, healthy inputs, and what is changed in them step by step."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np

from robo_rl.contract import (
    Actuator,
    Collision,
    Command,
    Contract,
    Envelope,
    Network,
    PositionLaw,
    Provenance,
    Robot,
    Safety,
    Scan,
    Signal,
)
from robo_rl.controllers.gate.codes import REACTIONS, Event, Reason, Request, Source, State
from robo_rl.controllers.gate.config import NEVER, GateConfig
from robo_rl.controllers.gate.moves import arrived
from robo_rl.controllers.gate.safety import Inputs, Output, initial, step

PERIOD, TIMEOUT, OPERATOR_TIMEOUT, SET_POINT_TIMEOUT = 10_000, 25_000, 50_000, 40_000  # µs
ROTORS = ("front", "left", "back", "right")
XYZ = ("x", "y", "z")
UNTRAINED = {"network": Network((), "tanh", False), "provenance": Provenance("none", 0, 0, "0" * 64)}


def inspector(on_fault: str = "stop", stop: str = "ramp") -> Contract:
    """A made-up multirotor whose camera gimbal has a start pose and a rate limit."""
    rotors = tuple(Actuator(name, "velocity", "rad/s", 0, 1000, 0) for name in ROTORS)
    return Contract(
        task="inspection",
        control_period=PERIOD / 1e6,
        signals=(
            Signal("orientation", tuple("xyzw"), "1", "body to world", (-1.01,) * 4, (1.01,) * 4, kind="quaternion"),
            Signal("gimbal_angle", ("pitch", "yaw"), "rad", "body", (-2, -3), (2, 3), noise=(0.001,) * 2),
            Signal("height_setpoint", ("z",), "m", "world", (0,), (10,), source="operator"),
        ),
        commands=(
            Command("rotor_speed", ROTORS, "rad/s", "rotor", (0,) * 4, (1000,) * 4, (0,) * 4),
            Command(
                "gimbal_target", ("pitch", "yaw"), "rad", "body", (-1.5, -2.5), (1.5, 2.5), (0, 0),
                rate=(6.25, 3.125), start=(0.25, 0), stop=stop,  # type: ignore[arg-type]
            ),
        ),
        state=(),
        safety=Safety(TIMEOUT / 1e6, 1.0, on_fault, OPERATOR_TIMEOUT / 1e6),  # type: ignore[arg-type]
        robot=Robot("inspector", "multirotor", rotors),
        **UNTRAINED,
    )  # fmt: skip


def autonomous() -> Contract:
    """The same without an operator, and with the gimbal's angle as the first signal."""
    contract = inspector()
    safety = dataclasses.replace(contract.safety, operator_timeout=None)
    orientation, gimbal, height = contract.signals
    return dataclasses.replace(contract, safety=safety, signals=(gimbal, orientation, height))


def guided() -> Contract:
    """The same without an operator whose heartbeat counts, but with a set-point that has a timeout of its own."""
    contract = autonomous()
    (*sensors, height) = contract.signals
    return dataclasses.replace(
        contract, signals=(*sensors, dataclasses.replace(height, timeout=SET_POINT_TIMEOUT / 1e6))
    )


def arm(stop: str) -> Contract:
    """A made-up arm with a finger and a suction cup: two encoders in orders of their own, slow and absent signals,
    motors whose effort is known, an envelope."""
    stays = stop != "ramp"
    return Contract(
        task="picking",
        control_period=PERIOD / 1e6,
        signals=(
            Signal("finger_position", ("knuckle",), "rad", "joint", (-0.5,), (1.5,)),
            Signal("joint_position", ("elbow", "shoulder"), "rad", "joint", (-2.5, -3), (2.5, 3), noise=(0.001,) * 2),
            Signal("tool_position", XYZ, "m", "base", (-2,) * 3, (2,) * 3, noise=0.01, period=0.05, timeout=0.08),
            Signal("tool_force", XYZ, "N", "tool", (-200,) * 3, (200,) * 3),
            Signal("object_position", XYZ, "m", "base", (0.125, -1, -1), (2, 1, 1)),
            Signal("object_age", ("t",), "s", "base", (0,), (1,), source="runtime", age_of="object_position"),
        ),
        commands=(
            Command(
                "joint_target", ("shoulder", "elbow", "knuckle"), "rad", "joint", (-2.5, -2, 0), (2.5, 2, 1),
                "hold" if stays else (0, -1, 0), rate=(2.5, 12.5, 6.25),
                start=None if stop == "hold" else (0.5, -0.25, 0.5), stop=stop,  # type: ignore[arg-type]
                law=PositionLaw((50, 20, 4), (2, 1, 0.1)),
            ),
            Command("suction", ("valve",), "V", "valve", (0,), (24,), (0,)),
        ),
        state=(),
        safety=Safety(
            TIMEOUT / 1e6,
            envelope=(
                Envelope("tool_position", lower=(-0.75, -0.75, 0.0625), upper=0.875),
                Envelope("tool_force", norm=50),
                Envelope("object_position", lower=0.125 - 2, upper=1.5),
            ),
        ),
        robot=Robot(
            "picker", "arm",
            (
                Actuator("shoulder", "position", "rad", -2.5, 2.5, "hold", effort=30, speed=3),
                Actuator("elbow", "position", "rad", -2, 2, "hold", effort=8, speed=4),
                Actuator("knuckle", "position", "rad", 0, 1, "hold"),
                Actuator("valve", "voltage", "V", 0, 24, 0),
            ),
        ),
        **UNTRAINED,
    )  # fmt: skip


def racer() -> Contract:
    """A made-up car with nine beams of a lidar, which brakes before a wall."""
    return Contract(
        task="racing",
        control_period=PERIOD / 1e6,
        signals=(
            Signal("scan", (), "m", "laser", 0.0, 10.0, noise=0.01, shape=(9,), layout=Scan(-1.0, 0.25, 0.0625, 10.0)),
            Signal("wheel_speed", ("x",), "m/s", "body", (-8,), (8,)),
            Signal("yaw_rate", ("z",), "rad/s", "body", (-10,), (10,)),
        ),
        commands=(
            Command("steering_angle", ("steering",), "rad", "body", (-0.5,), (0.5,), (0,)),
            Command("speed", ("drive",), "m/s", "body", (0,), (8,), (0,)),
        ),
        state=(),
        safety=Safety(
            TIMEOUT / 1e6,
            collision=Collision("scan", "wheel_speed", time=0.5, half_width=0.25, front=0.125, yaw_rate="yaw_rate"),
        ),
        robot=Robot(
            "racer", "car",
            (
                Actuator("steering", "position", "rad", -0.5, 0.5, 0),
                Actuator("drive", "velocity", "m/s", 0, 8, 0),
            ),
        ),
        **UNTRAINED,
    )  # fmt: skip


CONTRACTS = {
    **{on_fault: inspector(on_fault) for on_fault in REACTIONS},
    "off": inspector(stop="off"),
    "autonomous": autonomous(),
    "guided": guided(),
    **{f"arm_{stop}": arm(stop) for stop in ("ramp", "hold", "damp")},
    "car": racer(),
}


def healthy(config: GateConfig, count: int) -> np.ndarray:
    """(N,) float32: a robot at its start pose, whose noisy sensors wobble with the step's number."""
    wobble = (count % 7 - 3) / 64
    values = {
        "orientation": [0, 0, 0, 1],
        "gimbal_angle": [0.25 + wobble, -wobble],
        "height_setpoint": [1.5],
        "finger_position": [0.5],
        "joint_position": [-0.25 - wobble, 0.5 + wobble],
        "tool_position": [0.5 + wobble / 16, 0.0, 0.25],
        "tool_force": [0.0, 0.0, -5.0],
        "object_position": [0.5, 0.25, 0.0],
        "object_age": [0.0],
        "scan": [1.0, 1.25, 1.5, 3.0, 8.0 + wobble, 3.0, 1.5, 1.25, 1.0],
        "wheel_speed": [4.0],
        "yaw_rate": [0.0],
    }
    return np.array([x for watch in config.signals for x in values[watch.name]], np.float32)


COMMAND = {"inspector": [400, 400, 400, 400, 0.25, 0], "picker": [0.5, -0.25, 0.5, 12], "racer": [0.0, 4.0]}
"""What the policies of the robots propose."""


class Story:
    """Steps told one by one. What is not said stays as it was; signals and stamps are healthy and new."""

    def __init__(self, name: str, contract: str = "stop", time: int = 1_000_000) -> None:
        self.name, self.contract = name, contract
        self.config = GateConfig.from_contract(CONTRACTS[contract])
        self.gate, self.time, self.steps = initial(self.config), time - PERIOD, []
        self.command = np.array(COMMAND[CONTRACTS[contract].robot_name], np.float32)
        self.fallback: np.ndarray | None = None

    def step(self, requests: Request = Request.NONE, dt: int = PERIOD, **changes: Any) -> Output:
        """One step. Changes: fields of Inputs, or ``age`` by signal, ``signal`` values by flat index."""
        self.time += dt
        signals = healthy(self.config, len(self.steps))
        for index, value in changes.pop("signal", {}).items():
            signals[index] = value
        stamps = [self.time] * len(self.config.signals)
        for index, age in changes.pop("age", {}).items():
            stamps[index] = NEVER if age is None else self.time - age
        fields: dict[str, Any] = {
            "command": self.command, "command_stamp": self.time, "fallback": self.fallback,
            "operator_stamp": self.time, "bundle_intact": True,
        }  # fmt: skip
        for name, value in changes.items():
            fields[name] = np.array(value, np.float32) if isinstance(value, list) else value
        given = Inputs(self.time, signals, stamps, requests=requests, **fields)
        self.gate, output = step(self.config, self.gate, given)
        self.steps.append((given, output))
        return output

    def ready(self) -> Story:
        """Armed, and at the start pose."""
        self.step()
        self.step(Request.ARM)
        while not arrived(self.config, self.gate):
            self.step()
        return self

    def active(self) -> Story:
        """The policy flies."""
        self.ready().step(Request.ACTIVATE)
        self.step()
        return self

    def ends(self, state: State, reason: Reason = Reason.NONE, source: Source | None = None, event: int = 0) -> Story:
        """The last step must have answered this; the same again is expected after one more healthy step in fault."""
        output = self.steps[-1][1]
        found = (output.state, output.problem.reason)
        assert found == (state, reason), f"{self.name}: {found}, expected {(state, reason)}"
        assert source is None or output.source == source, f"{self.name}: {output.source!r}, expected {source!r}"
        assert output.events & event == event, f"{self.name}: {output.events!r} lacks {Event(event)!r}"
        if state == State.FAULT:
            again = self.step()
            assert (again.state, again.problem) == (state, output.problem), f"{self.name}: the fault did not latch"
        return self

    def to_json(self) -> str:
        """One line per step."""
        head = {"format": "robo-rl gate vectors", "version": 1, "name": self.name}
        head["configuration"] = f"configurations/{self.contract}.json"
        lines = "".join(f'"{key}": {json.dumps(value)},\n' for key, value in head.items())
        steps = ",\n".join(json.dumps({"given": _given(g), "answer": _answer(o)}) for g, o in self.steps)
        return "{" + lines + '"steps": [\n' + steps + "\n]}\n"


def configuration(contract: Contract) -> str:
    """A contract, what the gate derives from it, and what to give a healthy robot's gate, as JSON."""
    derived = GateConfig.from_contract(contract)
    config = {field.name: _plain(getattr(derived, field.name)) for field in dataclasses.fields(derived)}
    told = {"contract": json.loads(contract.to_json()), "config": config}
    told |= {"healthy": _plain(healthy(derived, 3)), "command": COMMAND[contract.robot_name]}
    return json.dumps(told, indent=1) + "\n"


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _given(given: Inputs) -> dict[str, Any]:
    return {**{name: _plain(value) for name, value in vars(given).items()}, "requests": int(given.requests)}


def _answer(output: Output) -> dict[str, Any]:
    problem = {"reason": int(output.problem.reason), "channel": output.problem.channel}
    return {
        "command": _plain(output.command), "source": int(output.source), "state": int(output.state), **problem,
        "element": output.problem.element, "events": int(output.events),
    }  # fmt: skip
