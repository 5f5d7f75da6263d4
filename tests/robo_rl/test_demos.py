"""Demonstrations in formats of others: what is written, what is read, what is refused, and replays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strange import attempt, changed
from torch import Tensor

from robo_rl.adapters.datasets import Dataset, DatasetError, lerobot, recorded, robomimic
from robo_rl.adapters.datasets.replayed import replay
from robo_rl.cli import main
from robo_rl.learn.experience.demonstrations import demonstrate, tensors_of, write
from robo_rl.learn.runs import checkpoint
from robo_rl.sim.tasks.arm.place_direct import PlaceDirect
from tests.suite import examples

EPISODES = 3


@pytest.fixture(scope="module")
def task() -> PlaceDirect:
    return PlaceDirect()


@pytest.fixture(scope="module")
def file(task: PlaceDirect, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demos") / "place.safetensors"
    write(path, task, demonstrate(task, EPISODES, seed=4)[0])
    return path


@pytest.fixture(scope="module")
def tensors(file: Path, task: PlaceDirect) -> dict[str, Tensor]:
    return tensors_of(file, task)


@pytest.fixture(scope="module")
def folder(file: Path, task: PlaceDirect) -> Path:
    recorded.to_lerobot(file, file.parent / "lerobot", task)
    return file.parent / "lerobot"


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)


# --- LeRobotDataset ------------------------------------------------------------------------------------------------


def test_to_a_lerobot_dataset_and_back_nothing_changes(
    folder: Path, tensors: dict[str, Tensor], task: PlaceDirect
) -> None:
    found = recorded.from_lerobot(folder, task)
    assert found.keys() == tensors.keys()
    for name, value in tensors.items():
        assert found[name].dtype == value.dtype, name
        assert torch.equal(found[name], value), name


def test_the_folder_is_what_the_format_says(folder: Path, tensors: dict[str, Tensor]) -> None:
    """As LeRobot's documentation of v3.0 has it: by file, by column, one row group per episode."""
    info = json.loads((folder / "meta/info.json").read_text())
    assert info["codebase_version"] == "v3.0"
    assert (info["fps"], info["total_episodes"], info["splits"]) == (50, EPISODES, {"train": "0:3"})
    assert info["robot_type"] == "panda"
    names = info["features"]["action"]["names"]
    assert names == [*(f"tool_position_target.{axis}" for axis in "xyz"), "gripper_position_target.panda_finger_joint1"]
    data = pq.ParquetFile(folder / info["data_path"].format(chunk_index=0, file_index=0))
    assert data.num_row_groups == EPISODES
    table = data.read()
    assert table.num_rows == info["total_frames"] == len(tensors["episode"])
    for name, feature in info["features"].items():
        kind = table.schema.field(name).type
        size = feature["shape"][0]
        plain = {"float32": pa.float32(), "int64": pa.int64(), "bool": pa.bool_()}[feature["dtype"]]
        assert kind == (plain if feature["shape"] == [1] else pa.list_(plain, size)), name
        assert "/" not in name
    np.testing.assert_array_equal(
        np.stack(table["action"].to_numpy())[:, 3], tensors["command/gripper_position_target"][:, 0]
    )
    episodes = pq.read_table(folder / "meta/episodes/chunk-000/file-000.parquet").to_pydict()
    lengths = tensors["episode"].bincount().tolist()
    assert episodes["length"] == lengths
    assert episodes["dataset_from_index"] == [0, lengths[0], lengths[0] + lengths[1]]
    assert episodes["dataset_to_index"][-1] == table.num_rows
    assert episodes["stats/action/max"][1] == pytest.approx(
        np.stack(table["action"].to_numpy())[lengths[0] : lengths[0] + lengths[1]].max(0)
    )
    stats = json.loads((folder / "meta/stats.json").read_text())
    assert stats["next.reward"]["mean"] == pytest.approx([float(tensors["reward"].mean())], abs=1e-6)
    assert stats["next.reward"]["count"] == [table.num_rows]


def test_pandas_finds_the_tasks_by_their_words(folder: Path) -> None:
    tasks = pq.read_table(folder / "meta/tasks.parquet").to_pandas()
    assert tasks.index.tolist() == [PlaceDirect.summary]
    assert tasks["task_index"].tolist() == [0]


def small() -> Dataset:
    rng = np.random.default_rng(0)
    columns = {"observation.state": rng.normal(size=(7, 2)).astype("f4"), "action": rng.normal(size=7).astype("f4")}
    return Dataset("lift", "arm", 25.0, np.array([0, 0, 0, 1, 1, 2, 2]), columns, {"observation.state": ("a", "b")})


