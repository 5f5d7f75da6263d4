"""From a file of another trainer to its network, its description, and what is still blank in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from robo_rl.adapters.foreign import (
    description,
    leapp,
    onnx_network,
    parameters,
    recurrent,
    script_network,
    statements,
    yaml_file,
)  # fmt: skip
from robo_rl.adapters.foreign.description import BLANK, AdoptionError, Description
from robo_rl.adapters.foreign.motion import motion_of
from robo_rl.adapters.foreign.statements import Statement
from robo_rl.files.text import fits

KINDS = (".onnx", ".pt", ".pth", ".jit", ".zip", ".safetensors", ".yaml", ".yml")
MOST = 1 << 28
"""Bytes of a file."""
NEAR = ("{0}/deploy.yaml", "{0}/env.yaml", "{0}/agent.yaml", "{0}/config.yaml", "{0}/../base.yaml")
FOLDERS = (".", "params", "../params", "../../params")
"""Where trainers write their YAML, as seen from the network's file."""
NONE = "none"
TOML, MOTION = "policy.toml", "motion.npz"


@dataclass(frozen=True)
class Found:
    """A network, the runtime of its own trainer, and what its file says."""

    network: nn.Module | None
    """None where the description must say more first."""
    runtime: recurrent.Runtime | None
    statement: Statement | None
    trainer: str


def read_bytes(path: Path) -> bytes:
    """The bytes of a policy's file; AdoptionError where it is none."""
    if not path.is_file():
        raise AdoptionError(
            f"{path}: there is no such file; expected a policy, one of {', '.join(KINDS)}, "
            "or the folder of a LeRobotDataset"
        )
    if path.stat().st_size > MOST:
        raise AdoptionError(f"{path}: {path.stat().st_size} bytes; expected at most {MOST}")
    return path.read_bytes()


def find(path: Path, layers: Mapping[str, Any]) -> Found:
    """What is in the file, as far as ``layers`` of the description tells enough of a file with parameters alone."""
    data, where = read_bytes(path), str(path)
    if path.suffix == ".onnx":
        file = onnx_network.read(data, where)
        if "robo_rl.contract" in file.metadata:
            raise AdoptionError(f"{path}: it is a bundle of robo-rl already; run 'robo-rl verify' on it")
        told = statements.onnx_metadata(file.metadata, list(file.inputs))
        network = onnx_network.OnnxNetwork(file, where)
        if told is not None and motion_of(file, where) is not None:
            told.data["motion"] = MOTION
        return Found(network, file.runtime(network.states), told, told.trainer if told else "onnx")
    if path.suffix in (".yaml", ".yml"):
        table = yaml_file.read(data, where)
        if not leapp.is_bundle(table):
            raise AdoptionError(f"{path}: it has no models and pipeline; expected a LEAPP bundle, or the policy's file")
        with fits(path, "the form of LEAPP's bundles", AdoptionError):
            bundle = leapp.read(path, table, read_bytes)
        return Found(bundle.network, bundle.runtime, bundle.statement, bundle.statement.trainer)
    if path.suffix in (".pt", ".pth", ".jit") and parameters.is_script(data):
        return Found(script_network.read(data, where), script_network.runtime(data), None, "torchscript")
    if path.suffix not in KINDS:
        raise AdoptionError(f"{path}: its name ends in '{path.suffix}'; expected one of {', '.join(KINDS)}")
    return _of_parameters(path, parameters.read(data, where), layers)


def _of_parameters(path: Path, found: parameters.Parameters, layers: Mapping[str, Any]) -> Found:
    prefix, normalizer = parameters.actor_prefix(found.arrays), parameters.normalizer_prefix(found.arrays)
    trainer = "stable-baselines3" if path.suffix == ".zip" else "rsl_rl" if "state_dict" in prefix else "torch"
    told = Statement(trainer, {"layers": {"prefix": prefix or BLANK, "activation": BLANK}})
    told.reasons["layers.prefix"] = (
        f"where the actor's layers are in the file, one of {parameters.prefixes(found.arrays)}"
    )
    told.reasons["layers.activation"] = "between the layers: elu, relu, silu or tanh; the file doesn't say"
    if normalizer:
        told.data["layers"]["normalizer"] = normalizer
    if recurrences := recurrent.prefixes(found.arrays):
        told.data["layers"]["recurrence"] = recurrent.actor_prefix(found.arrays) or BLANK
        told.reasons["layers.recurrence"] = f"where the actor's LSTM or GRU is in the file, one of {recurrences}"
    if trainer == "stable-baselines3":
        _stable_baselines(path, found, told)
    merged = {**told.data["layers"], **{key: value for key, value in layers.items() if value != BLANK}}
    if BLANK in merged.values():
        return Found(None, None, told, trainer)
    statistics = merged.pop("statistics", NONE)
    network = parameters.network(found, merged, str(path))
    if statistics != NONE:
        file = path.parent / statistics
        normalized = parameters.read_statistics(read_bytes(file), str(file))
        if isinstance(network, recurrent.Recurrent):
            network.before = nn.Sequential(normalized, network.before)
        else:
            size = network.observation_size
            network = nn.Sequential(normalized, network)
            network.observation_size = size
    run = recurrent.runtime(network) if isinstance(network, recurrent.Recurrent) else _torch_runtime(network)
    return Found(network, run, told, trainer)


