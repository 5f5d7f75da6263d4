"""Engines and physics that a task's policy has not been trained in, each as a plant of the same quantities.

A robot is none of them. What a policy can do in all of them does not rest on how one engine solves contacts or takes
its time steps. ``Task.engines`` lists those of a task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Engine:
    """One way to simulate a task's robot."""

    name: str
    summary: str
    make_plant: Callable[[int], Any]
    part: float = 1.0
    """Of the episodes that are run here: less than all where it is slow."""
