"""The policies of the zoo whose interface is rebuilt from their contract alone, and how."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.contract_only import flying, handling, racing, rolling, walking

ROOT = Path(__file__).parents[2]
ZOO, ROBOTS = ROOT / "robo_rl" / "zoo", ROOT / "sim" / "robots"
"""Bundles; the models of robots, which a stranger has from their makers."""
PANDA, GO2 = ROBOTS / "panda" / "panda.xml", ROBOTS / "go2" / "go2.xml"


def _of(run: Callable[..., float], name: str, *given: Path) -> Callable[..., float]:
    return partial(run, ZOO / f"{name}.onnx", *given)


REBUILT: dict[str, Callable[..., float]] = {
    **{name: _of(flying.success, name) for name in (
        "quadrotor-hover", "quadrotor-track", "quadrotor-rates", "quadrotor-rates-crazyflie")},
    "car-race": _of(racing.success, "car-race"),
    "diff-nav": _of(rolling.success, "diff-nav"),
    "diff-follow": _of(rolling.success, "diff-follow"),
    "arm-reach": _of(handling.success, "arm-reach", PANDA),
    "arm-place": _of(handling.success, "arm-place", PANDA),
    **{name: _of(walking.success, name, GO2) for name in ("go2-flat", "go2-rough", "go2-recover")},
}  # fmt: skip
"""By name, the part of so many episodes with a seed that succeed."""


def figure(name: str) -> float:
    """The part that succeeds in the policy's own evaluation."""
    return json.loads((ZOO / f"{name}.json").read_text())["evaluation"]["success"]
