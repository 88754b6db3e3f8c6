"""Program → C: one header, one driver file, files of kernels. Knows loops and scalars only.

Identifiers are generated; a name from the model appears as an escaped string or comment at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources

from graphtool.emit.expr import ExprPrinter, compute_type
from graphtool.emit.weights import Part, part_of
from graphtool.emit.writer import Writer, c_comment
from graphtool.loops.ir import (
    Accumulate,
    Buffer,
    For,
    Hook,
    If,
    Kernel,
    Let,
    Param,
    Program,
    Run,
    Stmt,
    Store,
    Template,
)
from graphtool.symbolic import Dim, Poly, known, symbols

KERNELS_PER_FILE = 12  # small enough to compile in parallel, and independent of the job count
_NARROW = re.compile(r"gt_(f64_to_odd|\w+_[iu][24]|\w*f[48]e\d\w*)\(")  # what narrow.h defines
_FN = {"add": "+", "mul": "*", "and": "&", "or": "|"}


def emit(program: Program, parts: Sequence[Part] = ()) -> dict[str, str]:
    """File name → text: NAME.h, NAME.c, NAME_kernels*.c/.h and the headers that they include.

    `parts` says which weights are built into the library, in arrays that other files define.
    """
    name = program.name
    dims = {s.name: f"d{i}" for i, s in enumerate(program.dims)}
    printer = _Kernels(program, dims)
    chunks = [program.kernels[i:i + KERNELS_PER_FILE]
              for i in range(0, len(program.kernels), KERNELS_PER_FILE)]
    files = {f"{name}.h": header(program, dims), f"{name}.c": driver(program, dims, parts),
             f"{name}_kernels.h": printer.declarations()}
    for i, chunk in enumerate(chunks):
        files[f"{name}_kernels{i}.c"] = printer.file(chunk)
    return files | used_headers(files.values())


def used_headers(texts: Iterable[str]) -> dict[str, str]:
    """The kernel headers that the files include, and those that these include in turn."""
    folder = resources.files("graphtool.kernels")
    found: dict[str, str] = {}
    pending = list(texts)
    while pending:
        for header_name in re.findall(r'#include "(\w+\.h)"', pending.pop()):
            path = folder / header_name
            if header_name not in found and path.is_file():
                found[header_name] = path.read_text()
                pending.append(found[header_name])
    return dict(sorted(found.items()))


# ---- kernels -----------------------------------------------------------------------------------

class _Kernels:
    def __init__(self, program: Program, dims: Mapping[str, str]) -> None:
        self.program, self.dims = program, dims
        self.printer = ExprPrinter(dims)
        self.labels = _labels(program)

    def declarations(self) -> str:
        w = Writer()
        guard = f"{self.program.name.upper()}_KERNELS_H"
        w.line(f"#ifndef {guard}")
        w.line(f"#define {guard}")
        w.line("#include <stdint.h>")
        for kernel in self.program.kernels:
            w.line(f"{signature(self.program.name, kernel, self.dims)};")
        w.line("#endif")
        return w.text()

    def file(self, kernels: Sequence[Kernel]) -> str:
        w = Writer()
        w.line('#include "nest.h"')
        w.line(f'#include "{self.program.name}_kernels.h"')
        for kernel in kernels:
            w.line()
            self.kernel(w, kernel)
        text = w.text()
        if _NARROW.search(text):
            text = text.replace('#include "nest.h"', '#include "narrow.h"\n#include "nest.h"', 1)
        return text

    def kernel(self, w: Writer, kernel: Kernel) -> None:
        for label in self.labels[kernel.name][:3]:
            w.line(f"/* {c_comment(label)} */")
        if len(self.labels[kernel.name]) > 3:
            w.line(f"/* and {len(self.labels[kernel.name]) - 3} more of the same */")
        for i, stmt in enumerate(kernel.body):
            if isinstance(stmt, Template):
                self.template(w, kernel, stmt, i)
        with w.block(signature(self.program.name, kernel, self.dims) + "\n{"):
            if kernel.serial:
                w.line("(void)t, (void)threads;")
            self.body(w, kernel)

    def body(self, w: Writer, kernel: Kernel) -> None:
        statements = Statements(w, self.printer, {p.name: p for p in kernel.params}, kernel.serial)
        for i, stmt in enumerate(kernel.body):
            if isinstance(stmt, Template):
                args = "".join(f", {p.name}" for p in kernel.params)
                args += "".join(f", {d}" for d in kernel_dims(kernel, self.dims))
                w.line(f"{self.program.name}_{kernel.name}_{i}(t, threads{args});")
            else:
                statements.stmt(stmt)

    def template(self, w: Writer, kernel: Kernel, t: Template, at: int) -> None:
        """The hooks, the macros and the header of one template."""
        own = f"{self.program.name}_{kernel.name}_{at}"
        dims = kernel_dims(kernel, self.dims)
        params = "".join(f", {param_text(p)}" for p in kernel.params)
        params += "".join(f", int64_t {d}" for d in dims)
        args = "".join(f", {p.name}" for p in kernel.params) + "".join(f", {d}" for d in dims)
        for hook in t.hooks:
            self.hook(w, own, kernel, hook, params, [p.name for p in kernel.params] + dims)
        w.line(f"#define GT_NAME {own}")
        w.line(f"#define GT_PARAMS {params}")
        w.line(f"#define GT_ARGS {args}")
        for key, value in t.macros:
            w.line(f"#define {key} {self.macro(value, own)}")
        for key, buffer, offset in t.pointers:
            w.line(f"#define {key} ({buffer} + {self.printer.index(offset, 13)})")
        w.line(f'#include "{t.header}"')

    def macro(self, value: str | Dim, own: str) -> str:
        if isinstance(value, str):
            return value.replace("{KERNEL}", own)
        return self.printer.index(value, 15)

    def hook(self, w: Writer, own: str, kernel: Kernel, hook: Hook, params: str,
             names: list[str]) -> None:
        indices = "".join(f", int64_t {s.name}" for s in hook.indices)
        head = (f"GT_INLINE void {own}_{hook.name}(const float *restrict acc{indices}, "
                f"int64_t count{params})\n{{")
        with w.block(head):
            text = Writer()
            statements = Statements(text, self.printer, {p.name: p for p in kernel.params}, True)
            for stmt in hook.body:
                statements.stmt(stmt)
            body = text.text()
            for name in [*(s.name for s in hook.indices), *names]:
                if not re.search(rf"\b{name}\b", body):
                    w.line(f"(void){name};")
            for line in text.lines:
                w.line(line)


class Statements:
    """Prints statements of the loop IR."""

    def __init__(self, w: Writer, printer: ExprPrinter, params: Mapping[str, Param],
                 serial: bool) -> None:
        self.w, self.p, self.params, self.serial = w, printer, params, serial

    def stmt(self, s: Stmt) -> None:
        match s:
            case Let(name, value, mutable):
                const = "" if mutable else "const "
                self.w.line(f"{const}{compute_type(value.dtype).c} {name} = {self.p.expr(value)};")
            case Store(buffer, index, value):
                text = self.p.stored(value, self.params[buffer].dtype)
                self.w.line(f"{buffer}[{self.p.index(index)}] = {text};")
            case Accumulate():
                self.accumulate(s)
            case For():
                self.loop(s)
            case If(cond, then, orelse):
                with self.w.block(f"if ({self.p.expr(cond)}) {{"):
                    for inner in then:
                        self.stmt(inner)
                if orelse:
                    with self.w.block("else {"):
                        for inner in orelse:
                            self.stmt(inner)

    def accumulate(self, s: Accumulate) -> None:
        if s.fn is None:
            self.w.line(f"{s.name} = {self.p.expr(s.value)};")
        elif s.fn in _FN:
            self.w.line(f"{s.name} {_FN[s.fn]}= {self.p.expr(s.value)};")
        else:
            fn = f"gt_{s.fn}_{compute_type(s.value.dtype).short}"
            self.w.line(f"{s.name} = {fn}({s.name}, {self.p.expr(s.value)});")

    def loop(self, s: For) -> None:
        i, extent = s.iter.name, self.p.index(s.extent)
        lo, hi = "0", extent
        if s.mode in ("parallel", "parallel simd") and not self.serial:
            lo, hi = f"gt_part({extent}, t, threads)", f"gt_part({extent}, t + 1, threads)"
            self.w.line(f"const int64_t {i}_end = {hi};")
            hi = f"{i}_end"
        for pragma in self.pragmas(s):
            self.w.line(pragma)
        with self.w.block(f"for (int64_t {i} = {lo}; {i} < {hi}; {i}++) {{"):
            for inner in s.body:
                self.stmt(inner)

    def pragmas(self, s: For) -> list[str]:
        innermost = not any(isinstance(x, For) for x in s.body)
        if s.mode in ("simd", "parallel simd") or (s.mode == "parallel" and innermost):
            if not s.reduces:
                return ["GT_SIMD"]
            acc, fn = s.reduces[0]
            dtype = next((x.value.dtype for x in s.body if isinstance(x, Accumulate)), None)
            if fn in _FN:
                return [f"GT_SIMD_REDUCE({_FN[fn]}, {acc})"]
            if dtype is not None and dtype.is_float:
                return [f"GT_SIMD_REDUCE(gt_{fn}_{compute_type(dtype).short}, {acc})"]
            return [f"GT_SIMD_REDUCE({fn}, {acc})"]
        return []


def _labels(program: Program) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {k.name: [] for k in program.kernels}
    for step in program.steps:
        label = step.label + (f"  ({step.where})" if step.where else "")
        if label not in out[step.kernel]:
            out[step.kernel].append(label)
    return out


def param_text(p: Param) -> str:
    return f"{'const ' if p.const else ''}{p.dtype.c} *{p.name}"


def kernel_dims(kernel: Kernel, dims: Mapping[str, str]) -> list[str]:
    """The program's dims that the kernel uses, in order."""
    used: set[str] = set()

    def visit(x: object) -> None:
        if isinstance(x, Poly):
            used.update(s.name for s in symbols(x))
        elif isinstance(x, (tuple, list)):
            for item in x:
                visit(item)
        elif hasattr(x, "__dataclass_fields__"):
            for f in x.__dataclass_fields__:
                if f not in ("dtype", "iter"):
                    visit(getattr(x, f))
    visit(kernel.body)
    return [c for name, c in dims.items() if name in used]


