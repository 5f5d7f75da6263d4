"""The policies of the zoo whose interface is rebuilt from their contract alone, and how."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.contract_only import driving, fetching, flying, handling, inserting, racing, rolling, walking

ROOT = Path(__file__).parents[2]
ZOO, ROBOTS = ROOT / "robo_rl" / "zoo", ROOT / "sim" / "robots"
"""Bundles; the models of robots, which a stranger has from their makers."""
PANDA, GO2, G1, SO101, FETCHER = (
    ROBOTS / name / f"{name}.xml" for name in ("panda", "go2", "g1", "so101", "turtlebot3_manipulation")
)


def _of(run: Callable[..., float], name: str, *given: Path, **more: Any) -> Callable[..., float]:
    return partial(run, ZOO / f"{name}.onnx", *given, **more)


REBUILT: dict[str, Callable[..., float]] = {
    **{name: _of(flying.success, name) for name in (
        "quadrotor-hover", "quadrotor-track", "quadrotor-rates", "quadrotor-rates-crazyflie")},
    "car-race": _of(racing.success, "car-race"),
    "car-practice": _of(racing.success, "car-practice"),
    **{name: _of(driving.success, name) for name in ("car-lanes", "car-traffic", "car-traffic-lidar")},
    "diff-nav": _of(rolling.success, "diff-nav"),
    "diff-follow": _of(rolling.success, "diff-follow"),
    "arm-reach": _of(handling.success, "arm-reach", PANDA),
    "arm-place": _of(handling.success, "arm-place", PANDA),
    "arm-place-so101": _of(handling.success, "arm-place-so101", SO101, kind=fetching.Servos),
    "mobile-place": _of(handling.success, "mobile-place", FETCHER, kind=fetching.Fetcher),
    "arm-insert": _of(inserting.success, "arm-insert", PANDA),
    **{name: _of(walking.success, name, GO2) for name in ("go2-flat", "go2-rough", "go2-recover")},
    "g1-walk": _of(walking.success, "g1-walk", G1),
}  # fmt: skip
"""By name, the part of so many episodes with a seed that succeed."""


def figure(name: str) -> float:
    """The part that succeeds in the policy's own evaluation."""
    return json.loads((ZOO / f"{name}.json").read_text())["evaluation"]["success"]
