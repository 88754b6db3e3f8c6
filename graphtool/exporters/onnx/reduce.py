"""Reductions over axes and windows, running reductions, sorting; resizing."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.exporters import definitions
from graphtool.exporters.definitions import filled, tap
from graphtool.exporters.onnx.elementwise import cast, computed, wider
from graphtool.exporters.onnx.kit import Node, Ref, Writer, dtypes, form, o, takes
from graphtool.exporters.onnx.registry import named
from graphtool.exporters.onnx.sizes import shape, size
from graphtool.front.names import written
from graphtool.ops.indexing import conv_defaults
from graphtool.ops.reduce import identity


@form(*written("onnx", "axes"))
def reduce(w: Writer, node: Node, x: Ref) -> Any:
    """ReduceSum, ReduceMax and so on with keepdims; x itself if there are no axes. For bools
    ReduceMin is `and`, ReduceMax `or`."""
    axes, there = node.attrs["axes"], named(node.op.name, x.type.dtype)
    if not axes and node.op.name != "logsumexp":
        return x
    takes(bool(axes))
    if there.types == "booleans":
        return w(there.name, x, w.array(list(axes)), keepdims=1)
    return computed(w, there.name, x.type.dtype, [x], w.array(list(axes)), keepdims=1)


@form("norm")
def norm(w: Writer, node: Node, x: Ref) -> Any:
    """ReduceL1 or ReduceL2 with keepdims; declined for other orders."""
    op = {1.0: "ReduceL1", 2.0: "ReduceL2"}.get(node.attrs["order"], "")
    takes(bool(op) and not node.attrs["epsilon"] and bool(node.attrs["axes"]))
    return w(op, x, w.array(list(node.attrs["axes"])), keepdims=1)


@form("arg_reduce")
def arg_reduce(w: Writer, node: Node, x: Ref) -> Any:
    """ArgMax or ArgMin with keepdims."""
    op = "ArgMax" if node.attrs["kind"] == "max" else "ArgMin"
    wide = wider(op, x.type.dtype)
    return w(op, x if wide is None else cast(w, x, wide), axis=node.attrs["axis"], keepdims=1,
             select_last_index=int(node.attrs["last"]))


@form("cumulative")
def cumulative(w: Writer, node: Node, x: Ref) -> Any:
    """CumSum or CumProd; a running max or min is restated."""
    kind, axis = node.attrs["kind"], node.attrs["axis"] % len(x.shape)
    if kind in ("max", "min"):
        return w.restate(lambda x: _doubling(x, kind, axis, **_way(node)), [x])
    return computed(w, "CumSum" if kind == "sum" else "CumProd", x.type.dtype, [x],
                    w.array(axis, dtypes.int64), **{k: int(v) for k, v in _way(node).items()})


def _way(node: Node) -> dict[str, bool]:
    return {"reverse": node.attrs["reverse"], "exclusive": node.attrs["exclusive"]}


def _doubling(x: Any, kind: str, axis: int, reverse: bool, exclusive: bool) -> Any:
    """A running max or min in log₂ n steps: each element meets the one 1, 2, 4, … places before
    it (Hillis and Steele)."""
    n = x.shape[axis]
    takes(isinstance(n, int))
    fill = identity(kind, x.dtype)

    def shifted(v: Any, by: int) -> Any:
        lo, hi = [0] * v.ndim, [0] * v.ndim
        (hi if reverse else lo)[axis], (lo if reverse else hi)[axis] = by, -by
        return o.pad(v, lo=tuple(lo), hi=tuple(hi), value=float(fill))
    x = shifted(x, 1) if exclusive else x
    step = 1
    while step < n:
        x = (o.max if kind == "max" else o.min)(x, shifted(x, step))
        step *= 2
    return x


@form("sort", "top_k")
def sort(w: Writer, node: Node, x: Ref) -> Any:
    """TopK, sorted; all elements for sort."""
    if not x.shape:
        return x, w.array(np.zeros((), np.int64))
    takes(x.type.dtype is not dtypes.string)
    axis, dtype = node.attrs["axis"] % len(x.shape), x.type.dtype
    largest = node.attrs["descending"] if node.op.name == "sort" else node.attrs["largest"]
    k = node.outputs[0].type.shape[axis]
    wide = wider("TopK", dtype)
    values, indices = w("TopK", x if wide is None else cast(w, x, wide), size(w, k), outputs=2,
                        axis=axis, largest=int(largest), sorted=1)
    return (values if wide is None else cast(w, values, dtype)), indices


# ---- windows, resizing --------------------------------------------------------------------------

_POOLS = {"max_pool": "MaxPool", "avg_pool": "AveragePool", "lp_pool": "LpPool"}


@form(*_POOLS)
def pool(w: Writer, node: Node, x: Ref) -> Any:
    """MaxPool, AveragePool or LpPool; channels at axis 1, or transposes around it."""
    attrs = dict(node.attrs)
    if attrs.pop("channels_last"):
        return w.restate(lambda x: _channels_second(node.op, x, attrs), [x])
    strides, padding, dilation, _ = conv_defaults(len(attrs["window"]), attrs["strides"],
                                                  attrs["padding"], attrs["dilation"], None)
    takes(_pooled(x, attrs["window"], padding))
    given = _geometry(attrs["window"], strides, padding, dilation)
    if node.op.name == "avg_pool":
        given["count_include_pad"] = int(attrs["count_include_pad"])
    if node.op.name == "lp_pool":
        takes(float(attrs["order"]).is_integer())
        given["p"] = int(attrs["order"])
    return computed(w, _POOLS[node.op.name], x.type.dtype, [x], **given)


def _channels_second(op: Any, x: Any, attrs: dict[str, Any]) -> Any:
    n = x.ndim
    y = op(o.transpose(x, perm=(0, n - 1, *range(1, n - 1))), **attrs)
    return o.transpose(y, perm=(0, *range(2, n), 1))


def _pooled(x: Ref, window: Any, padding: Any) -> bool:
    """Whether onnxruntime accepts it: padding is below the window, and the input is not empty."""
    inside = all(isinstance(p, int) and 0 <= p < k for k, pair in zip(window, padding, strict=True)
                 for p in pair)
    return inside and len(x.shape) >= 3 and all(d != 0 for d in x.shape)


def _geometry(window: Any, strides: Any, padding: Any, dilation: Any) -> dict[str, Any]:
    return {"kernel_shape": window, "strides": strides, "dilations": dilation,
            "pads": [p[0] for p in padding] + [p[1] for p in padding]}


def _is_max_pool(x: Ref, attrs: Any) -> bool:
    """Whether a window over all axes is that of a MaxPool which onnxruntime has."""
    strides, padding, base, _ = conv_defaults(len(x.shape), attrs["strides"], attrs["padding"],
                                              attrs["base_dilation"], attrs["window_dilation"])
    window = attrs["window"]
    batch = [(v[0], v[1]) for v in (window, strides, padding)] if len(x.shape) > 2 else []
    return (attrs["kind"] == "max" and set(base) == {1} and x.type.dtype.bits != 16
            and batch == [(1, 1), (1, 1), ((0, 0), (0, 0))]
            and _pooled(x, window[2:], padding[2:]))


@form("reduce_window")
def reduce_window(w: Writer, node: Node, x: Ref) -> Any:
    """MaxPool for a maximum over spatial axes; else a reduction of slices, axis by axis."""
    attrs = node.attrs
    strides, padding, base, dilation = conv_defaults(len(x.shape), attrs["strides"],
                                                     attrs["padding"], attrs["base_dilation"],
                                                     attrs["window_dilation"])
    window, kind = attrs["window"], attrs["kind"]
    if _is_max_pool(x, attrs):
        return w.restate(lambda x: o.max_pool(x, window=window[2:], strides=strides[2:],
                                              padding=padding[2:], dilation=dilation[2:]), [x])
    return w.restate(lambda x: _windows(x, kind, window, strides, padding, base, dilation), [x])


def _windows(x: Any, kind: str, window: Any, strides: Any, padding: Any, base: Any,
             dilation: Any) -> Any:
    join = {"sum": o.add, "prod": o.mul, "max": o.max, "min": o.min}[kind]
    x = filled(x, identity(kind, x.dtype), padding, base)
    for axis, (k, s, r) in enumerate(zip(window, strides, dilation, strict=True)):
        places = [tap(x, {axis: (i, k, s, r)}) for i in range(k)]
        x = places[0]
        for p in places[1:]:
            x = join(x, p)
    return x


@form("arg_reduce_window")
def arg_reduce_window(w: Writer, node: Node, x: Ref) -> Any:
    """The second result of MaxPool, which are row-major indices in x as ours; else by slices."""
    attrs = node.attrs
    if not _is_max_pool(x, attrs) or x.type.dtype not in (
            dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint8):
        return by_taps(w, node, x)
    shape = conv_defaults(len(x.shape), *(attrs[name] for name in (
        "strides", "padding", "base_dilation", "window_dilation")))
    strides, padding, _, dilation = (row[2:] for row in shape)
    return w("MaxPool", x, outputs=2, **_geometry(attrs["window"][2:], strides, padding,
                                                  dilation))[1]


@form("extreme_tap", "unpool")
def by_taps(w: Writer, node: Node, x: Ref, *taps: Ref) -> Any:
    """What ONNX lacks of windows, by slices."""
    takes(all(isinstance(d, int) for d in x.shape))
    fn = getattr(definitions, node.op.name)
    return w.restate(lambda *xs: fn(*xs, **node.attrs), [x, *taps])


# ---- resize ------------------------------------------------------------------------------------

@form("resize")
def resize(w: Writer, node: Node, x: Ref) -> Any:
    """Resize by sizes; by scales if they are given and lead to the sizes."""
    attrs = node.attrs
    sizes, scales, crop = attrs["sizes"], attrs["scales"], attrs["roi"]
    wanted = tuple(int(np.floor(d * s)) for d, s in zip(x.shape, scales or (), strict=False)
                   if isinstance(d, int))
    takes(scales is None or wanted == sizes)
    takes(attrs["mode"] == "nearest" or (len(x.shape) >= 3 and x.type.dtype is dtypes.float32))
    cropped = attrs["coordinates"] == "tf_crop_and_resize"
    takes(attrs["mode"] == "cubic" or not attrs["exclude_outside"])
    takes(not cropped or x.type.dtype is dtypes.float32)
    takes(not attrs["antialias"] or (len(x.shape) == 4 and attrs["mode"] != "nearest"))
    roi = None if not cropped else w.array(np.asarray(crop or (0.0,) * len(sizes)
                                                      + (1.0,) * len(sizes), np.float32))
    by = None if scales is None else w.array(np.asarray(scales, np.float32))
    nearest, cubic = attrs["mode"] == "nearest", attrs["mode"] == "cubic"
    return w("Resize", x, roi, by, shape(w, sizes) if by is None else None, mode=attrs["mode"],
             coordinate_transformation_mode=attrs["coordinates"],
             nearest_mode=attrs["rounding"] if nearest else None,
             cubic_coeff_a=attrs["cubic"] if cubic else None,
             exclude_outside=int(attrs["exclude_outside"]) or None,
             antialias=int(attrs["antialias"]) or None,
             extrapolation_value=attrs["extrapolation"] if cropped else None)
