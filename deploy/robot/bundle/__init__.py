"""The bundle: one .onnx file with a policy's graph, its contract and golden vectors.

Anyone with plain onnxruntime can run the graph. robo-rl's runtimes read the contract, check that not one byte of
the file has changed since it was exported, and replay the golden vectors before they trust it.

The graph's inputs are the contract's signals, by name and (batch, *dimensions) each, and ``state`` (batch,
state_size); its outputs are the commands and ``next_state``. The contract, the golden vectors and the digest
are entries of the file's ONNX metadata, and so are the files of a robot or task that robo-rl does not come with
(``robo_rl.deploy.robot.bundle.attachment``). The digest is the SHA-256 of the whole file with the digest's own 64
characters set to zero. It finds accidents and edits. It is not a signature: whoever edits a file on purpose
can compute it anew; signatures lie beside the file (``robo_rl.deploy.robot.bundle.signing``).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from robo_rl.contract import Contract, ContractError
from robo_rl.deploy.robot.bundle import onnx_file
from robo_rl.deploy.robot.bundle.attachment import FILES_KEY, Attached, AttachmentError
from robo_rl.files import sandbox as confined
from robo_rl.files.escaping import shell_word
from robo_rl.zoo import FOLDER, located

CONTRACT_KEY, GOLDEN_KEY, DIGEST_KEY = "robo_rl.contract", "robo_rl.golden", "robo_rl.digest"
NO_DIGEST = "0" * 64
MAX_BYTES = 1 << 27
MAX_STEPS = 4096
"""Golden steps, which are replayed whenever a policy is loaded."""
TRIAL_SECONDS = 4.0
"""Of processor time, for loading the graph and replaying its golden vectors."""
GOLDEN_OBJECTS = 3
"""In the JSON of golden vectors: arrays are text."""
# an entry of ONNX metadata is a protobuf message: tag 0x0a, length, key; tag 0x12, length, value
_DIGEST = re.compile(DIGEST_KEY.encode() + rb"\x12\x40([0-9a-f]{64})")


class BundleError(ValueError):
    """A bundle must not be used. The message names the file and what is wrong with it."""


@dataclass(frozen=True)
class Golden:
    """A recorded sequence of steps from the initial state: what went in, and what must come out."""

    signals: dict[str, np.ndarray]
    """(steps, *dimensions) by signal."""
    states: np.ndarray
    """(steps + 1, state_size): before the first step, and after each."""
    commands: dict[str, np.ndarray]
    """(steps, elements) by command."""

    def __len__(self) -> int:
        return len(self.states) - 1

    def to_json(self) -> str:
        """JSON with the arrays as little-endian float32 in base 64."""
        pack = {
            "steps": len(self),
            "signals": {name: _encode(value) for name, value in self.signals.items()},
            "states": _encode(self.states),
            "commands": {name: _encode(value) for name, value in self.commands.items()},
        }
        return json.dumps(pack, sort_keys=True)

    @staticmethod
    def from_json(text: str, contract: Contract) -> Golden:
        """Read back; the contract tells which arrays of which shapes there must be."""
        try:
            if text.count("{") > GOLDEN_OBJECTS or "[" in text:
                raise ValueError("more lists or objects than golden vectors have")
            data = json.loads(text)
            steps = data["steps"]
            if type(steps) is not int or not 1 <= steps <= MAX_STEPS:
                raise ValueError(f"steps is {str(steps)[:100]!r}; expected an integer from 1 to {MAX_STEPS}")
            return Golden(
                {s.name: _decode(data["signals"][s.name], (steps, *s.dimensions)) for s in contract.signals},
                _decode(data["states"], (steps + 1, contract.state_size)),
                {c.name: _decode(data["commands"][c.name], (steps, c.size)) for c in contract.commands},
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BundleError(f"golden vectors are damaged ({error}); expected those of the contract") from None


def _encode(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()


def _decode(text: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").reshape(shape).astype(np.float32)


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read and found whole."""

    path: Path
    contract: Contract
    golden: Golden
    digest: str
    session: onnxruntime.InferenceSession
    attached: Attached = field(default_factory=Attached)

    @staticmethod
    def read(path: str | Path, threads: int = 1, tried: str = "", expected: str = "") -> Bundle:
        """Read, and refuse what is truncated, changed, or at odds with its own contract. ``zoo:NAME`` is a path too.

        A file that is not from the zoo is tried out in another process first (``trial``), once for each digest;
        ``tried`` is one for which the caller knows that this was done. ``expected``: the digest that it must have; of
        another file nothing is read.
        """
        path = located(path)
        data = _read_bytes(path)
        digest = _check_digest(data, path)
        if expected and digest != expected:
            raise BundleError(f"{path}: it was replaced meanwhile (digest {digest[:12]}…, not {expected[:12]}…)")
        try:
            metadata = onnx_file.metadata(data)
        except onnx_file.GraphError as error:
            raise BundleError(f"{path}: {error}") from None
        for key in (CONTRACT_KEY, GOLDEN_KEY):
            if key not in metadata:
                raise BundleError(f"{path}: no entry '{key}' in its metadata; expected a bundle of 'robo-rl export'")
        try:
            contract = Contract.from_json(metadata[CONTRACT_KEY], str(path))
            golden = Golden.from_json(metadata[GOLDEN_KEY], contract)
            attached = _attached(metadata, contract)
        except (ContractError, BundleError, AttachmentError) as error:
            raise BundleError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
        if path.parent != FOLDER and digest not in {*_tried, tried}:
            try:
                confined.attempt("robo_rl.deploy.robot.bundle:trial", data, os.fsencode(path), seconds=TRIAL_SECONDS)
            except confined.Refused as error:
                said = " ".join(str(error).split())
                raise BundleError(said if str(path) in said else f"{path}: the graph can't be used: {said}") from None
            _tried.add(digest)
        bundle = Bundle(path, contract, golden, digest, _open_session(data, threads, path), attached)
        bundle._check_interface()
        return bundle

    def data(self) -> bytes:
        """The bytes of the file, read again. BundleError if it is another one by now."""
        data = _read_bytes(self.path)
        if _check_digest(data, self.path) != self.digest:
            raise BundleError(f"{self.path}: it is another bundle than the one that was read")
        return data

    @property
    def shipped(self) -> bool:
        """Whether it is from the zoo, as robo-rl came with it."""
        return self.path.parent == FOLDER

    def _check_interface(self) -> None:
        """The graph must have the contract's signals and commands, by name, order, shape and type."""
        contract = self.contract
        inputs = [(s.name, list(s.dimensions)) for s in contract.signals] + [("state", [contract.state_size])]
        outputs = [(c.name, [c.size]) for c in contract.commands] + [("next_state", [contract.state_size])]
        ends = (("input", self.session.get_inputs(), inputs), ("output", self.session.get_outputs(), outputs))
        for what, found, expected in ends:
            batched = all(len(node.shape) >= 2 and not isinstance(node.shape[0], int) for node in found)
            shown = [(node.name, node.shape[1:] if batched else node.shape) for node in found]
            if not batched or shown != expected or any(node.type != "tensor(float)" for node in found):
                raise BundleError(
                    f"{self.path}: the graph's {what}s are {shown}; its contract says {expected}, float32, "
                    "after a batch dimension of any size"
                )

    def run(self, signals: dict[str, np.ndarray], state: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """One step of a batch: signals (n, *dimensions) by name and state (n, S), all float32. No value is checked.

        BundleError if the graph can't be run, or gives arrays of other shapes than the contract's.
        """
        try:
            found = self.session.run(None, {**signals, "state": state})
        except Exception as error:  # onnxruntime's errors share no type below Exception
            raise BundleError(f"{self.path}: the graph can't be run ({error})") from None
        shapes = {c.name: (len(state), c.size) for c in self.contract.commands} | {"next_state": state.shape}
        for (name, shape), value in zip(shapes.items(), found, strict=True):
            if value.shape != shape:
                raise BundleError(f"{self.path}: the graph's output '{name}' has shape {value.shape}; expected {shape}")
        *commands, state = found
        return {c.name: value for c, value in zip(self.contract.commands, commands, strict=True)}, state

    def golden_error(self) -> float:
        """Replay the golden vectors, each step from the memory that was recorded; the greatest deviation.

        Commands count in units of their range. Infinite if anything is not finite. With memory handed on from step to
        step rounding might grow, since recorded signals don't follow what a policy does.
        """
        golden = self.golden
        differences = [self.contract.initial_state[None] - golden.states[:1]]
        for k in range(len(golden)):
            signals = {name: value[k : k + 1] for name, value in golden.signals.items()}
            commands, state = self.run(signals, golden.states[k : k + 1])
            expected = {name: value[k : k + 1] for name, value in golden.commands.items()}
            differences += [state - golden.states[k + 1], *command_differences(self.contract, commands, expected)]
        return greatest(differences)


def _attached(metadata: dict[str, str], contract: Contract) -> Attached:
    """The files of robot and task. Source must be that which the contract names."""
    if FILES_KEY not in metadata:
        return Attached()
    attached, named = Attached.from_json(metadata[FILES_KEY]), contract.provenance
    if found := attached.source_digest:
        file = "source/" + named.source.partition(":")[0]
        if found != named.source_digest or file not in attached.files:
            raise BundleError(
                f"the source in it has the SHA-256 {found[:12]}…; its contract names '{named.source}', "
                f"{named.source_digest[:12] or 'none'}…"
            )
    return attached


def scaled_commands(contract: Contract, commands: dict[str, Any]) -> dict[str, Any]:
    """Commands from 0 at their lower to 1 at their upper limit."""
    scaled = {}
    for name, value in commands.items():
        command = contract.command(name)
        lower, upper = np.array(command.lower, np.float32), np.array(command.upper, np.float32)
        scaled[name] = (np.asarray(value) - lower) / (upper - lower)
    return scaled


def command_differences(contract: Contract, ours: dict[str, Any], theirs: dict[str, Any]) -> list[np.ndarray]:
    """How far two sets of commands are apart, each in units of its range."""
    mine, others = scaled_commands(contract, ours), scaled_commands(contract, theirs)
    return [mine[name] - others[name] for name in mine]


def greatest(differences: Sequence[np.ndarray]) -> float:
    """The greatest absolute value; infinite if any is not finite, so that a NaN never passes for agreement."""
    worst = float(np.max(np.abs(np.concatenate([np.ravel(part) for part in differences])), initial=0.0))
    return worst if np.isfinite(worst) else float("inf")


def seal(data: bytes) -> bytes:
    """Write the digest into the bytes of a bundle whose digest entry still is ``NO_DIGEST``."""
    match = _find_digest(data)
    if match is None:
        raise BundleError("the model has no single digest entry to seal")
    return data[: match.start(1)] + _digest(data, match).encode() + data[match.end(1) :]


def _find_digest(data: bytes) -> re.Match[bytes] | None:
    matches = list(_DIGEST.finditer(data))
    return matches[0] if len(matches) == 1 else None


def _digest(data: bytes, match: re.Match[bytes]) -> str:
    whole, found = memoryview(data), hashlib.sha256()
    for part in (whole[: match.start(1)], NO_DIGEST.encode(), whole[match.end(1) :]):
        found.update(part)
    return found.hexdigest()


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise BundleError(f"{path}: it is a folder; expected a bundle (*.onnx), as 'robo-rl export' writes it of a run")
    if not path.is_file():
        raise BundleError(f"{path}: there is no such file; expected a bundle, as 'robo-rl export' writes it")
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise BundleError(f"{path}: {size} bytes; expected at most {MAX_BYTES}")
    return path.read_bytes()


def _check_digest(data: bytes, path: Path) -> str:
    match = _find_digest(data)
    if match is None:
        raise BundleError(f"{path}: {_foreign(data, path)}expected a whole bundle, as 'robo-rl export' writes it")
    written, found = match[1].decode(), _digest(data, match)
    if written != found:
        raise BundleError(
            f"{path}: the file was changed or damaged after export (its digest says {written[:12]}…, its bytes "
            f"give {found[:12]}…); export it again"
        )
    return found


def _foreign(data: bytes, path: Path) -> str:
    """What a file without a digest is: an ONNX file of another program, with its inputs and outputs, or damaged."""
    if DIGEST_KEY.encode() in data or CONTRACT_KEY.encode() in data:
        return "no digest in it; "
    try:
        ends = confined.attempt("robo_rl.deploy.robot.bundle:ends", data, seconds=TRIAL_SECONDS).decode()
    except confined.Refused:
        return "no digest in it; "
    return (
        f"it is not of robo-rl but an ONNX file of another program ({ends}), which says neither units nor limits; to "
        f"make a bundle of it:  robo-rl adopt {shell_word(path)}  (docs/bring-your-policy.md); "
    )


def ends(data: bytes) -> bytes:
    """In a process of its own: the inputs and outputs of a graph, for people."""
    session = _session(data, 1)
    said = []
    for what, nodes in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
        said.append(f"{what} " + ", ".join(f"{node.name} {' × '.join(map(str, node.shape))}" for node in nodes))
    return "; ".join(said)[:400].encode()


_tried: set[str] = set()
"""Digests of files that were tried out by this process."""


def trial(data: bytes, path: bytes) -> bytes:
    """Load a graph and replay its golden vectors: what a process that is confined does with a stranger's file."""
    metadata = onnx_file.metadata(data)
    contract = Contract.from_json(metadata[CONTRACT_KEY])
    golden = Golden.from_json(metadata[GOLDEN_KEY], contract)
    bundle = Bundle(Path(os.fsdecode(path)), contract, golden, "", _session(data, 1))
    bundle._check_interface()
    bundle.golden_error()
    return b""


def file_digest(path: str | Path) -> str:
    """The digest of a whole bundle. BundleError where it was changed."""
    return _check_digest(_read_bytes(Path(path)), Path(path))


def _open_session(data: bytes, threads: int, path: Path) -> onnxruntime.InferenceSession:
    try:
        return _session(data, threads)
    except Exception as error:  # onnxruntime's errors share no type below Exception
        raise BundleError(f"{path}: onnxruntime can't load the graph ({error})") from None


def _session(data: bytes, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors come as exceptions
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
