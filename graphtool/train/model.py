"""A training build loaded into this process: its state as arrays, its functions as methods."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.dtypes import dtype
from graphtool.errors import InputError, listed
from graphtool.io.manifest import read_manifest
from graphtool.io.manifest_rows import CellRow, PortRow, ProgramRow, TrainingRow
from graphtool.machines import cores
from graphtool.native.arguments import Seen, address, as_before, numbers
from graphtool.native.device import Block
from graphtool.native.library import complaint, open_library
from graphtool.native.sizes import dim_table, require
from graphtool.symbolic import Dim, bind, substitute, symbol, symbols
from graphtool.symbolic.parse import parse
from graphtool.train.processes import join

Array = np.ndarray[Any, Any]
ALIGN = 64


class TrainModel:
    """A loaded training build. Its state is one block of memory; `state` has a view of it for each
    array. Not thread-safe.

    Where the kernels run on a device the state is there. `state` then has copies, which the next
    call of a function brings back; read `state` again after a call.
    """

    def __init__(self, build_dir: Path, threads: int | None = None) -> None:
        manifest = read_manifest(build_dir)
        if manifest.training is None:
            raise InputError("GT2220", "not the build of a training graph", where=str(build_dir),
                             hint="graphtool grad … --optimizer adam, then graphtool build")
        self.row: TrainingRow = manifest.training
        self.threads = threads or cores()
        self.library = open_library(build_dir / manifest.library, manifest.target,
                                    shared=self.row.distributed, device=manifest.device)
        self.world = join(self.library, self.row.name, self.row.distributed)
        self.block = _aligned(self.row.state_bytes)
        self.cells = {c.name: c for c in self.row.state}
        self._views = {c.name: _cell(self.block, c) for c in self.row.state}
        self._there = Block(self.library, f"{self.row.name}_step", self.row.state_bytes) if (
            manifest.device) else None
        self._shown = False  # whether the state was handed out since the last call
        self.fixed = {c.name: _cell(self._fixed(), c) for c in self.row.fixed}
        self.arena = _aligned(0)
        self.block_at = self._there.address if self._there else address(self.block)
        self.arena_at = address(self.arena)
        self._functions = {part: _Function(self, part, p)
                           for part, p in self.row.programs.items()}
        self.data = [p.name for p in self.row.programs["step"].inputs
                     if p.name not in self.cells and p.name != "lr"]
        self.inputs = [n for n in self.data if n != self.row.target]
        self.init()

    @property
    def state(self) -> dict[str, Array]:
        """The arrays of the state, by name."""
        if self._there and not self._shown:
            self._there.read(self.block)
            self._shown = True
        return self._views

    def settle(self) -> None:
        """Bring what the state's arrays hold to where the functions work."""
        if self._there and self._shown:
            self._there.write(self.block)
        self._shown = False

    def _fixed(self) -> Array:
        """The bytes of the arrays that no step changes, in the library."""
        size = max(c.offset + _bytes(c) for c in self.row.fixed)
        try:
            give = getattr(self.library, f"{self.row.name}_fixed")
        except AttributeError as error:
            raise InputError("GT2203", f"cannot load the library: {error}") from error
        give.restype = ctypes.c_void_p
        array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(give()))
        array.flags.writeable = False
        return array

    @property
    def batch(self) -> int | None:
        """The size of axis 0 of the data if it is fixed, else None."""
        first = next(p for p in self.row.programs["step"].inputs if p.name == self.data[0])
        size = first.shape[0] if first.shape else 1
        return size if isinstance(size, int) else None

    def types(self) -> dict[str, str]:
        """The element type of each array of the data."""
        kinds = {p.name: p.type for p in self.row.programs["step"].inputs}
        return {n: kinds[n] for n in self.data}

    def init(self) -> None:
        """Set the state to its initial values."""
        self._functions["init"]({})

    def step(self, batch: Mapping[str, Array], lr: float) -> float:
        """Run one training step; returns the loss of the batch before the update."""
        return float(self._functions["step"](batch, lr)[0])

    @property
    def grad_norm(self) -> float | None:
        """The norm of the last step's gradients before clipping; None without `--grad-norm`."""
        trained = {p for parts in self.row.model.values() for p in parts}
        if "grad_norm" in self.cells and "grad_norm" not in trained:
            norm = self._views["grad_norm"]
            if self._there and not self._shown:
                self._there.read(norm, self.cells["grad_norm"].offset)
            return float(norm)
        return None

    def loss(self, batch: Mapping[str, Array]) -> float:
        """The loss of a batch in inference."""
        return float(self._functions["loss"](batch)[0])

    def predict(self, batch: Mapping[str, Array]) -> list[Array]:
        """The model's outputs in inference."""
        return self._functions["predict"](batch)

    def grow(self, size: int) -> None:
        """Makes the arena at least `size` bytes large."""
        if size > self.arena.size:
            self.arena = _aligned(size)
            self.arena_at = address(self.arena)


