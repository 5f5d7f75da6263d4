"""The gate of an arm on a mobile base: a fault stops the base at once; the arm stays where it is, its hand shut."""

from __future__ import annotations

import numpy as np

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.controllers.gate.config import GateConfig
from robo_rl.controllers.gate.moves import arrived
from robo_rl.controllers.gate.safety import Inputs, initial, step
from robo_rl.learn.experience.demonstrations import contract_of
from robo_rl.sim.tasks.mobile_manipulator.place import MobilePlace


def test_when_its_joints_are_heard_no_more_the_base_stops_the_arm_holds_and_the_hand_closes() -> None:
    task = MobilePlace()
    contract = contract_of(task)
    config = GateConfig.from_contract(contract)
    home, jaw = np.array(task.card.home, np.float32), task.card.gripper.joint
    at = {"orientation": [0, 0, 0, 1], "joint_position": home, "gripper_position": [0.01]}
    noise, time = np.random.default_rng(0), 0
    gate = initial(config)
    command = np.concatenate([[0.2, -1.0], home + 0.05, [0.01]]).astype(np.float32)

    def tick(requests: Request = Request.NONE, deaf: int = 0) -> tuple[State, np.ndarray]:
        nonlocal gate, time
        time += 40_000
        true = [np.ravel(at.get(s.name, np.zeros(s.size))) for s in contract.signals]
        values = [
            x + noise.normal(0, 1e-4, x.size) * (s.noise is not None)
            for s, x in zip(contract.signals, true, strict=True)
        ]
        stamps = [time - (deaf if s.name.startswith("joint") else 0) for s in contract.signals]
        signals = np.concatenate(values).astype(np.float32)
        given = Inputs(
            time=time, signals=signals, stamps=stamps, command=command, command_stamp=time, operator_stamp=time,
            bundle_intact=True, requests=requests,
        )  # fmt: skip
        gate, out = step(config, gate, given)
        return out.state, out.command

    assert tick(Request.ARM)[0] == State.READY
    while not arrived(config, gate):
        tick()
    assert tick(Request.ACTIVATE)[0] == State.ACTIVE
    for _ in range(25):
        state, moved = tick()
    assert state == State.ACTIVE
    np.testing.assert_allclose(moved[:2], [0.2, -1.0], atol=1e-6)
    grip = []
    for k in range(20):
        state, stopped = tick(deaf=(k + 1) * 40_000 + 120_000)
        assert state == State.FAULT
        np.testing.assert_array_equal(stopped[:2], 0.0)
        np.testing.assert_array_equal(stopped[2:6], moved[2:6])  # what was sent last, for nothing newer is known
        grip.append(float(stopped[6]))
    assert np.diff([0.01, *grip]).max() <= 1e-6  # it only closes
    assert np.abs(np.diff(grip)).max() < 0.2 * (jaw.upper - jaw.lower)  # and slowly
    assert grip[-1] < grip[0]
