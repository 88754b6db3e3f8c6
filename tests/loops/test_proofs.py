"""What is proved of kernels: all of what lowering makes, and nothing that is wrong in mutants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops import walk
from graphtool.loops.ir import Apply, Expr, For, If, Load, Stmt, Store, Template
from graphtool.loops.program import SCRATCH, Buffer, Kernel, Param, Port, Program, Run
from graphtool.loops.proofs import proofs
from graphtool.loops.serial import loads
from graphtool.loops.verify_memory import verify_memory
from graphtool.lower import lower
from graphtool.symbolic import Dim, Poly, Symbol, minimum, symbol_of, symbols
from graphtool.symbolic.nonnegative import Ends, Proof
from graphtool.target import named
from tests.loops.programs import NAMES, program

GOLDEN = sorted((Path(__file__).parents[1] / "io/golden/program/v1").glob("*.program.json"))
PLAIN = named("generic", 1)
N, M = Symbol("N"), Symbol("M")
n, m = symbol_of(N), symbol_of(M)


def lowered(body: Callable[..., Any], *types: TensorType) -> Program:
    names = [f"x{i}" for i in range(len(types))]
    module = Module(trace(body, list(types), names), ("y",), {"N": N, "M": M})
    return lower(passes.run(module, supply={"target": PLAIN}), PLAIN)


def floats(*shape: Dim) -> TensorType:
    return TensorType(dtypes.float32, shape)


def failures(p: Program) -> list[tuple[str, str, str]]:
    found = proofs(p)
    return [(k.kernel, k.inside, k.once) for k in found.kernels if not k.holds] + [
        ("", name, "") for name in found.unwritten]


GATHER = lowered(lambda x, i: o.gather(x, i, axes=(0,)), floats(9, 3),
                 TensorType(dtypes.int64, (4, 1)))
SCATTER = lowered(lambda x, i, u: o.scatter(x, i, u, axes=(0,), kind="add"), floats(9, 3),
                  TensorType(dtypes.int64, (4, 1)), floats(4, 3))
OPEN = [
    lowered(lambda x: o.relu(x) + 1.0, floats(n, m)),
    lowered(lambda x: o.softmax(x, axis=1), floats(n, m)),
    lowered(lambda x: o.concat(x, x * 2.0, x, axis=1), floats(n, m)),
    lowered(lambda x: o.concat(x, x * 2.0, axis=0), floats(n, m)),
    lowered(lambda x: o.transpose(x, perm=(1, 0)), floats(n, m)),
    lowered(lambda x: o.reverse(x, axes=(0,)), floats(n, 4)),
    lowered(lambda x: o.reduce_sum(x, axes=(0,)), floats(n, m))]
MUTATED = [program("block"), program("siblings"), GATHER, SCATTER, *OPEN]
ALL = [*map(program, NAMES), *(loads(f.read_text()) for f in GOLDEN), GATHER, SCATTER, *OPEN]


def test_all_is_proved_of_what_lowering_makes() -> None:
    assert [failures(p) for p in ALL] == [[]] * len(ALL)
    assert all(p.dims for p in OPEN)


def test_the_arithmetic_of_blocks_with_a_rest() -> None:
    i, j = symbol_of(Symbol("i")), symbol_of(Symbol("j"))
    blocks = (n + 15) // 16
    rest = {"i": Ends((0,), (blocks - 1,)), "j": Ends((0,), (minimum(16, n - 16 * i) - 1,))}
    whole = rest | {"j": Ends((0,), (15,))}
    assert Proof(rest).holds(n - 1 - 16 * i - j)
    assert not Proof(rest).holds(n - 2 - 16 * i - j)
    assert Proof(whole).holds(16 * blocks - 1 - 16 * i - j)
    assert not Proof(whole).holds(n - 1 - 16 * i - j)


def test_indices_from_data_are_clamped_and_the_clamp_is_named() -> None:
    for p in (GATHER, SCATTER):
        clamped = [text for k in proofs(p).kernels for text in k.clamped]
        assert clamped and all("min(" in t and "8)" in t for t in clamped)

        def bare(e: Expr) -> Expr:
            return e.args[0] if getattr(e, "fn", "") in ("min", "max") else e
        mutant = edited(p, lambda s: walk.map_values(s, lambda e: walk.mapped(e, bare)))
        assert any(k.outside for k in proofs(mutant).kernels)


def test_two_loops_with_one_name() -> None:
    """What holds in the first loop does not hold in the second, which is longer."""
    at = symbol_of(Symbol("i0"))
    copy = Store("y0", at, Load("x0", at, dtypes.float32))
    p = copying(tuple(For(Symbol("i0"), n, "serial", (copy,)) for n in (4, 9)))
    assert failures(p)
    with pytest.raises(InputError, match=r"x0\[8\] is touched, in0 has 4 elements"):
        verify_memory(p)


def copying(body: tuple[Stmt, ...]) -> Program:
    """A kernel from four floats to four floats."""
    params = Param("x0", dtypes.float32, True), Param("y0", dtypes.float32, False)
    return Program(
        "p", (), (Port("x", dtypes.float32, (4,)),), (Port("y", dtypes.float32, (4,)),),
        (Buffer("in0", dtypes.float32, 4, "input"), Buffer("out0", dtypes.float32, 4, "output")),
        (Kernel("k0", params, body),), (Run("k0", ("in0", "out0")),))


def test_what_is_written_under_a_condition_is_not_written() -> None:
    at = symbol_of(Symbol("i0"))
    x = Load("x0", at, dtypes.float32)
    copy = Store("y0", at, x)
    positive = walk.loads(x) and lowered(lambda x: o.gt(x, 0.0), floats(4)).kernels[0].body
    cond = next(e.value for e in walk.statements(positive) if isinstance(e, Store))
    loop = partial(For, Symbol("i0"), 4, "serial")
    assert not failures(copying((loop((copy,)),)))
    assert failures(copying((loop((If(cond, (copy,)),)),)))
    assert not failures(copying((loop((copy, If(cond, (copy,)))),)))
    assert failures(copying(()))


# ---- mutants -----------------------------------------------------------------------------------

def edited(p: Program, change: Callable[[Stmt], Stmt]) -> Program:
    """The program with all statements changed, inner ones first."""
    def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(change(walk.map_bodies(s, body)) for s in stmts)
    return replace(p, kernels=tuple(replace(k, body=body(k.body)) for k in p.kernels))


def each(p: Program, kind: type, change: Callable[[Any], Any]) -> Iterator[Program]:
    """The program with one of its statements of a kind changed, in turn."""
    for number in range(sum(isinstance(s, kind) for k in p.kernels
                            for s in walk.statements(k.body))):
        place = iter(range(1 << 30))
        yield edited(p, lambda s, place=place, number=number: change(s) if isinstance(
            s, kind) and next(place) == number else s)


def resized(s: For, more: int) -> For:
    """A loop around stores with more iterations."""
    stores = [x for x in walk.statements(s.body) if isinstance(x, Store)]
    used = any(i.name == s.iter.name for x in stores for i in symbols(x.index))
    return For(s.iter, s.extent + more, s.mode, s.body, s.reduces) if used else s


def far(s: Stmt) -> Stmt:
    """A statement whose loads are beyond any buffer."""
    def load(e: Expr) -> Expr:
        return Load(e.buffer, e.index + (1 << 40), e.dtype) if isinstance(e, Load) else e
    return walk.map_values(s, lambda e: walk.mapped(e, load))


def twice(s: Store) -> Stmt:
    """A store that takes place twice; a check of indices may."""
    check = isinstance(s.value, Apply) and s.value.fn == "or"
    return s if check else For(Symbol("z0"), 2, "serial", (s,))


def grown(t: Template) -> Template:
    """A template with one row more."""
    return replace(t, macros=tuple((k, v + 1 if k in ("M", "OH", "S", "ROWS") and isinstance(
        v, (int, Poly)) else v) for k, v in t.macros))


def buffers(p: Program, more: int) -> Iterator[Program]:
    """The program with one of its buffers larger or smaller, in turn."""
    for b in p.buffers:
        if b.size != 0 and b.space != "check" and not b.label.startswith(SCRATCH):
            yield replace(p, buffers=tuple(
                replace(x, size=x.size + more) if x is b else x for x in p.buffers))


MUTATIONS: dict[str, Callable[[Program], Iterator[Program]]] = {
    "store beside": lambda p: each(p, Store, lambda s: Store(s.buffer, s.index + 1, s.value)),
    "store before": lambda p: each(p, Store, lambda s: Store(s.buffer, s.index - 1, s.value)),
    "stride": lambda p: each(p, Store, lambda s: Store(s.buffer, s.index * 2, s.value)),
    "load": lambda p: each(p, Store, far),
    "longer": lambda p: each(p, For, partial(resized, more=1)),
    "shorter": lambda p: each(p, For, partial(resized, more=-1)),
    "twice": lambda p: each(p, Store, twice),
    "template": lambda p: each(p, Template, grown),
    "smaller buffer": partial(buffers, more=-1)}
UNSEEN = {"shorter", "twice"}  # of sums into elements that data choose


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_no_mutant_is_proved(mutation: str) -> None:
    tried, proved = 0, []
    for p in MUTATED:
        for q in () if p is SCATTER and mutation in UNSEEN else MUTATIONS[mutation](p):
            changed = [k for k, old in zip(q.kernels, p.kernels, strict=True) if k.body != old.body]
            if changed or p.buffers != q.buffers:
                tried += 1
                proved += [] if failures(q) else [[p.name, *(k.name for k in changed)]]
    assert tried > 3 and not proved
