"""The processes of one training run, joined by the compiled library; or this process alone."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool.errors import UsageError

# what the launchers of Open MPI, MPICH and Slurm tell those they start
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE")


@dataclass(frozen=True)
class Processes:
    """The number of this process among `size` processes."""

    rank: int = 0
    size: int = 1
    library: ctypes.CDLL | None = None
    name: str = ""

    def sums(self, values: Sequence[float]) -> list[float]:
        """The sums over all processes, the same in each of them."""
        if self.library is None:
            return list(values)
        block = (ctypes.c_double * len(values))(*values)
        getattr(self.library, f"{self.name}_sum")(block, len(values))
        return list(block)

    def share(self, block: np.ndarray[Any, Any]) -> None:
        """Copies this array of the first process to every process."""
        if self.library is not None:
            getattr(self.library, f"{self.name}_share")(
                ctypes.c_void_p(block.ctypes.data), ctypes.c_size_t(block.nbytes))

    def meet(self) -> None:
        """Wait until every process is here."""
        self.sums([0.0])

    def leave(self) -> None:
        """The last call of a process whose work went well. One that fails just ends: the launcher
        sees it end without this, and takes the others down."""
        if self.library is not None:
            getattr(self.library, f"{self.name}_leave")(0)


def join(library: ctypes.CDLL, name: str, distributed: bool) -> Processes:
    """Raises UsageError GT3081 where a launcher started several that know nothing of each other."""
    if distributed:
        rank = ctypes.c_int()
        size = int(getattr(library, f"{name}_join")(ctypes.byref(rank)))
        return Processes(rank.value, size, library, name)
    if any(os.environ.get(n, "1") not in ("", "1") for n in _LAUNCHED):
        raise UsageError("GT3081", "several processes were started, but the build exchanges "
                                   "nothing", hint="graphtool build --mpi")
    return Processes()
