"""`go`: a module of Go whose cgo package compiles the C of the build; the weights are in the
program."""

from __future__ import annotations

from collections.abc import Sequence

from graphtool.emit.shapes import shapes
from graphtool.io.manifest_rows import PortRow
from graphtool.package.record import (
    Files,
    Function,
    PackageForm,
    Subject,
    elements,
    functions,
    register,
)
from graphtool.package.sources import sources
from graphtool.package.words import camel, identifiers, listed, plain

_TAKEN = ("close", "room", "new", "model")  # of the package, beside its functions
_GOARCH = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "riscv64": "riscv64"}
_MODULE = """\
// Package {name} is a compiled model. {first} computes it.
package {name}

/*
#cgo CFLAGS: -O3 -std=gnu11 -w -fopenmp
{machine}#cgo LDFLAGS: -lm -lpthread
#include <stdlib.h>
#include <string.h>
#include "{name}.h"
static void *aligned(size_t bytes) {{ return aligned_alloc(64, (bytes + 64) / 64 * 64); }}
{calls}*/
import "C"

import (
\t_ "embed"
\t"errors"
\t"fmt"
\t"sync"
\t"unsafe"
)

{embedded}
// Model has the memory that runs work in. Each goroutine needs one of its own; they share the
// weights. Close gives the memory back.
type Model struct {{
\tarena unsafe.Pointer
\tbytes C.size_t
}}

// New returns a model without memory.
func New() *Model {{
\treturn &Model{{}}
}}

// Close gives the memory back; the model may be used again.
func (m *Model) Close() {{
\tC.free(m.arena)
\tm.arena, m.bytes = nil, 0
}}

func (m *Model) room(bytes C.size_t) error {{
\tif bytes > m.bytes {{
\t\tm.Close()
\t\tif m.arena = C.aligned(bytes); m.arena == nil {{
\t\t\treturn errors.New("no memory")
\t\t}}
\t\tm.bytes = bytes
\t}}
\treturn nil
}}

func sizes(found []C.int64_t, rank int) ([]int, int) {{
\tout, count := make([]int, rank), 1
\tfor i := range out {{
\t\tout[i] = int(found[i])
\t\tcount *= out[i]
\t}}
\treturn out, count
}}

func length(name string, got, want int) error {{
\tif got != want {{
\t\treturn fmt.Errorf("%s has %d elements, %d expected", name, got, want)
\t}}
\treturn nil
}}
{methods}"""
_CALL = """\
size_t {symbol}_shape(int port, const int64_t *dims, int64_t *shape);
static int call_{symbol}(const void *weights, void *arena, int64_t *dims, int threads{parameters})
{{
    const void *inputs[] = {{{ins}}};
    void *outputs[] = {{{outs}}};
    return {symbol}_run(weights, arena, dims, inputs, outputs, threads);
}}
"""
_METHOD = """
// {prefix}Dims are the open sizes of {method}.
type {prefix}Dims struct {{
{dims}}}

// {prefix}Inputs are dense arrays.
type {prefix}Inputs struct {{
{inputs}}}

// {prefix}Outputs are dense arrays with their shapes.
type {prefix}Outputs struct {{
{outputs}}}

// {method} computes the outputs on at most so many threads; 0: as many as there are processors.
func (m *Model) {method}(
\tgiven {prefix}Dims, in {prefix}Inputs, threads int,
) (out {prefix}Outputs, err error) {{
\tdims := []C.int64_t{{{values}}}
\tbytes := C.{symbol}_arena_bytes(&dims[0])
\tif bytes == 0 {{
\t\treturn out, errors.New(C.GoString(C.{symbol}_status_text(-1)))
\t}}
\tif err = m.room(bytes); err != nil {{
\t\treturn out, err
\t}}
\tsize := func(port int) int {{
\t\treturn int(C.{symbol}_shape(C.int(port), &dims[0], nil))
\t}}
\tshape := func(port, rank int) ([]int, int) {{
\t\tfound := make([]C.int64_t, rank+1)
\t\tC.{symbol}_shape(C.int(port), &dims[0], &found[0])
\t\treturn sizes(found, rank)
\t}}
\t_, _ = size, shape
{body}
\treturn out, nil
}}
"""
_EMBEDDED = """\
//go:embed {file}
var file []byte

var (
\tonce    sync.Once
\tweights unsafe.Pointer
)

// The weights in memory that is aligned as the library wants it.
func loaded() unsafe.Pointer {{
\tonce.Do(func() {{
\t\tdata := file[{offset}:]
\t\tif weights = C.aligned(C.size_t(len(data))); weights != nil {{
\t\t\tC.memcpy(weights, unsafe.Pointer(&data[0]), C.size_t(len(data)))
\t\t}}
\t}})
\treturn weights
}}
"""
_BUILT_IN = """\
var once sync.Once // the library has the weights

func loaded() unsafe.Pointer { return nil }
"""


def go_type(port: PortRow) -> str:
    """The type of an element."""
    short = elements(port)
    known = {"bool": "bool", "f32": "float32", "f64": "float64", "c64": "complex64",
             "c128": "complex128"}
    return known.get(short) or f"{'uint' if short[0] == 'u' else 'int'}{short[1:]}"


