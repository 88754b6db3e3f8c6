"""A call of a model with its arrays fixed: it checks nothing, so that tiny models gain by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Bound:
    """`call()` runs the model on the arrays that `Model.bind` was given, and returns its outputs by
    name: the same arrays each time, but for sizes that only the run computes.

    It has an arena of its own, so that bound calls of one model may run at the same time; a single
    one only in one thread at a time. Raises InputError as `Model.run` does for what a run finds.
    """

    __slots__ = ("_copies", "_failed", "_run", "_shaped", "outputs")

    def __init__(self, run: Callable[[], int], outputs: dict[str, Array],
                 copies: Sequence[tuple[Array, Array]], failed: Callable[[int], None],
                 shaped: Callable[[], dict[str, Array]] | None) -> None:
        """`run` returns the status of the C function; `copies` are pairs of a donated output and
        the input that it starts from, where that is not the same array."""
        self._run, self.outputs, self._copies = run, outputs, tuple(copies)
        self._failed, self._shaped = failed, shaped

    def __call__(self) -> dict[str, Array]:
        if self._copies:
            for result, start in self._copies:
                result[...] = start
        if status := self._run():
            self._failed(status)
        return self.outputs if self._shaped is None else self._shaped()
