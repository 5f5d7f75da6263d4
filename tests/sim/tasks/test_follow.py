"""What diff-follow tells, commands and restores."""

from __future__ import annotations

import torch

from robo_rl.policy import PolicyGraph
from sim.env import VecEnv
from sim.tasks.mobile_base.follow import BRAKED, PERIOD, TURNED, DiffFollow


@torch.no_grad()
def test_a_limit_of_zero_brings_any_policy_to_rest_at_the_commands_rates() -> None:
    """Whatever the network wants: here, numbers at random."""
    torch.manual_seed(0)
    task = DiffFollow()
    env, policy = VecEnv(task, 16, seed=1), PolicyGraph(task, (8,))
    for weights in policy.network.parameters():
        weights.normal_(std=2.0)
    state, speeds, turns = policy.initial_state(16), [], []
    for k in range(40):
        signals = dict(env.signals())
        signals["speed_limit"] = torch.full((16, 1), 0.22 if k < 25 else 0.0)
        commands, state = policy(signals, state)
        speeds.append(commands["forward_speed"])
        turns.append(commands["turn_rate"])
        env.step(commands)
    assert float(torch.stack(speeds)[5:25].abs().max()) > 0.1
    for found, most in ((speeds, BRAKED * task.top), (turns, TURNED * task.turn)):
        assert float(torch.stack(found).diff(dim=0).abs().max()) <= most * PERIOD * (1 + 1e-4)
        assert (found[-1] == 0.0).all()


def test_the_points_told_are_those_of_the_plan_ahead_and_a_state_goes_on_bit_by_bit() -> None:
    env = VecEnv(DiffFollow(), 8, 0, fixed={"localization/place": 0.0, "localization/heading": 0.0})
    given = {"forward_speed": torch.full((8, 1), 0.15), "turn_rate": torch.full((8, 1), 0.3)}
    for _ in range(12):
        env.step(given)
    truth = env.plant.truth()
    heading, place = truth["heading"], truth["place"]
    for e in range(8):
        x, y = env.signals()["path_points"][e].unbind(-1)
        c, s = torch.cos(heading[e]), torch.sin(heading[e])
        world = torch.stack([place[e, 0] + c * x - s * y, place[e, 1] + s * x + c * y], -1)
        plan = env.plant.rooms.planned[e]
        part = torch.linspace(0.0, 1.0, 50)[:, None, None]
        on = (plan[:-1] + part * (plan[1:] - plan[:-1])).flatten(0, 1)
        assert float(torch.cdist(world, on).amin(1).max()) < 3e-3
    ids = torch.arange(8)
    saved = {name: value.clone() for name, value in env.plant.save().items()}
    state = env.state(ids)

    def driven() -> torch.Tensor:
        for _ in range(10):
            step = env.step(given)
        return torch.cat(
            [step.signals["scan"], step.signals["path_points"].flatten(1), step.reward[:, None]], 1
        ).clone()

    first = driven()
    env.plant.load(saved)
    env.set_state(ids, state)
    assert torch.equal(driven(), first)
