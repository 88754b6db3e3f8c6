"""The names that an author gave survive the passes: kernels, weights and files tell them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from graphtool import passes
from graphtool.emit.c import emit
from graphtool.importers import import_source
from graphtool.ir import listing, serial
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import Module, kernel_label, names_of
from graphtool.ir.run_sizes import all_nodes
from graphtool.loops.program import runs
from graphtool.lower import lower
from graphtool.target import named

SAMPLES = Path(__file__).parents[2] / "samples"
TARGET = named("x86-64-v3", 2)
MODELS = ("digits.onnx", "mlp.py:model", "transformer.py:model")


@cache
def imported(name: str) -> Module:
    return import_source(str(SAMPLES / name))


@cache
def optimised(name: str) -> Module:
    return passes.run(imported(name), supply={"target": TARGET})


def test_the_c_names_layers_and_nothing_of_the_exporter() -> None:
    text = "\n".join(emit(lower(optimised("digits.onnx"), TARGET)).values())
    assert "/* block1.conv + block1.bn + block1.relu  (samples/digits.py:33 forward) */" in text
    assert not re.findall("getitem|max_pool2d|conv2d", text)


@pytest.mark.torch
def test_kernels_of_a_torch_module_name_its_layers() -> None:
    labels = [r.label for r in runs(lower(optimised("transformer.py:model"), TARGET).steps)]
    assert "layers.0.up.linear + layers.0.gelu" in labels
    assert "layers.1.norm2.layer_norm" in labels


@pytest.mark.parametrize(("names", "label"), [
    (("x_Dequantize.sub", "x_Dequantize", "conv", "y_Quantize.div", "y_Quantize.round",
      "y_Quantize"), "conv + x_Dequantize + y_Quantize"),
    (("x_Dequantize.sub", "skip", "block.conv", "block.bn", "block", "blocks.0"),
     "block.conv + x_Dequantize.sub + skip + block + blocks.0")])
def test_a_kernel_is_called_by_its_convolution(names: tuple[str, ...], label: str) -> None:
    graph = optimised("digits.onnx").graph
    conv = next(n for n in graph.nodes if n.op.lowering is Lowering.TEMPLATE)
    other = next(n for n in graph.nodes if n.op.lowering is not Lowering.TEMPLATE and n.inputs)
    nodes = [replace(conv if i == 2 else other, of=(name,)) for i, name in enumerate(names)]
    assert kernel_label(replace(graph, nodes=tuple(nodes)))(nodes) == label


@pytest.mark.parametrize("name", [
    pytest.param(m, marks=[pytest.mark.torch] if ".py:" in m else ()) for m in MODELS])
def test_no_name_is_made_up_and_none_of_a_survivor_changes(name: str) -> None:
    before, after = imported(name).graph, optimised(name).graph
    given = {x for n in all_nodes(before) for x in names_of(n)}
    hints = {v.hint for n in all_nodes(before) for v in n.outputs}
    for node in all_nodes(after):
        if node.inputs or node.op.name == "constant":
            assert {*names_of(node)} <= given | hints


def test_a_folded_weight_is_called_after_the_parameters_in_it() -> None:
    made = {n.outputs[0].hint: n for n in optimised("digits.onnx").graph.nodes}
    assert made["block1.conv.weight.pack_conv"].of == (
        "block1.conv.weight", "block1.bn.weight", "block1.bn.running_var")
    assert made["head.weight.pack"].of == ("head.weight",)


def test_files_keep_the_names() -> None:
    module = optimised("digits.onnx")
    wanted = [names_of(n) for n in module.graph.nodes if n.op.name != "constant"]
    for again in (serial.loads(serial.dumps(module, embed=True)),
                  serial.loads(listing.dumps(module, embed=True))):
        found = [names_of(n) for n in again.graph.nodes if n.op.name != "constant"]
        assert found == wanted
