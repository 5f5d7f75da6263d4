"""Robot cards: sourced figures in, clear refusals out."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from robo_rl.controllers.multirotor import Multirotor
from robo_rl.sim.robots import FOLDER, load_robot, robot_names
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.multirotor import OPTIONAL, UNITS, _most_room, load_multirotor

CARD = (FOLDER / "crazyflie" / "card.toml").read_text()


def test_every_card_has_a_source_for_every_figure() -> None:
    assert {"crazyflie", "hummingbird"} <= set(robot_names())
    for name in robot_names():
        card = load_robot(name)
        if hasattr(card, "rotors"):
            assert set(UNITS) - set(OPTIONAL) <= set(card.sources) <= set(UNITS)
            assert all((name in card.sources) == (getattr(card, name) is not None) for name in OPTIONAL)
            assert all(len(source) > 5 for source in card.sources.values())


def test_the_crazyflie_hovers_at_the_speed_that_its_published_thrust_gives() -> None:
    card = load_multirotor("crazyflie")
    rpm = (0.027 * 9.81 / 4 / 3.16e-10) ** 0.5  # 3.16e-10 N/rpm²: Landry 2015
    assert card.hover_speed == pytest.approx(rpm * 2 * 3.141592653589793 / 60, rel=1e-3)
    assert card.thrust_to_weight == pytest.approx(4 * 0.12 / (0.027 * 9.81), rel=1e-3)  # the firmware's THRUST_MAX, N
    assert card.arm == pytest.approx(0.0396, abs=1e-3)  # 28 mm × √2


def test_an_even_hover_leaves_the_most_room_that_a_linear_program_finds() -> None:
    """So that it is only asked about rotors that don't hover evenly."""
    x, y, ways = np.array([[1, 1, -1, -1], [1, -1, -1, 1], [1, -1, 1, -1]])
    even = np.array([np.ones(4), y, -x, ways])
    assert _most_room(even, 0.2, 1.5) == pytest.approx(0.5, abs=1e-9)
    assert _most_room(even, 0.7, 1.5) == pytest.approx(0.3, abs=1e-9)


def test_the_larger_robot_is_larger_and_can_fly() -> None:
    small, large = load_multirotor("crazyflie"), load_multirotor("hummingbird")
    assert large.mass > 10 * small.mass
    assert large.arm > 3 * small.arm
    assert large.thrust_to_weight > 1.5


def test_facts_of_the_contract_are_those_of_the_card() -> None:
    card = load_multirotor("crazyflie")
    told = card.facts()
    assert (told.name, told.kind) == ("crazyflie", "multirotor")
    assert told.actuator_names == ("m1", "m2", "m3", "m4")
    assert {(a.quantity, a.unit, a.lower, a.upper, a.safe) for a in told.actuators} == {
        ("velocity", "rad/s", 0.0, card.rotor_speed_max, 0.0)
    }
    facts = Multirotor.of(told)
    assert facts == card.airframe
    assert [rotor.spin for rotor in facts.rotors] == ["ccw", "cw", "ccw", "cw"]
    assert facts.mass == 0.027
    x, y, _ = facts.rotors[0].position
    assert x > 0 > y  # Bitcraze's m1 is front right


def test_thrust_curves_with_all_terms_invert() -> None:
    import dataclasses

    card = dataclasses.replace(load_multirotor("crazyflie"), thrust=(0.001, 1e-6, 2e-8))
    speed = card.speed_for_thrust(0.05)
    assert 0.001 + 1e-6 * speed + 2e-8 * speed**2 == pytest.approx(0.05)
    linear = dataclasses.replace(card, thrust=(0.001, 1e-5, 0.0))
    assert linear.speed_for_thrust(0.011) == pytest.approx(1000.0)


def test_a_card_of_ones_own_is_known_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(CARD.replace("value = 0.027", "value = 0.031"))
    card = load_robot(str(path))
    assert card.name == "mine"
    assert card.mass == 0.031


