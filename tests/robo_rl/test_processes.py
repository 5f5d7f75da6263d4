"""Two processes that train one policy."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from robo_rl.learn.config import PpoConfig
from robo_rl.learn.distributed import launch, processes
from robo_rl.learn.moments import moments
from robo_rl.learn.ppo import Learner
from robo_rl.learn.runs import checkpoint
from robo_rl.policy import PolicyGraph
from robo_rl.sim.tasks.loading import load_task
from tests.holding import held, started

JOINED, CUT = Path(__file__).with_name("joined.py"), Path(__file__).with_name("cut.py")


def torchrun(*words: str, restarts: int = 0) -> str:
    """Two processes on this computer; returns what they print.

    ``restarts``: how often both are begun again after one was lost, as ``robo-rl train --processes`` does. gloo's
    threads can abort a process at its end (see PyTorch's pull request 179291): seen once, on a busy computer.
    """
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["--max-restarts", str(restarts), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_two_processes_learn_what_one_would_from_the_samples_of_both(tmp_path: Path) -> None:
    torchrun(str(JOINED), str(tmp_path), restarts=1)
    first, second, alone = (torch.load(tmp_path / f"{name}.pt") for name in ("together0", "together1", "alone0"))
    assert not torch.equal(first.pop("rewards"), second.pop("rewards"))
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
        torch.testing.assert_close(value, alone[name], rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.release
def test_a_process_that_is_late_collects_less_and_all_learn_from_what_there_is(tmp_path: Path) -> None:
    torchrun(str(CUT), str(tmp_path), restarts=1)
    first, late = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert [len(one["cut"]["observation"]) for one in (first, late)] == [8, 2]
    assert [one["cut"]["metrics"]["collected"] for one in (first, late)] == [1.0, 2 / 8]
    seen = torch.cat([one["cut"]["observation"].flatten(0, 1) for one in (first, late)])
    torch.testing.assert_close(first["cut"]["mean"], seen.mean(0), rtol=1e-4, atol=1e-5)
    assert torch.equal(first["cut"]["weights"], late["cut"]["weights"])
    assert [len(one["whole"]["observation"]) for one in (first, late)] == [8, 8]
    assert "collected" not in first["whole"]["metrics"]


@pytest.mark.release
def test_torchrun_trains_into_one_folder_and_tells_once(tmp_path: Path) -> None:
    shape = ("--ppo.updates", "3", "--ppo.environments", "8", "--ppo.horizon", "4", "--ppo.mini-batches", "2")
    words = ("-m", "robo_rl", "train", "quadrotor-hover", "--algorithm", "ppo", "--runs", str(tmp_path / "runs"))
    result = json.loads(torchrun(*words, *shape, "--episodes", "0", "--json"))
    (run,) = (tmp_path / "runs").iterdir()
    assert result["run"] == str(run)
    _, numbers = checkpoint.load(run / "checkpoint.safetensors")
    assert numbers["finished"]
    assert result["environment_steps"] == numbers["environment_steps"] == numbers["done"] * 4 * 8


def test_a_process_beside_the_first_goes_on_at_its_levels_with_draws_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = PpoConfig(environments=4, horizon=4, hidden=(8,), critic_hidden=(8,))
    task = load_task("quadrotor-hover")
    first = Learner(task, PolicyGraph(task, few.hidden), few, seed=0)
    first.env.env.levels.level[:, first.env.env.levels.names.index("initial/tilt")] = torch.tensor([0.1, 0.2, 0.3, 0.4])
    for _ in range(3):
        first.update()
    tensors, numbers = first.save()
    monkeypatch.setenv("RANK", "1")
    second = Learner(task, PolicyGraph(task, few.hidden), few, seed=0)
    begun = second.env.env.truth(torch.arange(4))
    second.load(tensors, numbers)
    assert torch.equal(second.env.env.levels.level, tensors["env/env/levels"])
    assert not torch.equal(second.env.env.truth(torch.arange(4))["position"], begun["position"])
    assert second.done == 3


def test_robots_that_can_not_be_shared_out_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(ValueError, match="environments is 512; expected a multiple of the 3 processes"):
        processes.share(512)


def test_every_process_draws_from_seeds_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = set()
    for rank in ("0", "1", "2", "256", "65536"):
        monkeypatch.setenv("RANK", rank)
        for seed in range(5):
            generator = torch.Generator().manual_seed(processes.own_seed(seed))
            drawn.add(float(torch.rand(1, generator=generator, dtype=torch.float64)))
    assert len(drawn) == 25


def test_moments_of_parts_are_those_of_the_whole() -> None:
    """As two processes would tell each other, without them: the parts' own moments, merged."""
    x = 1000.0 + torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    (whole,) = moments(x)
    assert whole.number == 64
    torch.testing.assert_close(whole.mean, x.double().mean(0).float())
    torch.testing.assert_close(whole.squares, (x.double().var(0) * 63).float(), rtol=1e-4, atol=0)


def test_words_of_processes_do_not_start_processes_again() -> None:
    words = ["go2-flat", "--processes", "4", "--name", "x", "--seed", "3", "--processes=2", "--ppo.hidden", "8", "8"]
    assert launch.without(words) == ["go2-flat", "--seed", "3", "--ppo.hidden", "8", "8"]


def test_processes_of_an_analytic_gradient_and_within_torchrun_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from robo_rl.cli import main

    with pytest.raises(SystemExit):
        main(["train", "quadrotor-hover", "--processes", "2", "--runs", str(tmp_path)])
    assert "algorithm is apg, in 2 processes; expected ppo" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(ValueError, match="torchrun has started this one"):
        launch.checked(2)
    with pytest.raises(ValueError, match="expected 1 to"):
        launch.checked(0)


def begun(folder: Path, holding: Path) -> tuple[subprocess.Popen[str], int]:
    """A training in two processes, which has a checkpoint, and the first of them, which stands still."""
    shape = ("--ppo.updates", "60", "--ppo.environments", "32", "--ppo.horizon", "16", "--ppo.mini-batches", "2")
    words = ("train", "quadrotor-hover", "--algorithm", "ppo", "--runs", str(folder), "--processes", "2", *shape)
    driver = started([*words, "--episodes", "0", "--checkpoint-seconds", "0.1", "--json"], holding)
    return driver, held(driver, holding)


def whole(folder: Path) -> bool:
    """Whether a training has ended, and reported every update once."""
    (run,) = folder.iterdir()
    updates = [json.loads(line)["update"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    return (run / "done.json").is_file() and updates == list(range(1, 61))


@pytest.mark.release  # with every change a single process: test_training.py
def test_a_training_whose_process_is_lost_goes_on_by_itself(tmp_path: Path) -> None:
    driver, first = begun(tmp_path / "runs", tmp_path / "holding")
    (second,) = [process for process in _children(driver.pid) if "RANK=1" in _environment(process)]
    os.kill(second, signal.SIGKILL)
    os.kill(first, signal.SIGCONT)
    out, err = driver.communicate()
    assert driver.returncode == 0, err[-3000:]
    assert "goes on from its newest checkpoint" in err
    assert "Traceback" not in err
    result = json.loads(out.splitlines()[-1])
    assert (result["run"], result["interrupted"]) == (str(next((tmp_path / "runs").iterdir())), False)
    assert whole(tmp_path / "runs")


@pytest.mark.release  # with every change a single process: test_training.py
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_processes_of_a_training_that_is_ended_save_and_leave_and_resume(tmp_path: Path, number: int) -> None:
    driver, first = begun(tmp_path / "runs", tmp_path / "holding")
    processes = _children(driver.pid)
    driver.send_signal(number)
    os.kill(first, signal.SIGCONT)
    driver.communicate()
    assert driver.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    while any("RANK" in " ".join(_environment(process)) for process in processes):
        time.sleep(0.05)
    (run,) = (tmp_path / "runs").iterdir()
    words = ("resume", str(run), "--processes", "2", "--episodes", "0", "--checkpoint-seconds", "0.1")
    subprocess.run([sys.executable, "-m", "robo_rl", *words], check=True, stdout=subprocess.DEVNULL)
    assert whole(tmp_path / "runs")


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _environment(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/environ").read_text().split("\0")
    except OSError:
        return []


@pytest.mark.release  # with every change two processes of one node
def test_two_nodes_train_one_policy(tmp_path: Path) -> None:
    """Two agents of torchrun on this computer, each with a process: as on two computers with a shared folder."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shape = ("--ppo.updates", "3", "--ppo.environments", "8", "--ppo.horizon", "4", "--ppo.mini-batches", "2")
    words = ("-m", "robo_rl", "train", "quadrotor-hover", "--algorithm", "ppo", "--runs", str(tmp_path / "runs"))
    place = ("--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-id", str(port))
    command = [sys.executable, "-m", "torch.distributed.run", *place, "--rdzv-endpoint", f"127.0.0.1:{port}", *words]
    nodes = [
        subprocess.Popen([*command, *shape, "--episodes", "0", "--json"], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [node.communicate()[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0]
    (line,) = [text.splitlines()[-1] for text in told if text]
    (run,) = (tmp_path / "runs").iterdir()
    assert json.loads(line)["run"] == str(run)
    assert checkpoint.load(run / "checkpoint.safetensors")[1]["finished"]
