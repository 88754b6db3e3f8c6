"""The functions of a model whose kernels run on a device: weights are brought there once, a run
works on its memory, and the caller's arrays are copied there and back, unless they are there."""

from __future__ import annotations

from collections.abc import Sequence

from graphtool.emit.expr import ExprPrinter
from graphtool.emit.interface import dims_type
from graphtool.emit.language import Device, language_of
from graphtool.emit.lines import Writer
from graphtool.emit.shares import only_runs
from graphtool.emit.statuses import FIRST_CHECK, atoms
from graphtool.emit.steps import checks_before
from graphtool.emit.vectors import BYTES
from graphtool.emit.weights import Part
from graphtool.loops.program import Program


def entry(w: Writer, program: Program, conditions: Sequence[str], start: str,
          parts: Sequence[Part]) -> None:
    """Write NAME_run_device, for addresses of the device, and NAME_run, for arrays of the caller
    and for what the caller has on the device.

    `conditions` are the lines that return a status for what the caller gives, `start` runs the
    steps, and `parts` are weights that are built in.
    """
    name, dims = program.name, dims_type(program)
    given = f"{dims} *dims,\n        const void *const *inputs, void *const *outputs"
    if parts:
        _constants(w, parts)
    _run_on_device(w, program, start, bool(parts))
    w.line()
    with w.block(f"static int wrong(const void *weights, {given})\n{{"):
        w.line("(void)weights, (void)dims, (void)inputs, (void)outputs;")
        for line in conditions:
            w.line(line)
        w.line("return 0;")
    w.line()
    with w.block(f"int {name}_run_device(const void *weights, void *arena, {given})\n{{"):
        w.line("const int status = wrong(weights, dims, inputs, outputs);")
        w.line("if (status) return status;")
        if program.arena != 0:
            w.line(f"if (!arena) return {name.upper()}_NULL_POINTER;")
        for kind, count in (("inputs", len(program.inputs)), ("outputs", len(program.outputs))):
            w.line(f"for (int i = 0; i < {count}; i++)")
            w.line(f"    if ((uintptr_t){kind}[i] % {BYTES}) return {name.upper()}_MISALIGNED;")
        w.line(f"const size_t bytes = {_checks(program)};")
        w.line("const void *const none = NULL;")
        w.line("gt_address checks;")
        w.line(f"gt_device_take({name}_images);")
        w.line("gt_device_rooms(&checks, &none, &bytes, 1);")
        w.line("return run_on_device(weights, arena, dims, inputs, outputs, checks, NULL, NULL);")
    w.line()
    with w.block(f"int {name}_run(const void *weights, void *arena, {given}, int threads)\n{{"):
        w.line("(void)arena, (void)threads;")
        w.line("const int status = wrong(weights, dims, inputs, outputs);")
        w.line("if (status) return status;")
        _copies(w, program)


def _copied(w: Writer, name: str, parts: Sequence[Part]) -> None:
    """Write lines that bring weights of the library to new memory of the device; their last part
    may end behind the last weight."""
    w.line(f"const gt_address {name} = gt_device_alloc({max(p.end for p in parts)});")
    for p in parts:
        w.line(f"gt_device_write({name} + {p.start}, {p.symbol}, {p.end - p.start});")


def _constants(w: Writer, parts: Sequence[Part]) -> None:
    """Write the function that brings the weights of the library to the device, once."""
    w.line("/* the weights that are built in, for a run that is given no others */")
    with w.block("static const void *constants(void)\n{"):
        w.line("static gt_address at;")
        with w.block("if (!at) {"):
            _copied(w, "room", parts)
            w.line("gt_driver_wait();")
            w.line("if (gt_device.failed) gt_device_free(room);")
            w.line("else at = room;")
        w.line("return GT_ADDRESS(at);")
    w.line()