REFUSED = {
    "mass is missing": (r"\[mass\].*?\n\n", "", "mass"),
    "unit": ('unit = "kg"', 'unit = "g"', "mass.unit"),
    "not a number": ("value = 0.027", "value = nan", "mass.value"),
    "text": ("value = 0.027", 'value = "27 g"', "mass.value"),
    "negative": ("value = 0.027", "value = -0.027", "mass.value"),
    "no source": (r'(\[mass\]\nvalue = 0.027\nunit = "kg"\n)source = [^\n]*', r"\1", "mass.source"),
    "empty source": (r'(\[mass\]\nvalue = 0.027\nunit = "kg"\n)source = [^\n]*', r'\1source = " "', "mass.source"),
    "two of three": (r"value = \[9.417e-6, 9.644e-6, 1.7460e-5\]", "value = [9.417e-6, 9.644e-6]", "inertia.value"),
    "unknown figure": (r"\[mass\]", "[weight]\nvalue = 1.0\n\n[mass]", "weight"),
    "kind": ('kind = "multirotor"', 'kind = "balloon"', "kind"),
    "spin": ('name = "m1"(.*?)spin = "ccw"', r'name = "m1"\1spin = "left"', "spin"),
    "twice m1": ('name = "m2"', 'name = "m1"', "rotors"),
    "place": (r"position = \[0.028, -0.028, 0.0\]", "position = [0.028, -0.028]", "position"),
    "falling thrust": (r"value = \[0.0, 0.0, 2.8816e-8\]", "value = [0.0, 1e-4, -2.8816e-8]", "thrust.value"),
    "constant thrust": (r"value = \[0.0, 0.0, 2.8816e-8\]", "value = [0.2, 0.0, 0.0]", "thrust.value"),
    "four coefficients": (r"value = \[0.0, 0.0, 2.8816e-8\]", "value = [0.0, 0.0, 2e-8, 0.0]", "thrust.value"),
    "infinite": ("value = 0.027", "value = inf", "mass.value"),
    "zero": ("value = 0.027", "value = 0.0", "mass.value"),
    "title": ('title = "Bitcraze Crazyflie 2.1"', "title = 21", "title"),
    "a figure without a table": (r"\[mass\].*?\n\n\[inertia\]", "mass = 0.027\n\n[inertia]", "mass"),
    "a field too many in a rotor": ('name = "m1"', 'name = "m1"\nblades = 2', "rotors[0]"),
    "no spin": ('(name = "m4".*?)spin = "cw"', r"\1", "rotors[3]"),
    "not TOML": ('kind = "multirotor"', "kind = multirotor", "not TOML"),
    "too heavy": ("value = 0.027", "value = 0.5", "thrust"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_wrong_cards_are_refused_by_file_and_field(what: str, tmp_path: Path) -> None:
    pattern, replacement, field = REFUSED[what]
    text = re.sub(pattern, replacement, CARD, count=1, flags=re.S)
    assert text != CARD
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(CardError) as refusal:
        load_robot(str(path))
    assert "wrong.toml" in str(refusal.value)
    assert field in str(refusal.value)


def test_two_rotors_garbage_and_missing_files_are_refused(tmp_path: Path) -> None:
    head, *rotors = CARD.split("[[rotors]]")
    two = "[[rotors]]".join([head, *rotors[:2]]).encode()
    for name, content in {"two.toml": two, "bytes.toml": b"\xff\xfe"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CardError, match=name):
            load_robot(str(tmp_path / name))
    with pytest.raises(CardError, match="not known"):
        load_robot(str(tmp_path / "absent.toml"))


def test_a_card_by_a_path_with_a_byte_order_mark_and_a_large_suffix_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.TOML").write_bytes(b"\xef\xbb\xbf" + CARD.replace("\n", "\r\n").encode())
    assert load_robot(tmp_path / "mine.TOML").name == "mine"


@pytest.mark.parametrize("name", ["My Robot v2", "jäckal", "-x", "a.py"])
def test_a_file_whose_name_can_be_no_robots_is_refused_before_anything_is_trained(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.toml").write_text(CARD)
    with pytest.raises(CardError, match=re.escape(f"names the robot '{name}'; expected") + ".*rename the file"):
        load_robot(str(tmp_path / f"{name}.toml"))
    with pytest.raises(CardError, match=r"robot 'none\.toml' is not known: there is no such file"):
        load_robot("none.toml")
