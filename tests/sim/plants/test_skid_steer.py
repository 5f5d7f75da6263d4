"""Bases that skid in turns, by the kinematics of Mandow et al. 2007: each side turns about a centre of its own."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import torch

from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.mobile_base import BaseState, advance, nominal_parameters
from robo_rl.sim.robots import FOLDER, load_robot
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mobile_base import MobileBaseCard
from robo_rl.sim.tasks.mobile_base.navigate import DiffNav

WIDTH, AHEAD = 1.5, 0.03
"""Jackal's wheel_separation_multiplier, and m."""


def skid_steer(folder: Path, width: float = WIDTH, ahead: float = AHEAD) -> Path:
    """TurtleBot3's card with four wheels that skid."""
    text = (FOLDER / "turtlebot3" / "card.toml").read_text()
    for name, value, unit in (("icr_width", width, "1"), ("icr_forward", ahead, "m")):
        text += f'\n[{name}]\nvalue = {value}\nunit = "{unit}"\nsource = "test"\n'
    (folder / "skid.toml").write_text(text)
    return folder / "skid.toml"


def drive(card: MobileBaseCard, speed: float, turn: float, seconds: float, **drawn: float) -> BaseState:
    p = nominal_parameters(card)._replace(**{name: torch.tensor([value]) for name, value in drawn.items()})
    zero = torch.zeros(1, 1)
    state = BaseState(torch.zeros(1, 2), zero, zero, zero, torch.zeros(1, 3))
    for _ in range(round(seconds / 0.1)):
        state = advance(state, torch.tensor([[speed]]), torch.tensor([[turn]]), p, 0.1)
    return state


def test_on_the_spot_it_turns_about_a_point_ahead_of_its_middle(tmp_path: Path) -> None:
    card = load_robot(skid_steer(tmp_path), MobileBaseCard)
    state = drive(card, 0.0, 0.8, 3.0)
    heading, (x, y) = float(state.heading), state.position[0].tolist()
    assert abs(heading) > 1.0
    assert x + AHEAD * math.cos(heading) == pytest.approx(AHEAD, abs=1e-4)
    assert y + AHEAD * math.sin(heading) == pytest.approx(0.0, abs=1e-4)
    assert state.odometer[0, :2].tolist() == pytest.approx([0.0, 0.0], abs=1e-6)  # it does not see that


def test_rims_are_the_faster_the_wider_the_centres_are_apart(tmp_path: Path) -> None:
    """V = v -+ w (icr_width b / 2): the greatest turn rate of rims that have a greatest speed."""
    plain = load_robot("turtlebot3", MobileBaseCard)
    card = load_robot(skid_steer(tmp_path, ahead=0.0), MobileBaseCard)
    fastest = [float(drive(one, 0.0, 100.0, 10.0).turn_rate) for one in (plain, card)]
    expected = [2.0 * plain.speed_max / (k * plain.wheel_separation) for k in (1.0, WIDTH)]
    assert fastest == pytest.approx(expected, rel=1e-3)


def test_on_another_ground_it_turns_more_or_less_than_wanted(tmp_path: Path) -> None:
    card = load_robot(skid_steer(tmp_path), MobileBaseCard)
    found = [float(drive(card, 0.1, 0.5, 5.0, turn_gain=gain).turn_rate) for gain in (0.8, 1.0, 1.2)]
    assert found == pytest.approx([0.4, 0.5, 0.6], rel=1e-3)


def test_a_card_without_is_the_ideal_base_and_draws_nothing_more() -> None:
    plain = load_robot("turtlebot3", MobileBaseCard)
    assert not {"turn_gain", "icr_forward"} & set(DiffNav(plain).spec.ranges)
    assert not {"icr_width", "icr_forward"} & set(plain.facts().facts)
    other = dataclasses.replace(plain, name="other")
    assert drive(plain, 0.1, 0.4, 2.0).position.tolist() == drive(other, 0.1, 0.4, 2.0).position.tolist()


def test_contract_and_training_have_it(tmp_path: Path) -> None:
    task = DiffNav(load_robot(skid_steer(tmp_path), MobileBaseCard))
    facts = task.spec.robot.facts().facts
    assert (facts["icr_width"], facts["icr_forward"]) == (WIDTH, AHEAD)
    plant = VecEnv(task, 64, seed=0).plant
    for name, middle in (("turn_gain", 1.0), ("icr_forward", AHEAD)):
        low, high = task.spec.ranges[name].end
        drawn = plant.param(name)
        assert low < float(drawn.min()) < middle < float(drawn.max()) < high


@pytest.mark.parametrize(
    ("width", "ahead", "told"),
    [
        (1.0, 0.0, "icr_width.value is 1.0; expected more than 1"),
        (9.0, 0.0, "icr_width.value is 9.0"),
        (1.5, 3.0, "icr_forward.value is 3.0"),
    ],
)
def test_figures_that_no_base_has_are_refused(width: float, ahead: float, told: str, tmp_path: Path) -> None:
    with pytest.raises(CardError, match=told):
        load_robot(skid_steer(tmp_path, width, ahead), MobileBaseCard)