def test_a_dataset_is_read_as_it_was_written(tmp_path: Path) -> None:
    data = small()
    lerobot.write(tmp_path / "x", data)
    found = lerobot.read(tmp_path / "x")
    assert (found.task, found.robot, found.fps, found.names) == (data.task, data.robot, data.fps, data.names)
    np.testing.assert_array_equal(found.episode, data.episode)
    for name, value in data.columns.items():
        np.testing.assert_array_equal(found.columns[name], value)


def test_images_are_left_out_and_lists_of_any_length_are_read(tmp_path: Path) -> None:
    lerobot.write(tmp_path / "x", small())
    info = json.loads((tmp_path / "x/meta/info.json").read_text())
    info["features"]["observation.images.wrist"] = {"dtype": "video", "shape": [3, 64, 64], "names": None}
    (tmp_path / "x/meta/info.json").write_text(json.dumps(info))
    path = tmp_path / "x" / lerobot.DATA
    table = pq.read_table(path)
    rows = pa.array(table["observation.state"].to_pylist(), pa.list_(pa.float32()))
    pq.write_table(table.set_column(0, "observation.state", rows), path)
    found = lerobot.read(tmp_path / "x")
    assert found.left_out == ("observation.images.wrist",)
    np.testing.assert_array_equal(found.columns["observation.state"], small().columns["observation.state"])


@settings(max_examples=examples(150))
@given(data=st.data())
def test_strange_folders_are_read_or_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / "strange"
    if not folder.exists():
        lerobot.write(folder, small())
        (folder / "meta/kept.json").write_text((folder / "meta/info.json").read_text())
        pq.write_table(pq.read_table(folder / lerobot.DATA), folder / "kept.parquet")
    told = json.loads((folder / "meta/kept.json").read_text())
    told = data.draw(st.one_of(st.just(told), changed(told)))
    (folder / "meta/info.json").write_text(json.dumps(told))
    table = pq.read_table(folder / "kept.parquet")
    for name in data.draw(st.lists(st.sampled_from(table.column_names), max_size=2, unique=True)):
        strange = [
            pa.array([None] * 7), pa.array(["x"] * 7), pa.array([[1.0]] * 6 + [[1.0, 2.0]]), pa.array([2**62] * 7),
            pa.array([float("nan")] * 7), pa.array([-1] * 7), pa.array([{"a": 1}] * 7), pa.array([[[1.0]]] * 7),
            pa.array([True] * 7), pa.array([b"x"] * 7),
        ]  # fmt: skip
        table = table.set_column(table.column_names.index(name), name, data.draw(st.sampled_from(strange)))
    pq.write_table(table, folder / lerobot.DATA)
    if data.draw(st.integers(0, 9)) == 0:
        (folder / lerobot.DATA).write_bytes(data.draw(st.binary(max_size=60)))
    found, sentence = attempt(lambda: lerobot.read(folder), DatasetError)
    if found is None:
        assert str(folder) in sentence
        assert len(sentence) < 1500
    else:
        found.check("what was read")
        assert len(found.episode) == 7


def test_what_others_recorded_can_be_checked_but_not_be_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lerobot.write(tmp_path / "x", small())
    assert run("demos", "check", tmp_path / "x") == 0
    assert "3 episodes, 7 control steps at 25 Hz" in capsys.readouterr().out
    assert run("demos", "replay", tmp_path / "x") == 1
    assert "robo-rl did not record it" in capsys.readouterr().err
    assert run("demos", "convert", tmp_path / "x", "--out", tmp_path / "y.safetensors") == 1
    assert "robo-rl did not write it" in capsys.readouterr().err


# --- robomimic -----------------------------------------------------------------------------------------------------


def demos_of(path: Path, about: Any = None) -> None:
    """A file as robomimic's documentation has it: ``low_dim`` with an image that is left out."""
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        group = file.create_group("data")
        told = {"env_name": "Lift", "env_kwargs": {"control_freq": 20, "robots": ["Panda"]}} if about is None else about
        group.attrs["env_args"] = told if isinstance(told, str) else json.dumps(told)
        for k, steps in ((10, 3), (0, 4)):  # 10 comes after 0
            demo = group.create_group(f"demo_{k}")
            demo["actions"] = rng.normal(size=(steps, 7))
            demo["rewards"], demo["dones"] = np.zeros(steps), np.eye(steps)[-1].astype("i8")
            demo["obs/robot0_eef_pos"] = np.full((steps, 3), k)
            demo["obs/object"] = rng.normal(size=(steps, 10))
            demo["obs/agentview_image"] = np.zeros((steps, 4, 4, 3), "u1")


