"""Meshes as makers publish them: stickers without volume, and kinds of files that are not read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.figures import CardError

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_quadruped"
FLAT = "v 0 0 0\nv .1 0 0\nv .1 .1 0\nv 0 .1 0\nf 1 2 3\nf 1 3 4\n"
SLIVER = "v 0 0 0\nv 1e-6 0 0\nv 0 1e-6 0\nv 0 0 1e-6\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
ASCII = "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n"


def card(folder: Path, name: str, mesh: str) -> Path:
    """The example's card, its trunk with one more shape: a mesh in the file ``name``."""
    shape = f'<collision name="sticker"><geometry><mesh filename="{name}"/></geometry></collision>'
    text = (EXAMPLE / "quadruped.urdf").read_text()
    assert '<link name="body">' in text
    (folder / "quadruped.urdf").write_text(text.replace('<link name="body">', f'<link name="body">{shape}'))
    (folder / "card.toml").write_text((EXAMPLE / "card.toml").read_text())
    if mesh:
        (folder / name).write_text(mesh)
    return folder / "card.toml"


@pytest.mark.parametrize("mesh", [FLAT, SLIVER])
def test_a_shape_without_volume_is_left_out(mesh: str, tmp_path: Path) -> None:
    ours = assemble(load_robot(card(tmp_path, "sticker.obj", mesh)).mechanism, Physics(contacts="model"))
    plain = assemble(load_robot(EXAMPLE / "card.toml").mechanism, Physics(contacts="model"))
    assert ours.ngeom == plain.ngeom
    assert ours.body_mass.tolist() == plain.body_mass.tolist()
    assert ours.body_inertia.tolist() == plain.body_inertia.tolist()


def test_a_shape_with_volume_stays(tmp_path: Path) -> None:
    solid = SLIVER.replace("1e-6", ".1")
    ours = assemble(load_robot(card(tmp_path, "sticker.obj", solid)).mechanism, Physics(contacts="model"))
    plain = assemble(load_robot(EXAMPLE / "card.toml").mechanism, Physics(contacts="model"))
    assert ours.ngeom == plain.ngeom + 1


@pytest.mark.parametrize(
    ("name", "mesh", "told"),
    [
        ("hull.dae", "<COLLADA/>", r"hull\.dae.*expected meshes as \.stl, \.obj or \.msh: convert"),
        ("hull.dae", "", r"a mesh in \.dae is what touches \(<collision>\).*convert it"),
        ("hull.stl", ASCII, r"expected binary \.stl files"),
        ("hull.obj", "", r"expected meshes beside the model file"),
    ],
)
def test_meshes_that_are_not_read_are_told_by_what_is_wrong_with_them(
    name: str, mesh: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(CardError, match=told):
        assemble(load_robot(card(tmp_path, name, mesh)).mechanism, Physics(contacts="model"))


def test_a_urdf_without_links_is_told(tmp_path: Path) -> None:
    made = card(tmp_path, "hull.obj", FLAT)
    (tmp_path / "quadruped.urdf").write_text('<robot name="nothing"/>')
    with pytest.raises(CardError, match=r"quadruped\.urdf") as error:
        assemble(load_robot(made).mechanism, Physics(contacts="model"))
    assert "zero-size" not in str(error.value)


def test_an_expanded_xacro_that_keeps_its_comments_is_no_xacro(tmp_path: Path) -> None:
    made = card(tmp_path, "hull.dae", "")
    model = tmp_path / "quadruped.urdf"
    model.write_text(model.read_text().replace("</robot>", '<!-- <xacro:leg side="${left}"/> --></robot>'))
    with pytest.raises(CardError, match="convert it") as error:
        assemble(load_robot(made).mechanism, Physics(contacts="model"))
    assert "expand it" not in str(error.value)


def test_an_inertia_that_no_body_has_is_told_with_what_to_do(tmp_path: Path) -> None:
    made = card(tmp_path, "sticker.obj", FLAT)
    model = tmp_path / "quadruped.urdf"
    text, count = re.subn(r'(ixx="[^"]*"[^/]*ixy=")[^"]*"', r'\g<1>1.0"', model.read_text(), count=1)
    assert count == 1
    model.write_text(text)
    with pytest.raises(CardError, match=r"principal moments"):
        assemble(load_robot(made).mechanism, Physics(contacts="model"))
