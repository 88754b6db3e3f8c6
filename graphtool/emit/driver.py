"""The driver: it runs the kernels in order, with barriers where data crosses threads; and its entry
point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from graphtool.emit import typed
from graphtool.emit.device import entry, upload
from graphtool.emit.expr import ExprPrinter
from graphtool.emit.headers import called
from graphtool.emit.interface import ALIGN, arena_room, dims_type, maybe_zero
from graphtool.emit.language import C, Language, Steps, language_of
from graphtool.emit.lines import DebugLines, Writer, placed
from graphtool.emit.shares import is_shared, own_bytes
from graphtool.emit.statuses import (
    FIRST_CHECK,
    atom_text,
    atoms,
    rule_statuses,
    rules,
    status_function,
    statuses,
)
from graphtool.emit.steps import StepPrinter, entered
from graphtool.emit.weights import Part, part_of
from graphtool.escaping import c_comment
from graphtool.loops.program import Buffer, Program, runs
from graphtool.symbolic import Dim, bounds


def driver(program: Program, dims: Mapping[str, str], parts: Sequence[Part] = (),
           debug: DebugLines | None = None, language: Language = C) -> str:
    """The sequence of kernels, run by every worker, with barriers where data crosses workers."""
    name, w, how = program.name, Writer(), language.steps
    w.line()
    with w.block("typedef struct {", "} run_state;"):
        if not language.plain:
            w.line("const char *weights;")
        w.line("char *arena;")
        if not language.plain:
            w.line("const int64_t *dims;")
        w.line("const void *const *inputs;")
        w.line("void *const *outputs;")
        if program.checks:
            w.line("int32_t *failed; /* for each check, whether it failed */")
        if program.sizes:
            w.line("int64_t *sizes;")
            w.line("int *status;")
    w.line()
    if any(b.space == "arena" for b in program.buffers):
        _address(w, "void *arena_at", "arena")
    if program.weights and (language.device or not parts):
        _address(w, "const void *weight_at", "weights")
    for part in () if language.plain else parts:
        w.line(f"extern const uint32_t {part.symbol}[];")
    if language.device:
        w.line(f"extern const gt_image {name}_images[]; /* the code of the kernels */")
        w.line()
    elif parts and not language.plain:
        w.line("/* a weight in the caller's copy, else in the one that is built in */")
        w.line("#define WEIGHT(at, part, inner) ((const void *)( \\")
        w.line("    s->weights ? s->weights + (at) : (const char *)(part) + (inner)))")
        w.line()
    printer = ExprPrinter(dims)
    prefix = () if language.device else parts
    own = partial(typed.weight_text, program) if language.plain else weight_text
    held = {b.name: own(b, prefix) for b in program.buffers if b.space == "weight"}
    steps = StepPrinter(w, program, held, dims, debug, language)
    calls = steps.divided(program)
    with w.block(f"{how.body}\n{{"):
        if entered(program):
            w.line("/* a copy: a thread that is late may be here when the caller's is gone */")
            w.line("const run_state own = *(const run_state *)state, *const s = &own;")
        else:
            w.line("const run_state *const s = state;")
        for i, symbol in enumerate(program.dims):
            w.line(f"const int64_t d{i} = {atom_text(symbol, f's->dims[{i}]')};")
            w.line(f"(void)d{i};")
        for i in range(len(program.sizes)):
            w.line(f"int64_t size{i} = 0;")
            w.line(f"(void)size{i};")
        if not program.steps:
            w.line(how.unused)
        steps.all(program, calls)
    if how.after:
        w.line(how.after.format(program=name))
    w.line()
    _entry(w, program, printer, parts, language)
    if language.device:
        w.line()
        upload(w, program, parts)
    head = [f"{name}.h", f"{name}_kernels.h",
            *called(w.text(), language if language.plain else C, name),
            *([how.header] if how.header else []),
            *([f"{name}_weights.h"] if language.plain and parts else [])]
    return "".join(f'#include "{header}"\n' for header in head) + placed(
        w.lines, w.places, f"{name}.c", len(head))


def _address(w: Writer, head: str, member: str) -> None:
    """Write a function that says where in a block of memory something is; it points to void, so
    that nothing is said of its alignment."""
    with w.block(f"static {head}(const run_state *s, int64_t at)\n{{"):
        w.line(f"return &s->{member}[at];")
    w.line()


def weight_text(b: Buffer, parts: Sequence[Part]) -> str:
    """The C text of a weight's address: in the caller's copy, or in the part that contains it."""
    at = b.offset
    if not parts or not isinstance(at, int):
        return f"weight_at(s, {at})"
    part = part_of(parts, at)
    return f"WEIGHT({at}, {part.symbol}, {at - part.start})"


def parallel_work(program: Program) -> tuple[Dim, int]:
    """The work of a run and the least work for which a second thread pays, in flops.

    A byte of weights counts as a flop: small models wait for their weights, and two cores fetch
    them twice as fast. A barrier, the data that the cores then fetch from each other and uneven
    shares cost as much as 1 µs of work, in which a core does 2.5·10⁵ flops.
    """
    work: Dim = 0
    for step in runs(program.steps):
        work = work + step.flops
    for b in program.buffers:
        if b.space == "weight":
            work = work + b.bytes_of(b.size)
    return work, 250_000 * (1 + sum(s.barrier for s in runs(program.steps)))


def out_of_range(program: Program) -> str:
    """The C condition that a dim is below its least or above its most."""
    tests = []
    for i, s in enumerate(program.dims):
        tests.append(f"dims[{i}] < {s.lo or 0}")
        tests += [] if s.hi is None else [f"dims[{i}] > {s.hi}"]
    return " || ".join(tests)


def pointer_checks(program: Program, built_in: bool, arena: bool = True) -> Iterator[str]:
    """C that returns a status for a pointer that is missing or not aligned; without `arena` for
    the others."""
    big = program.name.upper()
    arena = arena and program.arena != 0
    needed = ["arena"] if arena else []
    needed += [] if built_in or not program.weights else ["weights"]
    missing = [f"!{p}" for p in needed]
    printer = ExprPrinter(atoms(program, "dims"))
    for kind, ports in (("input", program.inputs), ("output", program.outputs)):
        sizes = [maybe_zero(program, kind, i) for i in range(len(ports))]
        missing += [f"!{kind}s"] if ports else []
        if not any(sizes) and len(ports) > 4:
            missing.append(f"gt_any_null((const void *const *){kind}s, {len(ports)})")
            continue
        for i, zero in enumerate(sizes):
            if 0 not in zero:
                filled = "".join(f" && {printer.index(d)} > 0" for d in zero)
                missing.append(f"(!{kind}s[{i}]{filled})" if filled else f"!{kind}s[{i}]")
    for i in range(0, len(missing), 6):
        yield f"if ({' || '.join(missing[i:i + 6])}) return {big}_NULL_POINTER;"
    held = ["arena"] if arena else []
    held += ["weights"] if program.weights and not language_of(program).plain else []
    if held:
        address = " | ".join(f"(uintptr_t){p}" for p in held)
        yield f"if (({address}) % {ALIGN}u) return {big}_MISALIGNED;"


def _most_threads(program: Program) -> Iterator[str]:
    """C that limits `threads` to what the program is for, and to as many as the work pays for."""
    work, least = parallel_work(program)
    most, largest = program.threads, bounds(work)[1]
    if largest is not None and 1 + largest // least < most:
        most = 1 + largest // least
        yield "/* so little work is done sooner by these than by waking more */"
    yield f"if (threads > {most}) threads = {most};"
    if not isinstance(work, int) and most > 1:
        yield "/* each needs so much work that waking it pays */"
        text = ExprPrinter(atoms(program, "dims")).index(work, 13)
        yield f"const int64_t worth = 1 + {text} / {least};"
        yield "if (threads > worth) threads = (int)worth;"


def _arena(w: Writer, program: Program, printer: ExprPrinter) -> None:
    """Write the body of NAME_arena_bytes. It computes in numbers that cannot wrap around first."""
    if program.dims:
        w.line(f"if (!dims || {out_of_range(program)}) return 0;")
    else:
        w.line("(void)dims;")
    if isinstance(program.arena, int):
        w.line(f"return {arena_room(program.arena)};")
        return
    for i, s in enumerate(program.dims):
        w.line(f"const int64_t d{i} = {atom_text(s, f'dims[{i}]')};")
        w.line(f"(void)d{i};")
    most = bounds(program.arena)[1]
    if most is None or most >= 2 ** 40:
        w.line("/* no number that the arena's size is computed from exceeds this one */")
        w.line(f"const double most = {printer.magnitude(program.arena)};")
        w.line("if (most >= 0x1p62 || most >= (double)(SIZE_MAX / 2)) return 0;")
    w.line(f"const int64_t bytes = {printer.index(program.arena)};")
    w.line(f"return bytes > 0 ? ((size_t)bytes + {ALIGN - 1}) / {ALIGN} * {ALIGN} : {ALIGN};")


def _conditions(program: Program, built_in: bool, arena: bool = True) -> Iterator[str]:
    """C that returns a status for what the caller may not give."""
    name = program.name
    if program.dims or program.sizes:
        yield f"if (!dims) return {name.upper()}_NULL_POINTER;"
    if program.dims:
        yield f"if (!{name}_arena_bytes(dims)) return {name.upper()}_BAD_DIM;"
    yield from pointer_checks(program, built_in, arena)
    for (holds, rule), status in zip(rules(program), rule_statuses(program), strict=True):
        yield f"if (!({holds})) return {status.number}; /* {c_comment(rule)} */"


def _entry(w: Writer, program: Program, printer: ExprPrinter, parts: Sequence[Part],
           language: Language) -> None:
    name, how, built_in = program.name, language.steps, bool(parts)
    status_function(w, name, statuses(program))
    w.line()
    with w.block(f"size_t {name}_arena_bytes(const int64_t *dims)\n{{"):
        _arena(w, program, printer)
    w.line()
    if language.device:
        entry(w, program, list(_conditions(program, built_in, arena=False)), how.start, parts)
        return
    params = (f"const void *weights, void *arena, {dims_type(program)} *dims,\n"
              "        const void *const *inputs, void *const *outputs, int threads")
    if not how.given:
        with w.block(f"int {name}_run({params})\n{{"):
            _run(w, program, how, built_in)
        return
    given = ", ".join(p.format(name=name) for p in how.given)
    with w.block(f"int {name}_run_on({params},\n        {given})\n{{"):
        w.line(f"if (threads > 1 && !run) return {name.upper()}_BAD_POOL;")
        _run(w, program, how, built_in)
    w.line()
    with w.block(f"int {name}_run({params})\n{{"):
        w.line("(void)threads;")
        w.line(f"return {name}_run_on(weights, arena, dims, inputs, outputs, 1, 0, 0);")


def _run(w: Writer, program: Program, how: Steps, built_in: bool) -> None:
    """Write the body of the function that runs the program."""
    for line in _conditions(program, built_in):
        w.line(line)
    more, checks, big = "", len(program.checks), program.name.upper()
    if checks:
        w.line(f"int32_t failed[{checks}] = {{0}};")
        more = ", failed"
    if program.sizes:
        w.line("int status = 0;")
        more += f", dims + {len(program.dims)}, &status"
    plain = language_of(program).plain
    for name in ("weights", "dims") if plain else ():
        w.line(f"(void){name};")
    first = "arena" if plain else "weights, arena, dims"
    w.line(f"const run_state s = {{{first}, inputs, outputs{more}}};")
    if is_shared(program):
        w.line(f"if (threads < 1) threads = {how.most};")
        for line in _most_threads(program):
            w.line(line)
        room = ExprPrinter(atoms(program, "dims")).index(own_bytes(program))
        w.line(how.start.format(threads="threads", room=room, big=big))
    else:
        w.line("(void)threads;")
        w.line(how.start.format(threads="1", room="0", big=big))
    if checks:
        with w.block(f"for (int i = 0; i < {checks}; i++) {{"):
            w.line(f"if (failed[i] != 0) return {FIRST_CHECK} - i;")
    w.line("return status;" if program.sizes else "return 0;")
