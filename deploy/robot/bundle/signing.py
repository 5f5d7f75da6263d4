"""Who vouches for a bundle: Ed25519 signatures beside the file, checked against keys that somebody trusts.

    robo-rl keys new signer            signer: the private key; signer.pub: the public one
    robo-rl sign policy.onnx --key signer
    Policy.load("policy.onnx", 100, trusted_keys="trusted_keys")

Keys are those of OpenSSH, so ``ssh-keygen -t ed25519`` makes them too; a file of trusted keys has one public key per
line. A signature is over the bundle's digest, which covers the whole file, and lies in ``FILE.sig``: the file itself
stays what was tested, several people can sign it, and a signature can be added or taken away.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robo_rl.deploy.robot.bundle import Bundle, BundleError, file_digest
from robo_rl.files import read_bytes, write
from robo_rl.zoo import located

FORMAT = "robo-rl signatures 1"
DOMAIN = b"robo-rl bundle, SHA-256 "
"""Begins every signed text, so that no signature of another program with the same key is one of a bundle."""
MOST_BYTES, MOST_SIGNATURES = 1 << 16, 16
KIND = "ssh-ed25519"


class SignatureError(BundleError):
    """A bundle is not signed by whom it has to be, or a key is none. The message names the file."""


@dataclass(frozen=True)
class Key:
    """A public key, as OpenSSH writes it in base 64."""

    text: str
    name: str = ""
    """What the file that it was read from calls it; a signature tells none."""

    @property
    def fingerprint(self) -> str:
        """As ``ssh-keygen -l`` shows it."""
        digest = hashlib.sha256(base64.b64decode(self.text)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    def __str__(self) -> str:
        return f"{self.name} ({self.fingerprint})" if self.name else self.fingerprint


def new_key(path: Path, name: str, passphrase: str = "") -> Key:
    """Write a new private key to ``path``, that its owner alone may read, and the public key beside it, ``.pub``."""
    serialization, ed25519 = _library()
    if not re.fullmatch(r"[\w.@+-]{1,64}", name, re.ASCII):
        raise SignatureError(f"the key's name is {name[:80]!r}; expected 1 to 64 letters, digits and _ . @ + -")
    public = path.with_name(path.name + ".pub")
    for there in (path, public):
        if there.exists():
            raise SignatureError(f"{there} exists; a key is never replaced. Choose another name, or remove it")
    made = ed25519.Ed25519PrivateKey.generate()
    encryption = (
        serialization.BestAvailableEncryption(passphrase.encode()) if passphrase else serialization.NoEncryption()
    )
    private = made.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, encryption)
    key = Key(_public_text(made.public_key()), name)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(private)
    write(public, f"{KIND} {key.text} {key.name}\n")
    return key


def is_encrypted(path: Path) -> bool:
    """Whether a private key needs a passphrase."""
    return _private(path, "") is None


def sign(path: Path, private: Path, passphrase: str = "") -> tuple[str, Key]:
    """Add a signature to ``FILE.sig``, after all checks of the bundle at ``path``; returns its digest and the key.

    Signatures of an earlier file of that name are taken away.
    """
    made = _private(private, passphrase)
    if made is None:
        raise SignatureError(f"{private}: its passphrase is another")
    digest = Bundle.read(path).digest
    key = Key(_public_text(made.public_key()))
    signature = base64.b64encode(made.sign(DOMAIN + digest.encode())).decode()
    known = [(of, text) for of, text in _entries(path) if of != key.text and _digest_of(path) == digest]
    _write_entries(path, digest, [*known, (key.text, signature)])
    return digest, key


def signers(path: Path, digest: str) -> list[Key]:
    """The keys whose signatures of the bundle with this digest are right; SignatureError if one is wrong."""
    entries = _entries(path)
    if not entries:
        return []
    serialization, ed25519 = _library()
    from cryptography.exceptions import InvalidSignature

    for text, signature in entries:
        try:
            public = serialization.load_ssh_public_key(f"{KIND} {text}".encode())
            if not isinstance(public, ed25519.Ed25519PublicKey):
                raise ValueError("not of Ed25519")
            public.verify(base64.b64decode(signature, validate=True), DOMAIN + digest.encode())
        except (InvalidSignature, ValueError) as error:
            why = "it is of another file, or was changed" if isinstance(error, InvalidSignature) else str(error)
            raise SignatureError(f"{signature_file(path)}: a signature is wrong ({why}); sign again") from None
    return [Key(text) for text, _ in entries]


def read_trusted(path: Path) -> list[Key]:
    """The keys of a file: one public key of OpenSSH per line, and a name; lines that begin with # are not read."""
    if not path.is_file():
        raise SignatureError(f"{path}: there is no such file; expected public keys, one per line ({KIND} … NAME)")
    keys = []
    for number, line in enumerate(_small(path, 1 << 20).decode(errors="replace").splitlines(), 1):
        words = line.split(None, 2)
        if not words or words[0].startswith("#"):
            continue
        if len(words) < 2 or words[0] != KIND or not _is_public(words[1]):
            raise SignatureError(f"{path}, line {number}: {line[:60]!r}; expected '{KIND}', a public key, and a name")
        keys.append(Key(words[1], words[2].strip() if len(words) > 2 else ""))
    if not keys:
        raise SignatureError(f"{path}: no key in it; expected at least one line '{KIND} … NAME'")
    return keys


