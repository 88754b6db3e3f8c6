"""The page of targets: the rows of the table."""

from __future__ import annotations

from docs.generators.markdown import code, table, whole
from graphtool.machines import table as known_machines
from graphtool.target import TABLE


def page() -> str:
    """One row a target."""
    rows = [(code(name), t.title, ", ".join(map(code, t.aliases)), str(t.lanes),
             f"{t.mr} × {t.nr}", _size(t.l1), _size(t.l2), _size(t.l3),
             " / ".join(f"{b:g}" for b in t.bandwidth)) for name, t in TABLE.items() if not t.grid]
    devices = [(code(name), t.title, str(t.multiprocessors), f"{t.roof['gbps']:g}",
                *(f"{t.roof[kind] / 1000:g}" for kind in ("f32", "tf32", "bf16", "int8")))
               for name, t in TABLE.items() if t.grid]
    machines = [(code(m.name), m.title, code(m.isa), f"{m.f32:g}",
                 ", ".join(f"{kind} {rate:g}" for kind, rate in m.rates.items()),
                 " / ".join(f"{b:g}" for b in m.gbps), m.source)
                for m in known_machines().values()]
    return whole("Targets", (
        "`build --march NAME` takes one of these, `native` (this machine, with the caches that it "
        "reports) or `fat` (all levels of x86-64 in one library). A row says for what kernels are "
        "chosen: float32 lanes of a vector, the tile of accumulators that fits the registers, "
        "caches, and bandwidth. `graphtool.target.register(Target(...))` adds a row. Caches and "
        "bandwidth only decide between kernels; the C is correct on any machine with the "
        "instruction set."),
        table(("target", "machine", "also called", "lanes", "tile, rows × columns", "L1", "L2",
               "L3", "GB/s of a core: L1 / L2 / L3 / memory"), rows), (
            "## Devices\n\nFor a GPU, tiles and slices of the depth are chosen by the number of "
            "its multiprocessors, and `profile` compares kernels with its bandwidth and its tera-"
            "operations a second, of dense matrices. All are from public data sheets: of the A100 "
            "of 80 GB, the Jetson AGX Orin of 64 GB, the H100 SXM and the RTX 5090. A build for "
            "`cuda` chooses as for an A100, so a Jetson is better served by `sm_87`. The figures "
            "of `opencl` are nominal, since OpenCL does not say what a device can do. How many "
            "cores the machine has that builds does not count.\n"),
        table(("target", "device", "multiprocessors", "GB/s", "float32", "tf32", "bf16", "int8"),
              devices), (
            "## Machines\n\nOf one instruction set there are machines of many kinds. Where the "
            "processor is known by its vendor, family and model, `native` takes the figures of its "
            "row here, and the target's own (`generic`) elsewhere; `--machine ROW` of build, tune "
            "and opt takes another row, or a file that `graphtool machine -o row.json` measured. "
            "`build.json` says which. A rate is a multiple of float32's: bf16 and int8 are dot "
            "products of pairs and of four, tile_bf16 and tile_int8 a matrix unit's. The last "
            "bandwidth is that of 64 MB, the weights of a network. A build measures nothing.\n"),
        table(("machine", "title", "target", "float32, GFLOP/s of a core", "rates",
               "GB/s of a core: L1 / L2 / L3 / 64 MB", "source"), machines))


def _size(n: int) -> str:
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n >> 10} KiB"
