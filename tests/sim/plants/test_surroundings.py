"""Objects that nothing holds, and rays that meet them, in all engines."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from robo_rl.sim.plants.mujoco_cpu import MujocoPlant
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import FreeObject, Rays
from tests.suite import representatives

CONTACT = Physics(timestep=0.002, cone="elliptic", impratio=10.0, contacts="all", solref=(0.004, 1.0), condim=4)
ONE = torch.arange(1)
SHAPES = {
    "box": FreeObject("thing", "box", (0.05, 0.04, 0.03), 0.5),
    "sphere": FreeObject("thing", "sphere", (0.04,), 0.5),
    "cylinder": FreeObject("thing", "cylinder", (0.05, 0.03), 0.5),
    "capsule": FreeObject(
        "thing", "capsule", (0.04, 0.05), 0.5, orientation=(0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))
    ),
}
RESTS = {"box": 0.03, "sphere": 0.04, "cylinder": 0.03, "capsule": 0.04}  # m, heights of their middles


def settle(plant, steps: int) -> dict[str, np.ndarray]:
    for _ in range(steps):
        plant.step({})
    return {name: value.double().numpy().copy() for name, value in plant.truth().items()}


@pytest.mark.parametrize("shape", representatives(list(SHAPES), ["box", "capsule"]))
def test_an_object_of_every_shape_comes_to_rest_on_the_ground(machines, engine, shape: str) -> None:
    plant = engine(machines.cart_pole(objects=(SHAPES[shape],), floor=True), 1, 0.02, CONTACT)
    above = torch.tensor([[0.3, 1.0, RESTS[shape] + 0.01]])
    plant.place(ONE, thing_position=above)
    truth = settle(plant, 40)
    np.testing.assert_allclose(truth["thing_position"][0], [0.3, 1.0, RESTS[shape]], atol=1.5e-3)
    assert np.abs(truth["thing_linear_velocity"]).max() < 5e-3


def test_a_free_object_flies_and_spins_as_euler_says(machines, engine) -> None:
    """A box thrown in the air: its middle on a parabola, its angular momentum constant."""
    plant = engine(machines.cart_pole(objects=(SHAPES["box"],)), 1, 0.02, Physics(timestep=0.001))
    spin = torch.tensor([[3.0, 5.0, -2.0]])
    start = np.array([0.0, 2.0, 1.0])  # beside the cart
    plant.place(
        ONE, thing_position=torch.tensor(start[None], dtype=torch.float32), thing_angular_velocity=spin,
        thing_linear_velocity=torch.tensor([[1.0, -0.5, 2.0]]),
    )  # fmt: skip
    inertia = 0.5 / 3 * np.array([0.04**2 + 0.03**2, 0.05**2 + 0.03**2, 0.05**2 + 0.04**2])

    def momentum(truth: dict[str, np.ndarray]) -> np.ndarray:
        turn = Rotation.from_quat(truth["thing_orientation"][0])
        return turn.apply(inertia * truth["thing_angular_velocity"][0])

    before = {name: value.double().numpy().copy() for name, value in plant.truth().items()}
    after = settle(plant, 15)
    time = 0.3
    np.testing.assert_allclose(
        after["thing_position"][0] - start, [time, -0.5 * time, 2.0 * time - 9.81 * time**2 / 2], atol=2e-3
    )
    np.testing.assert_allclose(momentum(after), momentum(before), atol=0.02 * np.linalg.norm(momentum(before)))


def test_mass_size_and_friction_of_an_object_are_parameters_of_each_world(machines, engine) -> None:
    thing = FreeObject("thing", "box", (0.05, 0.05, 0.03), 0.5, friction=(0.6, 0.005, 0.0001))
    plant = engine(machines.gripper(thing), 3, 0.02, CONTACT)
    plant.param("object_size")[1, 0] = torch.tensor([0.04, 0.05, 0.02])
    plant.param("object_friction")[2, 0] = 0.3
    plant.param("object_mass")[2, 0] = 2.0
    place = torch.tensor([[0.0, 0.0, 0.029], [0.0, 0.0, 0.019], [0.0, 0.0, 0.029]])
    plant.place(torch.arange(3), thing_position=place, thing_linear_velocity=torch.tensor([[0.6, 0.0, 0.0]] * 3))
    truth = settle(plant, 30)
    np.testing.assert_allclose(truth["thing_position"][:, 2], [0.029, 0.019, 0.029], atol=1e-3)
    way = 0.6**2 / (2 * 9.81 * np.array([0.6, 0.6, 0.3]))  # until friction has used up its energy
    np.testing.assert_allclose(truth["thing_position"][:, 0], way, rtol=0.08)


def test_the_weight_of_an_object_and_its_inertia_follow_its_mass_and_size(machines) -> None:
    plant = MujocoPlant(machines.gripper(), 2, 0.02, CONTACT, threads=1)
    plant.param("object_mass")[1, 0] = 0.2
    plant.param("object_size")[1, 0] = torch.tensor([0.01, 0.02, 0.03])
    plant.refresh(torch.arange(2))
    model, body = plant.batch.get_model(1), plant.model.body("cube").id
    expected = 0.2 / 3 * np.array([0.02**2 + 0.03**2, 0.01**2 + 0.03**2, 0.01**2 + 0.02**2])
    np.testing.assert_allclose(model.body_inertia[body], expected)
    np.testing.assert_allclose(model.body_subtreemass[body], 0.2)
    np.testing.assert_allclose(model.geom_rbound[model.geom("cube").id], math.hypot(0.01, 0.02, 0.03))
    np.testing.assert_allclose(model.geom_aabb[model.geom("cube").id, 3:], [0.01, 0.02, 0.03])


MUG = """
<mujoco>
  <worldbody>
    <body name="mug">
      <geom name="cup" type="cylinder" size="0.04 0.05" mass="0.3"/>
      <geom name="handle" type="box" size="0.02 0.005 0.03" pos="0.06 0 0" mass="0.05"/>
    </body>
  </worldbody>
