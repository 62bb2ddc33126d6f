"""ONNX models as functions of images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import explain_function
from protopfaith.explanation.onnx import OnnxFunction

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def linear_model(path: Path, shape: list[Any], weights: np.ndarray) -> Path:
    """Flatten, then a matrix: what it gives is known."""
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [shape[0], weights.shape[1]])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    return path


WEIGHTS = np.random.default_rng(0).normal(size=(3 * 16 * 16, 4)).astype("float32")


@pytest.mark.parametrize("batch", ["N", 1, 4])
def test_any_batch_size_gives_the_same(batch: Any, tmp_path: Path) -> None:
    function = OnnxFunction(linear_model(tmp_path / "a.onnx", [batch, 3, 16, 16], WEIGHTS))
    x = torch.rand(6, 3, 16, 16)
    assert torch.allclose(function(x), x.flatten(1) @ torch.from_numpy(WEIGHTS), atol=1e-4)
    assert function.preprocessing().size == (16, 16)


def test_channels_last_is_seen(tmp_path: Path) -> None:
    function = OnnxFunction(linear_model(tmp_path / "a.onnx", ["N", 16, 16, 3], WEIGHTS))
    x = torch.rand(2, 3, 16, 16)
    expected = x.permute(0, 2, 3, 1).flatten(1) @ torch.from_numpy(WEIGHTS)
    assert torch.allclose(function(x), expected, atol=1e-4)


def test_its_explanation_is_that_of_the_same_function(tmp_path: Path) -> None:
    path = linear_model(tmp_path / "a.onnx", [1, 3, 16, 16], WEIGHTS)
    image = torch.rand(3, 16, 16)
    found = explain_function(path, image, outputs=2, players=8, budget=64).outputs[0]
    weights = torch.from_numpy(WEIGHTS)[:, 2].reshape(3, 16, 16)
    shares = torch.stack([(weights * image)[:, i : i + 8, j : j + 8].sum() for i in (0, 8) for j in (0, 8)])
    assert torch.allclose(found.regions.values.float(), shares, atol=1e-3)


def test_what_is_no_model_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"none")
    with pytest.raises(ProtoPFaithError, match="no ONNX model"):
        OnnxFunction(tmp_path / "a.onnx")
    with pytest.raises(ProtoPFaithError, match="four dimensions"):
        OnnxFunction(linear_model(tmp_path / "b.onnx", ["N", 768], WEIGHTS))


def with_last_node(path: Path, node: Any, element: int) -> Path:
    """The linear model, with something done to what it gives."""
    model = onnx.load(linear_model(path, ["N", 3, 16, 16], WEIGHTS))
    model.graph.node.append(node)
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", element, None))
    onnx.save(model, path)
    return path


def test_rows_that_belong_to_no_image_are_refused(tmp_path: Path) -> None:
    """Two rows for each image would be taken for one of twice the length, with numbers of other images."""
    twice = onnx.helper.make_node("Concat", ["y", "y"], ["z"], axis=0)
    function = OnnxFunction(with_last_node(tmp_path / "a.onnx", twice, onnx.TensorProto.FLOAT))
    with pytest.raises(ProtoPFaithError, match=r"shape \(12, 4\) for 6 images"):
        function(torch.rand(6, 3, 16, 16))


def test_outputs_are_numbers_of_any_kind_or_one_sentence(tmp_path: Path) -> None:
    kinds = {"a": onnx.TensorProto.UINT64, "b": onnx.TensorProto.STRING}
    cast = {name: onnx.helper.make_node("Cast", ["y"], ["z"], to=kind) for name, kind in kinds.items()}
    whole, texts = (
        OnnxFunction(with_last_node(tmp_path / f"{name}.onnx", cast[name], kinds[name])) for name in kinds
    )
    assert whole(torch.zeros(2, 3, 16, 16)).tolist() == [[0.0] * 4] * 2
    with pytest.raises(ProtoPFaithError, match="holds no numbers"):
        texts(torch.zeros(2, 3, 16, 16))


def test_of_several_outputs_the_scores_are_explained(tmp_path: Path) -> None:
    path = linear_model(tmp_path / "a.onnx", ["N", 3, 16, 16], WEIGHTS)
    model = onnx.load(path)
    model.graph.node.append(onnx.helper.make_node("Relu", ["x"], ["features"]))
    model.graph.output.insert(0, onnx.helper.make_tensor_value_info("features", onnx.TensorProto.FLOAT, None))
    onnx.save(model, path)
    x = torch.rand(2, 3, 16, 16)
    assert torch.allclose(OnnxFunction(path)(x), x.flatten(1) @ torch.from_numpy(WEIGHTS), atol=1e-4)
    del model.graph.output[1]
    onnx.save(model, path)
    with pytest.raises(ProtoPFaithError, match="is a map"):
        OnnxFunction(path)(x)


def test_a_model_of_a_giant_batch_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    path = linear_model(tmp_path / "a.onnx", [10**6, 3, 16, 16], WEIGHTS)
    with pytest.raises(ProtoPFaithError, match="1,000,000 images at a time"):
        OnnxFunction(path)


def test_a_model_without_outputs_is_refused(tmp_path: Path) -> None:
    path = linear_model(tmp_path / "a.onnx", ["N", 3, 16, 16], WEIGHTS)
    model = onnx.load(path)
    del model.graph.output[:]
    onnx.save(model, path)
    with pytest.raises(ProtoPFaithError, match="has no output"):
        explain_function(str(path), torch.rand(3, 16, 16))
