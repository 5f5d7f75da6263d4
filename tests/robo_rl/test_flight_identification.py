"""What is hidden in a simulated multirotor is found from its flights, also from those of another engine."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from robo_rl.contract import Network, Provenance
from robo_rl.controllers.gate.codes import State
from robo_rl.deploy.robot.logs.logfile import LIVE, LogWriter, StepRecord
from robo_rl.deploy.robot.logs.reader import Log, read_log
from robo_rl.identification.findings import find
from robo_rl.identification.multirotor import bounds, faults
from robo_rl.identification.multirotor.fit import Flown, fit
from robo_rl.identification.multirotor.flight import Flight, Flights, flights
from robo_rl.identification.multirotor.model import Follower, earliest, patterns, unknowns
from robo_rl.identification.recorded import IdentificationError
from robo_rl.policies.loading import load
from robo_rl.sim.env import VecEnv
from robo_rl.sim.plants.multirotor import MultirotorPlant, advance
from robo_rl.sim.tasks.loading import load_task

TASK = load_task("quadrotor-track")
CARD = TASK.spec.robot
HIDDEN = {
    "mass": 1.1, "thrust": 0.95, "inertia": 1.5, "torque_ratio": 0.8, "rise_time": 0.7, "fall_time": 1.3,
    "rotor_inertia": 0.7, "delay": 0.008,
}  # fmt: skip
STILL = {
    "thrust_of_one_rotor": 1.0, "force": 0.0, "torque": 0.0, "wind": 0.0, "initial/tilt": 0.2, "goal/size": 0.6,
    "goal/period": 5.0, "goal/step_time": 3.0,
}  # fmt: skip
PERIOD = 0.01
NOISE = (0.002, 0.004, 0.01, 0.02)


@functools.cache
def flown(seconds: float, seed: int = 0, engine: bool = False, late: int = 0) -> Flight:
    """A robot with hidden figures under the shipped policy; with ``engine`` simulated by MuJoCo at 1 ms.

    Its commands act so many steps ``late``.
    """
    policy = load("zoo:quadrotor-track").policy
    env = VecEnv(
        TASK, 1, seed, fixed=HIDDEN | STILL, evaluation=True, episode_length=seconds + 1,
        make_plant=TASK.engines()[0].make_plant if engine else None,
    )  # fmt: skip
    rows, state, signals = [], policy.initial_state(1), env.signals()
    on_their_way = [{"rotor_speed": torch.full((1, 4), CARD.hover_speed)}] * late
    for _ in range(round(seconds / PERIOD)):
        commands, state = policy(signals, state)
        rows.append({name: value[0].double().numpy().copy() for name, value in {**signals, **commands}.items()})
        on_their_way = [*on_their_way, commands]
        step = env.step(on_their_way[0])
        on_their_way = on_their_way[1:]
        signals = step.signals
        assert not step.failed.any()
    seen = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    turned = np.linalg.norm(seen["orientation"], axis=1, keepdims=True)
    return Flight(
        seen["position"], seen["orientation"] / turned, seen["linear_velocity"], seen["angular_velocity"],
        seen["rotor_speed"], HIDDEN["delay"],
    )  # fmt: skip


def record(*parts: Flight) -> Flights:
    return Flights("flight.mcap", PERIOD, parts, NOISE)


@functools.cache
def fitted() -> Flown:
    return fit(CARD, record(flown(14.0)), iterations=7)


def true(name: str) -> float:
    """What is found of a hidden robot: forces and torques per mass."""
    per_mass = HIDDEN["mass"] if name in ("thrust", "inertia", "rotor_inertia") else 1.0
    return HIDDEN.get(name, 0.0) / per_mass


def log(path: Path, task: str = "quadrotor-track", steps: int = 600, change: object = None) -> Log:
    """A session at rest in the air, under a policy; ``change`` a row's signals, by its number."""
    network = Network((8,), "tanh", False)
    contract = load_task(task).spec.contract(Provenance("apg", 0, 1, "0" * 64), network)
    writer = LogWriter(path, contract, {"wall": "0"})
    upper = np.concatenate([np.array(c.upper) for c in contract.commands])
    for k in range(steps):
        time = 10000 * (k + (5 if k > 400 else 0))  # steps are missing
        signals = np.zeros(sum(s.size for s in contract.signals))
        signals[6] = 1.0
        if change is not None:
            change(k, signals)  # type: ignore[operator]
        command, state = 0.5 * upper, State.ACTIVE if k >= 100 else State.READY
        stamps = (time - 4000,) * len(contract.signals)
        writer.write(
            StepRecord(
                time,
                1000 * time,
                signals,
                stamps,
                contract.initial_state,
                command,
                command,
                None,
                command,
                {"state": state, "mode": LIVE},
            )
        )
    writer.close()
    return read_log(path)


