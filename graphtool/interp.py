"""The reference evaluator: runs a module in numpy, at any stage before lowering.

`run` takes the values of symbolic sizes from the shapes of the inputs, then replays the graph and
frees each value after its last use. What is the same in every iteration of a loop is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import graphtool.ops  # noqa: F401  (fills the registry of ops)
from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import GraphtoolError, InputError, InternalError, listed, near
from graphtool.escaping import line
from graphtool.io.grids import as_bytes, as_reals, of_meta
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value, is_constant
from graphtool.ir.op import Op, evaluate, evaluate_quiet
from graphtool.ir.replay import last_uses, replay
from graphtool.ir.run_sizes import bare, size_in_result
from graphtool.ir.text import value_names
from graphtool.ir.trace import trace
from graphtool.symbolic import (
    Dim,
    Poly,
    bind,
    check_bounds,
    check_required,
    substitute,
    symbols,
    text,
)

Array = np.ndarray[Any, Any]
_FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError)


@dataclass(frozen=True)
class Fixed:
    """What a node's evaluation needs in every iteration of a loop: the attributes, and the shapes
    and types of the results, without symbolic sizes. `body` is a composite's decomposition."""

    attrs: dict[str, Any]
    wanted: list[tuple[tuple[Dim, ...], np.dtype[Any]]]
    body: Graph | None


@dataclass(frozen=True)
class Setting:
    """The things on which evaluation depends besides the operands: known sizes, and a wider
    float type. `seen`, `fixed` and `last` hold what was found out about nodes and graphs."""

    sizes: dict[str, Dim] = field(default_factory=dict)
    dtype: DType | None = None
    seen: set[Node] = field(default_factory=set)
    fixed: dict[Node, Fixed | None] = field(default_factory=dict)
    last: dict[Graph, dict[Node, list[Value]]] = field(default_factory=dict)

    def widened(self, d: DType) -> DType:
        """The type in which `d` is evaluated: the setting's float type for floats, if it has
        one."""
        return self.dtype if self.dtype and d.is_float else d


@dataclass(frozen=True)
class Region:
    """A graph in an attribute, as a function of arrays."""

    graph: Graph
    setting: Setting

    def __call__(self, *args: Array) -> list[Array]:
        return evaluate_graph(self.graph, args, self.setting)

    def blank(self) -> list[Array] | None:
        """Zeros of the results' types; None if only a run of the graph tells their sizes."""
        shapes = [tuple(substitute(d, self.setting.sizes) for d in v.type.shape)
                  for v in self.graph.outputs]
        if any(isinstance(d, Poly) for shape in shapes for d in shape):
            return None
        return [np.zeros(shape, self.setting.widened(v.type.dtype).numpy)
                for shape, v in zip(shapes, self.graph.outputs, strict=True)]


def run(module: Module, inputs: Mapping[str, Array], *, dtype: DType | None = None,
        on_value: Callable[[str, Array], None] | None = None) -> dict[str, Array]:
    """The outputs by name, in order; `on_value` is called with the name and array of each computed
    value.

    `dtype` evaluates in another float type: inputs, constants and attributes are converted. Raises
    InputError GT051x for inputs that do not fit, GT050x if an operation fails on them.
    """
    graph = module.graph
    setting = Setting({}, dtype)
    arrays = bind_inputs(module, inputs, setting)
    names = value_names(graph) if on_value else {}

    def apply(node: Node, *xs: Any) -> list[Array]:
        results = evaluate_node(node, xs, setting)
        if on_value and not is_constant(node):
            for v, r in zip(node.outputs, results, strict=True):
                on_value(names[v], r)
        return results

    with np.errstate(all="ignore"):
        outputs = replay(graph, arrays, apply, last_uses(graph))
    return dict(zip(module.output_names, outputs, strict=True))


def evaluate_graph(graph: Graph, args: Sequence[Array], setting: Setting) -> list[Array]:
    """The results of a closed graph on arrays, such as the body of a `cond`, `while_` or `scan`."""
    inner = replace(setting, sizes=dict(setting.sizes))
    if graph not in setting.last:
        setting.last[graph] = last_uses(graph)
    with np.errstate(all="ignore"):
        return replay(graph, args, lambda node, *xs: evaluate_node(node, xs, inner),
                      setting.last[graph])


