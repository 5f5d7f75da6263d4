"""Parameters in files of torch, rsl_rl, stable-baselines3 and safetensors, without running anything of the file.

Pickles are read by ``torch.load(weights_only=True)`` or by an unpickler that knows numpy's arrays alone, in a process
of its own with little memory (``robo_rl.files.sandbox``). What comes back are arrays and text.
"""

from __future__ import annotations

import ast
import importlib
import io
import json
import pickle
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from robo_rl.adapters.foreign import recurrent
from robo_rl.adapters.foreign.description import AdoptionError
from robo_rl.adapters.wrappers import Clipped, Normalized
from robo_rl.files import sandbox as confined
from robo_rl.policy.networks import ACTIVATIONS

MOST = 1 << 28
"""Bytes of a part of an archive."""
WHERE = "robo_rl.adapters.foreign.parameters"


@dataclass(frozen=True)
class Parameters:
    """Arrays by name, and what the file says besides."""

    arrays: Mapping[str, np.ndarray]
    told: Mapping[str, Any] = field(default_factory=dict)


# --- files ----------------------------------------------------------------------------------------------------


def read(data: bytes, where: str) -> Parameters:
    """The parameters in a checkpoint (.pt, .pth), a stable-baselines3 .zip, or a .safetensors file."""
    kind = "sb3" if _is_sb3(data) else "safetensors" if where.endswith(".safetensors") else "torch"
    try:
        found = confined.attempt(f"{WHERE}:parsed_{kind}", data)
    except confined.Refused as error:
        raise AdoptionError(f"{where}: its parameters can't be read ({error})") from None
    return _unpacked(found)


def _is_sb3(data: bytes) -> bool:
    try:
        return {"data", "policy.pth"} <= set(zipfile.ZipFile(io.BytesIO(data)).namelist())
    except zipfile.BadZipFile:
        return False


def is_script(data: bytes) -> bool:
    """Whether it is an archive of TorchScript: those have code."""
    try:
        return any("/code/" in name for name in zipfile.ZipFile(io.BytesIO(data)).namelist())
    except zipfile.BadZipFile:
        return False


def parsed_torch(data: bytes) -> bytes:
    """In a process of its own: tensors by their path, joined by dots."""
    torch.set_num_threads(1)
    found = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    return _packed(_flat(found), {})


def parsed_safetensors(data: bytes) -> bytes:
    """In a process of its own."""
    from safetensors.numpy import load

    return _packed(load(data), {})


def parsed_sb3(data: bytes) -> bytes:
    """In a process of its own: the policy's parameters, and the settings that are readable text."""
    torch.set_num_threads(1)
    archive = zipfile.ZipFile(io.BytesIO(data))
    for part in ("data", "policy.pth"):
        if archive.getinfo(part).file_size > MOST:
            raise ValueError(f"its part '{part}' is larger than {MOST} bytes")
    settings = json.loads(archive.read("data"))
    found = torch.load(io.BytesIO(archive.read("policy.pth")), map_location="cpu", weights_only=True)
    told: dict[str, Any] = {"policy": str(settings.get("policy_class", {}).get("__module__", "")).split(".")[-2:]}
    kwargs = settings.get("policy_kwargs") or {}
    if "activation_fn" in kwargs:
        told["activation"] = re.sub(r".*\.(\w+)'>$", r"\1", str(kwargs["activation_fn"])).lower()
    told["squashed"] = str(kwargs.get("squash_output", "False"))
    bounds = settings.get("action_space", {})
    arrays = _flat(found)
    for end in ("low", "high"):
        if (given := _numbers(str(bounds.get(end, "")))) is not None:
            arrays[f"action_space.{end}"] = given
    told["normalized"] = "VecNormalize" in str(settings.get("_vec_normalize_env", ""))
    return _packed(arrays, told)


def _numbers(text: str) -> np.ndarray | None:
    """numpy's text of a vector as numbers; None where it left some out."""
    try:
        return np.array(ast.literal_eval(re.sub(r"(?<=[\d.])\s+(?=[-\d])", ", ", text)), np.float32)
    except (ValueError, SyntaxError):
        return None


def _flat(value: Any, prefix: str = "") -> dict[str, np.ndarray]:
    if isinstance(value, torch.Tensor):
        return {prefix: value.detach().float().numpy()} if value.numel() <= MOST // 4 else {}
    found: dict[str, np.ndarray] = {}
    if isinstance(value, Mapping):
        for key, item in value.items():
            if "optimizer" not in str(key):
                found |= _flat(item, f"{prefix}.{key}" if prefix else str(key))
    return found