</mujoco>
"""


def test_an_object_may_be_a_body_in_mjcf(machines, engine) -> None:
    mug = FreeObject("mug", mjcf=MUG, position=(0.3, 1.0, 0.06))
    plant = engine(machines.cart_pole(objects=(mug,), floor=True), 1, 0.02, CONTACT)
    truth = settle(plant, 40)
    np.testing.assert_allclose(truth["mug_position"][0], [0.3, 1.0, 0.05], atol=2e-3)
    assert float(plant.nominal.object_mass[0, 0]) == pytest.approx(0.35)


def test_an_objects_meshes_are_found_beside_its_file_wherever_the_program_runs(
    machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meshes").mkdir()
    monkeypatch.chdir(tmp_path / "meshes")
    (tmp_path / "mug.xml").write_text(
        '<mujoco><compiler meshdir="meshes"/><asset><mesh name="cup" file="cup.obj"/></asset>'
        '<worldbody><body name="mug"><geom type="mesh" mesh="cup" mass="0.3"/></body></worldbody></mujoco>'
    )
    mechanism = machines.cart_pole(objects=(FreeObject("mug", mjcf=tmp_path / "mug.xml"),))
    with pytest.raises(
        CardError, match=r"mug\.xml: object 'mug': cup\.obj is missing; expected a mesh at .*meshes/cup"
    ):
        MujocoPlant(mechanism, 1, 0.02)
    corners = "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\n"
    (tmp_path / "meshes/cup.obj").write_text(corners + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    monkeypatch.chdir(tmp_path)
    assert float(MujocoPlant(mechanism, 1, 0.02).nominal.object_mass[0, 0]) == pytest.approx(0.3)


def test_objects_that_are_none_are_refused(machines) -> None:
    with pytest.raises(CardError, match="object 'thing' is a box of size"):
        machines.cart_pole(objects=(FreeObject("thing", "box", (0.1, 0.1), 1.0),))
    two = MUG.replace("<worldbody>", '<worldbody><body name="other"><geom size="0.1"/></body>')
    mechanism = machines.cart_pole(objects=(FreeObject("mug", mjcf=two),))
    with pytest.raises(CardError, match="object 'mug': expected MJCF of one body"):
        MujocoPlant(mechanism, 1, 0.02)


def test_rays_tell_the_distances_to_the_ground_and_to_a_box(machines, engine) -> None:
    plant = engine(machines.watcher(), 2, 0.02, Physics(timestep=0.002, contacts="all"))
    high = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.1, 3.0]])
    turn = torch.tensor([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, math.sin(0.2), math.cos(0.2)]])
    plant.place(torch.arange(2), position=high, orientation=turn)
    scan = plant.truth()["scan"].double().numpy()
    wall = 1.2 - 0.1 - 0.1  # to the near side of the box, from the lens that is 0.1 m ahead
    np.testing.assert_allclose(scan[0], [1.0, wall, 1.0 / math.cos(0.4), 6.0], atol=1e-4)
    np.testing.assert_allclose(scan[1], [3.0, 6.0, 3.0 / math.cos(0.4), 6.0], atol=1e-4)  # above the box


def test_rays_are_those_of_the_newest_state(machines, engine) -> None:
    plant = engine(machines.watcher(), 1, 0.02, Physics(timestep=0.002, contacts="all"))
    plant.place(ONE, position=torch.tensor([[0.0, 0.0, 2.0]]), linear_velocity=torch.tensor([[0.0, 0.0, -1.0]]))
    for _ in range(3):
        plant.step({})
        truth = plant.truth()
        assert float(truth["scan"][0, 0]) == pytest.approx(float(truth["position"][0, 2]), abs=1e-5)
        assert float(truth["lens_position"][0, 2]) == pytest.approx(float(truth["position"][0, 2]), abs=1e-5)
        assert float(truth["lens_linear_velocity"][0, 2]) == pytest.approx(
            float(truth["linear_velocity"][0, 2]), abs=1e-5
        )


def test_what_rays_meet_beyond_their_longest_distance_is_a_miss(machines, engine) -> None:
    near = Rays("scan", "lens", ((0, 0, -2.0), (1, 0, 0)), ((0.0, 0.0, 0.0), (0.0, 0.0, 0.2)), longest=0.9)
    plant = engine(machines.watcher(rays=(near,)), 1, 0.02, Physics(timestep=0.002, contacts="all"))
    plant.place(ONE, position=torch.tensor([[0.05, 0.0, 0.8]]))
    np.testing.assert_allclose(plant.truth()["scan"][0].numpy(), [0.8, math.inf], atol=1e-5)
    plant.place(ONE, position=torch.tensor([[0.15, 0.0, 1.0]]))
    np.testing.assert_allclose(plant.truth()["scan"][0].numpy(), [math.inf, 0.85], atol=1e-4)


def test_a_frame_moves_as_its_place_does_relative_to_what_it_is_told(machines, engine) -> None:
    from robo_rl.sim.robots.mechanism import Frame

    frames = (Frame("tip", "tool"), Frame("seen", "tool", relative_to="link1"))
    mechanism = machines.arm(frames=frames)
    start, speeds = torch.tensor([[0.3, -0.5, 0.8]]), torch.tensor([[0.5, -0.4, 1.0]])
    plant = engine(mechanism, 1, 0.001, Physics(timestep=0.001))
    plant.place(ONE, joint_position=start, joint_velocity=speeds)
    before = {name: value[0].double().numpy().copy() for name, value in plant.truth().items()}
    plant.step({})
    after = {name: value[0].double().numpy().copy() for name, value in plant.truth().items()}
    for name in ("tip", "seen"):
        rate = (after[f"{name}_position"] - before[f"{name}_position"]) / 0.001
        np.testing.assert_allclose(rate, after[f"{name}_linear_velocity"], atol=5e-3)
        turns = [Rotation.from_quat(part[f"{name}_orientation"]) for part in (before, after)]
        spin = (turns[1] * turns[0].inv()).as_rotvec() / 0.001
        np.testing.assert_allclose(spin, after[f"{name}_angular_velocity"], atol=5e-3)