def require_trusted(path: str | Path, trusted: str | Path) -> tuple[str, Key]:
    """The digest of the bundle at ``path``, and the first of the keys in the file ``trusted`` that signed it.

    SignatureError if none did. Nothing of the file is interpreted, but its digest computed: what a stranger wrote goes
    no further. Whoever reads the file after that compares the digest.
    """
    path, keys = located(path), read_trusted(Path(trusted))
    digest = file_digest(path)
    signed = {key.text for key in signers(path, digest)}
    for key in keys:
        if key.text in signed:
            return digest, key
    by = f"signed by {', '.join(str(Key(text)) for text in sorted(signed))}" if signed else "not signed"
    raise SignatureError(f"{path}: {by}; expected a signature by a key in {trusted} (robo-rl sign FILE --key KEY)")


def read_signed(path: str | Path, trusted: str | Path | None) -> tuple[Bundle, str]:
    """A bundle, and who signed it: "" where ``trusted`` is None and nobody had to."""
    if not trusted:
        return Bundle.read(path), ""
    path = located(path)
    digest, key = require_trusted(path, trusted)
    return Bundle.read(path, expected=digest), str(key)


def signature_file(path: Path) -> Path:
    """Where the signatures of a file are."""
    return path.with_name(path.name + ".sig")


def _digest_of(path: Path) -> str:
    """The digest that ``FILE.sig`` says its signatures are of."""
    return str(json.loads(_small(signature_file(path))).get("digest"))


def _entries(path: Path) -> list[tuple[str, str]]:
    """Public key and signature of each in ``FILE.sig``; nothing was checked but the format."""
    path = signature_file(path)
    if not path.is_file():
        return []
    try:
        data = json.loads(_small(path))
        entries = [(one["key"], one["signature"]) for one in data["signatures"]]
        if data["format"] != FORMAT or len(entries) > MOST_SIGNATURES:
            raise ValueError("another format, or too many signatures")
        if not all(isinstance(text, str) and text.isascii() for pair in entries for text in pair):
            raise ValueError("a key or a signature is no text")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SignatureError(f"{path}: not signatures of robo-rl ({str(error)[:200]}); sign again") from None
    return entries


def _write_entries(path: Path, digest: str, entries: list[tuple[str, str]]) -> None:
    signatures = [{"key": key, "signature": signature} for key, signature in entries]
    data = {"format": FORMAT, "digest": digest, "signatures": signatures}
    write(signature_file(path), json.dumps(data, indent=1) + "\n")


def _private(path: Path, passphrase: str) -> Any:
    """The private key in a file; None if it needs another passphrase."""
    serialization, ed25519 = _library()
    if not path.is_file():
        raise SignatureError(f"{path}: there is no such file; expected a private key (robo-rl keys new NAME)")
    data = _small(path)
    if b"PUBLIC KEY" in data or data.startswith(KIND.encode()):
        raise SignatureError(f"{path}: a public key; expected the private one, without .pub")
    try:
        made = serialization.load_ssh_private_key(data, passphrase.encode() or None)
    except TypeError:
        return None
    except Exception as error:  # the library's errors share no type below Exception
        if passphrase:
            return None
        raise SignatureError(f"{path}: not a private key of OpenSSH ({str(error)[:100]})") from None
    if not isinstance(made, ed25519.Ed25519PrivateKey):
        raise SignatureError(f"{path}: a key of another kind; expected Ed25519 (robo-rl keys new NAME)")
    return made


def _small(path: Path, most: int = MOST_BYTES) -> bytes:
    try:
        return read_bytes(path, most)
    except ValueError as error:
        raise SignatureError(str(error)) from None


def _public_text(public: Any) -> str:
    serialization, _ = _library()
    line = public.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return line.decode().split()[1]


def _is_public(text: str) -> bool:
    """Whether a text is the base 64 of an Ed25519 key: its kind and 32 bytes, with their lengths (RFC 8709)."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return len(data) == 51 and data[:19] == b"\0\0\0\x0bssh-ed25519\0\0\0\x20"


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError:
        raise SignatureError(
            "signatures need the package 'cryptography', on the robot's computer too: pip install 'robo-rl[sign]'"
        ) from None
    return serialization, ed25519
