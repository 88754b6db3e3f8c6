"""`casadi`: a model as an external function of CasADi, with the derivatives that the build has.

CasADi looks for derivatives by name: jac_F is the Jacobian of F, fwd1_F the derivative along one
direction, adj1_F the product of one cotangent with the Jacobian, jac_adj1_F the Hessian. Each is an
entry point of the build; the names that `jacobian`, `jvp` and `vjp` give to inputs and outputs say
which one. Matrices of CasADi are of doubles, column after column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from graphtool.emit.weights import Part, array
from graphtool.errors import Unsupported, UnsupportedError, UsageError
from graphtool.io.manifest import entry_names, one_entry
from graphtool.io.manifest_rows import Manifest, PortRow
from graphtool.package.record import Files, PackageForm, Subject, elements, register
from graphtool.package.sources import sources
from graphtool.package.words import identifiers, plain

_HEAD = """\
/* {name}_casadi: functions for casadi.external. Generated; do not edit. */
#include "{name}.h"
#include <string.h>

#ifndef {upper}_THREADS
#define {upper}_THREADS 1 /* of one call; 0: as many as there are processors */
#endif
#if defined(_WIN32)
#define SHOWN __declspec(dllexport)
#else
#define SHOWN __attribute__((visibility("default")))
#endif
typedef double casadi_real;
typedef long long casadi_int;
{weights}
/* A matrix from its columns into its rows, and back. */
#define MOVES(T) \\
static inline void rows_##T(T *to, const casadi_real *from, size_t rows, size_t columns) \\
{{ \\
    for (size_t j = 0; j < columns; j++) \\
        for (size_t i = 0; i < rows; i++) \\
            to[i * columns + j] = from ? (T)from[j * rows + i] : (T)0; \\
}} \\
static inline void columns_##T(casadi_real *to, const T *from, size_t rows, size_t columns) \\
{{ \\
    for (size_t j = 0; j < columns; j++) \\
        for (size_t i = 0; i < rows; i++) \\
            to[j * rows + i] = from[i * columns + j]; \\
}} \\
/* The derivative of a matrix by another one: a column for each element of that one. */ \\
static inline void jacobian_##T(casadi_real *to, const T *from, size_t rows, size_t columns, \\
                                size_t by_rows, size_t by_columns) \\
{{ \\
    for (size_t j = 0; j < by_columns; j++) \\
        for (size_t i = 0; i < by_rows; i++) \\
            for (size_t c = 0; c < columns; c++) \\
                for (size_t r = 0; r < rows; r++) \\
                    *to++ = from[(r * columns + c) * by_rows * by_columns + i * by_columns + j]; \\
}}
{moves}
static inline void *aligned(void *p) {{ return (void *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }}
"""
_FUNCTION = """
/* {name}: {signature} */
SHOWN casadi_int {name}_n_in(void) {{ return {n_in}; }}
SHOWN casadi_int {name}_n_out(void) {{ return {n_out}; }}
SHOWN const char *{name}_name_in(casadi_int i)
{{
    static const char *const names[] = {{{names_in}}};
    return i >= 0 && i < {n_in} ? names[i] : 0;
}}
SHOWN const char *{name}_name_out(casadi_int i)
{{
    static const char *const names[] = {{{names_out}}};
    return i >= 0 && i < {n_out} ? names[i] : 0;
}}
SHOWN const casadi_int *{name}_sparsity_in(casadi_int i)
{{
    static const casadi_int {patterns_in};
    static const casadi_int *const all[] = {{{all_in}}};
    return i >= 0 && i < {n_in} ? all[i] : 0;
}}
SHOWN const casadi_int *{name}_sparsity_out(casadi_int i)
{{
    static const casadi_int {patterns_out};
    static const casadi_int *const all[] = {{{all_out}}};
    return i >= 0 && i < {n_out} ? all[i] : 0;
}}
SHOWN int {name}_work(casadi_int *arg, casadi_int *res, casadi_int *iw, casadi_int *w)
{{
    const int64_t dims[] = {{0}};
    *arg = {n_in}, *res = {n_out}, *iw = 0;
    *w = (casadi_int)(({entry}_arena_bytes(dims) + {bytes}) / sizeof(casadi_real));
    return 0;
}}
SHOWN int {name}(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w,
{indent}int mem)
{{
    const int64_t dims[] = {{0}};
    char *const room = aligned(w), *const arena = room + {ports};
    const void *const inputs[] = {{{inputs}}};
    void *const outputs[] = {{{outputs}}};
    (void)iw, (void)mem;
{before}
    if ({entry}_run({data}, arena, dims, inputs, outputs, {upper}_THREADS)) return 1;
{after}
    return 0;
}}
"""
_README = """\
# {name} {version}

The model as an external function of CasADi. Compile it, and call it:

    cc -O3 {flags}-fPIC -shared {files} -lm -o {name}.so

    import casadi
    {name} = casadi.external("{name}", "./{name}.so")

{functions}
Numbers are doubles outside and {types} inside. An array of two axes is a matrix, any other one a
column of its elements. `-fopenmp -D{upper}_THREADS=4` compiles for four threads a call.
"""
_MORE = """\
CasADi can differentiate it if the build has the derivatives:

    graphtool vjp {name}.graph.json -o adj.graph.json
    graphtool jvp {name}.graph.json -o fwd.graph.json
    graphtool jacobian {name}.graph.json -o jac.graph.json
    graphtool jacobian adj.graph.json -o hess.graph.json
    graphtool build {name}.graph.json adj=adj.graph.json fwd=fwd.graph.json \\
        jac=jac.graph.json hess=hess.graph.json -o build --name {name}
"""


@dataclass(frozen=True, slots=True)
class Matrix:
    """An argument or result for CasADi: its name, the port that holds it ("" for an argument that
    the derivative does not need, or a result that is 0), its rows and columns; of a Jacobian also
    those of what is differentiated and by what."""

    name: str
    port: str
    rows: int
    columns: int
    blocks: tuple[int, int, int, int] | None = None

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.rows * self.columns


@dataclass(frozen=True, slots=True)
class Function:
    """A function as CasADi sees it, and the entry point that computes it."""

    name: str
    rows: Manifest
    arguments: tuple[Matrix, ...]
    results: tuple[Matrix, ...]

    @property
    def ports(self) -> tuple[str, ...]:
        """The names of the inputs of the entry point."""
        return tuple(p.name for p in self.rows.inputs)


def functions(s: Subject) -> list[Function]:
    """The model and its derivatives, each after what it is derived from.

    Raises UsageError GT2242 for an entry point that is no derivative of the others, and for open
    sizes, UnsupportedError GT2243 for ports that are not float32 or float64.
    """
    names = entry_names(s.manifest)
    entries = [one_entry(s.manifest, n) for n in names] or [s.manifest]
    for rows in entries:
        _check(s, rows)
    first, *left = entries
    left.sort(key=lambda e: len(e.outputs))  # a Hessian has all results of the adjoint, and more
    words = identifiers([p.name for p in (*first.inputs, *first.outputs)])
    ports = [_matrix(_word(w), p.name, p)
             for w, p in zip(words, (*first.inputs, *first.outputs), strict=True)]
    known = [Function(s.name, first, tuple(ports[:len(first.inputs)]),
                      tuple(ports[len(first.inputs):]))]
    while left:
        taken = {f.name for f in known}
        found = next(((e, d) for e in left for f in known for d in _derivatives(f, e)
                      if d.name not in taken), None)
        if found is None:
            raise UsageError("GT2242", f"the entry point {left[0].entry} is no derivative of the "
                                       f"others", where=str(s.folder),
                             hint="make derivatives by all inputs with `jvp`, `vjp` or `jacobian`")
        left.remove(found[0])
        known.append(found[1])
    return known


def _check(s: Subject, m: Manifest) -> None:
    if m.dims or m.sizes:
        raise UsageError("GT2242", "functions of CasADi have fixed sizes", where=str(s.folder),
                         hint="import with fixed sizes, as in --dynamic batch=1")
    odd = [p for p in (*m.inputs, *m.outputs) if elements(p) not in ("f32", "f64")]
    if odd:
        raise UnsupportedError("GT2243", "CasADi has numbers of doubles alone", tuple(
            Unsupported(f"{p.name}: {p.type}", "is not float32 or float64") for p in odd))


def _word(word: str) -> str:
    """A name that CasADi takes: it begins with a letter, and no two underscores follow."""
    return re.sub("_+", "_", word).strip("_") or "x"


def _matrix(name: str, port: str, row: PortRow) -> Matrix:
    shape = [int(d) for d in row.shape]
    rows, columns = shape if len(shape) == len("ij") else (math.prod(shape), 1)
    return Matrix(name, port, rows, columns)


def _derivatives(f: Function, e: Manifest) -> Iterator[Function]:
    """What the entry point may be as a derivative of f."""
    taken, own = tuple(p.name for p in e.inputs), f.ports
    outputs, rest = {p.name for p in e.outputs}, set(taken[len(own):])
    if taken[:len(own)] != own:
        return
    given = [*f.arguments, *(_named(r, f"out_{r.name}", "") for r in f.results)]
    tangents = [_named(a, f"fwd_{a.name}", a.port and f"{a.port}.tangent") for a in f.arguments]
    cotangents = [_named(r, f"adj_{r.name}", r.port and f"{r.port}.cotangent") for r in f.results]
    known = {
        f"jac_{f.name}": ([], _blocks(f)),
        f"fwd1_{f.name}": (tangents, [_named(r, f"fwd_{r.name}", r.port and f"tangent.{r.port}")
                                      for r in f.results]),
        f"adj1_{f.name}": (cotangents, [_named(a, f"adj_{a.name}", a.port and
                                               f"cotangent.{a.port}") for a in f.arguments])}
    for name, (directions, results) in known.items():
        if rest == {d.port for d in directions if d.port} and {
                r.port for r in results if r.port} <= outputs:
            yield Function(name, e, (*given, *directions), tuple(results))


def _blocks(f: Function) -> list[Matrix]:
    """The Jacobians of each result of f by each argument."""
    return [Matrix(f"jac_{r.name}_{x.name}",
                   f"jacobian.{r.port}.{x.port}" if r.port and x.port else "",
                   r.size, x.size, (r.rows, r.columns, x.rows, x.columns))
            for r in f.results for x in f.arguments]


def _named(m: Matrix, name: str, port: str) -> Matrix:
    return Matrix(name, port, m.rows, m.columns)


def _pattern(name: str, m: Matrix, empty: bool) -> str:
    """The sparsity: dense, or without any element."""
    columns = ", ".join(["0"] * (m.columns + 1)) if empty else "1"
    return f"{name}[] = {{{m.rows}, {m.columns}, {columns}}}"


def _text(s: Subject, f: Function, data: str) -> str:
    """The C of one function."""
    offsets, total = dict[tuple[str, str], int](), 0
    rows: Mapping[str, Sequence[PortRow]] = {"in": f.rows.inputs, "out": f.rows.outputs}
    types = dict[tuple[str, str], str]()
    for side, ports in rows.items():
        for p in ports:
            offsets[side, p.name] = total
            types[side, p.name] = "float" if elements(p) == "f32" else "double"
            size = math.prod(int(d) for d in p.shape) * (4 if elements(p) == "f32" else 8)
            total += -(-max(size, 1) // 64) * 64
    before = [f"    rows_{(t := types['in', a.port])}(({t} *)(room + {offsets['in', a.port]}), "
              f"arg[{i}], {a.rows}, {a.columns});" for i, a in enumerate(f.arguments) if a.port]
    after = []
    for i, r in enumerate(f.results):
        if not r.port:
            continue
        t = types["out", r.port]
        how, sizes = ("jacobian", r.blocks) if r.blocks else ("columns", (r.rows, r.columns))
        after.append(f"    if (res[{i}]) {how}_{t}(res[{i}], (const {t} *)(room + "
                     f"{offsets['out', r.port]}), {', '.join(map(str, sizes))});")
    signature = (f"{', '.join(a.name for a in f.arguments)} -> "
                 f"{', '.join(r.name for r in f.results)}")
    return _FUNCTION.format(
        name=f.name, indent=" " * len(f"SHOWN int {f.name}("), entry=f.rows.name,
        upper=s.name.upper(), data=data, signature=plain(signature),
        n_in=len(f.arguments), n_out=len(f.results),
        names_in=", ".join(f'"{a.name}"' for a in f.arguments),
        names_out=", ".join(f'"{r.name}"' for r in f.results),
        patterns_in=", ".join(_pattern(f"s{i}", a, False) for i, a in enumerate(f.arguments)),
        patterns_out=", ".join(_pattern(f"s{i}", r, not r.port) for i, r in enumerate(f.results)),
        all_in=", ".join(f"s{i}" for i in range(len(f.arguments))),
        all_out=", ".join(f"s{i}" for i in range(len(f.results))),
        ports=total, bytes=total + 64 + 8,
        inputs=", ".join(f"room + {offsets['in', p.name]}" for p in f.rows.inputs),
        outputs=", ".join(f"room + {offsets['out', p.name]}" for p in f.rows.outputs),
        before="\n".join(before), after="\n".join(after))


def make(s: Subject) -> Files:
    """The C of the model, NAME_casadi.c, the weights as C unless the model's C has them, README."""
    known = functions(s)
    texts = {f: t for f, t in sources(s).items() if f in (f"{s.name}.c", f"{s.name}.h")}
    data, weights = "0", ""
    if s.weights is not None:
        part = Part(s.name, 0, 0, s.manifest.weights_bytes)
        with s.weights.open("rb") as file:
            file.seek(s.manifest.weights_offset)
            texts[f"{s.name}_weights.c"] = array(part, file.read(s.manifest.weights_bytes))
        data, weights = part.symbol, f"extern const uint32_t {part.symbol}[];"
    types = sorted({"float" if elements(p) == "f32" else "double"
                    for f in known for p in (*f.rows.inputs, *f.rows.outputs)})
    head = _HEAD.format(name=s.name, upper=s.name.upper(), weights=weights,
                        moves="\n".join(f"MOVES({t})" for t in types))
    texts[f"{s.name}_casadi.c"] = head + "".join(_text(s, f, data) for f in known)
    listed = "".join(f"* `{f.name}`: entry point `{f.rows.entry}`\n" for f in known)
    texts["README.md"] = _README.format(
        name=s.name, version=s.version, upper=s.name.upper(), types=" and ".join(types),
        flags="".join(f"{f} " for f in s.machine), files=" ".join(sorted(
            f for f in texts if f.endswith(".c"))),
        functions=listed if len(known) > 1 else _MORE.format(name=s.name))
    return {f: t.encode() for f, t in texts.items()}


register(PackageForm(
    "casadi", "an external function of CasADi, in C, with the derivatives of the build", make,
    several=True))
