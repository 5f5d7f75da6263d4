"""Only what a trusted key signed runs, where that is asked for: in Python, in the node, in the firmware command."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto

pytest.importorskip("cryptography", reason="cryptography is missing: pip install 'robo-rl[sign]'")

from robo_rl.cli import main
from robo_rl.deploy.robot.bundle import Bundle, BundleError
from robo_rl.deploy.robot.bundle.signing import (  # fmt: skip
    SignatureError,
    is_encrypted,
    new_key,
    read_trusted,
    require_trusted,
    sign,
    signature_file,
    signers,
)
from robo_rl.deploy.robot.runtime import Policy

Resealed = Callable[[Callable[[ModelProto], None]], Path]


@pytest.fixture
def signed(bundle_file: Path, tmp_path: Path) -> Path:
    """A copy of the bundle, signed by ``alice``, whom ``trusted`` names."""
    path = Path(shutil.copy(bundle_file, tmp_path / "policy.onnx"))
    new_key(tmp_path / "alice", "alice")
    new_key(tmp_path / "mallory", "mallory")
    sign(path, tmp_path / "alice")
    shutil.copy(tmp_path / "alice.pub", tmp_path / "trusted")
    return path


def rate(path: Path) -> float:
    return 1 / Bundle.read(path).contract.control_period


def test_a_trusted_signature_is_accepted_and_says_who_signed(signed: Path, tmp_path: Path) -> None:
    policy = Policy.load(signed, rate(signed), trusted_keys=tmp_path / "trusted")
    (alice,) = read_trusted(tmp_path / "trusted")
    assert policy.signer == f"alice ({alice.fingerprint})"
    assert Policy.load(signed, rate(signed)).signer == ""


def test_signing_changes_not_a_byte_of_the_bundle(signed: Path, bundle_file: Path) -> None:
    assert signed.read_bytes() == bundle_file.read_bytes()


def test_nothing_else_is_run(signed: Path, tmp_path: Path, resealed: Resealed) -> None:
    trusted, hz = tmp_path / "trusted", rate(signed)

    def refused(path: Path, told: str) -> None:
        with pytest.raises(SignatureError, match=told):
            Policy.load(path, hz, trusted_keys=trusted)

    other = resealed(lambda model: setattr(model, "doc_string", "changed, and sealed anew"))
    assert Bundle.read(other).digest != Bundle.read(signed).digest
    refused(other, r"changed\.onnx: not signed; expected a signature by a key in")
    shutil.copy(signature_file(signed), signature_file(other))
    refused(other, "a signature is wrong \\(it is of another file, or was changed\\)")
    sign(other, tmp_path / "mallory")
    assert len(signers(other, Bundle.read(other).digest)) == 1, "signatures of the earlier file are taken away"
    refused(other, r"changed\.onnx: signed by SHA256:.*; expected a signature by a key in")
    data = json.loads(signature_file(signed).read_text())
    data["signatures"][0]["key"] = (tmp_path / "mallory.pub").read_text().split()[1]
    signature_file(signed).write_text(json.dumps(data))
    refused(signed, "a signature is wrong")
    signature_file(signed).unlink()
    refused(signed, "not signed")


def test_several_can_sign_and_a_key_signs_once(signed: Path, tmp_path: Path) -> None:
    for name in ("mallory", "alice", "alice"):
        sign(signed, tmp_path / name)
    assert len(signers(signed, Bundle.read(signed).digest)) == 2
    assert require_trusted(signed, tmp_path / "trusted")[1].name == "alice"
    assert require_trusted(signed, tmp_path / "mallory.pub")[1].name == "mallory"


def test_what_nobody_trusted_signed_is_not_even_parsed(bundle_file: Path, tmp_path: Path) -> None:
    """Its digest is right, and the rest is no ONNX."""
    from robo_rl.deploy.robot.bundle import seal

    path = tmp_path / "garbage.onnx"
    path.write_bytes(seal(b"\xff" * 100 + b"robo_rl.digest\x12\x40" + b"0" * 64))
    new_key(tmp_path / "alice", "alice")
    with pytest.raises(SignatureError, match="not signed"):
        Policy.load(path, 100, trusted_keys=tmp_path / "alice.pub")
    with pytest.raises(BundleError):
        sign(path, tmp_path / "alice")
    assert not signature_file(path).exists()


def test_the_private_key_is_for_its_owner_alone_and_is_never_replaced(tmp_path: Path) -> None:
    new_key(tmp_path / "key", "me")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    with pytest.raises(SignatureError, match="exists; a key is never replaced"):
        new_key(tmp_path / "key", "me")
    with pytest.raises(SignatureError, match="expected 1 to 64 letters"):
        new_key(tmp_path / "other", "me\nssh-ed25519 AAAA")


def test_a_key_with_a_passphrase_signs_with_it_and_not_without(signed: Path, tmp_path: Path) -> None:
    new_key(tmp_path / "locked", "bob", "open sesame")
    assert is_encrypted(tmp_path / "locked")
    for words in ("", "wrong"):
        with pytest.raises(SignatureError, match="its passphrase is another"):
            sign(signed, tmp_path / "locked", words)
    sign(signed, tmp_path / "locked", "open sesame")
    assert require_trusted(signed, tmp_path / "locked.pub")[1].name == "bob"


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is missing: apt-get install openssh-client")
def test_keys_are_those_of_openssh(signed: Path, tmp_path: Path) -> None:
    key = new_key(tmp_path / "ours", "ours")
    shown = subprocess.run(["ssh-keygen", "-l", "-f", str(tmp_path / "ours.pub")], capture_output=True, text=True)
    assert key.fingerprint in shown.stdout
    derived = subprocess.run(["ssh-keygen", "-y", "-f", str(tmp_path / "ours")], capture_output=True, text=True)
    assert key.text in derived.stdout
    theirs = tmp_path / "theirs"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "their name", "-f", str(theirs)]
    subprocess.run(command, check=True)
    sign(signed, theirs)
    assert require_trusted(signed, tmp_path / "theirs.pub")[1].name == "their name"


def test_where_the_package_is_missing_nothing_runs_and_the_sentence_says_what_to_do(
    signed: Path, tmp_path: Path
) -> None:
    code = f"""
