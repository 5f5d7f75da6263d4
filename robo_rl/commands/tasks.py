"""robo-rl tasks."""

from __future__ import annotations

from robo_rl.console import give, say


def main(json: bool = False) -> int:
    """List the tasks and the robots that come with robo-rl, and the tasks of installed packages.

    With --json: tasks (name, summary, robot, control_hz, episode_s, signals, commands) and robots (name, title, kind,
    actuators, sources).

    Args:
        json: Print one JSON object on the last line of stdout.
    """
    from sim.robots import Card, load_robot, robot_names
    from sim.tasks.loading import load_task, task_names

    tasks, robots = [], []
    say("tasks", json)
    for name in task_names():
        try:
            spec = load_task(name).spec
        except ValueError as error:  # of an installed package
            say(f"  {error}", json)
            continue
        say(f"  {name:<18} {spec.summary} ({spec.robot.name}, {1 / spec.control_period:g} Hz)", json)
        tasks.append(
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
    say("robots (or the path of your own card, *.toml)", json)
    for name in robot_names():
        card: Card = load_robot(name)
        actuators = list(card.facts().actuator_names)
        say(f"  {name:<18} {card.title}, {card.kind}, {len(actuators)} actuators", json)
        about = {"name": name, "title": card.title, "kind": card.kind, "actuators": actuators}
        robots.append({**about, "sources": card.sources})
    give({"tasks": tasks, "robots": robots}, json)
    return 0
