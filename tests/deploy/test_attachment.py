"""What a bundle brings of a user's own robot and task: read back to the byte, within bounds, never run by itself."""

from __future__ import annotations

import base64
import dataclasses
import json
import shutil
import struct
import zlib
from pathlib import Path

import mujoco
import numpy as np
import pytest
from onnx import ModelProto

from robo_rl.deploy.build.pack import repack
from robo_rl.deploy.build.verify import named_task, task_of
from robo_rl.deploy.robot.bundle import Bundle, BundleError
from robo_rl.deploy.robot.bundle.attachment import (
    FILES_KEY,
    MAX_BYTES,
    MAX_FILES,
    Attached,
    AttachmentError,
)
from robo_rl.learn.runs.folder import Run
from robo_rl.sim.plants.assembly import assemble
from robo_rl.sim.plants.physics import Physics
from robo_rl.sim.robots import FOLDER, load_robot
from robo_rl.sim.robots.legged import LeggedCard
from robo_rl.sim.tasks.attached import attached_of
from robo_rl.sim.tasks.loading import load_task
from tests.deploy.hostile_bundles import GOOD, resealed

CARD = FOLDER / "crazyflie" / "card.toml"
WALKER = Path(__file__).parents[2] / "examples" / "own_quadruped" / "card.toml"


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def told(card: object = "", **files: object) -> str:
    return json.dumps({"card": card, "files": {name.replace("__", "/"): text for name, text in files.items()}})


def test_files_come_back_to_the_byte(tmp_path: Path) -> None:
    attached = Attached("a.toml", {"a.toml": b"x = 1\r\n", "meshes/a b.stl": bytes(range(256)) * 40, "empty": b""})
    again = Attached.from_json(attached.to_json())
    assert again == attached
    for folder in (again.folder(), tmp_path / "new"):
        if folder == tmp_path / "new":
            again.write(folder)
        found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        assert found == attached.files
    with pytest.raises(AttachmentError, match="is not empty"):
        again.write(tmp_path / "new")


@pytest.mark.parametrize(
    "name",
    ["../a", "/a", "a/../b", "a//b", "", ".", ".hidden", "a/.git/hook", "-o", "a\\b", "C:a", "a\nb", "ä", "a/", "a.",
     "a" * 101, "/".join("a" * 9)],
)  # fmt: skip
def test_names_that_leave_the_folder_or_are_strange_are_refused(name: str) -> None:
    with pytest.raises(AttachmentError, match="the name"):
        Attached.from_json(json.dumps({"card": "", "files": {name: packed(b"x")}}))


@pytest.mark.parametrize("names", [("a", "a/b"), ("a.toml", "A.toml")])
def test_names_that_are_one_file_and_another_are_refused(names: tuple[str, str]) -> None:
    with pytest.raises(AttachmentError, match="the name"):
        Attached.from_json(json.dumps({"card": "", "files": dict.fromkeys(names, packed(b"x"))}))


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{}", "{", told(card="b.toml"), told(card=1), told(a=1), told(a="%"), told(a="eJw="),
        told(a=packed(b"x")[:-4]), told(a=base64.b64encode(zlib.compress(b"x") + b"more").decode()),
        json.dumps({"card": "", "files": {"a": {"b": "c"}}}), json.dumps({"card": "", "files": [["a"]]}),
        json.dumps({"card": "", "files": {}, "more": 1}), '{"card": "", "card": "", "files": {}}',
        '{"card": "", "files": ' + "[" * 100_000,
        told(**{f"f{i}": packed(b"") for i in range(MAX_FILES + 1)}),
    ],
    ids=str,
)  # fmt: skip
def test_damage_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(AttachmentError, match="attached files are damaged"):
        Attached.from_json(text)


def test_a_few_bytes_that_unpack_to_gigabytes_are_refused() -> None:
    bomb = zlib.compressobj(9)
    data = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(64)) + bomb.flush()
    with pytest.raises(AttachmentError, match=f"more than {MAX_BYTES} bytes"):
        Attached.from_json(told(a=base64.b64encode(data).decode()))


def test_robots_and_tasks_of_ours_bring_nothing() -> None:
    assert attached_of(load_task("quadrotor-hover")) == Attached()
    bundle = Bundle.read(GOOD)
    assert bundle.attached == Attached()
    assert FILES_KEY.encode() not in bundle.data()


def test_a_card_brings_its_model_and_what_the_model_names(tmp_path: Path) -> None:
    folder = tmp_path / "dog"
    shutil.copytree(WALKER.parent, folder)
    (folder / "meshes").mkdir()
    (folder / "meshes" / "hull.stl").write_bytes(b"solid")
    (folder / "unused.stl").write_bytes(b"solid")
    model = next(folder.glob("*.urdf"))
    visual = '<visual><geometry><mesh filename="meshes/hull.stl"/></geometry></visual>'
    model.write_text(model.read_text().replace("</link>", visual + "</link>", 1))
    attached = attached_of(load_task("go2-flat", str(folder / "card.toml")))
    assert attached.card == "dog.toml"
    assert sorted(attached.files) == ["dog.toml", "meshes/hull.stl", model.name]
    assert load_task("go2-flat", str(attached.folder() / attached.card)).spec.robot.facts().name == "dog"