def signature(name: str, kernel: Kernel, dims: Mapping[str, str]) -> str:
    params = ["int t", "int threads", *map(param_text, kernel.params)]
    params += [f"int64_t {d}" for d in kernel_dims(kernel, dims)]
    return f"void {name}_{kernel.name}({', '.join(params)})"


# ---- header and driver -------------------------------------------------------------------------

def header(program: Program, dims: Mapping[str, str]) -> str:
    """The public interface: sizes, ports, and one function that runs the model."""
    name, w = program.name, Writer()
    w.line(f"/* {name}: the interface of a compiled model. Generated; do not edit. */")
    w.line(f"#ifndef {name.upper()}_H")
    w.line(f"#define {name.upper()}_H")
    w.line("#include <stddef.h>")
    w.line("#include <stdint.h>")
    w.line()
    w.line(f"#define {name.upper()}_INPUTS {len(program.inputs)}")
    w.line(f"#define {name.upper()}_OUTPUTS {len(program.outputs)}")
    w.line(f"#define {name.upper()}_DIMS {len(program.dims)}")
    if isinstance(program.arena, int):
        w.line(f"#define {name.upper()}_ARENA_BYTES {program.arena}")
    w.line()
    for i, s in enumerate(program.dims):
        limit = "" if s.hi is None else f", at most {s.hi}"
        w.line(f"/* dims[{i}]: {c_comment(s.name)}, at least {s.lo}{limit} */")
    for kind, ports in (("inputs", program.inputs), ("outputs", program.outputs)):
        for i, p in enumerate(ports):
            shape = ", ".join(str(d) for d in p.shape)
            w.line(f"/* {kind}[{i}]: {p.dtype.c} {c_comment(p.name)}[{c_comment(shape)}] */")
    w.line()
    w.line("#pragma GCC visibility push(default)")
    w.line("/* Bytes of arena that a run needs; align it to 64. */")
    w.line(f"size_t {name}_arena_bytes(const int64_t *dims);")
    w.line()
    w.line("/* Runs the model. `weights` points behind the header of the weights file: 8 bytes and")
    w.line("   as many as its first uint64_t says. Aligned to 64; NULL where they are built in.")
    w.line("   Returns 0, or -1 for a dim out of range. Nothing is allocated; runs on different")
    w.line("   arenas may go on at the same time. */")
    w.line(f"int {name}_run(const void *weights, void *arena, const int64_t *dims,")
    w.line("        const void *const *inputs, void *const *outputs, int threads);")
    w.line("#pragma GCC visibility pop")
    w.line("#endif")
    return w.text()


