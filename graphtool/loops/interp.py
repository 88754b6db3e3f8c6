"""Runs a program in Python, one statement at a time; the emitted C must give the same results.

It is simple, not fast. Kernels run as one thread, the arena is filled with NaN at the start, and
every access is checked against its buffer, so that faults of a memory plan are found. The meaning
of a template is in its contract.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from graphtool.dtypes import DType, read_bits
from graphtool.errors import InputError
from graphtool.io.weights import Weight
from graphtool.loops.contract import CONTRACTS, REQUIRED, Contract, Instance
from graphtool.loops.dim_names import author_text, by_author, equation_by_author, symbol_by_author
from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Const,
    Expr,
    For,
    If,
    Index,
    Let,
    Load,
    Name,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.program import Bind, Branch, Buffer, Kernel, Program, Repeat, Run, Step, Times
from graphtool.loops.touches import Area
from graphtool.loops.verify_template import TemplateUse
from graphtool.loops.walk import certain, fold
from graphtool.scalars.table import BY_NAME
from graphtool.symbolic import Dim, at_least, check_bounds, check_required, dim_of, evaluate

Array = np.ndarray[Any, Any]


def run(program: Program, inputs: Mapping[str, Array], store: Mapping[str, Weight]) -> dict[
        str, Array]:
    """The outputs by name. Raises InputError GT0570 for an access outside of a buffer."""
    dims = bind(program, inputs)
    memory = _Memory(program, dims, inputs, store)
    kernels = {k.name: k for k in program.kernels}
    lanes = program.lanes

    def take(steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case Run():
                    kernel = kernels[step.kernel]
                    given = {p.name: memory.arrays[a] for p, a in zip(kernel.params, step.args,
                                                                      strict=True)}
                    numbers = {n.name: number(x, n.dtype) for n, x in zip(
                        kernel.numbers, step.numbers, strict=True)}
                    KernelRun(kernel, given, dims | numbers, lanes).run()
                case Branch():
                    take(step.then if memory.arrays[step.pred][0] else step.orelse)
                case Repeat():
                    take(step.cond)
                    while memory.arrays[step.pred][0]:
                        take(step.body)
                        take(step.cond)
                case Bind():
                    n = int(memory.arrays[step.buffer][evaluate(step.index, dims)])
                    low = step.size.lo
                    if (low is not None and n < low) or n > evaluate(step.most, dims):
                        raise InputError(
                            "GT0572", f"the size {by_author(step.size.name)} is {n}, expected "
                                      f"{author_text(step.most)} or less", where=step.label)
                    dims[step.size.name] = n
                case Times():
                    for i in range(evaluate(step.extent, dims)):
                        dims[step.counter.name] = i
                        take(step.body)

    with np.errstate(all="ignore"):
        take(program.steps)
    for b in program.checks:
        if memory.arrays[b.name][0]:
            raise InputError("GT0501", b.label)
    return {p.name: memory.output(i, dims) for i, p in enumerate(program.outputs)}


def bind(program: Program, inputs: Mapping[str, Array]) -> dict[str, int]:
    """The program's dimensions, from the shapes of the inputs; a dimension that is in no shape
    has its least value.

    Raises InputError GT0515 and GT0516 for sizes that the program does not allow.
    """
    dims = {s.name: at_least(s, 0) for s in program.dims}
    for p in program.inputs:
        for d, n in zip(p.shape, np.shape(inputs[p.name]), strict=True):
            dims.update({s.name: n for s in program.dims if d == dim_of(s)})
    for s in program.dims:
        check_bounds(symbol_by_author(s), dims[s.name])
    check_required(map(equation_by_author, program.requires),
                   {by_author(name): n for name, n in dims.items()})
    return dims


class _Memory:
    """The buffers as flat arrays; those of the arena are views of it, overlaps included."""

    def __init__(self, program: Program, dims: Mapping[str, int], inputs: Mapping[str, Array],
                 store: Mapping[str, Weight]) -> None:
        room = {b.slot: b.size for b in program.buffers if b.space == "output"}
        self.ports = program.outputs
        self.outputs = [np.zeros(evaluate(room[i], dims), p.dtype.numpy)
                        for i, p in enumerate(program.outputs)]
        arena = np.full(evaluate(program.arena, dims) + 64, 0xff, np.uint8)
        digests = dict(program.weights)
        self.arrays: dict[str, Array] = {}
        for b in program.buffers:
            match b.space:
                case "input":
                    given = np.ascontiguousarray(inputs[program.inputs[b.slot].name])
                    self.arrays[b.name] = given.reshape(-1)
                case "output":
                    self.arrays[b.name] = self.outputs[b.slot]
                case "weight":
                    self.arrays[b.name] = store[digests[b.name]].source.reshape(-1)
                case "arena":
                    self.arrays[b.name] = _view(arena, b, dims)
                case "check":
                    self.arrays[b.name] = np.zeros(1, np.int32)


    def output(self, slot: int, dims: Mapping[str, int]) -> Array:
        """An output in its shape, which may depend on sizes that the run computed."""
        shape = [evaluate(d, dims) for d in self.ports[slot].shape]
        return self.outputs[slot][:math.prod(shape)].reshape(shape)


def _view(arena: Array, b: Buffer, dims: Mapping[str, int]) -> Array:
    start, count = evaluate(b.offset, dims), evaluate(b.size, dims)
    return arena[start:start + count * b.dtype.bytes].view(b.dtype.numpy)


class KernelRun:
    """One kernel on its arrays. `env` holds dims, iterators and scalars, which share no names."""

    def __init__(self, kernel: Kernel, arrays: Mapping[str, Array], env: Mapping[str, int],
                 lanes: int) -> None:
        self.kernel, self.arrays, self.lanes = kernel, dict(arrays), lanes
        self.env: dict[str, Any] = dict(env)

    def run(self) -> None:
        """Run the kernel once; the buffers in `arrays` are changed in place."""
        self.body(self.kernel.body)

    def body(self, body: tuple[Stmt, ...]) -> None:
        """Run statements in order."""
        for s in body:
            self.stmt(s)

    def stmt(self, s: Stmt) -> None:
        """Run one statement.

        Raises InputError GT0571 for a template that no contract defines.
        """
        match s:
            case For():
                for i in range(evaluate(s.extent, self.env)):
                    self.env[s.iter.name] = i
                    self.body(s.body)
            case Let(name, value, _):
                self.env[name] = self.value(value)
            case Accumulate(name, fn, value):
                x = self.value(value)
                self.env[name] = x if fn is None else BY_NAME[fn].numpy(self.env[name], x)
            case Store(buffer, index, value):
                out = self.arrays[buffer]
                out[self.at(buffer, index)] = np.asarray(self.value(value)).astype(out.dtype)
            case If(cond, then, orelse):
                self.body(then if self.value(cond) else orelse)
            case Template(name):
                if name not in CONTRACTS:
                    raise InputError("GT0571", f"{name} has no meaning in the interpreter",
                                     where=f"kernel {self.kernel.name}")
                CONTRACTS[name].meaning(_instance(self, s, CONTRACTS[name]))

    def at(self, buffer: str, index: Dim) -> int:
        """The index of an element as a number. Raises InputError GT0570 if it is out of range."""
        i, size = evaluate(index, self.env), self.arrays[buffer].size
        if not 0 <= i < size:
            raise InputError("GT0570", f"{buffer}[{i}] of {size} elements",
                             where=f"kernel {self.kernel.name}")
        return i

    def value(self, e: Expr, memo: dict[Expr, Any] | None = None) -> Any:
        """A numpy scalar; half types are computed in float32, as C does. Of a select, only the arm
        that it returns is evaluated."""
        known: dict[Expr, Any] = {} if memo is None else memo

        def visit(e: Expr, parts: list[Any]) -> Any:
            if isinstance(e, Apply) and e.fn == "select":
                return self.value(e.args[1 if parts[0] else 2], known)
            return self.form(e, parts)
        return fold(e, visit, known, certain)

    def form(self, e: Expr, args: list[Any]) -> Any:
        """The value of an expression, from the values of its operands."""
        match e:
            case Const(value, dtype):
                return number(value, dtype)
            case Name(name):
                return self.env[name]
            case Index(value):
                return np.int64(evaluate(value, self.env))
            case Load(buffer, index, dtype):
                return self.arrays[buffer][self.at(buffer, index)].astype(compute_type(dtype))
            case Apply("cast"):
                return cast(args[0], e.dtype)
            case Apply("bitcast", (x,)):
                bits = (self.arrays[x.buffer][self.at(x.buffer, x.index)] if isinstance(x, Load)
                        else args[0].astype(x.dtype.numpy))  # a NaN that is read keeps its bits
                return read_bits(bits, e.dtype).astype(compute_type(e.dtype))[()]
            case Apply(fn):
                out = BY_NAME[fn].numpy(*args)
                return np.asarray(out).astype(compute_type(e.dtype))[()]


def number(value: int | float | bool, dtype: DType) -> Any:
    """A number of type `dtype`, as scalars of this type are computed."""
    return np.asarray(value).astype(dtype.numpy).astype(compute_type(dtype))[()]


def compute_type(d: DType) -> np.dtype[Any]:
    """The numpy type in which a scalar of type `d` is computed: f32 for a narrow float."""
    return d.computes.numpy if d.is_narrow else d.numpy


def cast(x: Any, to: DType) -> Any:
    """Convert as C does here: floats saturate in integers and NaN becomes 0; narrow floats
    round."""
    if to.is_integer and np.asarray(x).dtype.kind == "f":
        wide = 0 if np.isnan(x) else min(max(np.trunc(float(x)), float(to.low)), float(to.high))
        return to.numpy.type(min(int(wide), to.high))
    return np.asarray(x).astype(to.numpy).astype(compute_type(to))[()]


def _instance(machine: KernelRun, t: Template, contract: Contract) -> Instance:
    """The template's use in the form that its meaning takes."""
    def finish(sums: Array, indices: tuple[int, ...]) -> None:
        (hook,) = t.hooks
        inner = KernelRun(machine.kernel, machine.arrays, machine.env, machine.lanes)
        inner.arrays["acc"] = np.asarray(sums).astype(hook.dtype.numpy)
        inner.env |= {s.name: i for s, i in zip(hook.indices, indices, strict=True)}
        inner.env["count"] = sums.size
        inner.body(hook.body)
    use = TemplateUse(contract, t, machine.env, machine.lanes)
    areas = contract.touches(use) if contract.touches is not None else ()
    return Instance(t, machine.arrays, machine.env, machine.lanes,
                    {m.name: m.default for m in contract.macros if m.default is not REQUIRED},
                    {p.name: p.arguments for p in contract.pointers},
                    {a.pointer: a for a in areas if isinstance(a, Area)}, finish,
                    f"kernel {machine.kernel.name}")
