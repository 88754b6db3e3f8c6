"""The sizes that masked_select makes of operands that are broadcast.

torch takes the number of elements of the first operand for the most that can be selected, and
asserts it (torch 2.13); eager torch selects more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from graphtool.importers.torch.driver.captured import Call, Program, Ref
from graphtool.ir.graph import TensorType
from graphtool.ir.run_sizes import bare
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import Dim, Poly, Symbol, bounds, product, substitute, symbol


def bounded(program: Program) -> Program:
    """The program with the true bounds of such sizes, and without torch's assertion of its own."""
    sizes: dict[str, Dim] = {}
    wrong: dict[str, int] = {}  # by size, the bound that torch asserts
    for call in program.calls:
        if call.target != "aten.masked_select.default":
            continue
        x, mask, out = (program.types.get(name) for name in (*map(_name, call.args[:2]),
                                                             call.outputs[0]))
        if not (isinstance(x, TensorType) and isinstance(mask, TensorType)
                and isinstance(out, TensorType)):
            continue
        size, own = bare(out.shape[0]), bounds(product(x.shape))[1]
        most = bounds(product(broadcast_shapes(x.shape, mask.shape)))[1]
        if size is not None and own is not None and size.hi == own != most:
            sizes[size.name], wrong[size.name] = symbol(size.name, size.lo, most), own
    if not sizes:
        return program
    made = {name: call for call in program.calls for name in call.outputs}
    kept = tuple(c for c in program.calls if not _asserts(c, made, program, wrong))
    found: Program = with_sizes(replace(program, calls=kept), sizes)
    return found


def _name(x: Any) -> str:
    return x.name if isinstance(x, Ref) else ""


def _asserts(call: Call, made: Mapping[str, Call], program: Program,
             wrong: Mapping[str, int]) -> bool:
    """Whether the call asserts one of these bounds."""
    asked = made.get(_name(call.args[0])) if call.target.startswith("aten._assert_scalar") else None
    if asked is None or not asked.target.endswith(".le") or len(asked.args) != 2:
        return False
    left, right = asked.args
    size = bare(program.types.get(_name(left)))
    return size is not None and right == wrong.get(size.name)


def with_sizes(x: Any, sizes: Mapping[str, Dim]) -> Any:
    """A record, or what is in it, with sizes put in; what mentions none stays the same object."""
    match x:
        case Poly():
            return substitute(x, sizes)
        case Symbol() | str():
            return x
        case tuple():
            new = [with_sizes(i, sizes) for i in x]
            same = all(a is b for a, b in zip(x, new, strict=True))
            return x if same else type(x)(*new) if hasattr(x, "_fields") else tuple(new)
        case Mapping():
            return {k: with_sizes(v, sizes) for k, v in x.items()}
        case _ if is_dataclass(x) and not isinstance(x, type):
            old = {f.name: getattr(x, f.name) for f in fields(x) if f.init}
            new_ = {k: with_sizes(v, sizes) for k, v in old.items()}
            changed = {k: v for k, v in new_.items() if v is not old[k]}
            return replace(x, **changed) if changed else x
        case _:
            return x
