"""From a trained policy graph to a bundle.

Torch writes the graph; what it adds about the machine it ran on is stripped. Contract and golden vectors go in,
and the whole is sealed with a digest.
"""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import torch
from onnx import ModelProto, numpy_helper
from torch import Tensor, nn

from robo_rl.contract import Contract, Provenance, Signal
from robo_rl.controllers.start_pose import require_start
from robo_rl.deploy.build.export_cache import exported
from robo_rl.deploy.build.rewriting import patterns_by_operator, registry_once
from robo_rl.deploy.robot.bundle import CONTRACT_KEY, DIGEST_KEY, GOLDEN_KEY, NO_DIGEST, Bundle, Golden, seal
from robo_rl.deploy.robot.bundle.attachment import FILES_KEY
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout_signals
from robo_rl.files import write
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.attached import attached_of

OPSET = 18
GOLDEN_STEPS = 64
EPISODES = 256
"""Simulated episodes from which the contract tells what signals were seen."""
Other = Callable[[dict[str, Tensor], Tensor], Tensor]
"""Of signals (n, *dimensions) by name and the state (n, S)."""
PARTS = ("normalizer.", "encoders.", "recurrence.", "base.", "network.")  # of a policy graph that hold its parameters


class ExportError(ValueError):
    """The graph can't be exported as it is."""


def export(policy: PolicyGraph, provenance: Provenance, out: str | Path) -> Bundle:
    """Write the bundle of ``policy`` to ``out``, atomically, and read it back through all checks."""
    seen = rollout_signals(policy.task, GraphPolicy(policy), Conditions(episodes=EPISODES, seed=7))
    return write_bundle(policy, provenance, seen, out)