def driver(program: Program, dims: Mapping[str, str], parts: Sequence[Part] = ()) -> str:
    """The sequence of kernels, run by every thread, with barriers where data crosses threads."""
    name, w = program.name, Writer()
    w.line(f'#include "{name}.h"')
    w.line('#include "runtime.h"')
    w.line(f'#include "{name}_kernels.h"')
    w.line()
    with w.block("typedef struct {", "} run_state;"):
        w.line("const char *weights;")
        w.line("char *arena;")
        w.line("const int64_t *dims;")
        w.line("const void *const *inputs;")
        w.line("void *const *outputs;")
    w.line()
    for part in parts:
        w.line(f"extern const uint32_t {part.symbol(name)}[];")
    if parts:
        w.line("/* a weight in the caller's copy, else in the one that is built in */")
        w.line("#define WEIGHT(at, part, inner) \\")
        w.line("    (s->weights ? s->weights + (at) : (const char *)(part) + (inner))")
        w.line()
    printer = ExprPrinter(dims)
    buffers = {b.name: b for b in program.buffers}
    kernels = {k.name: k for k in program.kernels}
    held = {b.name: weight_text(b, name, parts) for b in program.buffers if b.space == "weight"}
    with w.block("static void run_thread(const run_state *s, int t, int threads)\n{"):
        for i in range(len(program.dims)):
            w.line(f"const int64_t d{i} = s->dims[{i}];")
            w.line(f"(void)d{i};")
        if not program.steps:
            w.line("(void)s, (void)t, (void)threads;")
        for i, step in enumerate(program.steps):
            at = f"{i}, {len(program.steps)}"
            _step(w, name, at, step, kernels[step.kernel], buffers, held, printer, dims)
    w.line(f"GT_PROFILED({name})")
    w.line()
    _entry(w, program, printer)
    text = w.text()
    if re.search(r"gt_(min_i64|max_i64|floordiv|floormod)\(", text):  # in symbolic sizes
        text = text.replace('#include "runtime.h"', '#include "nest.h"\n#include "runtime.h"', 1)
    return text


