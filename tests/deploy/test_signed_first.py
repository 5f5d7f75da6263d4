"""Where only trusted keys' policies run, the signature comes first: nothing else of a stranger's file is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="cryptography is missing: pip install 'robo-rl[sign]'")

from robo_rl.cli import main
from robo_rl.deploy.robot.bundle import DIGEST_KEY, NO_DIGEST, Bundle, BundleError, seal
from robo_rl.deploy.robot.bundle.signing import SignatureError, new_key, read_signed, require_trusted, sign
from robo_rl.deploy.robot.runtime import Policy


@pytest.fixture
def trusted(tmp_path: Path) -> Path:
    new_key(tmp_path / "alice", "alice")
    return tmp_path / "alice.pub"


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A file with a right digest, that is nothing else: whoever reads more of it says so."""
    path = tmp_path / "stranger.onnx"
    path.write_bytes(seal(b"\xff" * 100 + DIGEST_KEY.encode() + b"\x12\x40" + NO_DIGEST.encode() + b"\xff" * 100))
    with pytest.raises(BundleError, match="a number that doesn't end"):
        Bundle.read(path)
    return path


COMMANDS: dict[str, Callable[[str, str], list[str]]] = {
    "run": lambda file, keys: ["run", file, "--driver", "simulated", "--trusted-keys", keys],
    "run native": lambda file, keys: ["run", file, "--driver", "simulated", "--native", "--trusted-keys", keys],
    "inspect": lambda file, keys: ["inspect", file, "--trusted-keys", keys],
    "firmware": lambda file, keys: ["firmware", file, "--trusted-keys", keys],
    "ros install": lambda file, keys: ["ros", "install", file, "--parameter", f"trusted_keys:={keys}"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_read_nothing_of_an_unsigned_file(
    command: str, stranger: Path, trusted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(COMMANDS[command](str(stranger), str(trusted)))
    assert ended.value.code == 1
    assert "not signed; expected a signature by a key in" in capsys.readouterr().err


@pytest.mark.parametrize("rate", [None, 100.0])
def test_policies_of_robots_read_nothing_of_an_unsigned_file(rate: float | None, stranger: Path, trusted: Path) -> None:
    with pytest.raises(SignatureError, match="not signed"):
        Policy.load(stranger, rate, trusted_keys=trusted)


def test_the_node_reads_nothing_of_an_unsigned_file(stranger: Path, trusted: Path) -> None:
    pytest.importorskip("rclpy")
    from robo_rl.ros.loading import load

    with pytest.raises(SignatureError, match="not signed"):
        load(str(stranger), trusted_keys=str(trusted))


def test_a_file_that_takes_the_place_of_a_signed_one_is_not_read(
    bundle_file: Path, stranger: Path, trusted: Path, tmp_path: Path
) -> None:
    """Between the look at the signature and the reading."""
    path = tmp_path / "policy.onnx"
    path.write_bytes(bundle_file.read_bytes())
    sign(path, tmp_path / "alice")
    assert read_signed(path, trusted)[1].startswith("alice")
    digest, _ = require_trusted(path, trusted)
    path.write_bytes(stranger.read_bytes())
    with pytest.raises(BundleError, match="it was replaced meanwhile"):
        Bundle.read(path, expected=digest)


def test_a_policy_runs_at_its_contract_s_rate_where_none_is_given(bundle_file: Path) -> None:
    policy = Policy.load(bundle_file, None)
    assert policy.contract == Bundle.read(bundle_file).contract
