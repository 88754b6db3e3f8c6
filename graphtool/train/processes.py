"""The processes of one training run, connected by the compiled library; or this process alone."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool.errors import UsageError

# environment variables that the launchers of Open MPI, MPICH and Slurm set
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE")


@dataclass(frozen=True)
class Processes:
    """The rank of this process among `size` processes."""

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
        """Copy this array of the first process to every process."""
        if self.library is not None:
            getattr(self.library, f"{self.name}_share")(
                ctypes.c_void_p(block.ctypes.data), ctypes.c_size_t(block.nbytes))

    def meet(self) -> None:
        """Wait until every process has called this."""
        self.sums([0.0])

    def leave(self) -> None:
        """End a process that succeeded; its last call.

        A process that fails ends without this call: the launcher then sees a failure, and ends the
        others.
        """
        if self.library is not None:
            getattr(self.library, f"{self.name}_leave")(0)


def join(library: ctypes.CDLL, name: str, distributed: bool) -> Processes:
    """The processes of this run. Raises UsageError GT3081 if a launcher started several
    processes that cannot communicate."""
    if distributed:
        rank = ctypes.c_int()
        size = int(getattr(library, f"{name}_join")(ctypes.byref(rank)))
        return Processes(rank.value, size, library, name)
    if any(os.environ.get(n, "1") not in ("", "1") for n in _LAUNCHED):
        raise UsageError("GT3081", "several processes were started, but the build cannot exchange "
                                   "data between them", hint="build it with graphtool build --mpi")
    return Processes()
