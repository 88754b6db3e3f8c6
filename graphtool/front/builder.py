"""The builder of an import: computes what is known, repeats lazily, and records the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import Parameter
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType, of_numpy
from graphtool.errors import Undecided
from graphtool.front.array import Array, Numbers, compact, stripped
from graphtool.front.assumptions import Assuming
from graphtool.front.known import FOLD_LIMIT, evaluated, of_entries
from graphtool.io.weights import Weight
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import TensorType, Value
from graphtool.ir.op import Op, complete_attrs
from graphtool.ir.trace import Tracer, infer
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import Condition, Dim, Poly, product

_SIGNS = {"==": o.eq, "!=": o.ne, "<": o.lt, "<=": o.le}


class Front(Assuming):
    """A builder whose values are Arrays. If it `folds`, ops on known values become values. If it
    `repeats`, ops that only repeat a tensor become nodes only where they must."""

    folds = True
    repeats = True

    # ---- values --------------------------------------------------------------------------------

    def traced(self, value: Value) -> Array:
        """A value of the graph."""
        return Array(self, value.type, value=value)

    def input(self, type: TensorType, hint: str) -> Array:
        """A new value of this type that no node computes; `hint` is its name."""
        return self.traced(super().input(type, hint).value)

    def constant(self, array: Numbers | Weight, hint: str = "", param: bool = False,
                 of: tuple[str, ...] = (), alone: bool = False) -> Array:
        """A known array; the contents of a file stay there until something reads them. `alone` is
        as for any Builder: such a constant is a node of its own."""
        if alone or isinstance(array, Weight):
            return self.traced(super().constant(array, hint, param, of, alone).value)
        array = np.asarray(array)
        return Array(self, TensorType(of_numpy(array.dtype), array.shape), known=array, hint=hint,
                     param=param)

    def number(self, value: Any, dtype: DType) -> Array:
        """A number, or a size, as a tensor without axes."""
        if isinstance(value, Poly):
            return self.entries(np.array(value, object), dtype)
        with np.errstate(over="ignore"):  # a number beyond the type is infinite
            return self.constant(np.asarray(value).astype(dtype.numpy))

    def entries(self, known: Numbers, dtype: DType) -> Array:
        """An array of sizes and conditions; of numbers, if none of these is open."""
        flat = known.reshape(-1)
        if not any(isinstance(d, (Poly, Condition)) for d in flat):
            return self.constant(np.array(flat.tolist(), dtype.numpy).reshape(known.shape))
        return Array(self, TensorType(dtype, known.shape), known=known)

    def sizes(self, dims: Sequence[Dim], dtype: DType = dtypes.int64) -> Array:
        """A vector of sizes."""
        out = np.empty(len(dims), object)
        out[:] = dims
        return self.entries(out, dtype)

    def repeated(self, x: Array, shape: Sequence[Dim]) -> Array:
        """x repeated to this shape by NumPy's rule, when something reads it."""
        shape = tuple(shape)
        base = x if x.base is None else x.base
        if x.shape == shape:
            return x
        numbers = [d for d in shape if isinstance(d, int) and d > 0]
        if base.known is not None and len(numbers) == len(shape):
            return Array(self, TensorType(x.dtype, shape), hint=x.hint,
                         known=np.broadcast_to(base.known, numbers))
        if not self.repeats:
            return self.record(o.broadcast, (x,), {"shape": shape})  # type: ignore[no-any-return]
        return Array(self, TensorType(x.dtype, shape), base=base)

    def operand(self, x: Any) -> Any:
        """What a node may take as an input for x."""
        return super().operand(self.constant(x) if isinstance(x, np.ndarray) else x)

    # ---- ops -----------------------------------------------------------------------------------

    @contextmanager
    def folding(self, folds: bool) -> Iterator[None]:
        """A context in which ops on what is known are computed, or are all nodes."""
        before, self.folds = self.folds, folds
        try:
            yield
        finally:
            self.folds = before

    def record(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any], hint: str = "") -> Any:
        """One node, whatever is known of its operands; its results as Arrays."""
        if Trait.ELEMENTWISE in op.traits:
            operands = _as_floats(op, operands)
        results = super().emit(op, operands, attrs, hint)
        return tuple(self.traced(t.value) for t in results) if isinstance(results, tuple) else (
            self.traced(results.value))

    def filled(self, op: Op, attrs: dict[str, Any]) -> Any:
        """The result of an op without operands, computed if it is small."""
        attrs = complete_attrs(op, attrs)
        kind = op.infer(**attrs)
        count = product(kind.shape) if isinstance(kind, TensorType) else None
        if self.folds and op.eval is not None and isinstance(count, int) and count <= FOLD_LIMIT:
            return self.constant(op.eval(**attrs))
        return self.emit(op, (), attrs)

    def emit(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any], hint: str = "") -> Any:
        """The results of an op: computed if its operands are known, else those of a node."""
        xs = [self.constant(x) if isinstance(x, np.ndarray) else x for x in operands]
        arrays = [x for x in xs if isinstance(x, Array)]
        early = any(x.known is not None or x.base is not None for x in arrays)
        attrs = complete_attrs(op, attrs)
        if xs and isinstance(xs[0], Array) and _unchanged(op, xs, attrs):
            return xs[0]
        if early or op is o.broadcast or not arrays:
            known = self._early(op, xs, arrays, attrs, hint)
            if known is not None:
                return known
        return self.record(op, xs, attrs, hint)

    def _early(self, op: Op, xs: list[Any], arrays: list[Array], attrs: dict[str, Any],
               hint: str) -> Any:
        """The results without a node of this op on whole operands; None if it needs one."""
        try:
            types = infer(op, [_placeholder(x) for x in xs], attrs, self.where or self.prefix)
        except Undecided as error:
            if any(x.base is not None for x in arrays):
                self.knowledge.pairs += error.pairs
                raise
            return None
        if isinstance(types, TensorType) and self.folds and all(
                x.known is not None for x in arrays) and (
                op.known is not None if not xs else any(x.symbolic for x in arrays)):
            entries = of_entries(op, xs, arrays, attrs)
            if entries is not None:
                return self.repeated(self.entries(entries, types.dtype), types.shape)
        if op is o.broadcast and isinstance(types, TensorType):
            return self.repeated(xs[0], types.shape)  # evaluated, 0 elements would be unknown
        if self.folds and arrays and all(x.fixed and not x.symbolic for x in arrays) and len(
                arrays) == sum(isinstance(x, Tracer) for x in xs):
            out = evaluated(op, xs, attrs, types)
            if out is not None:
                return tuple(map(self.constant, out)) if isinstance(types, tuple) else (
                    self.constant(out[0]))
        if not isinstance(types, TensorType):
            return None
        if Trait.ELEMENTWISE in op.traits:
            return self._elementwise(op, xs, attrs, types, hint)
        return None

    def _elementwise(self, op: Op, xs: list[Any], attrs: dict[str, Any], kind: TensorType,
                     hint: str) -> Any:
        """The op on operands that it repeats itself, with numbers for those of one value."""
        parts = [self._narrow(x) for x in xs]
        if all(p.fixed for p in parts if isinstance(p, Array)) and any(
                isinstance(x, Array) and x.base is not None for x in xs):
            result = self.emit(op, parts, attrs, hint)
        else:
            result = self.record(op, _with_numbers(op, parts, None if self.repeats else kind.shape),
                                 attrs, hint)
        return self.repeated(result, kind.shape)

    def _narrow(self, x: Any) -> Any:
        """The smaller tensor that is repeated to x."""
        if not isinstance(x, Array) or not self.repeats:
            return x
        if x.base is not None:
            return x.base
        if x.known is None or x.param:
            return x
        part = np.array(stripped(compact(x.known)))
        return Array(self, TensorType(x.dtype, part.shape), known=part, hint=x.hint)

    # ---- nodes for what is known ---------------------------------------------------------------

    def realised(self, x: Array) -> Value:
        """The value of a known or repeated array; adds its nodes."""
        if x.base is not None:
            return self._widened(x.base, x.shape)
        assert x.known is not None
        part = compact(x.known)
        if part.size != x.known.size and not x.param:
            part = np.array(stripped(part))
            return self._widened(Array(self, TensorType(x.dtype, part.shape), known=part), x.shape)
        if x.symbolic:
            return self._entries_value(x).value
        whole = np.ascontiguousarray(x.known).reshape(x.known.shape)
        return super().constant(whole, x.hint, x.param).value

    def _widened(self, x: Array, shape: tuple[Dim, ...]) -> Value:
        return x.value if x.shape == shape else (
            self.record(o.broadcast, (x,), {"shape": shape}).value)

    def _entries_value(self, x: Array) -> Array:
        assert x.known is not None
        parts = [self._entry_value(e, x.dtype) for e in x.known.reshape(-1)]
        if x.ndim == 0:
            return parts[0]
        rows = [self.record(o.reshape, (p,), {"shape": (1,)}) for p in parts]
        line: Array = rows[0] if len(rows) == 1 else self.record(o.concat, rows, {"axis": 0})
        return line if x.ndim == 1 else self.record(
            o.reshape, (line,), {"shape": x.shape})

    def _entry_value(self, e: Any, dtype: DType) -> Array:
        """A size, or a condition, which the run knows."""
        match e:
            case Condition(sign, a, b):
                return self.record(_SIGNS[sign], [  # type: ignore[no-any-return]
                    self._entry_value(d, dtypes.int64) for d in (a, b)], {})
            case bool():
                return self.constant(np.array(e))
        return self.record(o.dim, (), {  # type: ignore[no-any-return]
            "of": e, "dtype": dtype})


