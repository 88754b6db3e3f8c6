"""`show BUILD`: the manifest of a build in short, its functions, its kernels and its files."""

from __future__ import annotations

import re
from pathlib import Path

from graphtool.errors import InputError
from graphtool.io import files
from graphtool.io.entry_points import chosen, names
from graphtool.io.manifest_rows import DimRow, Manifest, PortRow, StepRow
from graphtool.report.sizes import human
from graphtool.report.table import Column
from graphtool.symbolic.text import name_text

_FUNCTION = re.compile(r"^[a-z][\w ]*[ *](\w+)\([^;{]*\);", re.MULTILINE)


def build_lines(m: Manifest, build_dir: Path) -> list[str]:
    """The facts of a build, one a line; sizes of its files are those on disk."""
    kind = "training" if m.training else "inference"
    out = [f"build {m.name}: {kind}, for {m.target or 'this machine'}"
           + (f", by the figures of {m.machine}" if m.machine not in ("", "generic") else "")
           + (f", levels {', '.join(map(str, m.levels))} of x86-64" if m.levels else ""),
           f"compiler     {m.compiler}", f"flags        {' '.join(m.flags)}",
           f"precision    {m.precision}, assumes {_assumed(m.assumes)}, "
           f"{'with' if m.index_checks else 'without'} checks of indices"]
    for one in interfaces(m):
        out += [f"entry point  {one.entry}"] if m.entry else []
        out += [f"dim          {dim_text(d)}" for d in one.dims]
        out += [f"input        {port_text(p)}" for p in one.inputs]
        out += [f"output       {port_text(p)}" for p in one.outputs]
        out += [_arena(one)] if m.entry else []
    if m.training is not None:
        out.append(f"training     {m.training.loss}, {m.training.optimizer}, learning rate "
                   f"{m.training.lr:g}, {len(m.training.state)} arrays of state "
                   f"({human(m.training.state_bytes, 'B')})")
    headers = [f"{one.name}.h" for one in interfaces(m)] if m.entry else []
    found = [f for h in (*headers, m.header) for f in functions(build_dir / h)]
    out += [f"functions    {', '.join(found)}", *([] if m.entry else [_arena(m)]),
            f"weights      {human(m.weights_bytes, 'B')}, {_WEIGHTS[m.weights_mode]}"]
    if m.threads is not None:
        out.append(f"threads      at most {m.threads.most}")
    return [*out, f"files        {', '.join(_files(m, build_dir))}"]


def interfaces(m: Manifest) -> list[Manifest]:
    """The manifest as each of the entry points has it; the manifest alone if there are none."""
    return [chosen(m, entry) for entry in names(m)] or [m]


def _arena(m: Manifest) -> str:
    return (f"arena        {human(m.arena, 'B')}"
            + (f", of which {human(m.live, 'B')} live at once" if m.live is not None else ""))


_WEIGHTS = {"file": "in a file", "embed": "in the library", "c": "in the C"}


def _assumed(word: str) -> str:
    return word if word == "nothing" else f"{word} numbers"


def port_text(p: PortRow) -> str:
    """An input or output, such as `x: f32[batch,3]`."""
    return f"{p.name}: {p.type}[{','.join(map(str, p.shape))}]"


def dim_text(d: DimRow) -> str:
    """An open dim with its bounds, such as `batch: 1..64 step 8`."""
    step = f" step {d.step}" if d.step > 1 else ""
    return f"{name_text(d.name)}: {d.min}..{'' if d.max is None else d.max}{step}"


def functions(header: Path) -> list[str]:
    """The functions that a header declares, in its order. Raises InputError GT0332."""
    text = re.sub(r"/\*.*?\*/|^#.*?$", "", files.read_bytes(header).decode(errors="replace"),
                  flags=re.DOTALL | re.MULTILINE)
    return _FUNCTION.findall(text)


def _files(m: Manifest, build_dir: Path) -> list[str]:
    named = dict.fromkeys(("build.json", *sorted(m.files)))
    return [f"{name} ({_size(build_dir / name)})" for name in named]


def _size(path: Path) -> str:
    try:
        return human(path.stat().st_size, "B")
    except OSError:
        return "missing"


STEPS: tuple[Column[StepRow], ...] = (
    Column("kernel"),
    Column("plan", lambda s: next(iter(s.choice.us)) if s.choice is not None else ""),
    Column("FLOPs", lambda s: human(s.flops)), Column("bytes", lambda s: human(s.bytes, "B")),
    Column("what", "label"), Column("at", "where"))


def kept_graph(build_dir: Path) -> Path:
    """The optimised graph in a build that was made with --keep. Raises InputError GT0338 if there
    is none."""
    kept = kept_graphs(build_dir)
    if not kept:
        raise InputError("GT0338", "a graph is wanted, and this is a build without its graphs",
                         where=str(build_dir), hint="build it with --keep, or name the graph that "
                                                    "`graphtool opt` made")
    return kept[-1]


def kept_graphs(build_dir: Path) -> list[Path]:
    """The graphs of a build's stages, in order; none if it was made without --keep."""
    return sorted(build_dir.glob("stages/*-*.graph.json"), key=lambda p: int(p.name.split("-")[0]))
