"""Clicks on the floor of the live page: goals and obstacles, against plain geometry, and by a browser's own mouse."""

from __future__ import annotations

import itertools
import math
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from browser import WEBGL

from robo_rl.policies.loading import load
from robo_rl.sim.scenes.rooms import COLUMNS, ROWS
from robo_rl.viewer.live import Live
from robo_rl.viewer.page import Page
from tests.suite import representatives

CALM = {"room/fill": 0.15, "noise": 0.0, "delay": 0.0, "speed_scale": 1.0, "turn_scale": 1.0, "lidar/yaw": 0.0}


def driving(task: str = "diff-nav", robots: int = 1, **fixed: float) -> Live:
    return Live(load("classical", task), robots, fixed={**CALM, **fixed})


def free(live: Live, distance: float, robot: int = 0) -> tuple[float, float]:
    """A place at a distance (m) from a robot, beside which nothing is."""
    truth, cell = live.env.plant.truth(), live.env.plant.rooms.cell
    x, y = truth["place"][robot].tolist()
    cells = live.env.plant.rooms.cells[robot]
    for bearing in np.linspace(0, 2 * np.pi, 60):
        place = (x + distance * math.cos(bearing), y + distance * math.sin(bearing))
        column, row = (math.floor(z / cell) for z in place)
        inside = 2 < row < ROWS - 3 and 2 < column < COLUMNS - 3
        if inside and not cells[row - 1 : row + 2, column - 1 : column + 2].any():
            return place
    pytest.fail("there is no free place")


def goal(place: tuple[float, float] | list[float], what: str = "goal", robot: int = 0) -> dict[str, object]:
    return {"click": {"what": what, "robot": robot, "place": list(place)}}


@pytest.mark.parametrize("task", representatives(["diff-nav", "omni-nav"], ["diff-nav"]))
def test_a_robot_drives_to_the_goal_that_was_clicked(task: str) -> None:
    live = driving(task, robots=2)
    place = free(live, 0.7 * live.task.wide)
    other = live.env.plant.truth()["to_goal"][1].clone()
    live.act(goal(place))
    truth = live.env.plant.truth()
    np.testing.assert_allclose(truth["place"][0] + truth["to_goal"][0], place, atol=1e-5)
    assert torch.equal(truth["to_goal"][1], other)
    shown = next(marker for marker in live.frame.markers if marker.name == "goal")
    np.testing.assert_allclose(shown.position[0, :2], place, atol=1e-5)
    np.testing.assert_allclose(live.env.truth(torch.arange(2))["position_setpoint"][0], place, atol=1e-5)
    begun = live.frame.counters.begun[0]
    for _ in range(300):
        near = float(truth["to_goal"][0].norm())
        live.step()
        if live._counters.begun[0] > begun:
            break
    assert near < 0.3 * live.task.wide + 0.1
    assert live._counters.failed[0] == 0


def test_a_goal_in_a_wall_outside_or_out_of_reach_is_refused_and_the_old_one_stays() -> None:
    live = driving()
    rooms, before = live.env.plant.rooms, live.env.plant.truth()["to_goal"].clone()
    row, column = (rooms.cells[0, 4:-4, 1:-1] > 0).nonzero()[0].tolist()
    inside = [(column + 1.5) * rooms.cell, (row + 4.5) * rooms.cell]
    for place, sentence in (
        (inside, r"goal \(.*\) m is inside a wall or an obstacle"),
        ([-1.0, 2.0], "is outside the room"),
        ([0.5 * rooms.cell, 2.0], "is outside the room"),
    ):
        with pytest.raises(ValueError, match=sentence):
            live.act(goal(place))
    rooms.cells[0, 20] = 1  # a wall across the room
    y = 3.0 if live.env.plant.truth()["place"][0, 1] > 20 * rooms.cell else 25 * rooms.cell
    rooms.cells[0, math.floor(y / rooms.cell) - 1 : math.floor(y / rooms.cell) + 2, 10:15] = 0
    with pytest.raises(ValueError, match="no way leads there"):
        live.act(goal([12.5 * rooms.cell, y]))
    assert torch.equal(live.env.plant.truth()["to_goal"], before)


def test_the_lidar_sees_a_dropped_obstacle_it_counts_for_contact_and_is_removed_with_all_others() -> None:
    live = driving(robots=2, **{"initial/heading": 0.0})
    plant = live.env.plant
    cells, ranges = plant.rooms.cells.clone(), plant.truth()["scan"].clone()
    place = free(live, 3.5 * plant.rooms.cell)
    live.act(goal(place, "obstacle"))
    low = np.floor(np.array(place) / plant.rooms.cell) * plant.rooms.cell
    x, y = plant.truth()["place"][0].tolist()
    origin = np.array([x + live.task.card.lidar_position[0], y])  # it looks along x
    angles = live.task.scan.angle_min + live.task.scan.angle_increment * np.arange(ranges.shape[1])
    seen = 0
    for angle, before, after in zip(angles, ranges[0].tolist(), plant.truth()["scan"][0].tolist(), strict=True):
        way = np.array([math.cos(angle), math.sin(angle)])
        with np.errstate(divide="ignore"):
            ends = np.sort([(low - origin) / way, (low + plant.rooms.cell - origin) / way], axis=0)
        near, far = ends[0].max(), ends[1].min()
        hit = 0 < near < far and near < before
        assert after == pytest.approx(near if hit else before, abs=1e-4)
        seen += hit
    assert seen >= 2
    assert torch.equal(plant.truth()["scan"][1], ranges[1])
    state, at = plant.state(torch.tensor([0])), torch.from_numpy(low - [0.5 * live.task.card.radius, 0.0])
    plant.set_state(torch.tensor([0]), state._replace(position=at.float()[None]))
    assert bool(live.task.failed(plant.truth())[0])
    plant.set_state(torch.tensor([0]), state)
    live.act({"clear": True})
    assert torch.equal(plant.rooms.cells, cells)
    assert torch.equal(plant.truth()["scan"], ranges)


