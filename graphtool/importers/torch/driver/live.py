"""Reads live torch objects: tensors as arrays, and nodes of fx graphs as calls with types.

The signature of an exported program is read in exported.py.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import fx

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import InputError
from graphtool.importers.torch.driver import exprs, memory
from graphtool.importers.torch.driver.captured import (
    CallPlace,
    CapturedProgram,
    ComplexType,
    GraphInput,
    GraphOutput,
    NamedValue,
    Opaque,
    OpCall,
    Type,
)
from graphtool.importers.torch.driver.provenance import module_place
from graphtool.io.weights import Weight, weight
from graphtool.ir.graph import TensorType
from graphtool.symbolic import Dim, Symbol, dim_of, floordiv, symbol

DTYPES: dict[torch.dtype, DType] = {
    getattr(torch, row.torch): row for row in dtypes.TABLE
    if row.torch and hasattr(torch, row.torch)}
_PARTS = {torch.complex64: dtypes.float32, torch.complex128: dtypes.float64}
CHECKPOINT = "graphtool.checkpoint"  # the annotation of nodes inside a checkpoint
GRADIENT = "graphtool.gradient"  # that of nodes without a gradient, as OpCall.gradient says it
_HUGE = 1 << 62  # above: torch's "no upper bound"
_BITS = {8: torch.uint8, 16: torch.int16}


def element_type(kind: torch.dtype) -> DType:
    """Our element type of a torch dtype; InputError GT1105 for complex and quantised ones."""
    if kind not in DTYPES:
        raise InputError("GT1105", f"tensors of {kind} are not supported",
                         hint="split complex numbers into real and imaginary parts")
    return DTYPES[kind]


def array(t: torch.Tensor) -> np.ndarray[Any, Any]:
    """A tensor's elements in numpy, without a copy where it is contiguous on the CPU."""
    if t.layout is not torch.strided:
        raise InputError("GT1105", f"tensors of layout {t.layout} are not supported",
                         hint="x.to_dense() gives one that is")
    row = element_type(t.dtype)
    t = t.detach().cpu().resolve_neg().contiguous()
    if row.is_borrowed:
        return np.asarray(t.view(_BITS[row.bits]).numpy().view(row.numpy))
    return np.asarray(t.numpy())


def tensor(x: np.ndarray[Any, Any]) -> torch.Tensor:
    """A torch tensor with a copy of the array, bit for bit."""
    data = np.array(x)
    if data.dtype.isbuiltin == 1:
        return torch.from_numpy(data)
    bits = torch.from_numpy(data.view(f"u{data.itemsize}"))
    return bits.view(next(kind for kind, row in DTYPES.items() if row.numpy == data.dtype))


def held(t: torch.Tensor) -> Weight:
    """A tensor's elements as a weight; a complex one gets a last axis (real, imaginary)."""
    return weight(array(torch.view_as_real(t.resolve_conj()) if t.dtype in _PARTS else t))


