# ruff: noqa: E501
"""What a model file says beside bodies, axes and shapes: replaced by card and task, used as documented, or refused.

The quadruped of the examples is written as MJCF once; every case changes it as makers' files are, and the robot has to
move as without the change, or be refused in a sentence that names the element.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import mujoco
import numpy as np
import pytest

from robo_rl.sim.models import named_files, read_model
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.indices import find_indices, home
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.figures import CardError

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_quadruped"
ARM = EXAMPLE.parent / "own_arm"


@pytest.fixture(scope="module")
def plain() -> str:
    """The quadruped as MJCF, in radians, with numbers of all digits that MuJoCo writes."""
    spec = mujoco.MjSpec.from_file(str(EXAMPLE / "quadruped.urdf"))
    spec.compiler.fusestatic = False
    spec.compile()
    text = spec.to_xml()
    assert text.count("<joint ") == 12
    assert "<option" not in text
    return re.sub(r' (actuatorfrcrange|armature|damping)="[^"]*"', "", text)


def written(folder: Path, text: str, card: dict[str, str] | None = None) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "robot.xml").write_text(text)
    told = (EXAMPLE / "card.toml").read_text().replace("quadruped.urdf", "robot.xml")
    for old, new in (card or {}).items():
        assert old in told
        told = told.replace(old, new)
    (folder / "card.toml").write_text(told)
    return str(folder / "card.toml")


def motion(card: str) -> np.ndarray:
    """(steps, nq) of the robot that falls 5 cm onto its feet, and is told to crouch."""
    mechanism = load_robot(card).mechanism
    model = assemble(mechanism, Physics(timestep=0.004))
    indices, data = find_indices(model, mechanism), mujoco.MjData(model)
    data.qpos[:] = home(model, mechanism)
    data.qpos[indices.free_position + 2] += 0.05
    found = []
    for step in range(150):
        data.ctrl[:] = data.qpos[indices.position] if step == 0 else data.ctrl
        data.ctrl[2::3] += 0.002
        mujoco.mj_step(model, data)
        found.append(data.qpos.copy())
    return np.array(found)


HIP, FOOT = '<joint name="LF_HAA"', '<geom name="LF_foot"'
END = "</mujoco>"
REPLACED = {
    "option": (END, '<option gravity="0 0 -1.6" iterations="1" ls_iterations="1" density="1000" viscosity="1" wind="9 0 0"'
               ' timestep="0.05" cone="elliptic" noslip_iterations="9" o_margin="0.1"/></mujoco>'),
    "flags": (END, '<option><flag contact="disable" limit="disable" gravity="disable" override="enable" '
              'actuation="disable" frictionloss="disable" fwdinv="enable"/></option></mujoco>'),
    "damping": (HIP, HIP + ' damping="3"'),
    "armature": (HIP, HIP + ' armature="0.4"'),
    "friction": (HIP, HIP + ' frictionloss="2"'),
    "effort": (HIP, HIP + ' actuatorfrcrange="-0.5 0.5"'),
    "hardly a spring": (HIP, HIP + ' stiffness="1e-9"'),
    "stops": (HIP, HIP + ' margin="0.5" solreflimit="0.5 1" solimplimit="0.1 0.2 0.1" springref="0.3"'),
    "motor gravity": (HIP, HIP + ' actuatorgravcomp="true"'),
    "default class": (END, '<default><joint damping="2" armature="0.3" frictionloss="1"/></default></mujoco>'),
    "gravity carried": ('<body name="body"', '<body name="body" gravcomp="1"'),
    "foot": (FOOT, FOOT + ' priority="3" margin="0.03" gap="0.01" friction="0.01 0 0"'),
    "sensor": (END, '<sensor><jointpos joint="LF_HAA" nsample="4"/></sensor></mujoco>'),
    "actuator": (END, '<actuator><position joint="LF_HAA" kp="90"/></actuator></mujoco>'),
    "keyframe": (END, '<keyframe><key name="home" qpos="0.3 0 0 0 0 0 0 0 0 0 0 0"/></keyframe></mujoco>'),
    "size": (END, '<size memory="40K" nconmax="1"/></mujoco>'),
    "scale": (END, '<statistic meaninertia="1e6"/></mujoco>'),
    "world excluded": (END, '<contact><exclude body1="world" body2="LF_calf"/></contact></mujoco>'),
    "pair": (END, '<contact><pair geom1="LF_foot" geom2="RF_foot" margin="2" gap="0"/></contact></mujoco>'),
    "plane": ("<worldbody>", '<worldbody><geom type="plane" size="9 9 1" pos="0 0 0.02" friction="0 0 0"/>'),
    "idle equality": (END, '<equality><joint joint1="LF_HAA" joint2="RF_HAA" active="false"/></equality></mujoco>'),
    "idle tendon": (END, '<tendon><fixed name="both"><joint joint="LF_HAA" coef="1"/></fixed></tendon></mujoco>'),
    "free already": ('<body name="body">', '<body name="body" pos="1 2 3" euler="0.3 0 1"><freejoint/>'),
    "classes": (END, '<default><motor gear="5" ctrlrange="-.1 .1" forcerange="-1 1"/><general gear="2" ctrlrange="0 1"/>'
                '<geom condim="1" friction=".01" margin=".1" solref=".5 1"/><site type="box" size=".4"/>'
                '<equality solref=".5 1"/></default></mujoco>'),
    "free joint": ('<body name="body">', '<body name="body"><joint type="free" damping="5" armature="1" frictionloss="2" '
                   'stiffness="3"/>'),
    "texture": (END, '<asset><texture name="t" type="2d" file="../../none.png"/><material name="m" texture="t"/></asset>'
                "</mujoco>"),
}  # fmt: skip
"""Kinds of what a file says, as text to replace; of an MJCF with each the robot moves as without."""


@pytest.fixture(scope="module")
def expected(plain: str, tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    return motion(written(tmp_path_factory.mktemp("plain"), plain))


@pytest.mark.parametrize("kind", REPLACED)
def test_what_card_and_task_say_replaces_what_the_file_says(kind, plain, expected, tmp_path: Path) -> None:
    old, new = REPLACED[kind]
    assert old in plain
    text = plain.replace(old, new, 1)
    if kind in ("damping", "armature", "friction"):  # it is there, and would act
        assert getattr(mujoco.MjSpec.from_string(text).joint("LF_HAA"), new.split()[-1].split("=")[0]) is not None
    assert np.allclose(motion(written(tmp_path, text)), expected, rtol=0, atol=0 if kind != "free already" else 1e-9)


def test_an_mjcf_in_degrees_has_the_card_s_stops(plain: str, tmp_path: Path) -> None:
    """MJCF's default. The file's own angles are its own."""
    assert 'angle="radian"' in plain
    text = plain.replace('angle="radian"', 'angle="degree"')
    text = re.sub(r'(<joint [^>]*range=")([^"]*)"', lambda m: m[1] + "-170 170" + '"', text)
    robot = load_robot(written(tmp_path, text))
    model = assemble(robot.mechanism, Physics())
    for joint in robot.joints:
        assert model.joint(joint.name).range == pytest.approx([joint.lower, joint.upper], abs=1e-12)


REFUSED = {
    "spring": (HIP, HIP + ' stiffness="5"', "joint 'LF_HAA' has a spring of 5"),
    "spring of a time": (HIP, HIP + ' springdamper="0.1 1"', "joint 'LF_HAA' has a spring of 0.1"),
    "tied": (END, '<equality><joint joint1="LF_HAA" joint2="RF_HAA"/></equality></mujoco>', "tied by an equality"),
    "held": (END, '<equality><joint joint1="LF_HAA" polycoef="0.2 0 0 0 0"/></equality></mujoco>', "holds joint 'LF_HAA'"),
    "hung up": (END, '<equality><weld body1="body"/></equality></mujoco>', "weld of 'body' and 'world' holds the robot"),
    "bound": (END, '<equality><connect body1="LF_calf" body2="RF_calf" anchor="0 0 0"/></equality></mujoco>',
              "connect of 'LF_calf' and 'RF_calf' ties the joints"),
    "tendon": (END, '<tendon><fixed name="pull" stiffness="9"><joint joint="LF_HAA" coef="1"/></fixed></tendon></mujoco>',
               "tendon 'pull' has stiffness 9"),
    "tendon's stops": (END, '<tendon><fixed name="rope" range="-.1 .1"><joint joint="LF_HAA" coef="1"/></fixed></tendon>'
                       "</mujoco>", "tendon 'rope' has range 0.1"),
    "object": ("<worldbody>", '<worldbody><body name="ball"><freejoint/><geom size="0.1"/></body>', "'ball' moves freely"),
    "include": ("<worldbody>", '<include file="../other.xml"/><worldbody>', "include file='../other.xml'"),
    "whole model": (END, '<asset><model name="m" file="../other.xml"/></asset></mujoco>', "<model name='m'> is not read"),
    "meshes elsewhere": (END, '<asset><mesh name="m" file="../other/m.stl"/></asset><worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>', "m.stl"),
    "mesh folder": (END, '<compiler meshdir="../other"/><asset><mesh name="m" file="m.stl"/></asset></mujoco>', "../other"),
    "soft": ("<worldbody>", '<worldbody><flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2"/>',
             "<flexcomp name='f'> is not read"),
    "limp": ('<body name="LF_hip"', '<body name="tail"><joint name="tail"/><geom size="0.02"/></body><body name="LF_hip"',
             "what no motor moves is ['tail']"),
    "hardly a spring": ('<body name="LF_hip"', '<body name="tail"><joint name="tail" stiffness="1e-9"/><geom size="0.02"/>'
                        '</body><body name="LF_hip"', "what no motor moves is ['tail']"),
    "limp ball": ('<body name="LF_hip"', '<body name="tail"><joint name="tail" type="ball"/><geom size="0.02"/></body>'
                  '<body name="LF_hip"', "what no motor moves is ['tail']"),
    "on rails": ('<body name="body">', '<body name="body"><joint name="rail" type="slide"/>', "joint 'rail' of type slide moves the base"),
    "negative": ("0.0167", "-0.0167", "expected positive ones"),
    "diagonal": ("0.0565 0.0465 0.0167", "0.1565 0.0465 0.0167", "expected none greater than the sum of the others"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_neither_used_nor_replaced_is_refused_by_name(kind, plain, tmp_path: Path) -> None:
    old, new, message = REFUSED[kind]
    (tmp_path / "other").mkdir()
    (tmp_path / "other.xml").write_text("<mujoco/>")
    shutil.copy(
        next((EXAMPLE.parents[1] / "tests").rglob("*.stl"), EXAMPLE / "card.toml"), tmp_path / "other" / "m.stl"
    )
    card = written(tmp_path / "robot", plain.replace(old, new, 1))
    with pytest.raises(CardError, match=re.escape(message)) as error:
        assemble(load_robot(card).mechanism, Physics())
    assert "robot.xml" in str(error.value)


def test_a_file_that_is_included_travels_with_the_model(plain: str, tmp_path: Path) -> None:
    """Also one that an included file includes, by a path that counts from there."""
    body = plain[plain.index("<worldbody>") : plain.index("</worldbody>") + len("</worldbody>")]
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    (tmp_path / "parts" / "a.xml").write_text('<mujoco><include file="deep/b.xml"/></mujoco>')
    (tmp_path / "parts" / "deep" / "b.xml").write_text(f"<mujoco>{body}</mujoco>")
    card = written(tmp_path, plain.replace(body, '<include file="parts/a.xml"/>'))
    found = named_files(tmp_path / "robot.xml")
    assert [file.name for file in found] == ["a.xml", "b.xml"]
    for file in (Path(card), tmp_path / "robot.xml", *found):
        to = tmp_path / "copy" / file.relative_to(tmp_path)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)
    assert assemble(load_robot(str(tmp_path / "copy" / "card.toml")).mechanism, Physics()).nbody == 14


def test_a_link_to_a_file_outside_is_refused(plain: str, tmp_path: Path) -> None:
    (tmp_path / "outside.xml").write_text("<mujoco/>")
    card = written(tmp_path / "robot", plain.replace("<worldbody>", '<include file="in.xml"/><worldbody>'))
    (tmp_path / "robot" / "in.xml").symlink_to(tmp_path / "outside.xml")
    with pytest.raises(CardError, match=r"include file='in\.xml'"):
        assemble(load_robot(card).mechanism, Physics())


@pytest.mark.parametrize("kind", ["empty", "turned", "with a mass"])
def test_a_trunk_in_a_body_that_is_empty_is_the_base(kind: str, plain: str, expected, tmp_path: Path) -> None:
    text = plain.replace(
        '<body name="body"', '<body name="wrapper" pos="0.1 0 0.2" quat="0.8 0 0 0.6"><body name="body"', 1
    )
    text = text.replace("</worldbody>", "</body></worldbody>")
    if kind == "with a mass":
        text = text.replace('quat="0.8 0 0 0.6">', '><inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/>')
        with pytest.raises(CardError, match='base = "wrapper"'):
            assemble(load_robot(written(tmp_path, text)).mechanism, Physics())
        return
    if kind == "turned":
        text = text.replace('quat="0.8 0 0 0.6">', 'quat="0 1 0 0"><freejoint/>')
    assert np.allclose(motion(written(tmp_path, text)), expected, rtol=0, atol=1e-9)


def test_the_trunk_on_an_empty_base_is_what_varies(plain: str, tmp_path: Path) -> None:
    text = plain.replace('<body name="body"', '<body name="root"><body name="body"', 1)
    text = text.replace("</worldbody>", "</body></worldbody>")
    mechanism = load_robot(written(tmp_path, text, {'base = "body"': 'base = "root"'})).mechanism
    model = assemble(mechanism, Physics())
    indices = find_indices(model, mechanism)
    assert (model.body(indices.trunk).name, model.body(indices.base).name) == ("body", "root")


INERTIAS = {
    "kg mm2": (1e6, 1.0), "t m2": (1e-3, 1.0), "g cm2 of a link of kg": (1e-5, 1.0), "gyration of 0.05 mm": (1e-7, 1.0), "t": (1.0, 1e-7),
}  # fmt: skip


@pytest.mark.parametrize("kind", INERTIAS)
def test_an_inertia_that_no_body_of_that_size_has_is_refused(kind: str, tmp_path: Path) -> None:
    inertia, mass = INERTIAS[kind]
    text = (EXAMPLE / "quadruped.urdf").read_text()
    (found,) = re.findall(r'<link name="body">.*?</inertial>', text, re.DOTALL)
    changed = re.sub(r'(i[xyz]{2}|value)="([^"]*)"', lambda m: f'{m[1]}="{float(m[2]) * (mass if m[1] == "value" else inertia)}"',
                     found)  # fmt: skip
    (tmp_path / "quadruped.urdf").write_text(text.replace(found, changed))
    shutil.copy(EXAMPLE / "card.toml", tmp_path)
    with pytest.raises(CardError, match="'body'"):
        assemble(load_robot(str(tmp_path / "card.toml")).mechanism, Physics())


@pytest.mark.parametrize("unit", [1e3, 1e-5])
def test_masses_in_another_unit_are_refused(unit: float, tmp_path: Path) -> None:
    text = (EXAMPLE / "quadruped.urdf").read_text()
    changed = re.sub(r'(i[xyz]{2}|mass value)="([^"]*)"', lambda m: f'{m[1]}="{float(m[2]) * unit}"', text)
    (tmp_path / "quadruped.urdf").write_text(changed)
    shutil.copy(EXAMPLE / "card.toml", tmp_path)
    with pytest.raises(CardError, match="Are masses in another unit"):
        assemble(load_robot(str(tmp_path / "card.toml")).mechanism, Physics())


def test_a_link_of_a_urdf_without_inertial_has_no_mass_and_a_placeholder_counts_as_none(tmp_path: Path) -> None:
    text = (EXAMPLE / "quadruped.urdf").read_text()
    shape = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'
    six = " ".join(f'{name}="1e-6"' for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    links = f'<link name="lid">{shape}</link><link name="imu"><inertial><mass value="1e-6"/><inertia {six}/></inertial></link>'
    for name in ("lid", "imu"):
        links += f'<joint name="{name}" type="fixed"><parent link="body"/><child link="{name}"/></joint>'
    (tmp_path / "quadruped.urdf").write_text(text.replace("</robot>", f"{links}</robot>"))
    shutil.copy(EXAMPLE / "card.toml", tmp_path)
    plain, model = (
        assemble(load_robot(str(folder / "card.toml")).mechanism, Physics()) for folder in (EXAMPLE, tmp_path)
    )
    assert model.nbody == plain.nbody + 2
    assert model.body_mass.sum() == plain.body_mass.sum()


def test_settings_that_change_masses_change_those_of_the_robot_alone(plain: str, tmp_path: Path) -> None:
    """As MuJoCo's own compile has them."""
    for setting in ('settotalmass="20"', 'boundmass="0.7" boundinertia="0.003"', 'inertiafromgeom="true"'):
        text = plain.replace('angle="radian"', f'angle="radian" {setting}')
        path = tmp_path / "robot.xml"
        path.write_text(text)
        ours, theirs = read_model(path), mujoco.MjSpec.from_string(text).compile()
        for name in ("settotalmass", "boundmass", "boundinertia"):
            assert getattr(ours.compiler, name) == getattr(mujoco.MjSpec().compiler, name)
        model = ours.compile()
        for field in ("body_mass", "body_inertia", "body_ipos", "body_iquat"):
            assert np.array_equal(getattr(model, field), getattr(theirs, field)), (setting, field)
        path.unlink()


