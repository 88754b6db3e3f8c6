"""`cargo`: a crate with a safe function over the C of the build, which its build.rs compiles.

It needs no other crate, so it builds offline; the weights are in the program.
"""

from __future__ import annotations

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
from graphtool.package.words import identifiers, listed, plain

_TOML = """\
[package]
name = "{name}"
version = "{version}"
edition = "2021"
build = "build.rs"
links = "{name}"
description = "The compiled model {name}"

[lib]
path = "src/lib.rs"
"""
_BUILD = """\
//! Compiles the C of the model by $CC, or `cc`.
use std::{{env, path::Path, process::Command}};

fn run(command: &mut Command) -> bool {{
    command.status().map(|s| s.success()).unwrap_or(false)
}}

fn main() {{
    let out = env::var("OUT_DIR").unwrap();
    let cc = env::var("CC").unwrap_or_else(|_| "cc".into());
    let machine: &[&str] = if env::var("CARGO_CFG_TARGET_ARCH").unwrap() == "{arch}" {{
        &[{flags}]
    }} else {{
        &[]
    }};
    let mut objects = Vec::new();
    for name in ["{name}", "{name}_shapes"] {{
        let object = Path::new(&out).join(format!("{{name}}.o"));
        let compile = |more: &[&str]| {{
            run(Command::new(&cc)
                .args(["-O3", "-fPIC", "-std=gnu11", "-w", "-c", "-o"])
                .arg(&object)
                .args(machine)
                .args(more)
                .arg(format!("c/{{name}}.c")))
        }};
        assert!(compile(&["-fopenmp"]) || compile(&[]), "{{cc}} cannot compile c/{{name}}.c");
        objects.push(object);
        println!("cargo:rerun-if-changed=c/{{name}}.c");
    }}
    let ar = env::var("AR").unwrap_or_else(|_| "ar".into());
    let library = Path::new(&out).join("lib{name}_model.a");
    assert!(run(Command::new(&ar).arg("crs").arg(&library).args(&objects)), "{{ar}} failed");
    println!("cargo:rustc-link-search=native={{out}}");
    println!("cargo:rustc-link-lib=static={name}_model");
    if env::var("CARGO_CFG_TARGET_FAMILY").as_deref() == Ok("unix") {{
        println!("cargo:rustc-link-lib=m");
        println!("cargo:rustc-link-lib=pthread");
    }}
}}
"""
_LIB = """\
//! {name}: a compiled model. `Model::{first}` computes it.
use std::{{alloc, ffi::CStr, fmt, os::raw::{{c_char, c_int, c_void}}, ptr}};

extern "C" {{
{functions}}}
type StatusText = unsafe extern "C" fn(c_int) -> *const c_char;
{types}
/// A dense array with its shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<T> {{
    pub data: Vec<T>,
    pub shape: Vec<usize>,
}}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {{
    /// An input has another number of elements than its shape.
    Length {{ input: &'static str, expected: usize, got: usize }},
    /// A status of the library, in its words.
    Status(i32, String),
}}

impl fmt::Display for Error {{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {{
        match self {{
            Error::Length {{ input, expected, got }} => {{
                write!(f, "{{input}} has {{got}} elements, {{expected}} expected")
            }}
            Error::Status(_, text) => f.write_str(text),
        }}
    }}
}}

impl std::error::Error for Error {{}}

fn failed(status: c_int, text: StatusText) -> Error {{
    let text = unsafe {{ CStr::from_ptr(text(status)) }};
    Error::Status(status, text.to_string_lossy().into_owned())
}}

{weights}
/// The memory that runs work in. Each thread has a model of its own; they share the weights.
pub struct Model {{
    arena: *mut u8,
    bytes: usize,
}}

unsafe impl Send for Model {{}}

impl Default for Model {{
    fn default() -> Self {{
        Self::new()
    }}
}}

impl Drop for Model {{
    fn drop(&mut self) {{
        if self.bytes > 0 {{
            unsafe {{ alloc::dealloc(self.arena, layout(self.bytes)) }}
        }}
    }}
}}

fn layout(bytes: usize) -> alloc::Layout {{
    alloc::Layout::from_size_align(bytes, 64).unwrap()
}}

impl Model {{
    pub fn new() -> Self {{
        Model {{ arena: ptr::null_mut(), bytes: 0 }}
    }}

    fn room(&mut self, bytes: usize, text: StatusText) -> Result<(), Error> {{
        if bytes == 0 {{
            return Err(failed(-1, text));
        }}
        if bytes > self.bytes {{
            *self = Model::new();
            self.arena = unsafe {{ alloc::alloc(layout(bytes)) }};
            assert!(!self.arena.is_null());
            self.bytes = bytes;
        }}
        Ok(())
    }}
{methods}}}
"""
_FUNCTIONS = """\
    fn {symbol}_run(weights: *const c_void, arena: *mut c_void, dims: *mut i64,
        inputs: *const *const c_void, outputs: *const *mut c_void, threads: c_int) -> c_int;
    fn {symbol}_arena_bytes(dims: *const i64) -> usize;
    fn {symbol}_status_text(status: c_int) -> *const c_char;
    fn {symbol}_shape(port: c_int, dims: *const i64, shape: *mut i64) -> usize;
"""
_STRUCTS = """
/// The open sizes of `{word}`.
#[derive(Clone, Copy, Debug, Default)]
pub struct {prefix}Dims {{
{dims}}}

/// The inputs of `{word}`: dense arrays. One of a fixed shape is an array of that many elements.
#[derive(Clone, Copy, Debug)]
pub struct {prefix}Inputs{life} {{
{inputs}}}

/// The results of `{word}`.
#[derive(Clone, Debug, PartialEq)]
pub struct {prefix}Outputs {{
{outputs}}}
"""
_METHOD = """
    /// Runs `{word}` on at most `threads` threads; 0: as many as there are processors.
    #[allow(unused_variables, unused_mut)]
    pub fn {word}(
        &mut self, dims: {prefix}Dims, inputs: {prefix}Inputs, threads: i32,
    ) -> Result<{prefix}Outputs, Error> {{
        let mut dims: [i64; {count}] = [{values}];
        self.room(unsafe {{ {symbol}_arena_bytes(dims.as_ptr()) }}, {symbol}_status_text)?;
        let mut shape = [0i64; {rank}];
{body}    }}
"""
_TAKEN = ("new", "room", "drop", "default")  # functions of a model beside its own


