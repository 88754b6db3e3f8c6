"""The machines for which C is emitted: the record of one, the table, the choice of a row."""

from graphtool.target.choice import (
    detect,
    family,
    for_threads,
    named,
    on_machine,
    recognised,
    recognised_here,
    usual_machine,
)
from graphtool.target.record import (
    TABLE,
    Flags,
    Levels,
    Target,
    isa,
    register,
    spelled,
    tile_rows,
)
from graphtool.target.rows import X86_64

__all__ = ["TABLE", "X86_64", "Flags", "Levels", "Target", "detect", "family",
           "for_threads", "isa", "named", "on_machine", "recognised", "recognised_here",
           "register", "spelled", "tile_rows", "usual_machine"]
