"""LEAPP bundles (NVIDIA, leapp 0.7): a YAML file, an ONNX file beside it, and the values that its memory begins with.

The graph takes what sensors and operator give and gives joint targets, so observations, history, action scale and
default pose are inside. The YAML says what each input and output is by its ``kind`` and ``element_names``, and which
outputs are inputs of the next step. Isaac Lab writes such bundles (scripts/reinforcement_learning/leapp), Isaac ROS
Deploy runs them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robo_rl.adapters.foreign import onnx_memory, onnx_network, parameters
from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.adapters.foreign.onnx_session import ask, open_session
from robo_rl.adapters.foreign.recurrent import Runtime
from robo_rl.adapters.foreign.statements import Statement

TERMS = {
    "state/body/angular_velocity": "base_ang_vel", "state/body/linear_velocity": "base_lin_vel",
    "state/body/rotation": "orientation", "command/body/velocity": "velocity_commands",
    "state/joint/position": "joint_pos", "state/joint/velocity": "joint_vel_rel",
}  # fmt: skip
"""What a kind is among the terms of observations."""
SIZES = {"base_ang_vel": 3, "base_lin_vel": 3, "orientation": 4, "velocity_commands": 3}
AXES = {"base_ang_vel": ("x", "y", "z"), "base_lin_vel": ("x", "y", "z"), "velocity_commands": ("x", "y", "")}
"""What the names of elements end with; the third of a command is a yaw rate, of any name."""
TARGET = "target/joint/position"
GAINS = {"kp": "stiffness", "kd": "damping"}


@dataclass(frozen=True)
class Read:
    """What a bundle says."""

    network: LeappNetwork
    runtime: Runtime
    statement: Statement


def is_bundle(table: Mapping[str, Any]) -> bool:
    """Whether a YAML file is a LEAPP bundle's."""
    return isinstance(table.get("models"), Mapping) and isinstance(table.get("pipeline"), Mapping)


def read(path: Path, table: Mapping[str, Any], read_bytes: Any) -> Read:
    """The bundle of a YAML file's ``table``. ``read_bytes``: how files beside it are read."""
    if len(table["models"]) != 1:
        raise AdoptionError(
            f"{path}: models has {sorted(table['models'])}; expected one, from sensors to joint targets"
        )
    ((name, model),) = table["models"].items()
    file = _file(path, model, read_bytes)
    inputs = {str(given["name"]): given for given in model.get("inputs") or []}
    outputs = {str(given["name"]): given for given in model.get("outputs") or []}
    feedback = _feedback(path, name, table["pipeline"])
    shapes: dict[str, Sequence[int | None]] = {k: list(v.get("shape") or []) for k, v in (inputs | outputs).items()}
    targets = [k for k, given in outputs.items() if given.get("kind") == TARGET]
    if len(targets) != 1:
        kinds = {k: given.get("kind") for k, given in outputs.items()}
        raise AdoptionError(f"{path}: its outputs are {kinds}; expected one of the kind {TARGET}")
    if targets[0] not in file.outputs:
        raise AdoptionError(f"{path}: its graph has no output {targets[0]!r}; expected one of {list(file.outputs)}")
    states = [
        state
        for before, after in feedback.items()
        for state in onnx_memory.states(shapes, {targets[0]: [], after: shapes.get(after, [])}, [before], str(path))
    ]
    joints = _names(path, targets[0], outputs[targets[0]])
    free = [k for k in inputs if k not in feedback]
    observations = [_term(path, k, inputs[k], joints) for k in free]
    orders = [_order(path, k, inputs[k], joints) for k in free]
    first = _initial(path, name, table["pipeline"], states, read_bytes)
    network = LeappNetwork(file, str(path), free, orders, targets[0], states, first)
    data: dict[str, Any] = {
        "joints": joints,
        "action": {"scale": 1.0, "offset": [0.0] * len(joints), "remember": "raw"},
        "observations": observations,
    }
    reasons = {"default": "rad, where the robot stands when the policy begins: inside the graph, and not in the file"}
    if gains := {GAINS[kind]: values for kind in GAINS if (values := _constant(file, outputs, kind, joints))}:
        data["gains"] = gains
    if isinstance(rate := table["pipeline"].get("frequency"), int | float):
        data["rate"] = float(rate)
    session = open_session(file.data)
    return Read(network, _Runtime(network, session), Statement("LEAPP", data, reasons))


