"""The verifier: lowered programs are sound, and each way of spoiling one has its code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from graphtool.dtypes import bool_, float32, float64, int64
from graphtool.errors import InputError
from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Const,
    Expr,
    For,
    Hook,
    If,
    Index,
    Let,
    Load,
    Name,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.program import Buffer, Kernel, Param, Port, Program, Run, runs
from graphtool.loops.verify import verify
from graphtool.symbolic import Symbol, symbol_of
from tests.loops.programs import NAMES, program

I = Symbol("i0", 0, 9, 10)  # noqa: E741
AT = symbol_of(I)
ONE = Const(1.0, float32)
X: Expr = Load("x0", AT, float32)


@pytest.mark.parametrize("name", NAMES)
def test_lowered_programs_are_sound(name: str) -> None:
    verify(program(name))


def loop(*body: Stmt, it: Symbol = I, extent: Any = 10) -> For:
    return For(it, extent, "parallel", body)


def made(*body: Stmt, **changes: Any) -> Program:
    """y0[i] of ten elements from x0; `changes` replace fields of the program."""
    kernel = Kernel("k0", (Param("x0", float32, True), Param("y0", float32, False)),
                    body or (loop(Store("y0", AT, X)),))
    p = Program("model", (), (Port("x", float32, (10,)),), (Port("y", float32, (10,)),),
                (Buffer("in0", float32, 10, "input"), Buffer("b0", float32, 10, "arena"),
                 Buffer("b1", float32, 10, "arena", 64), Buffer("out0", float32, 10, "output")),
                (kernel,), (Run("k0", ("in0", "b0"), "first"), Run("k0", ("b0", "b1"), "second"),
                            Run("k0", ("b1", "out0"), "third")), 128, 2)
    return replace(p, **changes)


def test_the_sample_is_sound() -> None:
    verify(made())


def let(name: str, value: Expr, mutable: bool = False) -> Let:
    return Let(name, value, mutable)


def template(**changes: Any) -> Template:
    t = Template("transpose", (("PLANES", 2), ("A", 5), ("B", 5), ("XB", 5)),
                 (("X", "x0", symbol_of(Symbol("b", 0))),), ("x0",), ("y0",),
                 (Hook("epilogue", (Symbol("b", 0), Symbol("m", 0), Symbol("n", 0)),
                       (Store("y0", symbol_of(Symbol("m", 0)), Load("acc", 0, float32)),)),))
    return replace(t, **changes)


def steps(*rows: tuple[str, tuple[str, ...]], barrier: bool = True) -> dict[str, Any]:
    return {"steps": tuple(Run(k, a, barrier=barrier) for k, a in rows)}


def buffers(**changes: Any) -> dict[str, Any]:
    return {"buffers": tuple(changes.get(b.name, b) for b in made().buffers)}


def numbers(*of_kernel: Name) -> Program:
    """A kernel that stores num0; the runs pass one number each."""
    (kernel,) = made(loop(Store("y0", AT, Name("num0", float32)))).kernels
    return made(kernels=(replace(kernel, numbers=of_kernel),),
                steps=tuple(replace(r, numbers=(2.0,)) for r in runs(made().steps)))


def test_numbers_are_sound() -> None:
    verify(numbers(Name("num0", float32)))


def arena(name: str, size: int, offset: Any) -> Buffer:
    return Buffer(name, float32, size, "arena", offset)


MACROS = template().macros
FAULTS: dict[str, tuple[str, Callable[[], Program]]] = {
    "keyword": ("GT0370", lambda: made(name="while")),
    "injection": ("GT0370", lambda: made(let("v0; system(0)", ONE))),
    "twice": ("GT0370", lambda: made(let("v0", ONE), let("v0", ONE))),
    "two buffers": ("GT0370", lambda: made(buffers=made().buffers * 2)),
    "undefined": ("GT0371", lambda: made(loop(Store("y0", AT, Name("v0", float32))))),
    "too late": ("GT0371", lambda: made(loop(let("v0", Name("v1", float32)), let("v1", ONE)))),
    "out of scope": ("GT0371", lambda: made(loop(let("v0", ONE)),
                                            Store("y0", 0, Name("v0", float32)))),
    "index": ("GT0371", lambda: made(Store("y0", AT, ONE))),
    "immutable": ("GT0371", lambda: made(let("v0", ONE), Accumulate("v0", "add", ONE))),
    "accumulated": ("GT0372", lambda: made(let("v0", ONE, True), Accumulate("v0", "sub", ONE))),
    "condition": ("GT0372", lambda: made(If(ONE, ()))),
    "arity": ("GT0372", lambda: made(let("v0", Apply("exp", (ONE, ONE), float32)))),
    "no function": ("GT0372", lambda: made(let("v0", Apply("system", (ONE,), float32)))),
    "operands": ("GT0372", lambda: made(
        let("v0", Apply("add", (ONE, Const(1.0, float64)), float32)))),
    "result": ("GT0372", lambda: made(let("v0", Apply("lt", (ONE, ONE), float32)))),
    "select": ("GT0372", lambda: made(let("v0", Apply("select", (ONE, ONE, ONE), float32)))),
    "index type": ("GT0372", lambda: made(let("v0", Index(1, float32)))),
    "bounds": ("GT0372", lambda: made(loop(extent=20))),
    "no buffer": ("GT0373", lambda: made(loop(Store("z0", AT, ONE)))),
    "constant": ("GT0373", lambda: made(loop(Store("x0", AT, ONE)))),
    "element type": ("GT0373", lambda: made(Store("y0", 0, Const(1, int64)))),
    "port": ("GT0373", lambda: made(**buffers(in0=Buffer("in0", int64, 10, "input")))),
    "slot": ("GT0373", lambda: made(**buffers(in0=Buffer("in0", float32, 10, "input", slot=3)))),
    "weight": ("GT0373", lambda: made(**buffers(b1=Buffer("b1", float32, 10, "weight")))),
    "no kernel": ("GT0373", lambda: made(**steps(("k7", ())))),
    "argument": ("GT0373", lambda: made(**steps(("k0", ("in0", "b9"))))),
    "number": ("GT0370", lambda: numbers(Name("x0", float32))),
    "two numbers": ("GT0370", lambda: numbers(Name("num0", float32), Name("num0", float32))),
    "number of another type": ("GT0371", lambda: numbers(Name("num0", int64))),
    "numbers": ("GT0374", lambda: numbers(Name("num0", float32), Name("num1", float32))),
    "count": ("GT0374", lambda: made(**steps(("k0", ("in0",))))),
    "read-only": ("GT0374", lambda: made(**steps(("k0", ("in0", "in0"))))),
    "beyond": ("GT0375", lambda: made(loop(Store("y0", AT + 1, ONE)))),
    "before": ("GT0375", lambda: made(loop(Store("y0", AT - 1, ONE)))),
    "constant index": ("GT0375", lambda: made(Store("y0", 10, ONE))),
    "misaligned": ("GT0376", lambda: made(**buffers(b1=arena("b1", 10, 72)))),
    "outside": ("GT0376", lambda: made(arena=96)),
    "negative": ("GT0376", lambda: made(**buffers(b1=arena("b1", 10, -64)))),
    "overlap": ("GT0376", lambda: made(**buffers(b1=arena("b1", 10, 0)))),
    "barrier": ("GT0377", lambda: made(
        **steps(("k0", ("in0", "b0")), ("k0", ("b0", "out0")), barrier=False))),
    "no template": ("GT0378", lambda: made(template(kernel="/etc/passwd"))),
    "no macro": ("GT0380", lambda: made(template(macros=(*MACROS, ("MAIN", 1))))),
    "misspelt macro": ("GT0380", lambda: made(template(macros=(("PLANE", 2), *MACROS[1:])))),
    "macro left out": ("GT0380", lambda: made(template(macros=MACROS[1:]))),
    "macro twice": ("GT0380", lambda: made(template(macros=(*MACROS, MACROS[0])))),
    "macro of another kind": ("GT0380", lambda: made(
        template(macros=(("PLANES", "1\n#error"), *MACROS[1:])))),
    "macro of an open size": ("GT0371", lambda: made(template(macros=(("PLANES", AT),
                                                                      *MACROS[1:])))),
    "no pointer": ("GT0380", lambda: made(template(pointers=(("A", "x0", 0),)))),
    "pointer": ("GT0373", lambda: made(template(pointers=(("X", "nowhere", 0),)))),
    "no hook": ("GT0380", lambda: made(template(hooks=()))),
    "threads": ("GT0379", lambda: made(threads=0)),
    "donation": ("GT0379", lambda: made(donations=((0, 5),))),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_has_its_code(name: str) -> None:
    code, spoilt = FAULTS[name]
    with pytest.raises(InputError) as found:
        verify(spoilt(), "here")
    assert (found.value.code, found.value.where.splitlines()[0]) == (code, "here")


GUARD = Apply("lt", (Index(AT, int64), Index(9, int64)), bool_)


@pytest.mark.parametrize("body", [
    (loop(Store("y0", AT, Apply("select", (GUARD, Load("x0", AT + 1, float32), ONE), float32))),),
    (loop(If(GUARD, (Store("y0", AT + 1, ONE),))),), (template(),),
    (let("at0", Const(3, int64)), Store("y0", symbol_of(Symbol("at0", 0, 99)), ONE)),
    (loop(Store("y0", 99, ONE), it=Symbol("i0", 0, 0, 0), extent=0),),
    (let("v0", ONE, True), loop(Accumulate("v0", "max", X), Accumulate("v0", None, X)))])
def test_what_is_guarded_or_unknown_passes(body: tuple[Stmt, ...]) -> None:
    verify(made(*body))


def test_memory_is_used_again_after_the_last_reader() -> None:
    first, second = Run("k0", ("in0", "b0")), Run("k0", ("in0", "b1"))
    verify(made(**buffers(b1=arena("b1", 10, 0)), steps=(first, second)))
    with pytest.raises(InputError, match="no barrier"):
        verify(made(**buffers(b1=arena("b1", 10, 0)),
                    steps=(replace(first, barrier=False), second)))
