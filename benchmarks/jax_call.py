"""A function that was exported for JAX: how it is kept in a folder, and called with its weights.

Apart from jax_graph.py, so that what runs it has no compiler of graphs in its memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np

Array = np.ndarray[Any, Any]


def write(folder: Path, code: bytes, weights: list[Array]) -> None:
    (folder / "model.stablehlo").write_bytes(code)
    np.savez(folder / "weights.npz", *weights)


def loaded(folder: Path, inputs: list[Array]) -> Callable[[], list[Any]]:
    """A function that does one inference on these inputs and waits for it."""
    function = jax.export.deserialize(bytearray((folder / "model.stablehlo").read_bytes())).call
    with np.load(folder / "weights.npz") as stored:
        weights = [jax.device_put(stored[name]) for name in stored.files]
    arguments = weights, *(jax.device_put(narrow(x)) for x in inputs)
    run = jax.jit(function).lower(*arguments).compile()
    return lambda: jax.block_until_ready(run(*arguments))


def narrow(x: Array) -> Array:
    """Integers of 64 bits are of 32 in JAX."""
    return x.astype(np.int32) if x.dtype == np.int64 else x
