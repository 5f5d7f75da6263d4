"""Mechanisms and physics that are none are refused by what is wrong with them; quantities have their names."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics, substeps
from robo_rl.sim.plants.sensing import quantities
from robo_rl.sim.robots.figures import CardError
from robo_rl.sim.robots.mechanism import (
    ContactPoints,
    DrivenJoint,
    Frame,
    FreeObject,
    Impedance,
    JointGroup,
    Mechanism,
    Rays,
)

XML = """
<mujoco>
  <worldbody>
    <body name="base">
      <geom name="base" size="0.1"/>
      <body name="link"><joint name="turn"/><geom name="link" size="0.1"/><site name="tip"/></body>
      <body name="rod"><joint name="slide" type="slide"/><geom name="rod" size="0.1"/></body>
    </body>
  </worldbody>
</mujoco>
"""
TURN = JointGroup("joint", (DrivenJoint("turn", effort=1.0, velocity=2.0),))


@pytest.fixture
def robot(tmp_path: Path) -> Mechanism:
    (tmp_path / "robot.xml").write_text(XML)
    return Mechanism("robot", tmp_path / "robot.xml", "base", fixed=True, groups=(TURN,))


def test_quantities_are_named_after_groups_points_frames_objects_and_rays(robot: Mechanism) -> None:
    slide = JointGroup("finger", (DrivenJoint("slide"),), slides=True)
    full = dataclasses.replace(
        robot,
        fixed=False,
        groups=(TURN, slide),
        impedances=(Impedance("tool", "tip", (1.0, 1.0), (1.0, 1.0)),),
        contacts=(ContactPoints("pad", ("link", "rod")),),
        frames=(Frame("camera", "tip"),),
        objects=(FreeObject("cube", "box", (0.1, 0.1, 0.1), 1.0),),
        rays=(Rays("scan", "tip", ((1.0, 0.0, 0.0),) * 5),),
    )
    found = {name: size for name, (size,) in quantities(full).all.items()}
    pose = {"position": 3, "orientation": 4, "linear_velocity": 3, "angular_velocity": 3}
    assert found == {
        **pose, "joint_position": 1, "joint_velocity": 1, "finger_position": 1, "finger_velocity": 1,
        **{f"cube_{name}": size for name, size in pose.items()}, "joint_torque": 1, "finger_force": 1,
        "pad_position": 6, "pad_velocity": 6, "pad_force": 2,
        **{f"camera_{name}": size for name, size in pose.items()},
        **{f"tool_{name}": size for name, size in pose.items()}, "scan": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": (TURN, dataclasses.replace(TURN, name="other"))}, "joint 'turn' is there twice"),
        ({"contacts": (ContactPoints("joint", ("link",)),)}, "quantity 'joint' is there twice"),
        ({"groups": (dataclasses.replace(TURN, law="magic"),)}, "law is 'magic'; expected position, velocity"),
        ({"groups": (JointGroup("j", (DrivenJoint("turn", home=2.0, upper=1.0),)),)}, "home is 2.0; expected from"),
        ({"groups": (JointGroup("j", (DrivenJoint("turn"),), dc_motor=True),)}, "a DC motor of effort inf"),
        ({"rays": (Rays("scan", "tip", ((0.0, 0.0, 0.0),)),)}, "rays 'scan': 1 directions"),
    ],
)
def test_a_description_that_is_none_is_refused(robot: Mechanism, changes: dict, message: str) -> None:
    with pytest.raises(CardError, match=message):
        dataclasses.replace(robot, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base": "trunk"}, r"\['trunk'\] of the robot's base are not in it; it has \['world', 'base'"),
        (
            {"groups": (JointGroup("joint", (DrivenJoint("slide"),)),)},
            "joint 'slide' is of type slide; expected a hinge",
        ),
        ({"groups": (JointGroup("joint", (DrivenJoint("turn"),), slides=True),)}, "type hinge; expected a slide"),
        ({"contacts": (ContactPoints("pad", ("thumb",)),)}, r"\['thumb'\] of the robot's points 'pad'"),
        ({"frames": (Frame("camera", "eye"),)}, r"\['eye'\] of the robot's frames"),
        ({"frames": (Frame("camera", "tip", "moon"),)}, r"\['moon'\] of the robot's frames of reference"),
        ({"impedances": (Impedance("tool", "hand", (1.0, 1.0), (1.0, 1.0)),)}, r"\['hand'\] of the robot's tools"),
    ],
)
def test_a_model_file_without_what_the_mechanism_names_is_refused(
    robot: Mechanism, changes: dict, message: str
) -> None:
    with pytest.raises(CardError, match=message):
        assemble(dataclasses.replace(robot, **changes), Physics())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cone": "round"}, r"cone is 'round'; expected one of \('pyramidal', 'elliptic'\)"),
        ({"condim": 2}, "condim is 2"),
        (
            {"solref": (0.01, 1.0), "timestep": 0.01},
            r"time constant is 0\.01 s; expected at least two time steps, 0\.02 s",
        ),
    ],
)
def test_physics_that_can_not_be_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Physics(**changes)


def test_a_control_period_is_a_whole_number_of_steps() -> None:
    assert substeps(0.02, 0.005) == 4
    with pytest.raises(ValueError, match=r"multiple of 0\.003 s"):
        substeps(0.02, 0.003)


@pytest.mark.parametrize(
    ("contacts", "touching"),
    [("points", {"link"}), ("all", {"base", "link", "rod"}), ("self", {"base", "link", "rod"})],
)
def test_what_can_touch_is_what_physics_says(robot: Mechanism, contacts: str, touching: set[str]) -> None:
    model = assemble(
        dataclasses.replace(robot, contacts=(ContactPoints("pad", ("link",)),)), Physics(contacts=contacts)
    )
    shapes = [model.geom(i) for i in range(model.ngeom)]
    assert {shape.name for shape in shapes if shape.conaffinity[0]} == touching
    assert {shape.name for shape in shapes if shape.contype[0]} == {"ground 0"} | (
        touching if contacts == "self" else set()
    )


def test_choices_of_physics_reach_the_model(robot: Mechanism) -> None:
    physics = Physics(
        timestep=0.002, solver="cg", cone="elliptic", impratio=10.0, condim=6, solref=(0.01, 0.9), noslip=3,
        integrator="euler", jacobian="sparse", tolerance=1e-9, solimp=(0.8, 0.9, 0.002, 0.5, 2.0), contacts="all",
    )  # fmt: skip
    model = assemble(robot, physics)
    option = model.opt
    assert (option.timestep, option.solver, option.cone, option.impratio) == (0.002, 1, 1, 10.0)
    assert (option.noslip_iterations, option.integrator, option.jacobian, option.tolerance) == (3, 0, 1, 1e-9)
    assert (model.geom_condim == 6).all()
    assert (model.geom_solref == [0.01, 0.9]).all()
    assert (model.geom_solimp == [0.8, 0.9, 0.002, 0.5, 2.0]).all()


def test_drives_sensors_and_poses_of_the_model_file_give_way_to_those_of_the_mechanism(robot: Mechanism) -> None:
    own = """<actuator><motor name="slide" joint="slide"/></actuator><sensor><jointpos joint="turn"/></sensor>
    <keyframe><key qpos="0.1 0.2"/></keyframe></mujoco>"""
    robot.model.write_text(robot.model.read_text().replace("</mujoco>", own))
    model = assemble(robot, Physics())
    assert [model.actuator(i).name for i in range(model.nu)] == ["turn"]
    assert (model.nsensor, model.nkey) == (0, 0)


def test_the_base_is_free_or_fixed_as_the_mechanism_says_whatever_the_model_file_has(robot: Mechanism) -> None:
    bound = assemble(robot, Physics())
    free = assemble(dataclasses.replace(robot, fixed=False), Physics())
    assert (bound.nv, free.nv) == (2, 8)
    robot.model.write_text(robot.model.read_text().replace('<body name="base">', '<body name="base"><freejoint/>'))
    assert assemble(robot, Physics()).nv == 2
    assert assemble(dataclasses.replace(robot, fixed=False), Physics()).nv == 8
