"""The rows of build.json: what it says of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from graphtool.assume import of_numbers, strongest
from graphtool.emit.driver import parallel_work
from graphtool.emit.interface import open_sizes
from graphtool.emit.language import CALLER, language_of
from graphtool.emit.shares import is_shared, own_bytes
from graphtool.io.manifest_rows import ThreadsRow
from graphtool.io.versions import BUILD
from graphtool.io.weights import Weight, layout
from graphtool.kernels.choice.choose import added_error
from graphtool.kernels.record import assumption
from graphtool.loops.dim_names import author_text, by_author
from graphtool.loops.liveness import most_live
from graphtool.loops.program import ENDLESS, Port, Program, binds, runs
from graphtool.loops.totals import moved
from graphtool.symbolic import Dim


def describe(program: Program, held: Sequence[Weight] = ()) -> dict[str, Any]:
    """What build.json says of a program."""
    room = {program.outputs[b.slot]: b.size for b in program.buffers if b.space == "output"}
    grids = {p: program.grids[f"{kind}{i}"] for kind, ports in (
        ("input", program.inputs), ("output", program.outputs))
        for i, p in enumerate(ports) if f"{kind}{i}" in program.grids}
    kernels = {k.name: k for k in program.kernels}
    buffers = {b.name: b for b in program.buffers}
    dims = frozenset(s.name for s in program.dims)

    def port(p: Port) -> dict[str, Any]:
        row: dict[str, Any] = {"name": p.name, "type": p.dtype.short,
                               "shape": [_size(d) for d in p.shape]}
        row |= {"below": [_size(d) for d in p.below]} if p.below else {}
        row |= {"scale": grids[p][0], "zero": grids[p][1]} if p in grids else {}
        return row | {"room": _size(room[p])} if p in room and open_sizes(program, p) else row
    assumed = [assumption(s.choice, kernels[s.kernel]) for s in runs(program.steps)]
    return {
        **BUILD.head, "name": program.name,
        "target": program.meta.get("target", ""), "machine": program.meta.get("machine", ""),
        "header": f"{program.name}.h",
        "weights": f"{program.name}.safetensors",
        "weights_bytes": layout(held)[1], "arena": _size(program.arena),
        "live": most_live(program), "threads": asdict(threads_of(program)),
        "inputs": [port(p) for p in program.inputs],
        "outputs": [port(p) for p in program.outputs],
        "dims": [{"name": by_author(s.name), "min": s.lo or 0, "max": s.hi}
                 | ({"step": s.step, "offset": s.offset} if s.step > 1 else {})
                 for s in program.dims],
        "requires": [[_size(e.left), _size(e.right)] for e in program.requires],
        "sizes": [{"name": by_author(b.size.name), "min": b.size.lo, "max": b.size.hi,
                   "most": None if b.most == ENDLESS else _size(b.most)}
                  for b in binds(program.steps)],
        "donations": list(program.donations),
        "steps": [{"kernel": s.kernel, "label": s.label, "where": s.where, "flops": _size(s.flops),
                   "barrier": s.barrier, "serial": kernels[s.kernel].serial,
                   "choice": s.choice and asdict(s.choice),
                   "error": added_error(s.choice), "assumes": assumes,
                   "bytes": _size(moved(s, kernels[s.kernel], buffers, dims))}
                  for s, assumes in zip(runs(program.steps), assumed, strict=True)],
        "precision": program.meta.get("precision", "default"),
        "assumes": "normal" if program.meta.get("assume") == "normal" else strongest(
            (*assumed, *of_numbers(program.assumes))),
        "assumed": [asdict(r) | {"values": [*r.values]} for r in program.assumes],
        "device": language_of(program).name if language_of(program).device else "",
        "index_checks": program.meta.get("index_checks", "off") == "on"}


def threads_of(program: Program) -> ThreadsRow:
    """By which figures the library decides how many threads a run gets, and what each needs."""
    work, least = parallel_work(program)
    by, alone = program.meta.get("threads", "pool"), program.threads == 1 or not is_shared(program)
    most, memory = (1, 0) if alone else (program.threads, own_bytes(program))
    return ThreadsRow(1 if by == CALLER else most, _size(work), least, _size(memory), by)


def _size(d: Dim) -> int | str:
    return d if isinstance(d, int) else author_text(d)
