"""The private memory of one run of a loaded model: sizes, tables of addresses, the arena.

A model keeps the sessions that are not in use. A run takes one of them, or makes one, and gives it
back; so threads may run one model at the same time, and a single thread always has the same one.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from graphtool.native import memory_map
from graphtool.native.arguments import Array, Result, Seen, address

ALIGN = 64


class RunState:
    """Memory and tables of a run. `seen` and `results` say what the last inputs looked like and
    which results they gave: a run with inputs of the same kind is quick."""

    __slots__ = ("arena", "arena_at", "arguments", "dims", "held", "ins", "outs", "results",
                 "seen", "threads")

    def __init__(self, inputs: int, outputs: int, sizes: int) -> None:
        self.dims = (ctypes.c_int64 * max(sizes, 1))()
        self.ins = (ctypes.c_void_p * max(inputs, 1))()
        self.outs = (ctypes.c_void_p * max(outputs, 1))()
        self.arena: Array = np.empty(0, np.uint8)
        self.arena_at = 0
        self.threads = 0
        self.held: tuple[Any, ...] = ()
        self.arguments: tuple[Any, ...] = ()
        self.seen: Seen | None = None
        self.results: list[Result] = []

    def grow(self, need: int) -> None:
        """Make the arena as large as a run needs."""
        if need + ALIGN > self.arena.size:
            self.arena = memory_map.room(need + ALIGN)
            self.arena_at = -(-address(self.arena) // ALIGN) * ALIGN