def test_two_materials_in_a_visual_are_read(tmp_path: Path) -> None:
    text = (EXAMPLE / "quadruped.urdf").read_text()
    shape = '<visual><geometry><sphere radius="0.02"/></geometry><material name="a"/><material name="b"><color rgba="1 0 0 1"/>'
    text = text.replace('<link name="body">', f'<link name="body">{shape}</material></visual>')
    (tmp_path / "quadruped.urdf").write_text(text)
    shutil.copy(EXAMPLE / "card.toml", tmp_path)
    robot = load_robot(str(tmp_path / "card.toml"))
    assert assemble(robot.mechanism, Physics()).nbody == 14
    drawing, _ = robot.drawing()
    assert [1.0, 0.0, 0.0, 1.0] in drawing.mat_rgba.tolist() or [1.0, 0.0, 0.0, 1.0] in drawing.geom_rgba.tolist()


def test_names_with_slashes_are_joints_of_the_contract(plain: str, tmp_path: Path) -> None:
    text, card = plain, {}
    for name in ("LF_HAA", "LF_foot", "body"):
        text = re.sub(rf'"{name}"', f'"left/{name}"', text)
        card[f'"{name}"'] = f'"left/{name}"'
    text = text.replace(END, '<contact><exclude body1="left/body" body2="LF_thigh"/></contact></mujoco>')
    robot = load_robot(written(tmp_path, text, card))
    assert robot.facts().actuators[0].name == "left.LF_HAA"
    assert assemble(robot.mechanism, Physics()).joint("left.LF_HAA").range == pytest.approx([-0.8, 0.8])