def test_an_obstacle_on_a_robot_or_its_goal_and_clicks_that_are_none_are_refused() -> None:
    live = driving()
    plant = live.env.plant
    truth = plant.truth()
    for place, who in ((truth["place"][0], "robot"), (truth["place"][0] + truth["to_goal"][0], "goal")):
        with pytest.raises(ValueError, match=f"would be where the {who} is"):
            live.act(goal(place.tolist(), "obstacle"))
    good = {"what": "goal", "robot": 0, "place": [1.0, 1.0]}
    for changed, sentence in (
        ({"what": "fly"}, r"click is 'fly'; expected one of \['goal', 'obstacle'\]"),
        ({"robot": 1}, "robot is 1; expected a number from 0 to 0"),
        ({"robot": False}, "robot is False"),
        ({"place": [1.0]}, r"place is \[1.0\]; expected two numbers in m"),
        ({"place": [1.0, float("nan")]}, "place is nan; expected a number"),
    ):
        with pytest.raises(ValueError, match=sentence):
            live.act({"click": {**good, **changed}})
    with pytest.raises(ValueError, match=r"click is 'goal'; expected one of \['obstacle'\]"):
        Live(load("zero", "agv-maze"), 1).act(goal([1.0, 1.0]))


def test_a_click_is_taken_where_its_ray_meets_the_floor_of_the_robot_s_own_world() -> None:
    live = driving(robots=2)
    with Page(live) as page:
        scene = page.scene
        point = np.array([1.25, 2.5, 0.0])
        eye = np.array([3.0, -1.0, 4.0])
        aim = point + scene.offsets[1] + np.array(scene.root.position) - eye
        assert scene.floor_point(eye, aim, 1) == pytest.approx(point[:2].tolist(), abs=1e-5)
        assert scene.floor_point(eye, [1.0, 0.0, 0.1], 1) is None
        said: list[str] = []
        page._refuse = said.append  # type: ignore[method-assign]
        (chosen,) = page.controls.clicks._impl.update_cb
        chosen(SimpleNamespace(client=object(), target=SimpleNamespace(value="sets the goal")))
        (entry,) = page.server.scene._scene_pointer_cb
        entry.callback(SimpleNamespace(ray_origin=(0.0, 0.0, 1.0), ray_direction=(1.0, 0.0, 0.0)))
        assert said == ["a click is on no floor; expected one below the horizon"]
        chosen(SimpleNamespace(client=object(), target=SimpleNamespace(value="does nothing")))
        assert not page.server.scene._scene_pointer_cb


def open_floor(live: Live, page: Page, camera: Any) -> tuple[float, float, np.ndarray]:
    """Where in the picture, in its heights from its middle, the floor is seen with nothing on it; and that place."""
    w, i, j, k = camera.wxyz
    axes = np.array([
        [1 - 2 * (j * j + k * k), 2 * (i * j - w * k), 2 * (i * k + w * j)],
        [2 * (i * j + w * k), 1 - 2 * (i * i + k * k), 2 * (j * k - w * i)],
        [2 * (i * k - w * j), 2 * (j * k + w * i), 1 - 2 * (i * i + j * j)],
    ])  # fmt: skip
    scale, rooms = 2 * math.tan(0.5 * camera.fov), live.env.plant.rooms
    for right, up in itertools.product((0.12, -0.12, 0.2, -0.2), (-0.1, -0.2, 0.0, 0.1)):
        ray = axes @ [scale * right, -scale * up, 1.0]  # a camera looks along z, with y downwards
        place = page.scene.floor_point(camera.position, ray, 0)
        column, row = (math.floor(z / rooms.cell) for z in place) if place is not None else (0, 0)
        inside = 2 < row < ROWS - 3 and 2 < column < COLUMNS - 3
        if inside and not rooms.cells[0, row - 2 : row + 3, column - 2 : column + 3].any():
            return right, up, place
    pytest.fail("no floor is seen")


@pytest.mark.browser
def test_a_click_of_the_mouse_in_a_browser_sets_the_goal_there(open_page) -> None:
    live = driving()
    live.act({"pause": True})
    stop = threading.Event()
    with Page(live) as page:
        page.take_clicks("goal")
        work = [threading.Thread(target=run, args=(stop,)) for run in (live.run, page.run)]
        for thread in work:
            thread.start()
        try:
            browser = open_page(page.url, WEBGL, (1000, 700))
            client = page.wait_drawn()
            rectangle = "document.querySelector('canvas').getBoundingClientRect()"
            left, top, width, height = browser.run(f"(box => [box.x, box.y, box.width, box.height])({rectangle})")
            right, up, expected = open_floor(live, page, client.camera)
            x, y = left + 0.5 * width + right * height, top + 0.5 * height - up * height
            before = live.env.draws.goal[0].clone()
            for kind in ("mousePressed", "mouseReleased"):
                browser.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
            end = time.monotonic() + 60
            while torch.equal(live.env.draws.goal[0], before) and time.monotonic() < end:
                live.next_frame(live.frame.number, 0.2)
            np.testing.assert_allclose(live.env.draws.goal[0], expected, atol=0.02)
            assert browser.complaints == []
        finally:
            stop.set()
            for thread in work:
                thread.join(timeout=60)
