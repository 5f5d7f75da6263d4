"""RTDE's bytes against those that Universal Robots' own client sends, and a peer's on the emulator."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from robo_rl.deploy.emulate.ur.program import recognised
from robo_rl.deploy.robot.drivers.rtde import messages as m
from robo_rl.deploy.robot.drivers.rtde.program import INPUTS, Following
from robo_rl.sim.robots.arm import load_arm

ROOT = Path(__file__).parents[3]
CLIENT = {
    "V": "0005560002",
    "v": "000376",
    "O": "00404f405f40000000000074696d657374616d702c61637475616c5f712c7361666574795f6d6f64652c6f75747075745f696e74"
    "5f72656769737465725f3234",
    "I": "00ae49696e7075745f646f75626c655f72656769737465725f32342c696e7075745f646f75626c655f72656769737465725f3235"
    "2c696e7075745f646f75626c655f72656769737465725f32362c696e7075745f646f75626c655f72656769737465725f32372c69"
    "6e7075745f646f75626c655f72656769737465725f32382c696e7075745f646f75626c655f72656769737465725f32392c696e70"
    "75745f696e745f72656769737465725f3234",
    "S": "000353",
    "U": "00385501c00921fb544486e0bffe6666666666664000cccccccccccdbffc552e8777ba13bff921fb544486e03fd0000000000000"
    "00000007",
}
"""What RTDE_Python_Client_Library of Universal Robots sends for the calls of the test, by the type."""
TARGET = (-3.1415926536, -1.9, 2.1, -1.7707963268, -1.5707963268, 0.25)
OUTPUTS = ("timestamp", "actual_q", "safety_mode", "output_int_register_24")


def test_packages_are_those_of_universal_robots_own_client() -> None:
    recipe = m.Recipe(1, INPUTS, ["DOUBLE"] * 6 + ["INT32"])
    ours = {
        "V": m.package(m.PROTOCOL, struct.pack(">H", m.VERSION)),
        "v": m.package(m.CONTROLLER),
        "O": m.package(m.OUTPUTS, struct.pack(">d", 125.0) + ",".join(OUTPUTS).encode()),
        "I": m.package(m.INPUTS, ",".join(INPUTS).encode()),
        "S": m.package(m.START),
        "U": m.package(m.DATA, recipe.encode(dict(zip(INPUTS, [*((x,) for x in TARGET), (7,)], strict=True)))),
    }
    assert {kind: data.hex() for kind, data in ours.items()} == CLIENT


def test_a_stream_is_cut_into_packages_wherever_it_is_cut_itself() -> None:
    stream = b"".join(bytes.fromhex(data) for data in CLIENT.values())
    for at in range(len(stream)):
        packages = m.Packages()
        found = packages.feed(stream[:at]) + packages.feed(stream[at:])
        assert [kind.decode() for kind, _ in found] == list(CLIENT)
    with pytest.raises(ValueError, match="a package of 0 bytes"):
        m.Packages().feed(bytes(3))


def test_recipes_take_their_own_packages_alone() -> None:
    recipe = m.Recipe(3, ["timestamp", "actual_q"], ["DOUBLE", "VECTOR6D"])
    values = {"timestamp": (1.5,), "actual_q": TARGET}
    assert recipe.decode(recipe.encode(values)) == values
    for wrong in (recipe.encode(values)[:-1], b"\4" + recipe.encode(values)[1:], b""):
        with pytest.raises(ValueError, match="expected 57 of 3"):
            recipe.decode(wrong)
    with pytest.raises(ValueError, match="NOT_FOUND"):
        m.Recipe(1, ["timestamp"], ["NOT_FOUND"])


def test_the_programs_text_is_told_apart_to_the_letter() -> None:
    told = Following((-6.25,) * 6, (6.25,) * 6, (0.5,) * 6, 0.1, 300.0, 8.0)
    text = told.text()
    assert recognised(text) == told
    lines = text.splitlines()
    assert lines[0] == "def robo_rl_follow():"
    assert lines[-1] == "end"
    blocks = [line.split()[0] for line in lines if line.strip().split("(")[0].split()[0] in ("def", "if", "while")]
    assert len(blocks) == sum(line.strip() == "end" for line in lines), "URScript ends every block with a word"
    assert recognised(text.replace("quiet + get_steptime()", "quiet")) is None


HOST = "127.0.61.1"


@pytest.fixture
def emulator() -> Iterator[str]:
    """The address of an emulated arm in a process of its own: ur-rtde lets no other thread run while it connects."""
    command = [sys.executable, "-m", "robo_rl", "emulate", "ur", "--address", HOST, "--seconds", "100"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert f"is at {HOST}" in process.stdout.readline()
        yield HOST
    finally:
        process.kill()
        process.wait()


def test_ur_rtde_reads_the_emulated_arm_at_home(emulator: str) -> None:
    library = pytest.importorskip("rtde_receive", reason="needs a peer's library: pip install 'robo-rl[dev]'")
    card = load_arm("ur5e")
    home = [joint.home for joint in card.joints]
    receive = library.RTDEReceiveInterface(emulator, 125.0)
    try:
        assert np.allclose(receive.getActualQ(), home, atol=1e-3)
        assert np.allclose(receive.getActualTCPPose()[:3], card.chain.pose(home).position, atol=1e-3)
        assert (receive.getRobotMode(), receive.getSafetyMode(), receive.getRuntimeState()) == (7, 1, 1)
        assert receive.getTargetSpeedFraction() == 1.0
    finally:
        receive.disconnect()