def test_feet_may_be_sites(plain: str, tmp_path: Path) -> None:
    at = re.search(r'<geom name="LF_foot"[^>]*pos="([^"]*)"', plain)
    assert at
    text = plain
    for leg in ("LF", "RF", "LH", "RH"):
        text = re.sub(rf'<geom name="{leg}_foot"([^>]*pos="([^"]*)"[^>]*/>)', rf'<site name="{leg}_foot" size="0.03" pos="\2"/>'
                      r'<geom \1', text)  # fmt: skip
    own, sites = (
        load_robot(card).figures() for card in (written(tmp_path / "a", plain), written(tmp_path / "b", text))
    )
    assert sites["no_walk"] is None
    assert sites["joints"] == own["joints"]
    assert sites["height_m"] == pytest.approx(own["height_m"], abs=1e-6)


def test_what_a_foot_feels_is_where_the_foot_is_also_in_a_frame(plain: str, tmp_path: Path) -> None:
    """MJCF's <frame> moves what is in it."""
    (foot,) = re.findall(r'<geom name="LF_foot"[^>]*>', plain)
    at = ' pos="0 0 -0.18"'
    assert at in foot
    text = plain.replace(foot, f"<frame{at}>{foot.replace(at, '')}</frame>")
    own, moved = (
        assemble(load_robot(card).mechanism, Physics())
        for card in (written(tmp_path / "a", plain), written(tmp_path / "b", text))
    )
    assert np.allclose(moved.site("LF_foot touch").pos, own.site("LF_foot touch").pos)


