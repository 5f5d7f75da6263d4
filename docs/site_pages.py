"""A page for every included robot and task, made for the site from cards, specs and the zoo (``make docs``)."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from robo_rl import zoo
from robo_rl.contract import Command, Signal
from robo_rl.sim.ranges import Range
from robo_rl.sim.robots import Card, load_robot, robot_names
from robo_rl.sim.tasks import Task
from robo_rl.sim.tasks.loading import included_tasks, load_task

REPORTS = Path(__file__).parents[1] / "build" / "reports"
"""Where ``make reports`` puts the pages of the included policies."""


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Of Markdown; nothing without rows."""
    lines = ["| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    names = list(head)
    return "\n".join([f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}", *lines]) + "\n" if lines else ""


def number(value: float) -> str:
    """With as many digits as say something."""
    return f"{value:.4g}"


def numbers(values: Any) -> str:
    """A number, or several: once if they are all the same."""
    if isinstance(values, int | float):
        return number(values)
    shown = [number(value) for value in values]
    return shown[0] if len(set(shown)) == 1 else ", ".join(shown)


@functools.cache
def known_tasks() -> dict[str, Task]:
    """The included tasks by name, each loaded once: every robot's page asks all of them."""
    return {name: load_task(name) for name in sorted(included_tasks())}


def policies() -> dict[str, dict[str, Any]]:
    """What is known of the zoo's policies, by name."""
    return {name: json.loads((zoo.FOLDER / f"{name}.json").read_text()) for name in zoo.names()}


def results(key: str, value: str) -> str:
    """The zoo's policies for one robot or task: what they reach, how to train them, and their reports with a film."""
    rows = []
    for name, known in policies().items():
        told = known["evaluation"]
        if told[key] != value:
            continue
        interval = f"{told['success']:.1%} ({told['success_low']:.1%} to {told['success_high']:.1%})"
        errors = [f"{k.replace('_', ' ')} {number(v)}" for k, v in told.items() if "_error_" in k and "_mean_" in k]
        report = f"[report with film](report-{name}.html)" if (REPORTS / f"{name}.html").is_file() else ""
        rows.append((f"`zoo:{name}`", interval, told["episodes"], "; ".join(errors), f"`{known['command']}`", report))
    head = ("policy", "success rate (95 %)", "episodes", "errors", "trained by", "")
    return f"## Included policies\n\n{table(head, rows)}" if rows else ""


def robot_page(name: str, picture: bool = False) -> str:
    """The page of an included robot."""
    card: Card = load_robot(name)
    facts = card.facts()
    figures = [(key.replace("_", " "), _shown(value)) for key, value in card.figures().items() if value is not None]
    actuators = [
        (f"`{a.name}`", a.quantity, a.unit, number(a.lower), number(a.upper), _or_none(a.effort), _or_none(a.speed))
        for a in facts.actuators
    ]
    tasks = [task for task, known in known_tasks().items() if known.spec.robot.name == name]
    uses = f"Tasks: {', '.join(f'[{task}](task-{task}.md)' for task in tasks)}.\n" if tasks else ""
    like = [
        "quadrotor-hover",
        "go2-flat",
        "arm-reach",
        "car-race",
        "diff-nav",
        "mobile-place",
        "omni-nav",
        "pmsm-current",
        "dc-speed",
        "bldc-speed",
        "arms-reach",
    ]
    mine = next(task for task in like if known_tasks()[task].card_type is type(card))
    parts = [
        f"# {card.title}\n\n`{name}`, {card.kind}. {uses}",
        f"![{card.title}](portrait-{name}.png)\n" if picture else "",
        f"```sh\nrobo-rl robots {name}\nrobo-rl train {tasks[0] if tasks else f'{mine} --robot {name}'}\n```\n",
        "## Figures\n\n" + table(("figure", "value"), figures),
        "## Actuators\n\nIn the order of the robot's commands.\n\n"
        + table(("name", "quantity", "unit", "lower", "upper", "effort", "speed"), actuators),
        results("robot", name),
        "## Sources\n\n" + table(("figure", "source"), [(f"`{key}`", text) for key, text in card.sources.items()]),
    ]
    return "\n".join(part for part in parts if part)


def task_page(name: str) -> str:
    """The page of an included task."""
    task = known_tasks()[name]
    spec = task.spec
    measures = [f"{m.error.replace('_', ' ')} ({m.unit}, {m.described})" for m in task.measures]
    parts = [
        f"# {name}\n\n{spec.summary[:1].upper()}{spec.summary[1:]}. Robot: [{spec.robot.title}]"
        f"(robot-{spec.robot.name}.md). {1 / spec.control_period:g} Hz, episodes of {spec.episode_length:g} s"
        f"{f', teams of {spec.team}' if spec.team > 1 else ''}. Evaluated by: {'; '.join(measures)}. The source, "
        f"`{type(task).__module__.replace('.', '/')}.py`, reads from top to bottom.\n",
        f"```sh\nrobo-rl train {name}\nrobo-rl play zero --task {name}\n```\n",
        results("task", name),
        "## Signals\n\n"
        + table(("signal", "elements", "unit", "frame", "noise", "latency"), map(_signal, spec.signals)),
        "## Commands\n\n"
        + table(("command", "elements", "unit", "lower", "upper", "safe"), map(_command, spec.commands)),
        "## Reward\n\nPer control step, the sum of the terms times their weights.\n\n"
        + table(("term", "weight"), [(f"`{term}`", number(weight)) for term, weight in spec.reward.items()]),
        "## Ranges\n\nDrawn for every episode; a curriculum widens them from start to end.\n\n"
        + table(("range", "start", "end", "unit"), [_range(*item) for item in spec.ranges.items()]),
    ]
    return "\n".join(part for part in parts if part)


def _signal(signal: Signal) -> tuple[str, ...]:
    delay = f"{1e3 * signal.delay[0]:g} to {1e3 * signal.delay[1]:g} ms" if signal.delay and any(signal.delay) else ""
    noise = numbers(signal.noise) if signal.noise else ""
    return f"`{signal.name}`", _few(signal.elements), signal.unit, signal.frame, noise, delay


def _command(command: Command) -> tuple[str, ...]:
    safe = command.safe if isinstance(command.safe, str) else numbers(command.safe)
    lower, upper = numbers(command.lower), numbers(command.upper)
    return f"`{command.name}`", _few(command.elements), command.unit, lower, upper, safe


def _range(name: str, drawn: Range) -> tuple[str, ...]:
    return f"`{name}`", *(f"{number(low)} to {number(high)}" for low, high in (drawn.start, drawn.end)), drawn.unit


def _few(elements: tuple[str, ...]) -> str:
    return (
        ", ".join(elements)
        if len(elements) <= 6
        else f"{elements[0]}, {elements[1]}, … {elements[-1]} ({len(elements)})"
    )


def _or_none(value: float | None) -> str:
    return "" if value is None else number(value)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {text}" for key, text in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_shown(item) for item in value)
    return number(value) if isinstance(value, float) else str(value)


# --- what mkdocs calls -------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """List the pages under their own heading."""
    robots = [{load_robot(name).title: f"robot-{name}.md"} for name in robot_names()]
    tasks = [{name: f"task-{name}.md"} for name in sorted(included_tasks())]
    config.nav = [*config.nav, {"Included robots": robots}, {"Included tasks": tasks}]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Make the pages, the robots' portraits, and the reports of the zoo."""
    from mkdocs.structure.files import File

    from robo_rl.sim.pictures.portrait import draw_portraits

    for name in robot_names():
        with tempfile.TemporaryDirectory() as folder:
            picture = Path(folder) / "portrait.png"
            draw_portraits(picture, [load_robot(name)])
            files.append(File.generated(config, f"portrait-{name}.png", content=picture.read_bytes()))
        files.append(File.generated(config, f"robot-{name}.md", content=robot_page(name, picture=True)))
    for name in sorted(included_tasks()):
        files.append(File.generated(config, f"task-{name}.md", content=task_page(name)))
    for name in policies():
        report = REPORTS / f"{name}.html"
        if report.is_file():
            files.append(File.generated(config, f"report-{name}.html", content=report.read_bytes()))
    return files