class Nodes:
    """Reads the nodes of one fx graph. `ranges` bound torch's symbols, `renamed` maps them to the
    user's names, `wanted` bounds those; `places` maps file names in stacks to source places."""

    def __init__(self, owner: fx.GraphModule | None,
                 ranges: Mapping[str, tuple[int | None, int | None]],
                 renamed: Mapping[str, str] | None = None,
                 wanted: Mapping[str, Symbol] | None = None,
                 places: Mapping[str, CallPlace] | None = None) -> None:
        self.owner, self.ranges = owner, ranges
        self.renamed, self.places = renamed or {}, places or {}
        self.symbols: dict[str, Symbol] = dict(wanted or {})
        self.fresh: dict[str, Dim] = {}  # sizes that the data decide; no input declares them
        self.types: dict[str, Type] = {}
        self.items: dict[fx.Node, dict[int, str]] = {}
        self.constants: list[GraphInput] = []  # tensors that the graph holds as attributes

    def calls(self, graph: fx.Graph) -> tuple[OpCall, ...]:
        """The calls of a graph, in order; fills `types` and `constants` on the way."""
        for node in graph.nodes:
            self._type(node)
        return tuple(self._call(n) for n in graph.nodes
                     if n.op == "call_function" and n.target is not operator.getitem)

    def region(self, module: fx.GraphModule) -> CapturedProgram:
        """The CapturedProgram of an inner graph; its placeholders are user inputs, in order."""
        inner = Nodes(module, self.ranges, self.renamed, places=self.places)
        inner.symbols, inner.fresh = self.symbols, self.fresh  # one size, one symbol
        calls = inner.calls(module.graph)
        return CapturedProgram((*inner.inputs(module.graph), *inner.constants), calls,
                               inner.outputs(module.graph), inner.types, self.symbols)

    def inputs(self, graph: fx.Graph) -> tuple[GraphInput, ...]:
        """The graph's placeholders, as user inputs under their own names."""
        return tuple(GraphInput(n.name, "user", n.name)
                     for n in graph.nodes if n.op == "placeholder")

    def outputs(self, graph: fx.Graph) -> tuple[GraphOutput, ...]:
        """The graph's results, named output_0, output_1, …"""
        results = next(n for n in graph.nodes if n.op == "output").args[0]
        results = results if isinstance(results, (tuple, list)) else (results,)
        return tuple(GraphOutput(self._argument(x), "user", f"output_{i}")
                     for i, x in enumerate(results))

    # ---- types ---------------------------------------------------------------------------------

    def _type(self, node: fx.Node) -> None:
        if node.target is operator.getitem and isinstance(node.args[0], fx.Node):
            self.items.setdefault(node.args[0], {})[int(node.args[1])] = node.name
        if node.op == "get_attr":
            self._attribute(node)
        elif "val" in node.meta:
            self.types[node.name] = self._value_type(node.meta["val"])

    def _attribute(self, node: fx.Node) -> None:
        value = self._held(node)
        if isinstance(value, torch.Tensor):
            self.types[node.name] = self._value_type(value)
            self.constants.append(GraphInput(node.name, "constant", str(node.target),
                                             held(value)))

    def _held(self, node: fx.Node) -> Any:
        """What a get_attr node names."""
        value: Any = self.owner
        for part in str(node.target).split("."):
            value = getattr(value, part, None)
        return value

    def _value_type(self, value: Any) -> Type:
        try:
            return self._known_type(value)
        except InputError as error:  # a size that we cannot read is refused with its node
            return Opaque(error.message)

    def _known_type(self, value: Any) -> Type:
        match value:
            case torch.Tensor() if value.dtype in _PARTS:
                parts = _PARTS[value.dtype]
                return ComplexType(TensorType(parts, tuple(map(self.dim, value.shape))))
            case torch.Tensor() if value.dtype not in DTYPES:
                return Opaque(f"tensors of {value.dtype} are not supported")
            case torch.Tensor():
                return TensorType(element_type(value.dtype), tuple(map(self.dim, value.shape)))
            case bool() | torch.SymBool() | torch.SymFloat():
                return None
            case int() | torch.SymInt():
                return self.dim(value)
            case _:
                return None

    def dim(self, d: int | torch.SymInt) -> Dim:
        """A size: an int, or torch's symbolic expression as a Poly of our symbols."""
        if isinstance(d, int):
            return d
        return exprs.read(str(d.node.expr), self._symbol)

    def _symbol(self, name: str) -> Dim:
        name = self.renamed.get(name, name)
        if name in self.symbols:
            s = self.symbols[name]  # torch's symbol counts the steps of ours
            return floordiv(dim_of(s) - s.offset, s.step)
        if name.startswith("u"):
            lo, hi = self.ranges.get(name, (0, None))
            return self.fresh.setdefault(name, symbol(name, lo, hi))
        lo, hi = self.ranges.get(name, (1, None))
        s = self.symbols[name] = Symbol(name, lo, hi)
        return symbol(s.name, s.lo, s.hi)

    # ---- calls ---------------------------------------------------------------------------------

    def _call(self, node: fx.Node) -> OpCall:
        value, target, args = node.meta.get("val"), node.target, node.args
        if target is torch.ops.higher_order.with_effects:  # of (token, op, *args); order is kept
            target, args = args[1], args[2:]
            outputs = tuple(self._item(node, i) for i in range(1, len(value))
                            if value[i] is not None)
        elif isinstance(value, (tuple, list)):
            outputs = tuple(self._item(node, i) for i in range(len(value)))
        else:
            outputs = (node.name,)
        custom, name = node.meta.get("custom") or {}, target_name(target)
        args, kwargs = memory.arguments(name, args, node.kwargs)
        return OpCall(name, tuple(self._argument(a) for a in args),
                      {k: self._argument(v) for k, v in kwargs.items()}, outputs,
                      self._place(node), custom.get(CHECKPOINT, 0), custom.get(GRADIENT, ""))

    def _item(self, node: fx.Node, i: int) -> str:
        """The name of result i of a call; an unused result gets a name and a type too."""
        name = self.items.get(node, {}).get(i)
        if name is None:
            name = f"{node.name}[{i}]"
            self.types[name] = self._value_type(node.meta["val"][i])
        return name

    def _place(self, node: fx.Node) -> CallPlace:
        frames_ = re.findall(r"<fx [^>]*>", node.meta.get("stack_trace") or "")
        return self.places.get(frames_[-1], CallPlace()) if frames_ else place(node)

    def _argument(self, x: Any) -> Any:
        match x:
            case fx.Node(op="get_attr") if isinstance(held := self._held(x), fx.GraphModule):
                return self.region(held)
            case fx.Node():
                return NamedValue(x.name)
            case list() | tuple():
                return tuple(self._argument(i) for i in x)
            case torch.SymInt():
                return self.dim(x)
            case torch.dtype():
                return DTYPES.get(x)
            case bool() | int() | float() | complex() | str() | Opaque() | None:
                return x
            case _:
                return None  # device, layout, memory format: nothing that we could honour


def bound(x: Any) -> int | None:
    """x as an int; None for torch's infinities and the huge numbers that stand for them."""
    try:
        n = int(x)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None
    return n if abs(n) < _HUGE else None


def target_name(target: Any) -> str:
    """`aten.add.Tensor`, `prims.…`, `_operator.add`; higher-order ops as `higher_order.cond`."""
    match target:
        case torch._ops.OpOverload():
            return f"{target.namespace}.{target._opname}.{target._overloadname}"
        case torch._ops.HigherOrderOperator():
            return f"higher_order.{target.name()}"
        case _:
            return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


def place(node: fx.Node) -> CallPlace:
    """The place of a node, by the modules and the stack that torch recorded."""
    return module_place([
        (path, kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}")
        for path, kind in (node.meta.get("nn_module_stack") or {}).values()],
        node.meta.get("stack_trace") or "")