def test_a_foot_that_is_a_mesh_is_refused_by_name(plain: str, tmp_path: Path) -> None:
    (foot,) = re.findall(r'<geom name="LF_foot"[^>]*>', plain)
    mesh = '<asset><mesh name="m" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .1"/></asset>'
    text = plain.replace(foot, '<geom name="LF_foot" type="mesh" mesh="m"/>').replace(END, mesh + END)
    with pytest.raises(CardError, match="'LF_foot' is a mesh"):
        assemble(load_robot(written(tmp_path, text)).mechanism, Physics())


def test_a_card_may_be_a_link_to_one_in_another_folder(tmp_path: Path) -> None:
    """As workspaces of ROS that were built with --symlink-install have them."""
    (tmp_path / "card.toml").symlink_to(EXAMPLE / "card.toml")
    assert load_robot(str(tmp_path / "card.toml")).model == EXAMPLE.resolve() / "quadruped.urdf"
    with pytest.raises(CardError, match="is a folder; expected its robot file"):
        load_robot(str(EXAMPLE))


@pytest.mark.parametrize("unit", [1e3, 1e-3])
def test_a_multirotor_whose_arms_are_in_another_unit_is_refused(unit: float, tmp_path: Path) -> None:
    text = (EXAMPLE.parent / "own_robot.toml").read_text()
    changed = re.sub(r"position = \[(.*)\]", lambda m: f"position = {[unit * float(x) for x in m[1].split(',')]}", text)
    (tmp_path / "mine.toml").write_text(changed)
    with pytest.raises(CardError, match="another unit"):
        load_robot(str(tmp_path / "mine.toml"))


