"""The dims that `--dynamic` leaves open, as torch.export wants them, and what it asks of them.

torch.export refuses dims that must be multiples of a number, or equal to each other, and says so.
`OpenDims` takes that over, and the capture is tried again with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.export import Dim as TorchDim
from torch.export import ExportedProgram

from graphtool.errors import UnsupportedError, UsageError, listed
from graphtool.front.assumptions import Bounds, Facts
from graphtool.importers.torch.driver.captured import Same
from graphtool.symbolic import Dim, Symbol, at_least, coefficient, dim_of, substitute, symbols
from graphtool.symbolic.parse import parse

_STEP = re.compile(r"^\s*(\w+) = (\d+)\*_\w+(?: ([+-]) (\d+))?$", re.MULTILINE)
_EQUAL = re.compile(r"values of (\w+) = .+? and (\w+) = .+? must always be equal")


class OpenDims:
    """The open dims of one capture; `learned` adds to what is known of them."""

    def __init__(self, args: tuple[Any, ...], inputs: list[str],
                 dynamic: Mapping[str, Bounds]) -> None:
        self.inputs = inputs
        self.bounds: dict[str, tuple[int, int | None]] = {
            key.partition("@")[0]: (1, None) if isinstance(row, str) else (row[0], row[1])
            for key, row in dynamic.items()}
        self.facts = Facts.given(dynamic)
        self.marks = _marks(args, inputs, dynamic)

    @property
    def free(self) -> dict[str, Symbol]:
        """The symbols by name, with the bounds and steps that are known."""
        return {name: Symbol(name, lo, hi, None, *self.facts.steps.get(name, (1, 0)))
                for name, (lo, hi) in self.bounds.items()}

    @property
    def equal(self) -> dict[str, Dim]:
        """The sizes that follow from another size, as expressions of it. Raises UsageError GT1104
        for any that torch cannot express."""
        table: dict[str, Dim] = {n: dim_of(s) for n, s in self.free.items()}
        out: dict[str, Dim] = {}
        for name, other in self.facts.equal:
            d = substitute(parse(other, table), out)
            if len(symbols(d)) != 1 or coefficient(d, symbols(d)[0].name) is None:
                raise UsageError("GT1104", f"{name} = {other} cannot be given to torch",
                                 hint="one size times a number, plus a number, such as N = 2*M")
            out = {n: substitute(e, {name: d}) for n, e in out.items()} | {name: d}
        return out

    def samples(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """The sample inputs, and torch's dynamic_shapes.

        torch takes a size of 0 or 1 for a constant, so a sample of that size is repeated.
        """
        if not self.marks:
            return args, None
        free, equal = self.free, self.equal
        sizes: dict[str, int] = {}
        for (i, axis), name in self.marks.items():
            if name not in equal:
                sizes.setdefault(name, _sample_size(args[i].shape[axis], free[name]))
        dims = {n: _torch_dim(s) for n, s in free.items() if n in sizes}
        for name, d in equal.items():
            s, = symbols(d)
            sizes[name] = substitute(d, sizes)  # type: ignore[assignment]
            slope, offset = _line(d, s)
            dims[name] = slope * dims[s.name] + offset if (slope, offset) != (1, 0) else \
                dims[s.name]
        new, shapes = list(args), []
        for i, a in enumerate(args):
            here = {axis: name for (k, axis), name in self.marks.items() if k == i}
            for axis, name in here.items():
                new[i] = _resized(new[i], axis, sizes[name])
            open_ = {axis: dims[name] for axis, name in here.items() if dims[name] is not None}
            shapes.append(open_ if open_ else (
                None if isinstance(a, torch.Tensor) else _nothing(a)))
        return tuple(new), shapes

    def learned(self, error: UnsupportedError) -> bool:
        """Whether torch's refusal says more of the open dims than is known."""
        message, facts = str(error.__cause__ or error), self.facts
        order = list(self.bounds)
        for name, step, sign, offset in _STEP.findall(message):
            if name in self.bounds:
                rest = int(sign + offset) if offset else 0
                facts = replace(facts, steps={**facts.steps, name: (int(step), rest % int(step))})
        for pair in _EQUAL.findall(message):
            if set(pair) <= self.bounds.keys():
                first, second = sorted(pair, key=order.index)
                facts = replace(facts, equal=tuple(dict.fromkeys((*facts.equal,
                                                                  (second, first)))))
        changed = facts != self.facts
        self.facts = facts
        return changed

    def symbols(self) -> dict[str, Symbol]:
        """The symbols that the inputs' shapes tell, by name."""
        free = self.free
        return {name: free[name] for name in dict.fromkeys(self.marks.values())
                if free[name].lo != free[name].hi}

    def same(self) -> tuple[Same, ...]:
        """The axes whose size follows from another size."""
        free, equal = self.free, self.equal
        return tuple(Same(self.inputs[i], axis, free[name], equal[name])
                     for (i, axis), name in self.marks.items() if name in equal)

    def names(self, exported: ExportedProgram) -> dict[str, str]:
        """torch's name of each symbol (`s77`) → the user's name."""
        by_name = {n.name: n for n in exported.graph.nodes if n.op == "placeholder"}
        leaves = [by_name[s] for s in exported.graph_signature.user_inputs if isinstance(s, str)]
        equal = self.equal
        out: dict[str, str] = {}
        for (i, axis), name in self.marks.items():
            if i < len(leaves) and name not in equal:
                d = leaves[i].meta["val"].shape[axis]
                if isinstance(d, torch.SymInt):
                    out |= {str(s): name for s in d.node.expr.free_symbols}
        return out