def _placeholder(x: Any) -> Any:
    if isinstance(x, Array):
        return x.emitted or Value(x.type, x.hint or "constant")
    return x.value if isinstance(x, Tracer) else x


def _unchanged(op: Op, xs: Sequence[Any], attrs: dict[str, Any]) -> bool:
    """Whether the op gives its operand as it is: what only gives it another type or shape, and
    has the same; an order of axes that is theirs; one operand to join."""
    x: Array = xs[0]
    match op.movement:
        case Movement.NONE:
            return _retypes(op) and attrs["dtype"] is x.dtype
        case Movement.KEEPS | Movement.REPEATS:
            return attrs.get("shape") == x.shape
        case Movement.PERMUTES:
            return op.axes is not None and attrs.get(op.axes.order) == tuple(range(x.ndim))
        case Movement.JOINS | Movement.TAKES:
            return len(xs) == 1 and infer(op, [_placeholder(x)], attrs) == x.type
    return False


def _retypes(op: Op) -> bool:
    """Whether the op gives each element another type."""
    return Trait.ELEMENTWISE in op.traits and "dtype" in op.schema


def _with_numbers(op: Op, xs: Sequence[Any], shape: tuple[Dim, ...] | None) -> list[Any]:
    """The operands with numbers in place of tensors of one value; if the result must have this
    shape, only where it has it without them. One of those that have the same element type stays a
    tensor."""
    out, rows = list(xs), op.operands
    rest = [x.shape for x in xs if isinstance(x, Tracer) and not (
        isinstance(x, Array) and x.known is not None)]
    whole = shape is None or (bool(rest) and broadcast_shapes(*rest) == shape)
    rank = max(map(len, rest), default=-1)
    alike = range(len(xs)) if op.alike is None else op.alike
    several = len(rows) > len(xs) or rows[0].kind is Parameter.VAR_POSITIONAL
    for i in alike:
        x = xs[i]
        tensor = not several and str(rows[i].annotation) == "TensorType"
        named = isinstance(x, Array) and x.param and "." in x.hint  # a parameter of a module
        alone = whole or (isinstance(x, Array) and x.ndim <= rank and all(
            d == 1 for d in x.shape))
        if isinstance(x, Array) and alone and not tensor and not named and x.literal is not None:
            out[i] = x.literal
    if not any(isinstance(out[i], Tracer) for i in alike):
        first = next(i for i in alike if isinstance(xs[i], Tracer))
        out[first] = xs[first]
    return out


def _as_floats(op: Op, xs: Sequence[Any]) -> Sequence[Any]:
    """The operands with floats in place of the whole numbers that stand beside floats."""
    alike = range(len(xs)) if op.alike is None else op.alike
    if not any(isinstance(xs[i], Tracer) and xs[i].dtype.is_float for i in alike):
        return xs
    return [float(x) if i in alike and type(x) is int else x for i, x in enumerate(xs)]
