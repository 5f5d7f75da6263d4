"""What every task has in common: its contract, its steps, and the robots that can do it."""

from __future__ import annotations

import numpy as np
import pytest

from robo_rl.contract import Contract, Network, Provenance
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.robots.multirotor import load_multirotor
from robo_rl.sim.tasks.loading import load_task

PROVENANCE = Provenance("none", 0, 0, "0" * 64)
NETWORK = Network((8,), "tanh", False)


@pytest.mark.parametrize("name", ["quadrotor-hover", "quadrotor-track"])
@pytest.mark.parametrize("robot", ["crazyflie", "hummingbird"])
def test_the_contract_tells_the_robots_facts_and_the_first_memory(name, robot):
    task = load_task(name, robot)
    contract = task.spec.contract(PROVENANCE, NETWORK)
    assert Contract.from_json(contract.to_json()) == contract
    assert contract.robot == load_multirotor(robot).facts()
    assert contract.command("rotor_speed").elements == task.card.rotor_names
    first = task.first_memory(2)
    assert np.array_equal(np.concatenate([block[1].flatten() for block in first.values()]), contract.initial_state)


def test_an_episode_has_as_many_steps_as_its_length_holds_periods():
    spec = load_task("quadrotor-hover").spec
    assert spec.episode_steps == 500
    assert spec.episode_steps * spec.control_period == pytest.approx(spec.episode_length)


def test_a_robot_that_can_not_do_a_task_is_refused():
    with pytest.raises(CardError, match="robot 'go2' is of the kind 'legged'; expected 'multirotor'"):
        load_task("quadrotor-hover", "go2")
    with pytest.raises(CardError, match="robot 'go2' is of the kind 'legged'; expected 'multirotor'"):
        load_multirotor("go2")
    with pytest.raises(CardError, match="robot 'crazyflie' is of the kind 'multirotor'; expected 'legged'"):
        load_legged("crazyflie")
