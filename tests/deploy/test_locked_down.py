"""What runs on a robot's computer for ever has no more rights than it needs: the unit of systemd, and the container."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from robo_rl.deploy.robot import service
from robo_rl.deploy.robot.bundle import Bundle

ROOT = Path(__file__).resolve().parents[2]


def made(driver: str = "so101", written: tuple[str, ...] = ("/data/logs of 100 %",)) -> str:
    return service.unit("robot", ["/bin/true", "a b"], "root", "/tmp", {"ROS_DOMAIN_ID": "7"}, driver, written)


def test_the_unit_may_only_what_it_needs() -> None:
    lines = made().splitlines()
    for line in (
        "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "ProtectHome=read-only",
        "PrivateTmp=yes",
        "SystemCallFilter=@system-service", "DevicePolicy=closed", "DeviceAllow=char-ttyACM rw", "Restart=no",
        'ReadWritePaths="-/data/logs of 100 %%"', f'ReadWritePaths="-{Path.home()}/.ros"',
    ):  # fmt: skip
        assert line in lines
    assert "CPUSchedulingPolicy=fifo" in lines


def test_robots_in_a_network_need_no_devices() -> None:
    assert "DeviceAllow" not in made("ur")


@pytest.mark.parametrize("folder", ["/a\nExecStart=/bin/evil", '/a" /etc "', "/a\x1b"])
def test_a_folder_adds_no_lines(folder: str) -> None:
    with pytest.raises(ValueError, match="characters that a unit can't hold"):
        made(written=(folder,))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
def test_systemd_takes_it_and_finds_it_locked_down(tmp_path: Path) -> None:
    unit = tmp_path / "robot.service"
    unit.write_text(made())
    told = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    ours = [line for line in (told.stdout + told.stderr).splitlines() if "robot.service" in line]
    assert not ours, ours
    words = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    rated = subprocess.run(words, capture_output=True, text=True)
    if "unrecognized option" in rated.stderr or "Unknown" in rated.stderr:
        pytest.skip("this systemd can't rate files")
    found = re.search(r"exposure level for robot.service: ([\d.]+)", rated.stdout)
    assert found, rated.stdout + rated.stderr
    assert float(found[1]) < 3.5, rated.stdout  # "OK" ends at 5; a unit without any of it has 9.2


@pytest.mark.parametrize("file", sorted((ROOT / "docker").glob("*.Dockerfile")), ids=lambda file: file.name)
def test_the_container_runs_as_a_user(file: Path) -> None:
    lines = file.read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users
    assert users[-1] not in ("root", "0")
    after = lines[[k for k, line in enumerate(lines) if line.startswith("USER ")][-1] :]
    assert any(line.startswith("ENTRYPOINT") for line in after)
    assert not any(line.startswith("RUN") for line in after)


def test_ros_install_opens_the_folder_of_recordings(
    tmp_path: Path, bundle_file: Path, capsys: pytest.CaptureFixture[str]
):
    from robo_rl.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["ros", "install", str(bundle_file), "--record", str(tmp_path / "logs"), "--out", str(tmp_path / "out")])
    assert ended.value.code == 0
    (unit,) = (tmp_path / "out").glob("*.service")
    assert f'ReadWritePaths="-{tmp_path / "logs"}"' in unit.read_text()
    assert Bundle.read(bundle_file).contract.task in unit.name