@pytest.mark.parametrize("pose", ['pos="0.2 0 0.12"', 'pos="0 0 0.3" quat="0 0 0 1"', 'quat="0.8 0 0 0.6"'])
def test_an_arm_that_stands_elsewhere_or_is_turned_is_the_same_arm(pose: str, tmp_path: Path) -> None:
    spec = mujoco.MjSpec.from_file(str(ARM / "arm.urdf"))
    spec.compiler.fusestatic = False
    spec.compile()
    text = spec.to_xml()
    (first,) = re.findall(r'<body name="base_link"[^>]*>', text)
    shutil.copy(ARM / "card.toml", tmp_path)
    card = (ARM / "card.toml").read_text().replace("arm.urdf", "arm.xml")
    (tmp_path / "card.toml").write_text(card)
    chains = []
    for told in (first, f'<body name="base_link" {pose}>'):
        (tmp_path / "arm.xml").write_text(text.replace(first, told))
        robot = load_robot(str(tmp_path / "card.toml"))
        chains.append([*robot.chain.pose([float(x) for x in robot.home]).position])
    assert chains[0] == pytest.approx(chains[1], abs=1e-9)
    (tmp_path / "arm.xml").write_text(text.replace(first, '<body name="base_link" quat="0.9 0.4359 0 0">'))
    with pytest.raises(CardError, match="upright"):
        load_robot(str(tmp_path / "card.toml"))


