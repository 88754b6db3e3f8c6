"""Buffers of a program apart from each other, so that a sanitizer sees what leaves one of them."""

from __future__ import annotations

from dataclasses import replace

from graphtool.loops.program import Program
from graphtool.symbolic import Dim, ceildiv

ALIGN = 64


def spread(program: Program, gap: int) -> Program:
    """The program with a gap of so many bytes behind each buffer of the arena and the weights."""
    ends: dict[str, Dim] = {"arena": 0, "weight": 0}
    buffers = []
    for b in program.buffers:
        if b.space in ends:
            b = replace(b, offset=ends[b.space])
            ends[b.space] = ends[b.space] + ceildiv(b.bytes_of(b.size), ALIGN) * ALIGN + gap
        buffers.append(b)
    return replace(program, buffers=tuple(buffers), arena=ends["arena"])
