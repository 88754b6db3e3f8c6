"""One library for a family of targets: a model compiled once for each; the version is chosen at
load time.

The weights file has the packed weights of all levels, equal arrays once; a machine maps only what
it uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path

from graphtool.emit.c import emit, public_files
from graphtool.emit.headers import used_headers
from graphtool.emit.interface import header
from graphtool.emit.levels import dispatcher
from graphtool.io.weights import Weight, layout
from graphtool.loops.program import Program
from graphtool.native.blas import linking
from graphtool.native.build import Job, Options, check_options, make, parts_of
from graphtool.native.common_weights import common, placed
from graphtool.native.compiler import find
from graphtool.symbolic import maximum
from graphtool.target import X86_64, Levels, family


def build_fat(lowered: Mapping[int, Program], out_dir: Path, *, name: str,
              store: Mapping[str, Weight], cc: str | None = None, jobs: int | None = None,
              exe: bool = False, static: bool = False, openmp: bool = True,
              weights: str = "file", levels: Levels = X86_64,
              nodes: Mapping[str, str] | None = None) -> Path:
    """Compile the programs of one model, by level of a family, into one build directory.

    Options and errors are those of `build`; a compiler for another machine raises GT2124.
    """
    check_options(name, weights)
    needed = common(lowered.values(), store)
    variants = {level: placed(replace(p, name=f"{name}_v{level}"), needed)
                for level, p in lowered.items()}
    best = next(iter(variants.values()))
    whole = replace(best, name=name, meta={**best.meta, "target": "fat"},
                    arena=reduce(maximum, (p.arena for p in variants.values())))
    parts = parts_of(name, needed, weights)
    targets = family(levels)
    span = f"{levels.name}, {min(targets)} to {max(targets)}"
    sources = {f"{name}.c": dispatcher(name, variants, levels.header, levels.call),
               f"{name}.h": header(whole, levels=span, built_in=bool(parts))}
    sources |= public_files(whole, 0 if parts else layout(needed)[1])
    for p in variants.values():
        sources |= emit(p, parts, owner=name, nodes=nodes)
    sources |= used_headers(sources.values())
    own = {p.name: linking(find(cc, targets[level], openmp=openmp), sources).of_class(
        p.meta.get("precision", "default"), nodes is not None) for level, p in variants.items()}
    all_of_it = linking(find(cc, targets[min(targets)], openmp=openmp), sources)
    job = Job(whole, sources, needed, parts, all_of_it, Options(exe, static, weights), own)
    return make(job, out_dir, jobs, levels=list(variants))
