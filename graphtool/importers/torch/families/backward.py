"""ATen's gradient ops, which AOTAutograd leaves in a captured backward graph."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.torch.driver.context import Context, pairs
from graphtool.importers.torch.driver.table import aten, handler
from graphtool.importers.torch.families.linalg import transposed_attrs, transposed_weights
from graphtool.ir.op import OPS, complete_attrs
from graphtool.ir.trace import Tracer, inline, trace
from graphtool.symbolic import product
from graphtool.transforms import vjp


@aten("embedding_dense_backward")
def embedding_dense_backward(c: Context, grad_output: Tracer, indices: Tracer, num_weights: Any,
                             padding_idx: Any, scale_grad_by_freq: bool) -> Any:
    """Adds each row of the gradient to the row it was read from; the padding row gets nothing.

    With `scale_grad_by_freq` it is the mean of them.
    """
    index = c.reshape(c.cast(indices, dtypes.int64), (*indices.shape, 1))
    if isinstance(padding_idx, int) and padding_idx >= 0:
        grad_output = o.select(o.eq(index, padding_idx), c.literal(0, grad_output.dtype),
                               grad_output)
    start = c.full(c.out.shape, 0, c.out.dtype)
    if scale_grad_by_freq:
        counts = o.scatter(c.full((c.out.shape[0], 1), 0, c.out.dtype), index,
                           c.full((*indices.shape, 1), 1, c.out.dtype), axes=(0,), kind="add")
        grad_output = o.div(grad_output, o.gather(counts, index, axes=(0,)))
    return o.scatter(start, index, grad_output, axes=(0,), kind="add")


@aten("_weight_norm_interface_backward", "_weight_norm_differentiable_backward")
def weight_norm_back(c: Context, grad_w: Tracer, saved_v: Tracer, saved_g: Tracer,
                     saved_norms: Tracer, dim: int) -> Any:
    """Of w = g·v / |v|: ḡ = Σ w̄·v / |v| and v̄ = (w̄ − v·ḡ / |v|)·g / |v|, norms over all axes but
    one."""
    axes = tuple(i for i in range(saved_v.ndim) if i != dim % saved_v.ndim)
    norms, g = (c.reshape(x, [1 if i in axes else d for i, d in enumerate(saved_v.shape)])
                for x in (saved_norms, saved_g))
    grad_g = o.div(o.reduce_sum(o.mul(grad_w, saved_v), axes=axes), norms)
    grad_v = o.mul(o.sub(grad_w, o.div(o.mul(saved_v, grad_g), norms)), o.div(g, norms))
    return grad_v, c.reshape(grad_g, saved_g.shape)


@aten("rrelu_with_noise_backward")
def rrelu_back(c: Context, grad_output: Tracer, self: Tracer, noise: Tracer, lower: float,
               upper: float, training: bool, self_is_result: bool = False) -> Any:
    """g·slope: the slopes drawn in training, else (lower + upper) / 2 where x ≤ 0."""
    slope = noise if training else o.select(o.gt(self, 0.0), c.full((), 1.0, self.dtype),
                                            (lower + upper) / 2)
    return o.mul(grad_output, slope)


def _max_pool_backward(n: int) -> Any:
    """Adds each gradient to the place of its maximum; the last operand holds the indices."""
    def gradient(c: Context, grad_output: Tracer, self: Tracer, *rest: Any) -> Any:
        planes, size = self.shape[:-n], product(self.shape[-n:])
        count = product(grad_output.shape[-n:])
        start = c.full((*planes, size), 0, c.out.dtype)
        at = c.reshape(rest[-1], (*planes, count, 1))
        lead = len(planes)
        y = o.scatter(start, at, c.reshape(grad_output, (*planes, count)), axes=(lead,),
                      batch=lead, kind="add")
        return c.reshape(y, self.shape)
    return gradient


for _n in (2, 3):
    aten(f"max_pool{_n}d_with_indices_backward", f"adaptive_max_pool{_n}d_backward")(
        _max_pool_backward(_n))


def _normalised(c: Context, g: Any, centred: Any, rstd: Any, axes: tuple[int, ...]) -> Any:
    """rstd·(g − mean(g) − x̂·mean(g·x̂)) with x̂ = (x − mean)·rstd"""
    unit = o.mul(centred, rstd)
    pull = o.sub(g, o.reduce_mean(g, axes=axes))
    return o.mul(rstd, o.sub(pull, o.mul(unit, o.reduce_mean(o.mul(g, unit), axes=axes))))


@aten("native_layer_norm_backward")
def layer_norm_backward(c: Context, grad_out: Tracer, input: Tracer, normalized_shape: Any,
                        mean: Tracer, rstd: Tracer, weight: Tracer | None, bias: Tracer | None,
                        output_mask: tuple[bool, ...]) -> Any:
    """(ḡx, ḡw, ḡb): ḡx = rstd·(g·w − mean(g·w) − x̂·mean(g·w·x̂)), ḡw = Σ g·x̂, ḡb = Σ g."""
    lead = input.ndim - len(normalized_shape)
    inner, outer = tuple(range(lead, input.ndim)), tuple(range(lead))
    centred = o.sub(input, mean)
    g = grad_out if weight is None else o.mul(grad_out, weight)
    gx = _normalised(c, g, centred, rstd, inner) if c.used(0) else None

    def over(x: Any) -> Any:
        return c.reshape(o.reduce_sum(x, axes=outer) if outer else x, tuple(normalized_shape))
    gw = over(o.mul(grad_out, o.mul(centred, rstd))) if c.used(1) else None
    return gx, gw, over(grad_out) if c.used(2) else None


@aten("native_group_norm_backward")
def group_norm_backward(c: Context, grad_out: Tracer, input: Tracer, mean: Tracer, rstd: Tracer,
                        weight: Tracer | None, N: Any, C: Any, HxW: Any, group: int,
                        output_mask: tuple[bool, ...]) -> Any:
    """(ḡx, ḡw, ḡb) as in a layer norm, over each group of channels; ḡw and ḡb are [C]."""
    shape = (N, group, C // group, HxW)
    m, r = (c.reshape(x, (N, group, 1, 1)) for x in (mean, rstd))
    g, centred = c.reshape(grad_out, shape), o.sub(c.reshape(input, shape), m)
    scaled = g if weight is None else o.mul(g, c.reshape(weight, (group, C // group, 1)))
    gx = c.reshape(_normalised(c, scaled, centred, r, (2, 3)), input.shape) if c.used(0) else None

    def over(x: Any) -> Any:
        return c.reshape(o.reduce_sum(x, axes=(0, 3)), (C,))
    gw = over(o.mul(g, o.mul(centred, r))) if c.used(1) else None
    return gx, gw, over(g) if c.used(2) else None


@aten("convolution_backward")
def convolution_backward(c: Context, grad_output: Tracer, input: Tracer, weight: Tracer,
                         bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
                         transposed: bool, output_padding: Any, groups: int,
                         output_mask: tuple[bool, ...]) -> Any:
    """The vjp of our conv; a transposed convolution is first written as a plain one."""
    n = weight.ndim - 2
    if transposed:
        w = transposed_weights(c, weight, groups)
        attrs = transposed_attrs(weight, stride, padding, output_padding, groups, dilation)
    else:
        w = weight
        attrs = {"strides": pairs(stride, n), "rhs_dilation": pairs(dilation, n),
                 "padding": tuple((p, p) for p in pairs(padding, n)), "groups": groups}
    conv = OPS["conv"]
    assert conv.vjp is not None
    gx, gw = conv.vjp(grad_output, None, input, w, **complete_attrs(conv, attrs))
    gb = o.reduce_sum(grad_output, axes=(0, *range(2, 2 + n))) if c.used(2) else None
    return (gx if c.used(0) else None,
            (transposed_weights(c, gw, groups) if transposed else gw) if c.used(1) else None,
            gb if gb is None else c.reshape(gb, (grad_output.shape[1],)))


# ---- gradients that are those of a forward handler ----------------------------------------------

# ATen's gradient op → the op whose it is, how many of its first operands have a gradient, and
# whether the operands that follow are those of the forward op
_OF_FORWARD: dict[str, tuple[str, int, bool]] = {
    **{f"avg_pool{n}d_backward": (f"avg_pool{n}d", 1, True) for n in (2, 3)},
    **{f"_adaptive_avg_pool{n}d_backward": (f"_adaptive_avg_pool{n}d", 1, False) for n in (2, 3)},
    **{f"{kind}_pad{n}d_backward": (f"{kind}_pad{n}d", 1, True)
       for kind in ("reflection", "replication") for n in (1, 2, 3)},
    "grid_sampler_2d_backward": ("grid_sampler_2d", 2, True),
}


def _of_forward(name: str, count: int, same: bool) -> Any:
    def gradient(c: Context, grad_output: Tracer, *operands: Any) -> Any:
        xs = operands[:count]
        rest = [x for x in operands[count:] if not _mask(x)] if same else [None]

        def forward(*args: Tracer) -> Any:
            inner = Context(args[0].builder)
            inner.outs, inner.first = (grad_output.type,), grad_output.type
            fn = handler(f"aten.{name}")
            assert fn is not None
            return fn(inner, *args, *rest)
        graph = trace(forward, [x.type for x in xs])
        joint = vjp(graph, graph.inputs, [0])
        return tuple(inline(c.builder, joint, [*xs, grad_output])[-count:])
    return gradient


def _mask(x: Any) -> bool:
    """True for a tuple of bools: ATen's mask of wanted gradients, which we ignore."""
    return isinstance(x, tuple) and bool(x) and all(isinstance(i, bool) for i in x)


for _name, (_forward, _count, _same) in _OF_FORWARD.items():
    aten(_name)(_of_forward(_forward, _count, _same))
