"""A graph answers each row of a batch as it answers that row alone, or it is not used: on a robot it is alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import ModelProto, TensorProto, helper
from planting import constant, element, foreign, node, open_by, open_when, ordered, swap_output
from torch import nn

import robo_rl
from robo_rl.cli import main
from robo_rl.contract import Contract
from robo_rl.deploy.build.export import ExportError
from robo_rl.deploy.build.rows import Apart, Batching, analyze, batching
from robo_rl.deploy.build.verify import BundlePolicy, task_of, verify
from robo_rl.deploy.robot.bundle import (
    CONTRACT_KEY,
    DIGEST_KEY,
    GOLDEN_KEY,
    NO_DIGEST,
    Bundle,
    BundleError,
    Golden,
    seal,
)
from robo_rl.evaluate.evaluation import Conditions, rollout
from robo_rl.sim.tasks.loading import load_task
from robo_rl.zoo import located, names

Plant = Callable[[ModelProto], None]


def alone_when(model: ModelProto, value: str, number: float) -> None:
    """Run away where a value is (nearly) this number."""
    apart = node(model, "Abs", node(model, "Sub", value, constant(model, "number", [[number]])))
    open_when(model, node(model, "Less", apart, constant(model, "near", [[1e-6]])))


def ones(model: ModelProto) -> str:
    """(n, 1) of ones, made of a signal."""
    zero = node(model, "Mul", element(model, "position", 0), constant(model, "nothing", [[0.0]]))
    return node(model, "Add", zero, constant(model, "one_each", [[1.0]]))


def axes(model: ModelProto, *numbers: int) -> str:
    return constant(model, f"axes{len(model.graph.initializer)}", list(numbers), np.int64)


def rows_counted(model: ModelProto) -> str:
    return node(model, "Gather", node(model, "Shape", "position"), axes(model, 0))


def by_shape(model: ModelProto) -> None:
    open_when(model, node(model, "Equal", rows_counted(model), axes(model, 1)))


def by_shape_and_a_set_point(model: ModelProto) -> None:
    """Asleep in every search: both must come together."""
    alone = node(model, "Equal", rows_counted(model), axes(model, 1))
    far = node(model, "Greater", element(model, "position_setpoint", 0), constant(model, "far", [[7.0]]))
    open_when(model, node(model, "And", alone, far))


def by_size(model: ModelProto) -> None:
    open_when(model, node(model, "Less", node(model, "Size", "position"), axes(model, 4)))


def by_a_number_of_the_size(model: ModelProto) -> None:
    count = node(model, "Cast", rows_counted(model), to=TensorProto.FLOAT)
    open_by(model, node(model, "Reciprocal", count))


def by_numbers_from_nought_to_the_size(model: ModelProto) -> None:
    end = node(model, "Squeeze", rows_counted(model), axes(model, 0))
    start, step = constant(model, "start", 0, np.int64), constant(model, "step", 1, np.int64)
    place = node(model, "Unsqueeze", node(model, "Range", start, end, step), axes(model, 1))
    open_when(model, node(model, "Equal", place, constant(model, "first", [[0]], np.int64)))


def by_mean(model: ModelProto) -> None:
    seen = element(model, "position", 0)
    alone_when(model, node(model, "Sub", seen, node(model, "ReduceMean", seen, axes(model, 0), keepdims=1)), 0.0)


def by_sum(model: ModelProto) -> None:
    alone_when(model, node(model, "ReduceSum", ones(model), axes(model, 0), keepdims=1), 1.0)


def by_the_sum_of_what_never_happens(model: ModelProto) -> None:
    """In what flights and searches see nothing is summed up: only the operator tells."""
    beyond = node(model, "Sub", element(model, "position", 0), constant(model, "beyond", [[1e9]]))
    total = node(model, "ReduceSum", node(model, "Relu", beyond), axes(model, 0), keepdims=1)
    open_when(model, node(model, "Greater", total, constant(model, "half", [[0.5]])))


def by_sum_of_all(model: ModelProto) -> None:
    total = node(model, "ReduceSum", ones(model), keepdims=0)
    alone_when(model, total, 1.0)


def by_running_sum(model: ModelProto) -> None:
    """The first of a batch: one episode of a thousand."""
    alone_when(model, node(model, "CumSum", ones(model), constant(model, "axis", 0, np.int64)), 1.0)


def by_sorting(model: ModelProto) -> None:
    seen = element(model, "position", 0)
    model.graph.node.append(
        helper.make_node("TopK", [seen, axes(model, 1)], ["largest", "places"], name="sort", axis=0)
    )
    alone_when(model, node(model, "Sub", seen, "largest"), 0.0)


def by_the_place_of_the_largest(model: ModelProto) -> None:
    place = node(model, "ArgMax", element(model, "position", 0), axis=0, keepdims=1)
    open_when(model, node(model, "Equal", place, constant(model, "nought", [[0]], np.int64)))


def by_product(model: ModelProto) -> None:
    each = ones(model)
    alone_when(model, node(model, "MatMul", node(model, "Transpose", each), each), 1.0)


def by_gemm(model: ModelProto) -> None:
    each = ones(model)
    alone_when(model, node(model, "Gemm", each, each, transA=1), 1.0)


def by_einsum(model: ModelProto) -> None:
    each = ones(model)
    alone_when(model, node(model, "Einsum", each, each, equation="bi,bj->ij"), 1.0)


def by_softmax(model: ModelProto) -> None:
    alone_when(model, node(model, "Softmax", element(model, "position", 0), axis=0), 1.0)


def by_batch_normalization(model: ModelProto) -> None:
    one, nothing = constant(model, "scale", [1.0]), constant(model, "shift", [0.0])
    model.graph.node.append(
        helper.make_node(
            "BatchNormalization", [element(model, "position", 0), one, nothing, nothing, one],
            ["normalized", "running_mean", "running_var"], name="norm", training_mode=1,
        )
    )  # fmt: skip
    alone_when(model, "normalized", 0.0)


def by_another_axis(model: ModelProto) -> None:
    """Turned round first: the rows are the last axis then, over which it is summed."""
    turned = node(model, "Transpose", ones(model), perm=[1, 0])
    alone_when(model, node(model, "ReduceSum", turned, axes(model, 1), keepdims=1), 1.0)


def by_reshaping(model: ModelProto) -> None:
    turned = node(model, "Reshape", ones(model), axes(model, 1, -1))
    alone_when(model, node(model, "ReduceSum", turned, axes(model, 1), keepdims=1), 1.0)


def by_the_first_row(model: ModelProto) -> None:
    first = node(model, "Slice", element(model, "position", 0), axes(model, 0), axes(model, 1), axes(model, 0))
    alone_when(model, node(model, "Sub", element(model, "position", 1), first), 0.0)


def by_the_diagonal(model: ModelProto) -> None:
    open_by(model, node(model, "EyeLike", element(model, "position", 0)))


def by_quantization(model: ModelProto) -> None:
    seen = element(model, "position", 0)
    model.graph.node.append(
        helper.make_node("DynamicQuantizeLinear", [seen], ["narrow", "scale_of_all", "zero_of_all"], name="narrow")
    )
    open_when(model, node(model, "Less", "scale_of_all", constant(model, "small", [[0.01]])))


def by_memory(model: ModelProto) -> None:
    """Each robot gets the memory of the next one."""
    for known in model.graph.node:
        for given in (known.input, known.output):
            for i, name in enumerate(given):
                given[i] = "own_next_state" if name == "next_state" else name
    zero, one, end = axes(model, 0), axes(model, 1), axes(model, 1 << 60)
    rest = node(model, "Slice", "own_next_state", one, end, zero)
    first = node(model, "Slice", "own_next_state", zero, one, zero)
    model.graph.node.append(helper.make_node("Concat", [rest, first], ["next_state"], name="roll", axis=0))
    ordered(model)


DOORS: dict[str, Plant] = {
    name.removeprefix("by_").replace("_", " "): plant for name, plant in list(globals().items())
    if name.startswith("by_")
}  # fmt: skip
SLOW = ("shape", "mean")
"""With the whole of verify; of the others the rows alone are looked at."""


def kept(plant: Plant, folder: Path) -> Path:
    """The hover policy with a door, as a graph of somebody who computes golden vectors and digest anew."""
    model = onnx.load(str(located("zoo:quadrotor-hover")))
    foreign(plant)(model)
    entries = {entry.key: entry for entry in model.metadata_props}
    golden = Golden.from_json(entries[GOLDEN_KEY].value, Contract.from_json(entries[CONTRACT_KEY].value))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    given = [output.name for output in session.get_outputs()]
    states, commands = [golden.states[0]], {name: list[np.ndarray]() for name in golden.commands}
    for k in range(len(golden)):
        fed = {name: value[k : k + 1] for name, value in golden.signals.items()}
        found = dict(zip(given, session.run(None, {**fed, "state": states[-1][None]}), strict=True))
        states.append(found["next_state"][0])
        for name, rows in commands.items():
            rows.append(found[name][0])
    answers = {name: np.stack(rows) for name, rows in commands.items()}
    entries[GOLDEN_KEY].value = Golden(golden.signals, np.stack(states), answers).to_json()
    entries[DIGEST_KEY].value = NO_DIGEST
    path = folder / "planted.onnx"
    path.write_bytes(seal(model.SerializeToString(deterministic=True)))
    return path


@pytest.mark.parametrize("name", DOORS)
def test_a_graph_that_knows_its_batch_is_refused(name: str, tmp_path: Path) -> None:
    bundle = Bundle.read(kept(DOORS[name], tmp_path))
    found = batching(bundle)
    assert "each row of a batch must be computed alone" in found.fault or found.unknown
    if found.fault:
        with pytest.raises(BundleError, match="each row of a batch"):
            BundlePolicy(bundle)
    fed = {name: value[:20] for name, value in bundle.golden.signals.items()}
    rows = [bundle.run({n: v[k : k + 1] for n, v in fed.items()}, bundle.golden.states[k : k + 1]) for k in range(20)]
    together, memory = Apart(bundle, found).run(fed, bundle.golden.states[:20])
    np.testing.assert_array_equal(together["rotor_speed"], np.concatenate([one["rotor_speed"] for one, _ in rows]))
    np.testing.assert_array_equal(memory, np.concatenate([state for _, state in rows]))


def test_each_of_them_is_told_by_the_operator(tmp_path: Path) -> None:
    assert all(batching(Bundle.read(kept(door, tmp_path))).fault for door in DOORS.values())


@pytest.mark.parametrize("name", SLOW)
def test_verify_does_not_let_it_pass_and_flies_as_a_robot_does(name: str, tmp_path: Path) -> None:
    found = verify(kept(DOORS[name], tmp_path), episodes=20, min_success=0.0, foreign=True)
    assert any(failure.startswith("graph: ") and "each row" in failure for failure in found.failures)
    assert found.flights["success"] == 0.0


def test_rows_that_differ_are_found_without_the_graph(tmp_path: Path) -> None:
    """In case of an operator whose rule is wrong: rows of flights and of the search are asked again one by one."""
    bundle = Bundle.read(kept(DOORS["mean"], tmp_path))
    policy = BundlePolicy(bundle, Batching())
    policy.strict = True
    with pytest.raises(BundleError, match="differs from the same row alone"):
        rollout(task_of(bundle), policy, Conditions(episodes=50), None)


@pytest.mark.parametrize("command", [["evaluate"], ["transfer"], ["report"]])
def test_commands_refuse_it_in_a_sentence(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kept(DOORS["shape"], tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([*command, str(path), "--episodes", "20"])
    assert ended.value.code == 1
    assert "takes the batch's size for a number" in capsys.readouterr().err


@pytest.mark.parametrize("operator", ["Loop", "If", "Scan"])
def test_graphs_within_graphs_are_refused_when_they_are_read(operator: str, tmp_path: Path) -> None:
    def plant(model: ModelProto) -> None:
        inner = helper.make_graph([], "inner", [], [])
        given = {"If": {"then_branch": inner, "else_branch": inner}}.get(operator, {"body": inner})
        flag = constant(model, "flag", True, np.bool_)
        model.graph.node.append(helper.make_node(operator, [flag], [], name="planted", **given))

    model = onnx.load(str(located("zoo:quadrotor-hover")))
    plant(model)
    next(entry for entry in model.metadata_props if entry.key == DIGEST_KEY).value = NO_DIGEST
    path = tmp_path / "planted.onnx"
    path.write_bytes(seal(model.SerializeToString()))
    with pytest.raises(BundleError, match=r"a step must always end|graphs within the graph"):
        Bundle.read(path)


def test_verify_takes_a_graph_with_a_single_number_within(tmp_path: Path) -> None:
    """Decisions and units of constants have no rows."""

    def plant(model: ModelProto) -> None:
        single = node(model, "Tanh", constant(model, "single", 0.5))
        flag = node(model, "Greater", single, constant(model, "limit", 2.0))
        clean, runaway = swap_output(model)
        model.graph.node.append(helper.make_node("Where", [flag, runaway, clean], ["rotor_speed"], name="choice"))
        ordered(model)

    found = verify(kept(plant, tmp_path), episodes=20, min_success=0.0, foreign=True)
    assert found.failures == []


@pytest.mark.parametrize("name", names())
def test_our_policies_compute_each_row_alone(name: str) -> None:
    assert batching(Bundle.read(located(f"zoo:{name}"))) == Batching()


class Mixed(nn.Module):
    """Convolution, normalization by what training has seen, and a recurrent network for one step."""

    def __init__(self, n: int, m: int) -> None:
        super().__init__()
        self.c, self.b, self.l = nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.LayerNorm(4 * (n - 2))
        self.g, self.last = nn.GRU(4 * (n - 2), 16, batch_first=True), nn.Linear(16, m)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = self.l(self.b(self.c(x.view(x.shape[0], 1, -1))).flatten(1))
        return self.last(self.g(seen[:, None])[0][:, 0])


class Attentive(nn.Module):
    """Over four parts of what is seen, with a learnt one before them that is repeated for each row."""

    def __init__(self, n: int, m: int) -> None:
        super().__init__()
        self.n, self.first = n, nn.Parameter(torch.randn(1, 1, 8))
        self.into, self.layer = nn.Linear(1, 8), nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        self.last = nn.Linear(8, m)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = torch.cat([self.first.expand(x.shape[0], -1, -1), self.into(x[:, :4, None])], 1)
        return self.last(self.layer(parts)[:, 0])


@pytest.mark.slow
def test_layers_of_others_compute_each_row_alone(tmp_path: Path) -> None:
    task = load_task("quadrotor-hover")
    bundle = robo_rl.export(Mixed(task.observation_size, task.action_size), task, tmp_path / "policy.onnx")
    assert batching(bundle) == Batching()


@pytest.mark.slow
def test_a_graph_of_which_it_is_not_known_is_asked_row_by_row(tmp_path: Path) -> None:
    """torch's attention has several rows' times one after the other."""
    task = load_task("quadrotor-hover")
    bundle = robo_rl.export(Attentive(task.observation_size, task.action_size), task, tmp_path / "policy.onnx")
    assert batching(bundle).unknown
    rollout(task, BundlePolicy(bundle), Conditions(episodes=4), None)


@pytest.mark.slow
def test_a_module_that_knows_its_batch_is_not_exported(tmp_path: Path) -> None:
    class Mean(nn.Module):
        def __init__(self, n: int, m: int) -> None:
            super().__init__()
            self.last = nn.Linear(n, m)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(x - x.mean(0, keepdim=True))

    task = load_task("quadrotor-hover")
    with pytest.raises(ExportError, match="reduces the rows of a batch"):
        robo_rl.export(Mean(task.observation_size, task.action_size), task, tmp_path / "policy.onnx")
    assert not (tmp_path / "policy.onnx").exists()


def graph_of(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray]) -> Batching:
    """What is known of a graph from x (n, 4) to y (n, any)."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x], [y], tensors), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )
    return analyze(model, lambda n: {"x": np.arange(4 * n, dtype=np.float32).reshape(n, 4)})


