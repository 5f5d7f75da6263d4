"""Bundles of version 1 are read for ever: the zoo as it was then, in tests/data/version1, gives the same bits."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto

from robo_rl import zoo
from robo_rl.commands.exporting import export, inspect
from robo_rl.contract import Contract, ContractError, PositionLaw
from robo_rl.controllers import fallback
from robo_rl.controllers.gate.codes import Request, State
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.safety import Inputs, initial, step
from robo_rl.deploy.build.c.gate_header import gate_header
from robo_rl.deploy.build.c.generate import generate
from robo_rl.deploy.build.c.host import compile_host
from robo_rl.deploy.build.pack import repack
from robo_rl.deploy.build.verify import renewed, task_of, verify
from robo_rl.deploy.robot.bundle import Bundle, BundleError
from robo_rl.deploy.robot.runtime import Policy
from tests.suite import representatives

FOLDER = Path(__file__).parents[1] / "data" / "version1"
NAMES = ["go2-flat", "go2-recover", "go2-rough", "quadrotor-hover", "quadrotor-track"]
WALKS = ["go2-flat", "go2-recover", "go2-rough"]
"""Those whose task and robot are still what they were; the Crazyflie's top speed is another one."""


def model_of(name: str) -> ModelProto:
    return onnx.load(str(FOLDER / f"{name}.onnx"))


def entries(model: ModelProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in model.metadata_props}


def told(name: str) -> dict[str, Any]:
    """The contract as the file has it."""
    return json.loads(entries(model_of(name))["robo_rl.contract"])


def golden(text: str) -> dict[str, Any]:
    """Arrays of golden vectors, by what docs/bundle.md says of them."""

    def floats(packed: str) -> np.ndarray:
        return np.frombuffer(base64.b64decode(packed), "<f4")

    data = json.loads(text)
    rows = {kind: {k: floats(v).reshape(data["steps"], -1) for k, v in data[kind].items()} for kind in ("signals",)}
    rows["commands"] = {k: floats(v).reshape(data["steps"], -1) for k, v in data["commands"].items()}
    return {**rows, "states": floats(data["states"]).reshape(data["steps"] + 1, -1)}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def file(name: str) -> Path:
    return FOLDER / f"{name}.onnx"


def test_the_zoo_as_it_was_is_all_there() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.onnx")) == NAMES
    assert set(NAMES) < set(zoo.names())  # later ones have no version 1
    assert {told(name)["version"] for name in NAMES} == {1}


def test_its_contracts_digest_is_that_of_its_own_text(name: str, file: Path) -> None:
    text = entries(model_of(name))["robo_rl.contract"]
    contract = Bundle.read(file).contract
    assert contract.digest == hashlib.sha256(text.encode()).hexdigest()
    assert contract.to_json() == text
    assert json.loads(contract.to_json(indent=2)) == json.loads(text)
    assert Contract.from_json(contract.to_json()) == contract
    assert contract.version == 2  # what it says in the words of today


def test_numbers_of_another_form_have_the_same_digest(name: str) -> None:
    """A file may have been written by a program that writes 1 for 1.0: version 1 read these as equal."""
    data = told(name)
    data["safety"]["tilt_limit"] = 1
    first = Contract.from_json(json.dumps(data))
    data["safety"]["tilt_limit"] = 1.0
    assert first.digest == Contract.from_json(json.dumps(data, indent=3)).digest


def test_it_says_the_same_in_the_words_of_version_2(name: str, file: Path) -> None:
    old, contract = told(name), Bundle.read(file).contract
    assert (contract.robot.name, contract.robot.kind) == (old["robot_name"], old["robot"]["kind"])
    for signal, before in zip(contract.signals, old["signals"], strict=True):
        now = json.loads(json.dumps(dataclasses.asdict(signal)))
        assert {key: now[key] for key in before} == before
        assert (signal.shape, signal.period, signal.timeout, signal.age_of, signal.layout) == (None,) * 5
    (command,), (before,) = contract.commands, old["commands"]
    for key in before:
        assert getattr(command, key) == (tuple(before[key]) if isinstance(before[key], list) else before[key]), key
    parts = old["robot"].get("rotors") or old["robot"]["joints"]
    assert contract.robot.actuator_names == tuple(part["name"] for part in parts) == command.elements
    limit = old["safety"]["tilt_limit"]
    assert contract.safety.tilt_limit == (None if limit >= math.pi else limit)
    assert contract.safety.signal_timeout == old["safety"]["signal_timeout"]
    assert contract.safety.operator_timeout == old["safety"]["operator_timeout"]
    made = old["provenance"]
    network = contract.network
    assert (list(network.hidden), network.activation) == (made["hidden"], made["activation"])
    assert (network.normalize, network.encoders) == (made["normalize"], ())
    kept = {k: v for k, v in dataclasses.asdict(contract.provenance).items() if k in made}
    assert kept == {k: v for k, v in made.items() if k in kept}
    assert (contract.provenance.source, contract.provenance.source_digest) == ("", "")