def _file(path: Path, model: Mapping[str, Any], read_bytes: Any) -> onnx_network.OnnxFile:
    told = model.get("parameters") or {}
    name, backend = str(told.get("model_path", "")), told.get("backend")
    if backend != "onnx" or not name or Path(name).name != name:
        raise AdoptionError(f"{path}: model_path is '{name}', backend {backend}; expected an ONNX file beside it")
    data = read_bytes(path.parent / name)
    digest = told.get("sha256sum")
    if digest and hashlib.sha256(data).hexdigest() != digest:
        raise AdoptionError(
            f"{path}: sha256sum is {str(digest)[:16]}…; {name} has another: it is not the exported file"
        )
    return onnx_network.read(data, str(path.parent / name))


def _feedback(path: Path, name: str, pipeline: Mapping[str, Any]) -> dict[str, str]:
    """Inputs that get an output of the last step, with that output."""
    found = {}
    for source, ends in (pipeline.get("feedback_flow") or {}).items():
        for end in ends:
            (model, _, output), (other, _, given) = str(source).partition("/"), str(end).partition("/")
            if model != name or other != name:
                raise AdoptionError(f"{path}: feedback_flow has {source}: {end}; expected those of the model '{name}'")
            found[given] = output
    return found


def _names(path: Path, name: str, given: Mapping[str, Any]) -> list[str]:
    axes = [axis for axis in given.get("element_names") or [] if isinstance(axis, list)]
    if len(axes) != 1 or not all(isinstance(text, str) for text in axes[0]):
        raise AdoptionError(
            f"{path}: {name} has the element_names {given.get('element_names')}; expected one name each"
        )
    return list(axes[0])


def _term(path: Path, name: str, given: Mapping[str, Any], joints: list[str]) -> dict[str, Any]:
    """The term of an input."""
    term, shape = TERMS.get(str(given.get("kind"))), list(given.get("shape") or [])
    if term is None:
        raise AdoptionError(
            f"{path}: input '{name}' is of the kind {given.get('kind')}; expected one of {sorted(TERMS)}, or one that "
            "feedback_flow gives back"
        )
    size = SIZES.get(term, len(joints))
    if shape != [1, size]:
        raise AdoptionError(
            f"{path}: input '{name}' has the shape {shape}; expected [1, {size}] of the kind {given['kind']}"
        )
    if term in AXES and given.get("element_names"):
        names = _names(path, name, given)
        if len(names) != size or any(not text.endswith(end) for text, end in zip(names, AXES[term], strict=True)):
            raise AdoptionError(f"{path}: input '{name}' has the elements {names}; expected {', '.join(AXES[term])}")
    if term != "orientation":
        return {"term": term}
    names = [text[-1] for text in _names(path, name, given)]
    if sorted(names) != ["w", "x", "y", "z"] or "".join(names) not in ("wxyz", "xyzw"):
        raise AdoptionError(f"{path}: input '{name}' has the elements {names}; expected x, y, z, w or w, x, y, z")
    return {"term": term, "order": "".join(names)}


def _order(path: Path, name: str, given: Mapping[str, Any], joints: list[str]) -> list[int] | None:
    """Where the elements of an input of joints are among the targets' joints."""
    if not str(given.get("kind")).startswith("state/joint/"):
        return None
    names = _names(path, name, given)
    if sorted(names) != sorted(joints):
        raise AdoptionError(f"{path}: input '{name}' has the joints {names}; expected those of the targets, {joints}")
    return None if names == joints else [joints.index(joint) for joint in names]