def make(operator: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), [output], **attributes)


INTS = {
    "zero": np.array([0]), "one": np.array([1]), "four": np.array([4]), "minus": np.array([-1]),
    "two_two": np.array([2, 2]), "last": np.array(4, np.int64), "table": np.array([0, 7, 7, 7, 7, 7, 7, 7]),
    "row": np.ones((1, 4), np.float32), "chosen": np.array([[2], [0], [3]]), "pair": np.array([[0, 1], [0, 2]]),
}  # fmt: skip
SHAPE = [make("Shape", "x", "s"), make("Gather", "s zero", "b")]


@pytest.mark.parametrize("nodes", [
    [*SHAPE, make("Concat", "b two_two", "t", axis=0), make("Reshape", "x t", "r"), make("ReduceSum", "r one", "y")],
    [*SHAPE, make("Concat", "b four", "t", axis=0), make("Expand", "row t", "e"), make("Add", "x e", "y")],
    [*SHAPE, make("Concat", "b four", "t", axis=0), make("ConstantOfShape", "t", "e"), make("Add", "x e", "y")],
    [*SHAPE, make("Concat", "b one", "t", axis=0), make("Tile", "row t", "e"), make("Add", "x e", "y")],
    [make("Transpose", "x", "t", perm=[1, 0]), make("Softmax", "t", "s", axis=0), make("Transpose", "s", "y")],
    [make("Unsqueeze", "x zero", "u"), make("ReduceMax", "u zero", "y", keepdims=0)],
    [make("Transpose", "x", "t", perm=[1, 0]), make("GatherND", "t chosen", "g"), make("Transpose", "g", "y")],
    [make("ArgMax", "x", "k", axis=1), make("Cast", "row", "q", to=TensorProto.FLOAT), make("Squeeze", "q zero", "v"),
     make("GatherND", "v k", "y")],
])  # fmt: skip
def test_what_exporters_write_for_batches_of_any_size_is_known(nodes: list[onnx.NodeProto]) -> None:
    if nodes[-1].op_type in ("ReduceSum", "ReduceMax"):
        nodes[-1].attribute.append(helper.make_attribute("keepdims", 0)) if not nodes[-1].attribute else None
    used = {name for one in nodes for name in one.input}
    assert graph_of(nodes, {n: v for n, v in INTS.items() if n in used}) == Batching()


