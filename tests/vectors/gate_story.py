"""A story of the gate: a made-up robot, healthy inputs, and what is changed in them step by step."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np

from controllers.gate_codes import REACTIONS, Event, Reason, Request, Source, State
from controllers.gate_config import NEVER, GateConfig
from controllers.safety import Inputs, Output, initial, step
from robo_rl.contract import Contract

PERIOD, TIMEOUT, OPERATOR_TIMEOUT = 10_000, 25_000, 50_000  # µs
ROTORS = ("front", "left", "back", "right")


def inspector(on_fault: str = "stop") -> Contract:
    """A made-up multirotor whose camera gimbal has a start pose and a rate limit: everything that a gate watches."""
    rotor = {
        "position": [0.1, 0.0, 0.0], "spin": "ccw", "thrust": [0.0, 0.0, 1e-6], "torque_ratio": 0.01, "rise": 0.1,
        "fall": 0.1, "speed_min": 0.0, "speed_max": 1000.0,
    }  # fmt: skip
    rotors = [{"name": name, **rotor} for name in ROTORS]
    told = {
        "format": "robo-rl contract",
        "version": 1,
        "task": "inspection",
        "robot_name": "inspector",
        "control_period": PERIOD / 1e6,
        "signals": [
            _signal("orientation", "xyzw", "1", "body to world", [-1.01] * 4, [1.01] * 4, kind="quaternion"),
            _signal("gimbal_angle", ("pitch", "yaw"), "rad", "body", [-2.0, -3.0], [2.0, 3.0], noise=[0.001] * 2),
            _signal("height_setpoint", "z", "m", "world", [0.0], [10.0], source="operator"),
        ],
        "commands": [
            {
                "name": "rotor_speed", "elements": list(ROTORS), "unit": "rad/s", "frame": "rotor",
                "lower": [0.0] * 4, "upper": [1000.0] * 4, "safe": [0.0] * 4, "rate": None, "start": None,
            },
            {
                "name": "gimbal_target", "elements": ["pitch", "yaw"], "unit": "rad", "frame": "body",
                "lower": [-1.5, -2.5], "upper": [1.5, 2.5], "safe": [0.0, 0.0], "rate": [6.25, 3.125],
                "start": [0.25, 0.0],
            },
        ],
        "state": [],
        "safety": {
            "signal_timeout": TIMEOUT / 1e6, "tilt_limit": 1.0, "on_fault": on_fault,
            "operator_timeout": OPERATOR_TIMEOUT / 1e6,
        },
        "robot": {"kind": "multirotor", "mass": 1.0, "inertia": [0.01, 0.01, 0.02], "rotors": rotors},
        "provenance": {
            "algorithm": "none", "seed": 0, "environment_steps": 0, "configuration_digest": "0" * 64, "hidden": [],
            "activation": "tanh", "normalize": False, "versions": {},
        },
    }  # fmt: skip
    if on_fault == "autonomous":
        orientation, gimbal, height = told["signals"]
        told["safety"] |= {"on_fault": "stop", "operator_timeout": None}
        told["signals"] = [gimbal, orientation, height]
    return Contract.from_json(json.dumps(told))


def _signal(name: str, elements: Any, unit: str, frame: str, lower: Any, upper: Any, **others: Any) -> dict[str, Any]:
    told = {"kind": "vector", "source": "sensor", "noise": None, "delay": [0.0, 0.0], "seen_low": None}
    told |= {"name": name, "elements": list(elements), "unit": unit, "frame": frame, "lower": lower, "upper": upper}
    return {**told, "seen_high": None, **others}


CONTRACTS = {name: inspector(name) for name in (*REACTIONS, "autonomous")}
"""``autonomous``: without an operator, and with the gimbal's angle as the first signal."""


def gate_config(name: str) -> GateConfig:
    """Of the contract of that name. Damping is a reaction of version 1, which no contract of version 2 has."""
    config = GateConfig.from_contract(CONTRACTS[name])
    return dataclasses.replace(config, on_fault=name) if name in REACTIONS else config


class Story:
    """Steps told one by one. What is not said stays as it was; signals and stamps are healthy and new."""

    def __init__(self, name: str, contract: str = "stop", time: int = 1_000_000) -> None:
        self.name, self.contract = name, contract
        self.config = gate_config(contract)
        self.gate, self.time, self.steps = initial(self.config), time - PERIOD, []
        self.command = np.array([400, 400, 400, 400, 0.25, 0], np.float32)
        self.fallback: np.ndarray | None = None

    def step(self, requests: Request = Request.NONE, dt: int = PERIOD, **changes: Any) -> Output:
        """One step. Changes: fields of Inputs, or ``age`` by signal, ``signal`` values by flat index."""
        self.time += dt
        wobble = (len(self.steps) % 7 - 3) / 64
        healthy = {"orientation": [0, 0, 0, 1], "gimbal_angle": [0.25 + wobble, -wobble], "height_setpoint": [1.5]}
        signals = np.array([x for watch in self.config.signals for x in healthy[watch.name]], np.float32)
        for index, value in changes.pop("signal", {}).items():
            signals[index] = value
        stamps = [self.time] * 3
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
        """Armed, and the gimbal at its start pose."""
        self.step()
        self.step(Request.ARM)
        while not (self.gate.command == self.config.start).all():
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


def configuration(name: str) -> str:
    """The contract of that name, and what the gate derives from it, as JSON."""
    contract, config = CONTRACTS[name], vars(gate_config(name))
    plain = {name: _plain(value) for name, value in config.items() if name not in ("signals", "commands")}
    for name in ("signals", "commands"):
        plain[name] = [{**vars(span), "elements": list(span.elements)} for span in config[name]]
    return json.dumps({"contract": json.loads(contract.to_json()), "config": plain}, indent=1) + "\n"


def _plain(value: Any) -> Any:
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