def rust_type(port: PortRow) -> str:
    """The type of an element; a complex number is two floats."""
    short = elements(port)
    return {"bool": "bool", "c64": "[f32; 2]", "c128": "[f64; 2]"}.get(short, short)


def library(s: Subject) -> str:
    """The text of src/lib.rs."""
    known = functions(s, _TAKEN)
    weights = "" if s.weights is None else (
        "#[repr(C, align(64))]\nstruct Aligned<T: ?Sized>(T);\nstatic WEIGHTS: &Aligned<[u8]> = "
        f'&Aligned(*include_bytes!("../c/{s.weights.name}"));\n')
    pointer = "ptr::null()" if s.weights is None else (
        f"unsafe {{ WEIGHTS.0.as_ptr().add({s.manifest.weights_offset}) }} as *const c_void")
    return _LIB.format(
        name=s.name, first=known[0].word, weights=weights,
        functions="".join(_FUNCTIONS.format(symbol=f.symbol) for f in known),
        types="".join(map(_structs, known)),
        methods="".join(_method(f, pointer) for f in known))


def _structs(f: Function) -> str:
    """The types of a function's sizes, inputs and outputs."""
    m = f.row
    dims = identifiers(d.name for d in m.dims)
    inputs = identifiers(p.name for p in m.inputs)
    outputs = identifiers(p.name for p in m.outputs)
    return _STRUCTS.format(
        word=f.word, prefix=f.prefix, life="<'a>" if inputs else "",
        dims="".join(f"    /// {plain(r.name)}\n    pub {d}: i64,\n"
                     for r, d in zip(m.dims, dims, strict=True)),
        inputs="".join(f"    /// {line}\n    pub {w}: &'a {_given(p)},\n" for p, w, line in zip(
            m.inputs, inputs, listed(m.inputs, inputs), strict=True)),
        outputs="".join(f"    /// {line}\n    pub {w}: Tensor<{rust_type(p)}>,\n"
                        for p, w, line in zip(m.outputs, outputs, listed(m.outputs, outputs),
                                              strict=True)))


def _method(f: Function, weights: str) -> str:
    """The method that runs a function with these weights."""
    m = f.row
    values = [f"dims.{d}" for d in identifiers(d.name for d in m.dims)] + ["0"] * len(m.sizes)
    return _METHOD.format(
        word=f.word, prefix=f.prefix, symbol=f.symbol,
        count=max(1, f.values), values=", ".join(values or ["0"]),
        rank=max([1, *(len(p.shape) for p in (*m.inputs, *m.outputs))]),
        body="".join(f"        {line}\n" for line in _body(f, weights)))


