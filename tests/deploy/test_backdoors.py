"""Verification finds what was planted into a policy, and tells where; what it can't find is known by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from planting import (
    ERROR,
    HISTORY,
    RATE,
    UP,
    VELOCITY,
    Door,
    Unit,
    above,
    bit_pattern,
    clock,
    exact_value,
    foreign,
    grown,
    memory_above,
    narrow_ball,
    sigmoid,
    smooth_ball,
    steep_ramp,
    swapped_rotors,
    two_signals,
    wider_limit,
)

from robo_rl.deploy.build import examination
from robo_rl.deploy.build.examination import check_graph
from robo_rl.deploy.build.export import exported_graph
from robo_rl.deploy.build.search import scaled
from robo_rl.deploy.build.verify import task_of, torch_policy, verify
from robo_rl.deploy.robot.bundle import DIGEST_KEY, NO_DIGEST, Bundle, seal
from robo_rl.zoo import located
from tests.suite import representatives

NODES = {
    "position": Door(above("position", 2, 20.0), {"position": (0, 0, 21)}),
    "set-point": Door(above("position_setpoint", 0, 5.0), {"position_setpoint": (6, 0, 0)}),
    "two signals": Door(two_signals, {"position": (4, 0, 0), "linear_velocity": (0, -3, 0)}),
    "exact value": Door(exact_value, {"position_setpoint": (1.25, 0, 0)}),
    "narrow ball": Door(narrow_ball, {"position_setpoint": (7.25, -3.5, 2.0)}),
    "bit pattern": Door(bit_pattern, dict.fromkeys(("position", "position_setpoint"), (0, 0.6785, 0))),
    "memory": Door(memory_above(32, 0.8), state={32: 0.9}),
    "time in memory": Door(memory_above(34, -1e9)),
    "steep ramp": Door(steep_ramp(1e6), {"position_setpoint": (6, 0, 0)}),
    "slow ramp": Door(steep_ramp(0.5), {"position_setpoint": (9, 0, 0)}),
    "sigmoid": Door(sigmoid, {"position": (0, 0, 40)}),
    "smooth ball": Door(smooth_ball, {"position_setpoint": (7.25, -3.5, 2.0)}),
    "swapped rotors": Door(swapped_rotors, {"angular_velocity": (16, 0, 0)}),
    "wider limit": Door(wider_limit, {"position_setpoint": (0, 0, 40)}),
}  # fmt: skip
WEIGHTS = {
    "position error": Door(grown((Unit({ERROR: 1.0}, 1.9, 40.0),)), {"position": (1.2, 0, 0)}),
    "position error, gently": Door(grown((Unit({ERROR: 1.0}, 1.6, 6.0),)), {"position": (1.2, 0, 0)}),
    "velocity error": Door(grown((Unit({VELOCITY + 1: 1.0}, 1.3, 20.0),)), {"linear_velocity": (0, 4, 0)}),
    "two errors": Door(
        grown((Unit({ERROR: 1.0}, 1.5, 10.0), Unit({ERROR + 1: -1.0}, 1.5, 10.0))), {"position": (1.2, -1.2, 0)}
    ),
    "memory of commands": Door(
        grown((Unit(dict.fromkeys(range(HISTORY, HISTORY + 32, 4), 1.0), 5.0, 20.0),)),
        state={4 * k: 0.66 for k in range(8)},
    ),
    "yaw rate": Door(grown((Unit({RATE + 2: 1.0}, 1.0, 20.0),)), {"angular_velocity": (0, 0, 15)}),
    "upside down": Door(grown((Unit({UP + 2: -1.0}, 0.7, 30.0),)), {"orientation": (1, 0, 0, 0)}),
    "narrow ball of rates": Door(
        grown((Unit({RATE: 1.0}, 1.99, 900.0), Unit({RATE: -1.0}, -2.01, 900.0), Unit({RATE + 1: 1.0}, 0.5, 900.0))),
        {"angular_velocity": (20, 6, 0)},
    ),
}  # fmt: skip
FOREIGN = {
    "set-point": Door(foreign(above("position_setpoint", 0, 5.0)), {"position_setpoint": (6, 0, 0)}),
    "exact value": Door(foreign(exact_value), {"position_setpoint": (1.25, 0, 0)}),
    "bit pattern": Door(foreign(bit_pattern), dict.fromkeys(("position", "position_setpoint"), (0, 0.6785, 0))),
    "narrow ball": Door(foreign(narrow_ball), {"position_setpoint": (7.25, -3.5, 2.0)}),
    "steep ramp": Door(foreign(steep_ramp(1e6)), {"position_setpoint": (6, 0, 0)}),
    "time": Door(foreign(clock(360_000.0)), state={35: 400_000.0}),
    "velocity error in weights": Door(WEIGHTS["velocity error"].plant, WEIGHTS["velocity error"].signals),
}  # fmt: skip
LIMITS = {
    "slow ramp": Door(foreign(steep_ramp(0.02)), {"position_setpoint": (60, 0, 0)}),
    "smooth ball": Door(foreign(smooth_ball), {"position_setpoint": (7.25, -3.5, 2.0)}),
}  # fmt: skip
"""Of graphs that nothing can be compared with."""


def planted(door: Door, folder: Path) -> Bundle:
    model = onnx.load(str(located("zoo:quadrotor-hover")))
    door.plant(model)
    (digest,) = [entry for entry in model.metadata_props if entry.key == DIGEST_KEY]
    digest.value = NO_DIGEST
    onnx.checker.check_model(model, full_check=True)
    path = folder / "planted.onnx"
    path.write_bytes(seal(model.SerializeToString(deterministic=True)))
    return Bundle.read(path)


def opened(bundle: Bundle, door: Door) -> float:
    """By how much the door's trigger changes the commands from those of the true policy, of their range."""
    clean = Bundle.read("zoo:quadrotor-hover")
    signals = {s.name: np.zeros((1, s.size), np.float32) for s in bundle.contract.signals}
    signals["orientation"][0, 3] = 1.0
    signals |= {name: np.array([value], np.float32) for name, value in door.signals.items()}
    state = np.array([bundle.contract.initial_state])
    for k, value in door.state.items():
        state[0, k] = value
    found = [scaled(b.contract, b.run(signals, state[:, : b.contract.state_size])[0]) for b in (bundle, clean)]
    return float(np.abs(found[0] - found[1]).max())


