"""Captures a function of JAX by jax.export, with the names of its arguments and open sizes.

This is the only module that imports jax; it is loaded for `--capture jax` alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import export

from graphtool.errors import GraphtoolError, InputError, UnsupportedError, UsageError, listed, near
from graphtool.front.assumptions import Bounds
from graphtool.importers.hints import TAKE_INPUTS
from graphtool.importers.limits import Limits
from graphtool.importers.python_source import (
    attribute_of,
    guarded,
    module_of,
    root_of,
    user_line,
)
from graphtool.importers.stablehlo import import_text
from graphtool.importers.stablehlo.driver.boundary import InputOption, spec
from graphtool.importers.stablehlo.driver.session import BoundaryNames, path_name
from graphtool.ir.graph import Module

Array = np.ndarray[Any, Any]
_JAX = root_of(jax.__file__)


@dataclass(frozen=True)
class CapturedFunction:
    """A function, and its arguments as trees of types whose open sizes are names; `offered` has
    the arguments that the file offers, arrays among them."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    offered: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Reference:
    """JAX's own run of a function on arrays: those of the inputs that are used, in order. Complex
    numbers are two arrays, of their real and imaginary parts. `offered` has the arrays that the
    file offers for the inputs, None where it offers a type."""

    run: Callable[[Sequence[Array]], list[Array]]
    offered: list[Array | None]


def import_function(source: str, specs: Sequence[str] = (), *,
                    dynamic: Mapping[str, Bounds] | None = None,
                    limits: Limits | None = None) -> Module:
    """The module of the function that `FILE.py:NAME` names.

    `specs` are the arguments in order, `x:f32[batch,3]`; a name with dots is a part of a tree of
    dictionaries, `p.w:f32[3,4]`. Without specs the file offers `inputs()`, which returns the
    arguments. `dynamic` bounds the open sizes, and opens `batch` (dim 0 of every input) or
    `seq@x.1`. Raises UnsupportedError GT1118 where JAX fails, InputError GT1111 to GT1119.
    """
    function = load(source, specs)
    types, scope = opened(function.fn, function.args, dynamic or {})
    try:
        exported = export.export(_jitted(function.fn), platforms=["cpu"])(*types)
        text = exported.mlir_module()
    except GraphtoolError:
        raise
    except Exception as error:  # whatever the function's code raises
        raise failure(error) from error
    leaves = jax.tree_util.tree_leaves_with_path((types, {}))
    kept = [leaves[i] for i in exported.module_kept_var_idx]
    names = BoundaryNames([named(path, function.fn) for path, _ in kept], (),
                          [[str(d) for d in leaf.shape] for _, leaf in kept])
    bounds = {k: v for k, v in (dynamic or {}).items() if k in scope}
    return import_text(text, dynamic=bounds, limits=limits, names=names)


def reference(source: str, specs: Sequence[str] = ()) -> Reference:
    """The function that `FILE.py:NAME` names as JAX runs it, for `import_function`'s specs."""
    function = load(source, specs)
    types, _ = opened(function.fn, function.args, {})
    fixed = jax.tree.map(lambda t: jax.ShapeDtypeStruct([d if isinstance(d, int) else 2
                                                         for d in t.shape], t.dtype), types)
    used = export.export(_jitted(function.fn), platforms=["cpu"])(*fixed).module_kept_var_idx
    leaves, tree = jax.tree_util.tree_flatten(fixed)

    def run(arrays: Sequence[Array]) -> list[Array]:
        rest = iter(arrays)
        given = {i: _whole(leaves[i].dtype, rest) for i in used}
        full = [given[i] if i in given else jax.numpy.empty(t.shape, t.dtype)
                for i, t in enumerate(leaves)]
        try:
            out = _jitted(function.fn)(*jax.tree_util.tree_unflatten(tree, full))
        except Exception as error:  # whatever the function's code raises
            raise InputError("GT1118", f"JAX fails on these inputs: {error}",
                             where=source) from error
        return [part for x in jax.tree.leaves(out) for part in _arrays(x)]
    values = jax.tree.leaves(function.offered) if function.offered is not None else leaves
    return Reference(run, [part for i in used for part in _offered(values[i])])


def _whole(dtype: Any, parts: Iterator[Array]) -> Any:
    """A leaf of this type from the arrays that represent it in a graph."""
    if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(next(parts), impl=dtype._impl)
    return next(parts) + 1j * next(parts) if dtype.kind == "c" else next(parts)


def _arrays(leaf: Any) -> list[Array]:
    """The arrays that represent a leaf in a graph."""
    if hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return [np.asarray(jax.random.key_data(leaf))]
    x = np.asarray(leaf)
    return [x.real, x.imag] if x.dtype.kind == "c" else [x]


def _offered(leaf: Any) -> list[Array | None]:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        complex_ = not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) and (
            leaf.dtype.kind == "c")
        return [None, None] if complex_ else [None]
    kind = _type(leaf).dtype  # JAX's own: float32 for a Python number
    return list(_arrays(leaf if hasattr(leaf, "dtype") else np.asarray(leaf, kind)))


def _jitted(fn: Any) -> Any:
    return fn if hasattr(fn, "lower") else jax.jit(fn)