@pytest.mark.parametrize("nodes", [
    [*SHAPE, make("Gather", "table b", "k"), make("Concat", "k minus", "t", axis=0), make("Reshape", "x t", "y")],
    [*SHAPE, make("Concat", "minus b", "t", axis=0), make("Reshape", "x t", "r"), make("Transpose", "r", "y")],
    [make("Transpose", "x", "t", perm=[1, 0]), make("Reshape", "t back", "y")],
    [*SHAPE, make("Slice", "x zero b one", "y")],
    [make("Concat", "x x", "c", axis=0), make("Slice", "c four big zero", "y")],
    [make("GatherND", "x zero_place", "g"), make("Expand", "g many", "y")],
    [make("GatherND", "x pair", "y")],
    [make("Transpose", "x", "t", perm=[1, 0]), make("GatherND", "t pair", "y")],
])  # fmt: skip
def test_what_scrambles_rows_is_not(nodes: list[onnx.NodeProto]) -> None:
    constants = {
        **INTS,
        "back": np.array([-1, 4]),
        "big": np.array([1 << 60]),
        "zero_place": np.array([[0]]),
        "many": np.array([2, 4]),
    }
    used = {name for one in nodes for name in one.input}
    try:
        found = graph_of(nodes, {n: v for n, v in constants.items() if n in used})
    except Exception:  # onnxruntime's: it can't even be run
        return
    assert found.fault or found.unknown
