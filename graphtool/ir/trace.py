"""Building graphs: a `Builder` collects nodes, a `Tracer` is a value on which ops are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np

from graphtool.dtypes import DType
from graphtool.errors import InputError, InternalError, TypeMismatch
from graphtool.escaping import line
from graphtool.io.weights import Array, Weight, weight
from graphtool.ir.graph import Graph, Node, Operand, TensorType, Value
from graphtool.ir.op import OPS, ArrayOperand, Op, Operators, complete_attrs
from graphtool.symbolic import Dim, product

Literal = (int, float, bool)


class Tracer(Operators):
    """A value under construction: ops called on it are recorded in its builder."""

    __slots__ = ("builder", "value")

    def __init__(self, value: Value, builder: Builder) -> None:
        self.value, self.builder = value, builder

    @property
    def type(self) -> TensorType:
        """The tensor type of the value."""
        return self.value.type

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The dims of the value, one for each axis."""
        return self.value.type.shape

    @property
    def dtype(self) -> DType:
        """The element type of the value."""
        return self.value.type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.value.type.shape)

    def apply(self, op: Op, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Add a node of `op` to the builder; returns a tracer, or a tuple of them for several
        outputs."""
        return self.builder.emit(op, operands, attrs)

    def __repr__(self) -> str:
        return f"{self.value.hint}: {self.value.type}"

    @property
    def maker(self) -> Node | None:
        """The node that makes the value; None of an input."""
        return self.builder.made_by.get(self.value)

    def sibling(self, value: Value) -> Self:
        """Another value of the same builder."""
        return type(self)(value, self.builder)

    def nullary(self, op: Op, attrs: dict[str, Any]) -> Any:
        """The result of an op without operands, in the same builder."""
        return self.builder.emit(op, (), attrs)

    def number(self, value: Any) -> Any:
        """A number as a tensor without axes, of the element type of this one."""
        return self.builder.constant(np.asarray(value).astype(self.dtype.numpy))

    # ---- ops as methods ------------------------------------------------------------------------

    def cast(self, dtype: DType, saturate: bool = True) -> Self:
        """The elements in another type."""
        return OPS["cast"](  # type: ignore[no-any-return]
            self, dtype=dtype, saturate=saturate)

    def bits_as(self, dtype: DType) -> Self:
        """The bits of the elements as another type of as many bits."""
        return OPS["bitcast"](self, dtype=dtype)  # type: ignore[no-any-return]

    def reshape(self, shape: Sequence[Dim]) -> Self:
        """The same elements under another shape. If this tensor is itself a reshape, or a
        broadcast that only adds axes, the tensor before that is reshaped."""
        x, shape = self, tuple(shape)
        while x.shape != shape and (source := x.before_reshape()) is not None:
            x = source
        return x if x.shape == shape else OPS["reshape"](
            x, shape=shape)

    def unsqueeze(self, axis: int = -1) -> Self:
        """The same elements with one more axis, of size 1, which is axis `axis` of the result."""
        at = axis % (self.ndim + 1)
        return self.reshape((*self.shape[:at], 1, *self.shape[at:]))

    def before_reshape(self) -> Self | None:
        """The tensor with the same elements that this one reshapes or broadcasts."""
        node = self.maker
        if node is None or node.op not in (OPS["reshape"], OPS["broadcast"]):
            return None
        (source,) = node.inputs
        assert isinstance(source, Value)
        same = product(source.type.shape) == product(self.shape)
        return self.sibling(source) if same else None

    def broadcast(self, shape: Sequence[Dim]) -> Self:
        """The tensor repeated to this shape by NumPy's rule."""
        return OPS["broadcast"](  # type: ignore[no-any-return]
            self, shape=tuple(shape))

    def transpose(self, perm: Sequence[int]) -> Self:
        """The axes in another order: axis k of the result is axis perm[k]."""
        return OPS["transpose"](self, perm=tuple(perm))  # type: ignore[no-any-return]

    def slice(self, start: Sequence[Dim], limit: Sequence[Dim],
              strides: Sequence[int] | None = None) -> Self:
        """The elements from `start` to `limit` along every axis, in these steps."""
        return OPS["slice"](  # type: ignore[no-any-return]
            self, start=tuple(start), limit=tuple(limit),
            strides=tuple(strides or (1,) * self.ndim))

    def take(self, axis: int, start: Dim, limit: Dim, stride: int = 1) -> Self:
        """The elements from `start` to `limit` along one axis, in these steps."""
        lo: list[Dim] = [0] * self.ndim
        hi, steps = list(self.shape), [1] * self.ndim
        lo[axis], hi[axis], steps[axis] = start, limit, stride
        return self.slice(lo, hi, steps)

    def pad(self, lo: Sequence[Dim], hi: Sequence[Dim], value: float = 0,
            interior: Sequence[int] = ()) -> Self:
        """The tensor with a number around it, and between its elements; negative amounts cut
        elements off."""
        if all(isinstance(d, int) and d == 0 for d in (*lo, *hi, *interior)):
            return self
        return OPS["pad"](  # type: ignore[no-any-return]
            self, lo=tuple(lo), hi=tuple(hi), value=value,
            interior=tuple(interior) if any(interior) else None)

    def reduce(self, kind: str, axes: Sequence[int]) -> Self:
        """`sum`, `max`, … along the axes, which the result does not have."""
        out: Self = OPS[f"reduce_{kind}"](self, axes=tuple(axes))
        return out.reshape([d for i, d in enumerate(self.shape) if i not in axes])


def like(x: Any, op: Op, **attrs: Any) -> Any:
    """Call an op that has no operands in the mode of x: recorded for a Tracer, else evaluated."""
    if isinstance(x, Tracer):
        return x.nullary(op, attrs)
    return x.builder.emit(op, (), attrs) if isinstance(x, ArrayOperand) else op(**attrs)


class Builder:
    """Collects the nodes of one graph. `scope` sets the names and origins of the next nodes."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.made_by: dict[Value, Node] = {}
        self.prefix = ""
        self.where = ""
        self.of: tuple[str, ...] = ()
        self.constants: dict[tuple[str, str, Any], Value] = {}
        self.keys: dict[Value, tuple[str, str, Any]] = {}  # of `constants`, by value
        self.renamed: dict[Value, Value] = {}

    def traced(self, value: Value) -> Tracer:
        """A tracer for a value of the graph."""
        return Tracer(value, self)

    def input(self, type: TensorType, hint: str) -> Tracer:
        """A tracer for a new value of this type that no node computes; `hint` is its name."""
        return Tracer(Value(type, hint), self)

    def constant(self, array: Array | Weight, hint: str = "", param: bool = False,
                 of: tuple[str, ...] = (), alone: bool = False) -> Tracer:
        """A constant; equal contents give one node; parameters and constants that stand `alone`
        must also have equal names.

        A constant with a name has the origin `of` that is given; one without has the origin of the
        current scope.
        """
        w = array if isinstance(array, Weight) else weight(np.asarray(array))
        of = of if hint else self.of
        hint = hint or (f"{self.prefix}.constant" if self.prefix else "constant")
        key = (w.digest, w.dtype.name, hint if param or alone else w.shape)
        if key not in self.constants:
            node = Node(OPS["constant"], (), complete_attrs(
                OPS["constant"], {"data": w, "param": param}),
                (Value(TensorType(w.dtype, w.shape), hint),), self.where, of)
            self.add(node)
            self.constants[key] = node.outputs[0]
            self.keys[node.outputs[0]] = key
        return Tracer(self.constants[key], self)

    def add(self, node: Node) -> None:
        """Append a finished node and record which node computes each of its outputs."""
        self.nodes.append(node)
        for v in node.outputs:
            self.made_by[v] = node

    def operand(self, x: Any) -> Operand:
        """What a node may take as an input for `x`: a value, a literal or None.

        An array becomes a constant, a numpy number a literal. Raises InternalError GT7003 for
        anything else.
        """
        if isinstance(x, Tracer):
            return x.value
        if x is None or isinstance(x, (Literal, Value)):
            return x
        if isinstance(x, np.generic) and x.ndim == 0 and x.dtype.kind in "fiub":
            return x.item()  # type: ignore[no-any-return]
        if isinstance(x, np.ndarray):
            return self.constant(x).value
        raise InternalError("GT7003", f"{type(x).__name__} cannot be an operand")

    def emit(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any], hint: str = "") -> Any:
        """Record one node; returns its output Tracer, or a tuple of them."""
        inputs = tuple(self.operand(x) for x in operands)
        attrs = complete_attrs(op, attrs)
        types = infer(op, inputs, attrs, self.where or self.prefix)
        hint = hint or (f"{self.prefix}.{op.name}" if self.prefix else op.name)
        several = isinstance(types, tuple)
        outputs = tuple(Value(t, hint if i == 0 else f"{hint}.{i}")
                        for i, t in enumerate(types if isinstance(types, tuple) else (types,)))
        self.add(Node(op, inputs, attrs, outputs, self.where, self.of))
        tracers = tuple(Tracer(v, self) for v in outputs)
        return tracers if several else tracers[0]

    @contextmanager
    def scope(self, prefix: str, where: str = "", of: tuple[str, ...] = ()) -> Iterator[None]:
        """A context: nodes are named `prefix.op`, and have the location `where` and the author's
        names `of`."""
        saved = self.prefix, self.where, self.of
        self.prefix, self.where, self.of = prefix, where, of
        try:
            yield
        finally:
            self.prefix, self.where, self.of = saved

    def rename(self, value: Value, hint: str) -> Value:
        """Give a value that this builder made another name, before anything else reads it."""
        self.rename_all({value: hint})
        return self.renamed[value]

    def rename_all(self, hints: Mapping[Value, str]) -> None:
        """Give values that this builder made other names, before anything else reads them;
        `renamed` has the new values."""
        for value, hint in hints.items():
            fresh = self.renamed[value] = Value(value.type, hint)
            if (key := self.keys.pop(value, None)) is not None:
                self.constants[key], self.keys[fresh] = fresh, key
        makers = {self.made_by.pop(value) for value in hints}
        at = len(self.nodes)
        while makers:
            at -= 1
            node = self.nodes[at]
            if node not in makers:
                continue
            makers.remove(node)
            outputs = tuple(self.renamed[v] if v in hints else v for v in node.outputs)
            new = self.nodes[at] = replace(node, outputs=outputs)
            for v in outputs:
                self.made_by[v] = new


def infer(op: Op, inputs: Sequence[Operand], attrs: dict[str, Any], where: str = "") -> Any:
    """The types of the outputs. A TypeMismatch gets the place, and the names and types of the
    operands."""
    types = [x.type if isinstance(x, Value) else x for x in inputs]
    try:
        return _no_less_than_0(op.infer(*types, **attrs))
    except InputError as error:
        rows = [line(f"{x.hint}: {x.type}") for x in inputs if isinstance(x, Value)]
        error.where = "\n".join(s for s in (line(where), error.where, *rows) if s)
        error.message = f"{op.name}: {error.message}"
        raise error from None
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        _check_arity(op, len(inputs))
        if isinstance(error, AttributeError) and all(isinstance(x, Value) for x in inputs):
            raise
        raise TypeMismatch("GT0404", f"{op.name}: {error}", where=where) from error


def _no_less_than_0(types: Any) -> Any:
    """The types. Raises TypeMismatch GT0404 for a size below 0."""
    for t in types if isinstance(types, tuple) else (types,):
        if any(isinstance(d, int) and d < 0 for d in t.shape):
            raise TypeMismatch("GT0404", f"{t} has a size below 0")
    return types


def _check_arity(op: Op, count: int) -> None:
    fixed = [p for p in op.operands if p.kind is not p.VAR_POSITIONAL]
    needed = sum(p.default is p.empty for p in fixed)
    most = len(fixed) if len(fixed) == len(op.operands) else count
    if not needed <= count <= most:
        raise TypeMismatch("GT0405", f"{op.name} takes {needed} operands, {count} given")


def as_value(x: Operand) -> Value:
    """The operand, which must be a value. Raises InternalError GT7004 for a literal."""
    if not isinstance(x, Value):
        raise InternalError("GT7004", "a rewrite replaced an output by a literal")
    return x


def trace(fn: Callable[..., Any], types: Sequence[TensorType],
          names: Sequence[str] | None = None) -> Graph:
    """The graph of a Python function over tensors of the given types."""
    builder = Builder()
    names = names or [f"x{i}" for i in range(len(types))]
    args = [builder.input(t, n) for t, n in zip(types, names, strict=True)]
    results = fn(*args)
    results = results if isinstance(results, (tuple, list)) else (results,)
    outputs = tuple(as_value(builder.operand(
        np.asarray(r) if isinstance(r, Literal) else r)) for r in results)
    return Graph(tuple(a.value for a in args), tuple(builder.nodes), outputs)