def load(source: str, specs: Sequence[str]) -> CapturedFunction:
    """The function and its arguments as types, whose open sizes are names."""
    place, _, attribute = source.rpartition(":")
    module = guarded(f"loading {place}", lambda: module_of(place), _JAX)
    fn = attribute_of(module, place, attribute)
    if not callable(fn):
        raise InputError("GT1119", f"{source} is {type(fn).__name__}, a function is expected")
    if specs:
        return CapturedFunction(fn, _arguments([spec(s) for s in specs], fn))
    offered = getattr(module, "inputs", None)
    if not callable(offered):
        raise InputError("GT1114", f"{place} offers no sample inputs",
                         hint="define inputs() in the file, returning a tuple of arrays or of "
                              f"trees of arrays; or {TAKE_INPUTS}")
    inputs_ = guarded("calling inputs()", offered, _JAX)
    args = tuple(inputs_) if isinstance(inputs_, (tuple, list)) else (inputs_,)
    return CapturedFunction(fn, jax.tree.map(_type, args), args)


def _type(x: Any) -> Any:
    return x if isinstance(x, jax.ShapeDtypeStruct) else jax.ShapeDtypeStruct(
        np.shape(x), x.dtype if hasattr(x, "dtype") else jax.dtypes.canonicalize_dtype(
            np.asarray(x).dtype))


@dataclass(frozen=True)
class _Open:
    """A type whose sizes may be names; a leaf of the tree of arguments."""

    shape: tuple[Any, ...]
    dtype: Any


def _arguments(specs: Sequence[InputOption], fn: Any) -> tuple[Any, ...]:
    """The arguments of specs: those whose names have dots are joined to trees of dictionaries, and
    what names a parameter of the function takes its place."""
    trees: dict[str, Any] = {}
    for i, (name, row, shape) in enumerate(specs):
        kind = _Open(shape, row.numpy)
        path = (name or f"argument {i}").split(".")
        *above, last = path
        at = trees
        for part in above:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise UsageError("GT1115", f"{name!r} is a part of {part!r}, which is an array")
        at[last] = kind
    wanted = list(_parameters(fn))
    if set(trees) <= set(wanted):
        trees = {n: trees[n] for n in wanted if n in trees}
    return tuple(trees.values())


def _parameters(fn: Any) -> Sequence[str]:
    try:
        return list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return []


def opened(fn: Any, args: tuple[Any, ...], dynamic: Mapping[str, Bounds]
           ) -> tuple[Any, set[str]]:
    """The arguments as types of JAX, with one scope for all open sizes; and the names of these."""
    leaves = jax.tree_util.tree_leaves_with_path(args)
    shapes = [list(leaf.shape) for _, leaf in leaves]
    paths = [named((None, *path), fn) for path, _ in leaves]
    names_in_shapes = {d for s in shapes for d in s if isinstance(d, str)}
    for key in dynamic:
        name, at, places = key.partition("@")
        if at:
            for place in places.split(","):
                path, _, axis = place.rpartition(".")
                i = paths.index(path) if path in paths else -1
                if i < 0 or not axis.isdecimal() or int(axis) >= len(shapes[i]):
                    raise UsageError("GT1104", f"there is no dim {place!r}", hint=near(
                        path, paths, f"the inputs are {listed(paths)}"))
                shapes[i][int(axis)] = name
        elif name not in names_in_shapes:
            for s in shapes:
                if s:
                    s[0] = name
    names = {d for s in shapes for d in s if isinstance(d, str)}
    if not names:
        return jax.tree.map(lambda t: jax.ShapeDtypeStruct(t.shape, t.dtype), args,
                            is_leaf=_is_type), names
    scope = export.SymbolicScope(constraints(dynamic, names))
    open_shapes = [jax.ShapeDtypeStruct(export.symbolic_shape(
        ", ".join(map(str, s)) + ("," if len(s) == 1 else ""), scope=scope) if any(
            isinstance(d, str) for d in s) else tuple(s), leaf.dtype)
        for s, (_, leaf) in zip(shapes, leaves, strict=True)]
    tree = jax.tree_util.tree_structure(args, is_leaf=_is_type)
    return jax.tree_util.tree_unflatten(tree, open_shapes), names


def _is_type(x: Any) -> bool:
    return isinstance(x, (_Open, jax.ShapeDtypeStruct))


def constraints(dynamic: Mapping[str, Bounds], names: set[str]) -> list[str]:
    """The bounds of sizes as JAX writes constraints."""
    out = []
    for key, bounds in dynamic.items():
        name = key.partition("@")[0]
        if name not in names:
            continue
        if isinstance(bounds, str):
            out.append(f"{name} == {bounds}")
            continue
        low, high, *step = bounds
        out.append(f"{name} >= {low}")
        if high is not None:
            out.append(f"{name} <= {high}")
        if step:
            out.append(f"mod({name}, {step[0]}) == {low % step[0]}")
    return out


def named(path: Sequence[Any], fn: Any) -> str:
    """The name of a leaf: the parameter, then the path in it; `path` begins with args or kwargs."""
    _, *rest = path
    parameters = _parameters(fn)
    first = rest[0].idx if rest and hasattr(rest[0], "idx") else 0
    head = parameters[first] if first < len(parameters) else str(first)
    return path_name(head + jax.tree_util.keystr(tuple(rest[1:])))


def failure(error: BaseException) -> UnsupportedError:
    """The coded error of a failed capture: JAX's first lines, and the user's line."""
    first = next((t.strip() for t in str(error).splitlines() if t.strip()), type(error).__name__)
    line, text = user_line(error, _JAX)
    return UnsupportedError("GT1118", f"JAX cannot capture the function: {first[:300]}",
                            where=(line, text))
