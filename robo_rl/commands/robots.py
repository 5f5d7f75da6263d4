"""robo-rl robots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from robo_rl.console import give, say

if TYPE_CHECKING:
    from sim.robots import RobotCard


def main(
    robots: Annotated[list[str] | None, tyro.conf.Positional] = None, picture: Path | None = None, json: bool = False
) -> int:
    """List robots with what their cards say, and where each figure is from.

    With --json: robots (name, title, kind, mass_kg, sources by figure; of multirotors thrust_to_weight and
    hover_speed_rad_s, of robots on legs height_m, joints and feet).

    Args:
        robots: Names, or paths of cards (*.toml), to show with all sources; without any, all that come with robo-rl.
        picture: Draw them into this file (.png).
        json: Print one JSON object on the last line of stdout.
    """
    from sim.robots import load_robot, robot_names

    cards = [load_robot(name) for name in robots or robot_names()]
    found = [describe(card) for card in cards]
    for facts in found:
        numbers = [f"{key}={value:.4g}" for key, value in facts.items() if isinstance(value, float)]
        say(f"{facts['name']:<14} {facts['title']}: {', '.join(numbers)}", json)
        for name in facts["joints"] if robots and "joints" in facts else ():
            say(f"    {name}", json)
        for figure, source in facts["sources"].items() if robots else ():
            say(f"    {figure:<26} {source}", json)
    if picture:
        from sim.pictures.portrait import draw_portraits

        draw_portraits(picture, cards)
        say(f"drawn into {picture}", json)
    give({"robots": found}, json)
    return 0


def describe(card: RobotCard) -> dict[str, Any]:
    """A robot's name, figures and sources."""
    from sim.robots import MultirotorCard

    about = {"name": card.name, "title": card.title, "kind": card.facts().kind}
    if isinstance(card, MultirotorCard):
        figures: dict[str, Any] = {
            "mass_kg": card.mass,
            "thrust_to_weight": card.thrust_to_weight,
            "hover_speed_rad_s": card.hover_speed,
        }
    else:
        from sim.plants.rigid import Physics, assemble, standing_height

        model = assemble(card, Physics())
        figures = {
            "mass_kg": float(model.body_mass.sum()),
            "height_m": standing_height(model, card),
            "joints": list(card.joint_names),
            "feet": list(card.feet),
        }
    return {**about, **figures, "sources": card.sources}
