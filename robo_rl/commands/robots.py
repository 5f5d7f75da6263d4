"""robo-rl robots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from robo_rl.console import give, say

if TYPE_CHECKING:
    from sim.robots import LeggedCard, RobotCard


def main(
    robots: Annotated[list[str] | None, tyro.conf.Positional] = None, picture: Path | None = None, json: bool = False
) -> int:
    """List robots with what their cards say, and where each figure is from.

    With --json: robots (name, title, kind, mass_kg, sources by figure; of multirotors thrust_to_weight and
    hover_speed_rad_s, of robots on legs height_m, feet, joints with what each moves, and no_walk: why the walking tasks
    can't have this robot, or null).

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
        for name, what in facts["joints"].items() if robots and "joints" in facts else ():
            say(f"    {name:<26} {what}", json)
        if robots and facts.get("no_walk"):
            say(f"    not for the walking tasks: {facts['no_walk']}", json)
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
        from sim.plants.assembly import assemble
        from sim.plants.indices import standing_height
        from sim.plants.physics import Physics

        model = assemble(card.mechanism, Physics())
        figures = {
            "mass_kg": float(model.body_mass.sum()),
            "height_m": standing_height(model, card.mechanism),
            "feet": list(card.feet),
            **_legs(card),
        }
    return {**about, **figures, "sources": card.sources}


def _legs(card: LeggedCard) -> dict[str, Any]:
    """What each joint moves, as the walking tasks understand the model, or why they can't have this robot."""
    from sim.robots import CardError
    from sim.tasks.legged.legs import ABOUT, PARTS, find_legs

    moved = dict.fromkeys(card.joint_names, "")
    try:
        legs = find_legs(card)
    except CardError as error:
        return {"joints": moved, "no_walk": str(error)}
    sides = {"FL": "front left", "FR": "front right", "RL": "rear left", "RR": "rear right"}
    for place, (joint, turn) in enumerate(zip(legs.order, legs.turns, strict=True)):
        leg, part = divmod(place, len(PARTS))
        axis = f"{'+' if turn > 0 else '-'}{'xy'[ABOUT[part]]}"
        knee = f", knee {'behind' if legs.knees[leg] > 0 else 'in front'}" if part else ""
        moved[card.joint_names[joint]] = f"{sides[legs.sides[leg]]} {PARTS[part]}, about {axis}{knee}"
    return {"joints": moved, "no_walk": None}