def _packed(arrays: Mapping[str, np.ndarray], told: Mapping[str, Any]) -> bytes:
    packed = io.BytesIO()
    head = json.dumps({"names": list(arrays), "told": dict(told)}).encode()
    numbered: dict[str, Any] = {f"a{i}": a for i, a in enumerate(arrays.values())}
    np.savez(packed, head=np.frombuffer(head, np.uint8), **numbered)
    return packed.getvalue()


def _unpacked(data: bytes) -> Parameters:
    with np.load(io.BytesIO(data), allow_pickle=False) as packed:
        head = json.loads(bytes(packed["head"]).decode())
        return Parameters({name: packed[f"a{i}"] for i, name in enumerate(head["names"])}, head["told"])


# --- statistics of VecNormalize ---------------------------------------------------------------------------------


class _Stub:
    """Stands for an object of a class that isn't loaded; keeps its state."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


CORE: Any = importlib.import_module("numpy._core" if np.__version__ >= "2" else "numpy.core")
ARRAYS = {
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    **{(f"numpy.{core}.multiarray", name): getattr(CORE.multiarray, name)
       for core in ("core", "_core") for name in ("_reconstruct", "scalar")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): CORE.numeric._frombuffer for core in ("core", "_core")},
}  # fmt: skip


class _Restricted(pickle.Unpickler):
    """Makes numpy's arrays, and stubs for everything else: no function of the file's choice is called."""

    def find_class(self, module: str, name: str) -> Any:
        return ARRAYS.get((module, name)) or type(name, (_Stub,), {})


def parsed_statistics(data: bytes) -> bytes:
    """In a process of its own: mean, variance, epsilon and clip of a pickled VecNormalize."""
    state = getattr(_Restricted(io.BytesIO(data)).load(), "state", None)
    if not isinstance(state, dict) or "obs_rms" not in state:
        raise ValueError("it holds no VecNormalize")
    inner = getattr(state["obs_rms"], "state", None)
    if not isinstance(inner, dict):
        raise ValueError("its VecNormalize has no statistics of one vector of observations")
    arrays = {"mean": np.asarray(inner["mean"], np.float64), "var": np.asarray(inner["var"], np.float64)}
    told = {"epsilon": float(state["epsilon"]), "clip": float(state["clip_obs"]), "used": bool(state["norm_obs"])}
    return _packed(arrays, told)


def read_statistics(data: bytes, where: str) -> nn.Module:
    """What the VecNormalize in a .pkl file does to observations."""
    try:
        found = _unpacked(confined.attempt(f"{WHERE}:parsed_statistics", data))
    except confined.Refused as error:
        raise AdoptionError(f"{where}: it can't be read as the statistics of a VecNormalize ({error})") from None

    class _Statistics:
        mean, var = found.arrays["mean"], found.arrays["var"]

    if not found.told["used"]:
        return nn.Identity()
    return Normalized(_Statistics, found.told["epsilon"], found.told["clip"])


# --- networks ---------------------------------------------------------------------------------------------------


KNOWN = (
    "actor", "mlp", "actor_state_dict.mlp", "model_state_dict.actor", "model_state_dict.student",
    "model_state_dict.actor.mlp", "mlp_extractor.policy_net+action_net", "actor.latent_pi+actor.mu",
    "actor.mu",
)  # fmt: skip
"""Where trainers have their actors: rsl_rl, stable-baselines3's PPO, SAC and TD3. A + joins two parts."""
NORMALIZERS = (
    "actor_state_dict.obs_normalizer", "model_state_dict.actor_obs_normalizer", "obs_norm_state_dict",
    "obs_normalizer", "actor_obs_normalizer", "normalizer",
)  # fmt: skip
RSL_EPSILON = 1e-2
"""Added to the deviation: rsl_rl, modules/normalization.py."""


