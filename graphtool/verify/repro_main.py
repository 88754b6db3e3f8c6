"""The text of a repro's main program and Makefile. What it compares is written by repro.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphtool.escaping import c_string

KINDS = {"f64": "double", "f32": "float", "f16": "", "bf16": "", "i64": "int64_t", "i32": "int32_t",
         "i16": "int16_t", "i8": "int8_t", "u64": "uint64_t", "u32": "uint32_t",
         "u16": "uint16_t", "u8": "uint8_t", "bool": "uint8_t"}
"""Element types that the program can compare, and their C; those without have a function."""
Row = tuple[str, str, int, float, float]  # name, element type, elements, atol, rtol

_OPENING = """/* Runs the model on the inputs beside this file, and compares with what is expected.
   make && ./repro: exit code 0 if all agrees, 1 if not, 2 if a file is missing. */
"""
_HEAD = r"""#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *name, *type;
    size_t count, size;
    double atol, rtol;
};

static void *zeros(size_t bytes)
{
    const size_t size = bytes / 64 * 64 + 64;
    void *p = aligned_alloc(64, size);
    if (!p) exit(2);
    return memset(p, 0, size);
}

static void *contents(const char *kind, size_t i, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "%s%zu.bin", kind, i);
    FILE *file = fopen(path, "rb");
    void *p = zeros(bytes);
    if (!file || fread(p, 1, bytes, file) != bytes) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    fclose(file);
    return p;
}

static double half(uint16_t x)
{
    const int e = x >> 10 & 31, m = x & 1023;
    const double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return x >> 15 ? -v : v;
}

static double brain(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

"""

_COMPARE = r"""
/* Prints the row, and returns whether it agrees: |a - e| <= atol + rtol |e| for each element. */
static int agrees(const struct row *r, const void *expected, const void *actual)
{
    size_t out = 0, first = 0;
    double most = 0;
    for (size_t i = 0; i < r->count; i++) {
        const double e = element(r->type, expected, i), a = element(r->type, actual, i);
        const double gap = fabs(a - e);
        const int same = a == e || (isnan(a) && isnan(e));
        if (!same && !(gap <= r->atol + r->rtol * fabs(e)) && !out++) first = i;
        if (!same && !(gap <= most)) most = gap;
    }
    printf("  %s %s: max abs %.3g, %zu of %zu out", out ? "FAIL" : "ok  ", r->name, most, out,
           r->count);
    if (out)
        printf("; first at %zu: %.9g expected, %.9g found", first,
               element(r->type, expected, first), element(r->type, actual, first));
    printf("\n");
    return !out;
}
"""

_RUN = r"""
static int run_{name}(void *const *inputs)
{{
    static const int64_t dims[] = {{{dims}}};
    const size_t count = sizeof {name}_rows / sizeof *{name}_rows;
    {name}_weights weights = {{0}};
    int status = {name}_load(&weights, "{name}.safetensors");
    void *arena = zeros({name}_arena_bytes(dims));
    void *outputs[sizeof {name}_rows / sizeof *{name}_rows];
    for (size_t i = 0; i < count; i++)
        outputs[i] = zeros({name}_rows[i].count * {name}_rows[i].size);
    if (!status)
        status = {name}_run(weights.data, arena, dims, (const void *const *)inputs, outputs, 1);
    if (status) {{
        printf("  FAIL %s\n", {name}_status_text(status));
        return 0;
    }}
    int ok = 1;
    const char *wrong = NULL;
    for (size_t i = 0; i < count; i++) {{
        const struct row *r = &{name}_rows[i];
        void *expected = contents("{name}", i, r->count * r->size);
        if (!agrees(r, expected, outputs[i]) && ok) ok = 0, wrong = r->name;
        free(expected);
        free(outputs[i]);
    }}
    if (wrong) printf("the first that differs: %s\n", wrong);
    free(arena);
    {name}_free(&weights);
    return ok;
}}
"""

_MAIN = """
int main(void)
{
    int ok = 1;
"""
_PART = """    printf("{told}\\n");
    const int {name} = run_{name}(inputs());
    ok &= {name};
"""
_END = """    return !ok;
}
"""
_BOTH = """    if (steps && !model)
        printf("every kernel alone is right: a pass, or the plan of memory, is not\\n");
"""
_TOLD = {"steps": "each kernel, with its result as an output", "model": "the model as it is built"}


def program_text(dims: Mapping[str, Sequence[int]], inputs: Sequence[Any],
                 tables: Mapping[str, Sequence[Row]]) -> str:
    """The main program for the programs `model` and, if there is one, `steps`: the sizes of their
    open dims, the input arrays, and the rows that each returns."""
    headers = (f'#include "{name}.h"\n' for name in tables)
    parts = [_OPENING, *headers, _HEAD, _element(), _COMPARE]
    for name, rows in tables.items():
        parts.append(f"\nstatic const struct row {name}_rows[] = {{\n" + "".join(
            f"    {{{c_string(n)}, \"{kind}\", {count}, {_bytes(kind)}, {atol!r}, {rtol!r}}},\n"
            for n, kind, count, atol, rtol in rows) + "};\n")
        parts.append(_RUN.format(name=name, dims=", ".join(map(str, dims[name])) or "0"))
    loads = "".join(f'    p[{i}] = contents("input", {i}, {x.nbytes});\n'
                    for i, x in enumerate(inputs))
    parts.append(f"\nstatic void *const *inputs(void)\n{{\n    static void *p[{len(inputs) or 1}];"
                 f"\n{loads}    return p;\n}}\n")
    calls = [_PART.format(name=n, told=text) for n, text in _TOLD.items() if n in tables]
    return "".join([*parts, _MAIN, *calls, _BOTH if "steps" in tables else "", _END])


def _element() -> str:
    """The function that reads an element of any type as a double."""
    rows = "".join(f'    if (!strcmp(type, "{short}")) return (double)((const {c} *)p)[i];\n'
                   for short, c in KINDS.items() if c)
    return ("static double element(const char *type, const void *p, size_t i)\n{\n" + rows
            + '    const uint16_t bits = ((const uint16_t *)p)[i];\n'
            '    return !strcmp(type, "f16") ? half(bits) : brain(bits);\n}\n')


def _bytes(kind: str) -> int:
    digits = "".join(c for c in kind if c.isdigit())
    return int(digits) // 8 if digits else 1


def makefile(flags: Sequence[str]) -> str:
    """The Makefile. `make` always builds, because CC may be another than before, with the flags
    that CC knows, or those of `make CFLAGS=…`; then it runs. `-xc`: for g++ too this is C."""
    return ("# make builds and runs it; another compiler: make CC=clang\n"
            f"FLAGS = {' '.join(flags)}\n"
            "known = $(shell $(CC) $(1) -Werror -x c -fsyntax-only /dev/null 2>&1 || echo no)\n"
            "CFLAGS := $(foreach flag,$(FLAGS),$(if $(call known,$(flag)),,$(flag)))\n\n"
            "run: repro\n\t./repro\n\n"
            "repro:\n"
            "\t$(CC) $(CFLAGS) -Wno-unused-function -o $@ $(addprefix -xc ,$(wildcard *.c))"
            " -xnone -lm -lpthread\n\n"
            ".PHONY: run repro\n")
