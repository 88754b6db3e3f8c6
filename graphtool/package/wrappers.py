"""NAME.hpp and NAME.f90: a model in C++17, with RAII and exceptions, and the interface of its C
functions for Fortran by iso_c_binding. Both lie beside NAME.h and need nothing else."""

from __future__ import annotations

import re
from collections.abc import Container

from graphtool.io.manifest import entry_names
from graphtool.io.manifest_rows import PortRow
from graphtool.package.record import Function, Subject, elements, functions, is_plain
from graphtool.package.words import RESERVED, identifiers, listed, plain

_LONGEST = 50  # letters: names of Fortran have 63 at most, endings included
_CPP = """\
// {name}: a compiled model in C++17. `{name}::model(path).{first}(dims, inputs)` computes it.
#ifndef {upper}_HPP
#define {upper}_HPP
#include "{name}.h"
#include <complex>
#include <cstdint>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {name} {{

/// Elements that somebody else owns: of an array, a vector, or anything with data and size.
template <class T> class span {{
public:
    span() = default;
    span(const T *data, std::size_t size) : data_(data), size_(size) {{}}
    template <class C> span(const C &c) : data_(std::data(c)), size_(std::size(c)) {{}}
    const T *data() const {{ return data_; }}
    std::size_t size() const {{ return size_; }}

private:
    const T *data_ = nullptr;
    std::size_t size_ = 0;
}};

/// A dense array with its shape.
template <class T> struct tensor {{
    std::vector<T> data;
    std::vector<std::int64_t> shape;
}};

/// Why a run failed; `status` is that of the C functions.
struct error : std::runtime_error {{
    error(int status, const char *(*text)(int)) : std::runtime_error(text(status)), status(status)
    {{
    }}
    int status;
}};
{types}
/// The weights, and the memory that runs work in. Each thread needs a model of its own.
class model {{
public:
    /// Loads the weights from a file; a library that has them needs none.
    explicit model(const char *path = nullptr)
    {{
        if (const int status = {name}_load(&weights_, path))
            throw error(status, {name}_status_text);
    }}
    model(model &&o) noexcept
        : weights_(std::exchange(o.weights_, {{}})), arena_(std::exchange(o.arena_, nullptr)),
          bytes_(std::exchange(o.bytes_, 0)) {{}}
    model &operator=(model &&o) noexcept
    {{
        std::swap(weights_, o.weights_), std::swap(arena_, o.arena_), std::swap(bytes_, o.bytes_);
        return *this;
    }}
    ~model()
    {{
        release();
        {name}_free(&weights_);
    }}
{methods}
private:
    static void fits(const char *name, std::size_t got, std::size_t wanted)
    {{
        if (got != wanted) throw std::invalid_argument(std::string(name) + ": wrong size");
    }}
    void release()
    {{
        if (arena_) ::operator delete(arena_, std::align_val_t(64));
        arena_ = nullptr, bytes_ = 0;
    }}
    void room(std::size_t bytes)
    {{
        if (bytes <= bytes_) return;
        release();
        arena_ = ::operator new(bytes, std::align_val_t(64));
        bytes_ = bytes;
    }}
    {name}_weights weights_ = {{}};
    void *arena_ = nullptr;
    std::size_t bytes_ = 0;
}};

}} // namespace {name}
#endif
"""
_STRUCTS = """
/// The open sizes of {word}.
struct {prefix}dims {{
{dims}}};

/// The inputs of {word}.
struct {prefix}inputs {{
{inputs}}};

/// The results of {word}.
struct {prefix}outputs {{
{outputs}}};
"""
_METHOD = """
    /// Computes the outputs on at most so many threads; 0: as many as there are processors.
    {prefix}outputs {word}([[maybe_unused]] const {name}::{prefix}dims &sizes,
                [[maybe_unused]] const {prefix}inputs &in, int threads = 0)
    {{
        std::int64_t dims[] = {{{values}}};
        const std::size_t bytes = {symbol}_arena_bytes(dims);
        if (!bytes) throw error({upper}_BAD_DIM, {symbol}_status_text);
        room(bytes);
        {prefix}outputs out;
{body}
        return out;
    }}
"""
_TAKEN = ("model", "error", "fits", "release", "room", "tensor")  # names of the wrapper
_FORTRAN = """\
! {name}: a compiled model. The functions are those of {name}.h; arrays go in by c_loc.
module {name}
  use, intrinsic :: iso_c_binding
  implicit none
  type, bind(c) :: {name}_weights
    type(c_ptr) :: data = c_null_ptr
    type(c_ptr) :: memory = c_null_ptr
    integer(c_size_t) :: bytes = 0
  end type
  interface
    ! Loads the weights from a file, whose name ends in c_null_char; a status, 0 if it succeeded.
    function {name}_load(weights, path) result(status) bind(c)
      import
      type({name}_weights), intent(out) :: weights
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: status
    end function
    subroutine {name}_free(weights) bind(c)
      import
      type({name}_weights), intent(inout) :: weights
    end subroutine
    ! The bytes of the arena for these sizes.
    function {name}_arena_bytes(dims) result(bytes) bind(c)
      import
      integer(c_int64_t), intent(in) :: dims(*)
      integer(c_size_t) :: bytes
    end function
    function {name}_run(weights, arena, dims, inputs, outputs, threads) result(status) bind(c)
      import
      type(c_ptr), value :: weights, arena
      integer(c_int64_t), intent(inout) :: dims(*)
      type(c_ptr), intent(in) :: inputs(*), outputs(*)
      integer(c_int), value :: threads
      integer(c_int) :: status
    end function
    ! Memory for the arena: {name}_aligned(64_c_size_t, bytes), of the C library.
    function {name}_aligned(alignment, bytes) result(memory) bind(c, name="aligned_alloc")
      import
      integer(c_size_t), value :: alignment, bytes
      type(c_ptr) :: memory
    end function
  end interface
end module
"""