def prefixes(arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Names below which there are layers."""
    found = {re.sub(r"\.\d+\.weight$", "", name) for name in arrays if re.search(r"\.\d+\.weight$", name)}
    return sorted(found)


def actor_prefix(arrays: Mapping[str, np.ndarray]) -> str:
    """The one that is known to be an actor's; "" where none is, or several are."""
    found = [prefix for prefix in KNOWN if all(_layers(arrays, part) for part in prefix.split("+"))]
    return max(found, key=len) if found else ""


def _layers(arrays: Mapping[str, np.ndarray], prefix: str) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Weights and biases below a prefix, in order: "P.0", "P.2", …, or "P" itself."""
    if f"{prefix}.weight" in arrays and arrays[f"{prefix}.weight"].ndim == 2:
        return [(arrays[f"{prefix}.weight"], arrays.get(f"{prefix}.bias"))]
    pattern = re.compile(re.escape(prefix) + r"\.(\d+)\.weight")
    numbers = sorted(int(match[1]) for name in arrays if (match := pattern.fullmatch(name)))
    return [(arrays[f"{prefix}.{i}.weight"], arrays.get(f"{prefix}.{i}.bias")) for i in numbers]


def network(found: Parameters, layers: Mapping[str, Any], where: str) -> nn.Module:
    """The network that ``layers`` describes: prefix, activation, normalizer, recurrence, output ("linear" or "tanh").

    A prefix "a+b" has the last layer in b. An activation stands between all layers. ``recurrence``: where there are
    layers of LSTM or GRU between the normalizer and the others.
    """
    if not (recurrence := layers.get("recurrence", "")):
        return _plain(found, layers, where)
    name = layers.get("normalizer", "")
    before = _normalizer(found.arrays, name, where) if name else nn.Identity()
    cells = recurrent.cells(found.arrays, recurrence, where)
    head = _plain(found, {**layers, "normalizer": ""}, where)
    if head.observation_size != cells[-1].width:
        raise AdoptionError(
            f"{where}: the layers below '{layers['prefix']}' take {head.observation_size} numbers; expected the "
            f"{cells[-1].width} of '{recurrence}'"
        )
    return recurrent.Recurrent(before, cells, head)


def _plain(found: Parameters, layers: Mapping[str, Any], where: str) -> nn.Module:
    prefix, activation = layers.get("prefix", ""), layers.get("activation", "")
    parts = [part for name in prefix.split("+") for part in _layers(found.arrays, name)]
    if not parts:
        known = prefixes(found.arrays)
        raise AdoptionError(f"{where}: layers.prefix is '{prefix}'; expected where its layers are, one of {known}")
    if activation not in ACTIVATIONS:
        raise AdoptionError(f"{where}: layers.activation is '{activation}'; expected one of {sorted(ACTIVATIONS)}")
    made: list[nn.Module] = []
    for i, (weight, bias) in enumerate(parts):
        if weight.ndim != 2 or (i and weight.shape[1] != parts[i - 1][0].shape[0]):
            raise AdoptionError(
                f"{where}: layer {i} below '{prefix}' has the shape {weight.shape}; expected a linear layer that takes "
                "what the one before gives"
            )
        linear = nn.Linear(weight.shape[1], weight.shape[0])
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight.copy()))
            linear.bias.copy_(torch.zeros(len(weight)) if bias is None else torch.from_numpy(bias.copy()))
        made += [linear, ACTIVATIONS[activation]()]
    del made[-1]
    if layers.get("output", "linear") == "tanh":
        made.append(nn.Tanh())
    if name := layers.get("normalizer", ""):
        made.insert(0, _normalizer(found.arrays, name, where))
    if "action_space.low" in found.arrays and layers.get("output", "linear") == "linear":
        made.append(Clipped(found.arrays["action_space.low"], found.arrays["action_space.high"]))
    result = nn.Sequential(*made)
    result.observation_size = parts[0][0].shape[1]
    return result


class _Empirical(nn.Module):
    """(x − mean) / (deviation + 0.01): rsl_rl's normalisation."""

    def __init__(self, mean: np.ndarray, deviation: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(mean.reshape(1, -1).copy()))
        self.register_buffer("deviation", torch.from_numpy(deviation.reshape(1, -1).copy()))

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return (observation - self.get_buffer("mean")) / (self.get_buffer("deviation") + RSL_EPSILON)


def normalizer_prefix(arrays: Mapping[str, np.ndarray]) -> str:
    """Where rsl_rl's normalisation of observations is; "" if there is none."""
    return next((name for name in NORMALIZERS if f"{name}._mean" in arrays), "")


def _normalizer(arrays: Mapping[str, np.ndarray], name: str, where: str) -> nn.Module:
    if f"{name}._mean" not in arrays or f"{name}._std" not in arrays:
        raise AdoptionError(
            f"{where}: layers.normalizer is '{name}'; expected where '_mean' and '_std' are, or no such field"
        )
    return _Empirical(arrays[f"{name}._mean"], arrays[f"{name}._std"])
