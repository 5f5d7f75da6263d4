"""robo-rl driver."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from robo_rl.console import give, say


def main(
    what: Annotated[Literal["check"], tyro.conf.Positional],
    driver: Annotated[str, tyro.conf.Positional],
    policy: str = "zoo:go2-flat",
    port: str = "",
    calibration: str = "",
    robot_file: str = "",
    setpoint: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
    json: bool = False,
) -> int:
    """Check that a driver holds what docs/driver.md asks of it, on an emulator or on a robot that hangs free.

    It is enabled once and follows; an enable that takes seconds; a refused one, whose cause is removed; a late first
    sample; pauses of robot and computer; Ctrl-C, once and twice, at every moment; a program that dies without close;
    close twice. THE ROBOT MOVES: to its start pose, and for a moment by the policy. Exits with 1 if a check fails. With
    --json: driver, checks, failed.

    Args:
        what: check.
        driver: The driver: a name as for 'robo-rl run --driver', a file (*.py) with make(contract, settings), or
            FILE.py:CLASS, called with the contract and the settings.
        policy: A bundle (*.onnx, or zoo:NAME) for this robot.
        port: Device, address or network interface; by default the driver's usual one.
        calibration: The robot's calibration file.
        robot_file: What differs between two robots of a type (*.toml).
        setpoint: Operator's signals, each 'NAME=1.0 0.0 …'; those not given are zero within their limits.
        only: Names of checks, to run these alone.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.deploy.robot.conformance import CHECKS, Bench, check
    from robo_rl.deploy.robot.drivers.driver import Settings
    from robo_rl.deploy.robot.named_values import numbers_by_name
    from robo_rl.deploy.robot.runtime import Policy

    if unknown := sorted(set(only) - set(CHECKS)):
        raise ValueError(f"--only has {unknown}; expected some of {list(CHECKS)}")
    contract = Bundle.read(policy).contract
    loaded = Policy.load(policy, 1 / contract.control_period)
    make, settings = factory(driver), Settings(port, robot_file, calibration)
    make(contract, settings)  # one that this policy is not for refuses it here, in one sentence
    setpoints = {**at_rest(contract), **numbers_by_name(setpoint, contract, "--setpoint")}
    outcomes = []
    for outcome in check(lambda: Bench(make(contract, settings), loaded, setpoints), only):
        told = f"FAILED  {outcome.name}: {outcome.sentence}" if outcome.sentence else f"passed  {outcome.name}"
        say(told, json)
        outcomes.append(outcome)
    failed = {outcome.name: outcome.sentence for outcome in outcomes if outcome.sentence}
    say(f"{len(outcomes) - len(failed)} of {len(outcomes)} checks passed", json)
    give({"driver": driver, "checks": [outcome.name for outcome in outcomes], "failed": failed}, json)
    return 1 if failed else 0


def factory(name: str) -> Callable[[Any, Any], Any]:
    """What makes a driver of a contract and settings."""
    from robo_rl.deploy.robot.drivers import make
    from robo_rl.deploy.robot.drivers.driver import DriverError

    file, mark, inside = name.rpartition(":")
    if not mark or not file.endswith(".py"):
        return lambda contract, settings: make(name, contract, settings)
    path = Path(file)
    if not path.is_file():
        raise DriverError(f"{file}: there is no such file; expected FILE.py:CLASS")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(found := getattr(module, inside, None)):
        raise DriverError(f"{file}: it has no {inside[:60]!r}; expected a class called with contract and settings")
    made: Callable[[Any, Any], Any] = found
    return made


def at_rest(contract: Any) -> dict[str, Any]:
    """The operator's signals while nobody wants anything."""
    import numpy as np

    wanted = [s for s in contract.signals if s.source == "operator"]
    zeros = {s.name: np.clip(np.zeros(s.size), *s.bounds) for s in wanted}
    return {s.name: zeros[s.name].astype(np.float32).reshape(s.dimensions) for s in wanted}