def _aligned(size: int) -> Array:
    """Zeroed bytes at an address that is a multiple of 64."""
    raw = np.zeros(size + ALIGN, np.uint8)
    at = -raw.ctypes.data % ALIGN
    return raw[at:at + size]


def _bytes(c: CellRow) -> int:
    return math.prod(c.shape) * dtype(c.type).bytes


def _cell(block: Array, c: CellRow) -> Array:
    """The array of a cell, in its block of bytes."""
    return block[c.offset:c.offset + _bytes(c)].view(dtype(c.type).numpy).reshape(c.shape)


class _Function:
    """One C function of the build, such as NAME_step, that takes arrays.

    The types and shapes of the last batch are kept: a batch with the same ones is not checked.
    """

    def __init__(self, model: TrainModel, part: str, row: ProgramRow) -> None:
        self.model, self.row = model, row
        name, self.function = model.row.name, f"{model.row.name}_{part}"
        try:
            self.call = getattr(model.library, f"{name}_{part}")
            self.size = getattr(model.library, f"{name}_{part}_arena_bytes")
        except AttributeError as error:
            raise InputError("GT2203", f"cannot load the library: {error}") from error
        self.size.restype = ctypes.c_size_t
        self.table = dim_table(row.dims) | {
            s.name: symbol(s.name, s.min, s.max) for s in row.sizes}
        self.inputs = [(p, self.shape(p)) for p in row.inputs if p.name not in model.cells]
        self.outputs = [(p, self.shape(p)) for p in row.outputs if p.name not in model.cells]
        names = {s.name for _, shape in self.outputs for d in shape for s in symbols(d)}
        # the sizes that the function computes and its results have
        self.computed_sizes = [s.name for s in row.sizes if s.name in names]
        self.kinds = {p.name: np.dtype(dtype(p.type).numpy) for p, _ in self.inputs}
        # how C takes a scalar: 16-bit floats as their bits
        self.passed = {p.name: np.dtype(np.uint16) if dtype(p.type).bits == 16 and dtype(
            p.type).is_float else self.kinds[p.name] for p, _ in self.inputs}
        pointer = ctypes.c_void_p
        self.call.argtypes = [
            pointer, pointer, *[ctypes.c_int64] * len(row.dims),
            *(pointer if shape else np.ctypeslib.as_ctypes_type(self.passed[p.name])
              for p, shape in self.inputs),
            *[pointer] * (len(self.outputs) + len(self.computed_sizes)), ctypes.c_int]
        self.seen: Seen | None = None
        self.sizes: tuple[int, ...] = ()
        self.result_types: list[tuple[tuple[int, ...], np.dtype[Any]]] = []

    def shape(self, p: PortRow) -> tuple[Dim, ...]:
        return self.sized(p.shape)

    def sized(self, dims: Sequence[int | str]) -> tuple[Dim, ...]:
        """The sizes of a row of build.json."""
        return tuple(d if isinstance(d, int) else parse(d, self.table) for d in dims)

    def __call__(self, batch: Mapping[str, Array], lr: float | None = None) -> list[Array]:
        arrays = self.quick(batch)
        if arrays is None:
            arrays = self.checked(batch)
        results = [np.empty(shape, kind) for shape, kind in self.result_types]
        counts = np.zeros(len(self.computed_sizes), np.int64)
        at = iter(arrays)
        inputs = [address(next(at)) if shape else self.scalar(p, lr if p.name == "lr" else next(at))
                  for p, shape in self.inputs]
        model = self.model
        model.settle()
        if status := self.call(model.block_at, model.arena_at, *self.sizes, *inputs,
                               *map(address, results),
                               *(address(counts) + i * counts.itemsize for i in range(len(counts))),
                               model.threads):
            raise complaint(model.library, self.function, status)
        return self.cut(results, dict(zip(self.computed_sizes, counts.tolist(), strict=True)))

    def scalar(self, p: PortRow, x: Any) -> Any:
        """A scalar operand as C takes it."""
        return np.asarray(x, self.kinds[p.name]).view(self.passed[p.name]).item()

    def cut(self, results: list[Array], counts: Mapping[str, int]) -> list[Array]:
        """The results; those with computed sizes are cut to them."""
        if not counts:
            return results
        sizes = dict(zip((d.name for d in self.row.dims), self.sizes, strict=True)) | dict(counts)
        out = []
        for (_, shape), a in zip(self.outputs, results, strict=True):
            extents = numbers(shape, sizes)
            out.append(a.reshape(-1)[:math.prod(extents)].reshape(extents))
        return out

    def quick(self, batch: Mapping[str, Array]) -> list[Array] | None:
        """The arrays, if types and shapes are those of the last batch; else None."""
        return None if self.seen is None else as_before(self.seen, batch)

    def checked(self, batch: Mapping[str, Array]) -> list[Array]:
        """The arrays, checked and contiguous; sets sizes, results and arena for them."""
        self.seen = None
        arrays = {p.name: self.fitted(p, shape, batch) for p, shape in self.inputs
                  if p.name != "lr"}
        sizes = self.bound(arrays)
        self.sizes = tuple(sizes[d.name] for d in self.row.dims)
        self.result_types = [(numbers(shape if p.room is None else self.sized((p.room,)), sizes),
                      dtype(p.type).numpy) for p, shape in self.outputs]
        self.seen = [(n, a.dtype, a.shape) for n, a in arrays.items()]
        return list(arrays.values())

    def fitted(self, p: PortRow, shape: tuple[Dim, ...], batch: Mapping[str, Array]) -> Array:
        if p.name not in batch:
            raise InputError("GT2210", f"the input {p.name!r} is missing",
                             hint=f"the data are {listed(self.model.data)}")
        a = batch[p.name]
        if a.dtype != dtype(p.type).numpy:
            raise InputError("GT2212", f"{p.name} is {a.dtype}, {dtype(p.type).name} expected")
        if len(a.shape) != len(shape) or any(isinstance(d, int) and d != n
                                             for d, n in zip(shape, a.shape, strict=True)):
            raise InputError("GT2213", f"{p.name} has the shape {list(a.shape)}, "
                                       f"[{','.join(map(str, p.shape))}] expected")
        return np.require(a, requirements=("C", "A"))

    def bound(self, arrays: Mapping[str, Array]) -> dict[str, int]:
        """The value of each symbolic size in this batch; the arena is made large enough."""
        bound: dict[str, Dim] = {}
        rows = [(p, d, n) for p, shape in self.inputs if p.name in arrays
                for d, n in zip(shape, arrays[p.name].shape, strict=False)]
        bind(((d, n) for _, d, n in rows), bound)
        sizes = {name: n for name, n in bound.items() if isinstance(n, int)}
        for name in sizes:
            if others := {n for _, d, n in rows if d == self.table[name]} - {sizes[name]}:
                raise InputError("GT2214", f"{name} would be both {sizes[name]} and {min(others)}")
        require(self.row.dims, self.row.requires, sizes)
        for p, d, n in rows:
            if substitute(d, sizes) != n:
                raise InputError("GT2213", f"{p.name} has the shape {list(arrays[p.name].shape)}, "
                                           f"the dimension {d} cannot be {n}")
        dims = (ctypes.c_int64 * (len(self.row.dims) + 1))(
            *(sizes[d.name] for d in self.row.dims))
        if not (need := int(self.size(dims))):
            raise InputError("GT2215", f"no arena can be as large as this batch needs: {sizes}")
        self.model.grow(need)
        return sizes
