"""robo-rl keys."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path
from typing import Annotated, Literal

import tyro

from robo_rl.console import give, say, say_next


def main(
    what: Annotated[Literal["new"], tyro.conf.Positional],
    file: Annotated[Path, tyro.conf.Positional],
    name: str = "",
    passphrase: bool = False,
    json: bool = False,
) -> int:
    """Make a pair of keys to sign policy files with: FILE, which is secret, and FILE.pub, for those who trust you.

    They are Ed25519 keys of OpenSSH. With --json: file, public, name, fingerprint.

    Args:
        what: new.
        file: Where the private key is written, for your eyes alone; the public one has .pub added.
        name: Of the key, for people; by default you and this computer.
        passphrase: Ask for a passphrase, which the private key needs from then on.
        json: Print one JSON object on the last line of stdout.
    """
    from robo_rl.deploy.robot.bundle.signing import new_key

    words = ""
    if passphrase:
        words = getpass.getpass("New passphrase: ")
        if not words or getpass.getpass("Again: ") != words:
            raise ValueError("the passphrases are empty or differ; no key was made")
    key = new_key(file, name or f"{getpass.getuser()}@{socket.gethostname()}", words)
    public = file.with_name(file.name + ".pub")
    say(f"{file}: the private key; keep it secret, and a copy in a safe place", json)
    say(f"{public}: {key}", json)
    say_next([f"robo-rl sign policy.onnx --key {file}", f"cat {public} >> trusted_keys"], json)
    give({"file": str(file), "public": str(public), "name": key.name, "fingerprint": key.fingerprint}, json)
    return 0