def weight_text(b: Buffer, name: str, parts: Sequence[Part]) -> str:
    """Where a weight starts: in the caller's copy, or in the part that holds it."""
    at = b.offset
    if not parts or not isinstance(at, int):
        return f"(s->weights + {at})" if at else "s->weights"
    part = part_of(parts, at)
    return f"WEIGHT({at}, {part.symbol(name)}, {at - part.start})"


def _step(w: Writer, name: str, at: str, step: Run, kernel: Kernel, buffers: Mapping[str, Buffer],
          held: Mapping[str, str], printer: ExprPrinter, dims: Mapping[str, str]) -> None:
    args = [f"(const {p.dtype.c} *){held[a]}" if a in held else _pointer(buffers[a], p, printer)
            for a, p in zip(step.args, kernel.params, strict=True)]
    args += kernel_dims(kernel, dims)
    call = f"GT_STEP({at}, {name}_{kernel.name}({', '.join(['t', 'threads', *args])}));"
    w.line(f"/* {c_comment(step.label)} */")
    if kernel.serial:
        w.line(f"if (t == 0) {call}")
    else:
        w.line(call)
    if step.barrier:
        w.line("gt_barrier(threads);")


def _pointer(b: Buffer, p: Param, printer: ExprPrinter) -> str:
    base = {"input": f"s->inputs[{b.slot}]", "output": f"s->outputs[{b.slot}]",
            "arena": "s->arena"}[b.space]
    if b.space == "arena" and b.offset != 0:
        base = f"({base} + {printer.index(b.offset, 13)})"
    return f"({'const ' if p.const else ''}{p.dtype.c} *){base}"


def parallel_work(program: Program) -> tuple[Dim, int]:
    """The nominal flops of a run, and those from which a second thread pays.

    A region costs 0.5 µs and a barrier 0.2 µs; a core does some 10⁵ flops a µs, of which a second
    one takes over half. Four times that, because waiting costs more when cores are shared.
    """
    work: Dim = 0
    for step in program.steps:
        work = work + step.flops
    microseconds = 0.5 + 0.2 * sum(s.barrier for s in program.steps)
    return work, round(8e5 * microseconds)


def _entry(w: Writer, program: Program, printer: ExprPrinter) -> None:
    name = program.name
    with w.block(f"size_t {name}_arena_bytes(const int64_t *dims)\n{{"):
        for i in range(len(program.dims)):
            w.line(f"const int64_t d{i} = dims[{i}];")
            w.line(f"(void)d{i};")
        w.line("(void)dims;")
        w.line(f"return (size_t)({printer.index(program.arena)});")
    w.line()
    with w.block(f"int {name}_run(const void *weights, void *arena, const int64_t *dims,\n"
                 "        const void *const *inputs, void *const *outputs, int threads)\n{"):
        for i, s in enumerate(program.dims):
            checks = [f"dims[{i}] < {s.lo or 0}"] + ([f"dims[{i}] > {s.hi}"] if s.hi else [])
            w.line(f"if ({' || '.join(checks)}) return -1;")
        w.line("const run_state s = {weights, arena, dims, inputs, outputs};")
        if all(k.serial for k in program.kernels):
            w.line("(void)threads;")
            w.line("run_thread(&s, 0, 1);")
        else:
            work, least = parallel_work(program)
            w.line(f"if (threads > {program.threads}) threads = {program.threads};")
            few = known(work, "<", least)
            given = ExprPrinter({s.name: f"dims[{i}]" for i, s in enumerate(program.dims)})
            if few is not False:
                w.line("/* so little work is done sooner by one thread than by waking others */")
                when = "" if few else f"if ({given.index(work)} < {least}) "
                w.line(f"{when}threads = 1;")
            w.line("GT_RUN_THREADS(run_thread, &s, threads);")
        w.line("return 0;")

