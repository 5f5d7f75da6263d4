"""Files as somebody makes them who means harm: cards, ranges, models, logs and runs. All are made here."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robo_rl.contract import Contract
from robo_rl.sim.robots import FOLDER

Make = Callable[[Path], Path]
"""Writes the file into a folder, and tells where it is."""

CARD = (FOLDER / "crazyflie/card.toml").read_text()
LEGS = (FOLDER / "a1/card.toml").read_text()
DEEP = 100_000
EVIL = "open('ESCAPED', 'w').write('x')"


def _text(name: str, text: str | bytes) -> Make:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def _replaced(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


def _title(text: str) -> str:
    line = next(line for line in CARD.splitlines() if line.startswith("title"))
    return _replaced(CARD, line, f"title = {text}")


TOML: Mapping[str, str | bytes] = {
    "arrays in arrays": "a = " + "[" * DEEP + "]" * DEEP,
    "tables in tables": "a = " + "{a = " * DEEP + "1" + "}" * DEEP,
    "a dotted key": ".".join("a" * DEEP) + " = 1",
    "a dotted header": "[" + ".".join("a" * DEEP) + "]",
    "many dotted headers": "".join(f"[{'.'.join('a' * 200)}.b{i}]\n" for i in range(1500)),
    "too large": "# " + "x" * (1 << 21),
    "a number of 5000 digits": "a = " + "9" * 5000,
    "a number of 400 digits": "a = " + "9" * 400,
    "a number of 400 hexadecimal digits": "a = 0x" + "f" * 400,
    "a date": "a = 1979-05-27T07:32:00Z",
    "no text": b"\xff\xfe\x00a = 1",
    "a null": b"a = \"\x00\"",
    "an escape": 'a = "\\u001b[2J"',
    "a key with an escape": '"\\u001b[2J" = 1',
    "a long text": 'a = "' + "x" * 100_000 + '"',
    "a text without end": 'a = """' + "x" * 1000,
    "nothing": "",
    "binary": bytes(range(256)) * 100,
    "a lone surrogate": 'a = "\\ud800"',
    "a key of three quotes": '"""a""" = 1',
}  # fmt: skip
"""Of any kind of TOML file."""

CARDS: dict[str, Make] = {
    **{f"TOML: {what}": _text("robot.toml", text) for what, text in TOML.items()},
    "kind is a list": _text("robot.toml", _replaced(CARD, 'kind = "multirotor"', "kind = []")),
    "kind is a module": _text("robot.toml", _replaced(CARD, 'kind = "multirotor"', 'kind = "os"')),
    "title is a number": _text("robot.toml", _title("7")),
    "title is a control sequence": _text("robot.toml", _title('"\\u001b]0;x\\u0007"')),
    "title is two lines": _text("robot.toml", _title('"a\\nb"')),
    "title turns the text around": _text("robot.toml", _title('"\\u202e"')),
    "rotor is a comment": _text("robot.toml", _replaced(CARD, 'name = "', 'name = "*/ int a; /*')),
    "rotor is a formula": _text("robot.toml", _replaced(CARD, 'name = "', 'name = "$\\\\frac{')),
    "rotors are text": _text("robot.toml", CARD.split("[[rotors]]")[0] + "\nrotors = 'x'\n"),
    "many rotors": _text(
        "robot.toml", CARD.split("[[rotors]]")[0] + "[[rotors]]\nname='a'\nposition=[0, 0, 0]\nspin='cw'\n" * 15_000
    ),
    "name is a comment": _text("*- x.toml", CARD),
    "model is elsewhere": _text("robot.toml", LEGS.replace('model = "', 'model = "../../../')),
    "model is a password file": _text("robot.toml", "\n".join(
        'model = "/etc/passwd"' if line.startswith("model") else line for line in LEGS.splitlines())),
    "figures are not finite": _text("robot.toml", _replaced(CARD, "value = ", "value = nan # ")),
}  # fmt: skip

