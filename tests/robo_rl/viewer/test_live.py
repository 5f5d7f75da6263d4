"""What a person does to robots under way, against the physics that it means and against closed forms."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_rl.evaluate.evaluation import StopPolicy
from robo_rl.policies.loading import Loaded, load
from robo_rl.sim.robots.multirotor import GRAVITY
from robo_rl.sim.tasks.loading import load_task
from robo_rl.viewer.live import GREATEST_PUSH, Live

STRANGER = f"{Path(__file__).with_name('cart_and_pole.py')}:Balance"
CALM = {
    "mass": 1.0,
    "thrust": 1.0,
    "thrust_of_one_rotor": 1.0,
    "wind": 0.0,
    "force": 0.0,
    "torque": 0.0,
    "noise": 0.0,
    "delay": 0.01,
    "initial/tilt": 0.0,
    "initial/linear_velocity": 0.0,
    "initial/angular_velocity": 0.0,
}
WALK = load_task("go2-flat")
STILL = {"payload": 0.0, "push/x": 0.0, "push/y": 0.0, "base_mass": 1.0, "center_of_mass": 0.0}


def hovering(robots: int = 2, **fixed: float) -> Live:
    return Live(load("classical", "quadrotor-hover"), robots, fixed={**CALM, **fixed})


def standing(robots: int = 1, **fixed: float) -> Live:
    return Live(Loaded("standing", WALK, StopPolicy(WALK)), robots, fixed={**STILL, **fixed})


def steps(live: Live, seconds: float) -> None:
    for _ in range(round(seconds / live.task.spec.control_period)):
        live.step()


def test_mean_thrust_at_hover_carries_the_mass_that_the_slider_says():
    """Level hover without disturbance: Σ c2 Ω² = m g."""
    live = hovering()
    card = live.task.spec.robot
    for factor in (0.8, 1.25):
        live.act({"range": {"name": "mass", "value": factor}})
        steps(live, 9.0)
        speed = live.env.plant.truth()["rotor_speed"]
        thrust = card.thrust[2] * speed.square().sum(-1)
        np.testing.assert_allclose(thrust, factor * card.mass * GRAVITY, rtol=0.01)


def test_ranges_that_are_set_hold_at_once_and_in_episodes_that_begin_later():
    live = hovering()
    wanted = {"mass": 1.2, "wind": 2.0, "delay": 0.03, "noise": 3.0}
    for name, value in wanted.items():
        live.act({"range": {"name": name, "value": value}})
    for _ in range(2):
        plant = live.env.plant
        np.testing.assert_allclose(plant.param("mass"), 1.2 * live.task.spec.robot.mass, rtol=1e-6)
        np.testing.assert_allclose(plant.param("wind"), 2.0)
        np.testing.assert_allclose(live.env.drawn["noise"], 3.0)
        np.testing.assert_allclose(live.env.drawn["delay"], 0.03)
        live.act({"reset": True})


def test_the_longest_latency_that_can_be_set_is_simulated():
    """Readings come as late as the slider says: a vehicle that moves steadily is seen where it was."""
    live = hovering(1)
    longest = live.ranges["delay"].high
    assert longest > live.task.spec.ranges["delay"].end[1]
    live.act({"range": {"name": "delay", "value": longest}})
    for _ in range(10):
        live.env.plant.truth()["position"][:, 0] += 0.01
        before = live.env.plant.truth()["position"][0, 0].item()
        live.step()
    seen = live._signals["position"][0, 0].item()
    assert before - seen == pytest.approx(0.01 * longest / 0.01, rel=0.3)


def test_released_ranges_are_drawn_again():
    live = hovering(16)
    assert (live.env.drawn["mass"] == 1.0).all()
    live.act({"release": "mass"})
    live.act({"reset": True})
    drawn = live.env.drawn["mass"]
    assert len(drawn.unique()) == 16
    assert 0.9 <= drawn.min() <= drawn.max() <= 1.1
    assert (live.env.drawn["thrust"] == 1.0).all()
    live.act({"release": None})
    live.act({"reset": True})
    assert len(live.env.drawn["thrust"].unique()) == 16


def test_vehicles_go_where_the_operator_sends_them_and_their_error_is_from_there():
    live = hovering()
    for axis, value in zip("xyz", (0.3, -0.2, 0.1), strict=True):
        live.act({"command": {"name": f"position_setpoint/{axis}", "value": value}})
    steps(live, 9.0)
    np.testing.assert_allclose(live.env.plant.truth()["position"], [[0.3, -0.2, 0.1]] * 2, atol=0.02)
    live.act({"pause": True})
    assert live.frame.moment.errors["position_error"].max() < 0.02
    target = next(marker for marker in live.frame.markers if marker.name == "set-point")
    np.testing.assert_allclose(target.position, [[0.3, -0.2, 0.1]] * 2, atol=1e-6)
    live.act({"command": {"name": "position_setpoint/x", "value": None}})
    steps(live, 5.0)
    np.testing.assert_allclose(live.env.plant.truth()["position"][:, 0], 0.0, atol=0.02)


def test_a_walkers_commands_reach_its_signals_and_its_error():
    live = standing()
    for name, value in (("linear_velocity_command/x", 0.8), ("yaw_rate_command/z", -0.5)):
        live.act({"command": {"name": name, "value": value}})
    live.step()
    perceived = live._perceived(live._signals)
    assert perceived["linear_velocity_command"][0, 0] == pytest.approx(0.8)
    assert perceived["yaw_rate_command"][0, 0] == pytest.approx(-0.5)
    live.act({"pause": True})
    assert live.frame.moment.truth["linear_velocity_command"][0, 0] == pytest.approx(0.8)
    turning = float(live.frame.moment.truth["angular_velocity"][0, 2])
    assert live.frame.moment.errors["yaw_rate_error"][0] == pytest.approx(abs(turning + 0.5), abs=1e-5)


def test_payload_and_motors_of_the_sliders_reach_the_plant():
    live = standing(**{"payload": 0.0, "strength": 1.0})
    plant = live.env.plant
    mass = float(plant.param("mass").sum())
    for name, value in (("payload", 3.0), ("strength", 0.8), ("command_delay", 0.04), ("ground_friction", 0.3)):
        live.act({"range": {"name": name, "value": value}})
    assert float(plant.param("mass").sum()) == pytest.approx(mass + 3.0)
    torch.testing.assert_close(plant.param("resistance"), plant.nominal.resistance / 0.8)
    np.testing.assert_allclose(plant.param("command_delay"), 0.04)
    np.testing.assert_allclose(plant.param("ground_friction"), 0.3)


def test_the_friction_slider_reaches_all_of_rough_ground():
    rough = load_task("go2-rough")
    live = Live(Loaded("standing", rough, StopPolicy(rough)), 1)
    live.act({"range": {"name": "ground_friction", "value": 0.3}})
    plant = live.env.plant
    np.testing.assert_allclose(plant.batch.get_model(0).geom_friction[plant.indices.ground, 0], 0.3)


def test_a_push_is_added_to_the_velocity_of_all_robots():
    for live in (hovering(), standing(2)):
        before = live.env.plant.truth()["linear_velocity"].clone()
        live.act({"push": [0.5, -0.25, 1.0]})
        change = live.env.plant.truth()["linear_velocity"] - before
        np.testing.assert_allclose(change, [[0.5, -0.25, 1.0]] * 2, atol=1e-5)


def test_nothing_moves_while_paused_but_step_by_step():
    live, stop = hovering(), threading.Event()
    live.act({"pause": True})
    thread = threading.Thread(target=live.run, args=(stop,))
    thread.start()
    try:
        first = live.next_frame(live.frame.number + 3, 60.0)
        assert first is not None
        assert first.moment.time == 0.0
        live.act({"step": True})
        frame = first
        while frame is not None and frame.moment.time == 0.0:
            frame = live.next_frame(frame.number, 60.0)
        assert frame is not None
        later = live.next_frame(frame.number + 3, 60.0)
        assert later is not None
        assert later.moment.time == pytest.approx(0.01)
        live.act({"pause": False})
        running = live.next_frame(later.number + 3, 60.0)
        assert running is not None
        assert running.moment.time > 0.01
    finally:
        stop.set()
        thread.join(timeout=60)


def test_a_simulation_that_can_not_keep_up_still_answers():
    """A control period of a microsecond: every step is late."""
    live, stop = hovering(), threading.Event()
    object.__setattr__(live.task.spec, "control_period", 1e-6)
    thread = threading.Thread(target=live.run, args=(stop,))
    thread.start()
    try:
        for pause in (True, False) * 20:
            live.act({"pause": pause})
            assert live.next_frame(0, timeout=60) is not None
    finally:
        stop.set()
        thread.join(timeout=60)
    assert live.frame.moment.time > 0


def test_a_failed_robot_is_counted_and_begins_again():
    live = hovering()
    live.env.plant.truth()["position"][0] = torch.tensor([2.0, 0.0, 0.0])
    live.step()
    live.act({"pause": True})
    counters = live.frame.counters
    assert counters.failed.tolist() == [1, 0]
    assert counters.begun.tolist() == [2, 1]
    assert (counters.ended, counters.success) == (1, 0.0)
    assert live.env.plant.truth()["position"][0].norm() < 0.5


def test_episodes_that_end_by_time_are_successes():
    live = Live(load("classical", "quadrotor-hover"), 2, seconds=0.5, fixed=CALM)
    steps(live, 1.6)
    live.act({"pause": True})
    assert live.frame.counters.begun.tolist() == [4, 4]
    assert (live.frame.counters.ended, live.frame.counters.success) == (6, 1.0)
    live.act({"again": None})
    steps(live, 1.0)
    live.act({"pause": True})
    assert live.frame.counters.begun.tolist() == [4, 4]


def test_policies_and_the_controller_and_the_stop_take_turns(trained_run):
    live = Live(load(str(trained_run)), 2, others={"other": load("classical", "quadrotor-hover").policy})
    assert list(live.policies) == ["policy", "controller", "stop", "other"]
    for policy in ("controller", "policy", "other"):
        live.act({"policy": policy})
        assert live.frame.policy == policy
        assert live.frame.counters.begun.tolist() == [1, 1]
        steps(live, 0.5)
    live.act({"policy": "stop"})
    live.step()
    assert (live._sent["rotor_speed"] == 0).all()


def test_a_frame_has_poses_and_markers_of_all_robots():
    live = standing(3)
    frame = live.frame
    assert frame.poses is not None
    np.testing.assert_allclose(frame.poses[:, 0, :3], frame.moment.truth["position"], atol=1e-5)
    names = {marker.name for marker in frame.markers}
    assert {"velocity", "commanded velocity", "foot on the ground"} <= names


def test_a_strangers_robots_can_be_played_with():
    """Its file gives drawing, poses, push and markers, and nothing for the page."""
    live = Live(load("classical", STRANGER), 3)
    assert list(live.policies) == ["controller", "stop"]
    assert list(live.commands) == ["cart_setpoint/x"]
    live.act({"command": {"name": "cart_setpoint/x", "value": 0.4}})
    live.act({"push": [0.5, 0.0, 0.0]})
    steps(live, 20.0)
    live.act({"pause": True})
    assert live.frame.poses is not None
    np.testing.assert_allclose(live.frame.poses[:, 0, 0], 0.4, atol=0.01)
    assert live.frame.counters.failed.tolist() == [0, 0, 0]


def test_a_plant_that_can_not_be_drawn_or_pushed_is_simulated_all_the_same():
    live = Live(load("classical", STRANGER.replace("Balance", "Blind")), 2)
    steps(live, 1.0)
    live.act({"pause": True})
    assert live.model is None
    assert live.frame.poses is None
    with pytest.raises(ValueError, match=r"BlindPlant can't be pushed; it has no push\(\)"):
        live.act({"push": [1.0, 0.0, 0.0]})


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ACTIONS = (
    "pause", "step", "speed", "reset", "policy", "push", "range", "release", "command", "again", "click", "clear",
)  # fmt: skip
NAMED = st.fixed_dictionaries({"name": st.sampled_from(["mass", "delay", "position_setpoint/x"]), "value": JSON})


@pytest.fixture(scope="module")
def target() -> Live:
    return hovering()


@given(request_=st.dictionaries(st.sampled_from(ACTIONS), JSON | NAMED, min_size=1, max_size=1) | JSON)
@settings(max_examples=200, deadline=None)
def test_no_request_can_break_the_simulation(target, request_):
    with contextlib.suppress(ValueError):
        target.act(request_)
    target.step()
    assert torch.isfinite(target.env.plant.truth()["position"]).all()
    assert set(target.actions) == set(ACTIONS)


@pytest.mark.parametrize(
    "request_",
    [
        None, [], 7, {}, {"push": [1, 2]}, {"push": [1, 2, float("nan")]}, {"push": "north"}, {"pause": 1},
        {"reset": False}, {"step": 2}, {"policy": "autopilot"}, {"policy": ["policy"]}, {"range": {"name": "mass"}},
        {"range": {"name": "gravity", "value": 1}}, {"release": "gravity"}, {"speed": "fast"}, {"shutdown": True},
        {"command": {"name": "mass", "value": 1}}, {"push": [0, 0, 1], "pause": True}, {"again": float("inf")},
    ],
)  # fmt: skip
def test_a_bad_request_is_refused_in_a_sentence_and_changes_nothing(target, request_):
    before = target.frame
    with pytest.raises(ValueError, match="expected"):
        target.act(request_)
    assert target.frame is before


def test_a_push_is_no_stronger_than_the_slider_allows(target):
    before = target.env.plant.truth()["linear_velocity"].clone()
    target.act({"push": [1e9, 0, 0]})
    change = target.env.plant.truth()["linear_velocity"] - before
    np.testing.assert_allclose(change, [[GREATEST_PUSH, 0.0, 0.0]] * 2, atol=1e-5)
    target.act({"reset": True})
