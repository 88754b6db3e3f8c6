"""`show PROGRAM`: what a program takes and gives, its memory plan, its steps and its kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphtool.loops.liveness import lifetimes, places_of_runs
from graphtool.loops.program import (
    ENDLESS,
    Bind,
    Branch,
    Buffer,
    Kernel,
    Port,
    Program,
    Repeat,
    Run,
    Step,
    Times,
)
from graphtool.loops.text import INDENT, statements
from graphtool.loops.totals import totals
from graphtool.report.table import Column, Table, table
from graphtool.symbolic import Symbol, text
from graphtool.symbolic.text import name_text

SPACES = ("input", "output", "weight", "arena", "check")


def head_lines(p: Program) -> list[str]:
    """The interface of the program and its totals."""
    m, t = p.meta, totals(p)
    checks = "with" if m.get("index_checks") == "on" else "without"
    lanes = int(m.get("lanes", "1"))
    out = [f"program {p.name}: for {m.get('target', 'any machine')}, vectors of {lanes} "
           f"float{'s' * (lanes != 1)}, at most {p.threads} thread{'s' * (p.threads != 1)}, "
           f"precision {m.get('precision', 'default')}, {checks} checks of indices"]
    out += [f"dim {_dim(s)}" for s in p.dims]
    out += [f"require {text(e.left)} == {text(e.right)}" for e in p.requires]
    out += [f"input {_port(x)}" for x in p.inputs]
    given = dict(p.donations)
    out += [f"output {_port(x)}" + (f", in the place of {p.inputs[given[i]].name}"
                                    if i in given else "") for i, x in enumerate(p.outputs)]
    return [*out, f"{t.calls} calls of {t.kernels} kernels move {text(t.bytes)} bytes; arena "
                  f"{text(t.arena)} bytes, of which {text(t.workspace)} are workspace"]


def _dim(s: Symbol) -> str:
    step = f" step {s.step}" if s.step > 1 else ""
    return f"{name_text(s.name)}: {s.lo or 0}..{'' if s.hi is None else s.hi}{step}"


def _port(p: Port) -> str:
    return f"{p.name}: {p.dtype.short}[{','.join(text(d) for d in p.shape)}]"


def memory(p: Program) -> Table:
    """The buffers in the order of the plan: where each is, and from which step to which it is in
    use."""
    lives = lifetimes(p.steps)
    weights = dict(p.weights)

    def steps(b: Buffer) -> str:
        first, last = lives.get(b.name, (0, 0))
        return "" if b.name not in lives or b.space == "weight" else (
            f"{first}..{last}" if first != last else f"{first}")
    columns: tuple[Column[Buffer], ...] = (
        Column("space"), Column("buffer", "name"), Column("type", "dtype.short"),
        Column("elements", lambda b: text(b.size)),
        Column("bytes", lambda b: text(b.bytes_of(b.size))),
        Column("offset", lambda b: text(b.offset) if b.space == "arena" or b.name in weights
               else ""), Column("steps", steps), Column("what", "label"))
    return table(columns, sorted(p.buffers, key=lambda b: (
        SPACES.index(b.space), b.slot, lives.get(b.name, (0, 0)))))


def step_lines(p: Program) -> list[str]:
    """The steps with their numbers: which kernel runs on which buffers, reads before writes."""
    kernels = {k.name: k for k in p.kernels}
    places = iter(places_of_runs(p.steps))
    return list(_steps(p.steps, kernels, places, ""))


def _steps(steps: Iterable[Step], kernels: dict[str, Kernel], places: Iterator[int],
           indent: str) -> Iterator[str]:
    for s in steps:
        match s:
            case Run():
                yield f"{next(places):>4}  {indent}{_call(s, kernels[s.kernel])}"
            case Bind():
                most = "" if s.most == ENDLESS else f", at most {text(s.most)}"
                yield f"      {indent}{s.size.name} = {s.buffer}[{text(s.index)}]{most}"
            case Branch():
                yield f"      {indent}if {s.pred}{_of(s.label)}"
                yield from _steps(s.then, kernels, places, indent + INDENT)
                yield f"      {indent}else"
                yield from _steps(s.orelse, kernels, places, indent + INDENT)
            case Repeat():
                yield f"      {indent}repeat{_of(s.label)}"
                yield from _steps(s.cond, kernels, places, indent + INDENT)
                yield f"      {indent}while {s.pred}"
                yield from _steps(s.body, kernels, places, indent + INDENT)
            case Times():
                yield f"      {indent}for {s.counter.name} < {text(s.extent)}{_of(s.label)}"
                yield from _steps(s.body, kernels, places, indent + INDENT)


def _call(s: Run, kernel: Kernel) -> str:
    reads = [a for a, p in zip(s.args, kernel.params, strict=True) if p.const]
    writes = [a for a, p in zip(s.args, kernel.params, strict=True) if not p.const]
    sides = " -> ".join(", ".join(side) for side in (reads, writes) if side)
    where = f"  at {s.where}" if s.where else ""
    return f"{s.kernel}({sides}){_of(s.label)}{where}{'  then wait' if s.barrier else ''}"


def _of(label: str) -> str:
    return f"  {label}" if label else ""


def kernel_lines(p: Program) -> Iterator[str]:
    """Each kernel as a header and its block."""
    for k in p.kernels:
        params = ", ".join(f"{x.name} {x.dtype.short}{'' if x.const else ' written'}"
                           for x in k.params)
        yield ""
        yield f"kernel {k.name}({params}){' on one thread' if k.serial else ''}"
        yield from statements(k.body, INDENT)
