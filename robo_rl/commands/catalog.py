"""What comes with robo-rl: tasks and robots, as the commands list them.

Computing it needs torch and MuJoCo, and seconds. The same is read from ``catalog.json``, which
``python -m robo_rl.commands.catalog`` writes; what is not in there (cards and packages of users) is computed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robo_rl.contract.kinds import offered

if TYPE_CHECKING:
    from robo_rl.sim.robots import Card

FILE = Path(__file__).with_name("catalog.json")
HEAVY = ("torch", "mujoco", "scipy")


def stored(part: str) -> dict[str, dict[str, Any]]:
    """What the file has under ``part`` ("tasks", "robots", "figures"), by name."""
    return {entry["name"]: entry for entry in json.loads(FILE.read_text())[part]}


def of_robots(part: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """``part`` ("robots" or "figures") of robots, computed of cards that the file does not have, which needs torch."""
    known, compute = stored(part), {"robots": robots, "figures": figures}[part]
    return [entry for name in names for entry in ([known[name]] if name in known else compute([name]))]


def tasks_of_packages(refused: list[str]) -> list[dict[str, Any]]:
    """The facts of tasks of installed packages; messages about those that can't be read go into ``refused``."""
    names = sorted({point.name for point in offered("robo_rl.tasks")} - set(stored("tasks")))
    try:
        return tasks(names, refused) if names else []
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in HEAVY:
            raise
        refused.append(f"{', '.join(names)}: of installed packages, which need '{missing.name}': it is not installed")
        return []


def tasks(names: Iterable[str], refused: list[str]) -> list[dict[str, Any]]:
    """The facts of tasks; messages about those of installed packages that can't be read go into ``refused``."""
    from robo_rl.sim.tasks.loading import load_task

    found = []
    for name in names:
        try:
            spec = load_task(name).spec
        except ValueError as error:  # of an installed package
            refused.append(str(error))
            continue
        found.append(
            {
                "name": name,
                "summary": spec.summary,
                "robot": spec.robot.name,
                "control_hz": 1 / spec.control_period,
                "episode_s": spec.episode_length,
                "signals": [signal.name for signal in spec.signals],
                "commands": [command.name for command in spec.commands],
            }
        )
    return found


def robots(names: Iterable[str]) -> list[dict[str, Any]]:
    """Names, titles, actuators and sources of robots; ``names`` may be paths of cards."""
    from robo_rl.sim.robots import load_robot

    found = []
    for name in names:
        card: Card = load_robot(name)
        about = {"name": name, "title": card.title, "kind": card.kind}
        found.append({**about, "actuators": list(card.facts().actuator_names), "sources": card.sources})
    return found


def figures(names: Iterable[str]) -> list[dict[str, Any]]:
    """Names, titles, figures and sources of robots; ``names`` may be paths of cards."""
    from robo_rl.sim.robots import load_robot

    cards: list[Card] = [load_robot(name) for name in names]
    return [
        {"name": card.name, "title": card.title, "kind": card.kind, **card.figures(), "sources": card.sources}
        for card in cards
    ]


def everything() -> dict[str, list[dict[str, Any]]]:
    """Of robo-rl alone, without installed packages; numbers with six digits, as on any processor."""
    from robo_rl.sim.robots import robot_names
    from robo_rl.sim.tasks.loading import included_tasks

    names = robot_names()
    found = {"tasks": tasks(sorted(included_tasks()), []), "robots": robots(names), "figures": figures(names)}
    return json.loads(json.dumps(found), parse_float=lambda text: float(f"{float(text):.6g}"))


if __name__ == "__main__":
    FILE.write_text(json.dumps(everything(), indent=1, ensure_ascii=False) + "\n")
