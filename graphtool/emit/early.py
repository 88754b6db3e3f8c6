"""Constants that a kernel asks for while the kernels before it still run."""

from __future__ import annotations

from collections.abc import Mapping

from graphtool.loops.ir import Template
from graphtool.loops.program import Buffer, Program, runs
from graphtool.loops.walk import statements

# Bytes of one constant. Several kernels can wait at once, and what they asked for has to stay in
# the second cache: an RTX 50 has 24 MB or more.
_MOST = 4 << 20
_LOOPS = 64 << 10  # of a larger constant, loops may read a few rows only


def constants(program: Program) -> dict[str, Mapping[str, int]]:
    """By kernel, the parameters that are weights in each of its runs, and how many bytes of each
    it asks for. Inputs are not among them, nor the state of a training step: a kernel may have
    just written it."""
    buffers = {b.name: b for b in program.buffers}
    passed: dict[str, list[list[int]]] = {k.name: [] for k in program.kernels}
    for run in runs(program.steps):
        passed[run.kernel].append([_bytes(buffers[name]) for name in run.args])
    out = dict[str, Mapping[str, int]]()
    for k in program.kernels:
        operands = {buffer for s in statements(k.body) if isinstance(s, Template)
                    for _, buffer, _ in s.pointers}
        least = map(min, zip(*passed[k.name], strict=True))
        out[k.name] = {p.name: min(size, _MOST) for p, size in zip(k.params, least, strict=True)
                       if size and (p.name in operands or size <= _LOOPS)}
    return out


def _bytes(b: Buffer) -> int:
    """The bytes of a weight; 0 of all else."""
    size = b.bytes_of(b.size) if b.space == "weight" else 0
    return size if isinstance(size, int) else 0
