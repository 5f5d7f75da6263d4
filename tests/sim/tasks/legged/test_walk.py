"""Walking: what the task asks of a robot, how the robot is disturbed, and what the exported parts compute."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from robo_rl.contract import Contract, Network, PositionLaw, Provenance
from robo_rl.learn.experience.learning_env import LearningEnv
from robo_rl.policy import PolicyGraph
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.tasks.legged.gait import PACE, SWEEP
from robo_rl.sim.tasks.legged.ranges import PUSH_TIME
from robo_rl.sim.tasks.legged.walk import PERIOD, FlatWalk
from robo_rl.sim.tasks.loading import load_task

MADE, NETWORK = Provenance("ppo", 0, 0, "0" * 64), Network((8,), "tanh", False)


@pytest.fixture(scope="module")
def task() -> FlatWalk:
    return FlatWalk()


def test_the_contract_tells_the_joints_of_the_card_and_reads_back(task: FlatWalk) -> None:
    contract, card = task.spec.contract(MADE, NETWORK), load_legged("go2")
    told = [(a.name, a.lower, a.upper, a.effort, a.speed) for a in contract.robot.actuators]
    assert told == [(j.name, j.lower, j.upper, j.effort, j.velocity) for j in card.joints]
    assert {(a.quantity, a.unit, a.safe) for a in contract.robot.actuators} == {("position", "rad", "hold")}
    assert contract.robot.facts == {"feet": list(card.feet), "stand": [joint.stand for joint in card.joints]}
    (command,) = contract.commands
    gains = tuple(j.stiffness for j in card.joints), tuple(j.damping for j in card.joints)
    assert command.law == PositionLaw(*gains)
    assert Contract.from_json(contract.to_json()) == contract
    assert [signal.name for signal in contract.signals if signal.source == "operator"] == [
        "linear_velocity_command", "yaw_rate_command",
    ]  # fmt: skip


def test_no_signal_is_one_that_the_robot_can_not_measure(task: FlatWalk) -> None:
    sensed = {signal.name for signal in task.spec.signals if signal.source == "sensor"}
    assert sensed == {"orientation", "angular_velocity", "joint_position", "joint_velocity"}


def test_a_multirotor_is_not_asked_to_walk() -> None:
    with pytest.raises(ValueError, match="'crazyflie' is of the kind 'multirotor'; expected 'legged'"):
        load_task("go2-flat", "crazyflie")
    with pytest.raises(ValueError, match="'go2' is of the kind 'legged'; expected 'multirotor'"):
        load_task("quadrotor-hover", "go2")


def test_gravity_and_rates_are_observed_in_the_base_frame(task: FlatWalk) -> None:
    memory = task.first_memory(1)
    for turn in Rotation.random(20, random_state=0):
        signals = {signal.name: torch.zeros(1, signal.size) for signal in task.spec.signals}
        signals["orientation"] = torch.from_numpy(turn.as_quat()[None]).float()
        signals["angular_velocity"] = torch.tensor([[1.0, 2.0, 3.0]])
        observed = task.observe(signals, memory)[0]
        np.testing.assert_allclose(observed[:3].numpy(), turn.inv().apply([0.0, 0.0, 1.0]), atol=1e-6)
        np.testing.assert_allclose(observed[3:6].numpy(), [0.25, 0.5, 0.75])


def test_velocities_are_those_of_the_heading_frame(task: FlatWalk) -> None:
    yaw = 0.7
    velocity = np.array([math.cos(yaw) * 0.8 - math.sin(yaw) * 0.3, math.sin(yaw) * 0.8 + math.cos(yaw) * 0.3, 0.1])
    truth = {
        "orientation": torch.from_numpy(Rotation.from_euler("z", yaw).as_quat()[None]).float(),
        "linear_velocity": torch.from_numpy(velocity[None]).float(),
        "angular_velocity": torch.tensor([[0.0, 0.0, 0.4]]),
        "linear_velocity_command": torch.tensor([[0.5, 0.7]]),
        "yaw_rate_command": torch.tensor([[0.1]]),
    }
    errors = task.errors(truth)
    assert float(errors["linear_velocity_error"]) == pytest.approx(math.hypot(0.3, 0.4), abs=1e-6)
    assert float(errors["yaw_rate_error"]) == pytest.approx(0.3, abs=1e-6)


def test_commands_change_every_five_seconds_and_hold_in_between(task: FlatWalk) -> None:
    goal = torch.randn(1, task.goal_size)
    goal[:, 15] = 2.0  # s into the first segment
    times = torch.arange(0.01, 20.0, PERIOD)
    wanted = task.reference(times, goal.expand(len(times), -1))["linear_velocity_command"][:, 0]
    changes = times[1:][wanted[1:] != wanted[:-1]]
    np.testing.assert_allclose(changes.numpy(), [3.0, 8.0, 13.0, 18.0], atol=PERIOD)
    np.testing.assert_allclose(wanted.unique(sorted=False).sort().values, goal[0, [0, 3, 6, 9, 12]].sort().values)


def test_every_tenth_command_is_to_stand() -> None:
    env = VecEnv(FlatWalk(), 400, 0)
    commands = env.draws.goal[:, :15].reshape(-1, 3)
    still = (commands == 0).all(-1).float().mean()
    assert float(still) == pytest.approx(0.1, abs=0.03)
    assert float(commands.abs().amax(0)[0]) == pytest.approx(1.0, abs=0.01)
    assert float(commands.abs().amax(0)[1]) == pytest.approx(0.6, abs=0.01)


def test_the_clock_of_the_policy_keeps_the_pace_of_the_reward_s(task: FlatWalk) -> None:
    signals = {signal.name: torch.zeros(1, signal.size) for signal in task.spec.signals}
    memory, commands = task.first_memory(1), {"joint_position_target": task.stand}
    goal = torch.zeros(1, task.goal_size)
    for k in range(1000):
        clock = task.reference(torch.tensor([k * PERIOD]), goal)["clock"]
        torch.testing.assert_close(memory["gait"][:, :2], clock, atol=1e-3, rtol=0.0)
        memory = task.remember(memory, signals, commands)


def test_a_robot_told_to_stand_is_given_the_stand(task: FlatWalk) -> None:
    memory = task.first_memory(8)
    angle = torch.linspace(0, 6, 8)
    memory["gait"][:, 0], memory["gait"][:, 1] = torch.cos(angle), torch.sin(angle)
    given = task.command(torch.zeros(8, 12), memory)["joint_position_target"]
    torch.testing.assert_close(given, task.stand.expand(8, -1))


def test_the_trot_lifts_diagonal_feet_in_turn_and_sweeps_the_others_back(task: FlatWalk) -> None:
    import mujoco

    from robo_rl.sim.plants.assembly import assemble
    from robo_rl.sim.plants.indices import find_indices
    from robo_rl.sim.plants.physics import Physics

    card = load_legged("go2")
    model = assemble(card.mechanism, Physics())
    indices, data = find_indices(model, card.mechanism), mujoco.MjData(model)
    feet = []
    for angle in np.linspace(0, 2 * math.pi, 41):
        gait = torch.tensor([[math.cos(angle), math.sin(angle), 0.8, 0.0, 0.0]])
        data.qpos[indices.position] = (task.stand + task.gait.targets(gait))[0].numpy()
        mujoco.mj_kinematics(model, data)
        feet.append(np.array([data.geom_xpos[model.geom(foot).id] - data.xpos[indices.base] for foot in card.feet]))
    path = np.array(feet)  # (angles, feet, 3)
    height = path[:, :, 2] - path[0, :, 2]
    first, second = (
        [card.feet.index(f) for f in ("FL_foot", "RR_foot")],
        [card.feet.index(f) for f in ("FR_foot", "RL_foot")],
    )
    assert (height[10, first] > 0.05).all()
    assert (height[10, second] < 0.02).all()
    assert (height[30, second] > 0.05).all()
    back = path[40, first, 0] - path[20, first, 0]  # on the ground for the second half turn
    wanted = -SWEEP * 0.8 / (2 * PACE)  # as far as the ground goes at 0.8 m/s, and more
    np.testing.assert_allclose(back, wanted, rtol=0.2)


def test_pushes_last_a_tenth_of_a_second_and_move_the_robot() -> None:
    fixed = {"push/time": 0.51, "push/x": 60.0, "push/y": 0.0, "command/x": 0.0, "command/y": 0.0, "command/yaw": 0.0}
    still = {"initial/linear_velocity": 0.0, "initial/angular_velocity": 0.0, "initial/yaw": 0.0}
    task = FlatWalk()
    pushed, alone = (VecEnv(task, 4, 0, fixed={**fixed, **still, "push/x": x}) for x in (30.0, 0.0))
    memory = task.first_memory(4)
    command = task.command(torch.zeros(4, 12), memory)
    seen = []
    for _ in range(40):
        force = task.disturb(pushed.time, pushed.draws.goal)["force"][:, 0]
        seen.append(float(force[0]))
        before = [env.plant.truth()["linear_velocity"][:, 0].clone() for env in (pushed, alone)]
        pushed.step(command)
        alone.step(command)
        if force[0] == 0 and len(seen) < 25:
            torch.testing.assert_close(*before)
    assert sum(x > 0 for x in seen) == round(PUSH_TIME / PERIOD)
    assert max(seen) == 60.0  # two pushes at once
    difference = pushed.plant.truth()["linear_velocity"] - alone.plant.truth()["linear_velocity"]
    assert (difference[:, 0].abs() > 0.02).any()


def test_biased_sensors_are_off_by_the_same_all_along() -> None:
    task = FlatWalk()
    env = VecEnv(
        task, 3, 0, fixed={"bias/joint_position": 0.02, "bias/angular_velocity": 0.0, "noise": 0.0, "delay": 0.0}
    )
    command = task.command(torch.zeros(3, 12), task.first_memory(3))
    for _ in range(5):
        signals = env.step(command).signals
        truth = env.plant.truth()
        torch.testing.assert_close(signals["joint_position"], truth["joint_position"] + 0.02, atol=1e-5, rtol=0.0)
        torch.testing.assert_close(signals["angular_velocity"], truth["angular_velocity"], atol=1e-5, rtol=0.0)


def test_robots_differ_as_the_ranges_say() -> None:
    task = FlatWalk()
    env = VecEnv(task, 200, 0)
    plant = env.plant
    factor = plant.param("stiffness") / plant.nominal.stiffness
    assert float(factor.min()) >= 0.9 - 1e-6
    assert float(factor.max()) <= 1.1 + 1e-6
    assert float(factor.std()) == pytest.approx(0.2 / math.sqrt(12), rel=0.15)
    payload = plant.param("mass")[:, 0] - plant.nominal.mass[0, 0]
    assert float(payload.max()) > 1.8
    np.testing.assert_array_equal(plant.param("mass")[:, 1:].numpy(), plant.nominal.mass[:, 1:].expand(200, -1).numpy())
    total = plant.batch.expanded("body_subtreemass")[:, plant.indices.base]
    np.testing.assert_allclose(total, plant.param("mass").sum(1).numpy())


def test_falls_end_episodes(task: FlatWalk) -> None:
    upright, lying = torch.tensor([[0.0, 0.0, 0.0, 1.0]]), torch.tensor([[1.0, 0.0, 0.0, 1.0]]) / math.sqrt(2)
    standing = {"orientation": upright, "position": torch.tensor([[0.0, 0.0, 0.28]])}
    assert not bool(task.failed(standing))
    assert bool(task.failed({**standing, "orientation": lying}))
    assert bool(task.failed({**standing, "position": torch.tensor([[0.0, 0.0, 0.1]])}))


def test_an_environment_continues_bit_by_bit_from_what_it_saved() -> None:
    first, second = (LearningEnv(VecEnv(FlatWalk(), 6, seed)) for seed in (0, 1))
    actions = 0.5 * torch.randn(60, 6, 12, generator=torch.Generator().manual_seed(0))
    for action in actions[:30]:
        first.step(action)
    second.load({name: value.clone() for name, value in first.save().items()})
    for action in actions[30:]:
        one, two = first.step(action), second.step(action)
        assert torch.equal(one.observation, two.observation)
        assert torch.equal(one.reward, two.reward)
        assert torch.equal(one.privileged, two.privileged)


def test_the_same_seed_gives_the_same_walks_whatever_else_is_simulated() -> None:
    task = FlatWalk()
    one, two = VecEnv(task, 5, 3), VecEnv(task, 5, 3)
    command = task.command(torch.zeros(5, 12), task.first_memory(5))
    VecEnv(task, 2, 9).step({name: value[:2] for name, value in command.items()})
    for _ in range(10):
        assert torch.equal(one.step(command).reward, two.step(command).reward)


def test_the_policy_graph_gives_commands_within_the_joints_stops() -> None:
    task = FlatWalk()
    policy = PolicyGraph(task, (16,), "elu", True)
    env = VecEnv(task, 32, 0)
    state = policy.initial_state(32)
    with torch.no_grad():
        policy.network[-1].bias.normal_(0.0, 20.0)  # type: ignore[union-attr]
        for _ in range(3):
            commands, state = policy(env.signals(), state)
            env.step(commands)
    given = commands["joint_position_target"]
    assert (given >= task.lower).all()
    assert (given <= task.upper).all()
    assert load_robot("go2").name == "go2"


def test_latencies_of_targets_are_the_nearest_whole_steps_of_the_simulation() -> None:
    drawn = torch.tensor([0.0, 0.004, 0.006, 0.0149, 0.0188, 0.0209])
    env = VecEnv(load_task("go2-flat"), 6, fixed={"command_delay": drawn}, evaluation=True)
    expected = torch.tensor([0.0, 0.0, 0.01, 0.01, 0.02, 0.02], dtype=torch.float64)
    torch.testing.assert_close(env.plant.param("command_delay"), expected[:, None].expand(-1, 12))
