"""Write tests/vectors/gate/*.json: what every implementation of the gate must answer, bit for bit.

    python tests/vectors/make_gate_vectors.py [--check]

A file is one story: a contract, and steps from power-up, each with what it is given and what it must answer.
Every story also says where it ends, so a gate that changed its mind does not quietly write new vectors. Floats
are float32 values in full; "nan", "inf" and "-inf" stand for themselves. docs/safety.md describes the format.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gate_story import CONTRACTS, OPERATOR_TIMEOUT, PERIOD, SET_POINT_TIMEOUT, TIMEOUT, Story, configuration

from robo_rl.controllers.gate.codes import Event, Reason, Request, Source, State
from robo_rl.controllers.gate.config import NEVER

FOLDER = Path(__file__).parent / "gate"
FLOAT_MAX = float(np.finfo(np.float32).max)


def above(x: float) -> float:
    """The next float32."""
    return float(np.nextafter(np.float32(x), np.float32(np.inf)))


def exactly(wanted: str, axis: int = 0) -> dict[int, float]:
    """An orientation whose squared norm, or tilt, is the limit to the last bit, by flat index."""
    config = Story("").config
    draw = np.random.default_rng(0).uniform(size=10_000)
    if wanted == "tilt":
        angle, length = np.full_like(draw, 0.5), 0.97 + 0.06 * draw
    else:
        angle, length = 0.3 + 0.1 * draw, np.sqrt(getattr(config, wanted)) * np.ones_like(draw)
    x, w = (length * np.sin(angle)).astype(np.float32), (length * np.cos(angle)).astype(np.float32)
    norm = x * x + w * w
    hit = np.flatnonzero(x * x == config.tilt * norm if wanted == "tilt" else norm == getattr(config, wanted))[0]
    return {axis: float(x[hit]), 3: float(w[hit])}


def tilted(angle: float, axis: int = 0) -> dict[int, float]:
    """The orientation at that tilt (rad) about x or y, by flat index."""
    return {axis: math.sin(angle / 2), 3: math.cos(angle / 2)}


def transitions() -> Iterator[Story]:
    """Every way from one state to another, and every refusal."""
    R, S = Request, State
    story = Story("silent_before_the_first_arming_whatever_is_wrong")
    story.step()
    story.step(bundle_intact=False, signal={0: math.nan}, age={1: None}, command=None)
    yield story.ends(S.IDLE, source=Source.SILENT)
    for name in ("off", "arm_ramp", "arm_hold", "arm_damp"):
        story = Story(f"silent_{name}", name)
        for requests in (R.NONE, R.STOP, R.NONE, R.ARM, R.DISARM, R.RESET, R.ACTIVATE, R.DISARM, R.NONE):
            assert story.step(requests).source == Source.SILENT
        yield story.ends(S.IDLE, source=Source.SILENT)
    yield (story := Story("arm_moves_slowly_to_the_start")).ready().ends(S.READY, source=Source.START)
    yield Story("activate_hands_over_to_the_policy").active().ends(S.ACTIVE, source=Source.POLICY)
    for name, state in (("ready", S.READY), ("active", S.ACTIVE)):
        begin = Story.ready if state == S.READY else Story.active
        (story := begin(Story(f"disarm_in_{name}"))).step(R.DISARM)
        yield story.ends(S.IDLE, source=Source.STOP, event=Event.DISARMED)
        (story := begin(Story(f"stop_in_{name}"))).step(R.STOP)
        yield story.ends(S.FAULT, Reason.OPERATOR_STOP, Source.STOP, Event.FAULTED)
        (story := begin(Story(f"halt_in_{name}"))).step(R.HALT)
        yield story.ends(S.FAULT, Reason.HALTED, Source.STOP, Event.FAULTED)
        (story := begin(Story(f"arm_in_{name}_changes_nothing"))).step(R.ARM)
        yield story.ends(state)
        (story := begin(Story(f"reset_in_{name}_changes_nothing"))).step(R.RESET)
        yield story.ends(state)
    (story := Story("stop_in_idle")).step(R.STOP)
    yield story.ends(S.FAULT, Reason.OPERATOR_STOP, Source.SILENT)
    (story := Story("reset_leads_to_idle_alone").active()).step(R.STOP)
    story.step(R.RESET | R.ARM)
    yield story.ends(S.IDLE, event=Event.WAS_RESET)
    (story := Story("arm_in_fault_is_refused")).step(R.STOP)
    story.step(R.ARM)
    yield story.ends(S.FAULT, Reason.OPERATOR_STOP, event=Event.REFUSED)
    (story := Story("the_first_reason_stays").active()).step(signal={4: math.nan})
    story.step(R.STOP, bundle_intact=False)
    yield story.ends(S.FAULT, Reason.SIGNAL_NOT_FINITE)
    (story := Story("stop_comes_before_reset_and_disarm")).step(R.STOP)
    story.step(R.STOP | R.RESET | R.DISARM | R.HALT)
    yield story.ends(S.FAULT, Reason.OPERATOR_STOP)
    (story := Story("activate_in_idle_is_refused")).step(R.ACTIVATE)
    yield story.ends(S.IDLE, Reason.NOT_READY, event=Event.REFUSED)
    (story := Story("activate_before_the_start_pose_is_refused")).step(R.ARM)
    story.step(R.ACTIVATE)
    yield story.ends(S.READY, Reason.NOT_READY, event=Event.REFUSED)
    (story := Story("activate_without_a_command_is_refused").ready()).step(R.ACTIVATE, command=None)
    yield story.ends(S.READY, Reason.COMMAND_MISSING, event=Event.REFUSED)
    (story := Story("arm_with_a_stale_signal_is_refused")).step(R.ARM, age={1: TIMEOUT + 1})
    yield story.ends(S.IDLE, Reason.SIGNAL_STALE, event=Event.REFUSED)
    (story := Story("arm_without_operator_is_refused")).step(R.ARM, operator_stamp=NEVER)
    yield story.ends(S.IDLE, Reason.OPERATOR_LOST, event=Event.REFUSED)
    (story := Story("a_fault_in_ready_latches").ready()).step(age={0: None})
    yield story.ends(S.FAULT, Reason.SIGNAL_MISSING, Source.STOP)
    (story := Story("the_rate_limit_cuts_a_jump").active()).step(command=[0, 1000, 0, 1000, 1.5, 0.0])
    yield story.ends(S.ACTIVE, source=Source.POLICY, event=Event.RATE_LIMITED)


FAULTS: dict[str, tuple[Reason, dict[str, Any]]] = {
    "bundle_changed": (Reason.BUNDLE, {"bundle_intact": False}),
    "clock_ran_backwards": (Reason.CLOCK, {"dt": -1}),
    "signal_from_the_future": (Reason.CLOCK, {"age": {1: -1}}),
    "command_from_the_future": (Reason.CLOCK, {"command_stamp": 1 << 62}),
    "overrun": (Reason.OVERRUN, {"dt": TIMEOUT + 1}),
    "overrun_of_ages": (Reason.OVERRUN, {"dt": 1 << 62}),
    "operator_never_seen": (Reason.OPERATOR_LOST, {"operator_stamp": NEVER}),
    "operator_from_the_future": (Reason.OPERATOR_LOST, {"operator_stamp": 1 << 62}),
    "signal_missing": (Reason.SIGNAL_MISSING, {"age": {1: None}}),
    "operator_signal_missing": (Reason.SIGNAL_MISSING, {"age": {2: None}}),
    "signal_stale": (Reason.SIGNAL_STALE, {"age": {0: TIMEOUT + 1}}),
    "operator_signal_stale": (Reason.SIGNAL_STALE, {"age": {2: OPERATOR_TIMEOUT + 1}}),
    "signal_nan": (Reason.SIGNAL_NOT_FINITE, {"signal": {5: math.nan}}),
    "signal_infinite": (Reason.SIGNAL_NOT_FINITE, {"signal": {5: -math.inf}}),
    "signal_is_the_largest_float": (Reason.SIGNAL_RANGE, {"signal": {5: FLOAT_MAX}}),
    "signal_is_the_lowest_float": (Reason.SIGNAL_RANGE, {"signal": {5: -FLOAT_MAX}}),
    "signal_too_high": (Reason.SIGNAL_RANGE, {"signal": {4: above(2)}}),
    "signal_too_low": (Reason.SIGNAL_RANGE, {"signal": {4: -above(2)}}),
    "quaternion_too_short": (Reason.SIGNAL_NORM, {"signal": {3: 0.9499}}),
    "quaternion_too_long": (Reason.SIGNAL_NORM, {"signal": {1: 0.8, 3: 0.8}}),
    "quaternion_zero": (Reason.SIGNAL_NORM, {"signal": {3: 0}}),
    "tilt": (Reason.TILT, {"signal": tilted(1.0001)}),
    "tilt_about_y": (Reason.TILT, {"signal": tilted(1.0001, axis=1)}),
    "upside_down": (Reason.TILT, {"signal": tilted(math.pi)}),
    "command_missing": (Reason.COMMAND_MISSING, {"command": None}),
    "command_never_computed": (Reason.COMMAND_MISSING, {"command_stamp": NEVER}),
    "command_nan": (Reason.COMMAND_NOT_FINITE, {"command": [400, 400, 400, math.nan, 0, 0]}),
    "command_infinite": (Reason.COMMAND_NOT_FINITE, {"command": [400, 400, 400, 400, 0, math.inf]}),
    "command_too_high": (Reason.COMMAND_RANGE, {"command": [400, 400, 400, 400, 0, above(2.5)]}),
    "command_too_low": (Reason.COMMAND_RANGE, {"command": [-1e-45, 400, 400, 400, 0, 0]}),
}


def faults() -> Iterator[Story]:
    """Every fault, from active, in one step; then those that need several."""
    for name, (reason, changes) in FAULTS.items():
        (story := Story(f"fault_{name}").active()).step(**changes)
        yield story.ends(State.FAULT, reason, Source.STOP, Event.FAULTED)
    (story := Story("fault_command_stale").active()).step(command_stamp=story.time + PERIOD - TIMEOUT - 1)
    yield story.ends(State.FAULT, Reason.COMMAND_STALE)
    (story := Story("fault_operator_lost").active()).step(operator_stamp=story.time + PERIOD - OPERATOR_TIMEOUT - 1)
    yield story.ends(State.FAULT, Reason.OPERATOR_LOST)
    story = Story("fault_set_point_beyond_its_own_timeout", "guided").active()
    story.step(age={2: SET_POINT_TIMEOUT})
    assert story.gate.state == State.ACTIVE
    story.step(age={2: SET_POINT_TIMEOUT + 1})
    yield story.ends(State.FAULT, Reason.SIGNAL_STALE)
    story = Story("fault_slow_steps_add_up").active()
    while story.gate.state == State.ACTIVE:
        story.step(dt=13_000)
    yield story.ends(State.FAULT, Reason.OVERRUN)
    story = Story("fault_fast_steps_add_up").active()
    while story.gate.state == State.ACTIVE:
        story.step(dt=5_000)
    yield story.ends(State.FAULT, Reason.TOO_FAST)
    story = Story("fault_frozen_sensor").active()
    while story.gate.state == State.ACTIVE:
        story.step(signal={4: 0.125, 5: 0.5})
    yield story.ends(State.FAULT, Reason.SIGNAL_FROZEN)
    story = Story("fault_rate_cut_for_too_long").active()
    while story.gate.state == State.ACTIVE:
        story.step(command=[400, 400, 400, 400, -1.5, 2.5])
    yield story.ends(State.FAULT, Reason.COMMAND_RATE)


def boundaries() -> Iterator[Story]:
    """Exactly at a limit nothing is wrong."""
    allowed: dict[str, dict[str, Any]] = {
        "signal_age": {"age": {0: TIMEOUT, 1: TIMEOUT}},
        "operator_age_and_set_point_age": {"age": {2: OPERATOR_TIMEOUT}, "operator_stamp": -OPERATOR_TIMEOUT},
        "command_age": {"command_stamp": -TIMEOUT},
        "time_between_steps": {"dt": TIMEOUT},
        "two_steps_at_one_time": {"dt": 0},
        "signal_upper_range": {"signal": {4: 2, 5: 3, 6: 10}},
        "signal_lower_range": {"signal": {4: -2, 5: -3, 6: -0.0}},
        "tilt": {"signal": tilted(0.9999)},
        "inverted_quaternion": {"signal": {3: -1}},
        "tilt_exactly": {"signal": exactly("tilt")},
        "tilt_exactly_about_y": {"signal": exactly("tilt", axis=1)},
        "longest_quaternion": {"signal": exactly("norm_high")},
        "shortest_quaternion": {"signal": exactly("norm_low", axis=1)},
        "yawed_quaternion": {"signal": {2: -0.6, 3: 0.8}},
        "command_range": {"command": [0, 1000, -0.0, 1000, 0.25, 0]},
        "command_rate": {"command": [400, 400, 400, 400, 0.3125, -0.03125]},
    }
    for name, changes in allowed.items():
        story = Story(f"allowed_{name}").active()
        now = story.time + changes.get("dt", PERIOD)
        for stamp in ("operator_stamp", "command_stamp"):
            if stamp in changes:
                changes[stamp] += now
        story.step(**changes)
        yield story.ends(State.ACTIVE, source=Source.POLICY)
    story = Story("allowed_a_late_step_that_is_caught_up").active()
    for dt in (20_000, 2_000, 8_000, 20_000, 1_000):
        story.step(dt=dt)
    yield story.ends(State.ACTIVE)
    story = Story("allowed_steps_ahead_of_schedule").active()
    for dt in (0, 4_900):  # 9900 µs ahead, then 14900, which is the limit
        story.step(dt=dt)
    yield story.ends(State.ACTIVE)
    story.name = "fault_steps_ahead_of_schedule"
    story.step(dt=9_899)
    yield story.ends(State.FAULT, Reason.TOO_FAST)
    story = Story("allowed_a_value_repeated_for_the_timeout").active()
    for dt in (PERIOD, PERIOD, TIMEOUT - PERIOD):
        story.step(dt=dt, signal={4: 0.125, 5: 0.5})
    yield story.ends(State.ACTIVE)
    story = Story("allowed_old_stamps_and_restarted_stamps").active()
    story.step(age={1: PERIOD})
    story.step(age={1: 2 * PERIOD + 1})
    yield story.ends(State.ACTIVE)
    story = Story("fault_a_value_repeated_under_restarted_stamps").active()
    for dt, age in ((PERIOD, 0), (PERIOD, 15_000), (PERIOD, 0), (10_001, 0)):  # the second stamp is the oldest
        story.step(dt=dt, age={1: age}, signal={4: 0.125, 5: 0.5})
    yield story.ends(State.FAULT, Reason.SIGNAL_FROZEN)
    story = Story("allowed_the_rate_cut_for_the_timeout").active()
    for dt in (PERIOD, PERIOD, TIMEOUT - PERIOD):
        story.step(dt=dt, command=[400, 400, 400, 400, -1.5, 2.5])
    yield story.ends(State.ACTIVE, event=Event.RATE_LIMITED)
    story = Story("the_time_of_rate_cuts_begins_anew_after_arming").active()
    story.step(command=[400, 400, 400, 400, -1.5, 2.5])
    story.step(Request.DISARM)
    story.ready().step(Request.ACTIVATE, command=[400, 400, 400, 400, -1.5, 2.5])
    yield story.ends(State.ACTIVE, event=Event.RATE_LIMITED | Event.ACTIVATED)


def memories() -> Iterator[Story]:
    """What the gate remembers, from time zero on and while it is idle."""
    at_start, jump = {4: 0.25, 5: 0.0}, [400, 400, 400, 400, -1.5, 2.5]
    story = Story("everything_stamped_zero", time=0)
    story.step(Request.ARM, signal=at_start)
    story.step(Request.ACTIVATE, age={0: PERIOD, 1: PERIOD, 2: PERIOD}, operator_stamp=0, command_stamp=0)
    yield story.ends(State.ACTIVE, source=Source.POLICY, event=Event.ACTIVATED)
    story = Story("rate_cut_since_time_zero", time=0)
    story.step(Request.ARM, signal=at_start)
    story.step(Request.ACTIVATE, dt=0, command=jump)
    for dt in (PERIOD, PERIOD, 5_001):
        story.step(dt=dt, command=jump)
    yield story.ends(State.FAULT, Reason.COMMAND_RATE)
    story = Story("frozen_since_time_zero", time=0)
    story.step(Request.ARM, signal=at_start)
    for dt in (PERIOD, PERIOD, 5_001):
        story.step(dt=dt, signal=at_start)
    yield story.ends(State.FAULT, Reason.SIGNAL_FROZEN)
    (story := Story("the_first_value_is_new_even_if_zero")).step(Request.ARM, signal={4: 0.0, 5: 0.0})
    yield story.ends(State.READY, event=Event.ARMED)
    story = Story("a_gap_does_not_hide_a_frozen_sensor")
    for age in (0, None, -1_000_000, 0):
        story.step(Request.ARM if age == 0 and len(story.steps) else Request.NONE, age={1: age}, signal=at_start)
    yield story.ends(State.IDLE, Reason.SIGNAL_FROZEN, event=Event.REFUSED)
    (story := Story("time_below_zero_is_no_time", time=-PERIOD)).step(Request.ARM)
    yield story.ends(State.IDLE, Reason.CLOCK, event=Event.REFUSED)
    story = Story("set_points_of_an_autonomous_robot_do_not_age", "autonomous", time=1 << 40)
    story.step(Request.ARM, age={2: 1 << 40}, operator_stamp=NEVER)
    yield story.ends(State.READY, event=Event.ARMED)


def stops() -> Iterator[Story]:
    """How each command stops, from where its actuators are, and what begins after it."""
    R, S = Request, State
    ways = ("stop", "off", "arm_ramp", "arm_hold", "arm_damp")
    for name in ways:
        source = Source.SAFE if name == "off" else Source.STOP
        far = [0, 1000, 0, 1000, 0.375, 0.0625] if name in ("stop", "off") else [0.53125, -1.5, 0.75, 24]
        for asked, end in ((R.STOP, (S.FAULT, Reason.OPERATOR_STOP)), (R.DISARM, (S.IDLE, Reason.NONE))):
            story = Story(f"{asked.name.lower()}_by_{name}", name).active()
            story.step(command=far)
            story.step(asked)
            for _ in range(12):
                story.step()
            yield story.ends(*end, source=source)
        story = Story(f"armed_again_after_a_stop_by_{name}", name).active()
        for requests in (R.STOP, R.NONE, R.RESET, R.NONE, R.ARM, R.NONE):
            story.step(requests)
        yield story.ends(S.READY, source=Source.START)
    story = Story("a_ramp_reaches_the_safe_command", "arm_ramp").active()
    story.step(R.STOP)
    while (story.gate.command != story.config.safe).any():  # the joints follow
        shoulder, elbow, knuckle = story.gate.command[:3].tolist()
        story.step(signal={0: knuckle, 1: elbow, 2: shoulder + (len(story.steps) % 2) / 1024})
    yield story.ends(S.FAULT, Reason.OPERATOR_STOP, Source.STOP)
    story = Story("a_motor_that_is_held_is_not_asked_for_more_than_it_has", "arm_ramp").active()
    story.step(R.STOP)
    for _ in range(400):
        story.step()
    np.testing.assert_allclose(story.gate.command[1], -0.25 - 8 / 20, atol=0.06)
    yield story.ends(S.FAULT, Reason.OPERATOR_STOP, Source.STOP)
    for name in ("arm_hold", "arm_damp"):
        story = Story(f"{name[4:]}_gives_way_to_a_push", name).active()
        story.step(R.STOP)
        for k in range(60):
            story.step(signal={1: 1.0 + k / 64, 2: -0.5 - k / 32})
        yield story.ends(S.FAULT, Reason.OPERATOR_STOP, Source.STOP)
    lost: dict[str, dict[str, Any]] = {
        "missing": {"age": {1: None}},
        "stale": {"age": {1: TIMEOUT + 1}},
        "not_a_number": {"signal": {1: math.nan}},
        "out_of_range": {"signal": {2: 3.5}},
        "from_the_future": {"age": {1: -1}},
        "frozen": {"signal": {1: 0.0, 2: 0.0}},
    }
    for name in ("arm_ramp", "arm_hold", "arm_damp"):
        for what, changes in lost.items():
            story = Story(f"{name[4:]}_with_feedback_{what}", name).active()
            story.step(command=[0.53125, -0.125, 0.5, 3])
            for _ in range(6):
                story.step(**changes)
            assert story.steps[-1][1].source == Source.STOP
            if what != "frozen":
                before = story.steps[-2][1].command
                held = slice(1, 2) if what == "not_a_number" else slice(0, 1)
                assert (story.steps[-1][1].command[held] == before[held]).all(), "it stays where it was"
            for _ in range(4):
                story.step()
            reasons = {"missing": Reason.SIGNAL_MISSING, "stale": Reason.SIGNAL_STALE, "frozen": Reason.SIGNAL_FROZEN,
                       "not_a_number": Reason.SIGNAL_NOT_FINITE, "out_of_range": Reason.SIGNAL_RANGE,
                       "from_the_future": Reason.CLOCK}  # fmt: skip
            yield story.ends(S.FAULT, reasons[what], Source.STOP)
    story = Story("a_start_begins_at_the_measured_pose_and_stays_near_it", "arm_ramp")
    story.step(R.ARM, signal={0: 0.25, 1: -1.875, 2: 2.0})
    for k in range(300):
        story.step(signal={0: 0.25, 1: -1.875, 2: 2.0 + (k % 2) / 1024})
    yield story.ends(S.READY, source=Source.START)
    story.name = "a_start_that_is_not_reached"
    story.step(R.ACTIVATE, signal={0: 0.25, 1: -1.875, 2: 2.0})
    yield story.ends(S.READY, Reason.NOT_READY, event=Event.REFUSED)
    story = Story("a_policy_takes_over_from_where_the_joints_are", "arm_hold")
    story.step(R.ARM, signal={0: 0.25, 1: 0.75, 2: -1.0})
    story.step(R.ACTIVATE, signal={0: 0.25, 1: 0.7501, 2: -1.0}, command=[-0.984375, 0.75, 0.25, 0])
    yield story.ends(S.ACTIVE, source=Source.POLICY, event=Event.ACTIVATED)
    story = Story("beyond_the_commands_limits_the_limit_is_where_it_is", "arm_damp")
    story.step(R.ARM, signal={0: 1.25, 1: 2.25, 2: -2.75})
    story.step(R.DISARM, signal={0: 1.25, 1: 2.26, 2: -2.75})
    yield story.ends(S.IDLE, source=Source.STOP, event=Event.DISARMED)


def places() -> Iterator[Story]:
    """The envelope, slow signals, and signals that may be absent."""
    R, S = Request, State
    outside: dict[str, dict[str, Any]] = {
        "below_the_workspace": {"signal": {5: 0.0}},
        "beside_the_workspace": {"signal": {4: -0.7501}},
        "above_the_workspace": {"signal": {5: 0.9}},
        "too_strong": {"signal": {6: 30, 7: 30, 8: 30}},
        "pushed_from_both_sides": {"signal": {6: 40, 7: -31, 8: 0}},
    }
    for name, changes in outside.items():
        (story := Story(f"envelope_{name}", "arm_ramp").active()).step(**changes)
        yield story.ends(S.FAULT, Reason.ENVELOPE, Source.STOP, Event.FAULTED)
        (story := Story(f"envelope_{name}_in_ready", "arm_hold").ready()).step(**changes)
        yield story.ends(S.FAULT, Reason.ENVELOPE, Source.STOP, Event.FAULTED)
        (story := Story(f"envelope_{name}_is_not_armed", "arm_damp")).step(R.ARM, **changes)
        yield story.ends(S.IDLE, Reason.ENVELOPE, Source.SILENT, Event.REFUSED)
    inside: dict[str, dict[str, Any]] = {
        "corner": {"signal": {3: 0.875, 4: -0.75, 5: 0.0625}},
        "norm": {"signal": {6: 30, 7: 0, 8: -40}},
        "absent_object": {"age": {4: None}, "signal": {9: 0.125}},
        "old_object": {"age": {4: 5_000_000}, "signal": {12: 1.0}},
        "old_age": {"age": {5: 1_000_000}},
        "slow_sensor": {"age": {2: 80_000}},
    }
    for name, changes in inside.items():
        (story := Story(f"allowed_{name}", "arm_ramp").active()).step(**changes)
        yield story.ends(S.ACTIVE, source=Source.POLICY)
    (story := Story("fault_slow_sensor_stale", "arm_ramp").active()).step(age={2: 80_001})
    yield story.ends(S.FAULT, Reason.SIGNAL_STALE, Source.STOP)
    story = Story("fault_slow_sensor_frozen", "arm_ramp").active()
    for k in range(30):
        story.step(age={2: PERIOD * (k % 5)}, signal={3: 0.5})
        if story.gate.state == S.FAULT:
            break
    yield story.ends(S.FAULT, Reason.SIGNAL_FROZEN, Source.STOP)
    (story := Story("fault_present_object_out_of_range", "arm_ramp").active()).step(signal={9: 0.0})
    yield story.ends(S.FAULT, Reason.SIGNAL_RANGE, Source.STOP)
    (story := Story("fault_object_outside_of_the_envelope", "arm_ramp").active()).step(signal={9: 1.75})
    yield story.ends(S.FAULT, Reason.ENVELOPE, Source.STOP)


def collisions() -> Iterator[Story]:
    """A wall in the way: at 4 m/s and 0.5 s, within 2 m of the front, which is 0.125 m ahead of the lidar."""
    R, S = Request, State
    bend = {3: 1.75, 4: 1.75, 5: 1.75}
    met: dict[str, dict[str, Any]] = {
        "wall_ahead": {4: above(2.0)},
        "something_narrow_beside_the_middle": {3: 0.75},
        "wall_beside_the_way_in_a_bend": {3: 2.0, 10: -1.0},
        "nearest_range": {4: 0.0625},
    }
    for name, signal in met.items():
        (story := Story(f"collision_{name}", "car").active()).step(signal=signal)
        yield story.ends(S.FAULT, Reason.COLLISION, Source.SAFE, Event.FAULTED)
    (story := Story("collision_in_ready", "car").ready()).step(signal=bend)
    yield story.ends(S.FAULT, Reason.COLLISION, Source.SAFE, Event.FAULTED)
    (story := Story("collision_is_not_armed", "car")).step(R.ARM, signal=bend)
    yield story.ends(S.IDLE, Reason.COLLISION, Source.SILENT, Event.REFUSED)
    free: dict[str, dict[str, Any]] = {
        "wall_at_the_limit": {4: 2.125},
        "narrow_gap": {3: 1.25, 5: 1.25, 2: 0.625, 6: 0.625},
        "wall_ahead_of_a_bend": {4: 2.0, 10: 1.5},
        "wall_before_a_robot_that_stands": {4: 0.125, 9: 0.0},
        "wall_before_a_robot_that_reverses": {4: 0.125, 9: -4.0},
        "slow_robot_near_a_wall": {4: 0.75, 9: 1.0},
    }
    for name, signal in free.items():
        (story := Story(f"allowed_{name}", "car").active()).step(signal=signal)
        yield story.ends(S.ACTIVE, source=Source.POLICY)


def reactions() -> Iterator[Story]:
    """What is sent after a fault, as the contract says."""
    story = Story("hold_after_a_fault", "hold").active()
    story.step(command=[500, 0, 500, 0, 0.25, 0])
    story.step(command=None)
    for _ in range(3):
        story.step()
    yield story.ends(State.FAULT, Reason.COMMAND_MISSING, Source.HOLD)
    for asked in (Request.STOP, Request.HALT, Request.DISARM):
        (story := Story(f"hold_ends_with_{asked.name.lower()}", "hold").active()).step(command=None)
        story.step(asked)
        yield story.ends(State.FAULT, Reason.COMMAND_MISSING, Source.STOP)
    (story := Story("hold_ends_with_reset", "hold").active()).step(command=None)
    story.step(Request.RESET)
    yield story.ends(State.IDLE, source=Source.STOP, event=Event.WAS_RESET)

    def flying(name: str) -> Story:
        story = Story(name, "controller").active()
        story.fallback = np.array([300, 350, 300, 350, 1.5, 0], np.float32)
        story.step(command=None)
        assert story.steps[-1][1].source == Source.FALLBACK
        return story

    (story := Story("controller_that_is_not_there", "controller").active()).step(command=None)
    yield story.ends(State.FAULT, Reason.COMMAND_MISSING, Source.STOP, Event.FAULTED | Event.FALLBACK_LOST)
    yield flying("controller_takes_over").ends(State.FAULT, Reason.COMMAND_MISSING, Source.FALLBACK)
    lost: dict[str, dict[str, Any]] = {
        "has_landed": {"fallback": None},
        "command_is_nan": {"fallback": [math.nan, 0, 0, 0, 0, 0]},
        "command_is_out_of_range": {"fallback": [0, 0, 0, 0, 0, 2.75]},
        "sensor_is_stale": {"age": {0: TIMEOUT + 1}},
        "robot_falls": {"signal": tilted(1.5)},
        "is_disarmed": {"requests": Request.DISARM},
        "is_stopped": {"requests": Request.STOP},
        "is_halted": {"requests": Request.HALT},
    }
    for name, changes in lost.items():
        (story := flying(f"controller_ends_when_it_{name}")).step(**changes)
        yield story.ends(State.FAULT, Reason.COMMAND_MISSING, Source.STOP)
    (story := flying("controller_needs_no_set_point")).step(age={2: None}, operator_stamp=NEVER)
    yield story.ends(State.FAULT, Reason.COMMAND_MISSING, Source.FALLBACK)
    story = Story("controller_does_not_take_off", "controller").ready()
    story.fallback = np.array([300, 300, 300, 300, 0, 0], np.float32)
    story.step(bundle_intact=False)
    yield story.ends(State.FAULT, Reason.BUNDLE, Source.STOP)


def main() -> int:
    """Write the files, or tell which differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    check = parser.parse_args().check
    texts = {f"configurations/{name}.json": configuration(contract) for name, contract in CONTRACTS.items()}
    for chapter in (transitions, faults, boundaries, memories, stops, places, collisions, reactions):
        for story in chapter():
            assert f"{story.name}.json" not in texts, f"two stories are called {story.name}"
            texts[f"{story.name}.json"] = story.to_json()
    present = {str(path.relative_to(FOLDER)): path.read_text() for path in FOLDER.rglob("*.json")}
    changed = sorted(name for name in {*texts, *present} if texts.get(name) != present.get(name))
    for name in () if check else changed:
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[name]) if name in texts else path.unlink()
    print(f"{len(texts)} files, {len(changed)} of them changed{':' if check and changed else ''}")
    if check:
        print("\n".join(changed))
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
