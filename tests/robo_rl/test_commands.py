"""What the commands do and what they print for machines, by keys that stay."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from robo_rl.cli import main
from robo_rl.deploy.build.pack import repack
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.deploy.robot.bundle.attachment import Attached
from robo_rl.evaluate.evaluation import Conditions, GraphPolicy, rollout
from robo_rl.learn.runs.folder import Run
from robo_rl.sim.robots import FOLDER
from robo_rl.sim.robots.legged import load_legged
from robo_rl.sim.tasks.loading import load_task

INTERVAL = {"episodes", "success", "success_low", "success_high", "position_error_mean_m"}


class Robo:
    """Runs ``robo-rl`` in this process and keeps what it prints."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys, self.out, self.err = capsys, "", ""

    def __call__(self, *words: object, code: int = 0) -> None:
        with pytest.raises(SystemExit) as exit:
            main([str(word) for word in words])
        self.out, self.err = self.capsys.readouterr()
        assert int(exit.value.code or 0) == code, self.err

    def json(self, *words: object, code: int = 0) -> dict[str, Any]:
        """The object on the last line of stdout, which holds nothing else."""
        self(*words, "--json", code=code)
        (line,) = self.out.splitlines()
        return json.loads(line, parse_constant=pytest.fail)


@pytest.fixture
def robo(capsys: pytest.CaptureFixture[str]) -> Robo:
    return Robo(capsys)


def test_tasks_lists_tasks_and_robots_with_their_sources(robo: Robo) -> None:
    found = robo.json("tasks")
    tasks = {task["name"]: task for task in found["tasks"]}
    assert tasks["quadrotor-hover"]["control_hz"] == 100
    assert tasks["quadrotor-hover"]["commands"] == ["rotor_speed"]
    assert "position" in tasks["quadrotor-hover"]["signals"]
    robots = {robot["name"]: robot for robot in found["robots"]}
    assert robots["crazyflie"]["actuators"] == ["m1", "m2", "m3", "m4"]
    assert robots["go2"]["actuators"] == list(load_legged("go2").joint_names)
    kinds = {name: robot["kind"] for name, robot in robots.items()}
    assert kinds == {
        "a1": "legged", "go2": "legged", "g1": "legged", "g1_29": "legged", "crazyflie": "multirotor",
        "hummingbird": "multirotor",
        "panda": "arm", "so101": "arm", "ur5e": "arm", "f1tenth": "car", "bmw320i": "car", "x500": "multirotor",
        "turtlebot3": "mobile_base", "turtlebot4": "mobile_base", "turtlebot3_manipulation": "mobile_manipulator",
        "rosbot_xl": "omni_base", "traction_pmsm": "motor", "cheetah_bldc": "motor", "gearmotor_37d": "motor",
        "ec45_flat": "motor",
        "bi_so101": "two_arms",
    }  # fmt: skip
    assert all(robot["title"] and robot["sources"] for robot in robots.values())
    robo("tasks")
    assert "crazyflie" in robo.out
    assert robo.err == ""


SMALL = ["--apg.updates", "4", "--apg.environments", "8", "--apg.horizon", "4", "--apg.hidden", "8"]


def test_train_gives_its_documented_keys(robo: Robo, tmp_path: Path) -> None:
    result = robo.json("train", "quadrotor-hover", "--runs", tmp_path, "--seed", "5", "--episodes", "6", *SMALL)
    keys = {"run", "task", "algorithm", "seed", "train_seconds", "compile_seconds", "wall_seconds", "environment_steps"}
    assert set(result) >= keys | {"interrupted"} | INTERVAL
    (folder,) = tmp_path.iterdir()
    assert result["run"] == str(folder)
    assert "quadrotor-hover" in folder.name
    assert (result["task"], result["algorithm"], result["seed"]) == ("quadrotor-hover", "apg", 5)
    assert result["environment_steps"] == 4 * 8 * 4
    assert result["episodes"] == 6
    assert not result["interrupted"]
    assert 0 < result["train_seconds"] < result["wall_seconds"]
    assert 0 < result["steps_per_second"] < result["simulation_steps_per_second"]
    assert f"robo-rl play {folder}" in robo.err
    assert Run.open(folder).hyperparameters["hidden"] == [8]


