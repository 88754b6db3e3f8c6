"""Gradients: ATen's gradient ops, which AOTAutograd leaves in a captured backward graph, and
gradients that a model computes inside its forward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool.front import Array, Front, Refused
from graphtool.front.array import pick
from graphtool.importers.torch.driver.table import HANDLERS, aten
from graphtool.importers.torch.families.linalg import transposed_attrs, transposed_weights
from graphtool.importers.torch.kit import Context, dtypes, o, pairs, product
from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.op import OPS, complete_attrs
from graphtool.ir.replay import inline, replay
from graphtool.transforms import vjp

# ---- gradient ops of ATen -----------------------------------------------------------------------

@aten("embedding_dense_backward")
def embedding_dense_backward(c: Context, grad_output: Array, indices: Array, num_weights: Any,
                             padding_idx: Any, scale_grad_by_freq: bool) -> Any:
    """Adds each row of the gradient to the row it was read from; the padding row gets nothing.

    With `scale_grad_by_freq` it is the mean of them.
    """
    index = indices.cast(dtypes.int64).unsqueeze()
    if isinstance(padding_idx, int) and padding_idx >= 0:
        grad_output = o.select(o.eq(index, padding_idx), 0, grad_output)
    start = c.full(c.out.shape, 0, c.out.dtype)
    if scale_grad_by_freq:
        counts = o.scatter(c.full((c.out.shape[0], 1), 0, c.out.dtype), index,
                           c.full(index.shape, 1, c.out.dtype), axes=(0,), kind="add")
        grad_output = grad_output / o.gather(counts, index, axes=(0,))
    return o.scatter(start, index, grad_output, axes=(0,), kind="add")


@aten("_weight_norm_interface_backward", "_weight_norm_differentiable_backward")
def weight_norm_back(c: Context, grad_w: Array, saved_v: Array, saved_g: Array,
                     saved_norms: Array, dim: int) -> Any:
    """Of w = g·v / |v|: ḡ = Σ w̄·v / |v| and v̄ = (w̄ − v·ḡ / |v|)·g / |v|, norms over all axes but
    one."""
    axes = tuple(i for i in range(saved_v.ndim) if i != dim % saved_v.ndim)
    norms, g = (x.reshape([1 if i in axes else d for i, d in enumerate(saved_v.shape)])
                for x in (saved_norms, saved_g))
    grad_g = o.reduce_sum(grad_w * saved_v, axes=axes) / norms
    grad_v = (grad_w - saved_v * grad_g / norms) * (g / norms)
    return grad_v, grad_g.reshape(saved_g.shape)


@aten("rrelu_with_noise_backward")
def rrelu_back(c: Context, grad_output: Array, self: Array, noise: Array, lower: float,
               upper: float, training: bool, self_is_result: bool = False) -> Any:
    """g·slope: the slopes drawn in training, else (lower + upper) / 2 where x ≤ 0."""
    return grad_output * (noise if training else pick(self > 0.0, 1.0, (lower + upper) / 2, self))


def _max_pool_backward(n: int) -> Any:
    """Adds each gradient to the place of its maximum; the last operand holds the indices."""
    def gradient(c: Context, grad_output: Array, self: Array, *rest: Any) -> Any:
        planes, size = self.shape[:-n], product(self.shape[-n:])
        count, lead = product(grad_output.shape[-n:]), len(planes)
        y = o.scatter(c.full((*planes, size), 0, c.out.dtype), rest[-1].reshape(
            (*planes, count, 1)), grad_output.reshape((*planes, count)), axes=(lead,), batch=lead,
            kind="add")
        return y.reshape(self.shape)
    return gradient


for _n in (2, 3):
    aten(f"max_pool{_n}d_with_indices_backward", f"adaptive_max_pool{_n}d_backward")(
        _max_pool_backward(_n))


def _normalised(g: Any, centred: Any, rstd: Any, axes: tuple[int, ...]) -> Any:
    """rstd·(g − mean(g) − x̂·mean(g·x̂)) with x̂ = (x − mean)·rstd"""
    unit = centred * rstd
    pull = g - o.reduce_mean(g, axes=axes)
    return rstd * (pull - unit * o.reduce_mean(g * unit, axes=axes))


@aten("native_layer_norm_backward")
def layer_norm_backward(c: Context, grad_out: Array, input: Array, normalized_shape: Any,
                        mean: Array, rstd: Array, weight: Array | None, bias: Array | None,
                        output_mask: tuple[bool, ...]) -> Any:
    """(ḡx, ḡw, ḡb): ḡx = rstd·(g·w − mean(g·w) − x̂·mean(g·w·x̂)), ḡw = Σ g·x̂, ḡb = Σ g."""
    lead = input.ndim - len(normalized_shape)
    inner, outer = tuple(range(lead, input.ndim)), tuple(range(lead))
    centred = input - mean
    g = grad_out if weight is None else grad_out * weight

    def over(x: Any) -> Any:
        return (o.reduce_sum(x, axes=outer) if outer else x).reshape(tuple(normalized_shape))
    return (_normalised(g, centred, rstd, inner), over(grad_out * (centred * rstd)),
            over(grad_out))


@aten("native_group_norm_backward")
def group_norm_backward(c: Context, grad_out: Array, input: Array, mean: Array, rstd: Array,
                        weight: Array | None, N: Any, C: Any, HxW: Any, group: int,
                        output_mask: tuple[bool, ...]) -> Any:
    """(ḡx, ḡw, ḡb) as in a layer norm, over each group of channels; ḡw and ḡb are [C]."""
    shape = (N, group, C // group, HxW)
    m, r = (x.reshape((N, group, 1, 1)) for x in (mean, rstd))
    g, centred = grad_out.reshape(shape), input.reshape(shape) - m
    scaled = g if weight is None else g * weight.reshape((group, C // group, 1))

    def over(x: Any) -> Any:
        return o.reduce_sum(x, axes=(0, 3)).reshape((C,))
    return (_normalised(scaled, centred, r, (2, 3)).reshape(input.shape),
            over(g * (centred * r)), over(g))


@aten("convolution_backward")
def convolution_backward(c: Context, grad_output: Array, input: Array, weight: Array,
                         bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
                         transposed: bool, output_padding: Any, groups: int,
                         output_mask: tuple[bool, ...]) -> Any:
    """The vjp of our conv; a transposed convolution is first written as a plain one."""
    n = weight.ndim - 2
    def ours(w: Array) -> Array:
        return transposed_weights(w, groups) if transposed else w
    if transposed:
        attrs = transposed_attrs(weight, stride, padding, output_padding, groups, dilation)
    else:
        attrs = {"strides": pairs(stride, n), "rhs_dilation": pairs(dilation, n),
                 "padding": tuple((p, p) for p in pairs(padding, n)), "groups": groups}
    conv = OPS["conv"]
    assert conv.vjp is not None
    gx, gw = conv.vjp(grad_output, None, input, ours(weight), **complete_attrs(conv, attrs))
    return gx, ours(gw), grad_output.reduce("sum", (0, *range(2, 2 + n)))


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
    def gradient(c: Context, grad_output: Array, *operands: Any) -> Any:
        xs = operands[:count]
        rest = [x for x in operands[count:] if not _mask(x)] if same else [None]

        inner = Context(c.knowledge)
        inner.outs, inner.first = (grad_output.type,), grad_output.type
        args = [inner.input(x.type, f"x{i}") for i, x in enumerate(xs)]
        y = HANDLERS[f"aten.{name}"](inner, *args, *rest)
        inputs = tuple(x.value for x in args)
        joint = vjp(Graph(inputs, tuple(inner.nodes), (y.value,)), inputs, [0])
        return tuple(inline(c, joint, [*xs, grad_output])[-count:])
    return gradient


def _mask(x: Any) -> bool:
    """True for a tuple of bools: ATen's mask of wanted gradients, which we ignore."""
    return isinstance(x, tuple) and bool(x) and all(isinstance(i, bool) for i in x)


