"""robo-rl tasks."""

from __future__ import annotations

from robo_rl.commands import catalog as included
from robo_rl.console import give, say
from robo_rl.sim.robots import robot_names


def main(json: bool = False) -> int:
    """List the tasks and the robots that come with robo-rl, and the tasks of installed packages.

    With --json: tasks (name, summary, robot, control_hz, episode_s, signals, commands) and robots (name, title, kind,
    actuators, sources).

    Args:
        json: Print one JSON object on the last line of stdout.
    """
    refused: list[str] = []
    tasks = [*included.stored("tasks").values(), *included.tasks_of_packages(refused)]
    tasks.sort(key=lambda task: task["name"])
    robots = included.of_robots("robots", robot_names())
    width = max(len(found["name"]) for found in (*tasks, *robots))
    say("tasks", json)
    for task in tasks:
        say(f"  {task['name']:<{width}} {task['summary']} ({task['robot']}, {task['control_hz']:g} Hz)", json)
    for sentence in refused:
        say(f"  {sentence}", json)
    say("robots (or the path of your own card, *.toml)", json)
    for robot in robots:
        count = len(robot["actuators"])
        about = f"{robot['title']}, {robot['kind']}, {count} actuator{'s' * (count != 1)}"
        say(f"  {robot['name']:<{width}} {about}", json)
    give({"tasks": tasks, "robots": robots}, json)
    return 0