def test_a_file_of_robomimic_becomes_a_lerobot_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demos_of(tmp_path / "low_dim.hdf5")
    assert run("demos", "convert", tmp_path / "low_dim.hdf5", "--out", tmp_path / "out") == 0
    found = lerobot.read(tmp_path / "out")
    assert (found.task, found.robot, found.fps) == ("Lift", "Panda", 20.0)
    assert found.episode.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert found.columns["action"].shape == (7, 7)
    names = found.names["observation.state"]
    assert names.index("robot0_eef_pos.0") == 10
    np.testing.assert_array_equal(found.columns["observation.state"][:, 10], [0, 0, 0, 0, 10, 10, 10])
    assert found.columns["next.done"].tolist() == [False, False, False, True, False, False, True]
    assert robomimic.read(tmp_path / "low_dim.hdf5").left_out == ("agentview_image",)
    with h5py.File(tmp_path / "low_dim.hdf5") as file:
        np.testing.assert_allclose(found.columns["action"][4:], file["data/demo_10/actions"], rtol=1e-6)


@settings(max_examples=examples(150))
@given(data=st.data())
def test_strange_files_of_robomimic_are_read_or_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "strange.hdf5"
    told = {"env_name": "Lift", "env_kwargs": {"control_freq": 20, "robots": ["Panda"]}}
    demos_of(
        path, data.draw(st.one_of(st.just(told), changed(told), st.text(st.characters(min_codepoint=1), max_size=5)))
    )
    with h5py.File(path, "a") as file:
        places: list[str] = []
        file.visit(places.append)
        for place in data.draw(st.lists(st.sampled_from(sorted(places)), max_size=3)):
            if place not in file:
                continue
            del file[place]
            value = data.draw(
                st.sampled_from([
                    None, np.zeros(0), np.zeros(()), np.zeros((4, 2)), np.zeros((3, 0)), np.full((4, 7), np.nan), b"x",
                    np.array([b"a", b"b"]), h5py.Empty("f4"), np.zeros(4, "c8"), h5py.SoftLink("/nowhere"), "group",
                ])
            )  # fmt: skip
            if isinstance(value, str):
                file.create_group(place)
            elif value is not None:
                file[place] = value
    if data.draw(st.integers(0, 9)) == 0:
        path.write_bytes(path.read_bytes()[: data.draw(st.integers(0, 3000))])
    found, sentence = attempt(lambda: robomimic.read(path), DatasetError)
    if found is None:
        assert str(path) in sentence
        assert len(sentence) < 1500
    else:
        found.check("what was read")


# --- replay, and the command ---------------------------------------------------------------------------------------


def test_a_replay_is_the_same_bit_by_bit(task: PlaceDirect, tensors: dict[str, Tensor]) -> None:
    assert replay(task, tensors) is None


def test_a_replay_finds_what_was_changed(task: PlaceDirect, tensors: dict[str, Tensor]) -> None:
    row = int((tensors["episode"] == 1).nonzero()[5, 0])
    signal = tensors["signal/tool_position"].clone()
    signal[row, 2] += 1e-6
    found = replay(task, {**tensors, "signal/tool_position": signal})
    assert found is not None
    assert found[:3] == (1, 5, "signal/tool_position")
    action = tensors["action"].clone()
    action[row, 0] = 0.1234
    found = replay(task, {**tensors, "action": action})
    assert found is not None
    assert (found.episode, found.step >= 5) == (1, True)


def test_the_command_lists_checks_replays_and_converts(
    file: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("demos", "list", file.parent, "--json") == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert sorted(row["kind"] for row in told["found"]) == ["LeRobotDataset v3", "robo-rl"]
    assert run("demos", "check", folder) == 0
    assert "tool_position.x, tool_position.y" in capsys.readouterr().out
    assert run("demos", "convert", folder, "--out", tmp_path / "again.safetensors") == 0
    assert run("demos", "replay", tmp_path / "again.safetensors", "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["same"] is True
    again, before = checkpoint.load(tmp_path / "again.safetensors"), checkpoint.load(file)
    assert checkpoint.digest(again[0], json.dumps(again[1])) == checkpoint.digest(before[0], json.dumps(before[1]))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["list", "nowhere"], "is not a folder"),
        (["list", "."], "holds no demonstrations"),
        (["check", "nowhere"], "does not exist"),
        (["convert", "FILE"], "expected a new folder or file for convert"),
        (["convert", "FILE", "--out", "x.safetensors"], "expected the name of a folder"),
        (["convert", "FOLDER", "--out", "x"], "ends in .safetensors"),
        (["convert", "FOLDER", "--out", "FILE"], "which exists"),
    ],
)
def test_the_command_line_refuses_in_a_sentence(
    words: list[str], sentence: str, file: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    places = {"FILE": file, "FOLDER": folder}
    assert run("demos", *(places.get(word, word) for word in words)) == 1
    assert sentence in capsys.readouterr().err
