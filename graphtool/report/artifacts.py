"""`show BUILD` and `show PROGRAM`: interfaces, memory plan, steps, kernels and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from graphtool.compile.lowering import JOURNAL
from graphtool.errors import InputError
from graphtool.io import files
from graphtool.io.manifest import entry_names, one_entry
from graphtool.io.manifest_rows import DimRow, Manifest, PortRow, StepRow
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
from graphtool.passes.journal import Event, read_journal
from graphtool.report.table import Column, Table, human, table
from graphtool.symbolic import Symbol, text
from graphtool.symbolic.text import name_text

_FUNCTION = re.compile(r"^[a-z][\w ]*[ *](\w+)\([^;{]*\);", re.MULTILINE)
_WEIGHTS = {"file": "in a file", "embed": "in the library", "c": "in the C"}
STEPS: tuple[Column[StepRow], ...] = (
    Column("kernel"),
    Column("plan", lambda s: next(iter(s.choice.us)) if s.choice is not None else ""),
    Column("FLOPs", lambda s: human(s.flops)), Column("bytes", lambda s: human(s.bytes, "B")),
    Column("what", "label"), Column("at", "where"))
SPACES = ("input", "output", "weight", "arena", "check")


def build_lines(m: Manifest, build_dir: Path) -> list[str]:
    """The facts of a build, one a line; sizes of its files are those on disk."""
    kind = "training" if m.training else "inference"
    out = [f"build {m.name}: {kind}, for {m.target or 'this machine'}"
           + (f", by the figures of {m.machine}" if m.machine not in ("", "generic") else "")
           + (f", levels {', '.join(map(str, m.levels))} of x86-64" if m.levels else ""),
           f"compiler     {m.compiler}", f"flags        {' '.join(m.flags)}",
           f"precision    {m.precision}, assumes {_assumed(m.assumes)}, "
           f"{'with' if m.index_checks else 'without'} checks of indices"]
    for one in interfaces(m):
        out += [f"entry point  {one.entry}"] if m.entry else []
        out += [f"dim          {dim_text(d)}" for d in one.dims]
        out += [f"input        {port_text(p)}" for p in one.inputs]
        out += [f"output       {port_text(p)}" for p in one.outputs]
        out += [_arena(one)] if m.entry else []
    if m.training is not None:
        out.append(f"training     {m.training.loss}, {m.training.optimizer}, learning rate "
                   f"{m.training.lr:g}, {len(m.training.state)} arrays of state "
                   f"({human(m.training.state_bytes, 'B')})")
    headers = [f"{one.name}.h" for one in interfaces(m)] if m.entry else []
    declarations = [f for h in (*headers, m.header) for f in functions(build_dir / h)]
    out += [f"functions    {', '.join(declarations)}", *([] if m.entry else [_arena(m)]),
            f"weights      {human(m.weights_bytes, 'B')}, {_WEIGHTS[m.weights_mode]}"]
    if m.threads is not None and not m.device:  # kernels of a device have threads of its own
        out.append(f"threads      at most {m.threads.most}" + (
            f", with {human(m.threads.memory, 'B')} for each but the first" if m.threads.memory
            else ""))
    files, others = _files(m, build_dir)
    more = f", and {others} more, C and what builds it" if others else ""
    return [*out, f"files        {', '.join(files)}{more}"]


def interfaces(m: Manifest) -> list[Manifest]:
    """The manifest as each of the entry points has it; the manifest alone if there are none."""
    return [one_entry(m, entry) for entry in entry_names(m)] or [m]


def _arena(m: Manifest) -> str:
    return (f"arena        {human(m.arena, 'B')}"
            + (f", of which {human(m.live, 'B')} live at once" if m.live is not None else ""))


def _assumed(word: str) -> str:
    return word if word == "nothing" else f"{word} numbers"


def port_text(p: PortRow) -> str:
    """An input or output, such as `x: f32[batch,3]`."""
    return f"{p.name}: {p.type}[{','.join(map(str, p.shape))}]"


def dim_text(d: DimRow) -> str:
    """An open dim with its bounds, such as `batch: 1..64 step 8`."""
    step = f" step {d.step}" if d.step > 1 else ""
    return f"{name_text(d.name)}: {d.min}..{'' if d.max is None else d.max}{step}"


def functions(header: Path) -> list[str]:
    """The functions that a header declares, in its order. Raises InputError GT0332."""
    text = re.sub(r"/\*.*?\*/|^#.*?$", "", files.read_bytes(header).decode(errors="replace"),
                  flags=re.DOTALL | re.MULTILINE)
    return _FUNCTION.findall(text)


def _files(m: Manifest, build_dir: Path) -> tuple[list[str], int]:
    """The files that a program needs, and the missing ones, with their sizes; how many others there
    are."""
    named = dict.fromkeys(("build.json", *sorted(m.files)))
    needed = [name for name in named if not name.endswith((".c", ".cu", ".h", ".cmake", ".pc"))
              or name in (f"{m.name}.h", m.header) or not (build_dir / name).exists()]
    return [f"{name} ({_size(build_dir / name)})" for name in needed], len(named) - len(needed)


def _size(path: Path) -> str:
    try:
        return human(path.stat().st_size, "B")
    except OSError:
        return "missing"


def kept_graph(build_dir: Path) -> Path:
    """The optimised graph in a build that was made with --keep. Raises InputError GT0338 if there
    is none."""
    kept = kept_graphs(build_dir)
    if not kept:
        raise InputError("GT0338", "a graph is wanted, and this is a build without its graphs",
                         where=str(build_dir), hint="build it with --keep, or name the graph that "
                                                    "`graphtool opt` made")
    return kept[-1]


def kept_graphs(build_dir: Path) -> list[Path]:
    """The graphs of a build's stages, in order; none if it was made without --keep."""
    return sorted(build_dir.glob("stages/*-*.graph.json"), key=lambda p: int(p.name.split("-")[0]))


def kept_journal(build_dir: Path) -> list[Event]:
    """What the passes did, of a build that was made with --keep; else nothing."""
    path = build_dir / "stages" / JOURNAL
    return read_journal(path) if path.is_file() else []


def c_texts(build_dir: Path, m: Manifest) -> dict[str, str]:
    """The C files of a build, as far as they are still there, by name."""
    return {n: (build_dir / n).read_text("utf-8", "replace") for n in m.files
            if n.endswith(".c") and (build_dir / n).is_file()}


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
    numbers = [f"{n.name}={x}" for n, x in zip(kernel.numbers, s.numbers, strict=True)]
    sides = " -> ".join(", ".join(side) for side in ([*reads, *numbers], writes) if side)
    where = f"  at {s.where}" if s.where else ""
    return f"{s.kernel}({sides}){_of(s.label)}{where}{'  then wait' if s.barrier else ''}"


def _of(label: str) -> str:
    return f"  {label}" if label else ""


def kernel_lines(p: Program) -> Iterator[str]:
    """Each kernel as a header and its block."""
    for k in p.kernels:
        params = ", ".join([
            *(f"{x.name} {x.dtype.short}{'' if x.const else ' written'}" for x in k.params),
            *(f"{x.name} {x.dtype.short}" for x in k.numbers)])
        yield ""
        yield f"kernel {k.name}({params}){' on one thread' if k.serial else ''}"
        yield from statements(k.body, INDENT)
