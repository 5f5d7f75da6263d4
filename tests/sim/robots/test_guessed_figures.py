"""Figures that an author had to write something for: identity inertias, joints that follow none that is there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import mujoco
import numpy as np
import pytest

from robo_rl.sim.models import read_model
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.inertias import require_sane_inertias
from robo_rl.sim.tasks.loading import load_task
from tests.sim.robots.test_arms_of_others import changed

QUADRUPED = Path(__file__).parents[3] / "examples" / "own_quadruped" / "quadruped.urdf"


def with_trunk(folder: Path, inertia: tuple[float, float, float], mass: float) -> Path:
    """The example's quadruped, its trunk of a box of 0.3 m with other figures."""
    text = QUADRUPED.read_text()
    (found,) = re.findall(r'<link name="body">.*?</inertial>', text, re.DOTALL)
    new = re.sub(r'<mass value="[^"]*"', f'<mass value="{mass}"', found)
    for name, value in zip(("xx", "yy", "zz"), inertia, strict=True):
        new = re.sub(rf'i{name}="[^"]*"', f'i{name}="{value}"', new)
    shutil.copytree(QUADRUPED.parent, folder, dirs_exist_ok=True)
    (folder / QUADRUPED.name).write_text(text.replace(found, new))
    return folder / QUADRUPED.name


@pytest.mark.parametrize("mass", [4.0, 12.0, 25.0])
def test_the_identity_as_a_trunks_inertia_is_refused(mass: float, tmp_path: Path) -> None:
    with pytest.raises(CardError, match=r"body 'body' .* has an inertia of 1 kg\*m\^2, .* of gyration"):
        read_model(with_trunk(tmp_path, (1.0, 1.0, 1.0), mass))


def test_a_guess_of_another_number_is_refused_too_and_one_that_the_shape_allows_is_not(tmp_path: Path) -> None:
    with pytest.raises(CardError, match="'body'"):
        read_model(with_trunk(tmp_path / "a", (0.5, 0.5, 0.5), 6.0))
    read_model(with_trunk(tmp_path / "b", (0.03, 0.03, 0.03), 6.0))
    read_model(with_trunk(tmp_path / "c", (0.02, 0.09, 0.1), 6.0))


@pytest.mark.parametrize("hollow", [0.4, 2.0 / 3.0])
def test_a_ball_whose_mass_is_in_its_shell_is_a_body(hollow: float, tmp_path: Path) -> None:
    """2/5 m r² and 2/3 m r² of a solid and of a hollow ball, and with 1 kg m² by chance."""
    radius = 0.5
    mass = 1.0 / (hollow * radius**2)
    text = (
        f'<mujoco><worldbody><body name="ball"><freejoint/><inertial pos="0 0 0" mass="{mass}" diaginertia="1 1 1"/>'
        f'<geom size="{radius}"/><body name="rider"><joint/><geom size="0.1" mass="1"/></body></body>'
        "</worldbody></mujoco>"
    )
    require_sane_inertias(mujoco.MjModel.from_xml_string(text), tmp_path)
    with pytest.raises(CardError, match="'ball'"):
        require_sane_inertias(mujoco.MjModel.from_xml_string(text.replace('size="0.5"', 'size="0.2"')), tmp_path)


@pytest.mark.parametrize("leader", ["nowhere", "right_finger_joint", "tool0"])
def test_a_finger_that_follows_no_joint_is_refused(leader: str, tmp_path: Path) -> None:
    card = changed(tmp_path, {'<mimic joint="left_finger_joint"/>': f'<mimic joint="{leader}"/>'})
    with pytest.raises(CardError, match=rf"joint 'right_finger_joint' has <mimic joint='{leader}'>; expected another"):
        load_task("arm-place", card)


@pytest.mark.parametrize("above", [-0.001, 0.001])
def test_a_workspace_ends_above_a_cube_on_another_one(above: float, tmp_path: Path) -> None:
    """Cubes of 0.04 m, grasped at half of that: 0.044 m of the greatest support, 0.008 m to let go, 0.01 m to spare."""
    top = round(0.02 + 0.044 + 0.008 + 0.01 + above, 4)
    card = changed(tmp_path, {}, {"[0.55, 0.2, 0.2]": f"[0.55, 0.2, {top}]"})
    load_task("arm-place", card)
    if above > 0:
        assert np.isclose(load_task("arm-stack", card).space.upper[2], top)
        return
    with pytest.raises(CardError, match=r"workspace\.upper is at 0\.081 m.*expected 0\.082 m or above"):
        load_task("arm-stack", card)