def test_joints_stop_on_a_ramp_from_where_they_are_under_the_servo_of_training() -> None:
    old, contract = told("go2-flat"), Bundle.read(FOLDER / "go2-flat.onnx").contract
    (command,), joints = contract.commands, old["robot"]["joints"]
    gains = tuple(j["stiffness"] for j in joints), tuple(j["damping"] for j in joints)
    assert (command.stop, command.law) == ("ramp", PositionLaw(*gains))
    assert contract.feedback(command) == tuple(("joint_position", i) for i in range(12))
    assert (old["safety"]["on_fault"], contract.safety.on_fault) == ("damp", "stop")
    for actuator, joint in zip(contract.robot.actuators, joints, strict=True):
        assert (actuator.quantity, actuator.unit, actuator.safe) == ("position", "rad", "hold")
        assert (actuator.lower, actuator.upper) == (joint["lower"], joint["upper"])
        assert (actuator.effort, actuator.speed) == (joint["effort"], joint["velocity"])
    assert contract.robot.facts == {"feet": old["robot"]["feet"], "stand": [joint["stand"] for joint in joints]}


def test_rotors_are_switched_off() -> None:
    old, contract = told("quadrotor-hover"), Bundle.read(FOLDER / "quadrotor-hover.onnx").contract
    (command,) = contract.commands
    assert (command.stop, command.law, command.feedback) == ("off", None, None)
    assert contract.safety.on_fault == "controller"
    for actuator, rotor in zip(contract.robot.actuators, old["robot"]["rotors"], strict=True):
        assert (actuator.quantity, actuator.unit) == ("velocity", "rad/s")
        assert (actuator.lower, actuator.upper, actuator.safe) == (rotor["speed_min"], rotor["speed_max"], 0.0)
    assert fallback(contract) is not None


def test_golden_vectors_are_the_same_bits_and_come_out(name: str, file: Path) -> None:
    wanted, bundle = golden(entries(model_of(name))["robo_rl.golden"]), Bundle.read(file)
    for kind in ("signals", "commands"):
        found = getattr(bundle.golden, kind)
        assert {k: v.tobytes() for k, v in found.items()} == {k: v.tobytes() for k, v in wanted[kind].items()}
    assert bundle.golden.states.tobytes() == wanted["states"].tobytes()
    assert bundle.golden_error() < 1e-5


def test_steps_give_the_bits_of_plain_onnxruntime(name: str, file: Path) -> None:
    """With what the metadata of version 1 says, and nothing of robo-rl."""
    model, old = model_of(name), told(name)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    signals = golden(entries(model)["robo_rl.golden"])["signals"]
    state = np.array([[x for block in old["state"] for x in block["initial"]]], np.float32)
    policy = Policy.load(file, rate_hz=1 / old["control_period"])
    for k in range(40):
        given = {s["name"]: signals[s["name"]][k] for s in old["signals"]}
        commands = policy.step(given)
        *expected, state = session.run(None, {**{n: v[None] for n, v in given.items()}, "state": state})
        for command, value in zip(old["commands"], expected, strict=True):
            assert commands[command["name"]].tobytes() == value[0].tobytes(), (k, command["name"])
        assert policy.state.tobytes() == state.tobytes()