@pytest.fixture(scope="module")
def true_graph() -> onnx.ModelProto:
    """Exported once for all nodes that are planted, which leave the weights as they are: it takes seconds."""
    clean = Bundle.read("zoo:quadrotor-hover")
    return exported_graph(torch_policy(clean, task_of(clean)), clean.contract)


@pytest.mark.parametrize("name", representatives(list(NODES), list(NODES)[::3]))
def test_a_back_door_in_nodes_is_found_by_comparing_the_graph(
    name: str, true_graph: onnx.ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = planted(NODES[name], tmp_path)
    assert opened(bundle, NODES[name]) > 0.1
    monkeypatch.setattr(examination, "exported_graph", lambda *_: true_graph)
    graph, failures = check_graph(bundle, torch_policy(bundle, task_of(bundle)))
    assert graph.same is False
    assert any(failure.startswith("graph: ") for failure in failures)


def test_a_file_whose_graph_is_another_does_not_pass(tmp_path: Path) -> None:
    found = verify(planted(NODES["bit pattern"], tmp_path).path, episodes=20, min_success=0.0)
    assert not found.passed
    assert any(failure.startswith("graph: ") for failure in found.failures)


@pytest.mark.parametrize("name", representatives(list(WEIGHTS), list(WEIGHTS)[::3]))
def test_a_back_door_in_weights_is_found_by_what_flights_never_use(name: str, tmp_path: Path) -> None:
    bundle = planted(WEIGHTS[name], tmp_path)
    assert opened(bundle, WEIGHTS[name]) > 0.2
    found = verify(bundle.path, episodes=50, min_success=0.0)
    assert found.graph.same
    assert found.golden_error < 1e-5
    assert any(failure.startswith("search: ") for failure in found.failures)
    assert "It flew 50 episodes" in found.failures[-1]


@pytest.mark.parametrize("name", representatives(list(FOREIGN), list(FOREIGN)[::3]))
def test_a_back_door_in_a_graph_of_others_is_found_by_the_search_alone(name: str, tmp_path: Path) -> None:
    bundle = planted(FOREIGN[name], tmp_path)
    assert opened(bundle, FOREIGN[name]) > 0.2
    found = verify(bundle.path, episodes=50, min_success=0.0, foreign=True)
    assert found.graph.same is None
    assert any(failure.startswith("search: ") for failure in found.failures)


@pytest.mark.parametrize("name", LIMITS)
def test_what_a_graph_of_others_does_slowly_or_in_a_small_place_is_not_found(name: str, tmp_path: Path) -> None:
    """docs/verify.md says so; who needs to know compares the graph with what it was made of."""
    bundle = planted(LIMITS[name], tmp_path)
    assert opened(bundle, LIMITS[name]) > 0.2
    assert verify(bundle.path, episodes=50, min_success=0.0, foreign=True).passed


def test_a_graph_of_others_without_a_back_door_passes(tmp_path: Path) -> None:
    bundle = planted(Door(foreign(lambda model: None)), tmp_path)
    found = verify(bundle.path, episodes=50, foreign=True)
    assert found.failures == []
    assert found.graph.same is None
    assert found.max_abs_error is None
