"""The doctor finds what is wrong with a robot's signals, and nothing wrong with a robot that is well."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from robo_rl.contract import ContractError, Network, Provenance
from robo_rl.deploy.robot.doctor import Series, examine, healthy, lane
from robo_rl.sim.tasks.loading import load_task

RATE, SECONDS = 100, 6.0


def contract():
    spec = load_task("quadrotor-hover").spec
    return spec.contract(Provenance("none", 0, 0, "0" * 64), Network((1,), "tanh", True))


def signals(moving: bool) -> dict[str, np.ndarray]:
    """Analytic motion: rates by the derivative of a rotation, with the contract's noise."""
    t = np.arange(0, SECONDS, 1 / RATE)
    waves = np.stack([np.sin(2 * np.pi * t / p) for p in (1.3, 1.7, 2.1)], 1) * moving
    slopes = np.stack([2 * np.pi / p * np.cos(2 * np.pi * t / p) for p in (1.3, 1.7, 2.1)], 1) * moving
    rotation = Rotation.from_euler("xyz", 0.4 * waves)
    later = np.stack([np.sin(2 * np.pi * (t + 1e-4) / p) for p in (1.3, 1.7, 2.1)], 1) * moving
    rates = (rotation.inv() * Rotation.from_euler("xyz", 0.4 * later)).as_rotvec() / 1e-4
    noise = np.random.default_rng(0)
    exact = {"position": 0.2 * waves, "orientation": rotation.as_quat(), "linear_velocity": 0.2 * slopes}
    exact["angular_velocity"] = rates
    return {
        s.name: exact[s.name] + noise.normal(size=exact[s.name].shape) * np.array(s.noise)
        for s in contract().signals
        if s.name in exact
    }


def series(values: dict[str, np.ndarray], rate: float = RATE, age: float = 0.002) -> dict[str, Series]:
    made = {}
    for name, rows in values.items():
        made[name] = Series()
        for k, row in enumerate(rows):
            made[name].add(k / rate, age, row)
    return made


def wrong(still=None, moved=None, change=None, **timing) -> list[str]:
    """Sentences about what is wrong, after ``change`` was done to the signals."""
    resting, handled = signals(False), signals(True)
    for values in (resting, handled):
        if change is not None:
            change(values)
    found = examine(contract(), series(resting, **timing), series(handled, **timing))
    return [f"{finding.subject}: {finding.sentence}" for finding in found if not finding.good]


def test_a_healthy_robot_has_no_findings():
    found = examine(contract(), series(signals(False)), series(signals(True)))
    assert healthy(found), [f for f in found if not f.good]
    assert len(found) == 6  # four signals, rotation, translation


def edit(name, function):
    return lambda values: values.__setitem__(name, function(values[name]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edit("angular_velocity", lambda v: v[:, [1, 0, 2]]), "really y, x, z"),
        (edit("angular_velocity", lambda v: v * [1, -1, 1]), "really x, -y, z"),
        (edit("angular_velocity", lambda v: v * [-1, -1, 1]), "really -x, -y, z"),
        (edit("angular_velocity", lambda v: np.degrees(v)), "degrees per second"),
        (edit("angular_velocity", lambda v: 0 * v), "never changes"),
        (edit("angular_velocity", lambda v: v * np.nan), "finite"),
        (edit("orientation", lambda q: q[:, [3, 0, 1, 2]]), "order x, y, z, w"),
        (edit("orientation", lambda q: 2 * q), "norm reaches"),
        (edit("linear_velocity", lambda v: v[:, [0, 2, 1]]), "really x, z, y"),
        (edit("linear_velocity", lambda v: v * 100), "linear_velocity"),
        (edit("position", lambda p: p + 1000), "the contract allows -100 to 100 m"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(change, words):
    assert any(words in sentence for sentence in wrong(change=change)), wrong(change=change)


@pytest.mark.parametrize(
    ("timing", "words"),
    [
        ({"rate": 30}, "the policy was trained at 100 Hz"),
        ({"age": 0.05}, "50 ms old on arrival"),
        ({"age": -0.5}, "500 ms in the future"),
        ({"age": 1.7e9}, "stamps are zero"),
    ],
)
def test_rates_and_stamps_are_judged(timing, words):
    assert any(words in sentence for sentence in wrong(**timing))


def test_a_missing_signal_is_named():
    values = signals(False)
    del values["position"]
    found = examine(contract(), series(values))
    assert [f.subject for f in found if not f.good] == ["position"]


def test_a_robot_that_was_hardly_moved_is_not_judged():
    found = examine(contract(), series(signals(False)), series(signals(False)))
    assert any("turn the robot more" in f.sentence for f in found)
    assert not healthy(found)


def test_gaps_in_what_arrives_while_it_is_turned_are_left_out():
    """As when the computer is busy; across a gap nobody knows how the robot moved."""
    moved = series(signals(True))
    gappy = {name: Series() for name in moved}
    for name, one in moved.items():
        for time, age, value in zip(one.times, one.ages, one.values, strict=True):
            if time % 1.1 > 0.7:
                gappy[name].add(time, age, value)
    found = examine(contract(), series(signals(False)), gappy)
    assert healthy(found), [f for f in found if not f.good]


def test_it_tells_on_which_lanes_a_policy_that_races_was_trained():
    """From the ranges of its contract; a stranger's facts are no numbers."""
    spec = load_task("car-race").spec
    made = spec.contract(Provenance("none", 0, 0, "0" * 64), Network((1,), "tanh", True))
    (told,) = lane(made)
    assert told.good
    assert "lanes 1.4 to 4.5 m wide, with corners of up to 120°" in told.sentence
    ranges = {**made.facts["ranges"], "track.kind": {"from": 0.0, "to": 0.0}, "track.width": {"from": 1.5, "to": 2.5}}
    (told,) = lane(dataclasses.replace(made, facts={**made.facts, "ranges": ranges}))
    assert "lanes 1.5 to 2.5 m wide, with bends, without corners" in told.sentence
    assert lane(contract()) == []
    assert lane(dataclasses.replace(made, facts={"track": "wide", "ranges": "all"})) == []
    with pytest.raises(ContractError, match=r"facts\.ranges\.track\.width\.from"):
        lane(dataclasses.replace(made, facts={"ranges": {"track.width": {"from": "a", "to": 2}}}))
