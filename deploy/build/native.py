"""A bundle's graph as machine code for the robot's computer: the generated C, compiled, behind the runtime's checks.

    Policy.load("policy.onnx", 100, native=True)             compiled here, now: a part of a second
    Policy.load("policy.onnx", 100, native="policy.so")      compiled elsewhere: robo-rl export policy.onnx --native

A library is used only for the bundle that it was made from (its digest is in it), on a processor that has the
instructions it needs, and if it reproduces the golden vectors. A library is code that this process runs: load only
what you or somebody you trust compiled. Nothing signs it, so where keys are demanded it is compiled here.
"""

from __future__ import annotations

import ctypes
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from robo_rl.contract import Contract
from robo_rl.deploy.robot.bundle import Bundle, BundleError, command_differences, greatest
from robo_rl.deploy.robot.runtime import GOLDEN_TOLERANCE, SignalError

INTERFACE = 1
"""Of the functions in templates/native.c."""


class NativeError(BundleError):
    """There is no machine code for a bundle here. The message says why, and what to do."""


class _Sizes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("interface", "signals", "state", "commands", "arena")]


class NativeGraph:
    """Runs a bundle's graph as ``robo_rl.deploy.robot.runtime.BoundGraph`` does, in machine code: one robot, from
    one thread."""

    def __init__(self, bundle: Bundle, library: str | Path) -> None:
        """NativeError unless the library is this bundle's, fits this computer and reproduces the golden vectors."""
        self.library = Path(library).absolute()
        contract = bundle.contract
        functions = _opened(self.library)
        try:
            sizes = _Sizes.in_dll(functions, "robo_rl_native_sizes")
            made_from = (ctypes.c_char * 65).in_dll(functions, "robo_rl_native_bundle").value.decode("ascii", "replace")
            needs = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(functions, "robo_rl_native_needs"))).decode()
            step = functions.robo_rl_native_step
        except (ValueError, AttributeError):
            raise NativeError(f"{library}: it is no library of a policy; expected one of 'export --native'") from None
        if made_from != bundle.digest:
            raise NativeError(
                f"{library}: it was compiled from the bundle {made_from[:12]}…; this one is {bundle.digest[:12]}…. "
                "Compile it again: robo-rl export policy.onnx --native"
            )
        lacking = [word for word in needs.split() if word not in processor_flags()]
        if lacking:
            raise NativeError(f"{library}: this processor lacks {', '.join(lacking)}; compile it here (native=True)")
        self._layout(contract)
        found = (sizes.interface, sizes.signals, sizes.commands)
        expected = (INTERFACE, self._signals.nbytes, self._commands.nbytes)
        if found != expected:
            raise NativeError(f"{library}: its interface and sizes are {found}; expected {expected}. Compile it again")
        arena = np.zeros(sizes.arena + 64, np.uint8)
        self._arena = arena[-arena.ctypes.data % 64 :]
        step.argtypes, step.restype = [ctypes.c_void_p] * 4, ctypes.c_uint32
        self._step = step
        self._places = tuple(a.ctypes.data for a in (self._signals, self._state, self._commands, self._arena))
        self.golden_error = self._replay(bundle)
        if not self.golden_error <= GOLDEN_TOLERANCE:
            raise NativeError(
                f"{library}: its golden vectors have an error of {self.golden_error:.2g} on this machine; expected at "
                f"most {GOLDEN_TOLERANCE:g}. Use onnxruntime"
            )

    def _layout(self, contract: Contract) -> None:
        """Flat arrays that the C works on, and where signals and commands are in them."""
        self._signals = np.zeros(sum(s.size for s in contract.signals), np.float32)
        self._commands = np.zeros(sum(c.size for c in contract.commands), np.float32)
        self._state = np.zeros(max(1, contract.state_size), np.float32)
        self._memory = self._state[: contract.state_size]
        ends = np.cumsum([s.size for s in contract.signals])
        parts = np.split(self._signals, ends[:-1])
        self._inputs = [(s.name, part.reshape(s.dimensions)) for s, part in zip(contract.signals, parts, strict=True)]
        ends = np.cumsum([0, *(c.size for c in contract.commands)]).tolist()
        spans = zip(contract.commands, ends[:-1], ends[1:], strict=True)
        self._outputs = [(c.name, slice(first, last)) for c, first, last in spans]

    def run(self, signals: Mapping[str, np.ndarray], state: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Commands (k,) by name and the next state (1, S), for signals (*dimensions) by name and a state (1, S).

        SignalError if a command or the memory is not finite.
        """
        for name, array in self._inputs:
            array[...] = signals[name]
        self._memory[:] = state[0]
        if self._step(*self._places):
            raise SignalError(f"the policy gives no finite commands for signals {signals}; expected finite numbers")
        commands = self._commands.copy()
        return {name: commands[span] for name, span in self._outputs}, self._memory[None].copy()

    def _replay(self, bundle: Bundle) -> float:
        """As ``Bundle.golden_error``, of the machine code; infinite where it refuses a step."""
        golden, differences = bundle.golden, []
        for k in range(len(golden)):
            memory = golden.states[k : k + 1]
            try:
                commands, state = self.run({name: value[k] for name, value in golden.signals.items()}, memory)
            except SignalError:
                return float("inf")
            expected = {name: value[k] for name, value in golden.commands.items()}
            differences += [
                state - golden.states[k + 1],
                *command_differences(bundle.contract, commands, expected),
            ]
        return greatest(differences)


def native_graph(bundle: Bundle, library: str | Path | None = None) -> NativeGraph:
    """The graph of a library; without one, of a library that is compiled now. NativeError where there is none."""
    if library is not None:
        return NativeGraph(bundle, library)
    try:
        from robo_rl.deploy.build.c.graph import UnsupportedError
        from robo_rl.deploy.build.c.native import CompileError, compile_native
    except ModuleNotFoundError as missing:
        raise NativeError(
            f"to compile a bundle needs the package '{missing.name}' (pip install 'robo-rl[firmware]'); or compile it "
            "on another computer: robo-rl export policy.onnx --native"
        ) from None
    with tempfile.TemporaryDirectory(prefix="robo-rl-native-") as folder:
        try:
            return NativeGraph(bundle, compile_native(bundle, Path(folder) / "policy.so"))
        except (CompileError, UnsupportedError) as error:
            raise NativeError(str(error)) from None


def processor_flags() -> set[str]:
    """What this computer's processor can do, as /proc/cpuinfo tells it."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return set()
    lines = info.read_text(errors="replace").splitlines()
    return {word for line in lines if line.startswith(("flags", "Features")) for word in line.split(":", 1)[-1].split()}


def _opened(library: Path) -> ctypes.CDLL:
    if not library.is_file():
        raise NativeError(f"{library}: there is no such file; expected a library of 'robo-rl export --native'")
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise NativeError(
            f"{library}: this computer ({platform.machine()}) can't load it ({error}); compile it for this one"
        ) from None
