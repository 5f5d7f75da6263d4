"""The generated C of a trained policy: what it computes, how it compiles, what is refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from robo_rl.contract import Actuator, Command, Contract, Network, Provenance, Robot, Safety, Signal, StateBlock
from robo_rl.deploy.build.c.generate import Generated, Options, generate
from robo_rl.deploy.build.c.graph import UnsupportedError
from robo_rl.deploy.build.c.host import STRICT, CompilerMissing, HostPolicy, compile_host
from robo_rl.deploy.build.c.lower import lower
from robo_rl.deploy.build.c.plan import plan
from robo_rl.deploy.build.c.program import Program
from robo_rl.deploy.build.verify import PARITY_TOLERANCE, BundlePolicy, task_of
from robo_rl.deploy.robot.bundle import Bundle, command_differences, greatest
from robo_rl.evaluate.evaluation import Conditions, rollout


@pytest.fixture(scope="module")
def bundle(bundle_file: Path) -> Bundle:
    return Bundle.read(bundle_file)


@pytest.fixture(scope="module")
def made(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Generated:
    return generate(bundle, tmp_path_factory.mktemp("c"))


@pytest.fixture(scope="module")
def compiled(made: Generated) -> HostPolicy:
    return compile_host(made)


class Witness(BundlePolicy):
    """Flies by the C, asks onnxruntime the same at every step, and keeps the greatest difference."""

    def __init__(self, bundle: Bundle, compiled: HostPolicy) -> None:
        super().__init__(bundle)
        self.compiled, self.worst, self.steps = compiled, 0.0, 0

    def __call__(self, signals: Mapping[str, Any], state: torch.Tensor) -> tuple[dict[str, Any], torch.Tensor]:
        commands, following = self.compiled(signals, state)
        expected, expected_state = super().__call__(signals, state)
        differences = command_differences(self.bundle.contract, commands, expected)
        self.worst = max(self.worst, greatest([*differences, (following - expected_state).numpy()]))
        self.steps += len(state)
        return commands, following


def test_c_equals_onnxruntime_over_ten_thousand_closed_loop_steps(bundle: Bundle, compiled: HostPolicy) -> None:
    witness = Witness(bundle, compiled)
    flights = rollout(task_of(bundle.contract), witness, Conditions(episodes=20, seed=3))
    assert witness.steps >= 10_000
    assert flights.survived.mean() >= 0.9
    assert witness.worst <= PARITY_TOLERANCE


def test_self_test_passes_and_finds_a_changed_weight(made: Generated, compiled: HostPolicy, tmp_path: Path) -> None:
    assert compiled.self_test() <= made.tolerance
    shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    source = tmp_path / "policy.c"
    text, changes = re.subn(r"(weights0\[\d+\] = \{\s+)[^,]+,", r"\g<1>2.0f,", source.read_text())
    assert changes == 1
    source.write_text(text)
    changed = Generated(**{**vars(made), "folder": tmp_path})
    assert compile_host(changed).self_test() > 10 * made.tolerance


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_sources_compile_without_a_warning(made: Generated, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed; apt-get install {compiler}")
    command = [compiler, *STRICT, "-O2", "-c", *map(str, made.sources)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_header_serves_cpp(made: Generated, tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed; apt-get install g++")
    (tmp_path / "user.cpp").write_text('#include "policy.h"\nint main() { return POLICY_ORIENTATION_W - 3; }\n')
    command = ["g++", "-Wall", "-Wextra", "-Werror", f"-I{made.folder}", "-fsyntax-only", "user.cpp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_address_and_undefined_behaviour_sanitizers_find_nothing(made: Generated, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed; apt-get install gcc")
    (tmp_path / "main.c").write_text(
        '#include "policy.h"\n#include <stdlib.h>\nint main(void) {\n'
        "policy_state *state = malloc(sizeof *state);\npolicy_arena *arena = malloc(sizeof *arena);\n"
        "const float error = policy_self_test(state, arena);\nfree(state);\nfree(arena);\n"
        "return !(error <= POLICY_TOLERANCE);\n}\n"
    )
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = ["main.c", *map(str, made.sources)]
    subprocess.run(["gcc", "-g", "-O1", *sanitizers, f"-I{made.folder}", *sources, "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run([str(tmp_path / "a.out")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_function_of_the_heap_or_of_double_precision_is_called(made: Generated, compiled: HostPolicy) -> None:
    assert compiled.made is made
    symbols = subprocess.run(
        ["nm", "-u", str(made.folder / "libpolicy.so")], capture_output=True, text=True, check=True
    ).stdout
    called = {line.split()[-1].split("@")[0] for line in symbols.splitlines() if line.split()[0] == "U"}
    assert called <= {"memcpy", "memset", "memmove", "fmaf", "fabsf", "sqrtf", "__stack_chk_fail"}


@pytest.mark.parametrize(("precision", "allowed"), [("int16", 1e-3), ("int8", 2e-2)])
def test_integer_weights_fly_like_floats(bundle: Bundle, precision: Any, allowed: float, tmp_path: Path) -> None:
    from robo_rl.deploy.build.c.budget import budgeted

    task = task_of(bundle.contract)
    options, cost = budgeted(bundle, task, Options(precision=precision), allowed, episodes=200)
    assert cost.worst <= allowed
    assert cost.flights is not None
    assert cost.exact_flights is not None
    assert cost.flights["success"] >= cost.exact_flights["success"] - 0.01
    assert compile_host(generate(bundle, tmp_path, options)).self_test() <= options.tolerance


def test_integers_beyond_the_budget_are_refused(bundle: Bundle) -> None:
    from robo_rl.deploy.build.c.budget import BudgetError, budgeted

    with pytest.raises(BudgetError, match=r"'rotor_speed' is off by .* the budget is 1e-06"):
        budgeted(bundle, None, Options(precision="int8"), 1e-6, episodes=0)


def test_a_missing_compiler_is_told_with_what_to_install(made: Generated) -> None:
    with pytest.raises(CompilerMissing, match="the C compiler 'no-such-cc' was not found; install"):
        compile_host(made, compiler="no-such-cc")


def state_contract(sizes: list[int]) -> Contract:
    blocks = tuple(StateBlock(f"b{i}", (n,), tuple(map(float, range(n)))) for i, n in enumerate(sizes))
    motor = Actuator("motor", "effort", "N*m", -1.0, 1.0, 0.0)
    return Contract(
        "test", 0.01, (Signal("x", ("a",), "1", "none", (-1.0,), (1.0,)),),
        (Command("y", ("a",), "1", "none", (-1.0,), (1.0,), (0.0,)),), blocks, Safety(0.1),
        Robot("test", "none", (motor,)), Network((), "none", False), Provenance("none", 0, 0, "0" * 64),
    )  # fmt: skip


@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_memory_moves_in_place_in_any_order(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    from robo_rl.deploy.build.pack import pack

    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    total = sum(sizes)
    if data.draw(st.booleans()):  # a history that moves by some places
        step = data.draw(st.integers(-3, 3))
        order = [min(max(i - step, 0), total) for i in range(total)]
    else:
        order = data.draw(st.lists(st.integers(0, total), min_size=total, max_size=total))
    nodes = [
        helper.make_node("Identity", ["x"], ["y"]),
        helper.make_node("Concat", ["state", "x"], ["all"], axis=1),
        helper.make_node("Gather", ["all", "order"], ["next_state"], axis=1),
    ]
    ends = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", k]) for n, k in pairs]
        for pairs in ([("x", 1), ("state", total)], [("y", 1), ("next_state", total)])
    ]
    orders = numpy_helper.from_array(np.array(order, np.int64), "order")
    model = helper.make_model(
        helper.make_graph(nodes, "test", *ends, [orders]), opset_imports=[helper.make_opsetid("", 18)], ir_version=10
    )
    folder = tmp_path_factory.mktemp("state")
    steps = np.random.default_rng(0).normal(size=(6, 1)).astype(np.float32)
    bundle = pack(model, state_contract(sizes), {"x": steps}, folder / "test.onnx")
    compiled = compile_host(generate(bundle, folder / "c"), ["-O1"])
    state = bundle.contract.initial_state[None]
    for k in range(len(steps)):
        _, state = compiled.run({"x": steps[k : k + 1]}, state)
        np.testing.assert_array_equal(state[0], bundle.golden.states[k + 1])


def refused(*nodes: Any, opset: int = 18, **constants: np.ndarray) -> str:
    """The message with which a graph from x (1, 1) to y (1, 1) is refused."""
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    ends = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 1]) for n in names]
        for names in (("x", "state"), ("y", "next_state"))
    ]
    model = helper.make_model(
        helper.make_graph([*nodes, helper.make_node("Identity", ["state"], ["next_state"])], "test", *ends, tensors),
        opset_imports=[helper.make_opsetid("", opset)],
    )
    with pytest.raises(UnsupportedError) as refusal:
        lower(model, state_contract([1]))
    return str(refusal.value)


def test_refusals_name_the_node_and_say_what_to_do() -> None:
    unknown = helper.make_node("Det", ["x"], ["y"], "corner")
    assert "node 'corner' (Det): there is no C for this operator" in refused(unknown)
    foreign = helper.make_node("Fancy", ["x"], ["y"], "alien", domain="com.example")
    assert "node 'alien' (Fancy): the operator set 'com.example' is not ONNX's own" in refused(foreign)
    random = helper.make_node("RandomNormalLike", ["x"], ["y"], "dice")
    assert "node 'dice' (RandomNormalLike): a policy on a robot must not draw at random" in refused(random)
    whole = helper.make_node("Cast", ["x"], ["y"], "whole", to=TensorProto.INT32)
    assert "node 'whole' (Cast): it makes numbers of type INT32" in refused(whole)
    dynamic = helper.make_node("Gemm", ["x", "x"], ["y"], "bilinear")
    assert "node 'bilinear' (Gemm): its weights or bias are computed at run time" in refused(dynamic)
    double = helper.make_node("Add", ["x", "d"], ["y"], "precise")
    assert "operand 'd' is float64; only float32 runs on the target" in refused(double, d=np.zeros(1))
    assert "opset 9; expected 13 to" in refused(helper.make_node("Identity", ["x"], ["y"]), opset=9)


def test_buffers_that_live_together_never_share_memory(bundle: Bundle) -> None:
    from robo_rl.deploy.build.c.graph import load

    program: Program = lower(load(bundle.path.read_bytes()), bundle.contract)
    planned = plan(program)
    last: dict[int, int] = {}
    for moment, op in enumerate(program.ops):
        last |= {program.find(address)[0].base: moment for address in op.reads()}
    owner: dict[int, int] = {}
    for moment, op in enumerate(program.ops):
        for address in op.reads():
            buffer, offset = program.find(address)
            if buffer.kind == "arena":
                assert owner[planned.offsets[buffer.base] + offset] == buffer.base
        buffer, _ = program.find(op.output)
        if buffer.kind == "arena":
            start = planned.offsets[buffer.base]
            for place in range(start, start + buffer.size):
                assert last.get(owner.get(place, -1), -1) <= moment
                owner[place] = buffer.base


@pytest.mark.release  # with every change the gate, the link and the device: test_gate_c.py
def test_cppcheck_finds_nothing_but_the_deviations_that_the_documentation_lists(made: Generated) -> None:
    if shutil.which("cppcheck") is None:
        pytest.skip("cppcheck is not installed; apt-get install cppcheck")
    sources = [str(path) for path in made.sources]
    plain = ["--enable=warning,style,performance,portability", "--suppress=missingIncludeSystem"]
    for options in (plain, ["--addon=misra"]):
        command = ["cppcheck", "--std=c99", "-q", *options, *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = set(re.findall(r"\[([\w.-]+)\]$", done.stderr, re.MULTILINE))
        page = (Path(__file__).parents[3] / "docs" / "firmware.md").read_text().partition("## MISRA")[2]
        listed = {f"misra-c2012-{rule}" for rule in re.findall(r"\b\d+\.\d+\b", page.partition("| rule |")[2])}
        assert found <= listed