def _initial(
    path: Path, name: str, pipeline: Mapping[str, Any], states: list[onnx_memory.State], read_bytes: Any
) -> Tensor:
    """(1, memory) what the memory is at the first step; zeros where the bundle does not say."""
    beside = pipeline.get("initial_values")
    values: Mapping[str, np.ndarray] = {}
    if beside:
        if Path(str(beside)).name != str(beside):
            raise AdoptionError(f"{path}: initial_values is '{beside}'; expected a file beside it")
        file = path.parent / str(beside)
        values = parameters.read(read_bytes(file), str(file)).arrays
    parts = []
    for state in states:
        value = values.get(f"{name}/{state.before}")
        if value is None:
            parts.append(torch.zeros(1, state.size))
        elif value.size != state.size:
            raise AdoptionError(f"{path}: the first {state.before} has {value.size} numbers; expected {state.size}")
        elif not np.isfinite(value).all() or np.abs(value).max(initial=0.0) > np.finfo(np.float32).max:
            raise AdoptionError(f"{path}: the first {state.before} is {value.ravel()[:5]}; expected finite numbers")
        else:
            parts.append(state.kept(torch.from_numpy(np.array(value, np.float32))))
    return torch.cat(parts, 1) if parts else torch.zeros(1, 0)


def _constant(
    file: onnx_network.OnnxFile, outputs: Mapping[str, Mapping[str, Any]], kind: str, joints: list[str]
) -> Any:
    """The gains that are an output of their own, per joint; None where they are computed, or not there."""
    for name, given in outputs.items():
        if given.get("kind") == kind and name in file.arrays and file.arrays[name].size == len(joints):
            values = [float(value) for value in file.arrays[name].reshape(-1)]
            return values[0] if len(set(values)) == 1 else values
    return None


class LeappNetwork(onnx_network.OnnxGraph):
    """(n, k) the inputs side by side to (n, a) joint targets. Its memory begins at zero: what is kept is the change."""

    def __init__(
        self,
        file: onnx_network.OnnxFile,
        where: str,
        free: list[str],
        orders: list[list[int] | None],
        output: str,
        states: list[onnx_memory.State],
        first: Tensor,
    ) -> None:
        super().__init__(file, {output, *(state.after for state in states)}, where)
        self.free, self.orders, self.output, self.states = free, orders, output, states
        self.sizes = [int(file.inputs[name][-1] or 0) for name in free]
        self.observation_size, self.memory = sum(self.sizes), sum(state.size for state in states)
        self.register_buffer("first", first)

    def inputs(self, observation: Tensor, memory: Tensor | None) -> dict[str, Any]:
        """What the graph takes, by name."""
        found: dict[str, Any] = {}
        for name, part, order in zip(self.free, observation.split(self.sizes, 1), self.orders, strict=True):
            found[name] = part if order is None else part[:, order]
        if memory is not None:
            parts = (memory + self.get_buffer("first")).split([state.size for state in self.states], 1)
            found |= {state.before: state.given(part) for state, part in zip(self.states, parts, strict=True)}
        return found

    def forward(self, observation: Tensor, memory: Tensor | None = None) -> Any:
        found = self.run(self.inputs(observation, memory))
        if memory is None:
            return found[self.output]
        kept = torch.cat([state.kept(found[state.after]) for state in self.states], 1)
        return found[self.output], kept - self.get_buffer("first")


class _Runtime:
    """onnxruntime on the bundle's own file, one robot at a time."""

    def __init__(self, network: LeappNetwork, session: Any) -> None:
        self.network, self.session = network, session

    def __call__(self, seen: np.ndarray, memory: np.ndarray | None = None) -> Any:
        network, actions, after = self.network, [], []
        known = {given.name for given in self.session.get_inputs()}
        for k in range(len(seen)):
            row, state = (
                torch.from_numpy(seen[k : k + 1]),
                None if memory is None else torch.from_numpy(memory[k : k + 1]),
            )
            given = {
                name: value.contiguous().numpy() for name, value in network.inputs(row, state).items() if name in known
            }
            action, *states = ask(self.session, [network.output, *(part.after for part in network.states)], given)
            actions.append(action.reshape(-1))
            kept = [part.kept(torch.from_numpy(value)) for part, value in zip(network.states, states, strict=True)]
            after += [(torch.cat(kept, 1) - network.get_buffer("first")).numpy()[0]] if kept else []
        return np.stack(actions) if memory is None else (np.stack(actions), np.stack(after))
