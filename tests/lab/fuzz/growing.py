"""A random ONNX graph that grows node by node: a pool of values whose types are known.

Types come from ONNX's own inference; what it refuses raises Unfit. What a node computes is not
known here, so operators whose operands must be in a range get constants.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto, defs, helper, numpy_helper
from onnx.shape_inference import InferenceError, infer_node_outputs

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
OPSET, IR_VERSION = 23, 11
MOST = 4096  # elements of a value that further nodes read
SIZES = (1e-4, 0.5, 1, 3, 300)  # standard deviations of an array
DTYPES: dict[str, tuple[str, ...]] = {  # what an operator's operand may be; the usual ones weigh
    "F": ("float32",), "D": ("float32", "float32", "float32", "float64"),
    "f": ("float32",) * 6 + ("float64", "float64", "float16"),
    "n": ("float32",) * 5 + ("float64", "int32", "int64", "int64"),
    "i": ("int32", "int64"), "l": ("int64",), "b": ("bool",), "B": ("uint8", "int8"),
    "u": ("uint8", "uint16", "uint32", "uint64"),
    "w": ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    "a": ("float32",) * 4 + ("float64", "int32", "int64", "bool", "uint8", "int8", "float16"),
    "c": ("float32", "float64", "float16", "bfloat16", "bool", "int8", "int16", "int32", "int64",
          "uint8", "uint16", "uint32", "uint64"),
}


class Unfit(Exception):
    """The operator has no place in this graph: another one is tried."""


@dataclass(eq=False)
class Known:
    """A value of the graph. `shape` is None where it depends on what the graph computes."""

    name: str
    dtype: np.dtype[Any]
    shape: Shape | None
    held: Array | None = None
    read: bool = False

    @property
    def sizes(self) -> Shape:
        """The shape of a value that was taken by its shape."""
        assert self.shape is not None
        return self.shape


@dataclass
class Seeded:
    """What each case has: its inputs, and what it is made of."""

    seed: int
    inputs: dict[str, Array]
    ops: tuple[str, ...]
    typed: tuple[str, ...]  # each with the dtype that it works on: "Relu float32"


@dataclass
class Case(Seeded):
    """An ONNX model and its inputs."""

    model: ModelProto
    every: tuple[ValueInfoProto, ...]  # what its nodes compute
    symbolic: bool = False  # whether a size of the inputs is open


@dataclass
class Growing:
    """One graph. `bound` are values of an outer graph, which a body may read."""

    rng: random.Random
    special: bool = False
    empty: bool = False
    prefix: str = ""
    body: bool = False
    nodes: list[NodeProto] = field(default_factory=list)
    pool: list[Known] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    held: dict[str, Array] = field(default_factory=dict)
    ops: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    count: int = 0

    # ---- values --------------------------------------------------------------------------------

    def name(self) -> str:
        """A name that no other value has."""
        self.count += 1
        return f"{self.prefix}v{self.count}"

    def array(self, dtype: str, shape: Shape) -> Array:
        """Random numbers of one of SIZES; in some graphs the special ones as well."""
        rng = np.random.default_rng(self.rng.getrandbits(32))
        kind = np.dtype(dtype) if dtype != "bfloat16" else np.dtype(ml_dtypes.bfloat16)
        if dtype == "bool":
            return np.asarray(rng.random(shape) < 0.5)
        if kind.kind in "iu":
            found = np.asarray(rng.integers(0 if kind.kind == "u" else -9, 10, shape)).astype(kind)
            some: list[float] = [np.iinfo(kind).min, np.iinfo(kind).max, 0]
        else:
            found = np.asarray(rng.standard_normal(shape) * rng.choice(SIZES)).astype(kind)
            some = [np.nan, np.inf, -np.inf, -0.0, 0.0]
        if self.special and found.size and rng.random() < 0.5:
            at = rng.integers(0, found.size, max(1, found.size // 16))
            found.reshape(-1)[at] = rng.choice(np.asarray(some, kind), at.shape)
        return found

    def shape(self, low: int = 0, high: int = 4) -> Shape:
        """A small shape; sometimes one of its sizes is 0."""
        sizes = [self.rng.choice((1, 2, 3, 3, 4, 5, 7, 8)) for _ in range(
            self.rng.randint(low, high))]
        if self.empty and sizes and self.rng.random() < 0.3:
            sizes[self.rng.randrange(len(sizes))] = 0
        while int(np.prod(sizes)) > MOST:
            sizes[sizes.index(max(sizes))] = 2
        return tuple(sizes)

    def const(self, array: Any, dtype: Any = None) -> Known:
        """An initializer with these numbers."""
        found = np.asarray(array, dtype)
        name = self.name()
        self.held[name] = found
        return Known(name, found.dtype, found.shape, found, read=True)

    def given(self, array: Any, dtype: Any = None) -> Known:
        """An input of the model with these numbers; in a body, an initializer."""
        if self.body:
            return self.const(array, dtype)
        found = np.asarray(array, dtype)
        name = self.name()
        self.inputs[name] = found
        value = Known(name, found.dtype, found.shape, read=True)
        self.pool.append(value)
        return value

    def fresh(self, kinds: str, shape: Shape) -> Known:
        """A new input, or more rarely a constant."""
        array = self.array(self.rng.choice(DTYPES.get(kinds, (kinds,))), shape)
        held = self.rng.random() < 0.25 or array.dtype.name == "bfloat16"  # which numpy lacks
        return self.const(array) if held else self.given(array)

    def take(self, kinds: str, low: int = 0, high: int = 4, shape: Shape | None = None,
             least: int = 0) -> Known:
        """A value of the pool of one of these dtypes, ranks and least sizes, or a new one."""
        allowed = DTYPES.get(kinds, (kinds,))
        fits = [v for v in self.pool if v.dtype.name in allowed and v.shape is not None
                and low <= len(v.shape) <= high and (shape is None or v.shape == shape)
                and int(np.prod(v.shape)) <= MOST and all(n >= least for n in v.shape)]
        if fits and self.rng.random() < 0.8:
            chosen = self.rng.choice(fits[-6:])
            chosen.read = True
            return chosen
        wanted = self.shape(low, high) if shape is None else shape
        return self.fresh(kinds, tuple(max(n, least) for n in wanted))

    def like(self, x: Known, shape: Shape | None = None) -> Known:
        """A value of the dtype of `x` and its shape, or the given one."""
        return self.take(x.dtype.name, shape=x.sizes if shape is None else shape)

    def along(self, x: Known) -> Known:
        """A value of the dtype of `x` whose shape broadcasts with that of `x`."""
        shape = list(x.sizes)[self.rng.choice((0, 0, 0, 1, 2)):]
        shape = [n if self.rng.random() < 0.7 else 1 for n in shape]
        return self.like(x, tuple(shape))

    def axis(self, x: Known) -> int:
        """One of the axes of `x`, counted from either end."""
        rank = len(x.sizes)
        return self.rng.randrange(-rank, rank)

    def coin(self, chance: float = 0.5) -> bool:
        """True by that chance."""
        return self.rng.random() < chance

    # ---- nodes ---------------------------------------------------------------------------------

    def add(self, op: str, inputs: list[Known | None], outputs: int = 1, domain: str = "",
            **attrs: Any) -> list[Known]:
        """Append a node; its outputs join the pool. Raises Unfit where ONNX refuses the types."""
        names = [self.name() for _ in range(outputs)]
        node = helper.make_node(op, [x.name if x else "" for x in inputs], names, domain=domain,
                                **{k: a for k, a in attrs.items() if a is not None})
        types = self._types(node, inputs, domain)
        made = []
        for name in names:
            t = types.get(name)
            if t is None or not t.HasField("tensor_type"):
                raise Unfit(f"{op}: no type")
            made.append(Known(name, helper.tensor_dtype_to_np_dtype(t.tensor_type.elem_type),
                              _sizes(t)))
        self.nodes.append(node)
        self.ops.append(op if not domain else f"{domain}.{op}")
        kinds = [x.dtype.name for x in (*filter(None, inputs), made[0])]
        self.typed.append(f"{op} {next((k for k in kinds if k != 'bool'), 'bool')}")
        self.pool += made
        return made

    def _types(self, node: NodeProto, inputs: list[Known | None], domain: str) -> dict[
            str, TypeProto]:
        if domain == "com.microsoft":  # no schema here: these have their first operand's type
            first = next(x for x in inputs if x)
            return dict.fromkeys(node.output, _proto(first))
        known = {x.name: _proto(x) for x in inputs if x}
        outer = {v.name: _proto(v) for v in self.pool}
        data = {x.name: numpy_helper.from_array(x.held, x.name) for x in inputs
                if x and x.held is not None and x.held.dtype.kind in "iuf" and x.held.size < 64}
        try:
            found: dict[str, TypeProto] = infer_node_outputs(
                defs.get_schema(node.op_type, OPSET, domain), node,
                outer | known if node.op_type in ("If", "Loop", "Scan") else known, data,
                opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        except (InferenceError, RuntimeError, ValueError) as error:
            raise Unfit(f"{node.op_type}: {error}") from error
        return found

    # ---- the model -----------------------------------------------------------------------------

    def model(self, symbolic: int | None) -> ModelProto:
        """The model: what nothing reads is an output. Sizes of inputs that are `symbolic` become
        the open dimension N."""
        read = {n for node in self.nodes for n in node.input}
        made = {n for node in self.nodes for n in node.output}
        outputs = [v for v in self.pool if v.name in made and v.name not in read]
        inputs = [info(n, a.dtype, ["N" if s == symbolic and s != 1 else s for s in a.shape])
                  for n, a in self.inputs.items()]
        graph = helper.make_graph(self.nodes, "fuzz", inputs, [
            info(v.name, v.dtype, None if v.shape is None or symbolic is not None else
                 list(v.shape)) for v in outputs], self.initializers())
        return model_of(graph)

    def every(self) -> tuple[ValueInfoProto, ...]:
        """The types of all that the nodes compute."""
        made = {n for node in self.nodes for n in node.output}
        return tuple(info(v.name, v.dtype, None) for v in self.pool if v.name in made)

    def initializers(self) -> list[Any]:
        """The constants as ONNX tensors."""
        return [numpy_helper.from_array(a, n) for n, a in self.held.items()]


def model_of(graph: Any) -> ModelProto:
    """A model of the graph at the opset of the generator."""
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[
        helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)])


def info(name: str, dtype: np.dtype[Any], shape: Any) -> ValueInfoProto:
    """The declared type of a value."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)


def _proto(v: Known) -> TypeProto:
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)


def _sizes(t: TypeProto) -> Shape | None:
    if not t.tensor_type.HasField("shape"):
        return None
    dims = t.tensor_type.shape.dim
    if any(not d.HasField("dim_value") for d in dims):
        return None
    return tuple(d.dim_value for d in dims)
