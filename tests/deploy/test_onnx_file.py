"""What a bundle's file may hold: a straight line of known operators, read in one way alone, checked byte by byte."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from robo_rl.deploy.build.c.graph import MOVES, RANDOM
from robo_rl.deploy.build.c.lower import OPERATORS as IN_C
from robo_rl.deploy.robot.bundle import onnx_file
from robo_rl.zoo import FOLDER, names

WHOLE = (FOLDER / "quadrotor-hover.onnx").read_bytes()


def changed(change: Callable[[ModelProto], object]) -> bytes:
    model = onnx.load_model_from_string(WHOLE)
    change(model)
    return model.SerializeToString()


def refusal(data: bytes) -> str:
    with pytest.raises(onnx_file.GraphError) as error:
        onnx_file.metadata(data)
    assert "expected " in str(error.value) or "a step must" in str(error.value) or "at random" in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", names())
def test_its_metadata_is_what_onnx_reads(name: str) -> None:
    data = (FOLDER / f"{name}.onnx").read_bytes()
    model = onnx.load_model_from_string(data)
    assert onnx_file.metadata(data) == {entry.key: entry.value for entry in model.metadata_props}


def test_fields_have_the_numbers_of_onnx() -> None:
    messages = {
        "ModelProto": onnx_file.MODEL, "StringStringEntryProto": onnx_file.ENTRY, "GraphProto": onnx_file.GRAPH,
        "OperatorSetIdProto": onnx_file.OPSET, "NodeProto": onnx_file.NODE, "AttributeProto": onnx_file.ATTRIBUTE,
        "TensorProto": onnx_file.TENSOR, "ValueInfoProto": onnx_file.VALUE_INFO, "TypeProto": onnx_file.TYPE,
    }  # fmt: skip
    for message, known in messages.items():
        fields = getattr(onnx, message).DESCRIPTOR.fields_by_number
        assert {number: fields[number].name for number in known} == {k: field.name for k, field in known.items()}
        forbidden = onnx_file.FORBIDDEN.get(id(known), {})
        for number, what in forbidden.items():
            assert number not in fields or fields[number].name == what.split(" ")[0]
        assert known.keys() | forbidden.keys() >= set(fields), message


def test_operators_exist_and_are_those_that_become_c_and_some_more() -> None:
    exist = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    assert exist >= onnx_file.OPERATORS
    assert set(IN_C) | MOVES <= onnx_file.OPERATORS
    assert not onnx_file.OPERATORS & (RANDOM | {"Loop", "If", "Scan", "SequenceMap", "Dropout", "StringConcat"})


def test_no_operator_takes_a_graph() -> None:
    for name in onnx_file.OPERATORS:
        kinds = {attribute.type for attribute in onnx.defs.get_schema(name, 25).attributes.values()}
        assert not kinds & {onnx.defs.OpSchema.AttrType.GRAPH, onnx.defs.OpSchema.AttrType.GRAPHS}


def add(model: ModelProto, *node: object, **fields: object) -> None:
    model.graph.node.append(helper.make_node(*node, **fields))  # type: ignore[arg-type]


def graph() -> onnx.GraphProto:
    return helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "body", [], [])


HOSTILE: dict[str, tuple[Callable[[ModelProto], object], str]] = {
    "loop": (lambda m: add(m, "Loop", ["", "a"], ["b"]), "(Loop): the operator is not for bundles; a step must always"),
    "if": (lambda m: add(m, "If", ["a"], ["b"], then_branch=graph()), "(If): the operator is not for bundles"),
    "scan": (lambda m: add(m, "Scan", ["a"], ["b"]), "(Scan): the operator is not for bundles"),
    "a graph in an attribute": (lambda m: add(m, "Relu", ["a"], ["b"], body=graph()), "g (a graph within the graph)"),
    "graphs in an attribute": (lambda m: add(m, "Relu", ["a"], ["b"], x=[graph()]), "graphs (graphs within"),
    "random": (lambda m: add(m, "RandomNormalLike", ["a"], ["b"]), "must not draw at random"),
    "bernoulli": (lambda m: add(m, "Bernoulli", ["a"], ["b"]), "must not draw at random"),
    "sequence": (lambda m: add(m, "SequenceEmpty", [], ["b"]), "expected one of robo_rl.deploy.robot.bundle."),
    "text": (lambda m: add(m, "StringNormalizer", ["a"], ["b"]), "expected one of robo_rl.deploy.robot.bundle."),
    "image decoder": (lambda m: add(m, "ImageDecoder", ["a"], ["b"]), "expected one of robo_rl.deploy.robot.bundle."),
    "another domain": (lambda m: add(m, "Gelu", ["a"], ["b"], domain="com.microsoft"), "domain is 'com.microsoft'"),
    "python operator": (lambda m: add(m, "PyOp", ["a"], ["b"], domain="ai.contrib"), "domain is 'ai.contrib'"),
    "domains": (lambda m: m.opset_import.append(helper.make_opsetid("x", 1)), "has the domains ['', 'x']"),
    "no domain": (lambda m: m.ClearField("opset_import"), "has the domains []"),
    "old opset": (lambda m: setattr(m.opset_import[0], "version", 6), "has version 6; expected 11 to 25"),
    "new opset": (lambda m: setattr(m.opset_import[0], "version", 999), "has version 999"),
    "functions": (lambda m: m.functions.add(name="f"), "model: functions is not for bundles"),
    "training": (lambda m: m.training_info.add(), "model: training_info is not for bundles"),
    "sparse": (lambda m: m.graph.sparse_initializer.add(), "sparse_initializer is not for bundles"),
    "two contracts": (lambda m: m.metadata_props.add(key="robo_rl.contract", value="{}"), "comes twice"),
    "no graph": (lambda m: m.ClearField("graph"), "model: no graph"),
    "external": (
        lambda m: m.graph.initializer[0].external_data.add(key="location", value="/etc/passwd"), "in another file",
    ),
    "external location": (lambda m: setattr(m.graph.initializer[0], "data_location", 1), "data_location is 1"),
    "strings": (
        lambda m: m.graph.initializer.append(helper.make_tensor("s", TensorProto.STRING, [1], [b"a"])), "string_data",
    ),
    "cast to text": (lambda m: add(m, "Cast", ["a"], ["b"], to=TensorProto.STRING), "to is 8; expected a type"),
    "tensor too large": (
        lambda m: m.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[1 << 20, 1 << 20])),
        "expected at most 33554432 elements",
    ),
    "negative size": (
        lambda m: m.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[-1])), "expected at most",
    ),
    "data missing": (
        lambda m: m.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[1 << 20])), "no data; expected",
    ),
    "data too short": (
        lambda m: m.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[9], raw_data=b"1234")),
        "raw_data has 4 bytes; expected 36",
    ),
    "two kinds of data": (
        lambda m: m.graph.initializer.append(
            TensorProto(name="w", data_type=1, dims=[1], raw_data=b"1234", float_data=[1.0])
        ),
        "data in ['float_data', 'raw_data']; expected one",
    ),
    "dimensions": (
        lambda m: m.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[1] * 9, raw_data=b"1234")),
        "more than 8 numbers",
    ),
    "complex": (lambda m: m.graph.initializer.append(TensorProto(name="w", data_type=15, dims=[0])), "data_type is 15"),
    "long name": (lambda m: add(m, "Relu", ["a" * 2000], ["b"]), "input has 2000 bytes; expected at most 1024"),
    "long text": (lambda m: setattr(m, "doc_string", "a" * (1 << 17)), "doc_string has 131072 bytes"),
    "many nodes": (lambda m: [add(m, "Relu", ["a"], [f"b{i}"]) for i in range(10_001)], "more than 10000 of node"),
    "many ends": (lambda m: add(m, "Concat", ["a"] * 600, ["b"], axis=0), "601 ends; expected at most 512"),
    "attribute twice": (
        lambda m: (add(m, "Elu", ["a"], ["b"], alpha=1.0), m.graph.node[-1].attribute.append(
            helper.make_attribute("alpha", 2.0))), "expected one of each name",
    ),
    "reference to a function's attribute": (
        lambda m: (add(m, "Elu", ["a"], ["b"], alpha=1.0), setattr(m.graph.node[-1].attribute[0], "ref_attr_name", "")),
        "ref_attr_name is not for bundles",
    ),
    "a size that a signal tells": (
        lambda m: (add(m, "Cast", ["position"], ["n"], to=7), add(m, "Expand", ["position", "n"], ["b"])),
        "operand 'n' depends on signals; expected a fixed size",
    ),
    "a name twice": (lambda m: (add(m, "Relu", ["a"], ["b"]), add(m, "Abs", ["a"], ["b"])), "is there already"),
    "a sequence as input": (
        lambda m: m.graph.input.append(helper.make_tensor_sequence_value_info("s", 1, [1])), "sequence_type",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_not_for_bundles_is_refused(what: str) -> None:
    change, sentence = HOSTILE[what]
    assert sentence in refusal(changed(change))


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


RAW: dict[str, tuple[bytes, str]] = {
    "a second graph, which readers would merge": (WHOLE + b"\x3a\x00", "graph comes twice"),
    "an unknown field": (WHOLE + b"\xfa\x01\x01x", "field 31 is not for bundles"),
    "a group": (WHOLE + b"\x0b\x0c", "wire type 3"),
    "another wire type": (WHOLE + b"\x38\x00", "graph has wire type 0; expected bytes"),
    "a length beyond the end": (WHOLE + b"\x72\xff\xff\xff\x7f", "expected at most 0 more"),
    "a number without end": (WHOLE + b"\x80" * 11, "a number that doesn't end"),
    "a number of 70 bits": (WHOLE + b"\x28" + b"\xff" * 9 + b"\x7f", "a number that doesn't end"),
    "half a byte": (WHOLE + b"\x28", "a number that doesn't end"),
    "no text": (WHOLE + b"\x72\x03\x0a\x01\xff", "metadata_props: key is no text"),
    "nothing": (b"", "no graph"),
    "many fields": (WHOLE + b"\x42\x00" * 400_000, "more than 300000 fields"),
    "many fields in one": (WHOLE + b"\x3a" + varint(600_000) + b"\x0a\x00" * 300_000, "comes twice"),
}


@pytest.mark.parametrize("what", RAW)
def test_bytes_that_readers_understand_in_different_ways_are_refused(what: str) -> None:
    data, sentence = RAW[what]
    assert sentence in refusal(data)


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_whatever_bytes_come_they_are_read_or_refused_in_a_sentence(seed: int, count: int) -> None:
    rng, data = random.Random(seed), bytearray(WHOLE)
    for _ in range(count):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + rng.randrange(1, 40)]
            case 2:
                data[at:at] = rng.randbytes(rng.randrange(1, 20))
            case _:
                start = rng.randrange(len(data))
                data[at:at] = data[start : start + rng.randrange(1, 300)]
    found, sentence = None, ""
    try:
        found = onnx_file.metadata(bytes(data))
    except onnx_file.GraphError as refused:
        sentence = str(refused)
    if found is None:
        assert 10 < len(sentence) < 2000
        assert sentence.isprintable()
    else:
        assert found == {entry.key: entry.value for entry in onnx.load_model_from_string(bytes(data)).metadata_props}


@given(st.binary(max_size=200))
def test_noise_is_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(onnx_file.GraphError):
        onnx_file.metadata(data)


def test_what_is_read_is_what_onnx_reads_of_every_change_that_is_let_through() -> None:
    rng, agreed = random.Random(1), 0
    for _ in range(300):
        data = bytearray(WHOLE)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            found = onnx_file.metadata(bytes(data))
        except onnx_file.GraphError:
            continue
        model = onnx.load_model_from_string(bytes(data))
        assert found == {entry.key: entry.value for entry in model.metadata_props}
        assert len(model.graph.node) == len(onnx.load_model_from_string(WHOLE).graph.node)
        agreed += 1
    assert agreed > 100


def test_weights_may_be_kept_in_any_of_onnx_s_ways(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)

    def keep(model: ModelProto) -> None:
        model.graph.initializer.append(numpy_helper.from_array(values, "raw"))
        model.graph.initializer.append(helper.make_tensor("floats", TensorProto.FLOAT, [2, 3], values.ravel()))
        model.graph.initializer.append(helper.make_tensor("longs", TensorProto.INT64, [3], [-1, 0, 1 << 40]))
        model.graph.initializer.append(helper.make_tensor("doubles", TensorProto.DOUBLE, [1], [0.5]))
        model.graph.initializer.append(helper.make_tensor("none", TensorProto.FLOAT, [0], []))
        add(model, "Constant", [], ["c"], value=helper.make_tensor("v", TensorProto.INT32, [2], [-7, 7]))
        add(model, "Constant", [], ["d"], value_ints=[1, -2, 3])

    assert onnx_file.metadata(changed(keep))
