"""Contracts of version 1, which are read for ever: the same policy, said in the words of version 2.

Version 1 knew two kinds of robots, flat signals, one time-out, and nothing of laws and feedback. What it left open is
filled in the safe way: actuators whose position is measured stop on a ramp from where they are, rotors are off.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from robo_rl.contract.checks import Numbers
from robo_rl.contract.reading import build


@dataclass(frozen=True)
class _Signal:
    name: str
    elements: tuple[str, ...]
    unit: str
    frame: str
    lower: Numbers
    upper: Numbers
    kind: Literal["vector", "quaternion"]
    source: Literal["sensor", "operator"]
    noise: Numbers | None
    delay: tuple[float, float]
    seen_low: Numbers | None
    seen_high: Numbers | None


@dataclass(frozen=True)
class _Command:
    name: str
    elements: tuple[str, ...]
    unit: str
    frame: str
    lower: Numbers
    upper: Numbers
    safe: Numbers
    rate: Numbers | None
    start: Numbers | None


@dataclass(frozen=True)
class _Block:
    name: str
    shape: tuple[int, ...]
    initial: Numbers


@dataclass(frozen=True)
class _Safety:
    signal_timeout: float
    tilt_limit: float
    on_fault: Literal["stop", "hold", "damp", "controller"]
    operator_timeout: float | None


@dataclass(frozen=True)
class _Rotor:
    name: str
    position: tuple[float, float, float]
    spin: Literal["ccw", "cw"]
    thrust: tuple[float, float, float]
    torque_ratio: float
    rise: float
    fall: float
    speed_min: float
    speed_max: float


@dataclass(frozen=True)
class _RotorRobot:
    mass: float
    inertia: tuple[float, float, float]
    rotors: tuple[_Rotor, ...]
    kind: Literal["multirotor"] = "multirotor"


@dataclass(frozen=True)
class _Joint:
    name: str
    stand: float
    lower: float
    upper: float
    effort: float
    velocity: float
    stiffness: float
    damping: float


@dataclass(frozen=True)
class _JointRobot:
    joints: tuple[_Joint, ...]
    feet: tuple[str, ...]
    kind: Literal["legged"] = "legged"


@dataclass(frozen=True)
class _Provenance:
    algorithm: str
    seed: int
    environment_steps: int
    configuration_digest: str
    hidden: tuple[int, ...]
    activation: str
    normalize: bool
    versions: dict[str, str]


@dataclass(frozen=True)
class _Contract:
    task: str
    robot_name: str
    control_period: float
    signals: tuple[_Signal, ...]
    commands: tuple[_Command, ...]
    state: tuple[_Block, ...]
    safety: _Safety
    robot: _RotorRobot | _JointRobot
    provenance: _Provenance
    format: str
    version: int


def upgraded(parsed: dict[str, Any], where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A contract of version 1 from its parsed JSON, and the fields of one of version 2 that says the same.

    ContractError if it is none.
    """
    old: _Contract = build(_Contract, parsed, where)
    data = json.loads(json.dumps(asdict(old)))
    robot = {"name": old.robot_name, "kind": old.robot.kind, **_facts(data["robot"])}
    safety, provenance = data["safety"], data["provenance"]
    recurrent = sum(math.prod(block.shape) for block in old.state if block.name == "recurrent")
    network = {name: provenance[name] for name in ("hidden", "activation", "normalize")}
    return data, {
        "format": old.format,
        "version": 2,
        "task": old.task,
        "control_period": old.control_period,
        "signals": [{**signal, **NEW_IN_SIGNALS} for signal in data["signals"]],
        "commands": [_command(command, data["signals"], data["robot"]) for command in data["commands"]],
        "state": data["state"],
        "safety": {
            **safety,
            "tilt_limit": safety["tilt_limit"] if safety["tilt_limit"] < math.pi else None,
            "on_fault": {"damp": "stop"}.get(old.safety.on_fault, old.safety.on_fault),
            "envelope": [],
        },
        "robot": robot,
        "network": {**network, "recurrent": recurrent, "encoders": []},
        "provenance": {
            **{name: value for name, value in provenance.items() if name not in network},
            "source": "",
            "source_digest": "",
        },
    }


NEW_IN_SIGNALS = dict.fromkeys(("shape", "period", "timeout", "age_of", "layout"))


def _facts(robot: dict[str, Any]) -> dict[str, Any]:
    """Actuators and the kind's own facts."""
    blank = {"rate": None, "effort": None, "speed": None}
    if robot["kind"] == "multirotor":
        own = ("name", "position", "spin", "thrust", "torque_ratio", "rise", "fall")
        actuators = [
            {
                **blank, "name": rotor["name"], "quantity": "velocity", "unit": "rad/s", "lower": rotor["speed_min"],
                "upper": rotor["speed_max"], "safe": rotor["speed_min"],
            }
            for rotor in robot["rotors"]
        ]  # fmt: skip
        rotors = [{name: rotor[name] for name in own} for rotor in robot["rotors"]]
        facts = {"mass": robot["mass"], "inertia": robot["inertia"], "rotors": rotors}
        return {"actuators": actuators, "facts": facts}
    actuators = [
        {
            "name": joint["name"], "quantity": "position", "unit": "rad", "lower": joint["lower"],
            "upper": joint["upper"], "safe": "hold", "rate": None, "effort": joint["effort"],
            "speed": joint["velocity"],
        }
        for joint in robot["joints"]
    ]  # fmt: skip
    return {
        "actuators": actuators,
        "facts": {"feet": robot["feet"], "stand": [joint["stand"] for joint in robot["joints"]]},
    }


def _command(command: dict[str, Any], signals: list[dict[str, Any]], robot: dict[str, Any]) -> dict[str, Any]:
    """A position that is measured stops on a ramp from where it is; others are switched off, as they were."""
    measured = [
        signal["name"]
        for signal in signals
        if signal["source"] == "sensor"
        and signal["unit"] == command["unit"]
        and set(command["elements"]) <= set(signal["elements"])
    ]
    law = None
    joints = robot.get("joints", [])
    if command["unit"] == "rad" and command["elements"] == [joint["name"] for joint in joints]:
        gains = {name: [joint[name] for joint in joints] for name in ("stiffness", "damping")}
        law = {"kind": "position", **gains}
    return {
        **command,
        "stop": "ramp" if len(measured) == 1 and command["unit"] in ("rad", "m") else "off",
        "law": law,
        "feedback": measured[0] if len(measured) == 1 else None,
    }