def test_inspect_shows_it(name: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect.main(file, json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["contract"] == told(name)
    assert inspect.main(file) == 0
    text = capsys.readouterr().out
    assert all(signal["name"] in text for signal in told(name)["signals"])


@pytest.mark.parametrize("name", WALKS)
def test_its_task_of_today_takes_it(name: str, file: Path) -> None:
    contract = Bundle.read(file).contract
    assert task_of(contract).name == contract.task


@pytest.mark.parametrize("name", ["quadrotor-hover", "quadrotor-track"])
def test_a_policy_with_the_crazyflies_former_top_speed_is_refused_by_its_task_of_today(name: str, file: Path) -> None:
    with pytest.raises(BundleError, match=r"2272\.6.*the task 'quadrotor-.*' for robot 'crazyflie' has .*2040\.6"):
        task_of(Bundle.read(file).contract)


@pytest.mark.slow
@pytest.mark.parametrize("name", representatives(WALKS, ["go2-flat"]))
def test_it_is_verified(name: str, file: Path) -> None:
    found = verify(file, episodes=20, min_success=0.5)
    assert found.passed, found.failures


def test_firmware_is_generated_and_tests_itself(name: str, file: Path, tmp_path: Path) -> None:
    bundle = Bundle.read(file)
    made = generate(bundle, tmp_path)
    assert compile_host(made, ["-O1"]).self_test() <= made.tolerance
    (digest,) = re.findall(r"GATE_CONTRACT_DIGEST\[\] = {(.*)};", gate_header(bundle.contract))
    assert bytes(int(byte, 0) for byte in digest.split(", ")).hex() == bundle.contract.digest


def test_the_gate_arms_a_robot_at_rest_with_it(name: str, file: Path) -> None:
    contract = Bundle.read(file).contract
    config = GateConfig.from_contract(contract)
    gate, period = initial(config), config.period
    random = np.random.default_rng(0)
    rest = Bundle.read(file).golden.signals
    answers = []
    for k, request in enumerate([Request.NONE, Request.ARM, Request.NONE]):
        now = 1_000_000 + k * period
        values = {n: (v[0] * (1 + 1e-6 * random.normal()), now) for n, v in rest.items()}
        signals, stamps = config.flat_signals(values)
        given = Inputs(now, signals, stamps, None, now, None, now, True, request)
        gate, answer = step(config, gate, given)
        answers.append(answer.state)
    assert answers == [State.IDLE, State.READY, State.READY]


# --- as version 2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WALKS)
def test_exported_again_it_is_version_2_with_the_same_graph_and_golden_vectors(
    name: str, file: Path, tmp_path: Path
) -> None:
    assert export.main(file, tmp_path / "new.onnx") == 0
    old, new = model_of(name), onnx.load(str(tmp_path / "new.onnx"))
    assert new.graph.SerializeToString(deterministic=True) == old.graph.SerializeToString(deterministic=True)
    assert entries(new)["robo_rl.golden"] == entries(old)["robo_rl.golden"]
    data = json.loads(entries(new)["robo_rl.contract"])
    assert data["version"] == 2
    bundle, contract = Bundle.read(tmp_path / "new.onnx"), Bundle.read(file).contract
    assert bundle.contract == renewed(contract, task_of(contract))
    assert bundle.contract.provenance == contract.provenance
    assert bundle.digest != Bundle.read(file).digest


@pytest.mark.parametrize("name", WALKS)
def test_the_shipped_zoo_has_the_graphs_and_golden_vectors_of_version_1(name: str, tmp_path: Path) -> None:
    old, new = model_of(name), onnx.load(str(zoo.located(f"zoo:{name}")))
    assert new.graph.SerializeToString(deterministic=True) == old.graph.SerializeToString(deterministic=True)
    assert entries(new)["robo_rl.golden"] == entries(old)["robo_rl.golden"]
    contract = Bundle.read(zoo.located(f"zoo:{name}")).contract
    assert json.loads(contract.to_json())["version"] == 2
    assert contract.text is None


def test_a_file_that_is_there_is_not_taken_for_the_one_to_write(file: Path) -> None:
    with pytest.raises(ValueError, match="is exported already; say with --out where to write it"):
        export.main(file)


def test_a_contract_that_does_not_fit_the_graph_is_refused(tmp_path: Path) -> None:
    hover, flat = (Bundle.read(FOLDER / f"{name}.onnx") for name in ("quadrotor-hover", "go2-flat"))
    with pytest.raises(ValueError, match="golden vectors are damaged"):
        repack(hover.path, flat.contract, tmp_path / "new.onnx")


# --- refusals of version 1 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.update(surprise=1), "surprise is 'an unknown field'"),
        (lambda d: d.pop("robot_name"), "robot_name is 'missing'"),
        (lambda d: d["robot"].pop("mass"), "robot.mass is 'missing'"),
        (
            lambda d: d["robot"].update(kind="submarine"),
            r"robot.kind is 'submarine'; expected one of \['legged', 'multi",
        ),
        (lambda d: d["safety"].update(on_fault="pray"), "safety.on_fault is 'pray'; expected one of"),
        (lambda d: d["signals"][0].update(unit="mm"), "signal 'position': unit is 'mm'; expected an SI unit"),
        (lambda d: d["signals"][0].update(shape=None), r"signals\[0\].shape is 'an unknown field'"),
        (lambda d: d["commands"][0]["elements"].reverse(), "elements is .*; expected the robot's actuators in order"),
        (lambda d: d["commands"][0].update(safe=[9e9] * 4), "safe.*; expected a number from lower = 0.0"),
        (lambda d: d.update(task="../hover"), r"task is '\.\./hover'; expected 1 to 64 letters"),
        (lambda d: d.update(version=1.0), "is 'an unknown field'"),
        (lambda d: d.update(version=True), "is 'an unknown field'"),
    ],
)
def test_a_wrong_field_is_refused(change: Any, sentence: str) -> None:
    data = told("quadrotor-hover")
    change(data)
    with pytest.raises(ContractError, match=f"old.onnx: .*({sentence})"):
        Contract.from_json(json.dumps(data), "old.onnx")