def test_train_without_flights_gives_no_success(robo: Robo, tmp_path: Path) -> None:
    result = robo.json("train", "quadrotor-track", "--runs", tmp_path, "--episodes", "0", *SMALL)
    assert not set(result) & INTERVAL
    assert "quadrotor-track" in Path(result["run"]).name


@pytest.mark.slow
def test_train_flies_a_robot_of_one_s_own_all_the_way_to_a_file(robo: Robo, tmp_path: Path) -> None:
    card = tmp_path / "my_drone" / "card.toml"
    card.parent.mkdir()
    shutil.copy(FOLDER / "crazyflie" / "card.toml", card)
    runs, out = tmp_path / "runs", tmp_path / "out" / "mine.onnx"
    result = robo.json("train", "quadrotor-hover", "--robot", card, "--runs", runs, "--episodes", "0", *SMALL)
    exported = robo.json("export", result["run"], "--out", out)
    bundle = Bundle.read(out)
    assert exported == {
        "file": str(out),
        "bytes": out.stat().st_size,
        "digest": bundle.digest,
        "contract_digest": bundle.contract.digest,
        "task": "quadrotor-hover",
        "robot": "my_drone",
    }
    for words in ([], ["--robot", card]):
        verified = robo.json("verify", out, *words, "--episodes", "2", "--min-success", "0")
        assert verified["passed"]
    repack(out, bundle.contract, out, Attached())
    robo("verify", out, "--episodes", "2", code=1)
    assert "robot 'my_drone' is not known" in robo.err
    verified = robo.json("verify", out, "--robot", card, "--episodes", "2", "--min-success", "0")
    assert verified["passed"]


@pytest.mark.slow
def test_train_with_ppo_all_the_way_to_a_verified_file(robo: Robo, tmp_path: Path) -> None:
    settings = ["--ppo.updates", "2", "--ppo.environments", "8", "--ppo.horizon", "8", "--ppo.hidden", "8"]
    words = ["train", "quadrotor-track", "--algorithm", "ppo", "--runs", tmp_path, "--episodes", "4", *settings]
    result = robo.json(*words)
    updates = round(2 * load_task("quadrotor-track").update_scale)
    assert (result["algorithm"], result["environment_steps"]) == ("ppo", updates * 8 * 8)
    assert result["episodes"] == 4
    exported = robo.json("export", result["run"])
    assert Path(exported["file"]) == Path(result["run"]) / "policy.onnx"
    verified = robo.json("verify", exported["file"], "--episodes", "20", "--min-success", "0")
    assert verified["passed"], "a normaliser is exported like the rest"


def test_evaluate_gives_its_documented_keys(robo: Robo, trained_run: Path) -> None:
    result = robo.json("evaluate", trained_run, "--episodes", "40", "--seed", "3")
    keys = {"target", "task", "robot", "position_error_p95_m", "tracking_error_rms_m", "duration_mean_s"}
    assert set(result) >= INTERVAL | keys
    policy, _ = Run.open(trained_run).policy()
    expected = rollout(policy.task, GraphPolicy(policy), Conditions(episodes=40, seed=3)).summary()
    assert {name: result[name] for name in expected} == expected
    assert result["success_low"] <= result["success"] <= result["success_high"]


def test_evaluate_fixes_ranges_and_shortens_flights(robo: Robo) -> None:
    words = ["evaluate", "zoo:quadrotor-hover", "--episodes", "10", "--seconds", "1.2"]
    result = robo.json(*words, "--fixed", "initial/tilt", "0", "wind", "0")
    assert result["duration_mean_s"] == pytest.approx(1.2)
    assert result["success"] == 1.0


def test_evaluate_of_what_never_survives_prints_null_for_its_error(robo: Robo) -> None:
    words = ["evaluate", "classical", "--task", "quadrotor-hover", "--episodes", "5", "--seconds", "1.5"]
    result = robo.json(*words, "--fixed", "thrust", "0.01")
    assert result["success"] == 0.0
    assert result["position_error_mean_m"] is None


def test_evaluate_sweeps_perturbations(robo: Robo) -> None:
    words = ["evaluate", "classical", "--task", "quadrotor-hover", "--robot", "hummingbird", "--episodes", "5"]
    result = robo.json(*words, "--seconds", "1.1", "--sweep")
    assert set(result["sweep"]) == {"mass", "thrust", "inertia", "rise_time", "delay", "wind", "noise"}
    for rows in result["sweep"].values():
        assert len(rows) == 5
        assert all(set(row) >= INTERVAL | {"value"} for row in rows)