def evaluate_node(node: Node, operands: Sequence[Any], setting: Setting) -> list[Array]:
    """The node's results, checked against its types; sizes that it defines become known."""
    try:
        if (fixed := _fixed(node, setting)) is not None:
            results = _repeated(node, fixed, operands, setting)
            if [(r.shape, r.dtype) for r in results] == fixed.wanted:
                return results
        results = evaluate_op(node.op, operands, node.attrs, setting,
                              [x.type.dtype if isinstance(x, Value) else None
                               for x in node.inputs])
        _check_results(node, results, setting)
    except GraphtoolError as error:
        if not error.where:
            error.within(_place(node))
        raise
    except _FAULTS as error:
        raise InputError("GT0503", f"{node.op.name} cannot be evaluated: {error}",
                         where=_place(node)) from error
    return results


def _fixed(node: Node, setting: Setting) -> Fixed | None:
    """What is the same in each evaluation of the node, from its second one on; None if that is
    not all."""
    if node in setting.fixed:
        return setting.fixed[node]
    if node not in setting.seen:
        setting.seen.add(node)
        return None
    types = [x.type for x in (*node.inputs, *node.outputs) if isinstance(x, Value)]
    if setting.dtype or not all(map(_is_plain, (*node.attrs.values(), *(t.shape for t in types)))):
        setting.fixed[node] = None
        return None
    op, body = node.op, None
    if op.eval is None and op.decompose is not None:
        body = trace(lambda *xs: op.decompose(*_placed(node, xs), **node.attrs),  # type: ignore
                     [x.type for x in node.inputs if isinstance(x, Value)])
    setting.fixed[node] = Fixed(dict(node.attrs), [
        (v.type.shape, v.type.dtype.numpy) for v in node.outputs], body)
    return setting.fixed[node]


def _is_plain(x: Any) -> bool:
    """Whether an attribute has the same meaning everywhere: no size and no region is in it."""
    return all(map(_is_plain, x)) if isinstance(x, tuple) else not isinstance(x, (Poly, Graph))


def _placed(node: Node, tensors: Sequence[Any]) -> list[Any]:
    """The operands of a node: these, and its literals between them."""
    rest = iter(tensors)
    return [next(rest) if isinstance(x, Value) else x for x in node.inputs]


def _repeated(node: Node, fixed: Fixed, operands: Sequence[Any], setting: Setting) -> list[Array]:
    if fixed.body is not None:
        return evaluate_graph(fixed.body, [
            x for x, of in zip(operands, node.inputs, strict=True) if isinstance(of, Value)],
            setting)
    out = evaluate_quiet(node.op, operands, fixed.attrs)
    return list(out) if isinstance(out, tuple) else [out]


def evaluate_op(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any],
                setting: Setting | None = None,
                declared: Sequence[DType | None] = ()) -> list[Array]:
    """`op.eval` with numbers for sizes in the attributes; a region becomes a function."""
    setting = setting or Setting()
    bound = {k: _bind(v, setting) for k, v in attrs.items()
             if not (k == "size" and Trait.SIZE in op.traits and isinstance(v, Poly))}
    # the bits are those of the declared type, so a wider one has no meaning
    if Trait.BITS in op.traits and setting.dtype:
        bound = dict(attrs)
        operands = [x.astype(d.numpy) if d else x
                    for x, d in zip(operands, declared, strict=True)]
    out = evaluate(op, operands, bound)
    results = [dtypes.as_array(r) for r in (out if isinstance(out, (tuple, list)) else (out,))]
    return [_widen(r, setting) for r in results] if setting.dtype else results


def _bind(x: Any, setting: Setting) -> Any:
    match x:
        case tuple():
            return tuple(_bind(i, setting) for i in x)
        case Poly():
            d = substitute(x, setting.sizes)
            if isinstance(d, Poly):
                free = ", ".join(s.name for s in symbols(d))
                raise InputError("GT0504", f"the size {text(x)} is unknown: {free} is not bound")
            return d
        case DType():
            return setting.widened(x)
        case Graph():
            return Region(x, setting)
        case _:
            return x


def _widen(x: Array, setting: Setting) -> Array:
    row = dtypes.of_numpy(x.dtype)
    wanted = setting.widened(row)
    return x if wanted is row else x.astype(wanted.numpy)


