"""Kinds of robots, found by folder: what a package of robo-rl has for a kind is in its folder of that kind's name.

So a kind is a folder in each of ``robo_rl.sim.robots``, ``sim.tasks``, ``controllers``, ``report``, ``identification``,
``evaluate`` and ``ros.twins``, as far as it has something to tell there, and nothing else names it. Packages of others
have entry points instead, which have the kind's name.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any


@functools.cache
def kinds_in(package: str) -> tuple[str, ...]:
    """The folders with code in a package, which may not all be kinds; sorted. None is imported. Looked at once."""
    path = importlib.import_module(package).__path__
    return tuple(sorted(module.name for module in pkgutil.iter_modules(path) if module.ispkg))


def of_kind(package: str, kind: str, group: str = "") -> Any:
    """The module that a package has for a ``kind``, or that an entry point of the ``group`` names; None without one."""
    if kind in kinds_in(package):
        return importlib.import_module(f"{package}.{kind}")
    return next((point.load() for point in offered(group) if point.name == kind), None) if group else None


def offered(group: str) -> tuple[EntryPoint, ...]:
    """Entry points of a ``group``, of all packages that are installed."""
    return _offered(group, tuple(sys.path))


@functools.cache
def _offered(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Python reads a file of each installed package for it, some hundred: once for a path where packages lie."""
    return tuple(entry_points(group=group))
