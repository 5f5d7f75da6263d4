"""Plans of a server: what of its messages is one, what of them is followed, and what the robot does without one."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgpack
import numpy as np
import pytest
from websockets.sync.server import serve

from robo_rl.contract import Contract
from robo_rl.deploy.emulate.plans import faults
from robo_rl.deploy.emulate.plans.serve import PlanServer
from robo_rl.deploy.robot.plans.msgpack import MessageError, pack, unpack
from robo_rl.deploy.robot.plans.source import Checks, PlanSource, require_url
from robo_rl.deploy.robot.plans.terms import Plan, PlanError, Terms
from robo_rl.learn.experience.demonstrations import contract_of
from robo_rl.sim.tasks.loading import load_task

SECOND = 1_000_000
CONTRACT: Contract = contract_of(load_task("arm-place-plans"))
TERMS = Terms.of(CONTRACT)
MIDDLE = 0.5 * (np.array(TERMS.lower) + np.array(TERMS.upper))
ROWS = np.tile(MIDDLE.astype(np.float32), (TERMS.rows, 1))
SIGNALS = {name: np.zeros(shape, np.float32) for name, shape in TERMS.signals}


def answer(**parts: Any) -> dict[str, Any]:
    told = TERMS.metadata()["plan"]
    right = {"id": 3, "t0": 2.0, "dt": told["dt"], "actions": ROWS, "server_timing": {"infer_ms": 3.5}}
    return {**right, **{key: told[key] for key in ("names", "units", "frames")}, **parts}


# --- the format ------------------------------------------------------------------------------------------------------


def test_messages_are_read_as_msgpack_itself_reads_them() -> None:
    """Against the msgpack of others: values of every size that it writes, both ways, and openpi's arrays."""
    sizes = [sign * (1 << bits) + by for bits in (7, 8, 15, 16, 31, 32, 62) for sign in (-1, 1) for by in (-1, 0)]
    whole = [0, 127, -1, -32, *sizes]
    value = {
        "w": [*whole, (1 << 64) - 1], "t": ["é" * n for n in (0, 20, 200, 40000)], "n": [None, True, False, 1.5],
        "d": {"x": [[]], "y": {}}, "many": list(range(40)), "keys": {str(k): k for k in range(20)},
        "b": [bytes(n) for n in (0, 300, 70000)],
    }  # fmt: skip
    assert unpack(msgpack.packb(value)) == value
    assert unpack(msgpack.packb(2.5, use_single_float=True)) == 2.5
    assert msgpack.unpackb(pack({**value, "w": whole})) == {**value, "w": whole}

    def pack_array(rows: np.ndarray) -> dict[bytes, Any]:  # as openpi's msgpack_numpy has it
        return {b"__ndarray__": True, b"data": rows.tobytes(), b"dtype": rows.dtype.str, b"shape": rows.shape}

    for dtype in ("<f2", "<f4", "<f8", "<i8", "|u1", "|b1"):
        rows = np.arange(6).reshape(2, 3).astype(dtype)
        read = unpack(msgpack.packb({"actions": rows}, default=pack_array))["actions"]
        assert read.dtype == rows.dtype
        assert np.array_equal(read, rows)
        assert np.array_equal(unpack(pack(rows)), rows)


def test_no_bytes_do_more_than_be_refused() -> None:
    """Every cut and many changes of a message end in a value or a MessageError, within the bounds."""
    data, random = pack(answer()), np.random.default_rng(0)
    for end in range(0, len(data), 7):
        with pytest.raises(MessageError):
            unpack(data[:end])
    for _ in range(2000):
        changed = bytearray(data)
        for at in random.integers(0, len(data), 3):
            changed[at] = random.integers(256)
        with contextlib.suppress(MessageError, PlanError):
            assert np.isfinite(TERMS.plan(unpack(bytes(changed)), TERMS.rows).rows).all()


