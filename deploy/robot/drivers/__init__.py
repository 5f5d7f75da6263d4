"""Drivers: what speaks real robots' own protocols, for the plain loop. No torch, no simulator.

A robot has a module here under its name; a package of yours adds one by the entry point ``robo_rl.drivers``, or give
the file: ``--driver ./my_robot.py``. The module's ``make(contract, settings)`` gives a ``driver.Driver``.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from robo_rl.contract import Contract
from robo_rl.contract.kinds import offered
from robo_rl.deploy.robot.drivers.driver import Driver, DriverError, Settings

SIMULATED = "simulated"
"""An emulator, with the same interface: the only one that needs torch."""
ROBOTS = ("so101", "dynamixel", "go2", "g1", "f1tenth", "px4", "franka", "ur", "crazyflie", SIMULATED)


def make(name: str, contract: Contract, settings: Settings) -> Driver:
    """The driver of that name, or in that file (*.py), for a contract. DriverError where there is none."""
    module: Any
    if name.endswith(".py"):
        path = Path(name)
        if not path.is_file():
            raise DriverError(f"{name}: there is no such file; expected a Python file with make(contract, settings)")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    elif name in ROBOTS:
        place = "robo_rl.deploy.emulate.driver" if name == SIMULATED else f"robo_rl.deploy.robot.drivers.{name}"
        module = importlib.import_module(place)
    else:
        points = [point for point in offered("robo_rl.drivers") if point.name == name]
        if not points:
            raise DriverError(f"no driver is called {name[:60]!r}; expected {', '.join(ROBOTS)}, or a file (*.py)")
        module = points[0].load()
    if not hasattr(module, "make"):
        raise DriverError(f"{name}: it has no make(contract, settings); expected one that gives a driver")
    made: Driver = module.make(contract, settings)
    return made
