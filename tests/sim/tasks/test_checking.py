"""What does not fit together in a task is told in sentences, before anything is trained."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import pytest
import torch

from robo_rl.contract import Command, Safety, Signal, StateBlock
from robo_rl.sim.ranges import Range, Rule
from robo_rl.sim.tasks import Measure, Task
from robo_rl.sim.tasks.checking import check
from robo_rl.sim.tasks.loading import load_task, task_names
from robo_rl.sim.tasks.multirotor.quadrotor import XYZ, QuadrotorHover

Hover = QuadrotorHover


def hover(**methods: Any) -> Task:
    """The hover task with other methods and attributes."""
    return type("Mine", (Hover,), {"__module__": __name__, **methods})()


def respecified(**changes: Any) -> Task:
    """The hover task with another spec; what is a function makes a field from the one that was."""
    task = hover()
    made = {name: value(getattr(task.spec, name)) if callable(value) else value for name, value in changes.items()}
    task.spec = dataclasses.replace(task.spec, **made)
    return task


def given(name: str, change: Any) -> Task:
    """The hover task, one method of which gives what ``change`` makes of it."""
    return hover(**{name: lambda self, *arguments: change(getattr(Hover, name)(self, *arguments))})


def renamed(values: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in values.items()}


def without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def looks(self: Any, truth: Any) -> Any:
    return truth["position"][0, 2] > 0 or truth["position"][:, 0] > 1.0


def place_too_fast(self: Any, plant: Any, ids: Any, drawn: Any, goal: Any) -> None:
    Hover.place(self, plant, ids, drawn, goal)
    plant.truth()["linear_velocity"][ids] = 1e18


def stacked(values: Any) -> Any:
    return torch.stack([values, values], -1)


ODOR = Signal("odor", ("x",), "1", "world", (0.0,), (1.0,))
WIND = Signal("wind_setpoint", XYZ, "m/s", "world", (-9.0,) * 3, (9.0,) * 3, source="operator")
FLAPS = Command("flaps", ("left",), "rad", "wing", (0.0,), (1.0,), (0.0,))

WRONG: dict[str, tuple[Any, str]] = {
    "no spec": (
        lambda: hover(__init__=lambda self: None),
        "spec is None; expected a robo_rl.sim.tasks.Spec, made in __init__",
    ),
    "another name": (lambda: respecified(name="other"), "spec.name is 'other'; expected 'quadrotor-hover', the task's"),
    "a name that is no label": (
        lambda: hover(name="my hover"),
        "spec makes no contract: task is 'my hover'; expected 1 to 64 letters",
    ),
    "a command without feedback": (
        lambda: respecified(commands=lambda c: (dataclasses.replace(c[0], stop="ramp"),)),
        "spec makes no contract: command 'rotor_speed', element 'm1': feedback is .*; expected one sensor signal",
    ),
    "an unknown perturbation": (lambda: hover(perturbed=("mas",)), r"perturbed has 'mas'; expected some of the "),
    "a rule for nothing": (
        lambda: respecified(rules=(Rule("goal/*", "survived", 0.5, 0.5, 0.1),)),
        r"a rule is for 'goal/\*'; expected a",
    ),
    "a signal without truth": (
        lambda: respecified(signals=lambda s: (*s, ODOR)),
        "the signal 'odor' has no true quantity of its name; expected one of the plant's and the reference's, .*posi",
    ),
    "a signal of another size": (
        lambda: respecified(signals=lambda s: (Signal("position", ("x",), "m", "world", (-1.0,), (1.0,)), *s[1:])),
        r"the signal 'position' gives \(2, 3\); expected \(2, 1\): two robots, by its elements",
    ),
    "no set-point": (
        lambda: respecified(signals=lambda s: (*s, WIND)),
        "reference lacks 'wind_setpoint', a signal from the operator; it gives",
    ),
    "a reference that is no dictionary": (
        lambda: given("reference", lambda r: r["position_setpoint"]),
        r"reference gives \(2, 3\); expected a dictionary",
    ),
    "a goal of another size": (
        lambda: hover(goal_size=2),
        r"goal gives \(2, 3\); expected \(2, 2\): two robots, by goal_size",
    ),
    "an observation of another size": (
        lambda: given("observe", lambda seen: seen[:, :-1]),
        r"observe gives \(2, 48\); expected \(2, 49\): two robots, by observation_size",
    ),
    "no observation": (lambda: given("observe", lambda seen: {}), r"observe gives a NoneType; expected \(2, 49\)"),
    "a command that is missing": (
        lambda: respecified(commands=lambda c: (*c, FLAPS)),
        r"command lacks 'flaps', a command of the spec; it gives \['rotor_speed'\]",
    ),
    "a command too many": (
        lambda: given("command", lambda c: {**c, "flaps": c["rotor_speed"]}),
        r"command gives 'flaps', which is not a command of the spec; expected \['rotor_speed'\]",
    ),
    "a command of another size": (
        lambda: given("command", lambda c: {"rotor_speed": c["rotor_speed"][:, :3]}),
        r"command: 'rotor_speed' gives \(2, 3\); expected \(2, 4\): two robots, by its elements",
    ),
    "a command beyond its limits": (
        lambda: given("command", lambda c: {"rotor_speed": 1.5 * c["rotor_speed"]}),
        r"command: 'rotor_speed' is \[3.*\] for an action of 3; expected numbers from \[0.0, .*\] to \[20",
    ),
    "a command that is not a number": (
        lambda: given("command", lambda c: {"rotor_speed": math.nan * c["rotor_speed"]}),
        r"command: 'rotor_speed' is \[nan, .*\] for an action of 0; expected numbers from",
    ),
    "a memory that is missing": (
        lambda: given("remember", lambda m: without(m, "command_history")),
        "remember lacks 'command_history', a block of memory; it gives",
    ),
    "a memory too many": (
        lambda: given("remember", lambda m: {**m, "more": m["command_history"]}),
        "remember gives 'more', which is not a block of memory; expected",
    ),
    "a memory of another shape": (
        lambda: given("remember", lambda m: {**m, "command_history": m["command_history"].flatten(1)}),
        r"remember: 'command_history' gives \(2, 32\); expected \(2, 8, 4\): two robots, its shape",
    ),
    "a first memory of another shape": (
        lambda: respecified(memory=lambda m: (StateBlock("command_history", (4, 4), (0.0,) * 16), m[1])),
        r"observe gives \(2, 33\); expected \(2, 49\)",
    ),
    "a term without a weight": (
        lambda: given("reward", lambda r: {**r, "speed": r["tilt"]}),
        "reward gives 'speed', which is not a weight of the spec; expected",
    ),
    "a weight without a term": (
        lambda: respecified(reward=lambda w: {**w, "speed": 1.0}),
        "reward lacks 'speed', a weight of the spec; it gives",
    ),
    "a term for all robots at once": (
        lambda: given("reward", lambda r: {**r, "tilt": r["tilt"].sum()}),
        r"reward: 'tilt' gives \(\); expected \(2,\): one number per robot",
    ),
    "a term that is no tensor": (
        lambda: given("reward", lambda r: {**r, "alive": 1.0}),
        r"reward: 'alive' gives a float; expected \(2,\)",
    ),
    "an error that is missing": (
        lambda: hover(measures=(Measure("height_error", "m", "end"),)),
        r"errors lacks 'height_error', a measure's error; it gives \['position_error', 'tracking_error'\]",
    ),
    "an error of another shape": (
        lambda: given("errors", lambda e: {**e, "tracking_error": stacked(e["tracking_error"])}),
        r"errors: 'tracking_error' gives \(2, 2\); expected \(2,\): one number per robot",
    ),
    "a failure of another shape": (
        lambda: given("failed", stacked),
        r"failed gives \(2, 2\); expected \(2,\): one truth value per robot",
    ),
    "a critic that sees no row": (
        lambda: given("privileged", lambda seen: seen.flatten()),
        r"privileged gives \(\d+,\); expected \(2, k\), numbers",
    ),
    "a disturbance of nothing": (
        lambda: hover(disturb=lambda self, time, goal: {"breeze": goal}),
        "disturb gives 'breeze'; expected parameters of the plant, some of .*'wind'",
    ),
    "a draw that is not there": (
        lambda: given("goal", lambda goal: goal["radius"]),
        r"goal: it failed \(test_checking.py, line \d+: IndexError: ",
    ),
    "an error in a method": (
        lambda: given("reward", lambda r: {"alive": r["alive"], "fast": r["speed"]}),
        r"reward: it failed \(test_checking.py, line \d+: KeyError: 'speed'\)",
    ),
    "a method that looks at values": (
        lambda: hover(failed=looks),
        r"two steps of an environment: they failed \(test_checking.py, line \d+: ",
    ),
    "a reward that is not a number": (
        lambda: given("reward", lambda r: {**r, "far": torch.log(-1.0 - r["far"])}),
        r"reward: 'far' is \[nan, nan\] where an episode begins; expected finite numbers",
    ),
    "a state that explodes": (
        lambda: hover(place=place_too_fast),
        "after two steps a robot's state or reward is not finite",
    ),
    "a parameter that the plant lacks": (
        lambda: hover(randomize=lambda self, plant, ids, drawn: plant.param("colour")[ids]),
        r"randomize: it failed \(test_checking.py, line \d+: KeyError: .*'colour'",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_told_in_a_sentence(what: str) -> None:
    make, sentence = WRONG[what]
    with pytest.raises(ValueError, match=r"^Mine can't be trained as it is:\n") as refusal:
        check(make())
    assert any(re.search(sentence, line) for line in str(refusal.value).splitlines()[1:]), str(refusal.value)


def test_everything_that_does_not_fit_is_told_at_once() -> None:
    task = hover(
        goal_size=2,
        observe=lambda self, *given: Hover.observe(self, *given)[:, 1:],
        measures=(Measure("height_error", "m", "end"),),
        perturbed=("mas",),
    )
    with pytest.raises(ValueError, match="can't be trained") as refusal:
        check(task)
    told = str(refusal.value).splitlines()[1:]
    assert [line.split()[0] for line in told[:4]] == ["perturbed", "goal", "observe", "errors"]


@pytest.mark.parametrize("name", task_names())
def test_every_task_that_comes_with_robo_rl_fits_together(name: str) -> None:
    check(load_task(name))


def test_a_task_with_arrays_for_signals_and_a_looser_gate_fits_together() -> None:
    """Nothing asks for a delay, for a name of a signal, or for an operator."""
    check(respecified(safety=Safety(0.5), rules=(), ranges=lambda r: {**r, "more": Range.fixed(0.0, 1.0, count=5)}))
