"""Data sets as they lie on others' disks: LeRobotDataset v2.1, recordings that were cut off, other projects' files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robo_rl.adapters.datasets import DatasetError, lerobot, robomimic
from robo_rl.learn.experience.demonstrations import DemonstrationError, tensors_of
from robo_rl.sim.tasks.arm.place_direct import PlaceDirect

MOTORS = [
    f"{name}.pos" for name in ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
]
LENGTHS = (4, 5, 3)
LENGTHS_OF_LEROBOT = (4, 5, 6)
Table = dict[str, np.ndarray]


def so101(folder: Path, change: Callable[[int, Table], Table] = lambda episode, table: table) -> Path:
    """What LeRobot 0.3 records of an SO-101 at 30 Hz: a file of Parquet per episode, angles in degrees."""
    (folder / "data/chunk-000").mkdir(parents=True)
    (folder / "meta").mkdir()
    first = 0
    for episode, length in enumerate(LENGTHS):
        frame = np.arange(length)
        angles = (10.0 * episode + frame[:, None] + np.arange(6)).astype("f4")
        table = change(
            episode,
            {
                "action": angles + 1.0, "observation.state": angles, "timestamp": (frame / 30).astype("f4"),
                "frame_index": frame, "episode_index": np.full(length, episode), "index": first + frame,
                "task_index": np.zeros(length, "i8"),
            },
        )  # fmt: skip
        first += length
        columns = {
            name: list(value) if value.ndim > 1 or value.dtype == object else value for name, value in table.items()
        }
        pq.write_table(pa.table(columns), folder / f"data/chunk-000/episode_{episode:06d}.parquet")
    counted = {name: {"dtype": "int64", "shape": [1], "names": None} for name in lerobot.COUNTED if name != "timestamp"}
    moved = {"dtype": "float32", "shape": [6], "names": MOTORS}
    info = {
        "codebase_version": "v2.1", "robot_type": "so101_follower", "total_episodes": len(LENGTHS),
        "total_frames": sum(LENGTHS), "fps": 30, "chunks_size": 1000,
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "features": {
            "action": moved, "observation.state": moved, "timestamp": {"dtype": "float32", "shape": [1], "names": None},
            "observation.images.front": {"dtype": "video", "shape": [480, 640, 3], "names": None}, **counted,
        },
    }  # fmt: skip
    (folder / "meta/info.json").write_text(json.dumps(info))
    (folder / "meta/tasks.jsonl").write_text('{"task_index": 0, "task": "Put the cube in the bin"}\n')
    return folder


def test_a_folder_of_version_2_is_read_as_it_was_recorded(tmp_path: Path) -> None:
    found = lerobot.read(so101(tmp_path / "so101"))
    assert (found.task, found.robot, found.fps) == ("Put the cube in the bin", "so101_follower", 30.0)
    assert found.lengths.tolist() == list(LENGTHS)
    assert found.names["observation.state"] == tuple(MOTORS)
    assert found.left_out == ("observation.images.front",)
    np.testing.assert_array_equal(found.columns["action"][:, 0], [1, 2, 3, 4, 11, 12, 13, 14, 15, 21, 22, 23])


def test_a_folder_that_lerobot_itself_wrote_is_read() -> None:
    """LeRobot 0.4.4 recorded it, without a robot: 6 joints, a camera, 4 to 6 steps; its video is not in the folder."""
    found = lerobot.read(Path(__file__).parents[1] / "data" / "lerobot-0.4.4")
    assert (found.task, found.robot, found.fps) == ("Pick the cube (and 1 other task)", "so101_follower", 30.0)
    assert found.lengths.tolist() == list(LENGTHS_OF_LEROBOT)
    assert found.names["action"] == tuple(MOTORS)
    assert found.left_out == ("observation.images.front",)
    first = [10 * episode + frame for episode, length in enumerate(LENGTHS_OF_LEROBOT) for frame in range(length)]
    np.testing.assert_array_equal(found.columns["observation.state"], np.add.outer(first, np.arange(6)))
    np.testing.assert_array_equal(found.columns["action"], found.columns["observation.state"] + 1)


def broken(episode: int, table: Table) -> Table:
    table["observation.state"][2, 3] = np.nan if episode == 1 else 0.0
    return table


def dropped(episode: int, table: Table) -> Table:
    return {name: np.delete(value, 2, 0) for name, value in table.items()} if episode == 1 else table


def slower(episode: int, table: Table) -> Table:
    return {**table, "timestamp": (np.arange(len(table["index"])) / 29.97).astype("f4")}


def uneven(episode: int, table: Table) -> Table:
    """Lists of other lengths than the data set tells, whose numbers are as many as they should be."""
    rows = [list(row) for row in table["action"]]
    rows[0], rows[1] = [*rows[0], 0.0], rows[1][:-1]
    return {**table, "action": np.array([*rows, None], object)[:-1]}


def between(episode: int, table: Table) -> Table:
    return {**table, "episode_index": table["episode_index"] + 0.5}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (uneven, r"episode_000000\.parquet: column 'action' is '\[5, 6, 7\] numbers in its rows'; expected 6 in each"),
        (between, r"episode_000000\.parquet: column 'episode_index' is '0\.5'; expected int64"),
        (broken, r"'observation\.state' has numbers that are not finite, first in episode 1, control step 2$"),
        (dropped, r"episode 1: frame_index of its row 2 is '3'; expected 2: 0, 1, …, none missing"),
        (slower, r"episode 1: timestamp of frame 4 is '0\.000133 s off'; expected frame_index / fps"),
    ],
    ids=["lists of other lengths", "a number between two", "not finite", "a frame missing", "another rate"],
)
def test_what_is_wrong_in_a_recording_is_told_with_its_episode_and_step(
    tmp_path: Path, change: Callable[[int, Table], Table], expected: str
) -> None:
    with pytest.raises(DatasetError, match=expected):
        lerobot.read(so101(tmp_path / "so101", change))


def test_a_recording_that_was_cut_off_is_refused_with_what_ends_one(tmp_path: Path) -> None:
    folder = so101(tmp_path / "so101")
    (folder / "meta/info.json").unlink()
    with pytest.raises(DatasetError, match=r"meta/info\.json is missing, .* finalized"):
        lerobot.read(folder)


def test_files_of_robosuite_and_maniskill_are_told_from_robomimics(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "robosuite.hdf5", "w") as file:
        file["data/demo_1/states"], file["data/demo_1/actions"] = np.zeros((3, 9)), np.zeros((3, 7))
    with h5py.File(tmp_path / "maniskill.h5", "w") as file:
        file["traj_0/obs"], file["traj_0/actions"] = np.zeros((4, 9)), np.zeros((3, 7))
    with pytest.raises(DatasetError, match=r"demo_1: has states, as robosuite .* dataset_states_to_obs\.py"):
        robomimic.read(tmp_path / "robosuite.hdf5")
    with pytest.raises(DatasetError, match="holds traj_0, …, as ManiSkill's files"):
        robomimic.read(tmp_path / "maniskill.h5")


def test_an_end_of_an_episode_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "demo.hdf5", "w") as file:
        file["data/demo_0/obs/state"], file["data/demo_0/actions"] = np.zeros((3, 9)), np.zeros((3, 7))
        file["data/demo_0/dones"] = [0.0, np.nan, 1.0]
    with pytest.raises(DatasetError, match=r"demo\.hdf5: demo_0: dones is '\[ ?0\. +nan +1\.\]'; expected 0 or 1"):
        robomimic.read(tmp_path / "demo.hdf5")


def test_learning_from_what_others_recorded_is_refused_with_what_can_be_done_with_it(tmp_path: Path) -> None:
    task = PlaceDirect()
    with pytest.raises(
        DemonstrationError, match=r"so101: expected demonstrations of robo-rl, .* 'robo-rl adopt' makes"
    ):
        tensors_of(so101(tmp_path / "so101"), task)
    with pytest.raises(
        DemonstrationError, match=r"none\.safetensors: the file does not exist; expected demonstrations"
    ):
        tensors_of(tmp_path / "none.safetensors", task)
