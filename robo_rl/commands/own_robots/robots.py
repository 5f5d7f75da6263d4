"""robo-rl robots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.commands import catalog as included
from robo_rl.console import give, require_place, say


def main(
    robots: Annotated[list[str] | None, tyro.conf.Positional] = None, picture: Path | None = None, json: bool = False
) -> int:
    """List robots with the figures of their cards and the source of each figure.

    With --json: robots (name, title, kind, sources by figure, and the figures of its kind with their units: of
    multirotors mass_kg, thrust_to_weight and hover_speed_rad_s; of legged robots mass_kg, height_m, feet, joints with
    what each moves, and no_walk: why the walking tasks can't use this robot, or null; of arms mass_kg, joints,
    tool_at_home_m, and no_reach and no_place: why arm-reach and the tasks that grasp can't use it, or null).

    Args:
        robots: Names, or paths of cards (*.toml), to show with all sources; without any, all that come with robo-rl.
        picture: Draw them into this file (.png).
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.sim.robots import load_robot, robot_names

    names = robots or robot_names()
    require_place(picture, "--picture", ".png")
    found = included.of_robots("figures", names)
    for facts in found:
        numbers = [f"{key}={value:.4g}" for key, value in facts.items() if isinstance(value, float)]
        say(f"{facts['name']}: {facts['title']}", json)
        say(f"    {', '.join(numbers)}", json)
        for key, value in facts.items() if robots else ():
            if isinstance(value, dict):
                for name, what in value.items():
                    say(f"    {name:<26} {what}", json)
            elif isinstance(value, str) and key not in ("name", "title", "kind"):
                say(f"    {key}: {value}", json)
        guesses = [key for key, source in facts["sources"].items() if source.startswith("guessed")]
        if robots and guesses:
            say(f"    doubtful: {len(guesses)} of {len(facts['sources'])} figures are guessed; replace each", json)
    if picture:
        from robo_rl.sim.pictures.portrait import draw_portraits

        draw_portraits(picture, [load_robot(name) for name in names])
        say(f"drawn into {picture}", json)
    give({"robots": found}, json)
    return 0