@pytest.mark.parametrize("place", ["dog_description/meshes", "meshes"])
def test_meshes_of_a_ros_package_are_found_beside_the_model_collide_and_travel(place: str, tmp_path: Path) -> None:
    folder = tmp_path / "dog"
    shutil.copytree(WALKER.parent, folder)
    (folder / place).mkdir(parents=True)
    corners = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.1, 0], [0, 0, 0.1]], np.float32)
    faces = ([0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3])
    triangles = b"".join(bytes(12) + corners[face].tobytes() + bytes(2) for face in faces)
    (folder / place / "hull.stl").write_bytes(bytes(80) + struct.pack("<I", 4) + triangles)
    model = next(folder.glob("*.urdf"))
    mesh = '<mesh filename="package://dog_description/meshes/hull.stl"/>'
    hull = f'<collision name="hull"><geometry>{mesh}</geometry></collision>'
    model.write_text(model.read_text().replace("</link>", hull + "</link>", 1))
    card = load_robot(str(folder / "card.toml"), LeggedCard)
    compiled = assemble(card.mechanism, Physics(contacts="all"))
    assert compiled.geom("hull").type == mujoco.mjtGeom.mjGEOM_MESH
    assert attached_of(load_task("go2-flat", str(folder / "card.toml"))).files.keys() >= {f"{place}/hull.stl"}


@pytest.fixture
def racer(tmp_path: Path) -> Path:
    """A bundle of a robot of one's own, whose card is gone."""
    card = tmp_path / "racer.toml"
    card.write_text(CARD.read_text())
    task, bundle = load_task("quadrotor-hover", str(card)), Bundle.read(GOOD)
    contract = dataclasses.replace(bundle.contract, robot=task.spec.robot.facts())
    out = repack(GOOD, contract, tmp_path / "racer.onnx", attached_of(task)).path
    card.unlink()
    return out


def test_a_bundle_of_one_s_own_robot_needs_no_card(racer: Path) -> None:
    bundle = Bundle.read(racer)
    assert list(bundle.attached.files) == ["racer.toml"]
    assert task_of(bundle).spec.robot.name == "racer"
    assert named_task(bundle, "quadrotor-track").spec.robot.name == "racer"
    assert named_task(bundle, robot="crazyflie").spec.robot.name == "crazyflie"


def test_another_contract_keeps_the_files(racer: Path, tmp_path: Path) -> None:
    bundle = Bundle.read(racer)
    assert repack(racer, bundle.contract, tmp_path / "again.onnx").attached == bundle.attached


def test_a_change_of_an_attached_file_is_a_change_of_the_digest(racer: Path) -> None:
    data = racer.read_bytes()
    at = data.index(FILES_KEY.encode()) + 60
    racer.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(BundleError, match="changed or damaged after export"):
        Bundle.read(racer)


SPY = b"open('ESCAPED', 'w').write('x')\n"


def plant(model: ModelProto) -> None:
    model.metadata_props.add(key=FILES_KEY, value=Attached("", {"source/spy.py": SPY}).to_json())


def test_source_that_the_contract_does_not_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = resealed(tmp_path / "spy.onnx", plant)
    with pytest.raises(BundleError, match="the source in it has the SHA-256"):
        Bundle.read(file)
    assert not (tmp_path / "ESCAPED").exists()


def test_source_is_not_run_unless_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    attached, bundle = Attached("", {"source/spy.py": SPY}), Bundle.read(GOOD)
    made = dataclasses.replace(bundle.contract.provenance, source="spy.py:Spy", source_digest=attached.source_digest)
    contract = dataclasses.replace(bundle.contract, provenance=made)
    spy = repack(GOOD, contract, tmp_path / "spy.onnx", attached)
    spy.golden_error()
    with pytest.raises(BundleError, match=r"is a program that the file brings, 'spy.py:Spy'; to run it"):
        named_task(spy)
    assert named_task(spy, "quadrotor-hover").name == "quadrotor-hover"
    assert not (tmp_path / "ESCAPED").exists()
    with pytest.raises(ValueError, match=r"spy.py:Spy: the class does not exist"):
        named_task(spy, "inside")
    assert (tmp_path / "ESCAPED").exists()


def test_inside_is_said_of_a_bundle_that_brings_source() -> None:
    with pytest.raises(BundleError, match="its task is not from a user's own file; leave --task out"):
        named_task(Bundle.read(GOOD), "inside")


def test_meshes_for_pictures_stay_out_where_they_are_too_large(tmp_path: Path) -> None:
    """A hull that is seen and touches travels; what is only seen does not, nor what MuJoCo can't read."""
    folder = tmp_path / "dog"
    shutil.copytree(WALKER.parent, folder)
    for name, size in (("hull.stl", 9), ("cover.STL", MAX_BYTES), ("cover.dae", 9)):
        (folder / name).write_bytes(bytes(size))
    model = next(folder.glob("*.urdf"))
    shapes = "".join(
        f'<{kind}><geometry><mesh filename="{name}"/></geometry></{kind}>'
        for kind, name in (
            ("visual", "hull.stl"),
            ("collision", "hull.stl"),
            ("visual", "cover.STL"),
            ("visual", "cover.dae"),
        )
    )
    model.write_text(model.read_text().replace("</link>", shapes + "</link>", 1))
    task = load_task("go2-flat", str(folder / "card.toml"))
    assert sorted(attached_of(task).files) == ["dog.toml", "hull.stl", model.name]
    (folder / "cover.STL").write_bytes(bytes(9))
    assert sorted(attached_of(task).files) == ["cover.STL", "dog.toml", "hull.stl", model.name]
    (folder / "hull.stl").write_bytes(bytes(MAX_BYTES))
    with pytest.raises(AttachmentError, match=r"largest 'hull\.stl'; expected at most"):
        Run.create(tmp_path / "runs", "go2-flat", str(folder / "card.toml"), "ppo", 0, {})
    assert not (tmp_path / "runs").exists()
