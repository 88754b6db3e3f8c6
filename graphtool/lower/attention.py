"""The template of attention: heads, grouped or not, under a mask or none."""

from __future__ import annotations

import numpy as np

from graphtool.errors import UnsupportedError
from graphtool.lower.site import (
    Lowered,
    Macros,
    Site,
    batch_offset,
    epilogue,
    round_up,
    rows_of_tile,
    scratch_of,
    template,
)
from graphtool.ops.indexing import unflatten_index
from graphtool.symbolic import Symbol, bounds, product, symbol_of


def attention(site: Site) -> Lowered:
    q, k, v, a = site.view(0), site.view(1), site.view(2), site.root.attrs
    *lead, s, dv = site.out.type.shape
    t, d = k.shape[-2:]
    heads, group = product(lead), q.shape[-3] // k.shape[-3]
    at, row, first = Symbol("b", 0, None, heads), Symbol("s", 0, None, s), Symbol("d", 0, None)
    which = unflatten_index(symbol_of(at), tuple(lead)) if heads != 1 else (0,) * len(lead)
    shared = (*which[:-1], which[-1] // group)
    nv = site.plan.get("nv", site.target.nv)
    nr, rows = nv * site.target.lanes, rows_of_tile(site.target, nv, s)
    rows = min(rows, site.plan.get("rows", rows))
    most = bounds(t)[1]
    if most is None:
        raise UnsupportedError("GT2002", f"{site.out.hint}: attention over a length without bound",
                               hint="bound it at import: --dynamic NAME=1..4096")
    macros: Macros = [
        ("GT_KEYS", str(site.plan["keys"])), ("GT_MR", str(rows)), ("GT_NV", str(nv)),
        ("GT_HEADS", heads), ("GT_S", s), ("GT_T", t),
        ("GT_D", d), ("GT_DV", dv), ("GT_LDQ", q.strides[-2]), ("GT_LDK", k.strides[-2]),
        ("GT_LDV", v.strides[-2]), ("GT_SCALE", _c_float(a["scale"])),
        ("GT_SOFTCAP", _c_float(a["softcap"])),
        ("GT_CAUSAL", str(int(a["causal"])))]
    wide_t, wide_v = round_up(most, nr), round_up(dv, nr)
    share = round_up(d * wide_t + most * wide_v + rows * (wide_t + 16 + wide_v), 16)
    work = scratch_of(site, share)
    pointers = [("GT_Q(b)", q.buffer, batch_offset(q, which, 2)),
                ("GT_KEY(b)", k.buffer, batch_offset(k, shared, 2)),
                ("GT_V(b)", v.buffer, batch_offset(v, shared, 2)),
                ("GT_WORK(t)", work, symbol_of(Symbol("t", 0, None)) * share)]
    if len(site.root.inputs) > 3 and site.root.inputs[3] is not None:
        mask = site.view(3)
        at_row = (*which, symbol_of(row))[len(which) + 2 - len(mask.shape):]
        pointers.append(("GT_MASK(b, s)", mask.buffer, mask.index((*(
            0 if n == 1 else i for i, n in zip(at_row, mask.shape[:-1], strict=True)), 0))))
        macros += [("GT_MASKED", "1"), ("GT_MASK_STEP", "0" if mask.shape[-1] == 1 else "1")]
    else:
        macros += [("GT_MASKED", "0")]
    hook = epilogue(site, (at, row, first), (*which, symbol_of(row), symbol_of(first)))
    flops = heads * s * t * (d + dv) * 2
    return template(site, "attention.h", macros, pointers, hook, (work,)), flops


def _c_float(x: float) -> str:
    return f"({float(np.float32(x))!r}f)"
