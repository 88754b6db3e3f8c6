"""Sizes that the model declares: bounds of computed sizes, and checks of what the run computes.

A declared output shape stands in for a shape that is an input. It is assumed at import, and a
`size` node compares it with the computed value at each run, in the evaluator and in C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.onnx.driver.computed import Recorder, bind, known_element
from graphtool.importers.onnx.driver.values import array_of
from graphtool.ir.graph import Node
from graphtool.ir.run_sizes import bare, defined
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim, product, symbol


def agreed(scalar: Tracer, declared: int, what: str) -> int:
    """`declared`, after a check that a computed integer has this value at run time.

    Raises ValueError if its value is known to differ.
    """
    builder = scalar.builder
    assert isinstance(builder, Recorder)
    if product(scalar.shape) != 1:
        raise ValueError(f"{what} must be one number, its shape is {scalar.shape}")
    known = known_element(scalar, 0)
    if isinstance(known, int) and known != declared:
        raise ValueError(f"{what} is {known}, the model declares {declared}")
    if known == declared:
        return declared
    if declared < 0:
        raise ValueError(f"the model declares the size {declared}, which is negative")
    name = builder.symbols.free_name(f"{builder.fresh_stem()}_declared")
    number = scalar.reshape(()).cast(dtypes.int64)
    builder.emit(o.size, (number,), {"size": symbol(name, declared), "most": declared,
                                     "checked": True})
    return declared


def declared_size(scalar: Any, declared: int | None, what: str, least: int | None = 0,
                  most: Dim | None = None) -> Dim:
    """A computed integer as a size: the declared one, or a symbol if none is declared."""
    if declared is None:
        return bind(scalar, least, most)
    return agreed(scalar, declared, what)


def agreed_entries(x: Any, declared: Sequence[int], what: str) -> tuple[int, ...]:
    """`declared`, after a check that the computed vector x has these entries at run time.

    Raises ValueError if the vector has another length or another entry.
    """
    count = x.shape[0] if x.ndim == 1 else product(x.shape)
    if isinstance(count, int) and count != len(declared):
        raise ValueError(f"{what} has {count} entries, the model declares {len(declared)}")
    array = array_of(x)
    if array is not None and array.dtype != object:
        if tuple(int(v) for v in array.reshape(-1)) != tuple(declared):
            raise ValueError(f"{what} is {array.tolist()}, the model declares {list(declared)}")
        return tuple(declared)
    if not isinstance(count, int):
        length = x.builder.emit(o.dim, (), {"of": count, "dtype": dtypes.int64})
        agreed(length, len(declared), f"the length of {what}")
    for i, d in enumerate(declared):
        one = x if count == 1 else o.gather(x, np.array([i]), axes=(0,))
        agreed(one, d, f"entry {i} of {what}")
    return tuple(declared)


def agreed_truth(flag: Tracer, what: str) -> None:
    """Add a check that a computed condition is true at run time."""
    agreed(flag.reshape(()).cast(dtypes.int64), 1, what)


def bounded(nodes: Sequence[Node], outputs: Mapping[str, Any],
            declared: Mapping[str, tuple[int, ...]]) -> list[Node]:
    """The nodes, with a bound for each size that is an axis of a declared output."""
    most: dict[str, int] = {}
    for name, x in outputs.items():
        shape = declared.get(name, ())
        if isinstance(x, Tracer) and x.ndim == len(shape):
            for d, n in zip(x.shape, shape, strict=True):
                size = bare(d)
                if size is not None:
                    most[size.name] = min(n, most.get(size.name, n))
    return [_limited(node, most) for node in nodes]


def _limited(node: Node, most: Mapping[str, int]) -> Node:
    size = defined(node)
    if size is None or size.name not in most or node.attrs.get("most", 0) is not None:
        return node
    return replace(node, attrs={**node.attrs, "most": most[size.name]})
