"""A robot starts from where its contract lets the gate arm it; a contract that does not is refused in a sentence."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from robo_rl.contract import Contract, ContractError, Envelope, Network, Provenance
from robo_rl.controllers.gate.codes import Request, State
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.safety import Inputs, initial, step
from robo_rl.controllers.start_pose import at_start, require_start
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.sim.tasks.loading import load_task
from robo_rl.zoo import FOLDER, names

HOME_OF_THE_PANDA = (0.3069, 0.0, 0.4869)
"""m, x, y, z: Franka's ready pose, with the tool 0.1034 m from the flange."""


def made(task: str) -> Contract:
    return load_task(task).spec.contract(Provenance("ppo", 0, 0, ""), Network((8,), "tanh", False))


def armed(contract: Contract) -> State:
    """The gate's state after arming where the robot starts; other signals are in the middle of what was seen."""
    values = {}
    for signal in contract.signals:
        low, high = signal.bounds
        seen = signal.seen_low is not None
        middle = (
            0.5 * (signal.spread(signal.seen_low) + signal.spread(signal.seen_high)) if seen else 0.5 * (low + high)
        )
        values[signal.name] = np.clip(middle, low, high).astype(np.float32)
    for one in at_start(contract):
        values[one.signal.name][one.place] = one.value
    config = GateConfig.from_contract(contract)
    flat = np.concatenate([values[signal.name].ravel() for signal in contract.signals])
    stamps, period = [0] * len(contract.signals), round(1e6 * contract.control_period)
    gate = initial(config)
    for k in range(1, 4):
        stamps = [k * period] * len(stamps)
        given = Inputs(k * period, flat, stamps, operator_stamp=k * period, bundle_intact=True, requests=Request.ARM)
        gate, _ = step(config, gate, given)
    return gate.state


@pytest.mark.parametrize("name", names())
def test_every_policy_of_the_zoo_can_be_armed_where_its_robot_starts(name: str) -> None:
    contract = Bundle.read(FOLDER / f"{name}.onnx").contract
    require_start(contract)
    assert armed(contract) == State.READY


def test_the_panda_starts_at_home_within_the_envelope_of_every_task() -> None:
    for task in ("arm-reach", "arm-place", "arm-insert", "arm-push", "arm-stack"):
        contract = made(task)
        require_start(contract)
        tool = [one.value for one in at_start(contract) if one.signal.name == "tool_position"]
        np.testing.assert_allclose(tool, HOME_OF_THE_PANDA, atol=1e-3)


def test_a_home_out_of_the_envelope_is_refused_with_element_value_and_limits() -> None:
    contract = made("arm-reach")
    low = Envelope("tool_position", (0.28, -0.3, -0.085), (0.72, 0.3, 0.35))
    wrong = dataclasses.replace(contract, safety=dataclasses.replace(contract.safety, envelope=(low,)))
    with pytest.raises(
        ContractError, match=r"envelope of 'tool_position'.*'z' at 0\.4869 m; expected -0\.085 to 0\.35"
    ):
        require_start(wrong)
    near = dataclasses.replace(contract, safety=dataclasses.replace(contract.safety, envelope=(
        Envelope("tool_position", norm=0.5),)))  # fmt: skip
    with pytest.raises(ContractError, match=r"'norm' at 0\.575. m; expected 0 to 0\.5"):
        require_start(near)


@pytest.mark.parametrize("task", ["go2-flat", "arm-place", "mobile-place"])
def test_a_joint_that_starts_out_of_what_is_measured_or_commanded_is_refused(task: str) -> None:
    contract = load_task(task, "so101" if task == "arm-place" else None).spec.contract(
        Provenance("ppo", 0, 0, ""), Network((8,), "tanh", False)
    )
    require_start(contract)
    signal, command = contract.signal("joint_position"), contract.command("joint_position_target")
    name = signal.elements[1]
    narrow = dataclasses.replace(signal, lower=tuple(low if i != 1 else 1.8 for i, low in enumerate(signal.lower)),
                                 upper=tuple(up if i != 1 else 1.9 for i, up in enumerate(signal.upper)))  # fmt: skip
    others = tuple(narrow if one is signal else one for one in contract.signals)
    with pytest.raises(ContractError, match=rf"signal 'joint_position'.*'{name}' at .* rad; expected 1.8 to 1.9"):
        require_start(dataclasses.replace(contract, signals=others))
    if command.start is None:
        upper = tuple(up if i != 1 else -1.5 for i, up in enumerate(command.upper))
        fewer = tuple(dataclasses.replace(one, upper=upper) if one is command else one for one in contract.commands)
        with pytest.raises(ContractError, match=rf"command 'joint_position_target'.*'{name}'"):
            require_start(dataclasses.replace(contract, commands=fewer))


@pytest.mark.parametrize("task", ["car-race", "diff-nav", "quadrotor-hover"])
def test_a_robot_that_stands_still_is_within_its_limits(task: str) -> None:
    contract = made(task)
    require_start(contract)
    name = "angular_velocity" if task == "quadrotor-hover" else "wheel_speed"
    moving = dataclasses.replace(contract.safety, envelope=(Envelope(name, lower=0.5),))
    with pytest.raises(ContractError, match=f"'{name}', of a robot that stands still: .* at 0 .*; expected 0.5 to"):
        require_start(dataclasses.replace(contract, safety=moving))
