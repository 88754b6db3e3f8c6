"""Limits of an evaluation in this process: its time, and the bytes of its largest array."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graphtool.analysis import made_up
from graphtool.errors import InputError
from graphtool.importers.limits import Limits
from graphtool.ir.graph import Module, Value
from graphtool.ir.run_sizes import all_nodes
from graphtool.ops.costs import nbytes
from graphtool.symbolic import substitute


@contextmanager
def deadline(seconds: int, what: str) -> Iterator[None]:
    """Stop the block after some seconds, with InputError GT3045.

    Only the main thread can be stopped; in another thread the block runs to its end.
    """
    if threading.current_thread() is not threading.main_thread() or not seconds:
        yield
        return
    late = threading.Event()

    def interrupt() -> None:
        late.set()
        _thread.interrupt_main()

    def interrupted(number: int, frame: Any) -> None:
        if late.is_set():
            raise InputError("GT3045", f"{what} did not finish: it took more than {seconds} "
                                       "seconds", hint="if that is meant: --limit seconds=NUMBER")
        if callable(before):
            before(number, frame)
    timer, before = threading.Timer(seconds, interrupt), signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, interrupted)
    try:
        timer.start()
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)


def check_sizes(module: Module, limits: Limits) -> None:
    """Check that no array is larger than allowed at the sizes of made-up inputs.

    Sizes that the run computes are not known here, and not checked. Raises InputError GT1022.
    """
    sizes = made_up.made_up_sizes(module)
    values = [*module.graph.inputs, *(v for n in all_nodes(module.graph) for v in n.outputs)]
    for v in values:
        _check(v, sizes, limits)


def _check(v: Value, sizes: dict[str, Any], limits: Limits) -> None:
    size = substitute(nbytes(v.type), sizes)
    if isinstance(size, int):
        limits.check_bytes(size, f"{v.hint or 'a value'}: {v.type}", f"node {v.hint}")
