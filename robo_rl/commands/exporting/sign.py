"""robo-rl sign."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import tyro

from robo_rl.console import give, say


def main(file: Annotated[Path, tyro.conf.Positional], key: Path, json: bool = False) -> int:
    """Sign a policy file: robots that are told to trust your key run it, and no file that anybody changed.

    The file is checked first, with its golden vectors, and stays as it is; the signature is written beside it, to
    FILE.sig. With --json: file, digest, signature, fingerprint.

    Args:
        file: A bundle (*.onnx).
        key: Your private key, of 'robo-rl keys new' or 'ssh-keygen -t ed25519'.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.deploy.robot.bundle import Bundle
    from robo_rl.deploy.robot.bundle.signing import is_encrypted, sign, signature_file
    from robo_rl.deploy.robot.runtime import GOLDEN_TOLERANCE

    error = Bundle.read(file).golden_error()
    if not error <= GOLDEN_TOLERANCE:
        raise ValueError(f"{file}: its golden vectors come out wrong by {error:.2g} here; it was not signed")
    passphrase = getpass.getpass(f"Passphrase of {key}: ") if is_encrypted(key) else ""
    digest, signer = sign(file, key, passphrase)
    say(f"{signature_file(file)}: signed by {signer.fingerprint}", json)
    say(f"  digest {digest}", json)
    told = {"signature": str(signature_file(file)), "fingerprint": signer.fingerprint}
    give({"file": str(file), "digest": digest, **told}, json)
    return 0
