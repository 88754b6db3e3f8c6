"""`npm`: an ES module for Node and browsers over WebAssembly: that of a build for wasm32, else zig
compiles one from the C of the build.

`index.js` describes the functions of the build: one, several entry points over one set of weights,
or those of a training graph over one state. The files of `javascript/` are the same in all
packages: `runtime.js` calls the functions, `worker.js` does so in a worker.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files as resources
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from graphtool.emit.shapes import shapes
from graphtool.errors import CompilerError, UsageError
from graphtool.io import release
from graphtool.io.manifest_rows import Manifest, PortRow, ProgramRow
from graphtool.native.probes import run
from graphtool.package import record
from graphtool.package.archives import tar_gz
from graphtool.package.record import Archive, Files, PackageForm, Subject, elements, register
from graphtool.package.sources import sources
from graphtool.package.wasm import beside, shared_pages
from graphtool.package.words import identifiers, listed, plain
from graphtool.target import TABLE

_ARRAYS = {"bool": "Uint8", "f32": "Float32", "f64": "Float64", "i64": "BigInt64",
           "u64": "BigUint64", "c64": "Float32", "c128": "Float64"}
_PARTS = {"c64": 2, "c128": 2}
_METHODS = ("state", "reset", "close", "constructor")  # of a model, beside its functions
_MODULE = """\
// {name}: a compiled model. `const model = await load(); model.{first}({{…}}, {{…}})` computes it.
import {{ open }} from "./runtime.js";

// a port is a row, or a number: where it starts in the state
const ABOUT = {{
  wasm: "{name}.wasm",
  weights: {weights},
  state: {state},
  start: {start},
  threads: {threads},
  relaxed: {relaxed},
  functions: {{
{functions}  }},
}};

/** Loads the model. `files` may give the bytes of "{name}.wasm" and of the weights instead. */
export const load = (files = {{}}, options = {{}}) => open(ABOUT, files, options);
"""
_FUNCTION = """\
{{
      symbol: "{symbol}", dims: {dims}, computed: {computed},
      inputs: {inputs},
      outputs: {outputs},
    }}"""
_TYPES = """\
/** A dense array with its shape. */
export interface Tensor<T> {{
  data: T;
  shape: number[];
}}
{functions}
/** A loaded model; it has the memory that its runs work in. */
export interface Model {{
{methods}  /** Ends the model's helpers, if it has threads; no run may follow. */
  close(): void;
}}

/** `threads`: how many a run may use, {most}.
 * `relaxed`: whether results may depend on the engine in their last bits{unless}. */
export interface Options {{
  threads?: number;
  relaxed?: boolean;
}}

/** Loads the model. `files` may give the bytes of "{name}.wasm" and of the weights instead. */
export function load(files?: Record<string, Uint8Array>, options?: Options): Promise<Model>;
"""
_PORTS = """
/** The inputs of `{word}`: dense arrays. */
export interface {prefix}Inputs {{
{inputs}}}

/** The open sizes of `{word}`. */
export interface {prefix}Sizes {{
{dims}}}

/** The results of `{word}`. */
export interface {prefix}Outputs {{
{outputs}}}
"""
_STATE = """\
  /** A copy of the parameters and the optimizer's memory; a copy of earlier can be given back. */
  state: Uint8Array;
  /** Begin again: the state in which the model was compiled. */
  reset(): void;
