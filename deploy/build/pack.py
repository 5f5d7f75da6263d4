"""A bundle from any ONNX graph whose inputs and outputs are a contract's.

For policies of other libraries: the golden vectors are recorded with onnxruntime from signals that you give.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto

from robo_rl.contract import Contract
from robo_rl.controllers.start_pose import require_start
from robo_rl.deploy.robot.bundle import CONTRACT_KEY, DIGEST_KEY, GOLDEN_KEY, MAX_BYTES, NO_DIGEST, Bundle, Golden, seal
from robo_rl.deploy.robot.bundle.attachment import FILES_KEY, Attached
from robo_rl.files import read_bytes, write
from robo_rl.zoo import located

NOTHING = Attached()


def repack(path: str | Path, contract: Contract, out: str | Path, attached: Attached | None = None) -> Bundle:
    """Write the bundle at ``path`` with another contract to ``out``: the same graph, weights and golden vectors.

    ``attached`` are the files of its robot and task, by default those that it has.
    """
    model = onnx.load_from_string(read_bytes(located(path), MAX_BYTES))
    entries = {entry.key: entry.value for entry in model.metadata_props}
    if attached is None:
        attached = Attached.from_json(entries[FILES_KEY]) if FILES_KEY in entries else NOTHING
    return _write(model, contract, entries[GOLDEN_KEY], out, attached)


def pack(
    model: ModelProto,
    contract: Contract,
    signals: Mapping[str, np.ndarray],
    out: str | Path,
    attached: Attached = NOTHING,
) -> Bundle:
    """Write ``model`` with ``contract`` and golden vectors for ``signals``, (steps, *dimensions), to ``out``.

    ContractError where the robot starts from what the contract does not allow.
    """
    require_start(contract)
    return _write(model, contract, _record(model, contract, signals).to_json(), out, attached)


def _write(model: ModelProto, contract: Contract, golden: str, out: str | Path, attached: Attached) -> Bundle:
    out, packed = Path(out), ModelProto()
    packed.CopyFrom(model)
    del packed.metadata_props[:]
    entries = {CONTRACT_KEY: contract.to_json(), GOLDEN_KEY: golden, DIGEST_KEY: NO_DIGEST}
    if attached.files:
        entries[FILES_KEY] = attached.to_json()
    for key, value in entries.items():
        packed.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(packed, full_check=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    write(out, seal(packed.SerializeToString(deterministic=True)))
    return Bundle.read(out)


def _record(model: ModelProto, contract: Contract, signals: Mapping[str, np.ndarray]) -> Golden:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {name: np.asarray(value, np.float32) for name, value in signals.items()}
    state, states, outputs = contract.initial_state[None], [contract.initial_state], []
    for k in range(len(next(iter(given.values())))):
        *commands, state = session.run(None, {n: v[k : k + 1] for n, v in given.items()} | {"state": state})
        states.append(state[0])
        outputs.append([command[0] for command in commands])
    by_name = {c.name: np.stack([step[i] for step in outputs]) for i, c in enumerate(contract.commands)}
    return Golden(given, np.stack(states), by_name)
