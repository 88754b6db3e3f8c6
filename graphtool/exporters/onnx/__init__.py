"""Graphs as ONNX models: `export_onnx` into a file, `model_of` as a proto.

Each op is written by its form in the registry; an op without a form is written by its
decomposition. One error lists all ops that have neither.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from onnx import ModelProto, ValueInfoProto, helper

import graphtool.ops  # noqa: F401  (fills the table of ops)
from graphtool.dtypes import string
from graphtool.errors import UnsupportedError
from graphtool.exporters.forms import Ref
from graphtool.exporters.onnx import (  # noqa: F401  (each fills the registry)
    authored,
    control,
    elementwise,
    layers,
    movement,
    products,
    reduce,
    strings,
)
from graphtool.exporters.onnx.products import join
from graphtool.exporters.onnx.quantised import chains
from graphtool.exporters.onnx.registry import FORMS
from graphtool.exporters.onnx.writer import (
    Shared,
    Writer,
    all_nodes,
    external_tensor,
    needed,
    packed_bytes,
    reads,
    tensor,
    value_info,
)
from graphtool.io import files, pairs
from graphtool.io.weights import Weight
from graphtool.ir.graph import Graph, Module, Value, is_constant
from graphtool.ir.text import value_names

__all__ = ["FORMS", "export_onnx", "inputs", "model_of", "node_counts", "operators", "write"]

OPSET, IR_VERSION = 26, 13  # the newest that are released and that onnxruntime takes
_LIMIT = 2_000_000_000  # a protobuf message has at most two gigabytes
_SMALL = 1024  # bytes up to which a constant stays in the model, if others are outside
_ALIGN = 4096  # onnxruntime maps external data by pages


def export_onnx(module: Module, path: Path, *, external: bool = False) -> None:
    """Write `path`; with `external`, or above 2 GB, the weights go to `path`.data.

    Raises UnsupportedError GT1040 with a list of all that ONNX cannot express.
    """
    write(*_model(module), path, external=external)


def write(model: ModelProto, weights: dict[str, Weight], path: Path, *, external: bool) -> None:
    """Write a model whose large constants are `weights`, as `export_onnx` does."""
    inside = sum(w.nbytes for w in weights.values())
    if external or inside + model.ByteSize() > _LIMIT:
        data = path.with_name(path.name + ".data")
        chunks = _put_outside(model, weights, data.name)
        pairs.replace(path, data, lambda name: _naming(model, name),
                      lambda file: file.writelines(chunks))
    else:
        model.graph.initializer.extend(tensor(n, w) for n, w in weights.items())
        files.write_bytes(path, model.SerializeToString(deterministic=True))


def _naming(model: ModelProto, data: str) -> bytes:
    """The model's bytes, with its weights in the file `data`."""
    for t in model.graph.initializer:
        for entry in t.external_data:
            if entry.key == "location":
                entry.value = data
    said: bytes = model.SerializeToString(deterministic=True)
    return said


def model_of(module: Module) -> ModelProto:
    """The model with its weights inside. Raises UnsupportedError GT1040 like `export_onnx`."""
    model, weights = _model(module)
    model.graph.initializer.extend(tensor(n, w) for n, w in weights.items())
    return model


def node_counts(model: ModelProto) -> Counter[str]:
    """How often each operator stands in a model and its subgraphs; constants are not counted."""
    return Counter(n.op_type for n in all_nodes(model.graph.node) if n.op_type != "Constant")


def inputs(model: ModelProto) -> list[ValueInfoProto]:
    """What a run of the model takes: before version 4 of the format, constants are listed too."""
    held = {t.name for t in model.graph.initializer}
    return [v for v in model.graph.input if v.name not in held]


def operators(module: Module) -> int:
    """How many operators compute the model's values; those that compute sizes are not counted."""
    model, _, shared = _written(module)
    return sum(n.op_type != "Constant" and not shared.of_sizes.issuperset(n.output)
               for n in model.graph.node)


