"""`npm`: an ES module for Node and browsers over WebAssembly, which zig compiles from the C of the
build. One thread; vectors of 128 bits where the build has them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from graphtool.errors import CompilerError, UsageError
from graphtool.io import release
from graphtool.io.manifest_rows import PortRow
from graphtool.package.archives import tar_gz
from graphtool.package.record import Archive, Files, PackageForm, Subject, elements, register
from graphtool.package.sources import shapes, sources
from graphtool.package.words import identifiers, listed, plain

TIMEOUT = 600  # seconds; the first time zig compiles its C library too
_ARRAYS = {"bool": "Uint8", "f32": "Float32", "f64": "Float64", "i64": "BigInt64",
           "u64": "BigUint64", "c64": "Float32", "c128": "Float64"}
_PARTS = {"c64": 2, "c128": 2}
_MODULE = """\
// {name}: a compiled model. `const model = await load(); model.run({{…}}, {{…}})` computes it.
const INPUTS = {inputs};
const OUTPUTS = {outputs};
const DIMS = {dims};
const NODE = typeof process !== "undefined" && !!process.versions?.node;

async function bytes(file) {{
  const url = new URL(file, import.meta.url);
  if (NODE && url.protocol === "file:") {{
    return (await import("node:fs/promises")).readFile(url);
  }}
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${{url}}: ${{answer.status}}`);
  return new Uint8Array(await answer.arrayBuffer());
}}

/** Loads the model. `files` may give the bytes of "{name}.wasm" and of the weights instead. */
export async function load(files = {{}}) {{
  const code = files["{name}.wasm"] ?? await bytes("./{name}.wasm");
  // the C library asks for a system that no run needs
  const system = new Proxy({{}}, {{ get: () => () => 52 }});
  const {{ instance }} = await WebAssembly.instantiate(code, {{ wasi_snapshot_preview1: system }});
  instance.exports._initialize?.();
  return new Model(instance.exports, {weights});
}}

class Model {{
  #c; #weights = 0; #kept = new Map();

  constructor(exports, weights) {{
    this.#c = exports;
    if (weights) {{
      const data = weights.subarray({offset});
      this.#weights = this.#allocate(data.length);
      new Uint8Array(exports.memory.buffer).set(data, this.#weights);
    }}
  }}

  #allocate(size) {{
    const at = this.#c.aligned_alloc(64, Math.ceil((size + 1) / 64) * 64);
    if (!at) throw new Error("no memory");
    return at;
  }}

  /** Memory that the next run uses again if it is large enough. */
  #room(key, size) {{
    const known = this.#kept.get(key);
    if (known && known.size >= size) return known.at;
    if (known) this.#c.free(known.at);
    const at = this.#allocate(size);
    this.#kept.set(key, {{ at, size }});
    return at;
  }}

  #text(status) {{
    const memory = new Uint8Array(this.#c.memory.buffer);
    let at = this.#c.{name}_status_text(status), text = "";
    while (memory[at]) text += String.fromCharCode(memory[at++]);
    return text;
  }}

  /** Runs the model on dense arrays. */
  run(inputs, sizes = {{}}) {{
    const c = this.#c, count = INPUTS.length + OUTPUTS.length;
    const dims = this.#room("dims", 8 * (DIMS.length + {computed} + 1));
    const view = () => new BigInt64Array(c.memory.buffer, dims, DIMS.length + {computed});
    DIMS.forEach((name, i) => {{
      if (!Number.isSafeInteger(sizes[name])) throw new TypeError(`${{name}} is no size`);
      view()[i] = BigInt(sizes[name]);
    }});
    const arena_bytes = c.{name}_arena_bytes(dims);
    if (!arena_bytes) throw new RangeError(this.#text(-1));
    const arena = this.#room("arena", arena_bytes);
    const pointers = this.#room("pointers", 4 * (count + 2)), shape = this.#room("shape", 8 * 64);
    const places = [...INPUTS, ...OUTPUTS].map(({{ name }}, port) => {{
      const size = c.{name}_shape(port, dims, 0);
      return {{ size, at: this.#room(port, size) }};
    }});
    INPUTS.forEach(({{ name, type }}, i) => {{
      const given = inputs[name];
      if (!(given instanceof type)) throw new TypeError(`${{name}} is no ${{type.name}}`);
      if (given.byteLength !== places[i].size) {{
        throw new RangeError(`${{name}} has ${{given.length}} elements, expected ` +
          places[i].size / type.BYTES_PER_ELEMENT);
      }}
      new type(c.memory.buffer, places[i].at, given.length).set(given);
    }});
    OUTPUTS.forEach(({{ from }}, i) => {{
      if (from < 0) return;
      const {{ at, size }} = places[from];
      new Uint8Array(c.memory.buffer).copyWithin(places[INPUTS.length + i].at, at, at + size);
    }});
    new Uint32Array(c.memory.buffer, pointers, count).set(places.map(({{ at }}) => at));
    const status = c.{name}_run(this.#weights, arena, dims, pointers,
      pointers + 4 * INPUTS.length, 1);
    if (status) throw new Error(this.#text(status));
    return Object.fromEntries(OUTPUTS.map(({{ name, type, rank, parts }}, i) => {{
      const port = INPUTS.length + i;
      c.{name}_shape(port, dims, shape);
      const dense = Array.from(new BigInt64Array(c.memory.buffer, shape, rank), Number);
      const length = dense.reduce((a, b) => a * b, parts);
      return [name, {{ data: new type(c.memory.buffer, places[port].at, length).slice(),
        shape: dense }}];
    }}));
  }}
}}
"""
_TYPES = """\
/** The inputs: dense arrays. */
export interface Inputs {{
{inputs}}}

/** The open sizes. */
export interface Sizes {{
{dims}}}

/** A dense array with its shape. */
export interface Tensor<T> {{
  data: T;
  shape: number[];
}}

/** The results of a run. */
export interface Outputs {{
{outputs}}}

/** A loaded model; it has the memory that its runs work in. */
export interface Model {{
  run(inputs: Inputs{sizes}): Outputs;
}}

/** Loads the model. `files` may give the bytes of "{name}.wasm" and of the weights instead. */
export function load(files?: Record<string, Uint8Array>): Promise<Model>;
"""


# what `import` finds in Node itself
_MODULES = """
    assert async_hooks buffer child_process cluster console constants crypto dgram domain events
    fs http http2 https inspector module net os path perf_hooks process punycode querystring
    readline repl stream sys timers tls tty url util v8 vm wasi worker_threads zlib
    """
_CORE = frozenset(_MODULES.split())


def array_type(port: PortRow) -> str:
    """The typed array of JavaScript that holds the elements."""
    short = elements(port)
    kind = _ARRAYS.get(short) or f"{'Uint' if short[0] == 'u' else 'Int'}{short[1:]}"
    return f"{kind}Array"


def wasm(s: Subject, texts: dict[str, str]) -> bytes:
    """The compiled module. Raises CompilerError GT2120 where there is no zig, GT2121, GT2123."""
    if not find_spec("ziglang"):
        raise CompilerError("GT2120", "WebAssembly is compiled by zig, and there is none",
                            hint=release.install("zig"))
    wanted = [f"{s.name}_{f}" for f in ("run", "arena_bytes", "status_text", "shape")]
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi",
               "-mexec-model=reactor", "-O3", "-msimd128", "-std=gnu11", "-w", "-g0", "-s",
               f"{s.name}.c", f"{s.name}_shapes.c", "-o", "out.wasm",
               *(f"-Wl,--export={f}" for f in (*wanted, "aligned_alloc", "free"))]
    with tempfile.TemporaryDirectory(prefix="graphtool-wasm-") as folder:
        for file, text in texts.items():
            (Path(folder) / file).write_text(text)
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                                  errors="replace", timeout=TIMEOUT)
        except subprocess.TimeoutExpired as error:
            raise CompilerError("GT2123", f"zig took more than {TIMEOUT} s") from error
        if done.returncode:
            raise CompilerError("GT2121", "zig failed",
                                where="\n".join(done.stderr.strip().splitlines()[-8:]))
        return (Path(folder) / "out.wasm").read_bytes()


def module(s: Subject) -> tuple[str, str]:
    """The texts of index.js and index.d.ts."""
    m = s.manifest
    dims = identifiers(d.name for d in m.dims)
    inputs = identifiers(p.name for p in m.inputs)
    outputs = identifiers(p.name for p in m.outputs)
    donated = dict(m.donations)

    def table(ports: list[PortRow], words: list[str], sources: dict[int, int]) -> str:
        rows = "".join(f'  {{ name: "{w}", type: {array_type(p)}, rank: {len(p.shape)}, '
                       f"parts: {_PARTS.get(p.type, 1)}, from: {sources.get(i, -1)} }},\n"
                       for i, (p, w) in enumerate(zip(ports, words, strict=True)))
        return f"[\n{rows}]"
    weights = "undefined"
    if s.weights is not None:
        file = s.weights.name
        weights = f'files["{file}"] ?? await bytes("./{file}")'
    code = _MODULE.format(
        name=s.name, inputs=table(m.inputs, inputs, {}), outputs=table(m.outputs, outputs, donated),
        dims=json.dumps(dims), weights=weights, offset=m.weights_offset, computed=len(m.sizes))
    types = _TYPES.format(
        name=s.name, sizes=", sizes: Sizes" if dims else ", sizes?: Sizes",
        inputs=_fields(m.inputs, inputs, "{}"), outputs=_fields(m.outputs, outputs, "Tensor<{}>"),
        dims="".join(f"  /** {plain(r.name)} */\n  {d}: number;\n"
                     for r, d in zip(m.dims, dims, strict=True)))
    return code, types


def _fields(ports: list[PortRow], words: list[str], kind: str) -> str:
    return "".join(f"  /** {line} */\n  {w}: {kind.format(array_type(p))};\n" for p, w, line in zip(
        ports, words, listed(ports, words), strict=True))


def make(s: Subject) -> Files:
    """The files of the package. Raises UsageError GT2242 for the name of a module of Node."""
    if s.name.lower() in _CORE:
        raise UsageError("GT2242", f"Node has a module {s.name.lower()} of its own",
                         hint="build with another --name")
    texts = sources(s)
    header = texts[f"{s.name}.h"]
    compiled = wasm(s, {f"{s.name}.c": texts[f"{s.name}.c"], f"{s.name}.h": header,
                        f"{s.name}_shapes.c": shapes(s, header)})
    code, types = module(s)
    about = {"name": s.name.lower(), "version": ".".join((*s.version.split("."), "0")[:3]),
             "description": f"The compiled model {s.name}", "type": "module",
             "exports": {".": {"types": "./index.d.ts", "default": "./index.js"}},
             "types": "./index.d.ts", "files": ["*"], "sideEffects": False}
    data = {} if s.weights is None else {s.weights.name: s.weights.read_bytes()}
    return {"package.json": (json.dumps(about, indent=2) + "\n").encode(),
            "index.js": code.encode(), "index.d.ts": types.encode(), f"{s.name}.wasm": compiled,
            **data}


def _tgz(s: Subject, files: Files) -> Archive:
    return (f"{s.name.lower()}-{s.version}.tgz",
            tar_gz({f"package/{f}": d for f, d in files.items()}))


register(PackageForm(
    "npm", "a .tgz for npm: WebAssembly for Node and browsers, compiled by zig", make,
    archive=_tgz))
