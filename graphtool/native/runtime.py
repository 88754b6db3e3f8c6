"""Loads a build directory and runs it: ctypes, the weights read, the arena kept between runs."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphtool.errors import InputError, UsageError, listed, near
from graphtool.escaping import line
from graphtool.io.grids import as_bytes
from graphtool.io.manifest import check_hashes, entry_base, read_entry, read_manifest
from graphtool.machines import cores
from graphtool.native import device, memory_map
from graphtool.native.arguments import (
    SizedPort,
    address,
    as_array,
    as_before,
    extents,
    given_results,
    numbers,
)
from graphtool.native.bound import Bound
from graphtool.native.library import complaint, open_library
from graphtool.native.session import RunState

if TYPE_CHECKING:
    from graphtool.io.manifest_rows import Manifest
    from graphtool.symbolic import Dim

Array = np.ndarray[Any, Any]


def load(build_dir: Path | str, threads: int | None = None, verify: bool = False, *,
         entry: str | None = None) -> Model:
    """A callable model: `model(**inputs) -> {output: array}`; see Model. `entry` names one of the
    entry points, where a build has several.

    `verify` checks the hashes of the library and the weights first, which reads both whole (0.12 s
    for 100 MB); raises InputError GT2205 if they differ, UsageError GT2222, GT2223 for the entry
    point.
    """
    if verify:
        check_hashes(read_manifest(Path(build_dir)), Path(build_dir))
    return Model(Path(build_dir), threads, entry)


class Model:
    """A compiled model. Threads may run it at the same time; each run then has an arena of its own.

    An output donated from an input is updated in place where `out` names the input's own array;
    else it is a new one, and the input is left alone.

    `model(**inputs)` takes arrays by the model's own names (numpy or DLPack) and gives a dict of
    arrays in the order of the outputs; `run(inputs, out=)` writes into given arrays, and
    `bind(inputs, out=)` gives a call with fixed arrays, for models that run for microseconds.
    """

    def __init__(self, build_dir: Path, threads: int | None, entry: str | None = None) -> None:
        self.manifest = m = read_entry(build_dir, entry)
        self._threads = threads or cores()
        self._table, table = _tables(m)
        self._names: dict[Dim, str] = {d: name for name, d in self._table.items()
                                       if not isinstance(d, int)}
        self._computed = {d.name: len(m.dims) + i for i, d in enumerate(m.sizes)}
        self.inputs = tuple(SizedPort(p, self._table) for p in m.inputs)
        self.outputs = tuple(SizedPort(p, table) for p in m.outputs)
        self._open = [s for s in self.outputs if s.room is not None]
        path = build_dir / m.library
        if m.library.endswith(".a"):
            raise InputError("GT2202", "a static build cannot be loaded", where=str(path),
                             hint="build without --static")
        try:
            self.library = library = open_library(path, m.target, device=m.device)
            self._run = getattr(library, f"{m.name}_run")
            self._arena_bytes = getattr(library, f"{m.name}_arena_bytes")
        except AttributeError as error:
            raise InputError("GT2203", f"cannot load the library: {error}",
                             where=str(path)) from error
        self._run.restype, self._arena_bytes.restype = ctypes.c_int, ctypes.c_size_t
        self._mapping: object  # keeps the weights
        if m.device and m.training is None:  # whose functions have their numbers
            held = device.weights(library, entry_base(m), build_dir / m.weights)
            self._weights, self._mapping = held.address, held
        else:
            self._weights, self._mapping = memory_map.weights(
                build_dir / m.weights, m.weights_offset,
                m.weights_bytes if m.weights_mode == "file" else 0)
        self._last = self._session()
        self._free = [self._last]  # those that no run has; append and pop are atomic

    def __repr__(self) -> str:
        ins, outs = (", ".join(f"{p.name}: {p.type}[{','.join(map(str, p.shape))}]" for p in ports)
                     for ports in (self.manifest.inputs, self.manifest.outputs))
        return f"<Model {self.manifest.name}: ({ins}) -> ({outs})>"

    @property
    def threads(self) -> int:
        """How many threads a run may use."""
        return self._threads

    @threads.setter
    def threads(self, count: int) -> None:
        """Set the number of threads of later runs."""
        self._threads = count

    @property
    def sizes(self) -> dict[str, int]:
        """The open dims as the last run's inputs had them, and the sizes that it computed."""
        return self._sizes(self._last)

    def _sizes(self, s: RunState) -> dict[str, int]:
        names = [row.name for row in self.manifest.dims] + [s.name for s in self.manifest.sizes]
        return {name: s.dims[i] for i, name in enumerate(names)}

    def _session(self) -> RunState:
        m = self.manifest
        return RunState(len(m.inputs), len(m.outputs), len(m.dims) + len(m.sizes))

    def __call__(self, *given: Any, **inputs: Any) -> dict[str, Array]:
        if given:
            names = ", ".join(f"{p.name}=…" for p in self.manifest.inputs)
            raise UsageError("GT3164", "a model takes its inputs by name",
                             hint=f"model({names}), or model.run({{name: array}})")
        return self.run(inputs)

    def run(self, inputs: Mapping[str, Any], out: Mapping[str, Array] | None = None) -> dict[
            str, Array]:
        """Run once. Raises InputError GT221x for inputs that do not fit, saying what was wanted."""
        try:
            s = self._free.pop()
        except IndexError:  # other threads have them all
            s = self._session()
        try:
            return self._run_in(s, inputs, out)
        finally:
            self._last = s
            self._free.append(s)

    def _run_in(self, s: RunState, inputs: Mapping[str, Any],
                out: Mapping[str, Array] | None) -> dict[str, Array]:
        """`run`, in a session that no other run has."""
        arrays = None
        if s.seen is not None and len(inputs) == len(s.seen) and s.threads == self._threads:
            arrays = as_before(s.seen, inputs)
        if arrays is None:
            arrays = self._checked(s, inputs)
        if out is None:
            results = {name: memory_map.result(shape, kind) for name, shape, kind in s.results}
        else:
            results = given_results(s.results, out)
        if self.manifest.donations:
            self._donate(arrays, results)
        for i, a in enumerate(arrays):
            s.ins[i] = address(a)
        for i, r in enumerate(results.values()):
            s.outs[i] = address(r)
        s.held = (arrays, results)  # `call` uses their memory again
        if status := self._run(*s.arguments):
            self._failed(s, status)
        return self._shaped(s, results) if self._open else results

    def _shaped(self, s: RunState, results: dict[str, Array]) -> dict[str, Array]:
        """The results, cut to the sizes that only the run could compute."""
        sizes: dict[str, Dim] = dict(self._sizes(s))
        for spec in self._open:
            shape = numbers(spec.shape, sizes)
            results[spec.name] = results[spec.name][:math.prod(shape)].reshape(shape)
        return results

    def bind(self, inputs: Mapping[str, Any], out: Mapping[str, Array] | None = None) -> Bound:
        """A call with these arrays fixed, which checks nothing: `call()` reads the inputs as they
        are then, and writes the arrays of `out`, or ones of its own. It takes under 0.5 µs more
        than the C function.

        Raises InputError as `run` does, and GT2216 for an input that `run` would copy.
        """
        s = self._session()
        arrays = self._checked(s, inputs)
        for spec, a in zip(self.inputs, arrays, strict=True):
            if isinstance(inputs[spec.name], np.ndarray) and a is not inputs[spec.name]:
                raise InputError("GT2216", f"{spec.name} must be a contiguous array: a bound call "
                                           "reads its memory again",
                                 hint="numpy.ascontiguousarray makes one")
        results = given_results(s.results, out or {})
        s.ins[:len(arrays)] = [address(a) for a in arrays]
        s.outs[:len(results)] = [address(r) for r in results.values()]
        s.held = (arrays, results)
        copies = [(r, arrays[i]) for r, i in self._starts(arrays, results)]
        return Bound(partial(self._run, *s.arguments), results, copies, partial(self._failed, s),
                     (lambda: self._shaped(s, dict(results))) if self._open else None)

    def call(self) -> None:
        """Run again on the arrays of the last `run`, without any checks, while no other thread
        runs this model."""
        if status := self._run(*self._last.arguments):
            self._failed(self._last, status)

    def _failed(self, s: RunState, status: int) -> None:
        """Raises InputError for what the model's function returns of a run that failed."""
        match status:
            case -2:
                rows = enumerate(self.manifest.sizes, len(self.manifest.dims))
                raise InputError(
                    "GT2221", "a size or number that the inputs lead to breaks its bound",
                    hint="computed were " + ", ".join(
                        f"{line(d.name)} = {s.dims[i]} ({'any' if d.min is None else d.min} to "
                        f"{d.max if d.most is None else d.most})" for i, d in rows)
                    + "; the bounds are those of --dynamic, or what torch._check promised")
            case _:
                if self.manifest.dims:
                    from graphtool.native.sizes import require
                    require(self.manifest.dims, self.manifest.requires, self._sizes(s))
                raise complaint(self.library, self.manifest.name, status)

    def launch(self, sizes: Mapping[str, Any], inputs: Sequence[int],
               outputs: Sequence[int]) -> None:
        """Run on memory given by its addresses, in the order of the manifest's ports.

        Nothing but the range of the sizes is checked: all must be contiguous and of the shapes
        that `sizes` gives; a donated output starts from what it holds.
        """
        try:
            s = self._free.pop()
        except IndexError:
            s = self._session()
        try:
            self._launch_in(s, sizes, inputs, outputs)
        finally:
            self._last = s
            self._free.append(s)

    def _launch_in(self, s: RunState, sizes: Mapping[str, Any], inputs: Sequence[int],
                   outputs: Sequence[int]) -> None:
        """`launch`, in a session that no other run has."""
        s.seen = None
        changed = False
        for i, row in enumerate(self.manifest.dims):
            changed |= s.dims[i] != sizes[row.name]
            s.dims[i] = sizes[row.name]
        if changed or not s.arena.size:
            self._grow(s)
        s.ins[:len(inputs)] = list(inputs)
        s.outs[:len(outputs)] = list(outputs)
        if status := self._run(*self._arguments(s)):
            self._failed(s, status)

    def _arguments(self, s: RunState) -> tuple[Any, ...]:
        """What the C function takes, for a run in this session."""
        return (ctypes.c_void_p(self._weights), ctypes.c_void_p(s.arena_at), s.dims, s.ins, s.outs,
                ctypes.c_int(self._threads))

    def _checked(self, s: RunState, inputs: Mapping[str, Any]) -> list[Array]:
        """The inputs as arrays that fit; sizes and arena are set for them."""
        s.seen = None
        names = [s.name for s in self.inputs]
        if extra := [n for n in inputs if n not in names]:  # first: it may be one misspelt
            raise InputError("GT2211", f"there is no input {listed(extra)}",
                             hint=near(extra[0], names, f"the inputs are {listed(names)}"))
        arrays = [self._input(spec, inputs) for spec in self.inputs]
        sizes = self._bind(s, arrays)
        s.results = [(p.name, extents(p, sizes), p.dtype.numpy) for p in self.outputs]
        s.arguments, s.threads = self._arguments(s), self._threads
        s.seen = [(p.name, p.dtype.numpy, a.shape)
                  for p, a in zip(self.inputs, arrays, strict=True)]
        return arrays

    def _input(self, spec: SizedPort, inputs: Mapping[str, Any]) -> Array:
        if spec.name not in inputs:
            raise InputError("GT2210", f"missing input {spec.name}",
                             hint=f"the inputs are {listed(s.name for s in self.inputs)}")
        a = as_array(spec.name, inputs[spec.name])
        if spec.scale:
            a = as_bytes(a, spec.scale, spec.zero, spec.dtype.numpy)
        if a.dtype != spec.dtype.numpy:
            raise InputError("GT2212", f"{spec.name} is {a.dtype}, {spec.dtype.name} expected")
        if len(a.shape) != len(spec.shape) or any(
                isinstance(d, int) and d != n for d, n in zip(spec.shape, a.shape, strict=True)):
            want = ",".join(map(str, spec.shape))
            raise InputError("GT2213", f"{spec.name} has the shape {list(a.shape)}, "
                                       f"[{want}] expected")
        return np.require(a, requirements=("C", "A"))

    def _bind(self, s: RunState, arrays: list[Array]) -> dict[str, Dim]:
        """The values of the symbols, from the inputs' shapes; also sizes the arena."""
        if not self._table:
            if not s.arena.size:
                self._grow(s)
            return {}
        from graphtool.native.sizes import require
        from graphtool.symbolic import bind, substitute
        sizes: dict[str, Dim] = {}
        rows = [(spec, a, d, n) for spec, a in zip(self.inputs, arrays, strict=True)
                for d, n in zip(spec.shape, a.shape, strict=True)]
        bind(((d, n) for _, _, d, n in rows), sizes)
        for _, _, d, n in rows:
            if (name := self._names.get(d, "")) and sizes[name] != n:
                raise InputError("GT2214", f"{name} is {sizes[name]} and {n} at once")
        require(self.manifest.dims, self.manifest.requires, sizes)
        for spec, a, d, n in rows:
            if substitute(d, sizes) != n:
                raise InputError("GT2213", f"{spec.name} has the shape {list(a.shape)}, the "
                                           f"dimension {d} cannot be {n}")
        changed = False
        for i, row in enumerate(self.manifest.dims):
            value = sizes.get(row.name, row.min)
            assert isinstance(value, int)
            if value < row.min or (row.max is not None and value > row.max):
                raise InputError("GT2215", f"{row.name} is {value}, "
                                           f"{row.min} to {row.max or 'any'} allowed")
            changed |= s.dims[i] != value
            s.dims[i] = value
        if changed or not s.arena.size:
            self._grow(s)
        return sizes

    def _grow(self, s: RunState) -> None:
        need = int(self._arena_bytes(s.dims))
        if not need:
            raise InputError("GT2215", "no arena can be as large as these inputs need",
                             hint=f"the sizes are {self._sizes(s)}")
        if not self.manifest.device:  # which has the arena
            s.grow(need)

    def _donate(self, arrays: list[Array], results: dict[str, Array]) -> None:
        """What a donated output starts from: its input's values, or the very array in `out`."""
        for result, i in self._starts(arrays, results):
            result[...] = arrays[i]

    def _starts(self, arrays: list[Array], results: dict[str, Array]) -> list[tuple[Array, int]]:
        """The donated outputs that do not share memory with their inputs, and these."""
        rows = [(results[self.outputs[o].name], i) for o, i in self.manifest.donations]
        return [(r, i) for r, i in rows if not np.may_share_memory(r, arrays[i])]


def _tables(m: Manifest) -> tuple[dict[str, Dim], dict[str, Dim]]:
    """The open dims by name; the same with the sizes that a run computes."""
    if not m.dims and not m.sizes:
        return {}, {}
    from graphtool.native.sizes import dim_table
    from graphtool.symbolic import symbol
    dims = dim_table(m.dims)
    return dims, dims | {d.name: symbol(d.name, d.min, d.max) for d in m.sizes}