def _marks(args: tuple[Any, ...], inputs: list[str],
           dynamic: Mapping[str, Bounds]) -> dict[tuple[int, int], str]:
    """(input, axis) → symbol. `batch` marks dim 0 of every tensor, `s@x.1,y.0` the named dims."""
    out: dict[tuple[int, int], str] = {}
    for key in dynamic:
        name, at, places = key.partition("@")
        if not name.isidentifier():
            raise UsageError("GT1104", f"{name!r} cannot name a dim",
                             hint="a word of letters, digits and underscores, such as batch")
        if not at:
            out |= {(i, 0): name for i, a in enumerate(args)
                    if isinstance(a, torch.Tensor) and a.ndim and (i, 0) not in out}
            continue
        for spot in places.split(","):
            x, dot, axis = spot.strip().rpartition(".")
            if not dot or x not in inputs or not axis.isdigit():
                raise UsageError("GT1104", f"cannot read the place {spot!r} of {name}",
                                 hint=f"INPUT.AXIS, with INPUT one of {listed(inputs)}")
            i = inputs.index(x)
            if not isinstance(args[i], torch.Tensor) or int(axis) >= args[i].ndim:
                raise UsageError("GT1104", f"the input {x} has no axis {axis}")
            out[i, int(axis)] = name
    return out


def _torch_dim(s: Symbol) -> Any:
    """torch's dim of a symbol; one with a step counts its steps. None for one value alone."""
    if s.lo == s.hi:
        return None
    lo = at_least(s, max(s.lo or 0, 1))
    if s.step == 1:
        return TorchDim(s.name, min=lo, max=s.hi)
    most = None if s.hi is None else (s.hi - s.offset) // s.step
    steps = TorchDim(f"_{s.name}", min=(lo - s.offset) // s.step, max=most)
    return s.step * steps + s.offset if s.offset else s.step * steps


def _line(d: Dim, s: Symbol) -> tuple[int, int]:
    """(a, b) where d is a·s + b."""
    first, second = (substitute(d, {s.name: s.offset + s.step * i}) for i in range(2))
    slope = (second - first) // s.step
    assert isinstance(slope, int) and isinstance(first, int)
    return slope, first - slope * s.offset


def _nothing(a: Any) -> Any:
    return torch.utils._pytree.tree_map(lambda _: None, a)


def _sample_size(have: int, s: Symbol) -> int:
    size = at_least(s, max(have, 2 * s.step + s.offset))  # torch takes one step for a constant
    return size if s.hi is None or size <= s.hi else s.hi - (s.hi - s.offset) % s.step


def _resized(t: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    if t.shape[axis] == size or not t.shape[axis]:
        return t
    return t.index_select(axis, torch.arange(size) % t.shape[axis])