def write_bundle(
    policy: PolicyGraph, provenance: Provenance, seen: Mapping[str, np.ndarray], out: str | Path,
    recorded: PolicyGraph | None = None,
) -> Bundle:  # fmt: skip
    """As ``export``, with the signals (steps, episodes, *dimensions) by name that the policy has seen.

    ``recorded``: what the golden vectors are recorded from, by default the policy.
    """
    out = Path(out)
    contract = with_envelope(policy.contract(provenance), seen)
    require_start(contract)
    golden = record_golden(recorded or policy, contract, seen)
    model = exported_graph(policy, contract)
    entries = {CONTRACT_KEY: contract.to_json(), GOLDEN_KEY: golden.to_json(), DIGEST_KEY: NO_DIGEST}
    if (attached := attached_of(policy.task)).files:
        entries[FILES_KEY] = attached.to_json()
    for key, value in entries.items():
        model.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(model, full_check=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    write(out, seal(model.SerializeToString(deterministic=True)))
    return Bundle.read(out)


def record_golden(policy: PolicyGraph, contract: Contract, seen: Mapping[str, np.ndarray]) -> Golden:
    """Step the torch graph through the first episode's signals, (steps, episodes, *dimensions) by name."""
    state = policy.initial_state(1)
    states, commands = [state.numpy()[0]], {command.name: [] for command in contract.commands}  # type: ignore[var-annotated]
    with torch.inference_mode():
        for k in range(GOLDEN_STEPS):
            now = {name: torch.from_numpy(value[k, :1]) for name, value in seen.items()}
            given, state = policy(now, state)
            states.append(state.numpy()[0])
            for name, value in given.items():
                commands[name].append(value.numpy()[0])
    signals = {name: value[:GOLDEN_STEPS, 0] for name, value in seen.items()}
    return Golden(signals, np.stack(states), {name: np.stack(value) for name, value in commands.items()})


def with_envelope(contract: Contract, seen: Mapping[str, np.ndarray]) -> Contract:
    """The contract with the range of what every signal was in simulated episodes (0.1 % left out at each end).

    That is one range per element; of a signal with a shape, and no names along its last axis, one for all.
    """

    def bounded(signal: Signal) -> Signal:
        values = seen[signal.name].reshape(-1, len(signal.elements) or 1)
        low, high = np.quantile(values, [0.001, 0.999], axis=0).tolist()
        low, high = (tuple(ends) if signal.elements else ends[0] for ends in (low, high))
        return dataclasses.replace(signal, seen_low=low, seen_high=high)

    return dataclasses.replace(contract, signals=tuple(bounded(signal) for signal in contract.signals))


class _Positional(nn.Module):
    """The policy graph with tensors instead of dictionaries, as ONNX has it."""

    def __init__(self, policy: PolicyGraph, contract: Contract, others: Sequence[Other] = ()) -> None:
        super().__init__()
        self.policy, self.others = policy, tuple(others)
        self.signals = [signal.name for signal in contract.signals]
        self.commands = [command.name for command in contract.commands]

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        *signals, state = inputs
        named = dict(zip(self.signals, signals, strict=True))
        commands, following = self.policy(named, state)
        return (*(commands[name] for name in self.commands), following, *(other(named, state) for other in self.others))


def exported_graph(policy: PolicyGraph, contract: Contract) -> ModelProto:
    """The graph of a bundle, with the policy's parameters by their names; nothing of a bundle's metadata yet."""
    model = _onnx_graph(policy, contract)
    if policy.rebuildable:
        _name_parameters(model, policy)
    return model


def graph_with(policy: PolicyGraph, contract: Contract, others: Mapping[str, Other]) -> ModelProto:
    """The graph of a bundle with ``others`` of its signals and its memory before the step, (n,) by name."""
    return _onnx_graph(policy, contract, others)


def _onnx_graph(
    policy: PolicyGraph, contract: Contract, others: Mapping[str, Other] = MappingProxyType({})
) -> ModelProto:
    shapes = (*(signal.dimensions for signal in contract.signals), (contract.state_size,))
    module = _Positional(policy, contract, tuple(others.values())).eval()
    inputs = [*(s.name for s in contract.signals), "state"]
    outputs = [*(c.name for c in contract.commands), "next_state", *others]
    return exported(
        module, shapes, policy.state_dict(keep_vars=True), [*inputs, *outputs],
        lambda: _by_torch(module, shapes, inputs, outputs),
    )  # fmt: skip


def _by_torch(module: nn.Module, shapes: Sequence[Sequence[int]], inputs: list[str], outputs: list[str]) -> ModelProto:
    """What torch's exporter writes of a module."""
    example = tuple(torch.zeros(2, *shape) for shape in shapes)
    batch = {0: torch.export.Dim("batch")}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), patterns_by_operator(), registry_once():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module,
            example,
            dynamo=True,
            verbose=False,
            opset_version=OPSET,
            input_names=inputs,
            output_names=outputs,
            dynamic_shapes=((batch,) * len(example),),
        )
    assert program is not None
    model = program.model_proto
    _strip(model)
    return model


def _strip(model: ModelProto) -> None:
    """Remove what the exporter notes about this machine: paths of source files, traces."""
    del model.metadata_props[:]
    graph = model.graph
    model.doc_string = graph.doc_string = ""
    graph.name = "policy"
    for item in (graph, *graph.node, *graph.input, *graph.output, *graph.initializer, *graph.value_info):
        del item.metadata_props[:]
        item.doc_string = ""
    del graph.value_info[:]


def _name_parameters(model: ModelProto, policy: PolicyGraph) -> None:
    """Give every parameter of the network its own name in the file, by value, so that it can be read back."""
    names = {}
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for name, parameter in policy.state_dict().items():
        value = parameter.numpy()
        match = [key for key, array in arrays.items() if array.shape == value.shape and np.array_equal(array, value)]
        if not match:
            raise ExportError(
                f"torch merged or folded the parameter '{name}'; the exported file would not contain the trained values"
            )
        names[match[0]] = name
        arrays.pop(match[0])
    for tensor in model.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = names.get(name, name)


def read_parameters(path: str | Path) -> dict[str, Tensor]:
    """The network's parameters out of a bundle, by their names in the policy graph."""
    model = onnx.load(str(path))
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return {n: torch.from_numpy(a.copy()) for n, a in arrays.items() if n.startswith(PARTS)}