def _put_outside(model: ModelProto, weights: dict[str, Weight], data: str) -> list[bytes]:
    """The bytes of a file `data` for the large constants, each at the start of a page."""
    chunks: list[bytes] = []
    at: dict[str, tuple[int, int]] = {}
    end = 0
    for name, w in weights.items():
        if w.nbytes < _SMALL or w.dtype is string:
            model.graph.initializer.append(tensor(name, w))
            continue
        if w.digest not in at:
            raw = packed_bytes(w)
            chunks += [b"\0" * (-end % _ALIGN), raw]
            at[w.digest] = -(-end // _ALIGN) * _ALIGN, len(raw)
            end = sum(at[w.digest])
        model.graph.initializer.append(external_tensor(name, w, data, *at[w.digest]))
    return chunks


def _model(module: Module) -> tuple[ModelProto, dict[str, Weight]]:
    """(the model without its weights, the weights by name)."""
    return _written(module)[:2]


def _written(module: Module) -> tuple[ModelProto, dict[str, Weight], Shared]:
    shared = Shared(module.locations, OPSET)
    w = Writer(shared)
    names = _names(module)
    env: dict[Value, Ref] = {}
    shared.taken |= {*names.values(), *module.output_names}
    for v in module.graph.inputs:
        env[v] = Ref(names[v], v.type)
        w.define(names[v], v.type)
    graph = join(chains(module.graph))
    names |= _renamed(graph, names)
    for node in graph.nodes:
        w.write(node, env, names)
    if shared.refused:
        items = shared.unsupported()
        count = sum(len(i.places) for i in items)
        raise UnsupportedError("GT1040", f"ONNX cannot express {count} node{'s' * (count > 1)}",
                               items,
                               hint="compile the graph instead, or do this part outside of it")
    _outputs(w, module, env)
    nodes = needed([*shared.constants, *w.nodes], module.output_names)
    infos = {name for n in nodes for name in n.output} - {*module.output_names}
    written = helper.make_graph(
        nodes, str(module.meta.get("name") or "graphtool"),
        [value_info(names[v], v.type) for v in module.graph.inputs],
        [value_info(n, v.type) for n, v in zip(module.output_names, module.graph.outputs,
                                               strict=True)],
        value_info=[value_info(n, t) for n, t in w.infos if n in infos])
    newest = max(OPSET, shared.domains.pop("", OPSET))  # an author's node may be of a later one
    domains = {"": newest, **dict(sorted(shared.domains.items()))}
    model = helper.make_model(written, opset_imports=[helper.make_opsetid(d, n)
                                                    for d, n in domains.items()],
                              ir_version=IR_VERSION, producer_name="graphtool")
    return model, _used(model, shared.initializers), shared


def _renamed(graph: Graph, names: dict[Value, str]) -> dict[Value, str]:
    """The names of values that stand for others of the same hint, which the graph no longer has."""
    values = [v for n in graph.nodes for v in n.outputs]
    gone = {v.hint: name for v, name in names.items() if v not in {*values, *graph.inputs}}
    return {v: gone.pop(v.hint) for v in values if v not in names}


def _names(module: Module) -> dict[Value, str]:
    """A unique name for each value; outputs and inputs keep theirs, constants lose their `@`."""
    names: dict[Value, str] = {}
    taken = set(module.output_names)
    computed = {v for n in module.graph.nodes if not is_constant(n) for v in n.outputs}
    for name, v in zip(module.output_names, module.graph.outputs, strict=True):
        if v in computed:
            names.setdefault(v, name)
    for v, wish in value_names(module.graph).items():
        if v not in names:
            name, count = wish.removeprefix("@"), 1
            while name in taken:
                count += 1
                name = f"{wish.removeprefix('@')}#{count}"
            names[v] = name
            taken.add(name)
    return names


def _outputs(w: Writer, module: Module, env: dict[Value, Ref]) -> None:
    """The outputs. An output that is also an input, a constant or another output is copied."""
    written = {n for node in w.nodes for n in node.output}
    for name, v in zip(module.output_names, module.graph.outputs, strict=True):
        if env[v].name != name or name not in written:
            w.nodes.append(helper.make_node("Identity", [env[v].name], [name], name=name))
            written.add(name)


def _used(model: ModelProto, weights: dict[str, Weight]) -> dict[str, Weight]:
    """The constants that some node reads."""
    read = set(reads(model.graph.node))
    return {n: w for n, w in weights.items() if n in read}