def wrappers(s: Subject) -> dict[str, str]:
    """The texts by file; of a training graph, or of a build with ports that are no plain arrays,
    there are none. Entry points have none for Fortran."""
    m = s.manifest
    if m.training or m.device or s.name in RESERVED or not all(
            is_plain(p) for f in functions(s) for p in (*f.row.inputs, *f.row.outputs)):
        return {}
    files = {f"{s.name}.hpp": _cpp(s)}
    single = not entry_names(m) and _fits(s.name)
    return files | ({f"{s.name}.f90": _FORTRAN.format(name=s.name)} if single else {})


def _fits(name: str) -> bool:
    """Whether Fortran takes the name."""
    return name[0].isalpha() and len(name) <= _LONGEST


def _element(port: PortRow) -> str:
    short = elements(port)
    known = {"bool": "std::uint8_t", "f32": "float", "f64": "double",
             "c64": "std::complex<float>", "c128": "std::complex<double>"}
    return known.get(short) or f"std::{'uint' if short[0] == 'u' else 'int'}{short[1:]}_t"


def _cpp(s: Subject) -> str:
    """The text of NAME.hpp."""
    known = functions(s, _TAKEN)
    opened = {macro for header in s.headers
              for macro in re.findall(r"#define (\w+)\(dims\)", header.read_text("utf-8"))}
    return _CPP.format(
        name=s.name, upper=s.name.upper(), first=known[0].word,
        types="".join(map(_structs, known)),
        methods="".join(_method(s.name, f, opened) for f in known))


def _prefix(f: Function) -> str:
    """What begins the names of a function's types: two underscores in a row are C++'s own."""
    return f"{f.word.rstrip('_')}_" if f.prefix else ""


def _structs(f: Function) -> str:
    """The types of a function's sizes, inputs and outputs."""
    m, dims = f.row, identifiers(d.name for d in f.row.dims)
    return _STRUCTS.format(
        word=f.word, prefix=_prefix(f),
        dims="".join(f"    std::int64_t {d} = 0; ///< {plain(r.name)}\n"
                     for r, d in zip(m.dims, dims, strict=True)),
        inputs=_fields(m.inputs, identifiers(p.name for p in m.inputs), "span"),
        outputs=_fields(m.outputs, identifiers(p.name for p in m.outputs), "tensor"))


def _method(name: str, f: Function, opened: Container[str]) -> str:
    """The method that runs a function; the macros `opened` take the dims."""
    m = f.row
    values = [f"sizes.{d}" for d in identifiers(d.name for d in m.dims)] + ["0"] * len(m.sizes)
    return _METHOD.format(
        name=name, word=f.word, prefix=_prefix(f), symbol=f.symbol, upper=f.symbol.upper(),
        values=", ".join(values or ["0"]),
        body="\n".join(f"        {line}" for line in _body(f, opened)))


def _body(f: Function, opened: Container[str]) -> list[str]:
    """The lines that check the inputs, run the function and give its results their shapes."""
    def macro(stem: str) -> str:
        return f"{upper}_{stem}(dims)" if f"{upper}_{stem}" in opened else f"{upper}_{stem}"
    m, upper = f.row, f.symbol.upper()
    inputs = identifiers(p.name for p in m.inputs)
    outputs = identifiers(p.name for p in m.outputs)
    donated, body = dict(m.donations), list[str]()
    for i, w in enumerate(inputs):
        body.append(f'fits("{w}", in.{w}.size() * sizeof(*in.{w}.data()), '
                    f'{macro(f"INPUT{i}_BYTES")});')
    for i, (p, w) in enumerate(zip(m.outputs, outputs, strict=True)):
        kind = _element(p)
        body.append(f"out.{w}.data.resize({macro(f'OUTPUT{i}_BYTES')} / sizeof({kind}));")
        if i in donated:
            source = f"in.{inputs[donated[i]]}"
            body.append(f"out.{w}.data.assign({source}.data(), {source}.data() + {source}.size());")
    ins = ", ".join(f"in.{w}.data()" for w in inputs) or "nullptr"
    outs = ", ".join(f"out.{w}.data.data()" for w in outputs) or "nullptr"
    body += [f"const void *const ins[] = {{{ins}}};", f"void *const outs[] = {{{outs}}};",
             f"if (const int status = {f.symbol}_run(weights_.data, arena_, dims, ins, outs, "
             "threads))", f"    throw error(status, {f.symbol}_status_text);"]
    for i, (p, w) in enumerate(zip(m.outputs, outputs, strict=True)):
        if p.shape:
            body.append(f"out.{w}.shape = {macro(f'OUTPUT{i}_SHAPE')};")
        if p.room is not None:
            body.append(f"out.{w}.data.resize({macro(f'OUTPUT{i}_COUNT')});")
    return body


def _fields(ports: list[PortRow], words: list[str], kind: str) -> str:
    return "".join(f"    {kind}<{_element(p)}> {w}; ///< {line}\n" for p, w, line in zip(
        ports, words, listed(ports, words), strict=True))
