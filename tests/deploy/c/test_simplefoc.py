"""Packages for SimpleFOC, compiled against declarations of what they call, in front of a motor that is written here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from robo_rl.contract import Provenance
from robo_rl.controllers.gate.codes import State
from robo_rl.deploy.build.export import export
from robo_rl.deploy.build.firmware.package import PackageError, package
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.policy import PolicyGraph
from robo_rl.sim.robots import load_robot
from robo_rl.sim.robots.motor import PmsmCard
from robo_rl.sim.tasks.loading import load_task
from robo_rl.sim.tasks.motor.speed import CURRENT_TIME

CARD = load_robot("cheetah_bldc", PmsmCard)  # whose inductances are equal, as the simulated motor's
WANTED_SPEED, WANTED_CURRENT = 60.0, 3.0
"""rad/s, A."""
LIBRARY = Path(__file__).with_name("simplefoc.hpp")
HEAD = """
#include <cstdio>
#include <cstdlib>
#include "policy_motor.h"
static Sensor sensor;
static CurrentSense sense;
static BLDCMotor motor;
static policy_motor drive(motor);
static void tell(void)
{
    std::printf("%d %d %d ", drive.robot.gate.state, drive.robot.enabled, motor.enabled);
    std::printf("%g %g %g\\n", machine.speed, machine.d(), machine.q());
}
"""
START = """
    sensor.direction = std::atoi(words[1]);
    motor.sensor_direction = static_cast<Direction>(sensor.direction);
    motor.sensor = &sensor;
    motor.current_sense = &sense;
"""
SPEED = """
static void pass(int milliseconds, float speed, uint8_t requests)
{
    for (int i = 0; i < 10 * milliseconds; i++) {
        clock_us += 100;
        machine.turn(1e-4);
        drive.run(speed, i == 0 ? requests : 0);
    }
    tell();
}
int main(int, char **words)
{
    std::printf("%d\\n", drive.start());
    pass(20, WANTED, GATE_REQUEST_ARM);
    START_HERE
    motor.current_limit = 1.0f;
    std::printf("%d\\n", drive.start());
    motor.current_limit = 1e6f;
    std::printf("%d\\n", drive.start());
    pass(20, WANTED, GATE_REQUEST_NONE);
    pass(20, WANTED, GATE_REQUEST_ARM);
    pass(400, WANTED, GATE_REQUEST_ACTIVATE);
    pass(400, 0.0f, GATE_REQUEST_NONE);
    pass(20, NAN, GATE_REQUEST_NONE);
}
"""
CURRENT = """
static void pass(int periods, float q, uint8_t requests)
{
    for (int i = 0; i < periods; i++) {
        drive.run(0.0f, q, SUPPLY, i == 0 ? requests : 0);
        for (int k = 0; k < 100; k++) {
            machine.turn(1e-6);
            motor.enabled ? machine.conduct(1e-6) : (void)(machine.alpha = machine.beta = 0.0);
        }
        clock_us += 100;
    }
    tell();
}
int main(int, char **words)
{
    START_HERE
    machine.held = std::atof(words[2]);
    std::printf("%d\\n", drive.start());
    pass(50, WANTED, GATE_REQUEST_NONE);
    pass(5, WANTED, GATE_REQUEST_ARM);
    pass(200, WANTED, GATE_REQUEST_ACTIVATE);
    pass(5, WANTED, GATE_REQUEST_STOP);
}
"""


def built(task: str, text: str, folder: Path, **figures: str) -> Path:
    """A program of the package and the simulated motor; the policy is nearly the task's classical controller."""
    if shutil.which("g++") is None:
        pytest.skip("g++ not found; apt-get install g++")
    policy = PolicyGraph(type(load_task(task))(CARD), (8, 8))
    torch.nn.init.normal_(policy.network[-1].bias, std=1e-3)
    made = package(export(policy, Provenance("apg", 0, 0, "0" * 64), folder / "motor.onnx"), folder, "simplefoc")
    told = {
        "PAIRS": int(CARD.pole_pairs), "FLUX": CARD.flux, "INERTIA": CARD.inertia, "RESISTANCE": CARD.resistance,
        "INDUCTANCE": CARD.inductance_q, "CURRENT_TIME": CURRENT_TIME, **figures,
    }  # fmt: skip
    (folder / "SimpleFOC.h").write_text(LIBRARY.read_text())
    (folder / "main.cpp").write_text(HEAD + text.replace("START_HERE", START))
    sources = [str(path) for path in made.folder.glob("*.c")]
    flags = ["-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-I.", "-Isrc"]
    flags += [f"-D{name}={value}" for name, value in told.items()]
    subprocess.run(["gcc", "-c", "-O1", *sources], cwd=folder, check=True)
    objects = [str(path) for path in folder.glob("*.o")]
    subprocess.run(["g++", "-std=gnu++11", "-O1", *flags, "main.cpp", *objects, "-o", "spin"], cwd=folder, check=True)
    return folder / "spin"


def printed(*command: str) -> list[list[float]]:
    """The numbers of each line."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def speed_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("pmsm-speed", SPEED, tmp_path_factory.mktemp("speed"), WANTED=f"{WANTED_SPEED}f")


@pytest.fixture(scope="module")
def current_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    figures = {"WANTED": f"{WANTED_CURRENT}f", "SUPPLY": f"{CARD.supply_voltage}f"}
    return built("pmsm-current", CURRENT, tmp_path_factory.mktemp("current"), **figures)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_speed_is_kept_with_the_driver_off_until_armed(direction: int, speed_program: Path) -> None:
    (blind,), unarmed, (weak,), (ready,), idle, armed, turning, braked, lost = printed(
        str(speed_program), str(direction)
    )
    assert (blind, weak, ready) == (0, 0, 1)  # without a sensor; a current limit below the contract's cuts commands
    assert unarmed[:4] == idle[:4] == [State.IDLE, 0, 0, 0]
    assert armed[:3] == [State.READY, 1, 1]
    assert turning[0] == State.ACTIVE
    assert turning[3] == pytest.approx(WANTED_SPEED, rel=0.02)
    assert braked[0] == State.ACTIVE  # at rest the encoder repeats itself, which is no fault
    assert abs(braked[3]) < 0.02 * WANTED_SPEED
    assert lost[0] == State.FAULT


@pytest.mark.parametrize(("speed", "direction"), [(0.0, 1), (60.0, 1), (60.0, -1), (-60.0, 1)])
def test_a_current_is_kept_in_the_stator_s_frame(speed: float, direction: int, current_program: Path) -> None:
    (ready,), idle, armed, active, stopped = printed(str(current_program), str(direction), str(speed))
    assert ready == 1
    assert idle[:3] == [State.IDLE, 0, 0]
    assert armed[0] == State.READY
    assert active[:3] == [State.ACTIVE, 1, 1]
    assert active[4] == pytest.approx(0.0, abs=0.1 * WANTED_CURRENT)
    assert active[5] == pytest.approx(WANTED_CURRENT, rel=0.1)
    assert stopped[:3] == [State.FAULT, 0, 0]  # a stop opens the half bridges


def test_other_policies_are_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="a SimpleFOC motor fits policies of pmsm-speed"):
        package(Bundle.read("zoo:quadrotor-hover"), tmp_path, "simplefoc")
    assert not list(tmp_path.iterdir())