RANGES: dict[str, Make] = {
    **{f"TOML: {what}": _text("ranges.toml", text) for what, text in TOML.items()},
    "bounds of 400 digits": _text("ranges.toml", f"[ranges]\npayload = [0, {'9' * 400}]"),
    "bounds are not finite": _text("ranges.toml", "[ranges]\npayload = [nan, inf]"),
    "task is a file": _text("ranges.toml", "task = 'evil.py:Evil'\n[ranges]\npayload = [0, 1]"),
}


def _model(text: str | bytes) -> Make:
    def make(folder: Path) -> Path:
        line = next(line for line in LEGS.splitlines() if line.startswith("model"))
        (folder / "robot.xml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return _text("robot.toml", _replaced(LEGS, line, 'model = "robot.xml"'))(folder)

    return make


def _mjcf(inside: str, before: str = "") -> Make:
    return _model(f"<mujoco>{before}<worldbody>{inside}</worldbody></mujoco>")


GEOM = '<geom size="1"/>'
ENTITIES = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 30))
MODELS: dict[str, Make] = {
    "a billion replicas": _mjcf(f'<replicate count="1000000000" offset="1 0 0">{GEOM}</replicate>'),
    "replicas of replicas": _mjcf('<replicate count="2000">' * 4 + GEOM + "</replicate>" * 4),
    "a file that includes itself": _model('<mujoco><include file="robot.xml"/></mujoco>'),
    "bodies in bodies": _mjcf("<body>" * 50_000 + GEOM + "</body>" * 50_000),
    "elements in elements": _model("<a>" * DEEP + "</a>" * DEEP),
    "a large height field": _mjcf('<geom type="hfield" hfield="h"/>',
                                  '<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>'),
    "a large texture": _mjcf(GEOM, '<asset><texture name="t" type="2d" builtin="flat" width="60000" height="60000"/>'
                             "</asset>"),
    "much memory": _mjcf(f"<body><freejoint/>{GEOM}</body>", '<size memory="900G"/>'),
    "much user data": _mjcf(GEOM, '<size nuserdata="2000000000"/>'),
    "much data per body": _mjcf(GEOM, '<size nuser_body="2000000000"/>'),
    "a large cloth": _mjcf('<flexcomp name="f" type="grid" count="2000 2000 2000" spacing="1 1 1" dim="3"/>'),
    "a long cable": _mjcf('<composite type="cable" count="100000000 1 1" curve="s" size="1"><geom size=".1"/>'
                          "</composite>"),
    "an endless mesh": _mjcf('<geom type="mesh" mesh="m"/>', '<asset><mesh name="m" file="/dev/zero"/></asset>'),
    "an entity that is everything": _model(f'<!DOCTYPE a [<!ENTITY a0 "x">{ENTITIES}]><mujoco model="&a29;"/>'),
    "an entity that is a file": _model('<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="&a;"/>'),
    "a plugin": _mjcf(GEOM, '<extension><plugin plugin="../../evil"/></extension>'),
    "numbers without end": _mjcf('<geom size="' + "1 " * 1_000_000 + '"/>'),
    "sizes that are not finite": _mjcf('<geom size="nan"/>'),
    "no XML": _model(bytes(range(256)) * 10),
    "nothing": _model(""),
    "links of a URDF in a circle": _model(
        '<robot name="a"><link name="a"/><link name="b"/><joint name="c" type="fixed"><parent link="a"/>'
        '<child link="b"/></joint><joint name="d" type="fixed"><parent link="b"/><child link="a"/></joint></robot>'),
}  # fmt: skip


# --- logs -----------------------------------------------------------------------------------------------------------

MAGIC = b"\x89MCAP0\r\n"


def text(value: str | bytes) -> bytes:
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<I", len(data)) + data


def record(kind: int, body: bytes) -> bytes:
    return struct.pack("<BQ", kind, len(body)) + body