import sys
sys.modules["cryptography"] = None
from robo_rl.deploy.robot.runtime import Policy
Policy.load({str(signed)!r}, {rate(signed)})
try:
    Policy.load({str(signed)!r}, {rate(signed)}, trusted_keys={str(tmp_path / "trusted")!r})
except ValueError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "need the package 'cryptography', on the robot's computer too: pip install 'robo-rl[sign]'" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no key in it"),
        ("# nothing\n", "no key in it"),
        ("ssh-rsa AAAA me\n", "line 1: 'ssh-rsa AAAA me'; expected 'ssh-ed25519'"),
        ("ssh-ed25519 AAAA me\n", "line 1"),
        ("\0\xff", "line 1"),
    ],
)
def test_a_file_of_keys_that_is_none_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "keys").write_text(text)
    with pytest.raises(SignatureError, match=told):
        read_trusted(tmp_path / "keys")
    with pytest.raises(SignatureError, match="there is no such file"):
        read_trusted(tmp_path / "nowhere")


KEYS = st.sampled_from(["format", "digest", "signatures", "key", "signature"])
STRANGE = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=300) | STRANGE.map(lambda data: json.dumps(data).encode()))
def test_a_strange_signature_file_is_refused_in_a_sentence(signed: Path, tmp_path: Path, data: bytes) -> None:
    signature_file(signed).write_bytes(data)
    with pytest.raises(SignatureError, match="policy"):
        require_trusted(signed, tmp_path / "trusted")


def test_the_commands_make_keys_sign_show_and_refuse(
    bundle_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], resealed: Resealed
) -> None:
    def run(*words: object, code: int = 0) -> dict:
        with pytest.raises(SystemExit) as exit:
            main([*map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert int(exit.value.code or 0) == code, err
        return json.loads(out) if code == 0 else {"error": err}

    path = Path(shutil.copy(bundle_file, tmp_path / "policy.onnx"))
    assert run("inspect", path)["signers"] == []
    made = run("keys", "new", tmp_path / "me", "--name", "carol")
    found = run("sign", path, "--key", tmp_path / "me")
    assert found["fingerprint"] == made["fingerprint"]
    assert found["digest"] == Bundle.read(path).digest
    assert run("inspect", path)["signers"] == [{"fingerprint": made["fingerprint"], "name": ""}]
    told = run("inspect", path, "--trusted-keys", made["public"])
    assert told["signers"] == [{"fingerprint": made["fingerprint"], "name": "carol"}]
    words = ["--target", "host", "--trusted-keys", made["public"], "--out", tmp_path / "c"]
    assert run("firmware", path, *words)["signer"] == f"carol ({made['fingerprint']})"
    changed = resealed(lambda model: setattr(model, "doc_string", "changed"))
    shutil.rmtree(tmp_path / "c")
    assert "not signed; expected a signature by a key in" in run("firmware", changed, *words, code=1)["error"]
    assert not (tmp_path / "c").exists()


def test_the_node_loads_only_what_is_signed(signed: Path, tmp_path: Path, resealed: Resealed) -> None:
    from robo_rl.ros.loading import load

    policy, _ = load(str(signed), trusted_keys=str(tmp_path / "trusted"))
    assert policy.signer.startswith("alice (SHA256:")
    changed = resealed(lambda model: model.metadata_props.add(key="more", value="text"))
    onnx.load(str(changed))
    with pytest.raises(BundleError, match="not signed"):
        load(str(changed), trusted_keys=str(tmp_path / "trusted"))
