"""The placing task: where episodes begin, what counts as placed, and what a scripted hand gets for it."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from robo_rl.contract import ImpedanceLaw, PositionLaw
from robo_rl.controllers.skills.placing import by_standstill, place
from robo_rl.sim.env import VecEnv
from robo_rl.sim.robots.arm import load_arm
from robo_rl.sim.tasks.arm.joints import HINGE
from robo_rl.sim.tasks.arm.place import HELD, NEAR, Place
from robo_rl.sim.tasks.arm.place_direct import PlaceDirect
from robo_rl.sim.tasks.arm.starts import APART

N = 64


@pytest.fixture(scope="module", params=["panda", "so101"])
def task(request: pytest.FixtureRequest) -> Place:
    return Place(load_arm(request.param))


@pytest.fixture(scope="module")
def env(task: Place) -> VecEnv:
    return VecEnv(task, N, seed=3)


def test_held_out_episodes_begin_with_an_open_hand_high_above_a_cube_that_lies_far_from_its_place(task: Place) -> None:
    env = VecEnv(task, N, seed=5, evaluation=True)
    truth = env.truth(torch.arange(N))
    cube, place, tool = (truth[name] for name in ("cube_position", "cube_position_setpoint", "tool_position"))
    assert float((cube - place)[:, :2].norm(dim=1).min()) > APART - 1e-3
    assert float((tool[:, 2] - cube[:, 2]).min()) > 0.01
    assert float(truth["pad_force"].max()) == 0.0
    assert float(truth["lifted"].max()) == 0.0
    size = env.drawn["cube_size"] * task.half
    torch.testing.assert_close(cube[:, 2], size, atol=5e-4, rtol=0.0)


def test_some_episodes_of_a_training_begin_with_the_cube_between_the_pads(task: Place, env: VecEnv) -> None:
    env.seed(3)
    env.reset()
    truth = env.truth(torch.arange(N))
    held = truth["lifted"][:, 0] > 0.5
    assert 0.2 < float(held.float().mean()) < 0.6
    apart = (truth["cube_position"] - truth["tool_position"]).norm(dim=1)
    assert float(apart[held].max()) < 0.6 * task.half
    closed = torch.full((N, 1), task.card.gripper.joint.lower)
    lift = torch.zeros(N, 4)
    memory = task.first_memory(N)
    signals, commands = env.signals(), task.command(lift, memory)
    for _ in range(15):
        memory = {**memory, **task.remember(memory, signals, commands)}
        commands = task.command(lift, memory) | {"gripper_position_target": closed}
        signals = env.step(commands).signals
    truth = env.truth(torch.arange(N))
    pressed = truth["pad_force"].amin(1) > 1.0  # by both pads
    assert float(pressed[held].float().mean()) > 0.75  # some slip out of fingers that are far from their middle


def test_a_cube_counts_as_placed_only_once_it_was_lifted_and_lies_free_at_its_place(task: Place) -> None:
    place = torch.tensor([[0.2, 0.1, 0.01]])

    def truth(**changes: torch.Tensor) -> dict[str, torch.Tensor]:
        usual = {
            "cube_position": place,
            "cube_position_setpoint": place,
            "cube_linear_velocity": torch.zeros(1, 3),
            "pad_force": torch.zeros(1, 2),
            "lifted": torch.ones(1, 1),
            "lain": torch.full((1, 1), float(HELD)),
        }
        return usual | changes

    assert bool(task.succeeded(truth()))
    others = {
        "never lifted": {"lifted": torch.zeros(1, 1)},
        "still held": {"pad_force": torch.tensor([[1.0, 1.0]])},
        "moving": {"cube_linear_velocity": torch.tensor([[0.1, 0.0, 0.0]])},
        "beside its place": {"cube_position": place + torch.tensor([[1.1 * NEAR, 0.0, 0.0]])},
        "above its place": {"cube_position": place + torch.tensor([[0.0, 0.0, 0.01]])},
        "not for long": {"lain": torch.zeros(1, 1)},
    }
    for why, changes in others.items():
        assert not bool(task.succeeded(truth(**changes))), why


def test_progress_is_rewarded_once(task: Place, env: VecEnv) -> None:
    truth = env.truth(torch.arange(N))
    potential = task.potential(truth)
    idle = task.command(torch.zeros(N, 4), task.first_memory(N))
    before, after = ({**truth, "best": (potential - change)[:, None].clamp(min=0.0)} for change in (0.25, 0.0))
    gained = task.reward(before, idle, idle)["progress"]
    torch.testing.assert_close(gained, potential.clamp(max=0.25), atol=1e-5, rtol=0.0)
    assert float(task.reward(after, idle, idle)["progress"].abs().max()) == 0.0
    goal = torch.cat([truth["cube_position_setpoint"], *(truth[name] for name in ("lifted", "lain", "best"))], -1)
    torch.testing.assert_close(task.advance(after, goal)[:, 5], potential)


def test_the_contract_tells_what_the_arms_low_level_has_to_do(task: Place) -> None:
    tool, gripper = task.spec.commands
    assert isinstance(gripper.law, PositionLaw)
    if task.card.impedance:
        assert isinstance(tool.law, ImpedanceLaw)
        assert tool.law.stiffness[0] * tool.law.clip[0] == 20.0  # N
        assert tool.law.tool == task.card.tool
    else:
        assert isinstance(tool.law, PositionLaw)
        assert tool.elements == task.card.joint_names


def test_targets_stay_near_the_measured_tool_whatever_the_action(task: Place, env: VecEnv) -> None:
    signals = env.signals()
    memory = task.remember(task.first_memory(N), signals, task.command(torch.zeros(N, 4), task.first_memory(N)))
    commands = task.command(torch.full((N, 4), 50.0), memory)
    if task.card.impedance:
        reach = (commands["tool_position_target"] - signals["tool_position"]).abs().amax(1)
        inside = ((signals["tool_position"] > task.hand.lower) & (signals["tool_position"] < task.hand.upper)).all(1)
        assert float(reach[inside].max()) <= task.hand.step * 1.001
    else:
        away = (commands["joint_position_target"] - signals["joint_position"]).abs()
        assert float(away.max()) <= HINGE.step + HINGE.loaded + 1e-5


def test_a_card_with_a_smaller_workspace_has_its_cubes_in_it() -> None:
    card = load_arm("panda")
    lower, upper = (0.45, -0.1, 0.015), (0.55, 0.1, 0.15)
    env = VecEnv(Place(dataclasses.replace(card, workspace=(lower, upper))), 32, seed=1, evaluation=True)
    cube = env.truth(torch.arange(32))["cube_position"]
    for k in range(2):
        assert lower[k] <= float(cube[:, k].min())
        assert float(cube[:, k].max()) <= upper[k]


def test_an_arm_on_servos_comes_to_its_place_under_the_weight_of_its_links() -> None:
    task = Place(load_arm("so101"))
    env = VecEnv(task, 16, seed=2, fixed={"log_stiffness": 0.0}, evaluation=True)
    memory, signals = task.first_memory(16), env.signals()
    goal, upper = torch.tensor([[0.2, 0.03, 0.06]]), torch.ones(16, 1)
    for _ in range(120):
        away = goal - task.hand.tool(signals)
        script = torch.cat([0.6 * away / task.hand.step, upper, torch.zeros(16, 1)], -1)
        commands = task.command(torch.zeros(16, 4), {**memory, "script": script})
        memory = task.remember(memory, signals, commands)
        signals = env.step(commands).signals
    left = (env.truth(torch.arange(16))["tool_position"] - goal).norm(dim=1)
    assert float(left.max()) < 0.004  # m; 8 mm and more without the estimate of what the servos yield
    assert float(memory["load"].abs().max()) > 0.01  # rad, which is what they yield


def test_placing_with_one_jaw_keeps_away_from_the_pad_that_does_not_move() -> None:
    task = Place(load_arm("so101"))
    cube, far = (0.2, 0.0, 0.0125), (0.25, 0.09, 0.0125)
    facing = (0.0, 1.0, 0.0)
    for opened, beside in ((1.0, task.sizes.aside), (0.0, 0.0)):
        gripper = task.sizes.gripped + opened * (task.sizes.opened - task.sizes.gripped)
        tool = (0.2, -beside, 0.0125)
        ahead, *_ = place(tool, cube, far, gripper, 0.0, 0.05, task.sizes, facing)
        assert max(map(abs, ahead)) < 1e-9  # there it stays: the cube is nearer to the moving jaw, until that closes


def test_a_hand_that_does_not_see_its_object_stays_and_keeps_what_it_feels() -> None:
    sizes = Place(load_arm("so101")).sizes
    tool, gone, goal = (0.2, 0.0, 0.06), (0.2, 0.2, 0.0125), (0.2, 0.1, 0.0125)
    between_pads = 0.5 * (sizes.empty + sizes.gripped)
    pressing = by_standstill(between_pads, 0.0, -0.17, sizes)
    ahead, opened, grip = place(tool, gone, goal, between_pads, 1.0, 0.5, sizes, (0.0, 1.0, 0.0), pressing)
    assert max(map(abs, ahead)) == 0.0
    assert opened == pytest.approx(0.0)
    assert grip == pytest.approx(1.0)
    empty = by_standstill(sizes.empty - 0.1, 0.0, -0.17, sizes)
    _, opened, grip = place(tool, gone, goal, sizes.empty - 0.1, 0.0, 0.05, sizes, (0.0, 1.0, 0.0), empty)
    assert opened == 1.0  # nothing is between the pads, and the object is seen elsewhere
    assert grip == pytest.approx(0.0)


def test_without_a_script_in_the_policy_the_network_sees_the_same_but_for_the_scripts_own_action() -> None:
    task, direct, n = Place(), PlaceDirect(), 8
    env = VecEnv(task, n, seed=6, evaluation=True)
    signals, memory = env.signals(), {**task.first_memory(n), "script": torch.rand(n, 5)}
    commands = task.command(torch.zeros(n, 4), memory)
    seen, others = direct.observe(signals, memory), task.observe(signals, memory)
    assert seen.shape == (n, direct.observation_size)
    torch.testing.assert_close(seen, torch.cat([others[:, :-5], others[:, -1:]], 1))
    for action in (0.0, 1.0):  # where the script in the other one's memory changes nothing
        given = direct.command(torch.full((n, 4), action), {**memory, "script": torch.zeros(n, 5)})
        again = direct.command(torch.full((n, 4), action), memory)
        assert all(torch.equal(value, again[name]) for name, value in given.items())
    remembered = task.remember(memory, signals, commands)
    commands = task.command(torch.zeros(n, 4), remembered)
    shown = direct.command(direct.script(signals, memory), remembered)
    assert all(torch.allclose(value, shown[name]) for name, value in commands.items())
