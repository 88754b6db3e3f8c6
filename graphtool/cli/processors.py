"""Notes about what a run or a measurement gets of the machine: fewer threads than there is work
for, or processors that other programs use.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from graphtool.cli import terminal

if TYPE_CHECKING:
    from graphtool.io.manifest_rows import Manifest


def note_of_threads(m: Manifest, threads: int | None) -> None:
    """A note if a run uses fewer threads than it has work for, and why; `threads` is the number
    that the user asks for, None if this is left open."""
    from graphtool.machines import cores
    if why := shortage(m, threads, cores(), os.cpu_count() or 1):
        terminal.note(why)


def shortage(m: Manifest, threads: int | None, allowed: int, processors: int) -> str:
    """Why a run uses fewer threads than it has work for; empty if it does not.

    The process may use so many of the machine's processors as are `allowed`.
    """
    if m.device or m.threads is None or all(s.serial for s in m.steps):
        return ""
    work, least, most = m.threads.work, m.threads.least, m.threads.most
    worth = 1 + work // least if isinstance(work, int) else processors + (threads or 0)
    wanted = min(worth, threads or allowed)
    if wanted > most:
        remedy = (f"build it without --threads-by {m.threads.by}" if m.threads.by != "pool" else
                  f"build it with --threads {wanted}, or without --threads, to use all")
        return f"this build uses {most} of {wanted} threads: {remedy}"
    if threads is not None and wanted > allowed:
        return (f"{wanted} threads share {_counted(allowed)}: the process may use no more, by its "
                f"affinity or by a quota" if allowed < processors else
                f"{wanted} threads share the {_counted(allowed)} of this machine")
    could = min(worth, most, processors)
    if threads is None and could > allowed:
        return (f"the run uses {_counted(allowed)} of the machine's {processors}: the process may "
                f"use no more, by its affinity or by a quota")
    return ""


def _counted(processors: int) -> str:
    return f"{processors} processor{'s' * (processors != 1)}"


def warn_of_load(threads: int) -> None:
    """A note if other programs use the processors: threads then wait for each other at random."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    free = (os.cpu_count() or 1) - load
    if free < threads - 0.5:
        terminal.note(f"the machine is busy ({load:.1f} of {os.cpu_count()} processors): measure "
                      "on an idle one, or the results may be wrong")
