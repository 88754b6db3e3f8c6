"""Several programs over one file of weights: equal arrays are in it once, by their hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from graphtool.io.weights import Weight, layout
from graphtool.loops.program import Program
from graphtool.native.build import weights_of


def common(programs: Iterable[Program], store: Mapping[str, Weight]) -> list[Weight]:
    """All weights of the programs, equal ones once, in the order of their hashes.

    Raises InputError GT2111, GT2115 as `weights_of` does.
    """
    held = {w.digest: w for p in programs for w in weights_of(p, store)}
    return [held[d] for d in sorted(held)]


def placed(program: Program, held: list[Weight]) -> Program:
    """The program with its weights where a file of these weights has them."""
    at, _ = layout(held)
    digest = dict(program.weights)
    return replace(program, buffers=tuple(
        replace(b, offset=at[digest[b.name]]) if b.name in digest else b
        for b in program.buffers))


def shared_bytes(programs: Iterable[Program], held: list[Weight]) -> int:
    """The bytes of the weights that more than one of the programs reads."""
    readers = [{d for _, d in p.weights} for p in programs]
    return sum(w.nbytes for w in held if sum(w.digest in r for r in readers) > 1)
