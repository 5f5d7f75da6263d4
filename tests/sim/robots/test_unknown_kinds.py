"""Robots of kinds that there are no cards for: refused in a sentence that says where to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_rl.sim.robots import card_types, load_robot
from robo_rl.sim.robots.figures import CardError
from tests.sim.robots.sliding import sliding_arm, two_scaras

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("kind", ["submarine", "dual_arm", "", "Arm"])
def test_an_unknown_kind_leads_to_the_page_of_own_kinds(kind: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(f'kind = "{kind}"\n')
    with pytest.raises(CardError) as error:
        load_robot(tmp_path / "mine.toml")
    told = str(error.value)
    assert f"kind is {kind!r}; expected one of {sorted(card_types())}" in told
    assert "docs/own-task.md" in told
    assert "## A kind of robot of your own" in (DOCS / "own-task.md").read_text()


def two_arms(folder: Path) -> Path:
    """A SCARA's card whose model has a second SCARA on the same base."""
    card = sliding_arm("scara", folder)
    (folder / "scara.urdf").write_text(two_scaras())
    return card


def test_two_tools_in_one_card_are_refused_with_what_to_do(tmp_path: Path) -> None:
    card = two_arms(tmp_path)
    card.write_text(card.read_text().replace('tool = "grip"', 'tool = ["grip", "grip_2"]'))
    with pytest.raises(
        CardError, match=r"tool is \['grip', 'grip_2'\]; expected one tool.*two_arms.*docs/own-robot\.md"
    ):
        load_robot(card)


def test_joints_of_two_arms_in_one_card_are_refused_with_what_to_do(tmp_path: Path) -> None:
    card = two_arms(tmp_path)
    text = card.read_text().replace('"wrist"]', '"wrist", "shoulder_2"]', 1)
    text = text.replace("0.05, 0.0], unit", "0.05, 0.0, 0.0], unit").replace('"m", "rad"]', '"m", "rad", "rad"]')
    table = text.partition("[[motors]]")[2].partition("[[motors]]")[0].replace('"shoulder"', '"shoulder_2"')
    card.write_text(f"{text}[[motors]]{table}")
    with pytest.raises(CardError, match=r"has one arm.*two_arms.*\[held\].*docs/own-robot\.md"):
        load_robot(card).facts()


def test_one_of_two_arms_is_an_arm_with_the_other_held(tmp_path: Path) -> None:
    card = two_arms(tmp_path)
    held = "".join(
        f'[held.{name}_2]\nvalue = 0.1\nunit = "{unit}"\nsource = "test"\n'
        for name, unit in (("shoulder", "rad"), ("elbow", "rad"), ("quill", "m"), ("wrist", "rad"))
    )
    card.write_text(card.read_text() + held)
    assert load_robot(card).figures()["no_reach"] is None