def chunk(packed: bytes, size: int, compression: str = "zstd") -> bytes:
    body = struct.pack("<QQQI", 0, 0, size, 0) + text(compression) + struct.pack("<Q", len(packed)) + packed
    return record(6, body)


def schema(number: int, name: str, definition: str | bytes, encoding: str = "ros2msg") -> bytes:
    return record(3, struct.pack("<H", number) + text(name) + text(encoding) + text(definition))


def channel(number: int, kind: int, topic: str) -> bytes:
    return record(4, struct.pack("<HH", number, kind) + text(topic) + text("cdr") + text(b""))


def message(number: int, data: bytes, time: int = 0) -> bytes:
    return record(5, struct.pack("<HIQQ", number, 0, time, time) + data)


def _string(value: str) -> bytes:
    data = value.encode() + b"\0"
    return b"\0\1\0\0" + struct.pack("<I", len(data)) + data


def _begun(contract: Contract) -> bytes:
    """The beginning of a log's first chunk: all types of messages, the contract, and channels for the rest."""
    from robo_rl.deploy.robot.logs.cdr import ARRAY, DEFINITIONS, JOINT_STATE, STRING

    kinds = {name: i + 1 for i, name in enumerate(DEFINITIONS)}
    data = b"".join(schema(number, name, DEFINITIONS[name]) for name, number in kinds.items())
    data += channel(1, kinds[STRING], "/policy/contract") + channel(2, kinds[ARRAY], "/policy/memory")
    for i, name in enumerate(("signals", "stamps", "sent", "gate")):
        data += channel(3 + i, kinds[JOINT_STATE], f"/policy/{name}")
    return data + message(1, _string(contract.to_json()))


def numbers(names: list[str], values: Any) -> bytes:
    from robo_rl.deploy.robot.logs.cdr import NamedNumbers

    return NamedNumbers(names).encode(0, np.asarray(values, float))


def _zstd(size: int) -> bytes:
    import zstandard

    compressor = zstandard.ZstdCompressor(level=1).compressobj(size=size)
    block = bytes(1 << 20)
    parts = [compressor.compress(block) for _ in range(size >> 20)]
    return b"".join([*parts, compressor.flush()])