@pytest.mark.parametrize("name", ["thrust", "inertia", "torque_ratio", "rise_time", "fall_time", "rotor_inertia"])
def test_a_hidden_figure_is_found_within_three_deviations(name: str) -> None:
    estimate = next(e for e in fitted().estimates if e.unknown.name == name)
    unknown = estimate.unknown
    assert estimate.determined
    assert abs(unknown.inner(estimate.value) - unknown.inner(true(name))) < 3 * estimate.error


def test_a_good_fit_has_no_fault_and_predicts_much_better_than_the_card() -> None:
    assert faults(record(flown(14.0)), fitted()) == []
    assert fitted().error_nominal > 5 * fitted().error_fitted


def test_the_ranges_hold_what_was_hidden() -> None:
    told = bounds(fitted(), TASK.spec.ranges)
    assert told["mass"] == (1.0, 1.0)
    assert told["delay"][0] <= HIDDEN["delay"] <= told["delay"][1] < 0.012
    assert told["thrust_of_one_rotor"][0] < 1.0 < told["thrust_of_one_rotor"][1]
    assert not told.keys() & {"wind", "force", "torque", "noise"}


@pytest.mark.slow
def test_a_flight_of_another_engine_gives_the_same_figures() -> None:
    found = fit(CARD, record(flown(14.0, engine=True)), iterations=7)
    for estimate in found.estimates:
        if estimate.unknown.name in ("thrust", "inertia", "rise_time", "fall_time"):
            assert estimate.value == pytest.approx(true(estimate.unknown.name), rel=0.08)


def test_a_flight_tells_nothing_but_ratios_to_the_mass() -> None:
    plant = MultirotorPlant(CARD, 3, PERIOD)
    state = plant.state(torch.arange(3))
    turned = torch.tensor([[0.3, -0.2, 0.1, 0.9], [0.0, 0.0, 0.0, 1.0], [-0.1, 0.5, 0.2, 0.8]])
    state = state._replace(
        orientation=turned / turned.norm(dim=1, keepdim=True), linear_velocity=torch.randn(3, 3),
        angular_velocity=torch.randn(3, 3),
    )  # fmt: skip
    doubled = plant.nominal._replace(
        **{name: 2 * getattr(plant.nominal, name) for name in (
            "mass", "inertia", "thrust_scale", "rotor_inertia", "rotor_drag", "body_drag")}
    )  # fmt: skip
    command = torch.tensor([[1200.0, 1500.0, 1300.0, 1600.0]]).expand(3, 4)
    for one, other in zip(
        advance(state, command, plant.nominal, PERIOD), advance(state, command, doubled, PERIOD), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.slow
def test_commands_that_act_late_are_found_as_a_delay() -> None:
    found = fit(CARD, record(flown(14.0, late=1)), iterations=9)
    delay = next(e for e in found.estimates if e.unknown.name == "command_delay")
    assert delay.determined
    assert delay.value == pytest.approx(PERIOD, abs=0.002)
    low, high = bounds(found, TASK.spec.ranges)["delay"]
    assert low < PERIOD + HIDDEN["delay"] < high


@pytest.mark.slow
def test_two_sessions_in_different_air_agree_about_the_robot() -> None:
    one, two = flown(8.0, 1), dataclasses.replace(flown(8.0, 2), session=1)
    found = fit(CARD, record(one, two), iterations=7)
    assert faults(record(one, two), found) == []
    thrust = found.estimates[0]
    assert abs(np.log(thrust.value / true("thrust"))) < 3 * thrust.error


def test_under_the_true_figures_errors_are_the_sensors_noise() -> None:
    flight = record(flown(14.0))
    pieces = np.array([(0, start) for start in range(earliest(flight), 1200, 100)])
    follower = Follower(CARD, flight, pieces, 100)
    air = ("force", "torque")
    inner = [
        u.nominal if u.name.partition("/")[0] in air or "/" in u.name else u.inner(true(u.name)) for u in unknowns(CARD)
    ]
    errors = follower.errors(np.tile(inner, (1, len(pieces), 1)))[0] / follower.noise
    assert np.median(np.abs(errors)) / 0.6745 == pytest.approx(1.0, abs=0.15)


def test_patterns_of_rotors_are_orthonormal_and_leave_the_total() -> None:
    for rotors in (3, 4, 6, 8):
        rows = patterns(rotors)
        np.testing.assert_allclose(rows @ rows.T, np.eye(rotors - 1), atol=1e-12)
        np.testing.assert_allclose(rows.sum(1), 0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nonsense", "sentence"),
    [
        ("swapped rotors", "times the sensors' noise"),
        ("commands of another time", "times the sensors' noise"),
        ("left for right", "times the sensors' noise"),
    ],
)
def test_a_fit_of_nonsense_is_refused(nonsense: str, sentence: str) -> None:
    part = flown(14.0)
    changed = {
        "swapped rotors": {"command": part.command[:, [1, 0, 3, 2]]},
        "commands of another time": {"command": np.roll(part.command, 200, 0)},
        "left for right": {"angular_velocity": part.angular_velocity * np.array([1.0, -1.0, 1.0])},
    }[nonsense]
    wrong = record(dataclasses.replace(part, **changed))
    assert any(sentence in fault for fault in faults(wrong, fit(CARD, wrong, iterations=4)))


def test_a_flight_that_is_too_short_is_refused() -> None:
    part = flown(14.0)
    short = dataclasses.replace(part, **{
        name: getattr(part, name)[:300]
        for name in ("position", "orientation", "linear_velocity", "angular_velocity", "command")
    })  # fmt: skip
    with pytest.raises(
        IdentificationError, match=r"flight\.mcap: 3\.0 s of flight, .*: 2 pieces of 0\.6 s; expected 6 at"
    ):
        fit(CARD, record(short))


def test_parts_under_the_policy_without_a_gap_are_read_with_the_age_of_measurements(tmp_path: Path) -> None:
    told = flights([log(tmp_path / "one.mcap")])
    assert [len(part) for part in told.parts] == [301, 199]
    assert [part.age for part in told.parts] == pytest.approx([0.004, 0.004])
    assert told.noise == pytest.approx(NOISE)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ((0, np.nan), "position.x is not finite; expected -"),
        ((1, 1e30), r"position.y is 1e\+30; expected -"),
        ((6, 0.4), "orientation has the length .*expected a unit quaternion"),
        ((8, np.inf), "linear_velocity.y is not finite"),
    ],
)
def test_garbled_signals_are_refused(tmp_path: Path, row: tuple[int, float], sentence: str) -> None:
    def change(k: int, signals: np.ndarray) -> None:
        if k == 300:
            signals[row[0]] = row[1]

    with pytest.raises(ValueError, match=sentence):
        flights([log(tmp_path / "garbled.mcap", change=change)])


