"""Real numbers as bytes, for the ports of models whose inputs and outputs are bytes.

A byte q stands for the real number (q - zero)·scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Grids = Mapping[str, tuple[float, int]]  # the scale and the zero point by the name of a port
NO_GRIDS: Grids = {}


def as_bytes(x: Array, scale: float, zero: int, kind: Any) -> Array:
    """The bytes of type `kind` nearest to real numbers; other arrays than floats stay as they are.

    NaN becomes the zero point.
    """
    if x.dtype.kind != "f":
        return x
    info = np.iinfo(kind)
    steps = np.rint(np.nan_to_num(x.astype(np.float32), posinf=np.inf, neginf=-np.inf)
                    / np.float32(scale)) + zero
    return np.asarray(np.clip(steps, info.min, info.max).astype(kind))


def as_reals(arrays: Mapping[str, Array], grids: Grids) -> dict[str, Array]:
    """The arrays, with real numbers for the bytes of ports that have a grid."""
    return {n: x if n not in grids else
            (x.astype(np.float32) - np.float32(grids[n][1])) * np.float32(grids[n][0])
            for n, x in arrays.items()}


def of_meta(meta: Mapping[str, Any], kind: str) -> Grids:
    """The grids of a graph's "inputs" or "outputs", by what its `meta` says."""
    rows = meta.get("grids", {}).get(kind, {})
    return {name: (float(scale), int(zero)) for name, (scale, zero) in rows.items()}