for _name, (_forward, _count, _same) in _OF_FORWARD.items():
    aten(_name)(_of_forward(_forward, _count, _same))


# ---- gradients inside a forward -----------------------------------------------------------------

@aten("inner_gradient", namespace="graphtool")
def inner_gradient(c: Context, outputs: Sequence[Array], inputs: Sequence[Array],
                   seeds: Sequence[Array], kept: bool) -> Any:
    """The gradient of Σ outputs·seeds by each input, in the input's type, by our vjp.

    `kept` is torch's `create_graph`; without it no gradient flows through the results.
    """
    if not all(x.dtype.is_float for x in (*outputs, *inputs)):
        raise Refused("a gradient is supported only of floats by floats, not of or by integers")
    gradients = _gradients(c, [y.value for y in outputs], [x.value for x in inputs], seeds)
    return tuple(gradients) if kept else tuple(o.stop_gradient(g) for g in gradients)


def _gradients(b: Front, ys: list[Value], xs: list[Value],
               seeds: Sequence[Array]) -> list[Array]:
    nodes = _between(b.nodes, xs)
    computed = {v for n in nodes for v in n.outputs}
    read = dict.fromkeys((*xs, *(v for n in nodes for v in n.inputs
                                 if isinstance(v, Value) and v not in computed), *ys))
    free = [v for v in read if v not in computed]
    joint = vjp(Graph(tuple(free), nodes, tuple(ys)), xs)
    return _appended(b, joint, [*map(b.traced, free), *seeds], set(nodes))[len(ys):]


def _between(nodes: Sequence[Node], xs: Sequence[Value]) -> tuple[Node, ...]:
    """The nodes that depend on xs; the nodes that compute xs are left out."""
    reached, between = set(xs), []
    for n in nodes:
        if any(v in reached for v in n.inputs) and not any(v in xs for v in n.outputs):
            reached.update(n.outputs)
            between.append(n)
    return tuple(between)


def _appended(b: Front, joint: Graph, args: Sequence[Array], there: set[Node]) -> list[Array]:
    """The results of `joint`, emitted into the builder; its nodes in `there` are not repeated."""
    def apply(node: Node, *operands: Any) -> Sequence[Any]:
        if node in there:
            return [*map(b.traced, node.outputs)]
        results = b.emit(node.op, operands, dict(node.attrs))
        return results if isinstance(results, tuple) else (results,)
    return replay(joint, args, apply)
