"""Which workers run a kernel: several together for each iteration of a divided loop, or one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphtool.emit.language import Language
from graphtool.emit.small_indices import fits_kernel
from graphtool.loops.ir import For, Stmt
from graphtool.loops.program import Kernel
from graphtool.loops.walk import bodies
from graphtool.loops.walk import statements as walked
from graphtool.symbolic import bounds

_SHORT = 1024  # the most iterations for which a small team is enough


def is_outer(s: Stmt) -> bool:
    """Whether a loop that is divided has loops inside, which are not."""
    return isinstance(s, For) and s.mode == "parallel" and any(isinstance(x, For) for x in s.body)


def is_for_a_team(s: Stmt) -> bool:
    """Whether several workers can run an iteration of a divided loop together."""
    inside = walked(bodies(s)[0]) if is_outer(s) else ()
    return any(isinstance(x, For) and x.mode == "simd" for x in inside)


def language_of_kernel(language: Language, kernel: Kernel) -> Language:
    """The language with the workers of this kernel, and the type of its indices."""
    if language.small and fits_kernel(kernel):
        language = replace(language, size=language.small)
    narrow, first = language.workers.narrow, kernel.body[0]
    if narrow is None or kernel.serial or len(kernel.body) != 1 or not is_for_a_team(first):
        return language
    assert isinstance(first, For)
    return replace(language, workers=narrow) if _iterations(first.body) <= _SHORT else language


def _iterations(body: Sequence[Stmt]) -> int:
    """The most iterations of a loop among the statements, with those of the loops inside."""
    most = 1
    for s in body:
        if isinstance(s, For):
            size = bounds(s.extent)[1]
            most = max(most, _SHORT + 1 if size is None else size * _iterations(s.body))
    return most
