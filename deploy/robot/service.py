"""What a robot's computer is given so that its node is there after every start: a udev rule, a systemd unit, limits.

The node starts unconfigured, and so does nothing: who operates the robot configures and arms it (``robo-rl ros
configure``, ``activate``, ``engage``). A unit that fails is not started again: after a fault somebody looks first.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from robo_rl.deploy.robot.realtime import PRIORITY
from robo_rl.files import interpreter

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}\$?")
KEPT = ("AMENT_PREFIX_PATH", "CYCLONEDDS_HOME", "CYCLONEDDS_URI", "FASTRTPS_DEFAULT_PROFILES_FILE",
        "LD_LIBRARY_PATH", "PYTHONPATH", "RMW_IMPLEMENTATION", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_DISTRO",
        "ROS_DOMAIN_ID", "ROS_PYTHON_VERSION", "ROS_SECURITY_ENABLE", "ROS_SECURITY_KEYSTORE",
        "ROS_SECURITY_STRATEGY", "ROS_STATIC_PEERS", "ROS_VERSION")  # fmt: skip
"""Variables of the shell that the service has too: where ROS is, and how it talks."""


@dataclass(frozen=True)
class Usb:
    """A robot's adapter, as ``lsusb`` tells it."""

    vendor: str
    product: str
    what: str


ADAPTERS = {
    "so101": Usb("1a86", "55d3", "the bus adapter of an SO-101 (QinHeng CH343)"),
    "dynamixel": Usb("0403", "6014", "a U2D2 of ROBOTIS (FTDI FT232H)"),
    "f1tenth": Usb("0483", "5740", "a VESC (vedderb/bldc, usbcfg.c)"),
}
"""By driver: those on USB."""


def udev_rule(driver: str) -> str:
    """The adapter is /dev/robo-rl-DRIVER, for the group dialout; an FTDI one hands on its bytes within 1 ms."""
    usb = ADAPTERS[driver]
    match = f'SUBSYSTEM=="tty", ATTRS{{idVendor}}=="{usb.vendor}", ATTRS{{idProduct}}=="{usb.product}"'
    return (
        f'# {usb.what}; with two of them add ATTRS{{serial}}=="…" (udevadm info -a /dev/ttyACM0)\n'
        f'{match}, SYMLINK+="robo-rl-{driver}", GROUP="dialout", MODE="0660", ENV{{ID_MM_DEVICE_IGNORE}}="1"\n'
        'ACTION=="add", SUBSYSTEM=="usb-serial", DRIVER=="ftdi_sio", ATTR{latency_timer}="1"\n'
    )


def limits(user: str) -> str:
    """For sessions of this user: a real-time priority, and memory that is not paged out."""
    return f"{user} - rtprio {PRIORITY}\n{user} - memlock unlimited\n"


LOCKED = """NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
LockPersonality=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
KeyringMode=private
UMask=0027
"""
"""What the service may not, whatever becomes of it: no rights of others, no system calls but those of services, nothing
written but where ``unit`` says. Real-time scheduling and locked memory it needs; memory that is written and run, too:
ctypes makes it."""


def devices(driver: str) -> str:
    """The only devices, beside those that every program needs: serial lines, where the robot is on one."""
    kinds = ("char-ttyACM", "char-ttyUSB") if driver in ADAPTERS else ()
    return "".join(["DevicePolicy=closed\n", *(f"DeviceAllow={kind} rw\n" for kind in kinds)])


def unit(
    name: str, command: Sequence[str], user: str, folder: str, environment: Mapping[str, str], driver: str = "",
    written: Sequence[str] = (),
) -> str:  # fmt: skip
    """A systemd unit that runs ``command`` in ``folder``, and writes only below the paths ``written``, logs of ROS and
    compiled policies. ValueError for what systemd can't hold."""
    home = Path.home()
    places = [place.replace("%", "%%") for place in (*written, str(home / ".ros"), str(home / ".cache/robo-rl"))]
    if any(ord(character) < 32 or character == '"' for place in places for character in place):
        raise ValueError(f"the folders {str(list(written))[:80]} have characters that a unit can't hold")
    open_for_writing = "".join(f'ReadWritePaths="-{place}"\n' for place in places)
    variables = "".join(f"Environment={quoted(f'{key}={value}')}\n" for key, value in environment.items())
    if any(ord(character) < 32 for character in folder):
        raise ValueError(f"the folder {folder[:60]!r} has characters that a unit can't hold")
    return f"""[Unit]
Description=robo-rl: {name}
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
User={user}
SupplementaryGroups=dialout
WorkingDirectory={folder.replace("%", "%%")}
{variables}ExecStart={" ".join(map(quoted, command))}
TimeoutStopSec=20
Restart=no
CPUSchedulingPolicy=fifo
CPUSchedulingPriority={PRIORITY}
LimitRTPRIO={PRIORITY}
LimitMEMLOCK=infinity
{LOCKED}{open_for_writing}{devices(driver)}
[Install]
WantedBy=multi-user.target
"""


def quoted(word: str) -> str:
    """As a unit's lines take it. ValueError for control characters."""
    if any(ord(character) < 32 for character in word):
        raise ValueError(f"{word[:60]!r} has characters that a unit can't hold")
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"'


def install(out: Path, name: str, driver: str, arguments: Sequence[str], written: Sequence[str] = ()) -> list[str]:
    """Write the files into the folder ``out``; the commands that put them in place.

    ``arguments`` are those of ``robo-rl``, ``written`` the folders that it writes to. ValueError for a name that is no
    unit's.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"the name {name[:60]!r} is no unit's; expected lower-case letters, digits, - and _")
    user = getpass.getuser()
    if not USER.fullmatch(user):
        raise ValueError(f"the user {user[:60]!r} can't be written into a unit")
    command = interpreter.module("robo_rl", *arguments)
    kept = {key: os.environ[key] for key in KEPT if os.environ.get(key)}
    files = {
        f"{name}.service": (unit(name, command, user, str(Path.cwd()), kept, driver, written), "/etc/systemd/system"),
        f"{name}-limits.conf": (limits(user), "/etc/security/limits.d"),
    }
    if driver in ADAPTERS:
        files[f"99-{name}.rules"] = (udev_rule(driver), "/etc/udev/rules.d")
    out.mkdir(parents=True, exist_ok=True)
    todo = []
    for file, (text, place) in files.items():
        (out / file).write_text(text)
        todo.append(f"sudo install -m 644 {out / file} {place}/")
    reload = "sudo udevadm control --reload && sudo udevadm trigger && " if driver in ADAPTERS else ""
    return [*todo, f"{reload}sudo systemctl daemon-reload && sudo systemctl enable --now {name}"]