def test_textures_stay_behind_and_are_not_missed(plain: str, tmp_path: Path) -> None:
    (tmp_path / "skin.png").write_bytes(b"no picture")
    asset = (
        '<asset><texture name="t" type="2d" file="skin.png"/><material name="m" texture="t" rgba="1 0 0 1"/></asset>'
    )
    card = written(tmp_path, plain.replace(END, asset + END).replace(FOOT, FOOT + ' material="m"'))
    assert load_robot(card).files() == (tmp_path / "robot.xml",)
    (tmp_path / "skin.png").unlink()
    drawing, _ = load_robot(card).drawing()
    assert [1.0, 0.0, 0.0, 1.0] in drawing.mat_rgba.tolist()


def test_a_model_of_gazebo_s_is_told(tmp_path: Path) -> None:
    (tmp_path / "x500.urdf").write_text('<sdf version="1.9"><model name="x500"><link name="base_link"/></model></sdf>')
    with pytest.raises(CardError, match=r"x500\.urdf: it is SDF, a model of Gazebo's; expected MJCF or URDF"):
        read_model(tmp_path / "x500.urdf")


def test_stops_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    """MuJoCo alone takes them for none."""
    link = '<inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>'
    (tmp_path / "arm.urdf").write_text(
        f'<robot name="r"><link name="a">{link}</link><link name="b">{link}</link><joint name="j" type="revolute">'
        '<parent link="a"/><child link="b"/><limit lower="2" upper="-2" effort="1" velocity="1"/></joint></robot>'
    )
    with pytest.raises(CardError, match="joint 'j' has <limit lower='2' upper='-2'>; expected the lower one first"):
        read_model(tmp_path / "arm.urdf")
