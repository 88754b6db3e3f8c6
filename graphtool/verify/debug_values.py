"""A part of an array, an array as text, and its figures, for the debugger."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.errors import UsageError

Array = np.ndarray[Any, Any]
_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?(?::(-?[1-9]\d*))?")


def selected(x: Array, part: str) -> Array:
    """The part of an array that `[0,:4]` names; all of it for an empty text.

    Raises UsageError GT3162 for another text, and for an index that the array does not have."""
    if not part:
        return x
    if not part.endswith("]"):
        raise UsageError("GT3162", f"cannot read {part!r}", hint="as in x[0,:4]")
    index = tuple(_index(word.strip(), part) for word in part[1:-1].split(","))
    try:
        return np.asarray(x[index])
    except IndexError as error:
        raise UsageError("GT3162", f"{part}: {error}",
                         hint=f"the shape is {list(x.shape)}") from error


def _index(word: str, part: str) -> Any:
    if word == "...":
        return Ellipsis
    if re.fullmatch(r"-?\d+", word):
        return int(word)
    if match := _SLICE.fullmatch(word):
        return slice(*(None if g is None else int(g) for g in match.groups()))
    raise UsageError("GT3162", f"cannot read {word!r} in {part!r}",
                     hint="numbers, slices as in 2:5 or ::2, and ..., with commas between")


def kind(x: Array) -> str:
    """The type and shape of an array: f32[2,8]."""
    return f"{dtypes.of_numpy(x.dtype).short}[{','.join(map(str, x.shape))}]"


def brief(x: Array) -> list[str]:
    """The lines of an array's type and its elements, without the middle of a large one."""
    with np.printoptions(threshold=64, edgeitems=3, precision=6, linewidth=88):
        first, *rest = str(x).split("\n")
    return [kind(x), *(f"  {row}" for row in (first, *rest))] if rest else [f"{kind(x)} {first}"]


def measured(x: Array) -> str:
    """One line of figures of an array; those of a float count finite elements only."""
    if x.dtype.kind in "OSUT" or not x.size:
        return f"{kind(x)}, {x.size} elements"
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    finite = wide[np.isfinite(wide)]
    counts = {"zero": int((wide == 0).sum()), "NaN": int(np.isnan(wide).sum()),
              "infinite": int(np.isinf(wide).sum())}
    parts = [f"{n} {what}" for what, n in counts.items() if n]
    if not finite.size:
        return ", ".join([kind(x), *parts])
    if x.dtype.kind == "c":
        finite = np.abs(finite)
        parts.append("figures of the magnitudes")
    return ", ".join([kind(x), f"min {finite.min():.6g}", f"max {finite.max():.6g}",
                      f"mean {finite.mean():.6g}", f"deviation {finite.std():.6g}",
                      *parts])
