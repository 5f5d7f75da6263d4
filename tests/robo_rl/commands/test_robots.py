"""robo-rl robots: what cards say, for people, machines and eyes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robo_rl.commands.own_robots.robots import main
from robo_rl.sim.pictures.canvas import RenderingError

QUADRUPED = str(Path(__file__).parents[3] / "examples" / "own_quadruped" / "card.toml")


def listed(capsys: pytest.CaptureFixture[str], *names: str) -> dict[str, dict]:
    assert main(list(names) or None, json=True) == 0
    return {robot["name"]: robot for robot in json.loads(capsys.readouterr().out)["robots"]}


def test_robots_are_listed_with_figures_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    robots = listed(capsys)
    assert {"a1", "crazyflie", "go2", "hummingbird"} <= set(robots)
    assert robots["crazyflie"]["mass_kg"] == 0.027
    assert robots["go2"]["mass_kg"] == pytest.approx(15.0, abs=0.1)
    assert robots["a1"]["height_m"] == pytest.approx(0.269, abs=1e-3)
    assert all(robot["sources"] for robot in robots.values())


def test_a_robot_of_one_s_own_is_shown_by_its_path_with_the_source_of_every_figure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (robot,) = listed(capsys, QUADRUPED).values()
    assert robot["mass_kg"] == pytest.approx(8.0)
    assert robot["joints"]["LF_HAA"] == "front left hip, about +x"
    assert robot["joints"]["RH_KFE"] == "rear right calf, about -y, knee behind"
    assert robot["no_walk"] is None
    main([QUADRUPED])
    text = capsys.readouterr().out
    assert "calf.armature" in text
    assert "data sheet: rotor" in text


def test_a_robot_that_can_not_walk_here_is_shown_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in Path(QUADRUPED).parent.iterdir():
        text = path.read_text()
        (tmp_path / path.name).write_text(text.replace('"LF_foot", "RF_foot", "LH_foot", "RH_foot"', '"LF_foot"'))
    assert main([str(tmp_path / "card.toml")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"no_walk: .*quadruped.urdf: foot 'LF_foot' at .* has no mirror image on the other side", out)


def test_robots_are_drawn_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "robots.png"
    try:
        main(["go2", "crazyflie"], picture=file, json=True)
    except RenderingError as missing:
        pytest.skip(str(missing))
    pixels = np.asarray(Image.open(file)).astype(float)
    assert pixels.shape == (320, 840, 3)
    for half in (pixels[40:, :420], pixels[40:, 420:]):
        assert (half.mean(-1) < 60).sum() > 300  # dark parts of a robot on a light floor
    with pytest.raises(ValueError, match=r"ends in \.png"):
        main(["go2"], picture=tmp_path / "robots.jpg")