def _check_results(node: Node, results: list[Array], setting: Setting) -> None:
    size = size_in_result(node)
    if size is not None:
        setting.sizes[size.name] = int(results[0])
        check_bounds(size, int(results[0]))
    for v, r in zip(node.outputs, results, strict=True):
        wanted = setting.widened(v.type.dtype)
        if len(r.shape) == v.type.rank:
            for d, n in zip(v.type.shape, r.shape, strict=True):
                name = bare(d)
                if name and name.name not in setting.sizes:  # a size that this node defines
                    setting.sizes[name.name] = n
                    check_bounds(name, n)
        shape = tuple(substitute(d, setting.sizes) for d in v.type.shape)
        if shape != r.shape or wanted.numpy != r.dtype:
            raise InternalError("GT7501", f"{node.op.name} evaluated to {r.dtype}{list(r.shape)}, "
                                          f"but its declared type is {v.type}", where=_place(node))


def _place(node: Node) -> str:
    name = node.outputs[0].hint if node.outputs else node.op.name
    return line(f"node {name}" + (f" at {node.where}" if node.where else ""))


# ---- inputs ------------------------------------------------------------------------------------

def bind_inputs(module: Module, inputs: Mapping[str, Array], setting: Setting) -> list[Array]:
    """The arrays in the order of the graph's inputs; adds the sizes in their shapes to
    `setting.sizes`."""
    names = value_names(module.graph)
    wanted = {names[v]: v.type for v in module.graph.inputs}
    listing = listed(f"{n}: {t}" for n, t in wanted.items())
    # check this first: it may be a misspelt name
    if extra := [n for n in inputs if n not in wanted]:
        raise InputError("GT0512", f"there is no input {listed(extra)}",
                         hint=near(extra[0], wanted, f"the inputs are {listing}"))
    if missing := [n for n in wanted if n not in inputs]:
        raise InputError("GT0511", f"missing input {listed(missing)}",
                         hint=f"the inputs are {listing}")
    arrays = {n: _converted(n, _array(inputs[n], t), t, setting) for n, t in wanted.items()}
    bind(((d, n) for name, t in wanted.items()
          for d, n in zip(t.shape, arrays[name].shape, strict=True)), setting.sizes)
    for name, t in wanted.items():
        _check_shape(name, arrays[name].shape, t, setting.sizes)
    for name, size in setting.sizes.items():
        if row := module.symbols.get(name):
            check_bounds(row, size)
    check_required(module.requires, setting.sizes)
    return list(arrays.values())


def _array(x: Any, t: TensorType) -> Array:
    """x as an array; objects become strings if strings are expected."""
    array = np.asarray(x)
    if t.dtype is dtypes.string and array.dtype.kind in "OSU":
        return dtypes.as_strings(array)
    return array


def _converted(name: str, x: Array, t: TensorType, setting: Setting) -> Array:
    try:
        have = dtypes.of_numpy(x.dtype)
    except InputError as error:
        error.within(f"input {name}")
        raise
    if have is not t.dtype and have is not setting.widened(t.dtype):
        raise InputError("GT0513", f"the input {name} is {have.short}, expected {t.dtype.short}")
    if len(x.shape) != t.rank:
        raise _bad_shape(name, x.shape, t)
    return x.astype(setting.widened(t.dtype).numpy, copy=False)


def _check_shape(name: str, shape: tuple[int, ...], t: TensorType,
                 sizes: Mapping[str, Dim]) -> None:
    for d, n in zip(t.shape, shape, strict=True):
        size = bare(d)  # of one with a step, the remainder is checked later
        if (substitute(d, sizes) if size is None else sizes.get(size.name)) != n:
            raise _bad_shape(name, shape, t)


def _bad_shape(name: str, shape: tuple[int, ...], t: TensorType) -> InputError:
    wanted = f"[{','.join(map(text, t.shape))}]"
    return InputError("GT0514", f"input {name} has the shape {list(shape)}, {wanted} expected")


def run_on_reals(module: Module, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """`run`, where inputs that are bytes by a grid may be given as floats, and the outputs that
    are bytes by a grid come as floats."""
    grids, types = of_meta(module.meta, "inputs"), module.inputs
    given = {n: as_bytes(np.asarray(x), *grids[n], types[n].dtype.numpy) if n in grids else x
             for n, x in inputs.items()}
    return as_reals(run(module, given), of_meta(module.meta, "outputs"))
