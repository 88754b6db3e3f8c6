"""Checks that templates and ports stay inside their buffers, for sizes that the dims allow.

Polynomials over open dims are not compared for all sizes: the least, the next, some and the largest
sizes are tried, so what is refused certainly leaves its buffer for a size that a run may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graphtool.errors import InputError
from graphtool.loops.contract import CONTRACTS, Contract
from graphtool.loops.ir import For, MacroValue, Stmt, Store, Template
from graphtool.loops.program import Buffer, Kernel, Program, Run, every_step
from graphtool.loops.verify_kernel import fault
from graphtool.loops.walk import bodies, scoped, statements
from graphtool.symbolic import Dim, Poly, evaluate, product, symbols

Env = Mapping[str, int]
HOOK = "hook"  # in a row of `reach`: the extents of the hook's indices
LARGE = 1000  # a size that is tried where a dim has no largest


@dataclass(frozen=True)
class Use:
    """A template with numbers for its macros, as a contract's `reach` asks for them."""

    contract: Contract
    template: Template
    env: Env
    lanes: int

    def get(self, name: str) -> Any:
        """A macro's value, or its default. Raises KeyError where a symbol has no number."""
        row = self.contract.macro(name)
        value: MacroValue | None = dict(self.template.macros).get(
            name, row.default if row is not None else None)
        return evaluate(value, self.env) if isinstance(value, Poly) else value

    def sizes(self, names: str) -> list[Any]:
        """The values of several macros, whose names stand with blanks between."""
        return [self.get(n) for n in names.split()]

    def has(self, name: str) -> bool:
        """Whether a pointer or macro was given."""
        return any(name == given[0] for given in (*self.template.pointers, *self.template.macros))


def verify_reach(program: Program, where: str = "") -> None:
    """Raises InputError GT0375 for an access outside a buffer, GT0376 for a buffer that is larger
    than what the caller gives, or than the arena."""
    try:
        _verify(program)
    except InputError as error:
        error.where = "\n".join(s for s in (where, error.where) if s)
        raise


def _verify(program: Program) -> None:
    kernels = {k.name: k for k in program.kernels}
    buffers = {b.name: b for b in program.buffers}
    lanes = int(program.meta.get("lanes", 1))
    for env in samples(program):
        for b in program.buffers:
            _room(program, b, env)
        for step in every_step(program.steps):
            if isinstance(step, Run):
                kernel = kernels[step.kernel]
                given = {p.name: buffers[a] for p, a in zip(kernel.params, step.args, strict=True)}
                _templates(kernel, given, env, lanes, step.label)


def samples(program: Program) -> Iterator[Env]:
    """Some sizes of the dims, all small, all large, and between."""
    dims = program.dims
    lows = {s.name: s.lo or 0 for s in dims}
    yield lows
    if dims:
        highs = {s.name: LARGE + 7 * i if s.hi is None else s.hi for i, s in enumerate(dims)}
        yield {n: min(lo + 1, highs[n]) for n, lo in lows.items()}
        yield {n: min(lo + 5 + i, highs[n]) for i, (n, lo) in enumerate(lows.items())}
        yield highs


def _room(program: Program, b: Buffer, env: Env) -> None:
    ports = {"input": program.inputs, "output": program.outputs}.get(b.space)
    try:
        size = evaluate(b.size, env)
        if ports is not None:
            most = product(ports[b.slot].shape)
            if isinstance(most, Poly) and any(s.name not in env for s in symbols(most)):
                return  # the run computes the shape, and the caller gives the buffer's size
            if size > evaluate(most, env):
                raise fault("GT0376", f"{b.name} has {size} elements, the {b.space} "
                                      f"{ports[b.slot].name} has {evaluate(most, env)}", str(env))
        elif b.space == "arena" and evaluate(b.offset + b.bytes_of(b.size), env) > evaluate(
                program.arena, env) and size:
            raise fault("GT0376", f"{b.name} reaches beyond the arena", str(env))
    except (KeyError, ZeroDivisionError):
        return


def _templates(kernel: Kernel, given: Mapping[str, Buffer], env: Env, lanes: int,
               place: str) -> None:
    for t in statements(kernel.body):
        contract = CONTRACTS.get(t.kernel) if isinstance(t, Template) else None
        if contract is None or contract.reach is None or not isinstance(t, Template):
            continue
        try:
            reaches = list(contract.reach(Use(contract, t, env, lanes)))
        except (KeyError, TypeError, ZeroDivisionError):  # a loop or the data decide
            continue
        for name, *area in reaches:
            if name == HOOK:
                _stores(contract, t, area[0], given, env, place)
            for pointer, buffer, offset in t.pointers:
                if pointer == name:
                    _inside(contract, (name, offset, *area), given[buffer], env, place)


def _inside(contract: Contract, reach: tuple[Any, ...], b: Buffer, env: Env, place: str) -> None:
    name, offset, shape, strides, extents = reach
    row = contract.pointer(name)
    if 0 in shape or 0 in extents or row is None:
        return
    last = sum((n - 1) * s for n, s in zip(shape, strides or dense(shape), strict=True))
    try:
        ends = [_at(offset, row.arguments, at, env) for at in (
            [0] * len(extents), [n - 1 for n in extents])]
        size = evaluate(b.size, env)
    except (KeyError, ZeroDivisionError):
        return
    if min(shape) < 0 or min(ends) < 0 or max(ends) + last >= size:
        raise fault("GT0375", f"{contract.name} reaches {name}[{max(ends) + last}], {b.name} has "
                              f"{size} elements", f"{place} {dict(env) or ''}".strip())


def _stores(contract: Contract, t: Template, extents: tuple[int, ...], given: Mapping[str, Buffer],
            env: Env, place: str) -> None:
    """The hook's stores for the first and for the last element lie in their buffers."""
    if 0 in extents:
        return
    for hook in t.hooks:
        names = [s.name for s in hook.indices]
        for s in _certain(hook.body, env):
            for corner in ([0] * len(names), [n - 1 for n in extents]):
                inner = {x.name: 0 for x in symbols(s.index)} | dict(
                    zip(names, corner, strict=True)) | dict(env)
                at, size = evaluate(s.index, inner), evaluate(given[s.buffer].size, env)
                if not 0 <= at < size:
                    raise fault("GT0375", f"{contract.name} stores {s.buffer}[{at}], "
                                          f"{given[s.buffer].name} has {size} elements", place)


def _certain(body: Iterable[Stmt], env: Env) -> Iterator[Store]:
    """The stores that run whatever the data are, each loop around them at least once."""
    def inner(s: Stmt, sure: bool) -> list[bool]:
        runs = sure and isinstance(s, For) and evaluate(s.extent, {
            x.name: 1 for x in symbols(s.extent)} | dict(env)) > 0
        return [runs] * len(bodies(s))
    return (s for s, sure in scoped(body, True, inner) if sure and isinstance(s, Store))


def _at(offset: Dim, names: Iterable[str], at: Iterable[int], env: Env) -> int:
    return evaluate(offset, {**env, **dict(zip(names, at, strict=True))})


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    out = [1]
    for n in reversed(shape[1:]):
        out.append(out[-1] * n)
    return tuple(reversed(out))