def test_sensors_that_give_one_value_all_the_time_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IdentificationError, match="'position' is the same in all 1099 steps from step 0 on"):
        find([log(tmp_path / "still.mcap", steps=1500)], TASK)


def test_a_log_of_a_car_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is of a robot of kind 'car'; expected one of"):
        find([log(tmp_path / "car.mcap", "car-race", 3)], load_task("car-race"))


NUMBERS = st.floats(width=32) | st.sampled_from([0.0, 1.0, -1.0])
ROW = st.tuples(
    st.integers(-5, 5), st.lists(NUMBERS, min_size=19, max_size=19), st.lists(NUMBERS, min_size=4, max_size=4)
)
STAMPS = st.lists(st.integers(-(2**62), 2**62) | st.integers(-(10**6), 10**7), min_size=6, max_size=6)


@given(st.dictionaries(st.integers(0, 199), ROW, max_size=4), STAMPS, st.sampled_from([1, 0, 2, 40]))
def test_strange_steps_are_read_or_refused_in_a_sentence(
    changed: dict[int, tuple[int, list[float], list[float]]], stamps: list[int], every: int
) -> None:
    contract, steps = TASK.spec.contract(Provenance("apg", 0, 1, "0" * 64), Network((8,), "tanh", False)), []
    sane = np.zeros(19)
    sane[6] = 1.0
    for k in range(200):
        late, signals, sent = changed.get(k, (0, sane, np.full(4, 1000.0)))
        of = tuple(stamps) if every and k % every == every - 1 and k in changed else (10000 * k,) * 6
        row = StepRecord(
            10000 * k + 1000 * late, 0, np.array(signals, np.float32), of, np.zeros(1), None, None, None,
            np.array(sent, np.float32), {"state": State.ACTIVE},
        )  # fmt: skip
        steps.append(row)
    with contextlib.suppress(IdentificationError):  # anything else fails
        for part in flights([Log(Path("strange.mcap"), contract, {}, steps)]).parts:
            for name in ("position", "orientation", "linear_velocity", "angular_velocity", "command"):
                assert np.isfinite(getattr(part, name)).all()
            np.testing.assert_allclose(np.linalg.norm(part.orientation, axis=1), 1.0)
