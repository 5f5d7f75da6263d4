"""Robots on legs on the live page and in films: what is shown is where the bodies are, what is asked is done."""

from __future__ import annotations

import json
import re
import threading
import urllib.request

import numpy as np
import pytest
import torch
from PIL import Image

from robo_rl.loading import Loaded
from robo_rl.viewer.server import Viewer
from robo_rl.viewer.walking import Stand, Walking
from sim.tasks.loading import load_task

TASK = load_task("go2-flat")


def standing(robots: int = 2) -> Walking:
    return Walking(Loaded("standing", TASK, Stand(TASK)), robots)


def content(live: Walking) -> dict:
    found = live.next_frame(0, 10.0)
    assert found is not None
    return json.loads(json.dumps(found.content))


def test_the_feet_of_the_page_are_those_of_the_plant():
    live = standing()
    live.act({"pause": True})
    frame, scene, truth = content(live), live.scene(), live.env.plant.truth()
    feet = {shape["name"]: shape for shape in scene["shapes"] if shape["kind"] == "sphere" and "foot" in shape["name"]}
    for i in range(2):
        for k, name in enumerate(TASK.card.feet):
            x, y, z, qx, qy, qz, qw = frame["bodies"][i][feet[name]["body"]]
            at, axis = np.array(feet[name]["at"]), np.array([qx, qy, qz])
            turned = at + 2 * np.cross(axis, np.cross(axis, at) + qw * at)
            foot = truth["foot_position"][i, 3 * k : 3 * k + 3].numpy() + np.array([*live.home[i].tolist(), 0.0])
            np.testing.assert_allclose(np.array([x, y, z]) + turned, foot, atol=2e-3)


def test_robots_that_get_up_are_shown_without_commands_and_can_be_pushed():
    task = load_task("go2-recover")
    live = Walking(Loaded("standing", task, Stand(task)), 2, fixed={"initial/easy": 0.0})
    live.act({"pause": True})
    assert not any(name.startswith("command/") for name in (knob["name"] for knob in live.scene()["knobs"]))
    assert content(live)["wanted"] == [[0.0] * 3] * 2
    live.push([0.0, 1.5, 0.0])
    for _ in range(5):
        live.step()
    assert (live.env.plant.truth()["linear_velocity"][:, 1] > 0.3).all()


def test_sliders_command_the_velocities_that_signals_and_errors_tell():
    live = standing()
    for name, value in (("command/x", 0.8), ("command/y", -0.3), ("command/yaw", 0.5)):
        live.act({"knob": {"name": name, "value": value}})
    live.step()
    live.act({"pause": True})
    np.testing.assert_allclose(live._signals["linear_velocity_command"], [[0.8, -0.3]] * 2, atol=1e-6)
    np.testing.assert_allclose(live._signals["yaw_rate_command"], [[0.5]] * 2, atol=1e-6)
    np.testing.assert_allclose(content(live)["wanted"], [[0.8, -0.3, 0.5]] * 2, atol=1e-3)


def test_a_push_changes_the_momentum_by_mass_times_the_asked_velocity():
    live = standing(1)
    live.act({"push": [0.5, 0.0, 0.0]})
    impulse = 0.0
    for _ in range(10):
        live.step()
        impulse += float(live.env.plant.param("force")[0, 0]) * 0.02
    assert impulse == pytest.approx(0.5 * float(live.env.plant.param("mass").sum()), rel=1e-5)


def test_loads_and_motors_of_the_knobs_reach_the_plant():
    live = standing(1)
    mass = float(live.env.plant.param("mass").sum())
    for name, value in (("payload", 5.0), ("strength", 0.5), ("command_delay", 0.04), ("ground_friction", 0.3)):
        live.act({"knob": {"name": name, "value": value}})
    plant = live.env.plant
    assert float(plant.param("mass").sum()) == pytest.approx(mass + 5.0)
    torch.testing.assert_close(plant.param("resistance"), 2 * plant.nominal.resistance)
    np.testing.assert_allclose(plant.param("command_delay"), 0.04)
    np.testing.assert_allclose(plant.param("ground_friction"), 0.3)


def test_the_friction_knob_reaches_all_of_rough_ground():
    rough = load_task("go2-rough")
    live = Walking(Loaded("standing", rough, Stand(rough)), 1)
    live.act({"knob": {"name": "ground_friction", "value": 0.3}})
    plant = live.env.plant
    np.testing.assert_allclose(plant.batch.get_model(0).geom_friction[plant.indices.ground, 0], 0.3)


def test_who_falls_begins_again_beside_the_others():
    live = standing(3)
    live.home += torch.tensor([4.0, 2.0])  # they have walked there
    live.env.plant.place(
        torch.tensor([1]), torch.tensor([[0.0, 0.0, 0.1]]), torch.tensor([[1.0, 0.0, 0.0, 0.0]]),
        torch.zeros(1, 3), torch.zeros(1, 3), TASK.stand, torch.zeros_like(TASK.stand),
    )  # fmt: skip
    live.step()
    assert live.failures == [0, 1, 0]
    live.act({"pause": True})
    places = np.array(content(live)["position"])
    np.testing.assert_allclose(places[1, :2], places[[0, 2], :2].mean(0), atol=0.05)


def test_unknown_requests_are_refused():
    live = standing(1)
    for request in ({"shift": [0, 0, 0]}, {"push": [9, 0, 0]}, {"knob": {"name": "wind", "value": 1}}):
        with pytest.raises(ValueError, match="expected"):
            live.act(request)


@pytest.mark.browser
def test_in_chromium_the_page_draws_a_robot_and_its_numbers_without_complaint(chromium, tmp_path):
    stop, live = threading.Event(), standing()
    live.act({"knob": {"name": "command/x", "value": 1.0}})
    picture = tmp_path / "page.png"
    with Viewer(live) as server:
        threads = [threading.Thread(target=server.serve_forever), threading.Thread(target=live.run, args=(stop,))]
        for thread in threads:
            thread.start()
        assert b"EventSource" in urllib.request.urlopen(server.url, timeout=60).read()
        url = f"{server.url}?frames=40"
        shot = chromium("--virtual-time-budget=10000", "--window-size=1280,800", f"--screenshot={picture}", url)
        page = chromium("--virtual-time-budget=10000", "--dump-dom", url)
        stop.set()
        server.shutdown()
        for thread in threads:
            thread.join(timeout=60)
    assert "CONSOLE" not in shot.stderr + page.stderr
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)[:, :960]
    orange = (pixels[..., 0] > pixels[..., 2] + 90) & (pixels[..., 0] > pixels[..., 1] + 30)
    green = (pixels[..., 1] > pixels[..., 0] + 60) & (pixels[..., 1] > pixels[..., 2] + 15)
    assert orange.sum() > 100  # feet
    assert green.sum() > 100  # arrows
    table = page.stdout.split('<tbody id="flights">')[1].split("</tbody>")[0]
    assert len(re.findall(r">\d\.\d\d<", table)) == 2
