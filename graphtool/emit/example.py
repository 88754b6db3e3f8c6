"""NAME_example.c: a program that runs a model once, or that writes text by a language model."""

from __future__ import annotations

from collections.abc import Sequence

from graphtool.dtypes import DType
from graphtool.emit.interface import arguments, open_sizes
from graphtool.emit.language import language_of
from graphtool.emit.lines import Writer
from graphtool.escaping import c_comment, c_string
from graphtool.loops.dim_names import by_author
from graphtool.loops.program import Port, Program
from graphtool.loops.sample_sizes import sample_run
from graphtool.symbolic import product

SHOWN = 8  # numbers of an output that the example prints


def example(program: Program, weights_file: str) -> str:
    """The C of the example; `weights_file` is "" where the weights are built in."""
    w = _begin(program.name)
    with w.block("int main(int argc, char **argv)\n{"):
        _dims(w, program)
        w.line()
        load_weights(w, program.name, weights_file, True)
        _once(w, program, "weights.data")
        w.line(f"{program.name}_free(&weights);")
        w.line("return 0;")
    return w.text()


def example_of_entries(name: str, programs: Sequence[Program], weights_file: str) -> str:
    """The C of the example of several entry points, which it runs one after another."""
    w = _begin(name)
    for p in programs:
        with w.block(f"static int try_{p.name}(const void *weights)\n{{"):
            _dims(w, p)
            w.line("int status;")
            w.line()
            _once(w, p, "weights")
            w.line("return 0;")
        w.line()
    with w.block("int main(int argc, char **argv)\n{"):
        load_weights(w, name, weights_file, False)
        w.line("int wrong = 0;")
        for p in programs:
            w.line(f"wrong |= try_{p.name}(weights.data);")
        w.line(f"{name}_free(&weights);")
        w.line("return wrong;")
    return w.text()


def _begin(name: str) -> Writer:
    """The lines before the first function that depends on the program."""
    w = Writer()
    w.line(f"/* How to use {name} from C: load, run, free. Change it as you like. In this folder:")
    w.line("       cc -O2 *.c -lm -o example && ./example */")
    w.line("#define _ISOC11_SOURCE 1 /* aligned_alloc, in any -std */")
    for header in (f'"{name}.h"', "<stdio.h>", "<stdlib.h>"):
        w.line(f"#include {header}")
    w.line()
    w.line("/* Memory at a multiple of 64 bytes, filled with zeros. */")
    zeros(w)
    w.line()
    with w.block("static int failed(const char *what, const char *why)\n{"):
        w.line(r'fprintf(stderr, "%s: %s\n", what, why);')
        w.line("return 1;")
    w.line()
    return w


def zeros(w: Writer) -> None:
    """The C function `zeros`: memory of so many bytes at a multiple of 64, filled with zeros."""
    with w.block("static void *zeros(size_t bytes)\n{"):
        w.line("const size_t size = bytes / 64 * 64 + 64;")
        w.line("char *p = (char *)aligned_alloc(64, size);")
        w.line("for (size_t i = 0; p && i < size; i++) p[i] = 0;")
        w.line("return p;")


def _dims(w: Writer, program: Program) -> None:
    """Write the sizes of the example's inputs."""
    known = (*program.dims, *program.sizes)
    if known:
        names = ", ".join([*(c_comment(by_author(s.name)) for s in program.dims),
                          *(f"{c_comment(by_author(s.name))} (computed)" for s in program.sizes)])
        sizes = sample_run(program)
        values = [str(sizes[s.name]) for s in program.dims]
        values += ["0"] * len(program.sizes)
        const = "" if program.sizes else "const "
        w.line(f"{const}int64_t dims[] = {{{', '.join(values)}}}; /* {names} */")
    else:
        w.line("const int64_t *const dims = NULL; /* all sizes are fixed */")


