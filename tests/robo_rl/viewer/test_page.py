"""The live page in headless Chromium: what is seen of every kind of robot, and that controls reach the simulation.

A browser says when it has drawn the scene, by sending a picture of it; nothing here waits for a time to pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import WEBGL, Browser, find_browser

from robo_rl.policies.loading import load
from robo_rl.sim.drawing import has_terrain
from robo_rl.sim.tasks.loading import load_task
from robo_rl.viewer.live import Live
from robo_rl.viewer.page import Page

pytestmark = pytest.mark.browser
STRANGER = f"{Path(__file__).with_name('cart_and_pole.py')}:Balance"
PICTURE = (480, 640)  # pixels, height and width


@pytest.fixture
def opened(open_page) -> Iterator[Callable[..., tuple[Page, Browser]]]:
    """Serves a page of some robots, and opens it; the simulation runs."""
    stop, threads, pages = threading.Event(), [], []

    def start(live: Live) -> tuple[Page, Browser]:
        page = Page(live)
        pages.append(page)
        for work in (live.run, page.run):
            threads.append(threading.Thread(target=work, args=(stop,)))
            threads[-1].start()
        return page, open_page(page.url, WEBGL, (1000, 700))

    yield start
    stop.set()
    for thread in threads:
        thread.join(timeout=60)
    for page in pages:
        page.server.stop()


def still(target: str, robots: int, task: str | None = None, seconds: float = 0.5, **fixed: float) -> Live:
    """Robots that were simulated for a while and are paused then, so that every picture shows the same."""
    live = Live(load(target, task), robots, fixed={name.replace("__", "/"): value for name, value in fixed.items()})
    for _ in range(round(seconds / live.task.spec.control_period)):
        live.step()
    live.act({"pause": True})
    return live


def drawn(page: Page, browser: Browser) -> np.ndarray:
    """(height, width, 3) what the browser has drawn, from the first camera."""
    client = page.wait_drawn()
    return client.get_render(*PICTURE, timeout=300.0)[..., :3].astype(int)


def count(pixels: np.ndarray, color: str) -> int:
    """Pixels of a hue."""
    red, green, blue = np.moveaxis(pixels, -1, 0)
    return int(
        {
            "orange": (red > blue + 60) & (red > green + 10) & (green > 60),
            "green": (green > red + 30) & (green > blue + 5),
            "red": (red > green + 60) & (red > blue + 60),
            "blue": (blue > red + 60) & (blue > green + 30),
            "dark": pixels.max(-1) < 90,
        }[color].sum()
    )


def own_hosts(browser: Browser, page: Page) -> bool:
    """Whether nothing was asked of anybody but the page's own server."""
    own = ("data:", "blob:", f"http://127.0.0.1:{page.port}/", f"ws://127.0.0.1:{page.port}")
    return all(url.startswith(own) for url in browser.requests)


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for pages that come one after the other."""
    program = find_browser()
    if program is None:
        pytest.skip("needs a browser: apt-get install chromium")
    browser = Browser(program, str(tmp_path_factory.mktemp("browser")), WEBGL, (1000, 700))
    yield browser
    browser.close()


@pytest.mark.parametrize(
    ("policy", "hues", "text"),
    [
        ("arm-insert", {"dark": 100}, "The scene shows: hole."),
        pytest.param("diff-follow", {"green": 200, "dark": 150}, "path left", marks=pytest.mark.release),
        pytest.param("mobile-place", {"green": 5, "dark": 100}, "mobile-place", marks=pytest.mark.release),
        pytest.param("car-race", {"dark": 40}, "The scene shows: left wall, right wall.", marks=pytest.mark.release),
        pytest.param("car-lanes", {"dark": 400}, "The scene shows: edge, line.", marks=pytest.mark.release),
    ],
)
def test_of_more_families_robot_and_surroundings_are_seen(window, policy, hues, text):
    live, stop = still(f"zoo:{policy}", 1, seconds=0.0), threading.Event()
    page = Page(live)
    threads = [threading.Thread(target=work, args=(stop,)) for work in (live.run, page.run)]
    for thread in threads:
        thread.start()
    try:
        window.ask("Page.navigate", url=page.url)
        pixels = drawn(page, window)
        found = {hue: count(pixels, hue) for hue in hues}
        assert all(found[hue] >= least for hue, least in hues.items()), found
        window.until(f"document.body.innerText.includes({text!r})")
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=60)
        page.server.stop()


def test_vehicles_and_their_set_points_are_drawn_and_numbers_are_told(opened):
    page, browser = opened(still("zoo:quadrotor-hover", 2, initial__tilt=0.0))
    pixels = drawn(page, browser)
    assert count(pixels, "orange") >= 1  # front rotors: some pixels, as the vehicles are far and drift a little
    assert count(pixels, "green") > 10  # set-points
    assert count(pixels, "dark") >= 1  # bodies
    browser.until("!!document.querySelector('[data-drawn]:not([data-drawn=\"0\"])')")
    table = browser.run("document.querySelector('[data-drawn]').innerText")
    assert table.count(" cm") == 4  # two errors of two robots
    assert browser.complaints == []
    assert own_hosts(browser, page)


@pytest.mark.release
def test_one_vehicle_and_its_set_point_are_seen_from_near_after_it_has_flown(opened):
    page, browser = opened(still("zoo:quadrotor-hover", 1, seconds=1.0))
    pixels = drawn(page, browser)
    assert count(pixels, "orange") > 100
    assert count(pixels, "green") > 30


def test_a_walker_is_drawn_with_its_feet_and_commanded_velocity(opened):
    page, browser = opened(still("zoo:go2-flat", 1, command__x=1.0, command__stand=1.0))
    pixels = drawn(page, browser)
    assert count(pixels, "orange") > 30
    assert count(pixels, "green") > 20
    assert count(pixels, "dark") > 200
    assert browser.complaints == []


@pytest.mark.release  # with every change a walker on flat ground
def test_rough_ground_is_drawn_under_the_robot(opened):
    """Risers of stairs are darker than treads; on the flat patch there are none."""
    shades = {}
    for kind in ("stairs up", "flat"):
        task = load_task("go2-rough")
        place = (task.ground.kinds.index(kind) + 0.5) / len(task.ground.kinds)
        live = still("zoo:go2-rough", 1, ground__kind=place, ground__difficulty=1.0, initial__place=0.0)
        page, browser = opened(live)
        assert has_terrain(live.model, page.scene.size)
        pixels = drawn(page, browser)
        grey = np.ptp(pixels, axis=-1) < 12
        shades[kind] = int((grey & (pixels.max(-1) > 60) & (pixels.max(-1) < 190)).sum())
        assert count(pixels, "dark") > 100  # the robot
        assert browser.complaints == []
    assert shades["stairs up"] > 30_000  # pixels of risers, of 307,200
    assert shades["flat"] < 0.4 * shades["stairs up"]


def test_a_strangers_robots_are_drawn_without_any_code_of_their_own_for_it(opened):
    page, browser = opened(still("classical", 2, STRANGER))
    pixels = drawn(page, browser)
    assert count(pixels, "red") > 100  # poles
    assert count(pixels, "blue") > 100  # carts
    browser.until("document.body.innerText.includes('balance a pole on a cart')")
    browser.until("document.body.innerText.includes(' rad')")  # the text at the tips
    assert browser.complaints == []


def test_robots_that_can_not_be_drawn_have_a_page_that_says_so(opened):
    live = Live(load("classical", STRANGER.replace("Balance", "Blind")), 1)
    page, browser = opened(live)
    page.wait_drawn()
    browser.until("document.body.innerText.includes('no drawing() and poses()')")
    assert browser.complaints == []


def waits(live: Live, true: Callable[[], bool]) -> None:
    """Until something is so, looking at every frame."""
    number = 0
    for _ in range(10_000):
        if true():
            return
        frame = live.next_frame(number, 60.0)
        assert frame is not None
        number = frame.number
    pytest.fail("waited in vain")


def test_buttons_and_sliders_of_the_page_reach_the_simulation(opened):
    live = Live(load("classical", "quadrotor-hover"), 2)
    page, browser = opened(live)
    page.wait_drawn()
    browser.click_text("pause")
    waits(live, lambda: live.clock.paused)
    before = live.env.plant.truth()["linear_velocity"].clone()
    browser.click_text("+x")
    waits(live, lambda: bool((live.env.plant.truth()["linear_velocity"] != before).any()))
    change = live.env.plant.truth()["linear_velocity"] - before
    np.testing.assert_allclose(change, [[0.5, 0.0, 0.0]] * 2, atol=1e-6)
    browser.click_text("run")
    waits(live, lambda: not live.clock.paused)
    browser.click_text("ranges")
    name = "[...document.querySelectorAll('label')].find(e => e.textContent == 'mass, ×')"
    field = f"{name}?.closest('.mantine-Flex-root').querySelector('input[type=text]')"
    browser.until(f"!!{field}")
    browser.run(f"{field}.focus(); {field}.select()")
    browser.ask("Input.insertText", text="1.2")
    waits(live, lambda: live.ranges["mass"].value == 1.2)
    np.testing.assert_allclose(live.env.plant.param("mass"), 1.2 * live.task.spec.robot.mass, rtol=1e-6)
    browser.until("document.body.innerText.includes('● mass')")
    assert browser.complaints == []


def test_tabs_show_plots_signals_and_the_contract(opened):
    live = Live(load("zoo:go2-flat"), 1)
    page, browser = opened(live)
    page.wait_drawn()
    browser.click_text("plots")
    browser.until("document.querySelectorAll('.uplot canvas').length >= 2")
    browser.click_text("signals")
    browser.until("document.body.innerText.includes('FL_hip_joint')")
    browser.click_text("contract")
    browser.until("document.body.innerText.includes('joint_position_target (12)')")
    assert browser.complaints == []


def test_the_followed_robot_stays_in_the_middle_of_the_scene():
    """Without a browser: the frame that holds everything goes against the robot."""
    live = Live(load("zoo:go2-flat"), 2, fixed={"command/x": 1.0, "command/stand": 1.0})
    with Page(live) as page:
        assert page.scene.followed == 0
        for _ in range(200):
            live.step()
            live.act({"pause": False})
            page.scene.update(live.frame)
        place = live.frame.poses[0, 0, :3] + page.scene.offsets[0]
        assert np.linalg.norm(place[:2] - page.scene.offsets[0, :2]) > 1.0  # it has walked away
        assert np.linalg.norm(page.scene.root.position + place) < 0.4
        page.scene.followed = None
        still = np.array(page.scene.root.position)
        page.scene.update(live.frame)
        np.testing.assert_array_equal(page.scene.root.position, still)


def test_robots_without_common_ground_are_shown_apart():
    live = Live(load("classical", "quadrotor-track"), 4)
    with Page(live) as page:
        gaps: Any = page.scene.offsets[:, None] - page.scene.offsets[None]
        apart = np.linalg.norm(gaps, axis=-1) + 9 * np.eye(4)
        assert apart.min() > 0.5  # their courses are up to 2.4 m wide
        assert live.frame.moment.time == 0.0
        assert live.frame.counters.begun.tolist() == [1] * 4