def _body(f: Function, weights: str) -> list[str]:
    """The lines that check the inputs, run the function and give its results their shapes."""
    m, body = f.row, list[str]()
    inputs = identifiers(p.name for p in m.inputs)
    outputs = identifiers(p.name for p in m.outputs)
    for i, (p, w) in enumerate(zip(m.inputs, inputs, strict=True)):
        body += [f"let wanted = unsafe {{ {f.symbol}_shape({i}, dims.as_ptr(), ptr::null_mut()) }}"
                 f" / std::mem::size_of::<{rust_type(p)}>();",
                 f"if inputs.{w}.len() != wanted {{",
                 f'    return Err(Error::Length {{ input: "{w}", expected: wanted, '
                 f"got: inputs.{w}.len() }});", "}"]
    donated = dict(m.donations)
    for i, p in enumerate(m.outputs):
        kind, at = rust_type(p), len(m.inputs) + i
        body += [f"let bytes = unsafe {{ {f.symbol}_shape({at}, dims.as_ptr(), "
                 "ptr::null_mut()) };",
                 f"let mut y{i}: Vec<{kind}> = " + (
                     f"inputs.{inputs[donated[i]]}.to_vec();" if i in donated else
                     f"vec![{_zero(kind)}; bytes / std::mem::size_of::<{kind}>()];")]
    ins = ", ".join(f"inputs.{w}.as_ptr() as *const c_void" for w in inputs) or "ptr::null()"
    outs = ", ".join(f"y{i}.as_mut_ptr() as *mut c_void" for i in range(len(outputs)))
    body += [f"let ins = [{ins}];", f"let outs = [{outs or 'ptr::null_mut()'}];",
             f"let weights = {weights};",
             f"let status = unsafe {{ {f.symbol}_run(weights, self.arena as *mut c_void, "
             "dims.as_mut_ptr(), ins.as_ptr(), outs.as_ptr(), threads) };",
             "if status != 0 {", f"    return Err(failed(status, {f.symbol}_status_text));", "}"]
    for i, p in enumerate(m.outputs):
        at, rank = len(m.inputs) + i, len(p.shape)
        body += [f"unsafe {{ {f.symbol}_shape({at}, dims.as_ptr(), shape.as_mut_ptr()) }};",
                 f"let shape{i}: Vec<usize> = "
                 f"shape[..{rank}].iter().map(|&n| n as usize).collect();",
                 f"y{i}.truncate(shape{i}.iter().product());"]
    tensors = ", ".join(f"{w}: Tensor {{ data: y{i}, shape: shape{i} }}"
                        for i, w in enumerate(outputs))
    return [*body, f"Ok({f.prefix}Outputs {{ {tensors} }})"]


def _zero(kind: str) -> str:
    """A value of the type."""
    if kind.startswith("["):
        return "[0.0; 2]"
    return "false" if kind == "bool" else f"0 as {kind}"


def _given(port: PortRow) -> str:
    """The type of an input behind its reference: its fixed size, or a slice."""
    count = 1
    for d in port.shape:
        if not isinstance(d, int):
            return f"[{rust_type(port)}]"
        count *= d
    return f"[{rust_type(port)}; {count}]"


def make(s: Subject) -> Files:
    """The files of the crate."""
    texts = sources(s)
    arch = {"armv7l": "arm"}.get(s.processor, s.processor)  # as Rust calls it
    flags = ", ".join(f'"{f}"' for f in s.machine)
    files = {"Cargo.toml": _TOML.format(name=s.name, version=s.three),
             "build.rs": _BUILD.format(name=s.name, arch=arch, flags=flags),
             "src/lib.rs": library(s), f"c/{s.name}.c": texts[f"{s.name}.c"],
             f"c/{s.name}.h": texts[f"{s.name}.h"],
             f"c/{s.name}_shapes.c": shapes(s.name, texts)}
    data = {} if s.weights is None else {f"c/{s.weights.name}": s.weights.read_bytes()}
    return {**{f: t.encode() for f, t in files.items()}, **data}


register(PackageForm(
    "cargo", "a crate for Rust: safe, without other crates, compiled by its build.rs", make,
    several=True))