class Link:
    """Where a fault sends."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.socket = SimpleNamespace(sendall=self.messages.append, close=lambda: None)

    def send(self, data: Any) -> None:
        self.messages.append(data)


REFUSED = [
    "nan", "infinite", "beyond", "wrong shape", "short", "integers", "wrong dt", "infinite t0", "names permuted",
    "degrees", "other frame", "missing", "noise", "cut", "doubled", "nested", "claimed", "huge array", "pickle",
    "objects",
]  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
def test_a_message_against_the_agreement_is_no_plan(fault: str) -> None:
    link = Link()
    faults.FAULTS[fault].how(None, link, answer())  # type: ignore[arg-type]
    with pytest.raises((MessageError, PlanError)) as refused:
        TERMS.plan(unpack(link.messages[0]), TERMS.rows)
    assert str(refused.value).isprintable()


def test_an_agreement_is_on_names_units_frames_rate_rows_and_limits() -> None:
    assert TERMS.agreed(TERMS.metadata(("cube_position",))) == (TERMS.rows, ("cube_position",))
    for name, change in faults.METADATA.items():
        with pytest.raises(PlanError, match=r"plan|limits|needs|rows|dt") as refused:
            TERMS.agreed(unpack(change(TERMS.metadata(("cube_position",)))))
        assert str(refused.value), name


def test_a_policy_that_follows_no_plans_and_strange_urls_are_refused() -> None:
    with pytest.raises(PlanError, match="follows no plans"):
        Terms.of(dataclasses.replace(CONTRACT, facts={}))
    for url in ("ws://127.0.0.1:8000", "ws://localhost:1", "ws://[::1]:9", "wss://example.org:443"):
        require_url(url)
    with pytest.raises(PlanError, match=r"pickles, which run code"):
        require_url("grpc://192.168.1.2:8080")
    with pytest.raises(PlanError, match=r"without TLS"):
        require_url("ws://192.168.1.2:8000")
    for url in ("http://127.0.0.1", "ws://", "ws://127.0.0.1:99999", "ws://me:word@127.0.0.1:80", "127.0.0.1:8000"):
        with pytest.raises(PlanError, match="expected ws"):
            require_url(url)


def test_there_is_nothing_to_train_in_it(tmp_path: Path) -> None:
    from robo_rl.commands.training.train import main

    with pytest.raises(ValueError, match="nothing to train: robo-rl export arm-place-plans"):
        main("arm-place-plans", runs=tmp_path)


# --- which plans are followed ----------------------------------------------------------------------------------------


def test_the_newest_plan_is_followed_and_old_ones_are_dropped() -> None:
    checks = Checks(CONTRACT)
    assert checks.samples(SECOND) == {}
    assert checks.take(Plan(1, SECOND, ROWS), SECOND + 300_000, SECOND, MIDDLE)
    assert not checks.take(Plan(2, SECOND, ROWS), SECOND + 400_000, SECOND, MIDDLE)
    assert not checks.take(Plan(2, SECOND - 9, ROWS), SECOND + 400_000, SECOND, MIDDLE)
    samples = checks.samples(SECOND + 500_000)
    assert {name: stamp for name, (_, stamp) in samples.items()} == {
        "tool_position_plan": SECOND, "gripper_position_plan": SECOND, "plan_age": SECOND + 500_000
    }  # fmt: skip
    assert samples["plan_age"][0] == pytest.approx([0.5])
    assert checks.take(Plan(3, 2 * SECOND, ROWS), 2 * SECOND + 100_000, 2 * SECOND, MIDDLE)


def test_plans_of_other_times_and_jumps_are_refused_and_held() -> None:
    checks, now = Checks(CONTRACT), 3 * SECOND
    for start in (now + 1, SECOND - 1):
        with pytest.raises(PlanError, match="t0"):
            checks.take(Plan(1, start, ROWS), now, SECOND, MIDDLE)
    rows = ROWS.copy()
    rows[4, 1] = TERMS.upper[1]
    rows[5, 1] = TERMS.lower[1]
    with pytest.raises(PlanError, match=r"jumps from one row to the next .* tool_position_target/y"):
        checks.take(Plan(1, now, rows), now, now, MIDDLE)
    with pytest.raises(PlanError, match="jumps from the last command"):
        checks.take(Plan(1, now, np.tile(np.float32(TERMS.lower), (9, 1))), now, now, np.array(TERMS.upper))
    assert checks.take(Plan(1, now, ROWS[:9]), now, now, MIDDLE)
    checks.holding = "something"
    assert checks.samples(now)["plan_age"][0] > checks.length


# --- what runs on the robot ------------------------------------------------------------------------------------------


def follow(ages: list[float], plans: list[np.ndarray]) -> np.ndarray:
    """(steps, D) commands for the plans that are followed at these ages, from the middle of the limits."""
    import torch

    from robo_rl.policy import PolicyGraph

    policy = PolicyGraph(load_task("arm-place-plans"), (), "elu")
    state, sent = policy.initial_state(1), []
    signals = {name: torch.zeros(1, *shape) for name, shape in TERMS.signals} | {"cube_age": torch.zeros(1, 1)}
    signals |= {
        "tool_position": torch.tensor(MIDDLE[None, :3]).float(),
        "gripper_position": torch.tensor(MIDDLE[None, 3:]).float(),
    }
    for age, rows in zip(ages, plans, strict=True):
        plan = torch.from_numpy(rows.astype(np.float32))[None]
        told = {"tool_position_plan": plan[:, :, :3], "gripper_position_plan": plan[:, :, 3:]}
        commands, state = policy({**signals, **told, "plan_age": torch.tensor([[age]])}, state)
        sent.append(np.concatenate([commands[c.name][0].numpy() for c in CONTRACT.commands]))
    return np.array(sent)


def test_a_plan_is_interpolated_at_its_age_and_held_at_its_end() -> None:
    period, span = CONTRACT.control_period, np.array(TERMS.upper) - np.array(TERMS.lower)
    rows = MIDDLE + 0.2 * span * np.linspace(0.0, 1.0, TERMS.rows)[:, None]
    length = (TERMS.rows - 1) * TERMS.dt
    ages = period * np.arange(1, 100)
    sent = follow(ages.tolist(), [rows] * len(ages))
    on_the_way = (ages > 0.1) & (ages < length)
    expected = MIDDLE + 0.2 * span * (ages / length)[:, None]
    np.testing.assert_allclose(sent[on_the_way], expected[on_the_way], atol=1e-5)
    assert np.ptp(sent[ages > length + period], axis=0).max() == 0.0
    held = follow([0.1, 0.12, 0.14, 9.0, 9.0], [rows] * 5)
    assert np.array_equal(held[3], held[2])
    assert np.array_equal(held[4], held[2])


def test_between_plans_no_command_changes_faster_than_its_speed_or_jumps() -> None:
    """From plan to plan at random, the commands stay within limits, and their changes within the speed."""
    random, period = np.random.default_rng(0), CONTRACT.control_period
    low, high = np.array(TERMS.lower), np.array(TERMS.upper)
    speed = np.concatenate([CONTRACT.facts["plan"]["speed"][c.name] for c in CONTRACT.commands])
    plans = [low + (high - low) * random.random((TERMS.rows, len(low))) for _ in range(12)]
    ages, chosen = [], []
    for plan in plans:
        begin = random.uniform(0.0, 0.6)
        ages += [begin + period * k for k in range(9)]
        chosen += [plan] * 9
    sent = follow(ages, chosen)
    changes = np.abs(np.diff(np.concatenate([MIDDLE[None], sent]), axis=0))
    assert (changes <= speed * period * (1 + 1e-4) + 1e-6).all()
    assert ((sent >= low - 1e-6) & (sent <= high + 1e-6)).all()


# --- with a server ---------------------------------------------------------------------------------------------------


class Still:
    """A planner that wants the robot to stay where it is."""

    needs = ("tool_position",)
    contract = dataclasses.replace(CONTRACT, facts={})

    def plan(self, signals: Any, time: Any, who: Any) -> np.ndarray:
        return ROWS[None]

    def forget(self, who: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[PlanServer]:
    made = PlanServer(Still(), TERMS, (0.0, 0.01))  # type: ignore[arg-type]
    with serve(made.serve, "127.0.0.1", 0, compression=None, close_timeout=0.1) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        made.port = listener.socket.getsockname()[1]  # type: ignore[attr-defined]
        yield made
        listener.shutdown()


def wait(source: PlanSource, until: Any) -> None:
    """Step until something is so."""
    given = {name: (np.asarray(value), 0) for name, value in SIGNALS.items()}
    begun = time.monotonic()
    while not until() and time.monotonic() < begun + 60.0:
        now = round(1e6 * time.monotonic())
        source.read(now, {name: (value, now) for name, (value, _) in given.items()})
        time.sleep(0.01)
    assert until(), source.checks.holding


def test_a_robot_holds_while_its_server_fails_and_goes_on_after(server: PlanServer, tmp_path: Path) -> None:
    """One after the other: a billion bytes, a traceback, a pickle, nothing at all. No code runs, and memory stays."""
    said: list[str] = []
    source = PlanSource(CONTRACT, f"ws://127.0.0.1:{server.port}", said.append, 0.6)  # type: ignore[attr-defined]
    try:
        source.connect()
        source.note({c.name: MIDDLE[s] for c, s in zip(CONTRACT.commands, (slice(3), slice(3, 4)), strict=True)})
        for fault, why in (
            ("1e9 bytes", "larger than a plan"), ("text frame", "text"), ("pickle", "pickle, which runs code"),
            ("stall", "did not come in time"), ("other contract", "names are"),
        ):  # fmt: skip
            server.begin("")
            wait(source, lambda: source.checks.plan is not None and not source.checks.holding)
            before = source.counts.plans
            wait(source, lambda before=before: source.counts.plans > before)
            server.begin(fault)
            wait(source, lambda why=why: why in source.checks.holding)
            assert source.checks.samples(source.checks.plan.start)["plan_age"][0] > source.checks.length
        memory = Path(f"/proc/{source.process.pid}/status").read_text()
        peak = next(int(line.split()[1]) for line in memory.splitlines() if line.startswith("VmHWM"))
        assert peak < 200_000
    finally:
        source.close()
    assert source.process.poll() is not None


def test_a_server_that_does_not_agree_is_not_asked(server: PlanServer) -> None:
    server.begin("no metadata")
    source = PlanSource(CONTRACT, f"ws://127.0.0.1:{server.port}", lambda text: None)  # type: ignore[attr-defined]
    try:
        with pytest.raises(PlanError, match="metadata has no 'plan'"):
            source.connect()
        assert server.requests == 0
    finally:
        source.close()
    assert math.isfinite(server.wrong_since)