def _copies(w: Writer, program: Program) -> None:
    """Write a run in memory of the device that the library keeps, with copies there and back."""
    ins, outs = len(program.inputs), len(program.outputs)
    printer, count = ExprPrinter(atoms(program, "dims")), ins + outs + 2
    sizes = {(str(b.space), b.slot): printer.index(b.bytes_of(b.size)) for b in program.buffers
             if b.space in ("input", "output")}
    ports = [*(("input", i) for i in range(ins)), *(("output", i) for i in range(outs))]
    w.line("/* the arena, the inputs, the outputs, the checks */")
    w.line("const size_t bytes[] = {")
    for text in (f"{program.name}_arena_bytes(dims)",
                 *(f"(size_t)({sizes.get(p, '0')})" for p in ports), _checks(program)):
        w.line(f"    {text},")
    w.line("};")
    given = ", ".join(f"{kind}s[{slot}]" for kind, slot in ports)
    w.line(f"const void *const given[] = {{NULL, {given + ', ' if given else ''}NULL}};")
    w.line(f"gt_address at[{count}];")
    w.line(f"gt_device_take({program.name}_images);")
    w.line(f"gt_device_rooms(at, given, bytes, {count});")
    for const, word, first, number in (("const void *", "ins", 1, ins),
                                       ("void *", "outs", 1 + ins, outs)):
        held = ", ".join(f"GT_ADDRESS(at[{first + i}])" for i in range(number)) or "NULL"
        w.line(f"{const}const {word}[] = {{{held}}};")
    for i in range(ins):
        w.line(f"gt_device_write(at[{1 + i}], inputs[{i}], bytes[{1 + i}]);")
    for o, _ in program.donations:
        w.line(f"gt_device_write(at[{1 + ins + o}], outputs[{o}], bytes[{1 + ins + o}]);")
    w.line("return run_on_device(weights, GT_ADDRESS(at[0]), dims, ins, outs, "
           f"at[{count - 1}], outputs, bytes + {1 + ins});")


def _checks(program: Program) -> str:
    """The bytes of the marks that failed checks set."""
    return f"{4 * len(program.checks)}"


def upload(w: Writer, program: Program, parts: Sequence[Part]) -> None:
    """Write the functions for memory of the device, and NAME_upload, by which NAME_load of the
    whole build moves the weights there."""
    name = program.name
    take = f"gt_device_take({name}_images);"
    with w.block(f"int {name}_device_alloc(void **memory, size_t bytes)\n{{"):
        w.line(take)
        w.line("return gt_device_give_new(memory, gt_device_alloc(bytes));")
    w.line()
    with w.block(f"int {name}_device_copy(void *to, const void *from, size_t bytes)\n{{"):
        w.line(take)
        w.line("gt_device_copy(to, from, bytes);")
        w.line("return gt_device_give();")
    w.line()
    with w.block(f"void {name}_device_free(void *memory)\n{{"):
        w.line("if (!memory) return;")
        w.line(take)
        w.line("gt_device_free((gt_address)(uintptr_t)memory);")
        w.line("(void)gt_device_give();")
    w.line()
    w.line(prototype(name))
    w.line()
    with w.block(f"int {name}_upload(void **to, const void *from, size_t bytes)\n{{"):
        w.line(take)
        if parts:
            w.line("(void)from, (void)bytes;")
            _copied(w, "at", parts)
        else:
            w.line("const gt_address at = gt_device_alloc(bytes);")
            w.line("gt_device_write(at, from, bytes);")
        w.line("return gt_device_give_new(to, at);")
    device = language_of(program).device
    if device and device.compiles:
        w.line()
        w.line(f"{log_prototype(name)} {{ return gt_device_log(); }}")


def log_prototype(name: str) -> str:
    """The declaration of the function that gives the messages of the device's compiler."""
    return f"const char *{name}_device_log(void)"


def recorded(program: Program) -> bool:
    """Whether the launches of a run depend on the caller's arguments alone."""
    waits = program.commit is not None and bool(checks_before(program, program.commit))
    return only_runs(program.steps) and not waits