def logs(contract: Contract) -> dict[str, Make]:
    """Logs with a contract that is right."""
    from robo_rl.deploy.robot.logs.cdr import array_bytes
    from robo_rl.deploy.robot.logs.logfile import GATE_FIELDS

    signals, commands = (sum(c.size for c in part) for part in (contract.signals, contract.commands))
    begun, head = _begun(contract), MAGIC + record(1, text("ros2") + text("x"))
    start = head + chunk(begun, len(begun), "")
    usual: dict[int, bytes] = {
        2: array_bytes(contract.initial_state),
        3: numbers(["a"] * signals, [0.0] * signals),
        4: numbers([s.name for s in contract.signals], [0.0] * len(contract.signals)),
        5: numbers(["a"] * commands, [0.0] * commands),
        6: numbers(list(GATE_FIELDS), [0.0] * len(GATE_FIELDS)),
    }

    def records(**changed: bytes) -> bytes:
        places = {"memory": 2, "signals": 3, "stamps": 4, "sent": 5, "gate": 6}
        mine = usual | {places[name]: data for name, data in changed.items()}
        return b"".join(message(number, mine[number]) for number in (3, 4, 5, 6, 2))

    def step(**changed: bytes) -> bytes:
        """A chunk with a step."""
        return whole(records(**changed))

    def whole(data: bytes) -> bytes:
        return chunk(data, len(data), "")

    def gate(name: str, value: float | None) -> bytes:
        """A step's gate with one field changed, or without it."""
        fields = dict.fromkeys(GATE_FIELDS, 0.0) | {name: value}
        there = {name: value for name, value in fields.items() if value is not None}
        return step(gate=numbers(list(there), list(there.values())))

    footer = record(2, bytes(20)) + MAGIC
    gigabytes, nothing = _zstd(1 << 30), [np.nan] * len(GATE_FIELDS)
    long = (
        b"\0\1\0\0"
        + bytes(8)
        + text(b"\0")
        + bytes(3)
        + struct.pack("<I", 1_000_000)
        + 1_000_000 * (text(b"\0") + bytes(3))
    )
    good = start + 3 * step() + footer
    import zstandard

    packed = zstandard.compress(20_000 * records())
    made: dict[str, bytes] = {
        "nothing": b"",
        "the magic alone": MAGIC,
        "no MCAP": b"GIF89a" * 100,
        "a record of 2^63 bytes": MAGIC + struct.pack("<BQ", 6, 1 << 63),
        "a record of 4 GB": MAGIC + struct.pack("<BQ", 5, 1 << 32) + bytes(1000),
        "a chunk of a GB of zeros": start + chunk(gigabytes, 1 << 30) + footer,
        "a chunk of a GB that says it is small": start + chunk(gigabytes, 100) + footer,
        "a chunk that says it is 2^63 bytes": start + chunk(b"x", 1 << 63) + footer,
        "a chunk that says it is 60 MB": start + chunk(zstandard.compress(b"x"), 60 << 20) + footer,
        "many chunks that unpack to much": start + 400 * chunk(packed, 20_000 * len(records())) + footer,
        "a chunk of noise": start + chunk(bytes(range(256)), 1000) + footer,
        "a chunk of lz4 noise": start + chunk(bytes(range(256)), 1000, "lz4") + footer,
        "a chunk of another compression": start + chunk(b"x", 1, "python") + footer,
        "a chunk in a chunk": start + chunk(chunk(b"x", 1, ""), len(chunk(b"x", 1, "")), "") + footer,
        "an array of 2^32 numbers": start + step(sent=usual[5][:12] + b"\xff" * 4 + usual[5][16:]) + footer,
        "strings of 2^32 bytes": start + whole(message(1, b"\0\1\0\0\xff\xff\xff\xffabc")) + footer,
        "a message of nothing": start + whole(message(5, b"") + message(2, usual[2])) + footer,
        "another type of message": head + whole(schema(1, "evil/msg/Evil", "Evil[4000000000] a") + begun) + footer,
        "a type that holds itself": head + whole(schema(1, "std_msgs/msg/String", "String[] data") + begun) + footer,
        "a type in another language":
            head + whole(schema(1, "std_msgs/msg/String", "string data", "python") + begun) + footer,
        "a channel without a type":
            head + whole(channel(1, 9, "/policy/contract") + begun[-len(contract.to_json()) - 50 :]) + footer,
        "a topic that is a path":
            start + whole(channel(9, 1, "/policy/../../ESCAPED") + message(9, _string("x"))) + footer,
        "a signal that is not there":
            start + whole(channel(9, 2, "/policy/signal/none") + message(9, usual[3])) + footer,
        "no contract": MAGIC + footer,
        "a contract that is none": head + whole(begun[: -len(contract.to_json()) - 40]) + footer,
        "too few signals": start + step(signals=numbers(["a"], [0.0])) + footer,
        "too many commands": start + step(sent=numbers(["a"] * 99, [0.0] * 99)) + footer,
        "a gate without names": start + step(gate=numbers([], [])) + footer,
        "a gate with other names": start + step(gate=numbers(["x"], [1.0])) + footer,
        "a time that is not finite": start + step(gate=numbers(list(GATE_FIELDS), nothing)) + footer,
        "stamps without end": start + step(stamps=numbers(["a"] * len(contract.signals),
                                                          [1e300] * len(contract.signals))) + footer,
        **{f"a gate whose {name} is {value}": start + gate(name, value) + footer for name, value in {
            "state": None, "source": np.nan, "reason": np.inf, "requests": 1e300, "operator_stamp": 0.5, "intact": None,
        }.items()},
        "a gate in a state that is none": start + gate("state", 99.0) + footer,
        "a gate that blames a signal that is none": start + step(gate=numbers(
            ["time", "state", "reason", "channel"], [0, 3, 8, 99])) + footer,
        "a memory of another size": start + step(memory=array_bytes(np.zeros(7))) + footer,
        "too many records of nothing": start + whole(3_000_000 * record(15, b"")) + footer,
        "a message of 8 MB of names": start + whole(message(5, long)) + footer,
        "metadata of 80 MB of empty strings": start + record(12, text("robo_rl") + struct.pack("<I", 80 << 20)
                                                             + bytes(80 << 20)) + footer,
        "metadata of noise": start + record(12, b"\xff" * 50) + footer,
        "metadata that is cut off": start + record(12, text("robo_rl") + struct.pack("<I", 1000)) + footer,
        **{f"cut off at {part} %": good[: len(good) * part // 100] for part in range(5, 100, 10)},
    }  # fmt: skip
    return {what: _text("session.mcap", data) for what, data in made.items()}


# --- runs -----------------------------------------------------------------------------------------------------------


def runs(description: Mapping[str, Any]) -> dict[str, Make]:
    """Folders of runs, whose run.json is like a good one's ``description``."""

    def changed(**fields: Any) -> Make:
        def make(folder: Path) -> Path:
            for place in (folder, folder / "source", folder.parent):
                place.mkdir(exist_ok=True)
                (place / "evil.py").write_text(EVIL)
            data = {**description, **{k: v for k, v in fields.items() if k != "hyper"}}
            data["hyperparameters"] = {**description["hyperparameters"], **fields.get("hyper", {})}
            (folder / "run.json").write_text(json.dumps(data))
            return folder

        return make

    def written(data: str | bytes) -> Make:
        def make(folder: Path) -> Path:
            _text("run.json", data)(folder)
            return folder

        return make

    return {
        "a task's file beside it": changed(task_name="evil.py:Evil"),
        "a task's file above it": changed(task_name="../evil.py:Evil", source_digest="0" * 64),
        "a task's file by its whole path": changed(task_name="/tmp/evil.py:Evil", source_digest="0" * 64),
        "a task's file through source": changed(task_name="source/../../evil.py:Evil", source_digest="0" * 64),
        "a digest without a file": changed(source_digest="0" * 64),
        "a card elsewhere": changed(robot="../../robot.toml"),
        "a card by its whole path": changed(robot="/etc/passwd.toml"),
        "a robot that is a number": changed(robot=7),
        "an algorithm that is a module": changed(algorithm="os.system"),
        "an algorithm that is a list": changed(algorithm=["apg"]),
        "a seed that is text": changed(seed="0; rm"),
        "a seed of 4000 digits": written('{"seed": ' + "9" * 4000 + "}"),
        "a seed of 5000 digits": written('{"seed": ' + "9" * 5000 + "}"),
        "a wide network": changed(hyper={"hidden": [65536, 65536]}),
        "an endless network": changed(hyper={"hidden": [10**15]}),
        "a network of text": changed(hyper={"hidden": "abc"}),
        "a network of lists": changed(hyper={"hidden": [[1]]}),
        "an activation that is code": changed(hyper={"activation": "__import__('os')"}),
        "updates that are text": changed(hyper={"updates": "many"}),
        "a rate that is not finite": changed(hyper={"learning_rate": float("nan")}),
        "ranges that are text": changed(ranges={"wind": "x"}),
        "ranges that are a list": changed(ranges=[1]),
        "lists in lists": written('{"a": ' + "[" * DEEP + "]" * DEEP + "}"),
        "a list": written("[]"),
        "no text": written(b"\xff\xfe"),
        "nothing": written(""),
        "too large": written(" " * (1 << 21)),
    }
