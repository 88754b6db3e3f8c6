"""The zoo's kernels one by one: ONNX models of a single node, cut out of the zoo's models.

Nodes that differ in their weights only are one kernel; it is kept with the weights seen first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import work
from benchmarks.work import Array

OPS = ("Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "LayerNormalization", "Softmax",
       "Gelu", "Erf", "Sigmoid", "Tanh", "MaxPool", "AveragePool", "GlobalAveragePool",
       "ReduceMean", "Resize", "Transpose", "Add", "Mul")
SHORT = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "bool": "bool"}


@dataclass
class Single:
    """One kernel: its operands' types as text, its nominal cost, and where it is used."""

    name: str
    op: str
    operands: str
    flops: int = 0
    uses: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Flops of all its uses: what it weighs in the zoo."""
        return self.flops * sum(self.uses.values())


def collect(models: list[str], ops: list[str]) -> list[Single]:
    """The distinct kernels of the models, prepared for a contest, the weightiest first."""
    found: dict[str, Single] = {}
    for model in models:
        for one, proto in _cut(model, ops):
            kept = found.setdefault(one.name, one)
            kept.uses[model] = kept.uses.get(model, 0) + 1
            if not work.prepared(one.name).done:
                _write(kept, proto)
            if not kept.flops:
                kept.flops = json.loads(
                    (work.prepared(one.name).folder / "meta.json").read_text())["flops"]
    return sorted(found.values(), key=lambda s: (-s.total, s.name))


def _cut(model: str, ops: list[str]) -> Iterator[tuple[Single, Any]]:
    """Each node of the ops, as a model whose inputs are whatever is not a constant."""
    import onnx
    from onnx import helper, numpy_helper
    whole = onnx.load(str(work.prepared(model).onnx))
    constants = {t.name: t for t in whole.graph.initializer}
    types = {v.name: v.type.tensor_type for v in (
        *whole.graph.input, *whole.graph.value_info, *whole.graph.output)}
    for node in whole.graph.node:
        known = all(n in constants or n in types for n in (*node.input, *node.output) if n)
        if node.op_type not in ops or not known:
            continue
        inputs, held, told = list[Any](), list[Any](), list[str]()
        bare = onnx.NodeProto()
        bare.CopyFrom(node)
        bare.name = bare.doc_string = ""
        del bare.metadata_props[:], bare.input[:], bare.output[:]
        for i, name in enumerate(node.input):
            bare.input.append(_operand(i, name, constants, types, inputs, held, told))
        bare.output.extend(f"out_{i}" for i in range(len(node.output)))
        outputs = [helper.make_value_info(f"out_{i}", helper.make_tensor_type_proto(
            types[n].elem_type, _shape(types[n]))) for i, n in enumerate(node.output)]
        graph = helper.make_graph([bare], "kernel", inputs, outputs, held)
        proto = helper.make_model(graph, opset_imports=whole.opset_import,
                                  ir_version=whole.ir_version)
        small = [numpy_helper.to_array(t).tobytes() for t in held if t.data_type == 7]
        key = hashlib.sha256(bare.SerializeToString() + repr((told, small)).encode()).hexdigest()
        name = f"kernel-{node.op_type.lower()}-{key[:10]}"
        yield Single(name, node.op_type, " ".join(told) + _attributes(node)), proto


def _operand(i: int, name: str, constants: Any, types: Any, inputs: list[Any], held: list[Any],
             told: list[str]) -> str:
    """The operand's new name; it becomes an input or a constant of the small model."""
    from onnx import TensorProto, helper
    if not name:
        return ""
    if name in constants:
        copy = TensorProto()
        copy.CopyFrom(constants[name])
        copy.name = f"w_{i}"
        held.append(copy)
        told.append("@" + _text(copy.data_type, list(copy.dims)))
        return str(copy.name)
    new = f"in_{len(inputs)}"
    inputs.append(helper.make_tensor_value_info(new, types[name].elem_type, _shape(types[name])))
    told.append(_text(types[name].elem_type, _shape(types[name])))
    return new


def _shape(t: Any) -> list[int]:
    return [d.dim_value for d in t.shape.dim]


def _text(kind: int, shape: list[int]) -> str:
    from onnx import helper
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind)).name
    return f"{SHORT.get(dtype, dtype)}[{','.join(map(str, shape))}]"


def _attributes(node: Any) -> str:
    """The attributes that decide the work, where they are not ONNX's defaults."""
    from onnx import helper
    values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    shown = [f"{k}={','.join(map(str, v)) if isinstance(v, list) else v}"
             for k, v in sorted(values.items())
             if (k in ("strides", "dilations") and set(v) != {1}) or (k == "group" and v != 1)
             or (k in ("transA", "transB") and v) or k == "perm"]
    return "".join(f" {s}" for s in shown)


def _write(one: Single, proto: Any) -> None:
    """model.onnx, random inputs, what the evaluator makes of them in float32 and float64."""
    from graphtool import importers, interp
    from graphtool.analysis.costs import flops, total
    from graphtool.dtypes import float64
    target = work.prepared(one.name)
    target.folder.mkdir(parents=True, exist_ok=True)
    temporary = target.folder / "unfinished.onnx"
    temporary.write_bytes(proto.SerializeToString())
    module = importers.import_source(str(temporary))
    inputs = _random(module)
    arrays: dict[str, Any] = {f"in_{i}": a for i, a in enumerate(inputs.values())}
    for prefix, dtype in (("out", None), ("out64", float64)):
        results = interp.run(module, inputs, dtype=dtype).values()
        arrays |= {f"{prefix}_{i}": a for i, a in enumerate(results)}
    np.savez(target.folder / "io.npz", **arrays)
    meta = {"name": one.name, "kind": one.op, "operands": one.operands,
            "flops": total(flops, module.graph)}
    (target.folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
    temporary.rename(target.onnx)


def _random(module: Any) -> dict[str, Array]:
    from graphtool.analysis import made_up
    return dict(made_up.random_inputs(module, 1))
