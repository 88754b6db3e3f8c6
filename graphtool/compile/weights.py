"""Weights of programs: in a file beside the library, or built into it; several programs over one
file have equal arrays in it once, by their hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from graphtool.dtypes import DType
from graphtool.emit.typed import definition
from graphtool.emit.weights import Part, array, divided, incbin, whole
from graphtool.errors import InputError
from graphtool.io import weights as side_files
from graphtool.io.atomic import atomic
from graphtool.io.weights import Weight, layout
from graphtool.loops.program import Program
from graphtool.loops.verify_memory import verify_data
from graphtool.symbolic import known


@dataclass(frozen=True, slots=True)
class WeightsSide:
    """The weights NAME. `mode` says whether a library reads them from NAME.safetensors (`file`),
    has them by `.incbin` (`embed`), or as arrays of C (`c`), of words, or `typed`: each weight of
    its own type."""

    name: str
    held: list[Weight]
    mode: str = "file"
    typed: bool = False

    @property
    def size(self) -> int:
        """The bytes of the weights."""
        return layout(self.held)[1]

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is built into the library."""
        at, total = layout(self.held)
        if self.mode == "embed":
            return whole(self.name, total)
        spans = ((at[w.digest], at[w.digest] + w.nbytes) for w in self.held)
        if self.mode != "c":
            return ()
        return divided(self.name, spans, 0) if self.typed else divided(self.name, spans)

    @property
    def file(self) -> str:
        """The name of the file that a library maps; "" where it maps none."""
        return f"{self.name}.safetensors" if self.mode == "file" and self.size else ""

    def write(self, work: Path) -> int:
        """Write NAME.safetensors, or NAME_weights*.c, which has the data or includes those of
        NAME_weights.bin; returns where the data start in the file."""
        side = work / f"{self.name}{'_weights.bin' if self.mode == 'embed' else '.safetensors'}"
        with atomic(side) as file:
            offset = side_files.save(self.held, file)
        for part in self.parts:
            path = work / f"{part.symbol}.c"
            if self.mode == "embed":
                path.write_bytes(incbin(part, side.name, offset, digest(side)).encode())
                continue
            with side.open("rb") as data:
                data.seek(offset + part.start)
                read = data.read(part.end - part.start)
            path.write_bytes((definition(part, self._type(part), read) if self.typed else
                            array(part, read)).encode())
        if self.mode != "file" and not (self.mode == "embed" and self.parts):
            side.unlink()
        return offset


    def _type(self, part: Part) -> DType:
        at, _ = layout(self.held)
        return next(w.dtype for w in self.held if at[w.digest] == part.start)


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def weights_of(program: Program, held: Mapping[str, Weight]) -> list[Weight]:
    """The program's weights in its order. Raises InputError GT2111, GT2115 if they are not it."""
    missing = [d for _, d in program.weights if d not in held]
    if missing:
        raise InputError("GT2111", f"{len(missing)} weights of the program are not at hand",
                         hint="keep the program's .safetensors file beside it")
    weights = [held[d] for _, d in program.weights]
    sizes = {b.name: b for b in program.buffers if b.space == "weight"}
    small = [b for (b, _), w in zip(program.weights, weights, strict=True) if b in sizes and (
        known(sizes[b].bytes_of(sizes[b].size), "<=", w.nbytes) is not True)]
    if small:
        raise InputError("GT2115", f"the weight of {small[0]} has fewer bytes than the program "
                                   f"reads", hint="lower the graph again")
    verify_data(program, held)
    at, _ = layout(weights)
    offsets = {b.name: b.offset for b in program.buffers}
    if any(offsets[b] != at[d] for b, d in program.weights):
        raise InputError("GT2115", "the weights do not lie where the program expects them",
                         hint="lower the graph again")
    return weights


def common(programs: Iterable[Program], store: Mapping[str, Weight]) -> list[Weight]:
    """All weights of the programs, equal ones once, in the order of their hashes.

    Raises InputError GT2111, GT2115 as `weights_of` does.
    """
    held = {w.digest: w for p in programs for w in weights_of(p, store)}
    return [held[d] for d in sorted(held)]


def placed(program: Program, held: list[Weight]) -> Program:
    """The program with its weights where a file of these weights has them."""
    at, _ = layout(held)
    digests = dict(program.weights)
    return replace(program, buffers=tuple(
        replace(b, offset=at[digests[b.name]]) if b.name in digests else b
        for b in program.buffers))


def shared_bytes(programs: Iterable[Program], held: list[Weight]) -> int:
    """The bytes of the weights that more than one of the programs reads."""
    readers = [{d for _, d in p.weights} for p in programs]
    return sum(w.nbytes for w in held if sum(w.digest in r for r in readers) > 1)
