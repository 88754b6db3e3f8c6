"""collective.h: one half of an exchange between all processes: its start, or the wait for its
end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from graphtool import dtypes
from graphtool.kernels.kit import (
    Area, Contract, Instance, Lowered, Macro, MacroValue, Numbers, Pointer, Record, Use,
    anywhere, flags, literals, register, sizes, word)
from graphtool.ops.collective import FLAT

WAIT, RANK = len(FLAT), len(FLAT) + 1
MPI = {dtypes.float32.short: "MPI_FLOAT", dtypes.float64.short: "MPI_DOUBLE",
       dtypes.int32.short: "MPI_INT32_T", dtypes.int64.short: "MPI_INT64_T"}
MACROS = (
    *literals(KIND=f"the place in {', '.join(FLAT)}; after these come wait and the process's own "
                   f"rank",
              PROCESSES="the number of processes for gather and scatter"),
    *flags(NOW="the start also waits for the end"), *sizes(COUNT="elements of one process"),
    Macro("TYPE", "type", "the element type"), word("MPI_TYPE", "its MPI name", MPI))
POINTERS = (Pointer("X", "the data to send", required=False),
            Pointer("Y", "memory for the result", writes=True),
            Pointer("TICKET", "the state that the start passes to the wait", required=False))


def meaning(t: Instance) -> None:
    """With one process, the result is its own operand."""
    kind, n = t.sizes("KIND COUNT")
    if kind == RANK:
        t.pointer("Y")[0] = 0
        return
    if kind < WAIT:
        t.pointer("TICKET")[0] = 0
    t.store("Y", t.array("X", (n,)))


def touches(t: Numbers) -> Iterator[Area]:
    """What the C touches."""
    kind, count, of, processes = t.sizes("KIND COUNT TYPE PROCESSES")
    t.need(0 <= kind <= RANK and processes >= 1 and t.get("MPI_TYPE") == of.short,
           "a KIND of exchange, and the type's MPI name")
    gather, scatter = (FLAT.index(k) for k in ("gather", "scatter"))
    yield Area("Y", (count * (processes if kind == gather else 1) if kind < RANK else 1,), dtype=of)
    if kind < RANK:
        t.need(t.has("X") and t.has("TICKET"), "data and a ticket")
        yield Area("X", (count * (processes if kind == scatter else 1),), dtype=of)
        yield Area("TICKET", (1,), dtype=dtypes.int64, writes=kind < WAIT)


def lower(use: Use, begin: bool) -> Lowered:
    """The first half of an exchange, or the second. If the result has the memory of its operand,
    the reduction happens in place."""
    x, y = use.view(0 if begin else 1), use.result()
    ticket = use.result(1) if begin else use.view(2)
    assert y is not None and ticket is not None
    kind = FLAT.index(use.node.attrs["kind"]) if begin else WAIT
    macros: dict[str, MacroValue] = {
        "KIND": kind, "PROCESSES": use.node.attrs["size"] if begin else 1,
        "NOW": begin and use.node.attrs["now"],
        "COUNT": y.shape[0] if kind == FLAT.index("scatter") else x.shape[0],
        "TYPE": x.dtype, "MPI_TYPE": x.dtype.short}
    pointers = {"X": (x.buffer, x.offset), "Y": (y.buffer, y.offset),
                "TICKET": (ticket.buffer, ticket.offset)}
    return Lowered(use.template("collective", macros, pointers, None, () if begin else (
        use.view(0),), ("TICKET",) if begin else ()), 0)


def rank(use: Use) -> Lowered:
    """The kernel that stores the rank of this process."""
    y = use.result()
    assert y is not None
    macros: dict[str, MacroValue] = {"KIND": RANK, "PROCESSES": 1, "NOW": False, "COUNT": 1,
                                     "TYPE": y.dtype, "MPI_TYPE": y.dtype.short}
    return Lowered(use.template("collective", macros, {"Y": (y.buffer, y.offset)}), 0)


register(Record(
    Contract("collective", "half of an exchange between processes", MACROS, POINTERS, meaning,
             touches=touches),
    {"collective_begin": partial(lower, begin=True), "collective_end": partial(lower, begin=False),
     "process_rank": rank}, anywhere))
