"""Transposed convolution without its zeros: each output phase is an ordinary small convolution.

With stride s, output s·i + a uses only the taps k ≡ lo − a (mod s), which read the input at i + m +
q where k = k₀ + s·m and q = (a + k₀ − lo) / s. The s² results are interleaved by concatenation,
which buffer assignment turns into strided stores. If all phases of a row read the same pixels, or
the channels are so few that these phases fit one vector, they are computed as one convolution over
the union of their taps; its channels are already in the order of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphtool import ops as o
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim

Convolve = Callable[[Tracer, Any, Any, bool], Any]
Pad = Callable[[Tracer, Any], Any]  # x and (before, after) for each axis of the image


@dataclass(frozen=True)
class Phase:
    """One phase along one axis: its first tap, the number of its taps, and where it starts to
    read."""

    tap: int
    taps: int
    start: int


def phases(stride: int, taps: int, lo: int) -> list[Phase]:
    """The phases of an axis; empty if one of them would have no tap."""
    out = []
    for a in range(stride):
        first = (lo - a) % stride
        count = -(-(taps - first) // stride)
        if count < 1:
            return []
        out.append(Phase(first, count, (a + first - lo) // stride))
    return out


def unfit(x: Tracer, w: Any, attrs: Any, out: tuple[Dim, ...]) -> str:
    """Why a transposed convolution cannot be computed by phases; empty if it can."""
    lows = [lo for lo, _ in attrs["padding"] or ()]
    if any(s != 1 for s in attrs["strides"] or ()):
        return "it also has strides"
    if any(d != 1 for d in attrs["rhs_dilation"] or ()):
        return "its window is dilated"
    if not all(isinstance(d, int) for d in (*w.shape[2:], *lows)):
        return "its window is not known"
    counts = _counts(out, attrs)
    if any(n * s != d for d, n, s in zip(out[1:3], counts, attrs["lhs_dilation"], strict=True)):
        return "the size of its result is not a multiple of its strides"
    if not all(isinstance(n - d, int) for n, d in zip(counts, x.shape[1:3], strict=True)):
        return "how much larger its result is, is not known"
    return "" if all(_axes(w, attrs)) else "a phase would have no tap"


def _counts(out: tuple[Dim, ...], attrs: Any) -> list[Dim]:
    """The size of a phase along both axes."""
    return [d // s for d, s in zip(out[1:3], attrs["lhs_dilation"], strict=True)]


def _axes(w: Any, attrs: Any) -> list[list[Phase]]:
    """The phases of both axes."""
    lows = [lo for lo, _ in attrs["padding"] or ((0, 0), (0, 0))]
    return [phases(s, k, lo) for s, k, lo in zip(
        attrs["lhs_dilation"], w.shape[2:], lows, strict=True) if isinstance(k, int)]


def with_zeros(x: Tracer, padding: Any) -> Any:
    """x [N,H,W,C] with zeros around its images."""
    return o.pad(x, lo=(0, *(p[0] for p in padding), 0), hi=(0, *(p[1] for p in padding), 0))


def polyphase(x: Tracer, w: Any, attrs: Any, out: tuple[Dim, ...], convolve: Convolve,
              lanes: int = 1, pad: Pad = with_zeros) -> Any:
    """The transposed convolution of x [N,H,W,C] with w [O,C,KH,KW], a tracer or an array, for which
    `unfit` finds no reason.

    `out` is the result's shape; `convolve(x, w, attrs, zeros)` makes one ordinary convolution,
    which computes `lanes` channels at a time; with `zeros` some filters have taps that are 0.
    `pad` puts what stands for zero around x.
    """
    strides = attrs["lhs_dilation"]
    axes = _axes(w, attrs)
    counts = _counts(out, attrs)
    padded, before = _padded(x, axes, counts, x.shape[1:3], pad)
    rows = []
    plain = {**attrs, "lhs_dilation": None, "padding": None, "strides": (1, 1)}
    alike = len({(p.start, p.taps) for p in axes[1]}) == 1
    together = attrs["groups"] == 1 and (alike or strides[1] * w.shape[0] <= lanes)
    for row in axes[0]:
        if together:
            rows.append(_line(padded, w, row, axes[1], before, counts, strides, plain, convolve))
            continue
        cells = [_phase(padded, w, (row, column), before, counts, strides, plain, convolve)
                 for column in axes[1]]
        rows.append(_beside(cells, 4))
    return o.reshape(_beside(rows, 2), shape=out)


def _padded(x: Tracer, axes: Any, counts: Any, sizes: Any, pad: Pad) -> tuple[Tracer, list[int]]:
    """x with enough zeros around it for every phase."""
    before, after = [], []
    for line, n, d in zip(axes, counts, sizes, strict=True):
        before.append(max(0, -min(p.start for p in line)))
        after.append(max(0, max(p.taps - 1 + p.start for p in line) + n - d))
    if any(before) or any(after):
        x = pad(x, tuple(zip(before, after, strict=True)))
    return x, before


def _phase(x: Tracer, w: Any, phase: tuple[Phase, Phase], before: list[int], counts: Any,
           strides: Any, attrs: Any, convolve: Convolve) -> Any:
    """One phase as [N, rows, 1, columns, 1, O]."""
    start = [b + p.start for b, p in zip(before, phase, strict=True)]
    limit = [s + n + p.taps - 1 for s, n, p in zip(start, counts, phase, strict=True)]
    part = x if (start == [0, 0] and limit == list(x.shape[1:3])) else o.slice(
        x, start=(0, *start, 0), limit=(x.shape[0], *limit, x.shape[3]), strides=(1, 1, 1, 1))
    taps = o.slice(w, start=(0, 0, *(p.tap for p in phase)),
                   limit=(*w.shape[:2], *w.shape[2:]), strides=(1, 1, *strides))
    y = convolve(part, taps, attrs, False)
    n, h, wide, m = y.shape
    return o.reshape(y, shape=(n, h, 1, wide, 1, m))


def _line(x: Tracer, w: Any, row: Phase, line: list[Phase], before: list[int], counts: Any,
          strides: Any, attrs: Any, convolve: Convolve) -> Any:
    """All phases of a row as [N, rows, 1, columns, phases, O]."""
    first = min(p.start for p in line)
    width = max(p.start + p.taps for p in line) - first
    parts = []
    for p in line:
        taps = o.slice(w, start=(0, 0, row.tap, p.tap), limit=w.shape,
                       strides=(1, 1, *strides))
        left = p.start - first
        parts.append(o.pad(taps, lo=(0, 0, 0, left), hi=(0, 0, 0, width - left - p.taps)))
    start = [before[0] + row.start, before[1] + first]
    limit = [start[0] + counts[0] + row.taps - 1, start[1] + counts[1] + width - 1]
    part = o.slice(x, start=(0, *start, 0), limit=(x.shape[0], *limit, x.shape[3]),
                   strides=(1, 1, 1, 1))
    y = convolve(part, o.concat(*parts, axis=0), attrs, any(p.taps < width for p in line))
    n, h, wide, _ = y.shape
    return o.reshape(y, shape=(n, h, 1, wide, len(line), w.shape[0]))


def _beside(parts: list[Any], axis: int) -> Any:
    return parts[0] if len(parts) == 1 else o.concat(*parts, axis=axis)