def test_evaluate_compares_two_pilots_on_the_same_robot(robo: Robo, trained_run: Path) -> None:
    words = ["evaluate", trained_run, "--episodes", "20", "--seconds", "1.5", "--robot", "hummingbird"]
    result = robo.json(*words, "--against", "classical")
    comparison = result["comparison"]
    assert comparison["decision"] == "smaller", "a policy of the Crazyflie can't fly a robot eighteen times as heavy"
    assert comparison["means"]["classical"] > comparison["means"][trained_run.name]
    assert "has a larger tracking error than classical" in robo.err


def test_getting_up_is_not_judged_before_its_time_but_can_be_looked_at(robo: Robo, tmp_path: Path) -> None:
    robo("evaluate", "zoo:go2-recover", "--seconds", "4", code=1)
    assert "--seconds is 4; expected 5.1 or more" in robo.err
    picture = tmp_path / "up.png"
    robo("play", "zoo:go2-recover", "--picture", picture, "--seconds", "1.2")
    assert picture.stat().st_size > 1000


def test_other_ranges_hold_for_both_that_are_compared(robo: Robo, trained_run: Path, tmp_path: Path) -> None:
    heavy = tmp_path / "heavy.toml"
    heavy.write_text('[ranges]\n"mass" = [1.2, 1.3]\n')
    words = ("evaluate", trained_run, "--episodes", "20", "--seconds", "1.5", "--ranges", heavy)
    means = robo.json(*words, "--against", trained_run)["comparison"]["means"]
    assert len(set(means.values())) == 1


def test_inspect_gives_its_documented_keys(robo: Robo, bundle_file: Path) -> None:
    found = robo.json("inspect", bundle_file)
    bundle = Bundle.read(bundle_file)
    keys = {"file", "digest", "contract_digest", "golden_steps", "golden_error", "signers", "contract", "attached"}
    assert set(found) == keys
    assert found["attached"] == {}
    assert (found["digest"], found["contract_digest"]) == (bundle.digest, bundle.contract.digest)
    assert found["contract"] == json.loads(bundle.contract.to_json())
    assert found["golden_steps"] == 64
    assert found["golden_error"] < 1e-5


def test_inspect_tells_people_what_the_file_reads_commands_and_promises(robo: Robo, bundle_file: Path) -> None:
    robo("inspect", bundle_file)
    contract = Bundle.read(bundle_file).contract
    for channel in (*contract.signals, *contract.commands, *contract.state):
        assert channel.name in robo.out
    for rotor in contract.robot.actuators:
        assert f"{rotor.name}  velocity 0 to {rotor.upper:g} rad/s" in robo.out
    facts = (
        "100 Hz",
        "crazyflie",
        "quaternion",
        "rad/s",
        "mass 0.027",
        "from the operator",
        "safe    0",
        contract.digest,
    )
    for fact in facts:
        assert fact in robo.out


def test_verify_gives_its_documented_keys(robo: Robo, bundle_file: Path) -> None:
    result = robo.json("verify", bundle_file, "--episodes", "50")
    assert set(result) >= INTERVAL | {"passed", "max_abs_error", "steps", "golden_error", "failures", "file"}
    assert result["passed"]
    assert result["failures"] == []
    assert result["max_abs_error"] <= 1e-5
    assert result["steps"] == 50 * 500
    assert robo.err.endswith("verified\n")


def test_verify_of_a_policy_that_flies_too_badly_exits_with_1(robo: Robo, bundle_file: Path) -> None:
    result = robo.json("verify", bundle_file, "--episodes", "20", "--min-success", "1.01", code=1)
    assert not result["passed"]
    (failure,) = result["failures"]
    assert "of episodes succeeded; expected at least 101.0%" in failure
    assert "FAILED: " in robo.err
    assert robo.err.endswith("not verified\n")


def test_json_is_the_last_line_also_where_torch_is_not_loaded_yet(bundle_file: Path) -> None:
    words = [sys.executable, "-m", "robo_rl", "inspect", str(bundle_file), "--json"]
    found = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(found.stdout.splitlines()[-1])["digest"] == Bundle.read(bundle_file).digest