def load_weights(w: Writer, name: str, weights_file: str, running: bool) -> None:
    """Write what brings the weights into memory, as `weights` and `status`; `running`: which runs
    change later."""
    w.line(f"{name}_weights weights;")
    w.line(f"const char *file = argc > 1 ? argv[1] : {c_string(weights_file)};"
           if weights_file else "(void)argc, (void)argv; /* no file is needed */")
    where = "file" if weights_file else "NULL"
    w.line(f"{'int' if running else 'const int'} status = {name}_load(&weights, {where});")
    what = where if weights_file else c_string(name)
    w.line(f"if (status) return failed({what}, {name}_status_text(status));")
    w.line()


def _once(w: Writer, program: Program, weights: str) -> None:
    """Write one run on zeros, with `status`: memory for it, what it gives, the memory freed. A byte
    that stands for 0 is its zero point."""
    name, big = program.name, program.name.upper()
    device = language_of(program).device
    if device:
        w.line("void *const arena = NULL; /* the device has it */")
    else:
        w.line(f"const size_t bytes = {name}_arena_bytes(dims);")
        w.line(f"if (!bytes) return failed(\"arena\", "
               f"{name}_status_text({big}_BAD_DIM));")
        w.line("void *arena = zeros(bytes);")
    for kind, ports in (("input", program.inputs), ("output", program.outputs)):
        for i, p in enumerate(ports):
            w.line(f"{p.dtype.c} *{kind}{i} = ({p.dtype.c} *)zeros("
                   f"{_bytes(program, kind, i, p)}); /* {c_comment(p.name)} */")
    for i, p in enumerate(program.inputs):
        if f"input{i}" in program.grids:
            stem = f"{big}_INPUT{i}"
            w.line(f"for (int64_t i = 0; i < {stem}_COUNT{arguments(product(p.shape))}; i++)")
            w.line(f"    input{i}[i] = {stem}_ZERO; /* the byte of the real number 0 */")
    for kind, ports in (("input", program.inputs), ("output", program.outputs)):
        const = "const void *const " if kind == "input" else "void *const "
        held = ", ".join(f"{kind}{i}" for i in range(len(ports))) or "NULL"
        w.line(f"{const}{kind}s[] = {{{held}}};")
    w.line()
    w.line(f"status = {name}_run({weights}, arena, dims, inputs, outputs, 1);")
    w.line(f"if (status) return failed({c_string(name)}, {name}_status_text(status));")
    for i, p in enumerate(program.outputs):
        _show(w, program, i, p)
    w.line()
    for kind, ports in (("output", program.outputs), ("input", program.inputs)):
        for i in range(len(ports)):
            w.line(f"free({kind}{i});")
    if not device:
        w.line("free(arena);")


def _show(w: Writer, program: Program, i: int, p: Port) -> None:
    """Write the loop that prints the first numbers of an output."""
    count = f"{program.name.upper()}_OUTPUT{i}_COUNT{arguments(product(p.shape))}"
    w.line(f"printf(\"outputs[{i}]:\"); /* {c_comment(p.name)} */")
    w.line(f"for (int64_t i = 0; i < {count} && i < {SHOWN}; i++)")
    w.line(f"    printf({_format(p.dtype)}, {_shown(p.dtype)}output{i}[i]);")
    w.line('printf("\\n");')


def _bytes(program: Program, kind: str, i: int, p: Port) -> str:
    rooms = {b.slot: b.size for b in program.buffers if b.space == "output"}
    size = rooms[i] if kind == "output" and open_sizes(program, p) else product(p.shape)
    return f"{program.name.upper()}_{kind.upper()}{i}_BYTES{arguments(size)}"


def _format(dtype: DType) -> str:
    """The format of one number; of a float of 16 bits or less its bits are printed."""
    if dtype.is_float and not dtype.is_narrow:
        return '" %g"'
    return '" %#llx"' if dtype.is_float else '" %lld"'


def _shown(dtype: DType) -> str:
    """The cast that makes the number fit its format."""
    if dtype.is_float and not dtype.is_narrow:
        return "(double)"
    return "(unsigned long long)" if dtype.is_float else "(long long)"
