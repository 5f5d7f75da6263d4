"""The ladder to live: nothing leaves below blend, authority rises over time, and every rung is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.controllers.gate.codes import Request, State
from robo_rl.deploy.robot.runtime import Policy
from robo_rl.deploy.robot.session import Session

PERIOD = 10_000  # µs


class Hover:
    """A runner on signals of a robot at rest, with the noise that keeps them from looking frozen."""

    def __init__(self, bundle: Path, **settings) -> None:
        import numpy as np

        policy = Policy.load(bundle, rate_hz=100)
        self.policy, self.time, self.noise = Session(policy, **settings), 0, np.random.default_rng(0)
        self.contract, self.height = policy.contract, 0.0

    def step(self, request: Request = Request.NONE, **changes):
        import numpy as np

        self.time += PERIOD
        samples = {}
        for s in self.contract.signals:
            value = np.array([0, 0, 0, 1] if s.kind == "quaternion" else [0] * s.size, np.float32)
            if s.noise is not None:
                value = value + (np.array(s.noise) * self.noise.normal(size=s.size)).astype(np.float32)
            if s.name == "position":
                value[2] += self.height
            samples[s.name] = (changes.get(s.name, value).astype(np.float32), self.time)
        return self.policy.step(self.time, samples, request)

    def take_off(self):
        self.step()
        self.step(Request.ARM)
        return self.step(Request.ACTIVATE)


@pytest.mark.parametrize("mode", ["dry_run", "shadow"])
def test_below_blend_nothing_is_sent(bundle_file: Path, mode: str):
    hover = Hover(bundle_file, mode=mode)
    decisions = [hover.take_off(), *(hover.step() for _ in range(50))]
    assert decisions[-1].output.state == State.ACTIVE
    assert decisions[-1].policy is not None
    assert all(decision.send is None for decision in decisions)


def test_in_shadow_signals_and_commands_are_compared(bundle_file: Path):
    hover = Hover(bundle_file, mode="shadow")
    hover.take_off()
    for _ in range(50):
        hover.step()
    found = hover.policy.envelope.summary()
    assert found["outside/position"] == 0
    assert 0 < found["command_difference"] < 0.5  # of the range: two controllers that both hover


def test_blending_begins_with_the_controller_and_ends_with_the_policy(bundle_file: Path):
    hover = Hover(bundle_file, mode="blend", blend_time=1.0)
    first = hover.take_off()
    assert first.authority == 0.0
    decisions = [hover.step() for _ in range(120)]
    assert decisions[49].authority == pytest.approx(0.5, abs=0.02)
    assert decisions[-1].authority == 1.0
    assert (decisions[-1].send == decisions[-1].policy).all()
    assert hover.policy.promote() == "mode is now 'live'"


def test_blending_can_be_stopped(bundle_file: Path):
    hover = Hover(bundle_file, mode="blend", blend_time=1.0)
    hover.take_off()
    for _ in range(60):
        hover.step()
    hover.policy.demote()
    after = [hover.step() for _ in range(80)]
    assert after[-1].authority == 0.0
    assert after[-1].output.state == State.ACTIVE  # the controller flies


def test_commands_begin_to_be_sent_only_from_idle(bundle_file: Path):
    hover = Hover(bundle_file, mode="shadow")
    hover.take_off()
    with pytest.raises(ValueError, match="disarm before"):
        hover.policy.promote()
    hover.step(Request.DISARM)
    assert hover.policy.promote() == "mode is now 'blend'"


def test_a_faulty_policy_hands_over_to_the_controller_which_lands(bundle_file: Path):
    import numpy as np

    hover = Hover(bundle_file)
    hover.take_off()
    bad = np.full(3, np.nan, np.float32)
    hover.height = 1.0
    hover.step()
    decision = hover.step(position_setpoint=bad)
    assert decision.output.state == State.FAULT
    assert decision.output.source.name == "FALLBACK"
    assert decision.send is not None
    assert decision.send.min() >= 0
    assert hover.step().output.source.name == "FALLBACK"
    hover.height = 0.0
    later = hover.step()  # it is down
    assert later.output.source.name == "SAFE"
    assert (later.send == 0).all()


def test_a_sensor_fault_stops_the_motors(bundle_file: Path):
    import numpy as np

    hover = Hover(bundle_file)
    hover.take_off()
    decision = hover.step(position=np.full(3, np.nan, np.float32))
    assert decision.output.source.name == "SAFE"
    assert (decision.send == 0).all()
