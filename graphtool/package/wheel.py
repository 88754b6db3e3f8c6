"""`wheel`: a Python package that calls the library by ctypes and needs numpy alone.

Its module has a typed function `run`, and `run_into` for memory of any kind, which does not import
numpy: that takes longer than everything else up to a first result. Of a build with entry points,
each has a module with both. Shapes are computed by expressions of Python that come from parsed
dimensions; `run` reads open sizes off the arrays.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from hashlib import sha256

from graphtool.dtypes import dtype
from graphtool.errors import Unsupported, UnsupportedError, UsageError
from graphtool.io.manifest import entry_names, one_entry
from graphtool.io.manifest_rows import Manifest, PortRow
from graphtool.package.archives import zipped
from graphtool.package.platform import platform_of
from graphtool.package.record import Archive, Files, PackageForm, Subject, elements, register
from graphtool.package.words import identifiers, listed, plain
from graphtool.symbolic import Dim, Symbol, dim_of, symbol
from graphtool.symbolic.parse import parse

_NUMPY = {"bool": "bool_", "f32": "float32", "f64": "float64", "c64": "complex64",
          "c128": "complex128"}

_IMPORTS = '''\
from __future__ import annotations

import ctypes
import mmap
import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
'''
_FUNCTION = '''\


class Outputs(NamedTuple):
    \"\"\"The results of a run.\"\"\"

{outputs}


def run({parameters}*, threads: int = 0) -> Outputs:
    \"\"\"Run the model, on at most `threads` threads; 0: as many as there are processors.

{described}

    Raises ValueError for arrays that do not fit, RuntimeError if the run fails.
    \"\"\"
    import numpy as np

{body}


def run_into(inputs: Sequence[Any], outputs: Sequence[Any], *, {names}threads: int = 0
             ) -> tuple[tuple[int, ...], ...]:
    \"\"\"Run the model on memory of any kind, without numpy. Returns the shapes of the results.

    `inputs` and `outputs` are buffers in the order of `run` and `Outputs`: bytes, array.array, an
    mmap or an array, with elements in C order. Their bytes are counted, their types not checked.

    Raises ValueError for buffers that do not fit, RuntimeError if the run fails.
    \"\"\"
{into}
'''
_SHARED = '''\


class _Weights(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("memory", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


_HERE = os.path.dirname(os.path.abspath(__file__))
_library = ctypes.CDLL(os.path.join(_HERE, "{library}"))
_weights = _Weights()
_local = threading.local()


class _Function:
    def __init__(self, name: str) -> None:
        self.name, self.run, self.arena_bytes, self.status_text = name, *(
            getattr(_library, f"{{name}}_{{part}}")
            for part in ("run", "arena_bytes", "status_text"))
        self.arena_bytes.restype, self.status_text.restype = ctypes.c_size_t, ctypes.c_char_p
        self.arena_bytes.argtypes = (ctypes.c_void_p,)
        self.run.argtypes = (*[ctypes.c_void_p] * 5, ctypes.c_int)

    def __call__(self, dims: Any, inputs: tuple[NDArray[Any], ...],
                 outputs: tuple[NDArray[Any], ...], threads: int) -> None:
        self.check(self.run(_weights.data, self.arena(dims), dims, _pointers(inputs),
                            _pointers(outputs), threads))

    def into(self, dims: Any, inputs: Sequence[Any], reads: tuple[tuple[int, int], ...],
             outputs: Sequence[Any], writes: tuple[tuple[int, int], ...],
             donations: tuple[tuple[int, int], ...], threads: int) -> None:
        if len(inputs) != len(reads) or len(outputs) != len(writes):
            raise ValueError(f"expected {{len(reads)}} inputs and {{len(writes)}} outputs")
        given = [_memory(f"input {{i}}", x, *reads[i], False) for i, x in enumerate(inputs)]
        room = [_memory(f"output {{i}}", x, *writes[i], True) for i, x in enumerate(outputs)]
        for o, i in donations:
            ctypes.memmove(room[o], given[i], len(given[i]))
        pointers = [(ctypes.c_void_p * max(1, len(of)))(*map(ctypes.addressof, of))
                    for of in (given, room)]
        self.check(self.run(_weights.data, self.arena(dims), dims, *pointers, threads))

    def check(self, status: int) -> None:
        if status:
            raise RuntimeError(f"{{self.name}}: {{self.status_text(status).decode()}}")

    def arena(self, dims: Any) -> int:
        \"\"\"The address of memory of this thread that a run works in.\"\"\"
        size = self.arena_bytes(dims)
        if not size:
            raise ValueError("a size is out of its range")
        if getattr(_local, "size", -1) < size:
            held = mmap.mmap(-1, size)
            if hasattr(mmap, "MADV_HUGEPAGE") and size >= 4 << 20:
                try:
                    held.madvise(mmap.MADV_HUGEPAGE)
                except OSError:  # a system without them
                    pass
            _local.size, _local.memory = size, ctypes.c_char.from_buffer(held)
        return ctypes.addressof(_local.memory)


def _memory(name: str, buffer: Any, count: int, item: int, writes: bool) -> Any:
    view = memoryview(buffer)
    if not view.c_contiguous or view.nbytes != count * item or (writes and view.readonly):
        what = "bytes in one piece" + " that can be written" * writes
        raise ValueError(f"{{name}} has {{view.nbytes}} bytes, expected {{count * item}} {{what}}")
    kind = ctypes.c_char * view.nbytes
    if not view.readonly:
        memory = kind.from_buffer(view)
        if writes or ctypes.addressof(memory) % item == 0:
            return memory
    return kind.from_buffer_copy(view)


def _array(name: str, given: Any, kind: Any, rank: int) -> NDArray[Any]:
    import numpy as np

    array = np.asarray(given)
    if array.dtype != kind or array.ndim != rank:
        raise ValueError(f"{{name}} is {{array.dtype}} of rank {{array.ndim}}, expected "
                         f"{{np.dtype(kind)}} of rank {{rank}}")
    return np.require(array, requirements=("C", "A"))


def _fits(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"{{name}} has the shape {{array.shape}}, expected {{shape}}")


def _pointers(arrays: tuple[NDArray[Any], ...]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(a.ctypes.data for a in arrays))


_Function("{first}").check(_library.{name}_load(
    ctypes.byref(_weights), os.path.join(_HERE, "{weights}").encode()))
'''


def numpy_type(port: PortRow) -> str:
    """The name of the element type in numpy, as arrays are handed over."""
    short = "f16" if port.type == "f16" else elements(port)
    if short == "f16":
        return "float16"
    kind = {"i": "int", "u": "uint"}.get(short[0], "")
    return _NUMPY.get(short) or f"{kind}{short[1:]}"


class OpenSizes:
    """The open sizes: d0, d1 … of the inputs, then s0, s1 … that a run computes."""

    def __init__(self, m: Manifest) -> None:
        self.dims: dict[str, Dim] = {r.name: dim_of(Symbol(
            f"d{i}", r.min, r.max, None, r.step, r.offset)) for i, r in enumerate(m.dims)}
        self.computed: dict[str, Dim] = {
            r.name: symbol(f"s{i}", r.min, r.max) for i, r in enumerate(m.sizes)}
        self.words = [f"d{i}" for i in range(len(m.dims))]

    def text(self, d: int | str) -> str:
        """A dimension as an expression of Python."""
        return str(d) if isinstance(d, int) else str(parse(d, self.dims | self.computed))

    def shape(self, port: PortRow) -> str:
        """The shape of a port as a tuple of Python."""
        return "(" + "".join(f"{self.text(d)}, " for d in port.shape).rstrip() + ")"

    def source(self, i: int, ports: list[PortRow], words: list[str]) -> str:
        """Where a size is read off: the first axis that is just it. Raises UnsupportedError GT2243
        where there is none."""
        name, want = list(self.dims.items())[i]
        for port, word in zip(ports, words, strict=True):
            for axis, d in enumerate(port.shape):
                if not isinstance(d, int) and parse(d, self.dims) == want:
                    return f"{word}.shape[{axis}]"
        raise UnsupportedError("GT2243", "a size cannot be read off the inputs", (
            Unsupported(plain(name), "no axis of an input is just this size"),))


def modules(s: Subject) -> dict[str, str]:
    """The texts of the package by file."""
    m = s.manifest
    known = [one_entry(m, n) for n in entry_names(m)] or [m]
    shared = _SHARED.format(name=s.name, first=known[0].name, library=m.library,
                            weights=s.weights.name if s.weights else "")
    version = f'__version__ = "{s.version}"\n'
    use = "`run` computes it. Several threads may call it at the same time."
    if len(known) == 1 and not m.entry:
        return {"__init__.py": f'"""{s.name}: a compiled model.\n\n{use}\n"""\n\n{_IMPORTS}\n'
                f'__all__ = ["Outputs", "run", "run_into"]\n{version}{_function(m)}{shared}'
                f'_model = _Function("{m.name}")\n'}
    words = dict(zip(entry_names(m), identifiers(entry_names(m), ("shared",)), strict=True))
    names = ", ".join(words.values())
    texts = {"__init__.py": f'"""{s.name}: compiled functions, each with a `run`: {names}."""\n\n'
             f"from . import {names}\n\n__all__ = [{', '.join(map(repr, words.values()))}]\n"
             f"{version}".replace("'", '"'),
             "_shared.py": f'"""The library, its weights, and memory."""\n\n'
             f"{_IMPORTS.replace(', NamedTuple', '')}{shared}"}
    imports = _IMPORTS.replace("import mmap\nimport os\nimport threading\n", "") + (
        "\nfrom ._shared import _array, _fits, _Function\n")
    for row in known:
        texts[f"{words[row.entry]}.py"] = (
            f'"""{row.name}: a compiled function.\n\n{use}\n"""\n\n{imports}\n'
            f'__all__ = ["Outputs", "run", "run_into"]\n{_function(row)}\n\n'
            f'_model = _Function("{row.name}")\n')
    return texts


def _function(m: Manifest) -> str:
    """The text of Outputs and of run."""
    sizes = OpenSizes(m)
    inputs = identifiers((p.name for p in m.inputs), sizes.words)
    outputs = identifiers((p.name for p in m.outputs), ("count", "index"))
    body = [f'{w} = _array("{w}", {w}, np.{numpy_type(p)}, {len(p.shape)})'
            for p, w in zip(m.inputs, inputs, strict=True)]
    body += [f"{word} = {sizes.source(i, m.inputs, inputs)}" for i, word in enumerate(sizes.words)]
    body += [f'_fits("{w}", {w}, {sizes.shape(p)})' for p, w in zip(m.inputs, inputs, strict=True)]
    dims = _dims(m, sizes)
    body += [dims, "results = ("]
    body += [f"    np.empty({sizes.text(p.room) if p.room is not None else sizes.shape(p)}, "
             f"np.{numpy_type(p)})," for p in m.outputs] + [")"]
    body += [f"results[{o}][...] = {inputs[i]}" for o, i in m.donations]
    given = "".join(f"{w}, " for w in inputs).rstrip()
    body += [f"_model(dims, ({given}), results, threads)"]
    body += [f"s{i} = dims[{len(m.dims) + i}]" for i in range(len(m.sizes))]
    shaped = ", ".join(
        f"results[{i}]" if p.room is None else
        f"results[{i}][:{_product(sizes, p)}].reshape({sizes.shape(p)})"
        for i, p in enumerate(m.outputs))
    body.append(f"return Outputs({shaped})")
    names = identifiers((r.name for r in m.dims), sizes.words)
    return _FUNCTION.format(
        names="".join(f"{n}: int, " for n in names), into="\n".join(
            f"    {line}" for line in _into(m, sizes, names, dims)),
        outputs="\n".join(f'    {w}: NDArray[np.{numpy_type(p)}]\n    """{line}"""'
                          for p, w, line in zip(m.outputs, outputs, listed(m.outputs, outputs),
                                                strict=True)),
        parameters="".join(f"{w}: NDArray[np.{numpy_type(p)}], "
                           for p, w in zip(m.inputs, inputs, strict=True)),
        described="\n".join(f"    {line}" for line in listed(m.inputs, inputs)),
        body="\n".join(f"    {line}" for line in body))


def _dims(m: Manifest, sizes: OpenSizes) -> str:
    """The line that hands the open sizes over; a run writes those that it computes."""
    room = "".join(f"{w}, " for w in sizes.words) + "0, " * len(m.sizes)
    return (f"dims = (ctypes.c_int64 * {max(1, len(m.dims) + len(m.sizes))})"
            f"({room.rstrip(', ')})")


def _into(m: Manifest, sizes: OpenSizes, names: list[str], dims: str) -> list[str]:
    """The lines of run_into: the elements and the bytes of each, and the shapes."""
    def tuple_of(words: Iterable[str]) -> str:
        return "(" + "".join(f"{w}, " for w in words).rstrip() + ")"

    def rooms(ports: list[PortRow]) -> str:
        return tuple_of(f"({_product(sizes, p) if p.room is None else sizes.text(p.room)}, "
                        f"{dtype(p.type).bits // 8})" for p in ports)
    return [*(f"{w} = {n}" for w, n in zip(sizes.words, names, strict=True)), dims,
            f"_model.into(dims, inputs, {rooms(m.inputs)},",
            f"            outputs, {rooms(m.outputs)},",
            f"            {tuple_of(map(str, map(tuple, m.donations)))}, threads)",
            *(f"s{i} = dims[{len(m.dims) + i}]" for i in range(len(m.sizes))),
            f"return {tuple_of(sizes.shape(p) for p in m.outputs)}"]


def _product(sizes: OpenSizes, port: PortRow) -> str:
    return " * ".join(f"({sizes.text(d)})" for d in port.shape) or "1"


def make(s: Subject) -> Files:
    """The files of the wheel but for RECORD. Raises UsageError GT2242 for a static library."""
    if s.manifest.library.endswith(".a"):
        raise UsageError("GT2242", "a wheel needs a shared library", where=str(s.folder),
                         hint="build without --static")
    info = f"{s.name}-{s.version}.dist-info"
    metadata = (f"Metadata-Version: 2.1\nName: {s.name}\nVersion: {s.version}\n"
                f"Summary: The compiled model {s.name}\nRequires-Python: >=3.9\n"
                f"Requires-Dist: numpy>=1.22\n")
    wheel = (f"Wheel-Version: 1.0\nGenerator: graphtool\nRoot-Is-Purelib: false\n"
             f"Tag: py3-none-{platform_of(s.library).tag}\n")
    files = {**{f"{s.name}/{f}": text.encode() for f, text in modules(s).items()},
             f"{s.name}/py.typed": b"",
             f"{s.name}/{s.manifest.library}": s.library.read_bytes()}
    if s.weights is not None:
        files[f"{s.name}/{s.weights.name}"] = s.weights.read_bytes()
    return files | {f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": wheel.encode(),
                    f"{info}/top_level.txt": f"{s.name}\n".encode()}


def _whl(s: Subject, files: Files) -> Archive:
    record = f"{s.name}-{s.version}.dist-info/RECORD"
    rows = "".join(f"{f},sha256={_digest(d)},{len(d)}\n" for f, d in files.items())
    tag = platform_of(s.library).tag
    return f"{s.name}-{s.version}-py3-none-{tag}.whl", zipped(
        {**files, record: f"{rows}{record},,\n".encode()})


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()


register(PackageForm(
    "wheel", "a wheel for pip: numpy and ctypes, typed, without graphtool", make, archive=_whl,
    several=True))