def _stable_baselines(path: Path, found: parameters.Parameters, told: Statement) -> None:
    """Activation and output by the kind of policy: stable-baselines3's defaults, where the file names no other."""
    layers = told.data["layers"]
    off_policy = layers["prefix"].startswith("actor.")
    layers["activation"] = found.told.get("activation", "relu" if off_policy else "tanh")
    if off_policy or found.told.get("squashed") == "True":
        layers["output"] = "tanh"
    if layers["activation"] not in ("elu", "relu", "silu", "tanh"):
        layers["activation"] = BLANK
    beside = sorted(path.parent.glob("*.pkl"))
    near = [file.name for file in beside if "norm" in file.name.lower() or "stat" in file.name.lower()]
    layers["statistics"] = near[0] if len(near) == 1 else BLANK
    told.reasons["layers.statistics"] = (
        'the file that VecNormalize.save wrote, or "none" if observations were not normalised; the .zip doesn\'t say'
    )


def _torch_runtime(network: nn.Module) -> Callable[[np.ndarray], np.ndarray]:
    def run(seen: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return network(torch.from_numpy(seen)).numpy()

    return run


# --- descriptions -------------------------------------------------------------------------------------------------


def near(path: Path) -> list[Path]:
    """Files in which its trainer may have described it."""
    places = [Path(pattern.format(path.parent / folder)) for folder in FOLDERS for pattern in NEAR]
    found: list[Path] = []
    for place in places:
        if place.is_file() and not any(place.samefile(other) for other in found):
            found.append(place)
    return found


def draft(
    path: Path, given: Mapping[str, Any], told: Sequence[Path], folder: Path
) -> tuple[dict[str, Any], dict[str, str], str]:
    """The description as far as it is known, comments on its fields, and the trainer's name.

    ``given``: fields that the user has said, which come first. ``told``: files of the trainer.
    """
    found = find(path, given.get("layers", {}))
    base = statements.empty(os.path.relpath(path, folder))
    parts = [base, *([found.statement] if found.statement else [])]
    joints = given.get("joints") if given.get("joints", BLANK) != BLANK else None
    if joints is None and found.statement:
        joints = found.statement.data.get("joints")
    robot_joints = _joints_of(given.get("robot", BLANK))
    tables = {file: yaml_file.read(read_bytes(file), str(file)) for file in told}
    readers: list[Callable[[Any], Statement | None]] = [
        lambda table: statements.deploy_yaml(table, robot_joints),
        lambda table: statements.env_yaml(table, joints),
        statements.agent_yaml,
        statements.unitree_gym_yaml,
    ]
    in_order = sorted(tables, key=lambda f: f.name != "base.yaml")
    if in_order:
        with fits(in_order[0], "what trainers write beside a policy", AdoptionError):
            parts += _read([statements.rl_sar_yaml([tables[file] for file in in_order])])
    for file, table in tables.items():
        with fits(file, "what trainers write beside a policy", AdoptionError):
            parts += _read(reader(table) for reader in readers)
    data: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for part in parts:
        _merge(data, part.data)
        reasons.update(part.reasons)
    _merge(data, given)
    if width := recurrent.memory_of(found.network):
        data["memory"] = width
    statements.complete(data, reasons)
    if not _has_layers(found.statement):
        data.pop("layers", None)
    trainer = next(
        (p.trainer for p in parts[::-1] if p is not base and p.trainer not in ("torch", "unknown")), found.trainer
    )
    return data, {key: why for key, why in reasons.items() if _asked(data, key)}, trainer


def _read(found: Any) -> list[Statement]:
    return [statement for statement in found if statement is not None]


def _has_layers(statement: Statement | None) -> bool:
    return statement is not None and "prefix" in statement.data.get("layers", {})


def _asked(data: Mapping[str, Any], key: str) -> bool:
    """Whether a comment's field is there."""
    owner, _, name = key.partition(".")
    if owner.startswith("observations["):
        i = int(owner[len("observations[") : -1])
        return i < len(data["observations"]) and name in data["observations"][i]
    return owner in data and (not name or name in data[owner])


def _merge(data: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Fields of ``more`` come first, but for blanks."""
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(data.get(key), dict):
            _merge(data[key], value)
        elif value != BLANK and not (key == "observations" and description.blanks({key: value}) and key in data):
            data[key] = dict(value) if isinstance(value, Mapping) else value
        elif key not in data:
            data[key] = value


def _joints_of(robot: object) -> tuple[str, ...] | None:
    if robot == BLANK:
        return None
    if not isinstance(robot, str):
        raise AdoptionError(f"robot is {str(robot)[:100]}; expected a robot's name, or the path of a card")
    from robo_rl.sim.robots.legged import load_legged

    return load_legged(robot).joint_names


TASK = '''"""The policy of {file}, as {toml} describes it. A term of your own: docs/bring-your-policy.md."""

from robo_rl.adapters.foreign.task import AdoptedWalk


class Policy(AdoptedWalk):
    """Walk as the policy of {trainer} does."""

    description = "{toml}"
    files = ({files},)
'''
"""The file that stands for the task of an adopted policy."""


def task_source(file: str, data: Mapping[str, Any], trainer: str) -> str:
    """The text of that file."""
    files = ", ".join(f'"{name}"' for name in (TOML, *([data["motion"]] if data.get("motion") else [])))
    return TASK.format(file=file, toml=TOML, files=files, trainer=trainer)


def write_motion(path: Path, data: Mapping[str, Any], folder: Path) -> None:
    """Write the clip of a policy that has one beside its description."""
    if data.get("motion") == MOTION and path.suffix == ".onnx":
        found = motion_of(onnx_network.read(read_bytes(path), str(path)), str(path))
        if found is not None:
            (folder / MOTION).write_bytes(found.to_bytes())


def network_of(path: Path, told: Description) -> Found:
    """The network and its runtime, for a description without blanks."""
    found = find(path, told.layers)
    if found.network is None:
        raise AdoptionError(f"{path}: layers is {dict(told.layers)}; expected prefix and activation")
    return found
