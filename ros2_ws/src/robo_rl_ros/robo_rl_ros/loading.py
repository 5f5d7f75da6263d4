"""Read a bundle for a robot, and prove that this computer runs it rightly and fast enough. Nothing of ROS here."""

from __future__ import annotations

import time

import numpy as np

from robo_rl.deploy.robot.bundle import BundleError
from robo_rl.deploy.robot.intact import Watch
from robo_rl.deploy.robot.runtime import Policy

SELF_TEST_STEPS = 200
SELF_TEST_PART = 0.5
"""Part of the control period that a policy's step may take; the rest is for messages and the gate."""

__all__ = ["RUNTIMES", "Watch", "load"]
RUNTIMES = ("onnxruntime", "native")
"""native: machine code, compiled when the policy is loaded; onnxruntime where that is not possible."""


def load(
    path: str, digest: str = "", robot: str = "", share: float = 1.0, isolate: bool = False, trusted_keys: str = "",
    runtime: str = "onnxruntime",
) -> tuple[Policy, float]:  # fmt: skip
    """The policy in a file, and the s that a step takes. BundleError if it must not be used.

    ``digest``: what its digest must begin with; ``robot``: whom it must be for; "": any. ``share``: the part of
    ``SELF_TEST_PART`` that it may use. ``isolate``: its graph runs in a process of its own.
    ``trusted_keys``: a file of public keys, one of which must have signed it; "": any or none.
    ``runtime``: what runs its graph, one of ``RUNTIMES``.
    """
    if runtime not in RUNTIMES:
        raise BundleError(f"parameter 'runtime' is {runtime!r}; expected one of {RUNTIMES}")
    if not path:
        raise BundleError("parameter 'bundle' is empty; expected the path of a bundle (*.onnx)")
    policy = Policy.load(path, None, isolate, trusted_keys or None, native=runtime == "native")
    contract = policy.contract
    if not policy.bundle.digest.startswith(digest):
        raise BundleError(f"{path}: its digest is {policy.bundle.digest}; expected {digest}")
    if robot and robot != contract.robot_name:
        raise BundleError(f"{path}: it is for the robot '{contract.robot_name}'; expected '{robot}'")
    took, allowed = _median_step(policy), share * SELF_TEST_PART * contract.control_period
    if took > allowed:
        raise BundleError(
            f"{path}: a step takes {1e3 * took:.2f} ms on this computer; expected at most {1e3 * allowed:.2f} ms at "
            f"{1 / contract.control_period:g} Hz"
        )
    return policy, took


def _median_step(policy: Policy) -> float:
    """s that a step takes, on the bundle's own golden signals."""
    golden, times = policy.bundle.golden, []
    given = [s.name for s in policy.contract.signals if s.source != "runtime"]  # a runtime computes ages itself
    for k in range(SELF_TEST_STEPS):
        signals = {name: golden.signals[name][k % len(golden)] for name in given}
        start = time.perf_counter()
        policy.step(signals)
        times.append(time.perf_counter() - start)
    policy.reset()
    return float(np.median(times))
