"""The simulated robot as a driver: of any task, and of a robot of one's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robo_rl.deploy.emulate.driver import make
from robo_rl.deploy.robot.drivers.driver import DriverError, Mode, Settings
from robo_rl.learn.experience.demonstrations import contract_of
from robo_rl.sim.robots import load_robot
from robo_rl.sim.tasks.loading import load_task


@pytest.mark.parametrize("task", ["diff-nav", "car-race", "quadrotor-hover"])
def test_a_robot_waits_at_rest_until_the_policy_takes_over(task: str) -> None:
    """Of tasks, too, that have nothing in hand that would have to be held."""
    contract = contract_of(load_task(task))
    driver = make(contract, Settings())
    driver.connect()
    for step in range(3):
        samples = driver.read(step * 100_000)
        assert set(samples) == {signal.name for signal in contract.signals}
        assert all(np.isfinite(value).all() for value, _ in samples.values())
        driver.write({c.name: np.zeros(c.size, np.float32) for c in contract.commands}, Mode.POLICY)


def test_a_robot_of_ones_own_is_simulated_by_its_card_and_no_other(tmp_path: Path) -> None:
    text = (Path(load_robot.__code__.co_filename).parent / "turtlebot3" / "card.toml").read_text()
    for name, radius in (("jackal", "0.34"), ("other", "0.3")):
        (tmp_path / f"{name}.toml").write_text(text.replace("value = 0.105", f"value = {radius}"))
    contract = contract_of(load_task("diff-nav", str(tmp_path / "jackal.toml")))
    assert contract.robot_name == "jackal"
    assert make(contract, Settings(file=str(tmp_path / "jackal.toml"))).connect().robot == "jackal"
    with pytest.raises(DriverError, match=r"robot 'jackal' is not known; .* as --robot-file, the card of yours"):
        make(contract, Settings())
    with pytest.raises(DriverError, match=r"other\.toml is not the robot of the contract, 'jackal'"):
        make(contract, Settings(file=str(tmp_path / "other.toml")))
