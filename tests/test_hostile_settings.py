"""Hostile files of drivers, and policies of other trainers: a sentence each, little memory and time, no hang."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from robo_rl.adapters.datasets import DatasetError, arm_recording
from robo_rl.adapters.foreign import description
from robo_rl.adapters.foreign.adopting import find
from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.deploy.robot.drivers.bus_servos import calibration, robot_file
from robo_rl.deploy.robot.drivers.vesc.robot_file import read_robot_file as read_car_file
from tests.planted import CODE, Make, device, hole, packed, pipe, written
from tests.test_hostile_files import refuse  # noqa: F401 (a fixture)

TOML = {
    "lists in lists": "a = " + "[" * 30_000, "deep keys": ".".join(["a"] * 30_000) + " = 1",
    "keys again and again": "\n".join(f"{'.'.join(['a'] * k)}.b{k} = 1" for k in range(1, 300)),
    "a number of 60,000 digits": "a = " + "9" * 60_000, "noise": bytes(range(256)), "a date": "a = 1979-05-27",
    "larger than it may be": "a = 1\n" * 20_000,
}  # fmt: skip
DRIVER_FILES: dict[str, Make] = {
    **{what: written("robot.toml", text) for what, text in TOML.items()}, "a pipe": pipe("robot.toml"),
    "a device": device("robot.toml"), "a hole": hole("robot.toml", b"a = 1\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", DRIVER_FILES)
@pytest.mark.parametrize("kind", ["car", "arm", "calibration"])
def test_robot_files_of_drivers(kind: str, what: str, refuse: Any) -> None:  # noqa: F811
    read = {
        "car": lambda path: read_car_file(str(path)),
        "arm": lambda path: robot_file.read_robot_file(str(path), ["a", "b"]),
        "calibration": lambda path: calibration.read_calibration(path, calibration.FEETECH_OFFSET),
    }[kind]
    assert refuse(read, DRIVER_FILES[what])


# --- policies of other trainers --------------------------------------------------------------------------------------


def claimed(shape: list[int]) -> bytes:
    """A tensor in the header of safetensors, and none after it."""
    head = json.dumps({"actor.0.weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    return struct.pack("<Q", len(head)) + head


POLICIES = {
    "code": written("p.pt", CODE),
    "bomb": packed("p.pt", {"archive/data.pkl": bytes(1 << 27), "archive/version": b"3"}),
    "bomb of stable-baselines3": packed("p.zip", {"data": b"{}", "policy.pth": bytes(1 << 27)}),
    "endless": written("p.safetensors", claimed([10**6, 10**6])),
    "negative": written("p.safetensors", claimed([-1, 4])),
    "aliases": written("p.yaml", "a0: &a0 [x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))),
    "deep": written("p.yaml", "a: " + "[" * 4_000),
    "tag": written("p.yaml", "models: !!python/object/apply:os.system ['touch ESCAPED']\npipeline: {}\n"),
    "pipe": pipe("p.pt"),
    "device": device("p.yaml"),
    "hole": hole("p.safetensors"),
}  # fmt: skip


@pytest.mark.parametrize("what", POLICIES)
def test_policies_of_other_trainers(what: str, refuse: Any) -> None:  # noqa: F811
    assert refuse(lambda path: find(path, {}), POLICIES[what])


# --- descriptions ---------------------------------------------------------------------------------------------

WALK: dict[str, Any] = {
    "network": "p.onnx", "robot": "go2", "rate": 50.0, "joints": ["a", "b"], "default": [0.1, 0.2],
    "action": {"scale": 0.5, "target_clip": [[-1.0, 1.0], [-1.0, 1.0]]}, "gains": {"stiffness": 20.0, "damping": 0.5},
    "history": {"by": "term"}, "observations": [{"term": "base_ang_vel", "scale": 0.2}, {"term": "own.x", "size": 3}],
    "flipped": ["a"],
}  # fmt: skip
ARM: dict[str, Any] = {
    "recording": "data", "robot": "so101", "rate": 30.0, "joints": ["a", "b"], "units": "degrees",
    "calibration": "model", "history": 2, "flipped": ["a"], "zero": {"a": 0.1},
}  # fmt: skip
STRANGE = ([[1]], {"a": [1]}, 10**400, "x", [10**400], [None], True, -1, math.nan, [[[]]], {"term": ["a"]}, 1 << 40)


def changes(told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A description with each of its fields, and of its tables' fields, as something else."""
    for name, value in told.items():
        for other in STRANGE:
            yield told | {name: other}
            if isinstance(value, dict):
                yield from (told | {name: value | {inner: other}} for inner in value)
            if isinstance(value, list) and isinstance(value[-1], dict):
                yield from (told | {name: [*value[:-1], value[-1] | {inner: other}]} for inner in value[-1])


@pytest.mark.parametrize(
    ("read", "told"), [(description.understood, WALK), (arm_recording.parse, ARM)], ids=["policy", "recording"]
)
def test_descriptions_of_other_types_are_refused_in_a_sentence(read: Any, told: dict[str, Any]) -> None:
    read(told, "told.toml")
    refused = []
    for changed in changes(told):
        try:
            read(changed, "told.toml")
        except (AdoptionError, DatasetError) as error:
            refused.append(str(error))
    assert len(refused) > len(told)
    assert [sentence for sentence in refused if "told.toml" not in sentence or "\n" in sentence] == []
