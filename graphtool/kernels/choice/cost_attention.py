"""What attention costs: keys and values packed once for their heads, two products for each block
of queries, and the softmax of the scores between them.
"""

from __future__ import annotations

from graphtool.kernels.choice import Attention, Site
from graphtool.kernels.choice.machine import block_cycles, ceil, fetched, longest, overlapped
from graphtool.plan import Plan
from graphtool.target import Target, tile_rows

_SOFTMAX = 14  # cycles of a vector of scores: its maximum, its powers, their sum
_MASK = 3  # and of a mask that is added
_TURN = 60  # cycles of a row of a tile in each chunk of keys: its maximum, what is past scaled
_BEGUN = 30  # cycles to begin a tile and to store it
_FLOAT = 4


def attention(site: Site, c: Plan, t: Target) -> float:
    """Microseconds. Scores of a block are written once, read and written by their softmax, and
    read for each panel of the values: out of the first cache if those of a chunk fit it.
    """
    assert isinstance(site, Attention)
    s, nv = site, c.get("nv", t.nv)
    rows, keys, nr = c.get("rows", t.mr), c.get("keys", 0), nv * t.lanes
    seen = _seen(s)
    heads = longest(s.heads * ceil(s.s, rows), t.threads) / ceil(s.s, rows)
    chunks = max(1, seen // keys if keys else 1)
    wide, deep = ceil(seen, nr), ceil(s.v, nr)
    tiles = block_cycles(s.s, min(rows, tile_rows(t, nv, None)), nv)
    products = (wide * s.d + deep * seen) * tiles + (wide + deep) * ceil(s.s, rows) * _BEGUN
    softmax = s.s * ceil(seen, t.lanes) * (_SOFTMAX + _MASK * s.masked)
    turns = (chunks - 1) * s.s * (_TURN + 2 * deep * nv)
    scores = s.s * seen * _FLOAT * (3 + deep)
    held = rows * ceil(seen, chunks) * _FLOAT
    operands = ceil(s.s, rows) * seen * (s.d + s.v) * _FLOAT
    traffic = fetched(t, scores, held) + fetched(t, operands, s.t * (s.d + s.v) * _FLOAT)
    packed = s.t * (s.d + s.v) * _FLOAT / s.shared
    return heads * (overlapped(t, products + softmax + turns, traffic)
                    + fetched(t, 2 * packed, max(packed, t.l2)))


def _seen(s: Attention) -> int:
    """Keys that a query sees, on the average."""
    few = min(s.s, s.t)
    return ceil(few * few + 2 * (s.s - few) * s.t, 2 * s.s) if s.causal else s.t
