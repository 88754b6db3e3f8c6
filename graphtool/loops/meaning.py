"""What each template computes, in numpy: the sums that its hook is given, a whole row at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphtool.loops import meaning_integer, meaning_recurrent
from graphtool.loops.site import Site

Array = np.ndarray[Any, Any]
F = np.float64  # sums are exact enough here that a difference is the C's


def _strided(x: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """The elements of a flat buffer at these strides; it must hold all of them."""
    last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else -1
    if last >= x.size:
        raise IndexError(f"element {last} of {x.size}")
    return as_strided(x, shape, tuple(s * x.itemsize for s in strides)).astype(F)


def _panels(site: Site, x: Array, lead: tuple[int, ...], depth: int, columns: int) -> Array:
    """Packed [*lead][panels][depth][NR] as [*lead, depth, columns]."""
    nr = site.number("GT_NV") * site.lanes
    count = -(-columns // nr)
    size = int(np.prod(lead)) * count * depth * nr
    packed = x[:size].reshape(*lead, count, depth, nr).astype(F)
    return np.moveaxis(packed, -3, -2).reshape(*lead, depth, count * nr)[..., :columns]


def _pairs(site: Site, x: Array, lead: tuple[int, ...], depth: int, columns: int,
           runs: int = 1) -> Array:
    """Packed [*lead][panels][runs][⌈depth/runs/2⌉][NR][2] as [*lead, depth, columns]."""
    nr, rank = site.number("GT_NV") * site.lanes, len(lead)
    count, half = -(-columns // nr), -(-depth // runs // 2)
    size = int(np.prod(lead)) * count * runs * half * nr * 2
    packed = x[:size].reshape(*lead, count, runs, half, nr, 2).astype(F)
    order = (*range(rank), rank + 1, rank + 2, rank + 4, rank, rank + 3)
    rows = packed.transpose(order).reshape(*lead, runs, half * 2, count * nr)
    return rows[..., :depth // runs, :columns].reshape(*lead, depth, columns)


def gemm(site: Site) -> None:
    m, n, k = (site.number(f"GT_{x}") for x in "MNK")
    narrow = site.number("GT_PAIRS", 0)  # rows of B come in pairs
    for b in range(site.number("GT_BATCH", 1)):
        left = _strided(site.pointer("GT_A", b), (m, k),
                        (site.number("GT_LDA"), site.number("GT_LDK", 1)))
        right = (_pairs if narrow else _panels)(site, site.pointer("GT_B", b), (), k, n)
        for row, sums in enumerate(left @ right):
            site.epilogue(sums, b, row, 0)


def _window(site: Site, channels: int, size: tuple[int, int], steps: tuple[int, int],
            dilation: tuple[int, int], group: int = 0, step: int = 0) -> Array:
    """The input as [n, oh, ow, kh, kw, c]: what each output pixel sees."""
    n, oh, ow, xn, xh, xw = (site.number(f"GT_{x}") for x in ("BATCH", "OH", "OW", "XN", "XH",
                                                              "XW"))
    return _strided(site.pointer("GT_X")[group * channels:], (n, oh, ow, *size, channels),
                    (xn, steps[0] * xh, steps[1] * xw, dilation[0] * xh,
                     step or dilation[1] * xw, 1))


def _pair(site: Site, name: str) -> tuple[int, int]:
    return site.number(f"GT_{name}H"), site.number(f"GT_{name}W")


def _pixels(site: Site, sums: Array, first: int) -> None:
    """Each pixel of [n, oh, ow, o] to the hook."""
    for n, oh, ow in product(*map(range, sums.shape[:3])):
        site.epilogue(sums[n, oh, ow], n, oh, ow, first)


def conv(site: Site) -> None:
    groups, c, o, size = site.number("GT_GROUPS"), site.number("GT_C"), site.number("GT_O"), _pair(
        site, "K")
    depth = size[0] * size[1] * c
    if site.number("GT_PAIRS", 0):
        whole = groups == 1 and site.number("GT_DW") == 1
        weights = _pairs(site, site.pointer("GT_W"), (groups,), depth, o,
                         size[0] * (1 if whole else size[1]))
    else:
        weights = _panels(site, site.pointer("GT_W"), (groups,), depth, o)
    for g in range(groups):
        seen = _window(site, c, size, _pair(site, "S"), _pair(site, "D"), g)
        _pixels(site, seen.reshape(*seen.shape[:3], -1) @ weights[g], g * o)


def depthwise(site: Site) -> None:
    c, size = site.number("GT_C"), _pair(site, "K")
    seen = _window(site, c, size, _pair(site, "S"), _pair(site, "D"), step=site.number("GT_XT", 0))
    weights = site.pointer("GT_W")[:size[0] * size[1] * c].reshape(*size, c).astype(F)
    _pixels(site, np.einsum("nhwrsc,rsc->nhwc", seen, weights), 0)
    if site.has("GT_SUMS"):
        _row_sums(site, c)


def _row_sums(site: Site, c: int) -> None:
    """The sums of the rows that the hook has stored."""
    steps = site.number("GT_YW"), site.number("GT_YC")
    for n, oh in product(range(site.number("GT_BATCH")), range(site.number("GT_OH"))):
        rows = _strided(site.pointer("GT_Y", n, oh), (site.number("GT_OW"), c), steps)
        _spread(site.pointer("GT_SUMS", n, oh), site.number("GT_SUMC"), c)[:] = rows.sum(0)


def pool(site: Site) -> None:
    seen = _window(site, site.number("GT_C"), _pair(site, "K"), _pair(site, "S"), _pair(site, "D"))
    reduce = (np.sum, np.max, np.min)[site.number("GT_KIND")]
    _pixels(site, np.asarray(reduce(seen, axis=(3, 4))), 0)


def transpose(site: Site) -> None:
    a, b, step = (site.number(f"GT_{x}") for x in ("A", "B", "XB"))
    for p in range(site.number("GT_PLANES")):
        for row, x in enumerate(_strided(site.pointer("GT_X", p), (a, b), (1, step))):
            site.epilogue(x, p, row, 0)


# the transforms of input and output for tiles of 2 and 4: arXiv:1509.09308, points 0 ±1 ±2 ∞
_INPUT = {2: [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
          4: [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
              [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]]}
_FRACTIONS = {2: [1, 1 / 2, 1 / 2, 1], 4: [1 / 4, -1 / 6, -1 / 6, 1 / 24, 1 / 24, 1]}
_OUTPUT = {2: [[1, 1, 1, 0], [0, 1, -1, -1]],
           4: [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0],
               [0, 1, -1, 8, -8, 1]]}


def winograd(site: Site) -> None:
    m, c, o = site.number("GT_TILE"), site.number("GT_C"), site.number("GT_O")
    count, oh, ow = (site.number(f"GT_{x}") for x in ("BATCH", "OH", "OW"))
    strides = [site.number(f"GT_X{x}") for x in "NHW"]
    x = _strided(site.pointer("GT_X"), (count, oh + 2, ow + 2, c), (*strides, 1))
    high, wide = -(-oh // m) * m, -(-ow // m) * m
    x = np.pad(x, ((0, 0), (0, high - oh), (0, wide - ow), (0, 0)))
    whole = site.number("GT_INTEGERS", 0)  # weights are pairs, without G's fractions
    groups = site.number("GT_GROUPS", 1)
    u = (_pairs if whole else _panels)(site, site.pointer("GT_W"), ((m + 2) ** 2,), c // groups, o)
    u = u.reshape(m + 2, m + 2, c // groups, o)
    if whole:
        u = np.einsum("i,j,ijco->ijco", _FRACTIONS[m], _FRACTIONS[m], u)
    u = u.reshape(*u.shape[:3], groups, -1)
    b, a = np.array(_INPUT[m], F), np.array(_OUTPUT[m], F)
    y = np.zeros((count, high, wide, o))
    for i, j in product(range(0, high, m), range(0, wide, m)):
        v = np.einsum("ir,nrsc,js->nijc", b, x[:, i:i + m + 2, j:j + m + 2], b)
        v = v.reshape(*v.shape[:3], groups, -1)
        sums = np.einsum("nijgc,ijcgo->nijgo", v, u).reshape(*v.shape[:3], o)
        y[:, i:i + m, j:j + m] = np.einsum("ri,nijo,sj->nrso", a, sums, a)
    _pixels(site, (np.rint(y) if whole else y)[:, :oh, :ow], 0)


def winograd_line(site: Site) -> None:
    m, upright, c, o = (site.number(f"GT_{x}") for x in ("TILE", "UPRIGHT", "C", "O"))
    count, lines, length = (site.number(f"GT_{x}") for x in ("BATCH", "ACROSS", "ALONG"))
    ka, kl, da, dl = (site.number(f"GT_{x}") for x in ("KA", "KL", "DA", "DL"))
    threes, whole = -(-kl // 3), -(-length // (m * dl)) * m * dl
    x = _strided(site.pointer("GT_X"), (count, lines + (ka - 1) * da, length + (kl - 1) * dl, c),
                 (*(site.number(f"GT_X{x}") for x in "NAL"), 1))
    x = np.pad(x, ((0, 0), (0, 0), (0, whole - length + (threes * 3 - kl) * dl), (0, 0)))
    u = _panels(site, site.pointer("GT_W"), (m + 2,), ka * threes * c, o)
    b, a = np.array(_INPUT[m], F), np.array(_OUTPUT[m], F)
    y = np.zeros((count, lines, whole, o))
    for at in (start + k for start in range(0, whole, m * dl) for k in range(dl)):
        parts = [np.einsum("is,nasc->inac", b, x[:, r * da:r * da + lines,
                                                 at + 3 * j * dl:][:, :, :(m + 1) * dl + 1:dl])
                 for r in range(ka) for j in range(threes)]
        y[:, :, at:at + (m - 1) * dl + 1:dl] = np.einsum(
            "si,inao->naso", a, np.einsum("inad,ido->inao", np.concatenate(parts, -1), u))
    y = y[:, :, :length]
    _pixels(site, y.swapaxes(1, 2) if upright else y, 0)


def attention(site: Site) -> None:
    s, t, d, dv = (site.number(f"GT_{x}") for x in ("S", "T", "D", "DV"))
    for b in range(site.number("GT_HEADS")):
        q = _strided(site.pointer("GT_Q", b), (s, d), (site.number("GT_LDQ"), 1))
        k = _strided(site.pointer("GT_KEY", b), (t, d), (site.number("GT_LDK"), 1))
        v = _strided(site.pointer("GT_V", b), (t, dv), (site.number("GT_LDV"), 1))
        scores = q @ k.T * site.number("GT_SCALE")
        if cap := site.number("GT_SOFTCAP"):
            scores = cap * np.tanh(scores / cap)
        for i in range(s):
            if site.number("GT_MASKED"):
                step = site.number("GT_MASK_STEP")
                scores[i] += _strided(site.pointer("GT_MASK", b, i), (t,), (step,))
            if site.number("GT_CAUSAL"):
                scores[i, i + 1:] = -np.inf
            top = scores[i].max(initial=-np.inf)
            e = np.exp(scores[i] - top) if np.isfinite(top) else np.zeros(t)
            site.epilogue(e @ v / (e.sum() or 1), b, i, 0)


def _spread(x: Array, step: int, count: int) -> Array:
    """`count` elements, `step` apart, that may be written."""
    return x[:(count - 1) * step + 1:step] if step else x[:1]


def sort(site: Site) -> None:
    n, k = site.number("GT_N"), site.number("GT_K")
    falling = str(site.macros["GT_BEFORE(a, b)"]).lstrip("(").startswith("a) >")
    for row in range(site.number("GT_ROWS")):
        x = _spread(site.pointer("GT_X", row), site.number("GT_XS"), n)
        # NaN is the largest; read from behind, a stable rising order is a stable falling one
        order = n - 1 - np.argsort(x[::-1], kind="stable")[::-1] if falling else (
            np.argsort(x, kind="stable"))
        if site.has("GT_V"):
            _spread(site.pointer("GT_V", row), site.number("GT_VS"), k)[:] = x[order[:k]]
        if site.has("GT_I"):
            _spread(site.pointer("GT_I", row), site.number("GT_IS"), k)[:] = order[:k]


def collective(site: Site) -> None:
    """A process alone: what all have together is what it has."""
    n = site.number("GT_COUNT")
    if site.number("GT_KIND") == 7:
        site.pointer("GT_Y")[0] = 0
        return
    if site.number("GT_KIND") < 6:
        site.pointer("GT_TICKET")[0] = 0
    site.pointer("GT_Y")[:n] = site.pointer("GT_X")[:n].copy()


def trees(site: Site) -> None:
    kinds, splits, children, roots, weights = (site.pointer(f"GT_{x}") for x in (
        "KINDS", "SPLITS", "CHILDREN", "ROOTS", "WEIGHTS"))
    width, goes = site.number("GT_TARGETS"), _goes(site)
    fold = {"(a) + (b)": np.add, "(a) < (b)": np.minimum, "(a) > (b)": np.maximum}[
        str(site.macros["GT_FOLD(a, b)"])[1:10]]
    for row in range(site.number("GT_ROWS")):
        x, found = site.pointer("GT_X", row), []
        for at in roots[:site.number("GT_TREES")]:
            while kinds[at] >= 0:
                value = x[(kinds[at] >> 4) * site.number("GT_XS")]
                at = children[2 * at + int(goes(int(kinds[at]), value, splits[at]))]
            first = children[2 * at + 1] * width
            found.append(weights[first:first + width])
        _spread(site.pointer("GT_Y", row), site.number("GT_YS"), width)[:] = fold.reduce(found)


_TESTS = {"<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater,
          "==": np.equal, "!=": np.not_equal}


def _goes(site: Site) -> Callable[[int, Any, Any], bool]:
    """What a node asks, as the macro says it."""
    text = str(site.macros["GT_GO(kind, v, s)"])
    signs = re.findall(r"\(v\) (\S+) \(s\)", text)

    def goes(kind: int, value: Any, split: Any) -> bool:
        sign = signs[kind >> 1 & 7] if len(signs) > 1 else signs[0]
        lost = "(kind) & 1" in text and bool(kind & 1) and value != value
        return bool(_TESTS[sign](value, split)) or lost
    return goes


def nbits(site: Site) -> None:
    m, n, k, bits, block, blocks = (site.number(f"GT_{x}") for x in (
        "M", "N", "K", "BITS", "BLOCK", "PARTS"))
    packed = site.pointer("GT_W")[:n * blocks * block * bits // 8].astype(np.int64)
    fields = [packed >> s & (1 << bits) - 1 for s in range(0, 8, bits)]
    q = np.stack(fields, 1).reshape(n, blocks, block).astype(F)
    zeros = site.pointer("GT_ZEROS")[:n * blocks].reshape(n, blocks, 1) if site.has(
        "GT_ZEROS") else 1 << bits - 1
    scales = site.pointer("GT_SCALES")[:n * blocks].reshape(n, blocks, 1)
    w = ((q - zeros) * scales).reshape(n, -1)[:, :k]
    for row in range(m):
        x = _spread(site.pointer("GT_X", row), site.number("GT_XS"), k).astype(F)
        _spread(site.pointer("GT_Y", row), site.number("GT_YS"), n)[:] = w @ x


MEANINGS: dict[str, Callable[[Site], None]] = {
    "gemm.h": gemm, "conv.h": conv, "depthwise.h": depthwise, "winograd.h": winograd,
    "winograd_line.h": winograd_line,
    "transpose.h": transpose, "pool.h": pool,
    "attention.h": attention, "recurrent.h": meaning_recurrent.steps,
    "recurrent_grad.h": meaning_recurrent.back, "sort.h": sort,
    "collective.h": collective, "trees.h": trees, "nbits.h": nbits,
    "int8_gemm.h": meaning_integer.gemm, "int8_conv.h": meaning_integer.conv,
    "int8_depthwise.h": meaning_integer.depthwise}