"""

# what `import` finds in Node itself
_MODULES = """
    assert async_hooks buffer child_process cluster console constants crypto dgram domain events
    fs http http2 https inspector module net os path perf_hooks process punycode querystring
    readline repl stream sys timers tls tty url util v8 vm wasi worker_threads zlib
    """
_CORE = frozenset(_MODULES.split())


@dataclass(frozen=True, slots=True)
class WebFunction:
    """A function of the module: its method's name, its name in C, its manifest rows, the inputs
    that outputs are copied from, and where arrays of a training state start, by name."""

    word: str
    symbol: str
    row: Manifest | ProgramRow
    donated: Mapping[int, int] = field(default_factory=dict)
    state: Mapping[str, int] = field(default_factory=dict)

    def words(self, ports: Sequence[PortRow]) -> list[tuple[PortRow, str]]:
        """The ports that are not part of a state, each with its identifier."""
        known = [p for p in ports if p.name not in self.state]
        return list(zip(known, identifiers(p.name for p in known), strict=True))


def functions(s: Subject) -> list[WebFunction]:
    """The functions of a build in the order of its manifest."""
    m = s.manifest
    if m.training is not None:
        state = {c.name: c.offset for c in m.training.state}
        return [WebFunction(part, f"{s.name}_{part}", row, state=state)
                for part, row in m.training.programs.items()]
    return [WebFunction(f.word, f.symbol, f.row, dict(f.row.donations))
            for f in record.functions(s, _METHODS)]


def array_type(port: PortRow) -> str:
    """The typed array of JavaScript that holds the elements."""
    short = elements(port)
    kind = _ARRAYS.get(short) or f"{'Uint' if short[0] == 'u' else 'Int'}{short[1:]}"
    return f"{kind}Array"


def special(s: Subject) -> dict[str, bytes]:
    """The module of a build by its kind, if not every engine takes it: `threads`, `relaxed`."""
    if not s.manifest.library.endswith(".wasm"):
        return {}
    data = s.library.read_bytes()
    if shared_pages(data) is not None:
        return {"threads": data}
    row = TABLE.get(s.manifest.target)  # of a plug-in there may be none here
    return {"relaxed": data} if row and row.needs else {}


def wasm(s: Subject, known: Sequence[WebFunction]) -> bytes:
    """The compiled module that all engines take: that of a build for wasm32, else one that is
    compiled here. Raises CompilerError GT2120 where there is no zig, GT2121, GT2123."""
    if s.manifest.library.endswith(".wasm") and not special(s):
        return s.library.read_bytes()
    if not find_spec("ziglang"):
        raise CompilerError("GT2120", "WebAssembly is compiled by zig, and there is none",
                            hint=release.install("zig"))
    texts = sources(s)
    files = {f: texts[f] for f in (f"{s.name}.c", f"{s.name}.h")}
    if not s.manifest.library.endswith(".wasm"):  # the C of a build for a page has them
        files[f"{s.name}_shapes.c"] = shapes(s.name, texts)
    exported = [f"{f.symbol}_{part}" for f in known
                for part in ("run", "arena_bytes", "status_text", "shape")]
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi",
               "-mexec-model=reactor", "-O3", *TABLE["wasm32"].flags[0], "-std=gnu11", "-fwrapv",
               "-fno-math-errno", "-fopenmp-simd", "-DGT_OPENMP_SIMD", "-w", "-g0", "-s",
               *(f for f in files if f.endswith(".c")), "-o", "out.wasm",
               *(f"-Wl,--export={f}" for f in (*exported, "aligned_alloc", "free"))]
    with tempfile.TemporaryDirectory(prefix="graphtool-wasm-") as folder:
        for file, text in files.items():
            (Path(folder) / file).write_bytes(text.encode())
        done = run(command, Path(folder))
        if done.returncode:
            raise CompilerError("GT2121", "zig failed",
                                where="\n".join(done.stderr.strip().splitlines()[-8:]))
        return (Path(folder) / "out.wasm").read_bytes()


def module(s: Subject, known: Sequence[WebFunction]) -> str:
    """The text of index.js."""
    m, start = s.manifest, "null"
    if m.training is not None:
        start = next(_described(f) for f in known if f.word == "init")
    shown = [f for f in known if m.training is None or f.word != "init"]
    some = special(s)
    weights = "null" if s.weights is None else (
        f'{{ file: "{s.weights.name}", offset: {m.weights_offset}, size: {m.weights_bytes} }}')
    return _MODULE.format(
        name=s.name, first=shown[0].word, weights=weights, start=start,
        threads="null" if "threads" not in some else (
            f'{{ wasm: "{beside(s.name, "threads")}", pages: {shared_pages(some["threads"])} }}'),
        relaxed="null" if "relaxed" not in some else f'"{beside(s.name, "relaxed")}"',
        state="null" if m.training is None else m.training.state_bytes,
        functions="".join(f"    {f.word}: {_described(f)},\n" for f in shown))


def _described(f: WebFunction) -> str:
    def table(ports: Sequence[PortRow], donated: Mapping[int, int]) -> str:
        words, lines = {p.name: word for p, word in f.words(ports)}, list[str]()
        for in_state, rows in groupby(enumerate(ports), lambda row: row[1].name in f.state):
            if in_state:
                lines += wrap("".join(f"{f.state[p.name]}, " for _, p in rows), 92)
            else:
                lines += [f'{{ name: "{words[p.name]}", type: {array_type(p)}, '
                          f"rank: {len(p.shape)}, parts: {_PARTS.get(p.type, 1)}, "
                          f"from: {donated.get(i, -1)} }}," for i, p in rows]
        return "[" + "".join(f"\n        {line}" for line in lines) + "\n      ]"
    return _FUNCTION.format(
        symbol=f.symbol, dims=json.dumps(identifiers(d.name for d in f.row.dims)),
        computed=len(f.row.sizes), inputs=table(f.row.inputs, {}),
        outputs=table(f.row.outputs, f.donated))


def types(s: Subject, known: Sequence[WebFunction]) -> str:
    """The text of index.d.ts."""
    trains = s.manifest.training is not None
    shown = [f for f in known if not trains or f.word != "init"]
    prefixes = [""] if [f.word for f in shown] == ["run"] else identifiers(
        f"{f.word[0].upper()}{f.word[1:]}" for f in shown)
    parts, methods = "", ""
    for f, prefix in zip(shown, prefixes, strict=True):
        dims = zip(f.row.dims, identifiers(d.name for d in f.row.dims), strict=True)
        parts += _PORTS.format(
            word=f.word, prefix=prefix,
            inputs="".join(_fields(f.words(f.row.inputs), given=True)),
            outputs="".join(_fields(f.words(f.row.outputs), given=False)),
            dims="".join(f"  /** {plain(r.name)} */\n  {d}: number;\n" for r, d in dims))
        optional = "" if f.row.dims else "?"
        methods += (f"  {f.word}(inputs: {prefix}Inputs, sizes{optional}: {prefix}Sizes): "
                    f"{prefix}Outputs;\n")
    some = special(s)
    return _TYPES.format(
        name=s.name, functions=parts, methods=methods + trains * _STATE,
        most="where memory can be shared" if "threads" in some else "but this model was built "
        "for one", unless="" if "relaxed" in some else ", as those of this model never do")


def _fields(ports: Sequence[tuple[PortRow, str]], *, given: bool) -> Iterator[str]:
    lines = listed([p for p, _ in ports], [word for _, word in ports])
    for (port, word), line in zip(ports, lines, strict=True):
        kind = array_type(port)
        number = "bigint" if kind.startswith("Big") else "number"
        held = f"Tensor<{kind}>" if not given else kind if port.shape else f"{kind} | {number}"
        yield f"  /** {line} */\n  {word}: {held};\n"


def make(s: Subject) -> Files:
    """The files of the package. Raises UsageError GT2242 for the name of a module of Node."""
    if s.name.lower() in _CORE:
        raise UsageError("GT2242", f"Node has a module {s.name.lower()} of its own",
                         hint="build with another --name")
    known = functions(s)
    about = {"name": s.name.lower(), "version": s.three,
             "description": f"The compiled model {s.name}", "type": "module",
             "exports": {".": {"types": "./index.d.ts", "default": "./index.js"},
                         "./worker": {"types": "./worker.d.ts", "default": "./worker.js"}},
             "types": "./index.d.ts", "files": ["*"], "sideEffects": False}
    some = {beside(s.name, kind): module for kind, module in special(s).items()}
    data = {} if s.weights is None else {s.weights.name: s.weights.read_bytes()}
    scripts = {f.name: f.read_bytes() for f in resources("graphtool.package").joinpath(
        "javascript").iterdir()}
    return {"package.json": (json.dumps(about, indent=2) + "\n").encode(),
            "index.js": module(s, known).encode(), "index.d.ts": types(s, known).encode(),
            **scripts, f"{s.name}.wasm": wasm(s, known), **data, **some}


def _tgz(s: Subject, files: Files) -> Archive:
    return (f"{s.name.lower()}-{s.three}.tgz",
            tar_gz({f"package/{f}": d for f, d in files.items()}))


register(PackageForm(
    "npm", "a .tgz for npm: WebAssembly for Node and browsers, compiled by zig", make,
    archive=_tgz, several=True, trains=True))