def module(s: Subject) -> str:
    """The text of NAME.go."""
    m, known = s.manifest, functions(s, _TAKEN)
    embedded = _BUILT_IN if s.weights is None else _EMBEDDED.format(
        file=s.weights.name, offset=m.weights_offset)
    arch = _GOARCH.get(s.processor)
    allowed = [flag for flag in s.machine if not flag.startswith("-mprefer-")]  # cgo refuses these
    return _MODULE.format(
        name=s.name, first=camel(known[0].word), embedded=embedded,
        machine=f"#cgo {arch} CFLAGS: {' '.join(allowed)}\n" if arch and allowed else "",
        calls="".join(map(_call, known)), methods="".join(map(_method, known)))


def _call(f: Function) -> str:
    """C that calls a function with its ports one by one: Go may not store their addresses."""
    inputs, ports = len(f.row.inputs), range(len(f.row.inputs) + len(f.row.outputs))
    return _CALL.format(
        symbol=f.symbol, parameters="".join(f", void *p{i}" for i in ports),
        ins=", ".join(f"p{i}" for i in ports[:inputs]) or "NULL",
        outs=", ".join(f"p{i}" for i in ports[inputs:]) or "NULL")


def _method(f: Function) -> str:
    """The types of a function's ports, and the method that runs it."""
    m = f.row
    dims = identifiers(camel(w) for w in identifiers(d.name for d in m.dims))
    inputs = identifiers(camel(w) for w in identifiers(p.name for p in m.inputs))
    words = identifiers(camel(w) for w in identifiers(p.name for p in m.outputs))
    outputs = identifiers(words, [f"{w}Shape" for w in words])
    values = [f"C.int64_t(given.{d})" for d in dims] + ["0"] * len(m.sizes)
    return _METHOD.format(
        symbol=f.symbol, prefix=f.prefix, method=camel(f.word), values=", ".join(values or ["0"]),
        dims="".join(f"\t{d} int64 // {plain(r.name)}\n"
                     for r, d in zip(m.dims, dims, strict=True)),
        inputs="".join(f"\t{w} []{go_type(p)} // {line}\n" for p, w, line in zip(
            m.inputs, inputs, listed(m.inputs, inputs), strict=True)),
        outputs="".join(f"\t{w} []{go_type(p)} // {line}\n\t{w}Shape []int\n" for p, w, line in zip(
            m.outputs, outputs, listed(m.outputs, outputs), strict=True)),
        body="\n".join(f"\t{line}" for line in _body(f, inputs, outputs)))


def _body(f: Function, inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """The lines that check the inputs, run the function and give its results their shapes."""
    m, body = f.row, list[str]()
    donated = dict(m.donations)
    for i, (p, w) in enumerate(zip(m.inputs, inputs, strict=True)):
        body += [f'if err = length("{w}", len(in.{w}), '
                 f"size({i})/int(unsafe.Sizeof(*new({go_type(p)})))); err != nil {{",
                 "\treturn out, err", "}"]
    for i, p in enumerate(m.outputs):
        kind = go_type(p)
        body.append(f"y{i} := make([]{kind}, size({len(m.inputs) + i})/"
                    f"int(unsafe.Sizeof(*new({kind}))))")
        if i in donated:
            body.append(f"copy(y{i}, in.{inputs[donated[i]]})")
    passed = [*(f"in.{w}" for w in inputs), *(f"y{i}" for i in range(len(outputs)))]
    for i, x in enumerate(passed):
        body += [f"var p{i} unsafe.Pointer", f"if len({x}) > 0 {{",
                 f"\tp{i} = unsafe.Pointer(&{x}[0])", "}"]
    given = "".join(f", p{i}" for i in range(len(passed)))
    body += [f"status := C.call_{f.symbol}(loaded(), m.arena, &dims[0], C.int(threads){given})",
             "if status != 0 {",
             f"\treturn out, errors.New(C.GoString(C.{f.symbol}_status_text(status)))", "}"]
    for i, (p, w) in enumerate(zip(m.outputs, outputs, strict=True)):
        body += [f"shape{i}, count{i} := shape({len(m.inputs) + i}, {len(p.shape)})",
                 f"out.{w}, out.{w}Shape = y{i}[:count{i}], shape{i}"]
    return body


def make(s: Subject) -> Files:
    """The files of the module model/NAME: NAME alone could be a package of Go's own."""
    texts = sources(s)
    files = {"go.mod": f"module model/{s.name}\n\ngo 1.16\n", f"{s.name}.go": module(s),
             f"{s.name}.c": texts[f"{s.name}.c"], f"{s.name}.h": texts[f"{s.name}.h"],
             f"{s.name}_shapes.c": shapes(s.name, texts)}
    data = {} if s.weights is None else {s.weights.name: s.weights.read_bytes()}
    return {**{f: t.encode() for f, t in files.items()}, **data}


register(PackageForm("go", "a module for Go, compiled by cgo", make, several=True))
