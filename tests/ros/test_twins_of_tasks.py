"""A twin of any task is made, or is refused in a sentence that says what to do."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.ros.twins import make_twin
from robo_rl.sim.tasks.loading import load_task, task_names
from tests.suite import representatives

REFUSED = {
    "swarm": "is of a team of 8; a twin is one robot",
    "pmsm-current": "a ROS node on a computer keeps 500 us at best",
}
PROMPT = ("bldc-speed", "dc-speed", "pmsm-speed")
"""Tasks whose sensors have no delay."""
ALWAYS = ("swarm-swap", "pmsm-current", "dc-speed", "g1-stand", "arms-reach")


@pytest.mark.parametrize("name", representatives(task_names(), ALWAYS))
def test_a_twin_has_the_signals_of_its_task_or_says_why_there_is_none(name: str) -> None:
    why = next((text for begin, text in REFUSED.items() if name.startswith(begin)), None)
    if why is not None:
        with pytest.raises(ValueError, match=why):
            make_twin(name)
        return
    if name in PROMPT:
        with pytest.raises(ValueError, match=r"'delay' is 0\.01 s; expected 0 to 0 s, as in training, by delay:=0"):
            make_twin(name)
    twin = make_twin(name, delay=0.0)
    assert [signal.name for signal in twin.spec.signals] == [signal.name for signal in load_task(name).spec.signals]
