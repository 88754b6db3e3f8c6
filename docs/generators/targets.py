"""The page of targets: the rows of the table."""

from __future__ import annotations

from docs.generators.markdown import code, table, whole
from graphtool.target import TABLE


def page() -> str:
    """One row a target."""
    rows = [(code(name), t.title, ", ".join(map(code, t.aliases)), str(t.lanes),
             f"{t.mr} × {t.nr}", _size(t.l1), _size(t.l2), _size(t.l3),
             " / ".join(f"{b:g}" for b in t.bandwidth)) for name, t in TABLE.items()]
    return whole("Targets", (
        "`build --march NAME` takes one of these, `native` (this machine, with the caches that it "
        "reports) or `fat` (all levels of x86-64 in one library). A row says for what kernels are "
        "chosen: float32 lanes of a vector, the tile of accumulators that fits the registers, "
        "caches, and bandwidth. `graphtool.target.register(Target(...))` adds a row. Caches and "
        "bandwidth only decide between kernels; the C is correct on any machine with the "
        "instruction set."),
        table(("target", "machine", "also called", "lanes", "tile, rows × columns", "L1", "L2",
               "L3", "GB/s of a core: L1 / L2 / L3 / memory"), rows))


def _size(n: int) -> str:
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n >> 10} KiB"
