"""Multirotors in MuJoCo: they move as our own integrator says."""

from __future__ import annotations

import torch

from robo_rl.sim.plants.multirotor import MultirotorPlant
from robo_rl.sim.plants.multirotor.mujoco import FlyingMujoco
from robo_rl.sim.robots.multirotor import load_multirotor

CARD = load_multirotor("crazyflie")


def test_tumbling_vehicles_with_wind_and_disturbances_move_alike_in_mujoco_and_our_integrator() -> None:
    n, generator = 16, torch.Generator().manual_seed(0)
    plants = [MultirotorPlant(CARD, n, 0.01), FlyingMujoco(CARD, n, 0.01)]
    draw = [torch.rand(n, k, generator=generator) for k in (4, 3, 3, 4, 3, 4)]
    for plant in plants:
        plant.param("mass")[:] = plant.nominal.mass * (0.8 + 0.4 * draw[4][:, 0])
        plant.param("thrust_scale")[:] = 0.9 + 0.2 * draw[3]
        plant.param("wind")[:] = 4 * draw[1] - 2
        plant.param("torque")[:] = 1e-5 * (draw[2] - 0.5)
        plant.current.orientation.copy_((draw[0] - 0.5) / (draw[0] - 0.5).norm(dim=-1, keepdim=True))
        plant.current.linear_velocity.copy_(4 * draw[1] - 2)
        plant.current.angular_velocity.copy_(10 * draw[2] - 5)
        for k in range(50):
            turn = 0.5 * draw[5] - 0.25
            plant.step({"rotor_speed": CARD.hover_speed * (1 + turn if k < 25 else 1 - turn)})
    ours, theirs = (plant.truth() for plant in plants)
    torch.testing.assert_close(theirs["rotor_speed"], ours["rotor_speed"], rtol=1e-4, atol=0.1)
    torch.testing.assert_close(theirs["position"], ours["position"], rtol=0.0, atol=0.01)
    torch.testing.assert_close(theirs["linear_velocity"], ours["linear_velocity"], rtol=0.01, atol=0.05)
    torch.testing.assert_close(theirs["angular_velocity"], ours["angular_velocity"], rtol=0.01, atol=0.1)