def _run_on_device(w: Writer, program: Program, start: str, built_in: bool) -> None:
    """Write the function that runs the steps on addresses of the device, which the thread holds,
    copies the outputs into `copies` of so many bytes, and gives the device back."""
    checks = len(program.checks)
    with w.block(f"static int run_on_device(const void *weights, void *arena, {dims_type(program)} "
                 "*dims,\n        const void *const *inputs, void *const *outputs, gt_address "
                 "checks,\n        void *const *copies, const size_t *bytes)\n{"):
        if built_in:
            w.line("if (!weights) weights = constants();")
        more = ""
        if checks:
            w.line(f"int32_t failed[{checks}] = {{0}};")
            w.line("gt_device_write(checks, failed, sizeof failed);")
            more = ", (int32_t *)GT_ADDRESS(checks)"
        if program.sizes:
            w.line("int status = 0;")
            more += f", dims + {len(program.dims)}, &status"
        w.line(f"const run_state s = {{weights, arena, dims, inputs, outputs{more}}};")
        device = language_of(program).device
        if device and device.replays and recorded(program):
            key = [f"dims[{i}]" for i in range(len(program.dims))]
            key += [f"(int64_t)(uintptr_t){p}" for p in (
                "weights", "arena", *(f"inputs[{i}]" for i in range(len(program.inputs))),
                *(f"outputs[{i}]" for i in range(len(program.outputs))))]
            w.line("/* what the launches depend on: a run with the same is one launch */")
            w.line(f"const int64_t key[] = {{{', '.join([*key, '(int64_t)checks'])}}};")
            with w.block(f"if (!gt_device_replay(key, {len(key) + 1})) {{"):
                w.line("gt_device_record();")
                w.line(start)
                w.line(f"gt_device_recorded(key, {len(key) + 1});")
        else:
            w.line("(void)checks;")
            w.line(start)
        w.line(f"for (int i = 0; copies && i < {len(program.outputs)}; i++)")
        w.line("    gt_device_read(copies[i], (gt_address)(uintptr_t)outputs[i], bytes[i]);")
        if checks:
            w.line("gt_device_read(failed, checks, sizeof failed);")
        w.line("const int given = gt_device_give();")
        w.line("if (given) return given;")
        if checks:
            with w.block(f"for (int i = 0; i < {checks}; i++) {{"):
                w.line(f"if (failed[i]) return {FIRST_CHECK} - i;")
        w.line("return status;" if program.sizes else "return 0;")


def device_loader(name: str, size: int, in_file: bool, device: Device, first: str = "") -> str:
    """The C of NAME_load and NAME_free for `size` bytes of weights that kernels read on a device;
    they come from a file, or are built in. `first` is the program that moves them, by default the
    only one, NAME."""
    w, first = Writer(), first or name
    if in_file:
        w.line("#define _DEFAULT_SOURCE 1 /* pread, and memory that is no file's, in any -std */")
    w.line(f'#include "{name}.h"')
    if in_file:
        w.line('#include "load.h"')
    w.line()
    w.line(prototype(first))
    w.line()
    with w.block(f"int {name}_load({name}_weights *weights, const char *path)\n{{"):
        w.line(f"if (!weights{' || !path' * in_file}) return {name.upper()}_NULL_POINTER;")
        w.line("weights->data = NULL, weights->memory = NULL, weights->bytes = 0;")
        if in_file:
            w.line("const void *data;")
            w.line("void *memory;")
            w.line("size_t bytes;")
            w.line(f"int status = gt_load_weights(path, {size}, &data, &memory, &bytes);")
            w.line("if (status) return status;")
            w.line(f"status = {first}_upload(&weights->memory, data, {size});")
            w.line("gt_free_weights(memory, bytes);")
        else:
            w.line("(void)path;")
            w.line(f"const int status = {first}_upload(&weights->memory, NULL, {size});")
        w.line(f"weights->data = weights->memory, weights->bytes = status ? 0 : {size};")
        w.line("return status;")
    w.line()
    with w.block(f"void {name}_free({name}_weights *weights)\n{{"):
        w.line("if (!weights) return;")
        w.line(f"{first}_device_free(weights->memory);")
        w.line("weights->data = NULL, weights->memory = NULL, weights->bytes = 0;")
    if device.compiles and first != name:
        w.line()
        w.line(f"{log_prototype(name)} {{ return {first}_device_log(); }}")
    return w.text()


def prototype(name: str) -> str:
    """The declaration of the function that moves weights to a device, which only the files of a
    build call."""
    return f"int {name}_upload(void **to, const void *from, size_t bytes);"
